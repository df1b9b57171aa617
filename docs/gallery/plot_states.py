"""
Sequences and their states
==========================

Sequences cut into segments by their most probable hidden states.
"""

import numpy as np

import kinfolk

rng = np.random.default_rng(0)
parts = [(0, 20), (5, 15), (0, 10)]
X = [np.concatenate([rng.normal(level, 1, (n + rng.integers(5), 1)) for level, n in parts]) for _ in range(6)]
model = kinfolk.SharedIHMM(inference="variational", random_state=0).fit(X, task=list("abcdef"))
kinfolk.plots.state_sequences(model, X, task=list("abcdef"))
