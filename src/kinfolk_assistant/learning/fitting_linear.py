"""Fitting linear models of a team's answers, and checking on rows held out how far they are to be believed."""

from __future__ import annotations

import tempfile
import warnings
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from kinfolk.lica.estimators.classifier import LICAClassifier
from kinfolk.posterior import save
from kinfolk_assistant.features.office import NAMES
from kinfolk_assistant.features.rules import ALL_FEATURES
from kinfolk_assistant.learning.linear import Columns, LinearModel
from kinfolk_assistant.learning.names import NameRates
from kinfolk_assistant.learning.rows import CENSORED

# Directions in which people differ, beside what all have in common. On made-up offices of sixteen, three did a little
# better than one (asked 65 instead of 68 times of a hundred), and more were not better.
N_SOURCES = 3
# People change: of each, so many of the latest answers are learnt from.
MOST_ROWS = 300
ENOUGH = 20
"""Somebody of whose past one kind of answers is missing is known by so many other answers."""

_HELD_OUT = 0.2
_SLOPES = np.linspace(0.5, 1.5, 21)
# As if so many rows held out had been predicted best without any correction.
_SLOPE_ROWS = 50.0


class _Table(NamedTuple):
    """Answered requests in the order they came, as plain values."""

    values: list[dict[str, str | None]]
    users: list[str]
    accepted: list[bool]

    def part(self, chosen: NDArray[np.bool_]) -> _Table:
        places = np.flatnonzero(chosen).tolist()
        return _Table(
            [self.values[place] for place in places],
            [self.users[place] for place in places],
            [self.accepted[place] for place in places],
        )


def fit_linear(rows: pl.DataFrame, seed: int) -> LinearModel | None:
    """Fit to checked rows; None where they have no two kinds of answers from which rates could be told.

    Answers of a past in which the other kind is missing are left out: they would teach that everything is accepted.
    """
    table = _table(rows)
    if len(set(table.accepted)) < 2:
        return None
    held_out = _latest(table.users, _HELD_OUT)
    slope = _slope(table.part(~held_out), table.part(held_out), seed)
    censored = set(rows.filter(pl.col(CENSORED))["user"].to_list())
    one_sided = frozenset(user for user in censored if table.users.count(user) < ENOUGH)
    return _fit(table, seed, slope, one_sided)


def _table(rows: pl.DataFrame) -> _Table:
    answered = rows.filter(~pl.col(CENSORED) & pl.col("answer").is_not_null())
    answered = answered.filter(pl.int_range(pl.len()).reverse().over("user") < MOST_ROWS)
    return _Table(
        answered.select(*ALL_FEATURES, *NAMES).cast(pl.String).to_dicts(),
        answered["user"].to_list(),
        (answered["answer"].cast(pl.String) == "accept").to_list(),
    )


def _latest(users: list[str], share: float) -> NDArray[np.bool_]:
    """Mark the latest of each user's rows."""
    of_user: dict[str, list[int]] = {}
    for place, user in enumerate(users):
        of_user.setdefault(user, []).append(place)
    marked = np.zeros(len(users), dtype=bool)
    for places in of_user.values():
        marked[places[len(places) - int(share * len(places)) :]] = True
    return marked


def _slope(known: _Table, held_out: _Table, seed: int) -> float:
    """Give the power of the odds that predicts rows held out best, shrunk towards one."""
    if len(set(known.accepted)) < 2 or not held_out.users:
        return 1.0
    found = _fit(known, seed, 1.0, frozenset()).log_odds_of(held_out.values, held_out.users)
    signed = np.where(held_out.accepted, 1.0, -1.0) * found
    losses = [float(np.logaddexp(0.0, -slope * signed).mean()) for slope in _SLOPES]
    best = float(_SLOPES[int(np.argmin(losses))])
    n = len(signed)
    return (n * best + _SLOPE_ROWS) / (n + _SLOPE_ROWS)


def _fit(table: _Table, seed: int, slope: float, one_sided: frozenset[str]) -> LinearModel:
    answered = list(zip(table.users, table.values, table.accepted, strict=True))
    rates = NameRates.of(answered)
    columns = _columns(table)
    X = np.array(
        [columns.row(values, rates.columns(user, values, without=accepted)) for user, values, accepted in answered]
    )
    n_sources = min(N_SOURCES, max(1, len(set(table.users)) // 4))
    model: Any = LICAClassifier(
        n_sources, scale=False, new_tasks="expected", random_state=seed, max_iter=60, verbose=False
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, np.array(table.accepted), task=np.array(table.users, dtype=object))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        save(model, path)
        archive = path.read_bytes()
    return LinearModel(model, columns, rates, slope=slope, one_sided=one_sided, archive=archive)


def _columns(table: _Table) -> Columns:
    """Give the columns of all features that were ever known: of others nothing can be learnt."""
    shares = {}
    for name, known in ALL_FEATURES.items():
        seen = Counter(values[name] for values in table.values)
        counts = np.array([seen[value] for value in known], dtype=float)
        if counts.any():
            shares[name] = ((counts + 1.0 / len(known)) / (counts.sum() + 1.0)).tolist()
    return Columns({name: ALL_FEATURES[name] for name in shares}, shares)
