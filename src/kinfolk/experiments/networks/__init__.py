"""Niculescu-Mizil and Caruana, "Inductive Transfer for Bayesian Network Structure Learning" (2012).

- ``figure_1``: how little branch and bound evaluates, as ``pruning`` counts it
- ``figure_2``, ``figure_3``: gains by the penalty, both by ``penalties``
- ``figure_4``, ``figure_5``: methods compared, and by the number of rows
- ``figure_7``, ``figure_8``: birds at other feeders, split as ``birds`` does
- ``problems``: the tasks of section 4.1, and how far off a method comes out
- ``drawing``: axes of penalties
- ``accuracy``: structures of single tasks, beside other packages, which ``peers`` runs
"""
