"""The equations of hierarchical linear models, as values and pure functions.

rows      the rows of all tasks, laid out in blocks of tasks of like size
weights   what is known of the weights of all tasks and of their common mean, given Gaussian sites
scales    standard deviations of weights, their prior, and a step towards their most probable values
logistic  the logistic function and its log, averaged over a Gaussian
clusters  what is known of clusters of tasks that have the same weights
values    what inference takes and gives
"""
