"""Multi-task linear models whose weights are sparse mixtures of latent independent sources (LICA).

- ``model``: the equations of Zhang, Ghahramani and Yang (2005): prior, links, Gaussian sites, and what is known of one
  task's weights and sources.
- ``inference``: how they are learnt; one algorithm a file, ``eb`` and ``map`` before all, and what is compared with.
- ``answers``: what a fitted or a loaded model says, with numpy alone.
- ``estimators``: ``LICAClassifier`` and ``LICARegressor``.

Inside, imports go from the last to the first; inference and answers do not know each other.
"""
