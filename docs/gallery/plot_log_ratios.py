"""
Tasks side by side
==================

The log ratios of a few tasks, as in figure 4-2 of Roy's thesis: what speaks for one label in each of them.
"""

import kinfolk
from kinfolk.datasets import make_meetings

team = make_meetings(n_requests=60, random_state=0)
model = kinfolk.ClusteredNB(random_state=0).fit(team.data, team.target, task=team.task)
kinfolk.plots.log_ratios(model)
