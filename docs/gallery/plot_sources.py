"""
Sources of linear models
========================

How much of each latent source every task has; blue above zero, orange below.
"""

import kinfolk
from kinfolk.datasets import make_lica_tasks

made = make_lica_tasks(24, 10, 60, 3, random_state=0)
model = kinfolk.LICAClassifier(n_sources=3, random_state=0).fit(made.X, made.y, task=made.task)
kinfolk.plots.sources(model)
