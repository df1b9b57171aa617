"""Linear models of many tasks: partially pooled by a common distribution of weights, or clustered by equal weights.

- ``model``: rows laid out by task, what is known of all tasks' weights given Gaussian sites, scales and their priors,
  the logistic function averaged over a Gaussian.
- ``inference``: ``hierarchical`` (labels), ``hierarchical_regression`` and ``clustered``: how they are learnt.
- ``answers``: what a fitted or a loaded model says, with numpy alone.
- ``estimators``: ``HierarchicalClassifier``, ``HierarchicalRegressor`` and ``ClusteredClassifier``.

Any table is taken, as the design matrix of ``tasks.design``. Inside, imports go from the last to the first; inference
and answers do not know each other.
"""
