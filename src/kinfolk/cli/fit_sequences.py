"""Infinite hidden Markov models for ``kinfolk fit``: their options, and how they learn from a table."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from kinfolk.cli.tables import TableOptions, open_training

if TYPE_CHECKING:
    from kinfolk.cli.fit import Learnt, RunOptions

# How tasks share states, and the estimator that has them share so.
ESTIMATORS = {
    "nested": "NestedIHMM",
    "shared": "SharedIHMM",
    "single": "SingleIHMM",
    "averaged": "AveragedIHMM",
    "features": "FeatureIHMM",
}
_INFERENCE = ("gibbs", "variational")


@dataclass(frozen=True, kw_only=True)
class SequenceOptions:
    """What was asked for; None where nothing was said."""

    PANEL: ClassVar[str] = "Options of hidden Markov models"

    sequence: Annotated[
        str | None,
        typer.Option(
            metavar="COL",
            help="Column that separates the sequences of a task.  [default: all rows of a task are one sequence]",
        ),
    ] = None
    order: Annotated[
        str | None,
        typer.Option(
            metavar="COL",
            help="Column that gives the order of rows within a sequence: numbers, dates or text.  [default: the order "
            "of the table]",
        ),
    ] = None
    emission: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND",
            help="What states emit, for all columns, or COL=KIND for each: categorical, gaussian, gaussian-full, "
            "student-t, ar, poisson, bernoulli; repeatable.  [default: text and whole numbers of few values are "
            "categories, other numbers Gaussian]",
        ),
    ] = None
    states: Annotated[
        int | None,
        typer.Option(metavar="N", help="Largest number of hidden states of a cluster.  [default: 20]", min=1),
    ] = None
    clusters: Annotated[
        int | None, typer.Option(metavar="N", help="Largest number of clusters.  [default: 20]", min=1)
    ] = None
    stickiness: Annotated[
        str | None, typer.Option(metavar="X", help="How strongly states tend to persist, or 'learn'.  [default: 0]")
    ] = None
    chains: Annotated[int | None, typer.Option(metavar="N", help="Chains to sample.  [default: 8]", min=1)] = None
    burn_in: Annotated[
        int | None,
        typer.Option(metavar="N", help="Sweeps of each chain to discard at the start.  [default: 100]", min=0),
    ] = None
    draws: Annotated[int | None, typer.Option(metavar="N", help="Draws of each chain.  [default: 50]", min=1)] = None


def learn(name: str, table: TableOptions, run: RunOptions, options: SequenceOptions) -> Learnt:
    """Fit the hidden Markov models of all tasks, and tell what was found."""
    import kinfolk
    from kinfolk.cli.fit import Learnt
    from kinfolk.cli.sequence_answers import describe, facts_of

    name = _estimator(run, options, name)
    beside = {"sequence": options.sequence, "order": options.order}
    source, roles = open_training(table, beside={use: column for use, column in beside.items() if column is not None})
    frame = source.whole()
    estimator = getattr(kinfolk, name)(
        **_parameters(run, options, roles.features),
        task_column=table.task,
        sequence_column=options.sequence,
        order_column=options.order,
        random_state=run.seed,
        n_jobs=run.jobs,
        verbose=sys.stderr.isatty(),
    )
    estimator.fit(frame.select(roles.learnt))
    about = {"rows": frame.height, **describe(estimator)}
    return Learnt(estimator, about, [("rows", f"{frame.height:,}"), *facts_of(about)])


def _estimator(run: RunOptions, options: SequenceOptions, name: str) -> str:
    if run.sharing is None:
        return name
    if run.sharing not in ESTIMATORS:
        ways = ", ".join(ESTIMATORS)
        raise ValueError(f"--sharing {run.sharing} belongs to --model bayesnets: --model ihmm has {ways}")
    if options.clusters is not None and run.sharing not in ("nested", "averaged"):
        raise ValueError(f"--clusters belongs to --sharing nested or averaged, and --sharing is {run.sharing}")
    if run.sharing == "features" and run.inference not in (None, "gibbs"):
        raise ValueError(f"--inference {run.inference}: --sharing features is sampled alone, by gibbs")
    return ESTIMATORS[run.sharing]


def _parameters(run: RunOptions, options: SequenceOptions, columns: Sequence[str]) -> dict[str, Any]:
    """Parameters of the estimator, as far as options say anything about them."""
    if run.inference is not None and run.inference not in _INFERENCE:
        raise ValueError(f"--inference {run.inference} is not one of --model ihmm: give {' or '.join(_INFERENCE)}")
    if run.inference == "variational":
        for option in ("chains", "burn_in"):
            if getattr(options, option) is not None:
                raise ValueError(f"--{option.replace('_', '-')} belongs to --inference gibbs, which samples chains")
    given = {
        "n_states": options.states,
        "n_clusters": options.clusters,
        "stickiness": None if options.stickiness is None else _number_or_learn(options.stickiness),
        "emission": _emission(options.emission, columns),
        "inference": None if run.inference is None or run.sharing == "features" else str(run.inference),
        "n_chains": options.chains,
        "n_burn_in": options.burn_in,
        "n_draws": options.draws,
        "checkpoint": run.checkpoint,
    }
    return {name: value for name, value in given.items() if value is not None}


def _number_or_learn(given: str) -> float | str:
    if given == "learn":
        return given
    try:
        return float(given)
    except ValueError:
        raise ValueError(f"--stickiness {given}: a number or 'learn' is needed") from None


def _emission(given: Sequence[str] | None, columns: Sequence[str]) -> str | list[str] | None:
    """The kind of all columns, or of each in their order.

    Examples
    --------
    >>> _emission(["gaussian"], ["x", "y"]), _emission(["y=poisson", "x=gaussian"], ["x", "y"])
    ('gaussian', ['gaussian', 'poisson'])
    """
    if not given:
        return None
    if len(given) == 1 and "=" not in given[0]:
        return given[0]
    kinds: dict[str, str] = {}
    for entry in given:
        column, equals, kind = entry.rpartition("=")
        if not equals:
            raise ValueError(f"--emission {entry}: one kind for all columns, or COL=KIND for each, is needed")
        if column not in columns:
            raise ValueError(
                f"--emission {entry}: {column!r} is no column to learn from; they are {', '.join(columns)}"
            )
        if column in kinds:
            raise ValueError(f"--emission {entry}: column {column!r} has been given a kind already, {kinds[column]}")
        kinds[column] = kind
    without = [column for column in columns if column not in kinds]
    if without:
        raise ValueError(f"--emission has no kind for column {without[0]!r}: name one for each column, or one for all")
    return [kinds[column] for column in columns]
