"""
Learning curves
===============

How well tasks are predicted from few rows each, with bands of two standard errors.
"""

import numpy as np

import kinfolk
from kinfolk.datasets import make_meetings

team = make_meetings(n_requests=60, random_state=0)
sizes, models = [2, 4, 8, 16], {"alone": kinfolk.NoSharingNB, "kin share": kinfolk.ClusteredNB}
losses = {name: np.zeros((len(sizes), 5)) for name in models}
for place, size in enumerate(sizes):
    splits = kinfolk.FewPerTask(size, n_splits=5, random_state=0).split(team.data, team.target, task=team.task)
    for number, (train, test) in enumerate(splits):
        for name, build in models.items():
            model = build(random_state=0).fit(team.data[train], team.target[train], task=team.task[train])
            proba = model.predict_proba(team.data[test], task=team.task[test])
            own = proba[np.arange(len(test)), np.searchsorted(model.classes_, team.target[test])]
            losses[name][place, number] = -np.log(own).mean()
kinfolk.plots.learning_curves({name: (sizes, found) for name, found in losses.items()}, measure="log loss")
