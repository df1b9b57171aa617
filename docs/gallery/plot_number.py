"""
How many clusters, and how many states
======================================

The posterior probability of each number of clusters (above) and of hidden states (below).
"""

import matplotlib.pyplot as plt
import numpy as np

import kinfolk
from kinfolk.datasets import make_meetings

team = make_meetings(n_requests=60, random_state=0)
people = kinfolk.ClusteredNB(inference="gibbs", n_chains=3, random_state=0).fit(team.data, team.target, task=team.task)

rng = np.random.default_rng(0)
parts = [(0, 20), (5, 15), (0, 10)]
X = [np.concatenate([rng.normal(level, 1, (n + rng.integers(5), 1)) for level, n in parts]) for _ in range(6)]
sequences = kinfolk.SharedIHMM(n_chains=2, n_burn_in=40, n_draws=40, random_state=0).fit(X, task=list("abcdef"))

figure, (above, below) = plt.subplots(2, 1, figsize=(7, 6), layout="constrained")
kinfolk.plots.number_of(people, ax=above)
kinfolk.plots.number_of(sequences, "states", ax=below)
