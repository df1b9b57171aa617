"""
Chains, and what they drew
==========================

Traces with R-hat, the posterior of the number of clusters, and who was with whom, draw by draw.
"""

import matplotlib.pyplot as plt

import kinfolk
from kinfolk.datasets import make_meetings

team = make_meetings(n_requests=60, random_state=0)
model = kinfolk.ClusteredNB(inference="gibbs", n_chains=3, random_state=0).fit(team.data, team.target, task=team.task)
figure, (above, middle, below) = plt.subplots(3, 1, figsize=(7, 10), layout="constrained")
kinfolk.plots.traces(model, ax=above)
kinfolk.plots.number_of(model, ax=middle)
kinfolk.plots.cluster_evolution(model, ax=below)
