"""The tree that Bayesian hierarchical clustering leaves behind, and what can be read off it.

Node ids follow SciPy: leaves are 0 … U−1 in the order of the tasks, the k-th merge makes node U+k. A node's log odds
compare "its tasks are one cluster" with "they are split as its subtrees say" (Roy and Kaelbling 2007, eq. 3).

In the papers: Roy and Kaelbling (2007), figure 2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.partition.crp import canonical


class Nodes(NamedTuple):
    """Every node of a tree, leaves first: how many tasks are under it, its parent (−1 for the root), and its weight.

    The weight is the log probability that its tasks are exactly one block: r times ∏(1 − r) over its strict ancestors.
    """

    sizes: NDArray[np.int64]
    parents: NDArray[np.int64]
    log_weights: NDArray[np.float64]


class TaskTree(NamedTuple):
    """A binary tree over tasks with the log odds of every merge.

    Attributes
    ----------
    children : array of shape (n_tasks − 1, 2)
        The two nodes joined by each merge, in the order of the merges.
    log_odds : array of shape (n_tasks − 1,)
        Log odds that the joined tasks form one cluster, log r − log(1 − r).
    log_tree_sum : float
        Log of the prior-weighted sum over all tree-consistent partitions, a lower bound of the log evidence.
    """

    children: NDArray[np.int64]
    log_odds: NDArray[np.float64]
    log_tree_sum: float

    @property
    def n_tasks(self) -> int:
        """Number of leaves."""
        return len(self.children) + 1

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of tasks under every node, leaves first."""
        return self.nodes().sizes

    @property
    def parents(self) -> NDArray[np.int64]:
        """Parent of every node; −1 for the root."""
        return self.nodes().parents

    @property
    def log_weights(self) -> NDArray[np.float64]:
        """Log probability that a node's tasks are exactly one block."""
        return self.nodes().log_weights

    def relabelled(self, order: NDArray[np.int64]) -> TaskTree:
        """The tree of the same tasks in another order: leaf i becomes leaf ``order[i]``."""
        names = np.concatenate([order, np.arange(self.n_tasks, 2 * self.n_tasks - 1)])
        return self._replace(children=names[self.children])

    def nodes(self) -> Nodes:
        """What is known of every node, leaves first."""
        n = self.n_tasks
        sizes, parents = np.ones(2 * n - 1, dtype=np.int64), np.full(2 * n - 1, -1, dtype=np.int64)
        for k, (left, right) in enumerate(self.children.tolist()):
            sizes[n + k] = sizes[left] + sizes[right]
        parents[self.children] = np.arange(n, 2 * n - 1)[:, None]
        odds = np.concatenate([np.full(n, np.inf), self.log_odds])
        log_r, log_not_r = -np.logaddexp(0.0, -odds), -np.logaddexp(0.0, odds)
        above = np.zeros(2 * n - 1)
        for node in range(2 * n - 3, -1, -1):
            above[node] = above[parents[node]] + log_not_r[parents[node]]
        return Nodes(sizes, parents, log_r + above)

    def partition(self) -> NDArray[np.int64]:
        """The most probable tree-consistent partition."""
        n = self.n_tasks
        # With s the log of a sub-tree's sum over partitions, its best partition's share of that sum is either
        # the node's own r, or (1 − r) times the children's best shares.
        best, whole = [0.0] * n, [True] * n
        as_one, as_two = (-np.logaddexp(0.0, sign * self.log_odds) for sign in (-1.0, 1.0))
        children = self.children.tolist()
        for (left, right), one, two in zip(children, as_one.tolist(), as_two.tolist(), strict=True):
            split = two + best[left] + best[right]
            whole.append(one >= split)
            best.append(max(one, split))
        # The highest whole node above each node is its block; going down, a node is met after its parent.
        block = list(range(2 * n - 1))
        for node in range(2 * n - 2, n - 1, -1):
            for child in children[node - n]:
                if whole[node] or block[node] != node:
                    block[child] = block[node]
        return canonical(np.array(block[:n]))

    def similarity(self, tasks: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
        """Probability that two tasks share a cluster: the weights of all nodes that hold both."""
        n = self.n_tasks
        _, parents, log_weights = self.nodes()
        shared = np.exp(log_weights)
        for node in range(2 * n - 3, -1, -1):
            shared[node] += shared[parents[node]]
        wanted, asked = np.unique(np.arange(n) if tasks is None else np.asarray(tasks), return_inverse=True)
        place = np.full(n, -1)
        place[wanted] = np.arange(len(wanted))
        out = np.ones((len(wanted), len(wanted)))
        under = [np.array([place[leaf]]) if place[leaf] >= 0 else np.zeros(0, int) for leaf in range(n)]
        for k, (left, right) in enumerate(self.children):
            out[np.ix_(under[left], under[right])] = shared[n + k]
            out[np.ix_(under[right], under[left])] = shared[n + k]
            under.append(np.concatenate([under[left], under[right]]))
        return np.minimum(out, 1.0)[np.ix_(asked, asked)]

    def linkage(self) -> NDArray[np.float64]:
        """SciPy linkage matrix; a merge adds −log r to the height of the higher of its two parts.

        Merges that the data favour add next to nothing, merges that it opposes add about their log odds against,
        in nats, so that ``scipy.cluster.hierarchy`` can draw, cut and compare the tree. Merges stand in the order of
        their heights, as SciPy wants them, and are numbered anew for it.
        """
        n = self.n_tasks
        height = np.zeros(2 * n - 1)
        for k, (left, right) in enumerate(self.children):
            height[n + k] = max(height[left], height[right]) + np.logaddexp(0.0, -self.log_odds[k])
        # A stable sort keeps parts before the merge that joins them, even at equal heights.
        order = np.argsort(height[n:], kind="stable")
        number = np.arange(2 * n - 1)
        number[n + order] = np.arange(n, 2 * n - 1)
        joined = np.sort(number[self.children[order]], axis=1)
        return np.column_stack([joined, height[n:][order], self.nodes().sizes[n:][order]]).astype(np.float64)
