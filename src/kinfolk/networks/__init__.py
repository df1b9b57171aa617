"""Bayes nets of related tasks, their structures learnt together (Niculescu-Mizil and Caruana, AISTATS 2007).

- ``model/``: networks, scores of families, priors over structures, equivalence classes, probability tables; equations
  as frozen values, pure functions and kernels.
- ``inference/``: how structures are found; one algorithm a file (climb, classes, branch and bound, EM, bootstrap).
- ``answers/``: what fitted or loaded networks say about rows, files for other programs, the archive; numpy alone.
- ``estimators/``: ``BayesNets`` and ``BayesMultinet``; parameters, checks, and what inference returned.

Imports point down this list of four only from ``estimators`` to the others, and from ``inference`` and ``answers`` to
``model``.
"""
