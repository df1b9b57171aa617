"""The doors to Bayes nets: ``BayesNets`` for tasks, ``BayesMultinet`` for the classes of a classifier.

- ``bayes_nets``, ``multinet``: the estimators.
- ``answering``: what both can be asked.
- ``reading``, ``arcs``: users' tables, and what users say about arcs, as arrays.
"""
