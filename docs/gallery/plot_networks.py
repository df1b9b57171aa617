"""
Networks of several tasks
=========================

Arcs that tasks share, and those in which they differ, in one picture.
"""

import numpy as np
import pandas as pd

import kinfolk

rng = np.random.default_rng(0)
task = np.repeat(["north", "south", "west"], 300)
rain = rng.integers(0, 2, 900)
flood = rain & (rng.random(900) < 0.7)
closed = np.where(task == "west", rain & (rng.random(900) < 0.9), flood & (rng.random(900) < 0.9))
table = pd.DataFrame({"rain": rain, "flood": flood, "road closed": closed}).astype(str)
model = kinfolk.BayesNets(random_state=0).fit(table, task=task)
kinfolk.plots.networks(model)
