"""Clustering tasks, whatever they are: the Chinese restaurant process and inference over partitions.

crp, concentration   the prior of partitions, and what partitions tell about its concentration
tree                 what hierarchical clustering leaves: merges, their odds, and what is read off them
bhc                  Bayesian hierarchical clustering, greedy, O(tasks²)
randomised_bhc       the same over random parts, O(tasks · log tasks)
exact                all partitions of a few tasks
gibbs, split_merge   a partition in motion, task by task and by whole clusters
search, neighbours   a lower bound of the evidence from the partitions that a search meets
agreement            which of several partitions agrees best with them all
variational/         a Dirichlet process mixture for very many tasks, in numpy or on a device
"""
