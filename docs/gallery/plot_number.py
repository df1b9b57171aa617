"""
How many clusters, and how many states
======================================

The posterior probability of each number of clusters. For models of sequences, ``number_of(model, "states")`` draws that
of each number of hidden states.
"""

import kinfolk
from kinfolk.datasets import make_meetings

team = make_meetings(n_requests=15, random_state=0)
model = kinfolk.ClusteredNB(inference="gibbs", n_chains=3, random_state=0).fit(team.data, team.target, task=team.task)
kinfolk.plots.number_of(model)
