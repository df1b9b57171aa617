"""
How clusters changed during sampling
====================================

A row for each person and a column for each draw of one chain, in the colour of the cluster at that moment. With so few
requests, person 11 is sometimes put with others and sometimes alone.
"""

import kinfolk
from kinfolk.datasets import make_meetings

team = make_meetings(n_requests=20, random_state=0)
model = kinfolk.ClusteredNB(inference="gibbs", n_chains=3, random_state=0).fit(team.data, team.target, task=team.task)
kinfolk.plots.cluster_evolution(model)
