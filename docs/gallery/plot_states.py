"""
Sequences and their states
==========================

Sequences cut into segments by their most probable hidden states, and how many states there are.
"""

import matplotlib.pyplot as plt
import numpy as np

import kinfolk

rng = np.random.default_rng(0)
parts = [(0, 20), (5, 15), (0, 10)]
X = [np.concatenate([rng.normal(level, 1, (n + rng.integers(5), 1)) for level, n in parts]) for _ in range(6)]
model = kinfolk.SharedIHMM(n_chains=2, n_burn_in=40, n_draws=40, random_state=0).fit(X, task=list("abcdef"))
figure, (above, below) = plt.subplots(2, 1, figsize=(7, 6), layout="constrained")
kinfolk.plots.state_sequences(model, X, task=list("abcdef"), ax=above)
kinfolk.plots.number_of(model, "states", ax=below)
