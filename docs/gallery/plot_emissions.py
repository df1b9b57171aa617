"""
What hidden states emit
=======================

A row is a state, with the share of time that tasks spend there, a column a symbol: its probability stands in the cell.
"""

import numpy as np

import kinfolk

rng = np.random.default_rng(0)
days = {"rest": ["sleep", "read", "walk"], "work": ["write", "call", "read"]}
people = ["ann", "bob", "eve"]
X = [rng.choice(days[kind]) for _ in people for _ in range(4) for kind in ("rest", "work", "rest") for _ in range(8)]
model = kinfolk.SharedIHMM(inference="variational", random_state=0).fit(X, [24] * 12, task=np.repeat(people, 4))
kinfolk.plots.emissions(model)
