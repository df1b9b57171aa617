"""
Who is kin
==========

The probability that two people answer meeting requests alike, as squares of that area.
"""

import kinfolk
from kinfolk.datasets import make_meetings

team = make_meetings(n_requests=60, random_state=0)
model = kinfolk.ClusteredNB(random_state=0).fit(team.data, team.target, task=team.task)
kinfolk.plots.hinton(model)
