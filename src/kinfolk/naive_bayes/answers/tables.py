"""The fitted parameters as tables in the user's names: rates of labels and features, log ratios, prototypes.

In the papers: Roy (2006), figure 4-2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.explanation import label_pair
from kinfolk.maths.arrays import Floats
from kinfolk.naive_bayes.answers.parameters import (
    dirichlet_estimate,
    mean_label_rates,
    mean_over_blocks,
    moments,
    moments_over_blocks,
    nulls,
)
from kinfolk.naive_bayes.model.prototype import pseudo_counts
from kinfolk.naive_bayes.model.values import NaiveBayesFit
from kinfolk.tasks.frames import make_frame


def label_rates(fit: NaiveBayesFit, label_counts: NDArray[Any], estimate: str) -> Any:
    """Label rates of every task: task, label, probability; ``label_counts`` are those behind each task's rates."""
    n_tasks, n_labels = label_counts.shape
    if estimate == "mean":
        rates = mean_label_rates(fit.posterior.blocks.mixture, n_tasks)
    else:
        rates = dirichlet_estimate(label_counts, fit.hyper.label_prior, np.array([0, n_labels]), estimate)
    return make_frame(
        {
            "task": np.repeat(fit.known.tasks, n_labels).tolist(),
            "label": fit.classes.tolist() * n_tasks,
            "probability": nulls(rates),
        },
        fit.backend,
    )


def feature_rates(fit: NaiveBayesFit, by: str, estimate: str) -> Any:
    """Feature rates of every cluster or task: cluster or task, label, feature, value, probability."""
    owners, rates = _rates(fit, by, estimate)
    names = _cell_names(fit)
    n_labels, width = len(fit.classes), len(names)
    return make_frame(
        {
            by: np.repeat(owners, n_labels * width).tolist(),
            "label": np.tile(np.repeat(fit.classes, width), len(owners)).tolist(),
            "feature": [feature for feature, _ in names] * (n_labels * len(owners)),
            "value": [value for _, value in names] * (n_labels * len(owners)),
            "probability": nulls(rates),
        },
        fit.backend,
    )


def numeric_rates(fit: NaiveBayesFit, by: str) -> Any:
    """Columns of numbers: cluster or task, label, feature, family, mean, standard_deviation."""
    _check_by(by)
    statistics, partition = fit.data.statistics, fit.posterior.partition
    layout, tasks = statistics.layout, fit.known.tasks
    if by == "cluster":
        sums = np.zeros((int(partition.max()) + 1, layout.n_cells))
        np.add.at(sums, partition, statistics.feature_counts)
        owners, found = np.arange(len(sums)), moments(layout.sums_of_numbers(sums), layout.numbers)
    else:
        blocks = fit.posterior.blocks
        of_blocks = moments(layout.sums_of_numbers(blocks.counts), layout.numbers)
        owners, found = tasks, moments_over_blocks(blocks.mixture, len(tasks), of_blocks)
    names = [column.name for column in fit.schema.columns if column.number is not None]
    n_labels, n_numbers = layout.n_labels, len(names)
    return make_frame(
        {
            by: np.repeat(owners, n_labels * n_numbers).tolist(),
            "label": np.tile(np.repeat(fit.classes, n_numbers), len(owners)).tolist(),
            "feature": names * (n_labels * len(owners)),
            "family": [number.family for number in layout.numbers] * (n_labels * len(owners)),
            "mean": found.mean.ravel().tolist(),
            "standard_deviation": np.sqrt(found.variance).ravel().tolist(),
        },
        fit.backend,
    )


