"""``kinfolk fit``: learn from a table and save the model.

A model is one entry of ``MODELS``: its estimator, the family that it belongs to, and the options that it has. A family
is a dataclass of options and a module ``kinfolk.cli.fit_FAMILY`` with a function ``learn``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from kinfolk.cli.commands import with_options
from kinfolk.cli.fit_naive_bayes import NaiveBayesOptions
from kinfolk.cli.fit_networks import NetworkOptions
from kinfolk.cli.fit_sequences import SequenceOptions
from kinfolk.cli.options import AsJson
from kinfolk.cli.tables import TableOptions, fact_lines, json_text
from kinfolk.files import check_target

EXAMPLE = """\b
Example:
  kinfolk fit meetings.csv --task person --label answer -o team.kin
  kinfolk fit meetings.parquet --task person --label answer \\
      --inference gibbs --evidence --seed 1 -o team.kin
  kinfolk fit folder-of-parquet/ --task person --label answer \\
      --inference variational --engine duckdb -o team.kin
  kinfolk fit birds.csv --task region --model bayesnets \\
      --require "season->robin" -o birds.kin
  kinfolk fit walks.csv --task person --sequence day --order time \\
      --model ihmm -o walks.kin"""


class Model(StrEnum):
    """How tasks share."""

    clustered = "clustered"
    no_sharing = "no-sharing"
    complete_sharing = "complete-sharing"
    prototype = "prototype"
    averaged = "averaged"
    transfer = "transfer"
    transfer_regressor = "transfer-regressor"
    bayesnets = "bayesnets"
    ihmm = "ihmm"


class Sharing(StrEnum):
    """How structures of tasks hang together, or hidden states."""

    joint = "joint"
    none = "none"
    identical = "identical"
    pooled = "pooled"
    nested = "nested"
    shared = "shared"
    single = "single"
    averaged = "averaged"
    features = "features"


class Inference(StrEnum):
    """How kin tasks are found."""

    bhc = "bhc"
    randomised_bhc = "randomised-bhc"
    gibbs = "gibbs"
    exact = "exact"
    variational = "variational"


class Kind(NamedTuple):
    """A model on the command line: its estimator in kinfolk, its family, and the options that not all models have."""

    estimator: str
    family: str
    options: frozenset[str]


_LABELLED = frozenset({"label", "weight", "unlabelled"})
_ALONE = _LABELLED | {
    "label_prior",
    "feature_prior",
    "temper",
    "evidence",
    "engine",
    "scheduler",
    "bins",
    "numeric",
    "checkpoint",
}
_NETWORKS = frozenset(field.name for field in fields(NetworkOptions)) | {"sharing", "bins", "checkpoint"}
_SEQUENCES = frozenset(field.name for field in fields(SequenceOptions)) | {"sharing", "inference", "checkpoint"}

MODELS: dict[Model, Kind] = {
    Model.clustered: Kind("ClusteredNB", "naive_bayes", _ALONE | {"inference", "concentration"}),
    Model.no_sharing: Kind("NoSharingNB", "naive_bayes", _ALONE),
    Model.complete_sharing: Kind("CompleteSharingNB", "naive_bayes", _ALONE | {"share_labels"}),
    Model.prototype: Kind("PrototypeNB", "naive_bayes", _ALONE),
    Model.averaged: Kind("AveragedNB", "naive_bayes", _LABELLED | {"numeric", "bins", "checkpoint"}),
    Model.transfer: Kind("TransferClassifier", "transfer", _LABELLED | {"checkpoint"}),
    Model.transfer_regressor: Kind("TransferRegressor", "transfer", _LABELLED - {"unlabelled"} | {"checkpoint"}),
    Model.bayesnets: Kind("BayesNets", "networks", _NETWORKS),
    Model.ihmm: Kind("NestedIHMM", "sequences", _SEQUENCES),
}


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What to fit, where to save it, and how to go about it."""

    output: Annotated[Path, typer.Option("--output", "-o", metavar="MODEL", help="File to save the model in.")]
    model: Annotated[
        Model,
        typer.Option(
            help="Naive Bayes that shares among kin (clustered), not at all (no-sharing), among all tasks "
            "(complete-sharing) or with a common prototype, or the average of these four, weighted by how well they "
            "predict held-out rows (averaged); an average of all kinds of models, linear models and trees included "
            "(transfer; to predict numbers, transfer-regressor); a Bayesian network for each task (bayesnets); or, "
            "for sequences, hidden Markov models (ihmm)."
        ),
    ] = Model.clustered
    sharing: Annotated[
        Sharing | None,
        typer.Option(
            help="Bayesian networks: structures learnt jointly (joint, the default), each task separately (none), one "
            "structure for all (identical), or all rows pooled as one table (pooled). Hidden Markov models: states are "
            "shared by kin (nested, the default), by all tasks (shared) or by none (single); the average of these "
            "three, weighted by how well they predict held-out sequences (averaged); or every task uses some of a "
            "common set of states (features)."
        ),
    ] = None
    inference: Annotated[
        Inference | None,
        typer.Option(
            help="How to find kin: by a tree of merges (bhc, the default of naive Bayes), by sampling (gibbs, the "
            "default of hidden Markov models; also learns from rows without a label), by summing over all partitions "
            "(exact; up to 10 tasks), or, for very many tasks, by a tree built from random parts (randomised-bhc) or a "
            "variational approximation (variational)."
        ),
    ] = None
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Folder in which the progress of the fit is saved: a run that was killed resumes from there "
            "when it is started again.",
        ),
    ] = None
    bins: Annotated[int, typer.Option(metavar="N", help="Number of quantile bins for columns of numbers.")] = 8
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the random numbers.", min=0)] = 0
    jobs: Annotated[
        int,
        typer.Option(metavar="N", help="Chains, or tasks of Bayesian networks, to run in parallel; -1 for all cores."),
    ] = 1
    as_json: AsJson = False


