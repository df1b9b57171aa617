"""
Decisions as mistakes become uneven
===================================

The loss of the best decisions by each model's probabilities, beside that of always deciding the same (thesis,
figure 4-8).
"""

import kinfolk
from kinfolk.datasets import make_meetings

team = make_meetings(n_requests=60, random_state=0)
found = kinfolk.evaluate(team.data, team.target, task=team.task, models=["clustered", "alone", "pooled"], n_folds=3)
kinfolk.plots.loss_by_asymmetry(found.predictions, team.target, found.classes.tolist(), positive="accept")
