"""
Chains of a sampler
===================

What every chain drew, draw by draw, with R-hat and the number of effective draws: have the chains converged?
"""

import kinfolk
from kinfolk.datasets import make_meetings

team = make_meetings(n_requests=15, random_state=0)
model = kinfolk.ClusteredNB(inference="gibbs", n_chains=3, random_state=0).fit(team.data, team.target, task=team.task)
kinfolk.plots.traces(model)
