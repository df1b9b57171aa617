"""Clustering tasks, whatever they are: the Chinese restaurant process and inference over partitions."""
