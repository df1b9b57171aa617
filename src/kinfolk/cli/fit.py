"""``kinfolk fit``: learn from a table and save what was learnt."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kinfolk.cli.network_options import (
    BootstrapOption,
    CriterionOption,
    EssOption,
    ExpertFactorOption,
    ExpertOption,
    ForbidOption,
    MaxParentsOption,
    MissingOption,
    NetworkOptions,
    PenaltyOption,
    PriorOption,
    RequireOption,
    RestartsOption,
    SearchOption,
    SharingOption,
    StartOption,
    TablesOption,
    TabuOption,
)
from kinfolk.cli.options import AsJson, was_given

if TYPE_CHECKING:
    from collections.abc import Callable

    from kinfolk.naive_bayes.estimators.base import SharingNB

EXAMPLE = """\b
Example:
  kinfolk fit meetings.csv --task person --label answer -o team.kin
  kinfolk fit meetings.parquet --task person --label answer \\
      --inference gibbs --evidence --seed 1 -o team.kin
  kinfolk fit birds.csv --task region --model bayesnets \\
      --require "season->robin" -o birds.kin"""


class Model(StrEnum):
    """How tasks share."""

    clustered = "clustered"
    no_sharing = "no-sharing"
    complete_sharing = "complete-sharing"
    prototype = "prototype"
    averaged = "averaged"
    bayesnets = "bayesnets"


class Numeric(StrEnum):
    """What columns of numbers are taken for."""

    bin = "bin"
    gaussian = "gaussian"
    poisson = "count"
    auto = "auto"


class Inference(StrEnum):
    """How kin tasks are found."""

    bhc = "bhc"
    randomised_bhc = "randomised-bhc"
    gibbs = "gibbs"
    exact = "exact"
    variational = "variational"


def fit(
    context: typer.Context,
    table: Annotated[
        Path,
        typer.Argument(
            metavar="TABLE", help="Rows to learn from: .csv, .csv.gz, .tsv or .parquet, or - for CSV on standard input."
        ),
    ],
    task: Annotated[str, typer.Option(metavar="COL", help="Column that tells which task a row belongs to.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="MODEL", help="File to save the model in.")],
    label: Annotated[
        str | None,
        typer.Option(
            metavar="COL",
            help="Column to be predicted; empty where it is unknown. All models need one, except Bayes nets.",
        ),
    ] = None,
    model: Annotated[
        Model,
        typer.Option(
            help="Share among kin tasks, among none, among all, or with a prototype; or average these four by how well "
            "each predicts rows held out; or learn a Bayes net a task."
        ),
    ] = Model.clustered,
    inference: Annotated[
        Inference | None,
        typer.Option(
            help="How to find kin: by a tree of merges (bhc, the default), by sampling (gibbs; learns from rows "
            "without a label too), by all partitions (exact; up to 10 tasks), or, for very many tasks, by a tree built "
            "from random parts (randomised-bhc) or variationally."
        ),
    ] = None,
    feature: Annotated[
        list[str] | None, typer.Option(metavar="COL", help="A column to learn from; repeatable. Default: all others.")
    ] = None,
    drop: Annotated[list[str] | None, typer.Option(metavar="COL", help="A column to leave out; repeatable.")] = None,
    weight: Annotated[
        str | None, typer.Option(metavar="COL", help="Column of weights: a row of weight 2 counts as two rows.")
    ] = None,
    unlabelled: Annotated[
        str | None, typer.Option(metavar="VALUE", help="A label that means 'none', such as -1, beside empty fields.")
    ] = None,
    bins: Annotated[int, typer.Option(metavar="N", help="Quantile bins of columns of numbers.")] = 8,
    numeric: Annotated[
        Numeric | None,
        typer.Option(
            help="Put columns of numbers into bins, or take them as Gaussian or as Poisson counts, or column by column "
            "whatever makes the rows most probable (auto).  [default: bin]"
        ),
    ] = None,
    concentration: Annotated[
        str | None, typer.Option(metavar="A", help="Readiness to start new clusters, or 'learn'.  [default: 1]")
    ] = None,
    label_prior: Annotated[
        str | None, typer.Option(metavar="X", help="Pseudo-count of every label, or 'learn'.  [default: learn]")
    ] = None,
    feature_prior: Annotated[
        str | None,
        typer.Option(
            metavar="X",
            help="Pseudo-count of every feature value, or 'learn'.  [default: learn; 1 for clustered and prototype]",
        ),
    ] = None,
    temper: Annotated[
        str | None,
        typer.Option(
            metavar="P",
            help="Power from 0 to 1 on the features in predictions, below 1 being more careful, or 'learn'.  "
            "[default: learn]",
        ),
    ] = None,
    share_labels: Annotated[
        bool | None,
        typer.Option(
            "--share-labels/--own-labels",
            help="With complete sharing: whether label rates are shared too.  [default: share-labels]",
        ),
    ] = None,
    evidence: Annotated[
        bool, typer.Option("--evidence", help="Estimate the evidence even where that takes a long run of its own.")
    ] = False,
    sharing: SharingOption = None,
    prior: PriorOption = None,
    penalty: PenaltyOption = None,
    criterion: CriterionOption = None,
    ess: EssOption = None,
    max_parents: MaxParentsOption = None,
    tabu: TabuOption = None,
    restarts: RestartsOption = None,
    search: SearchOption = None,
    missing: MissingOption = None,
    tables: TablesOption = None,
    bootstrap: BootstrapOption = None,
    require: RequireOption = None,
    forbid: ForbidOption = None,
    start: StartOption = None,
    expert: ExpertOption = None,
    expert_factor: ExpertFactorOption = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of all that is random.", min=0)] = 0,
    jobs: Annotated[
        int, typer.Option(metavar="N", help="Chains, or tasks of Bayes nets, to run side by side; -1 for all cores.")
    ] = 1,
    as_json: AsJson = False,
) -> None:
    """Learn from a table with rows of many tasks, and save the model.

    Text, true/false and whole numbers of at most 64 different values are categories; other numbers are binned. Empty
    fields are missing values, columns without a name are left out. Messages count rows from 0, the header aside.
    """
    import kinfolk
    from kinfolk.cli.errors import say
    from kinfolk.cli.fit_large import count_table, is_large
    from kinfolk.cli.results import check_target
    from kinfolk.cli.training import Roles, read_training

    check_target(output)
    _check_options(context, model)
    roles = Roles(task, label, weight, feature or (), drop or ())
    if model is Model.bayesnets:
        from kinfolk.cli.networks import fit_networks

        network_options = NetworkOptions(
            sharing,
            prior,
            penalty,
            criterion,
            ess,
            max_parents,
            tabu,
            restarts,
            search,
            missing,
            tables,
            bootstrap,
            require,
            forbid,
            start,
            expert,
            expert_factor,
        )
        fit_networks(table, roles, network_options, bins, seed, jobs, output, as_json)
        return
    own: dict[str, Any] = {"inference": inference, "share_labels": share_labels, "numeric": numeric}
    numbers = {
        "concentration": concentration,
        "label_prior": label_prior,
        "feature_prior": feature_prior,
        "temper": temper,
    }
    own |= {name: _number_or_learn(name, given) for name, given in numbers.items() if given is not None}
    # Rows are held out to weigh models, and densities need numbers: counts have neither.
    large = model is not Model.averaged and numeric in (None, Numeric.bin) and is_large(table)
    counted = count_table(table, roles, unlabelled, bins, sys.stderr.isatty()) if large else None
    if counted is not None and counted.counts.n_unlabelled and _learns_from_unlabelled(model, inference):
        counted = None
    if counted is not None:
        mark, n_rows, n_unlabelled = counted.unlabelled, counted.counts.n_rows, counted.counts.n_unlabelled
    else:
        training = read_training(table, roles, unlabelled)
        mark, n_rows, n_unlabelled = training.unlabelled, training.table.height, training.n_unlabelled
    estimator: SharingNB = getattr(kinfolk, _ESTIMATORS[model])(
        **{name: value for name, value in own.items() if value is not None},
        task_column=task,
        bins=bins,
        unlabelled=mark,
        random_state=seed,
        n_jobs=jobs,
        verbose=sys.stderr.isatty(),
    )

    def learn() -> None:
        if counted is not None:
            estimator.fit_statistics(counted.counts)
        else:
            estimator.fit(training.table, training.labels, sample_weight=training.weights)

    for warning in _fit(estimator, learn, evidence):
        say(warning)
    estimator.set_params(verbose=False)
    kinfolk.save(estimator, output)
    _report(estimator, n_rows, n_unlabelled, output, as_json)


_ESTIMATORS = {
    Model.clustered: "ClusteredNB",
    Model.no_sharing: "NoSharingNB",
    Model.complete_sharing: "CompleteSharingNB",
    Model.prototype: "PrototypeNB",
    Model.averaged: "AveragedNB",
}


_WITH_LABELS = tuple(_ESTIMATORS)
_SINGLE = tuple(model for model in _WITH_LABELS if model is not Model.averaged)
_OWNERS: dict[str, tuple[Model, ...]] = {
    "inference": (Model.clustered,),
    "concentration": (Model.clustered,),
    "share_labels": (Model.complete_sharing,),
    "numeric": (Model.clustered, Model.no_sharing, Model.complete_sharing),
    **dict.fromkeys(("weight", "unlabelled"), _WITH_LABELS),
    **dict.fromkeys(("label_prior", "feature_prior", "temper", "evidence"), _SINGLE),
    **dict.fromkeys(NetworkOptions._fields, (Model.bayesnets,)),
}


def _check_options(context: typer.Context, model: Model) -> None:
    """Refuse options that the chosen model does not have: given for another, they are a mistake worth telling."""
    given = [name for name in context.params if was_given(context, name)]
    if model is Model.bayesnets and "label" in given:
        raise ValueError("--label does not go with --model bayesnets: every column is a variable, none is predicted")
    for name in given:
        owners = _OWNERS.get(name, (model,))
        if model not in owners:
            *others, last = owners
            listed = f"{', '.join(others)} or {last}" if others else last
            raise ValueError(f"--{name.replace('_', '-')} belongs to --model {listed}, and --model is {model}")


def _number_or_learn(option: str, given: str) -> float | str:
    """A hyper-parameter as it stands on the command line."""
    if given == "learn":
        return given
    try:
        return float(given)
    except ValueError:
        raise ValueError(f"--{option.replace('_', '-')} {given}: a number or 'learn' is needed") from None


def _learns_from_unlabelled(model: Model, inference: Inference | None) -> bool:
    """Whether rows without a label, which counts leave out, make a difference."""
    return model is not Model.clustered or inference in (Inference.gibbs, Inference.exact)


def _fit(estimator: SharingNB, learn: Callable[[], None], evidence: bool) -> list[str]:
    """Fit; give the warnings, which are told only once all has gone well."""
    import warnings

    from kinfolk.cli.errors import told_by

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        learn()
        # Sampling leaves no evidence behind; everything else has it, or computes it at once.
        fitted = getattr(estimator, "posterior_", None)
        if evidence or (fitted is not None and fitted.log_joint is None):
            estimator.log_evidence_  # noqa: B018 - computed here in order to be saved
    told = told_by(caught)
    if len(estimator.classes_) == 1:
        told.append(f"every label is {estimator.classes_[0]!s}: there is nothing to tell apart")
    return told


def _report(estimator: SharingNB, n_rows: int, n_unlabelled: int, output: Path, as_json: bool) -> None:
    """Say what was learnt."""
    from kinfolk.cli.description import describe, evidence_text, model_text, weight_facts
    from kinfolk.cli.results import fact_lines, json_text
    from kinfolk.cli.tables import shown

    about = describe(estimator)
    if as_json:
        rows = {"rows": n_rows, "unlabelled_rows": n_unlabelled}
        typer.echo(json_text({"file": str(output), **rows, **about}), nl=False)
        return
    unlabelled = f", {n_unlabelled:,} of them without a label" if n_unlabelled else ""
    facts = [
        ("model", model_text(about)),
        ("rows", f"{n_rows:,}{unlabelled}"),
        ("tasks", f"{len(about['tasks']):,}"),
        ("labels", ", ".join(map(shown, about["labels"]))),
        ("features", ", ".join(about["features"])),
        ("clusters", f"{len(about['clusters']):,}"),
        *weight_facts(about),
        ("log evidence", evidence_text(about)),
        ("saved in", str(output)),
    ]
    typer.echo(fact_lines(facts), nl=False)
