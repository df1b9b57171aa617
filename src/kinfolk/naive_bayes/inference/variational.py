"""Clustered naive Bayes by variational inference: for very many tasks (the thesis's "crucial next step", chapter 5)."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from kinfolk.evidence import Evidence
from kinfolk.interrupts import stops_safely
from kinfolk.maths.arrays import Floats
from kinfolk.maths.dirichlet import dirichlet_product
from kinfolk.naive_bayes.inference.options import Options
from kinfolk.naive_bayes.model.values import Fitted, HyperParameters, Memberships, TrainingData, make_blocks
from kinfolk.partition.crp import canonical, joining_weights
from kinfolk.partition.variational.few_tasks import cluster_few
from kinfolk.partition.variational.mean_field import MAX_SWEEPS, expectations
from kinfolk.partition.variational.mixture import fit_clusters
from kinfolk.partition.variational.task_counts import CountsInMemory, TaskCounts
from kinfolk.partition.variational.torch_counts import TorchCounts
from kinfolk.progress import progress_bar

# Clusters that a task belongs to with less probability than this are left out of its predictions.
_LEAST_RESPONSIBILITY = 1e-5


def infer(data: TrainingData, hyper: HyperParameters, options: Options, seed: int) -> tuple[HyperParameters, Fitted]:
    """Fit to the labelled rows' counts. O(sweeps · tasks · cells · clusters) time, no copy of the counts.

    With a ``batch_size`` clusters move after so many tasks instead of after all. With a ``device`` the counts are taken
    there and torch goes through them.
    """
    statistics, concentration = data.statistics, hyper.concentration
    counts = statistics.feature_counts
    n_tasks = len(counts)
    product = dirichlet_product(hyper.feature_prior, statistics.layout.group_start, 0)
    held: TaskCounts = CountsInMemory(counts) if options.device is None else TorchCounts(counts, options.device)
    few = partial(cluster_few, groups=product, concentration=concentration)
    rng = np.random.default_rng(seed)
    place = options.checkpoint.place("variational", data.values, hyper, options.batch_size, options.device, seed)
    with progress_bar("Sweeping over tasks", None, options.verbose) as advance, stops_safely() as stop:
        clusters = fit_clusters(held, product, concentration, rng, few, options.batch_size, advance, place)
        interrupted = stop.asked()
    if not (clusters.converged or interrupted):
        warnings.warn(
            f"The bound was still rising after {MAX_SWEEPS} sweeps over the tasks: the clusters found are valid, but "
            'better ones may exist; inference="randomised-bhc" needs no sweeps',
            ConvergenceWarning,
            stacklevel=2,
        )
    task, block, weight, partition = _memberships(held, *expectations(clusters, product, concentration))
    log_rates = hyper.log_label_rates(statistics.label_counts)
    no_rates = hyper.log_label_rates(np.zeros_like(hyper.label_prior))
    joins, alone = joining_weights(clusters.sizes, n_tasks, concentration)
    n_blocks = len(joins) + 1
    memberships = [
        Memberships(task, block, np.log(weight), log_rates[task]),
        Memberships(
            np.full(n_blocks, n_tasks),
            np.arange(n_blocks),
            np.log(np.append(joins, alone)),
            np.tile(no_rates, (n_blocks, 1)),
        ),
    ]
    block_counts = np.concatenate([clusters.counts, np.zeros((1, counts.shape[1]))])
    sizes = np.append(np.bincount(partition, minlength=len(joins)), 0)
    fitted = Fitted(
        blocks=make_blocks(data, hyper, block_counts, sizes, memberships),
        partition=canonical(partition),
        evidence=Evidence(clusters.bound + hyper.log_label_evidence(statistics.label_counts), "lower bound"),
        independent=True,
        interrupted=interrupted,
    )
    return hyper, fitted


def _memberships(
    data: TaskCounts, log_theta: Floats, log_pi: Floats
) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats, NDArray[np.int64]]:
    """Tasks, the clusters that they belong to and with what probability; and each task's most probable one."""
    owners, blocks, weights = [], [], []
    partition = np.empty(data.n_tasks, dtype=np.int64)
    for rows, responsibility in data.responsibilities(log_theta, log_pi):
        partition[rows] = responsibility.argmax(axis=1)
        task, cluster = np.nonzero(responsibility >= _LEAST_RESPONSIBILITY)
        kept = responsibility[task, cluster].astype(np.float64)
        owners.append(task + rows.start)
        blocks.append(cluster)
        weights.append(kept / np.bincount(task, weights=kept)[task])
    return np.concatenate(owners), np.concatenate(blocks), np.concatenate(weights), partition
