"""How the models are inferred: one algorithm a file.

``fitting`` is what every fit goes through: the labels' prior, a model's inference, powers. Models: ``no_sharing``,
``complete_sharing``, ``prototype``, ``clustered``, ``noisy`` (noisy copies within clusters) and ``per_feature``. The
partition of the tasks: ``given_partition``, ``bhc``, ``gibbs``, ``exact``, ``variational``. What is said of a row left
out: ``leave_one_out``. The features' prior: ``empirical_bayes``.
"""
