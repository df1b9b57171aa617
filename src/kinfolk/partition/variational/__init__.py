"""Variational inference for a Dirichlet process mixture over very many tasks, from their counts.

task_counts          tasks' counts in memory, gone through in blocks
torch_counts         the same on a device
mean_field           the posterior, its bound, and sweeps that raise it (Blei and Jordan 2006)
memoised             sweeps in batches of tasks (Hughes and Sudderth 2013)
births_and_merges    moves that change the number of clusters
few_tasks            hierarchical clustering of a sample, for a start and for births
mixture              the fit: a start, then births, merges and sweeps over ever more tasks

Nothing but ``few_tasks`` needs a compiler when it is imported.
"""
