"""
What tells labels apart in each cluster
=======================================

A column is a cluster, a row a value of a feature: blue speaks for rejecting a request, orange for accepting it.
"""

import kinfolk
from kinfolk.datasets import make_meetings

team = make_meetings(n_requests=60, random_state=0)
model = kinfolk.ClusteredNB(random_state=0).fit(team.data, team.target, task=team.task)
kinfolk.plots.cluster_profiles(model)
