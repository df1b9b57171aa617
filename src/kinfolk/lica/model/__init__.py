"""The equations of LICA as values and functions of them (Zhang, Ghahramani and Yang 2005).

``data`` is what is seen of many tasks, ``prior`` what they have in common and what is known of each. ``links`` turns
linear predictors into likelihoods; ``factors`` has these as Gaussian sites, and what is known of a task's sources.
Given sites, ``task_posterior`` has a task's weights; ``lasso_sources`` are the most probable ones. ``scaling`` brings
columns to one scale and weights back.
"""
