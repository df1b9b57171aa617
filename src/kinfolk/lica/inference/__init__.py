"""Learning what tasks have in common and what is known of each; ``infer`` chooses by what the user typed.

- ``eb``: empirical Bayes (section 3.1 of Zhang, Ghahramani and Yang 2005), by ``em``, whose steps are ``expectation``
  and ``maximisation``.
- ``map``: point estimates (section 3.2), by ``alternation``.
- ``baselines``: what LICA is compared with.
- ``number_of_sources``, ``noise_level``, ``residual_level``: what rows held out (``held_out``) decide.
"""