class Learnt(NamedTuple):
    """A fitted estimator, and what was found as plain data and as facts to be read."""

    estimator: Any
    about: dict[str, Any]
    facts: list[tuple[str, str]]


@with_options(
    table=TableOptions,
    run=RunOptions,
    naive_bayes=NaiveBayesOptions,
    networks=NetworkOptions,
    sequences=SequenceOptions,
)
def fit(table: TableOptions, run: RunOptions, **families: Any) -> None:
    """Learn from a table with rows of many tasks, and save the model.

    Text, true/false and whole numbers with at most 64 different values are treated as categories; other numbers are
    binned, and so are whole numbers with more values than bins if that makes naive Bayes explain the labels better.
    Empty fields, NA, NaN and the like are missing values; columns without a name are left out. Messages number rows
    from 0, not counting the header.
    """
    from importlib import import_module

    from kinfolk.posterior import save

    _refuse_options_of_others(run.model, [table, run, *families.values()])
    check_target(run.output)
    kind = MODELS[run.model]
    family = import_module(f"kinfolk.cli.fit_{kind.family}")
    # Tables with labels have the same options, whatever learns from them.
    learnt: Learnt = family.learn(kind.estimator, table, run, families.get(kind.family, families["naive_bayes"]))
    learnt.estimator.set_params(verbose=False)
    save(learnt.estimator, run.output)
    if run.as_json:
        text = json_text({"file": str(run.output), **learnt.about})
    else:
        text = fact_lines([*learnt.facts, ("saved in", str(run.output))])
    typer.echo(text, nl=False)


def _refuse_options_of_others(model: Model, groups: Iterable[Any]) -> None:
    """Refuse options that the chosen model does not have: given for another, they are a mistake worth telling."""
    for field, value in ((field, getattr(group, field.name)) for group in groups for field in fields(group)):
        owners = [owner for owner, kind in MODELS.items() if field.name in kind.options]
        if owners and model not in owners and value != field.default:
            *others, last = owners
            listed = f"{', '.join(others)} or {last}" if others else last
            raise ValueError(f"--{field.name.replace('_', '-')} belongs to --model {listed}, and --model is {model}")
