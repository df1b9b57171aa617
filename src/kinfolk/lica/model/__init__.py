"""The equations of LICA as values and functions of them (Zhang, Ghahramani and Yang 2005).

``data`` is what is seen of many tasks, ``prior`` what they have in common and what is known of each. ``links`` turns
linear predictors into likelihoods and ``sites`` likelihoods into Gaussian ones; given those, ``task_posterior`` has a
task's weights, ``source_posterior`` its sources and ``lasso_sources`` the most probable ones.
"""
