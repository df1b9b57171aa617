"""Everything that a report tells of a model, gathered once: for the page, for JSON, and for the list of checks."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kinfolk.parameters import check_whole
from kinfolk.reporting import held_out_sequences
from kinfolk.reporting.findings import SOURCES, Findings, findings_of
from kinfolk.reporting.held_out import PLAIN, Calibration, Given, HeldOut, calibrate, hold_out, receive
from kinfolk.reporting.held_out_classes import hold_out_classes, receive_classes
from kinfolk.reporting.held_out_networks import hold_out_networks, receive_networks
from kinfolk.reporting.numbered_checks import Alert, Seen, look
from kinfolk.sequences.answers.segments import Decoded, cut_into_segments
from kinfolk.transfer.comparison import judge, mean_and_error


@dataclass(frozen=True)
class Account:
    """A model, what rows say of it if any were given, what checks found, and how to make it again.

    ``sequences`` are the hidden states of the sequences that were given, of a model of such.
    """

    findings: Findings
    given: Given | None
    held_out: HeldOut | None
    calibration: Calibration | None
    alerts: list[Alert]
    examples: bool = True
    again: Mapping[str, str] = field(default_factory=dict)
    sequences: Decoded | None = None

    @property
    def verdict(self) -> tuple[bool | None, str]:
        """Whether sharing helps, by the models of this one's own kind, and in words."""
        assert self.held_out is not None
        found = self.held_out.comparison
        kin = {name: loss for name, loss in found.losses.items() if name != "logistic-pooled"}
        return judge(kin, found.ways, found.measure)


def account_for(
    estimator: Any,
    data: Any = None,
    y: Any = None,
    task: Any = None,
    *,
    ignore: Sequence[str] = (),
    examples: bool = True,
    n_folds: int = 5,
    seed: int = 0,
    again: Mapping[str, str] | None = None,
) -> Account:
    """Read a model, compare it on rows held out if there are any, and run the checks.

    Parameters
    ----------
    estimator : fitted estimator
    data, y, task : optional
        Rows, what is to be predicted and tasks: a table, and arrays or names of its columns; of sequences a table with
        the columns of the fit, a list, or a tuple of table, lengths and tasks.
    ignore : sequence of str
        Checks to leave out.
    examples : bool
        Whether rows may be shown.
    n_folds : int
        Parts of the rows that are held out in turn.
    seed : int
        Seed of the folds.
    again : mapping, optional
        What else is needed to make the report again, in words.

    Returns
    -------
    Account
    """
    check_whole("n_folds", n_folds, 2)
    findings = findings_of(estimator)
    given = held_out = calibration = sequences = None
    if data is not None:
        if findings.family == "sequences":
            whole = held_out_sequences.receive(findings, data, y, task)
            given, sequences = whole.rows, whole.decoded
            held_out = held_out_sequences.hold_out_sequences(findings, whole, n_folds, seed)
        else:
            take_in, compare = receive, hold_out
            if findings.family == "networks":
                take_in, compare = receive_networks, hold_out_networks
                if findings.unit == "class":
                    take_in, compare = receive_classes, hold_out_classes
            given = take_in(findings, data, y, task)
            held_out = compare(findings, given, n_folds, seed)
        calibration = calibrate(held_out, given)
    alerts = look(Seen(findings, given, held_out, calibration), ignore)
    facts = {**(again or {}), **_made_of(estimator, given, seed, n_folds)}
    return Account(findings, given, held_out, calibration, alerts, examples, facts, sequences)


def _made_of(estimator: Any, given: Given | None, seed: int, n_folds: int) -> dict[str, str]:
    """Versions, parameters, seeds and the hash of the rows."""
    told = versions() | {
        "parameters": ", ".join(f"{name}={value!r}" for name, value in _changed(estimator).items()) or "all defaults",
        "seed of the model": repr(getattr(estimator, "random_state", None)),
    }
    return told if given is None else told | facts_of_rows(given, seed, n_folds)


