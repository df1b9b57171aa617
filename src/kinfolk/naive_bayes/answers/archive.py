"""A fit of a naive Bayes model as plain data, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.convergence import Convergence
from kinfolk.evidence import Evidence
from kinfolk.naive_bayes.answers.predictor import mixture_arrays, mixture_from, temper_from
from kinfolk.naive_bayes.model.values import (
    Blocks,
    CommonRates,
    Fitted,
    HyperParameters,
    NaiveBayesFit,
    PrototypeDraws,
    RateSources,
    TrainingData,
)
from kinfolk.partition.crp import canonical
from kinfolk.partition.tree import TaskTree
from kinfolk.posterior import (
    Archive,
    known_about,
    known_from,
    names_from,
    plain,
    plain_names,
    schema_about,
    schema_from,
)
from kinfolk.tasks.columns import as_ids
from kinfolk.tasks.statistics import Layout, Rows, Statistics, layout_of, no_rows

_OPTIONAL = ("partitions", "log_joint", "co_clustering", "label_probability", "concentrations")


def to_archive(fit: NaiveBayesFit, params: dict[str, Any], evidence: Evidence | None) -> Archive:
    """Everything that is known of a fit, with the parameters of its estimator and its evidence, if that is known."""
    fitted, hyper, unlabelled = fit.posterior, fit.hyper, fit.data.unlabelled
    if not isinstance(params["random_state"], int | np.integer | None):
        params = params | {"random_state": fit.seed}
    about = {
        "family": "naive_bayes",
        **known_about(fit.known),
        "params": {name: plain(value, name) for name, value in params.items()},
        "temper": hyper.temper.tolist(),
        "averaged": fit.averaged,
        "schema": schema_about(fit.schema),
        "classes": plain_names(fit.classes, "a label"),
        "backend": fit.backend,
        "seed": fit.seed,
        "evidence": None if evidence is None else list(evidence),
        "independent": fitted.independent,
        "interrupted": fitted.interrupted,
        "convergence": None if fitted.convergence is None else _written(fitted.convergence),
        "concentration": hyper.concentration if "concentration" in params else None,
        "log_tree_sum": None if fitted.tree is None else fitted.tree.log_tree_sum,
    }
    arrays = {
        **mixture_arrays(fitted.blocks.mixture),
        "blocks.counts": fitted.blocks.counts,
        "blocks.sizes": fitted.blocks.sizes,
        "partition": fitted.partition,
        "feature_counts": fit.data.statistics.feature_counts,
        "label_counts": fit.data.statistics.label_counts,
        "unlabelled.codes": unlabelled.codes,
        "unlabelled.task": unlabelled.task,
        "label_distributions": fit.label_distributions,
        "label_prior": hyper.label_prior,
        "feature_prior": hyper.feature_prior,
    }
    if fitted.sources is not None:
        # A pull that is infinite, where a task is the very prototype, is kept as one that cannot be told from it.
        arrays |= {f"behind.{name}": np.minimum(array, 1e300) for name, array in fitted.sources._asdict().items()}
    if fitted.prototypes is not None:
        arrays |= {f"prototype.{name}": array for name, array in fitted.prototypes._asdict().items()}
    votes = hyper.votes if hyper.common is None else hyper.common.votes
    optional = {
        "votes": votes,
        "unlabelled.weights": unlabelled.weights,
        "unlabelled.numbers": unlabelled.numbers,
        **{name: getattr(fitted, name) for name in _OPTIONAL},
    }
    arrays |= {name: array for name, array in optional.items() if array is not None}
    if fitted.tree is not None:
        arrays["tree.children"], arrays["tree.log_odds"] = fitted.tree.children, fitted.tree.log_odds
    return Archive(about, arrays)


def from_archive(archive: Archive, given: HyperParameters | None, shared_rates: bool) -> NaiveBayesFit:
    """A fit as it was saved.

    ``given`` are hyper-parameters as the estimator's parameters have them, which files of earlier versions do not hold;
    ``shared_rates`` says that a prior which was learnt is one of rates that all tasks share.
    """
    about = archive.about
    known, schema = known_from(archive), schema_from(archive)
    classes = as_ids(names_from(about["classes"], "labels"))
    layout = layout_of(schema, len(classes))
    n_tasks, n_labels = len(known.tasks), len(classes)
    statistics = Statistics(
        layout,
        known.tasks,
        archive.array("feature_counts", "f", (n_tasks, layout.n_cells)),
        archive.array("label_counts", "f", (n_tasks, n_labels)),
    )
    evidence = None if about["evidence"] is None else Evidence(*about["evidence"])
    return NaiveBayesFit(
        known,
        schema,
        classes,
        about["backend"],
        TrainingData(statistics, _unlabelled_from(archive, layout, n_tasks)),
        no_rows(layout),
        _hyper_from(archive, layout, given, shared_rates),
        _fitted_from(archive, evidence, n_tasks, layout),
        bool(about["averaged"]),
        int(about["seed"]),
        archive.array("label_distributions", "f", (None, n_labels)),
    )


def _unlabelled_from(archive: Archive, layout: Layout, n_tasks: int) -> Rows:
    codes = archive.array("unlabelled.codes", "i", (None, len(layout.n_values)))
    task = archive.array("unlabelled.task", "i", (len(codes),))
    if (
        (codes >= layout.n_values).any()
        or (codes < -1).any()
        or (len(task) and not 0 <= task.min() <= task.max() < n_tasks)
    ):
        raise ValueError("its unlabelled rows do not fit its categories and tasks")
    weights = numbers = None
    if "unlabelled.weights" in archive.arrays:
        weights = archive.array("unlabelled.weights", "f", (len(codes),))
    if layout.numbers:
        numbers = archive.array("unlabelled.numbers", "f", (len(codes), len(layout.numbers)), missing=True)
    return Rows(codes, np.full(len(codes), -1, dtype=np.int32), task, weights, numbers)


def _hyper_from(archive: Archive, layout: Layout, given: HyperParameters | None, shared_rates: bool) -> HyperParameters:
    """The hyper-parameters that a model was fitted with; files of earlier versions have them as they were given."""
    temper = temper_from(archive)
    concentration = archive.about.get("concentration", archive.about["params"].get("concentration"))
    number = 1.0 if concentration is None else float(concentration)
    if "label_prior" not in archive.arrays:
        if given is None or given.learns & {"label_prior", "feature_prior"}:
            raise ValueError("its priors are missing")
        return HyperParameters(given.label_prior, given.feature_prior, temper, number)
    hyper = HyperParameters(
        _positive(archive, "label_prior", layout.n_labels),
        _positive(archive, "feature_prior", layout.n_counts),
        temper,
        number,
    )
    if "votes" not in archive.arrays:
        return hyper
    votes = _positive(archive, "votes", layout.n_counts)
    return (
        hyper._replace(common=CommonRates(hyper.feature_prior, votes)) if shared_rates else hyper._replace(votes=votes)
    )


def _positive(archive: Archive, name: str, n: int) -> NDArray[np.float64]:
    numbers = archive.array(name, "f", (n,))
    if not (np.isfinite(numbers).all() and (numbers > 0).all()):
        raise ValueError(f"its {name} is not above zero everywhere")
    return numbers


def _written(convergence: Convergence) -> list[dict[str, float | str]]:
    """R-hat and effective sample sizes as JSON holds them, which knows neither NaN nor infinity."""
    return [{name: value if np.isfinite(value) else str(value) for name, value in part.items()} for part in convergence]


def _read(written: Any) -> Convergence | None:
    if written is None:
        return None
    r_hat, ess = ({str(name): float(value) for name, value in part.items()} for part in written)
    return Convergence(r_hat, ess)


def _sources_from(archive: Archive, n_blocks: int, n_groups: int) -> RateSources | None:
    if "behind.own" not in archive.arrays:
        return None
    return RateSources(*(archive.array(f"behind.{name}", "f", (n_blocks, n_groups)) for name in RateSources._fields))


def _prototypes_from(archive: Archive, layout: Layout) -> PrototypeDraws | None:
    if "prototype.strengths" not in archive.arrays:
        return None
    strengths = archive.array("prototype.strengths", "f", (None, None, len(layout.group_start) - 1))
    return PrototypeDraws(strengths, archive.array("prototype.prototypes", "f", (*strengths.shape[:2], layout.n_cells)))


def _tree_from(archive: Archive, n_tasks: int) -> TaskTree | None:
    if "tree.children" not in archive.arrays:
        return None
    children = archive.array("tree.children", "i", (n_tasks - 1, 2))
    later = np.arange(n_tasks, 2 * n_tasks - 1)[:, None]
    if not np.array_equal(np.sort(children, axis=None), np.arange(2 * n_tasks - 2)) or (children >= later).any():
        raise ValueError("its tree is not one: every node but the last joins one later node")
    return TaskTree(children, archive.array("tree.log_odds", "f", (n_tasks - 1,)), float(archive.about["log_tree_sum"]))


def _fitted_from(archive: Archive, evidence: Evidence | None, n_tasks: int, layout: Layout) -> Fitted:
    mixture = mixture_from(archive)
    n_blocks = len(mixture.log_theta)
    shapes: dict[str, tuple[str, tuple[int | None, ...]]] = {
        "partitions": ("i", (None, None, n_tasks)),
        "log_joint": ("f", (None, None)),
        "concentrations": ("f", (None, None)),
        "co_clustering": ("f", (n_tasks, n_tasks)),
        "label_probability": ("f", (None, layout.n_labels)),
    }
    optional: dict[str, Any] = {
        name: archive.array(name, *shape) for name, shape in shapes.items() if name in archive.arrays
    }
    partition = archive.array("partition", "i", (n_tasks,))
    if not np.array_equal(canonical(partition), partition):
        raise ValueError("its clusters are not numbered as they appear")
    return Fitted(
        Blocks(
            archive.array("blocks.counts", "f", (n_blocks, layout.n_cells)),
            archive.array("blocks.sizes", "i", (n_blocks,)),
            mixture,
        ),
        partition,
        evidence,
        _tree_from(archive, n_tasks),
        independent=bool(archive.about["independent"]),
        interrupted=bool(archive.about.get("interrupted", False)),
        convergence=_read(archive.about.get("convergence")),
        sources=_sources_from(archive, n_blocks, len(layout.group_start) - 1),
        prototypes=_prototypes_from(archive, layout),
        **optional,
    )
