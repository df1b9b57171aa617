"""A fitted naive Bayes estimator as plain data, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from kinfolk.convergence import Convergence
from kinfolk.evidence import Evidence
from kinfolk.naive_bayes.answers.predictor import mixture_arrays, mixture_from, temper_from
from kinfolk.naive_bayes.model.fitted import Behind, Blocks, Fitted
from kinfolk.partition.crp import canonical
from kinfolk.partition.tree import TaskTree
from kinfolk.posterior import Archive, names_from, plain, plain_names, schema_about, schema_from, unplain
from kinfolk.tasks.statistics import Layout, Rows, Statistics, layout_of, no_rows
from kinfolk.tasks.values import as_ids

if TYPE_CHECKING:
    from kinfolk.naive_bayes.estimators.base import SharingNB

_OPTIONAL = ("partitions", "log_joint", "co_clustering", "label_probability", "concentrations")


Model = TypeVar("Model", bound="SharingNB")


def to_archive(model: SharingNB) -> Archive:
    """Everything that a fitted estimator knows."""
    fitted = model.posterior_
    params = model.get_params(deep=False)
    if not isinstance(params["random_state"], int | np.integer | None):
        params["random_state"] = model._seed
    evidence = fitted.evidence or model._evidence_value
    about = {
        "family": "naive_bayes",
        "estimator": type(model).__name__,
        "params": {name: plain(value, name) for name, value in params.items()},
        "temper": model.temper_.tolist(),
        "averaged": model._averaged(),
        "schema": schema_about(model._schema),
        "classes": plain_names(model.classes_, "a label"),
        "tasks": plain_names(model.tasks_, "a task"),
        "n_features_in": int(model.n_features_in_),
        "feature_names_in": plain(getattr(model, "feature_names_in_", None), "a column"),
        "backend": model._backend,
        "seed": model._seed,
        "evidence": None if evidence is None else list(evidence),
        "independent": fitted.independent,
        "convergence": None if fitted.convergence is None else _written(fitted.convergence),
        "concentration": getattr(model, "concentration_", None),
        "log_tree_sum": None if fitted.tree is None else fitted.tree.log_tree_sum,
    }
    arrays = {
        **mixture_arrays(fitted.blocks.mixture),
        "blocks.counts": fitted.blocks.counts,
        "blocks.sizes": fitted.blocks.sizes,
        "partition": fitted.partition,
        "feature_counts": model._statistics.feature_counts,
        "label_counts": model._statistics.label_counts,
        "unlabelled.codes": model._unlabelled.codes,
        "unlabelled.task": model._unlabelled.task,
        "label_distributions": model.label_distributions_,
        "label_prior": model.label_prior_,
        "feature_prior": model._feature_prior,
    }
    if fitted.behind is not None:
        # A pull that is infinite, where a task is the very prototype, is kept as one that cannot be told from it.
        arrays |= {f"behind.{name}": np.minimum(array, 1e300) for name, array in fitted.behind._asdict().items()}
    if model._votes is not None:
        arrays["votes"] = model._votes
    if model._unlabelled.weights is not None:
        arrays["unlabelled.weights"] = model._unlabelled.weights
    if model._unlabelled.numbers is not None:
        arrays["unlabelled.numbers"] = model._unlabelled.numbers
    if fitted.tree is not None:
        arrays["tree.children"], arrays["tree.log_odds"] = fitted.tree.children, fitted.tree.log_odds
    for name in _OPTIONAL:
        value = getattr(fitted, name)
        if value is not None:
            arrays[name] = value
    return Archive(about, arrays)


def from_archive(model_class: type[Model], archive: Archive) -> Model:
    """A fitted estimator as it was saved."""
    about = archive.about
    model = model_class(**{name: unplain(value) for name, value in about["params"].items()})
    model._schema = schema_from(archive)
    model.classes_ = as_ids(names_from(about["classes"], "labels"))
    model.tasks_ = as_ids(names_from(about["tasks"], "tasks"))
    model.n_features_in_ = int(about["n_features_in"])
    if about["feature_names_in"] is not None:
        model.feature_names_in_ = np.array(about["feature_names_in"], dtype=object)
    model._backend, model._seed = about["backend"], int(about["seed"])
    n_tasks, n_labels = len(model.tasks_), len(model.classes_)
    layout = layout_of(model._schema, n_labels)
    model._statistics = Statistics(
        layout,
        model.tasks_,
        archive.array("feature_counts", "f", (n_tasks, layout.n_cells)),
        archive.array("label_counts", "f", (n_tasks, n_labels)),
    )
    codes = archive.array("unlabelled.codes", "i", (None, len(layout.n_values)))
    weights = (
        archive.array("unlabelled.weights", "f", (len(codes),)) if "unlabelled.weights" in archive.arrays else None
    )
    task = archive.array("unlabelled.task", "i", (len(codes),))
    if (
        (codes >= layout.n_values).any()
        or (codes < -1).any()
        or (len(task) and not 0 <= task.min() <= task.max() < n_tasks)
    ):
        raise ValueError("its unlabelled rows do not fit its categories and tasks")
    numbers = archive.array("unlabelled.numbers", "f", (len(codes), len(layout.numbers))) if layout.numbers else None
    model._rows = no_rows(layout)
    model._unlabelled = Rows(codes, np.full(len(codes), -1, dtype=np.int32), task, weights, numbers)
    _settle(model, archive)
    evidence = None if about["evidence"] is None else Evidence(*about["evidence"])
    model._evidence_value = evidence
    model.posterior_ = _fitted(archive, evidence, n_tasks, layout)
    model.label_distributions_ = archive.array("label_distributions", "f", (None, n_labels))
    model.transduction_ = model.classes_[model.label_distributions_.argmax(axis=1)]
    return model


def _settle(model: SharingNB, archive: Archive) -> None:
    """Give the model the hyper-parameters that it was fitted with; files of earlier versions have them as given."""
    layout = model._statistics.layout
    model.temper_ = temper_from(archive)
    if "label_prior" not in archive.arrays:
        model._settle_priors()
    else:
        model.label_prior_ = _positive(archive, "label_prior", layout.n_labels)
        model._feature_prior = _positive(archive, "feature_prior", layout.n_counts)
        model._votes = _positive(archive, "votes", layout.n_counts) if "votes" in archive.arrays else None
    concentration = archive.about.get("concentration", archive.about["params"].get("concentration"))
    if concentration is not None:
        model.concentration_ = float(concentration)


def _positive(archive: Archive, name: str, n: int) -> NDArray[np.float64]:
    numbers = archive.array(name, "f", (n,))
    if not (np.isfinite(numbers).all() and (numbers > 0).all()):
        raise ValueError(f"its {name} is not above zero everywhere")
    return numbers


def _behind(archive: Archive, n_blocks: int, n_groups: int) -> Behind | None:
    if "behind.own" not in archive.arrays:
        return None
    return Behind(*(archive.array(f"behind.{name}", "f", (n_blocks, n_groups)) for name in Behind._fields))


def _written(convergence: Convergence) -> list[dict[str, float | str]]:
    """R-hat and effective sample sizes as JSON holds them, which knows neither NaN nor infinity."""
    return [{name: value if np.isfinite(value) else str(value) for name, value in part.items()} for part in convergence]


def _read(written: Any) -> Convergence | None:
    if written is None:
        return None
    r_hat, ess = ({str(name): float(value) for name, value in part.items()} for part in written)
    return Convergence(r_hat, ess)


def _fitted(archive: Archive, evidence: Evidence | None, n_tasks: int, layout: Layout) -> Fitted:
    mixture = mixture_from(archive)
    n_blocks = len(mixture.log_theta)
    tree = None
    if "tree.children" in archive.arrays:
        children = archive.array("tree.children", "i", (n_tasks - 1, 2))
        later = np.arange(n_tasks, 2 * n_tasks - 1)[:, None]
        if not np.array_equal(np.sort(children, axis=None), np.arange(2 * n_tasks - 2)) or (children >= later).any():
            raise ValueError("its tree is not one: every node but the last joins one later node")
        tree = TaskTree(
            children, archive.array("tree.log_odds", "f", (n_tasks - 1,)), float(archive.about["log_tree_sum"])
        )
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
        tree,
        independent=bool(archive.about["independent"]),
        convergence=_read(archive.about.get("convergence")),
        behind=_behind(archive, n_blocks, len(layout.group_start) - 1),
        **optional,
    )
