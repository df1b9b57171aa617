"""
Whose rows answers rest on
==========================

The share of a task's own rows, of its kin's, of everybody's, and of the prior.
"""

import kinfolk
from kinfolk.datasets import make_meetings

team = make_meetings(n_requests=60, random_state=0)
model = kinfolk.ClusteredNB(random_state=0).fit(team.data, team.target, task=team.task)
kinfolk.plots.reliance(model.report())
