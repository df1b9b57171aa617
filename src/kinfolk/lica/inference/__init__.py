"""Learning what tasks have in common and what is known of each; ``infer`` chooses by what the user typed.

- ``eb``: empirical Bayes (section 3.1 of Zhang, Ghahramani and Yang 2005), by EM, whose steps are ``expectation`` and
  ``maximisation``; a ``layout`` has the rows of all tasks as sweeps need them.
- ``map``: point estimates (section 3.2), by ``alternation``; ``weight_solver`` finds all tasks' weights, together
  (``map_shared_rows``) or one by one (``map_weights``).
- ``individual``, ``pooled``, ``hierarchical``: what LICA is compared with.
- ``held_out``, ``starts``, ``number_of_sources``, ``residual_level``: what rows held out decide.
"""