def versions() -> dict[str, str]:
    """Versions of what a report was made with."""
    import sklearn

    from kinfolk import __version__

    return {
        "kinfolk": __version__,
        "Python": platform.python_version(),
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
    }


def facts_of_rows(given: Given, seed: int, n_folds: int) -> dict[str, str]:
    """How many rows were given, how they were held out, and their hash."""
    return {
        "rows": f"{len(given.task):,}, held out in {n_folds} parts with seed {seed}",
        "SHA-256 of the rows' values": given.digest,
    }


def _changed(estimator: Any) -> dict[str, Any]:
    """Parameters that are not the defaults."""
    plain = type(estimator)().get_params(deep=False) if _has_defaults(estimator) else {}
    given = estimator.get_params(deep=False)
    return {name: value for name, value in given.items() if name not in plain or repr(plain[name]) != repr(value)}


def _has_defaults(estimator: Any) -> bool:
    try:
        type(estimator)()
    except TypeError:
        return False
    return True


def document(account: Account) -> dict[str, Any]:
    """The account as plain data, ready for JSON."""
    findings = account.findings
    certainty = findings.certainty()
    tasks: list[dict[str, Any]] = [{"task": task} for task in findings.tasks]
    losses = account.held_out.by_task(len(tasks)) if account.held_out is not None else None
    for place, entry in enumerate(tasks):
        if findings.rows is not None:
            entry["rows"] = findings.rows[place]
        if findings.partition is not None:
            entry["cluster"] = findings.partition[place]
        if certainty is not None:
            entry["certainty"] = certainty[place]
        if findings.shares is not None:
            entry["rests_on"] = dict(zip(SOURCES, findings.shares[place].tolist(), strict=True))
        if losses is not None:
            entry["loss"], entry["loss_error"], entry["gain_over_alone"], entry["gain_error"] = (
                of[place] for of in losses
            )
        entry["checks"] = [alert.code for alert in account.alerts if alert.task == findings.tasks[place]]
    about = {
        "model": findings.model,
        "family": findings.family,
        "labels": findings.labels,
        "features": findings.features,
        "tasks": tasks,
        "clusters": [
            {"cluster": findings.partition[own[0]], "tasks": [findings.tasks[place] for place in own]}
            for own in findings.clusters
            if findings.partition is not None
        ],
        "similarity": None if findings.similarity is None or len(tasks) > 200 else findings.similarity,
        "convergence": None
        if findings.convergence is None
        else {
            "converged": findings.convergence.converged,
            "advice": findings.convergence.advice(),
            "r_hat": findings.convergence.r_hat,
            "ess": findings.convergence.ess,
        },
        "comparison": _comparison(account),
        "calibration": None if account.calibration is None else account.calibration._asdict(),
        "checks": [alert._asdict() for alert in account.alerts],
        "details": findings.details,
        "segments": None if account.sequences is None else cut_into_segments(account.sequences),
        "made_again_with": dict(account.again),
    }
    plain: dict[str, Any] = json.loads(json.dumps(_plain(about)))
    return plain


def _comparison(account: Account) -> dict[str, Any] | None:
    if account.held_out is None:
        return None
    found = account.held_out.comparison
    helps, words = account.verdict
    models = []
    for name, losses in found.losses.items():
        mean, error = mean_and_error(losses)
        behind, its_error = account.held_out.behind(name) or (0.0, 0.0)
        models.append(
            {
                "model": name,
                "called": PLAIN.get(name, name),
                "way": found.ways[name],
                "loss": mean,
                "error": error,
                "behind": behind,
                "error_of_behind": its_error,
                "quality": float(np.mean(found.qualities[name])),
            }
        )
    return {
        "measure": found.measure,
        "sharing_helps": helps,
        "verdict": words,
        "models": sorted(models, key=lambda entry: entry["loss"]),
    }


def _plain(value: Any) -> Any:
    """Values as JSON has them; what is no number is null there."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return [_plain(inner) for inner in (value.tolist() if isinstance(value, np.ndarray) else value)]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)