def log_ratios(fit: NaiveBayesFit, label: Any, against: Any, by: str, estimate: str) -> Any:
    """Log ratio of a feature's probability under two labels, for every value: cluster or task, feature, value."""
    owners, rates = _rates(fit, by, estimate)
    y, other = label_pair(fit.classes, label, against)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(rates[:, y]) - np.log(rates[:, other])
    names = _cell_names(fit)
    return make_frame(
        {
            by: np.repeat(owners, len(names)).tolist(),
            "feature": [feature for feature, _ in names] * len(owners),
            "value": [value for _, value in names] * len(owners),
            "log_ratio": nulls(np.where(np.isfinite(ratio), ratio, np.nan)),
        },
        fit.backend,
    )


def prototypes(fit: NaiveBayesFit) -> Any:
    """Posterior mean and 5% and 95% points of the prototypes: label, feature, value, mean, 5%, 95%."""
    assert fit.posterior.prototypes is not None
    names = _cell_names(fit)
    n_labels = len(fit.classes)
    columns = {
        "label": np.repeat(fit.classes, len(names)).tolist(),
        "feature": [feature for feature, _ in names] * n_labels,
        "value": [value for _, value in names] * n_labels,
    }
    return make_frame({**columns, **_summary(fit.posterior.prototypes.prototypes)}, fit.backend)


def strengths(fit: NaiveBayesFit) -> Any:
    """The same of the strengths: label, feature, mean, 5%, 95%."""
    assert fit.posterior.prototypes is not None
    names = fit.schema.names
    columns = {"label": np.repeat(fit.classes, len(names)).tolist(), "feature": names * len(fit.classes)}
    return make_frame({**columns, **_summary(fit.posterior.prototypes.strengths)}, fit.backend)


def feature_prior(fit: NaiveBayesFit) -> dict[str, Floats]:
    """Pseudo-counts of every feature's values (labels, values), by the feature's name; columns of numbers have none."""
    layout = fit.data.statistics.layout
    by_label = fit.hyper.feature_prior.reshape(layout.n_labels, layout.width)
    names = [column.name for column in fit.schema.columns if column.number is None]
    return {name: by_label[:, layout.offsets[f] : layout.offsets[f + 1]].copy() for f, name in enumerate(names)}


def _summary(draws: Floats) -> dict[str, list[float]]:
    """Posterior mean and 5% and 95% points of each column of draws."""
    low, high = np.quantile(draws, [0.05, 0.95], axis=(0, 1))
    return {"mean": draws.mean(axis=(0, 1)).tolist(), "5%": low.tolist(), "95%": high.tolist()}


def _rates(fit: NaiveBayesFit, by: str, estimate: str) -> tuple[NDArray[Any], Floats]:
    """Owners and their rates (owners, labels, values of all features).

    Of noisy copies of one prototype each task is a cluster of its own, and the posterior mode is that of a task's rates
    given the posterior mean of K θ̄.
    """
    _check_by(by)
    statistics, fitted = fit.data.statistics, fit.posterior
    layout, tasks = statistics.layout, fit.known.tasks
    if estimate == "mean" and (by == "task" or fitted.prototypes is not None):
        means = mean_over_blocks(fitted.blocks.mixture, len(tasks)).transpose(0, 2, 1)
        return (tasks if by == "task" else fitted.partition), means
    counts, prior = statistics.feature_counts, fit.hyper.feature_prior
    if fitted.prototypes is not None:
        prior = pseudo_counts(fitted.prototypes, layout)
    else:
        counts = np.zeros((int(fitted.partition.max()) + 1, layout.n_cells))
        np.add.at(counts, fitted.partition, statistics.feature_counts)
    rates = dirichlet_estimate(counts, prior, layout.group_start, estimate)
    rates = rates.reshape(len(counts), layout.n_labels, layout.width)
    return (np.arange(len(counts)), rates) if by == "cluster" else (tasks, rates[fitted.partition])


def _check_by(by: str) -> None:
    if by not in ("cluster", "task"):
        raise ValueError(f'by={by!r}: give "cluster" or "task"')


def _cell_names(fit: NaiveBayesFit) -> list[tuple[str, str]]:
    return [(column.name, value) for column in fit.schema.columns for value in column.value_names]
