"""How linear models of many tasks are learnt: ``infer(data, hyper, options, seed) -> (hyper, fitted)``.

hierarchical             labels, by a Gaussian variational posterior and empirical Bayes
hierarchical_regression  numbers, with noise that differs between tasks
clustered                labels, where tasks of one cluster have the same weights
"""
