"""How the models are inferred: one algorithm a file.

The partition of the tasks: ``given_partition``, ``bhc``, ``gibbs``, ``exact``, ``variational``, and ``search`` for the
evidence alone. Other models: ``prototype``, ``noisy`` (noisy copies within clusters) and ``per_feature``. What a row
left out is told: ``leave_one_out``, ``reseating``. Hyper-parameters: ``empirical_bayes``.
"""
