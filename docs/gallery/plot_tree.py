"""
The tree of merges
==================

Bayesian hierarchical clustering merges tasks as long as a common model explains them better.
"""

import kinfolk
from kinfolk.datasets import make_meetings

team = make_meetings(n_requests=60, random_state=0)
model = kinfolk.ClusteredNB(random_state=0).fit(team.data, team.target, task=team.task)
kinfolk.plots.tree(model)
