"""
Calibration
===========

How often what was predicted with a probability came true, on rows held out.
"""

import kinfolk
from kinfolk.datasets import make_meetings

team = make_meetings(n_requests=60, random_state=0)
model = kinfolk.ClusteredNB(random_state=0).fit(team.data, team.target, task=team.task)
report = model.report(data=team.data, y=team.target, task=team.task, n_folds=3)
kinfolk.plots.reliability(report)
