"""The probability of a yes by linear models of many tasks: features of the request, and rates of what it names.

People say "never before ten" and "vendors never": each such rule is one weight, and the one that is said first is the
heaviest. The weights of a team lie near what all have in common and a few directions in which its members differ
(`kinfolk.LICAClassifier`), so that a few answers tell where somebody stands. Needs numpy alone.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.posterior import load
from kinfolk_assistant.features.office import NAMES
from kinfolk_assistant.learning.names import NameRates

Floats = NDArray[np.float64]


class Columns(NamedTuple):
    """The columns of a table of requests: each value of each feature, with its share among all requests."""

    values_of: dict[str, tuple[str, ...]]
    shares: dict[str, list[float]]

    def row(self, values: Mapping[str, str | None], names: Sequence[float]) -> list[float]:
        """Give a request as numbers; a feature that is not known is the mixture of its values that is common."""
        told: list[float] = []
        for feature, known in self.values_of.items():
            value = values.get(feature)
            told += [float(value == one) for one in known] if value in known else self.shares[feature]
        return [*told, *names]

    def without_each(self, row: Sequence[float]) -> Floats:
        """Give a request once for each feature and each name, as if just that were not known."""
        begin, rows = 0, []
        for share in self.shares.values():
            rows.append([*row[:begin], *share, *row[begin + len(share) :]])
            begin += len(share)
        rows += [[*row[:place], 0.0, *row[place + 1 :]] for place in range(begin, len(row))]
        return np.array(rows)


class LinearModel:
    """What linear models of a team say; made by `kinfolk_assistant.learning.fitting_linear`, or from bytes.

    Attributes
    ----------
    one_sided : frozenset of str
        Users of whom it knows too little, because answers of one kind are missing from their past.
    """

    def __init__(
        self,
        predictor: Any,
        columns: Columns,
        rates: NameRates,
        *,
        slope: float,
        one_sided: frozenset[str],
        archive: bytes,
    ) -> None:
        self.one_sided = one_sided
        self._predictor = predictor
        self._columns = columns
        self._rates = rates
        self._slope = slope
        self._archive = archive

    def log_odds(self, values: Mapping[str, str | None], user: str) -> float:
        """Log odds of a yes, averaged over what is not known of the user's weights."""
        return float(self.log_odds_of([values], [user])[0])

    def log_odds_of(self, requests: Sequence[Mapping[str, str | None]], users: Sequence[str]) -> Floats:
        """Log odds of a yes to each of several requests."""
        rows = np.array([self._row(values, user) for values, user in zip(requests, users, strict=True)])
        accept = np.clip(self._predictor.predict_proba(rows, task=list(users))[:, 1], 1e-9, 1.0 - 1e-9)
        return np.asarray(self._slope * np.log(accept / (1.0 - accept)))

    def parts(self, values: Mapping[str, str | None], user: str) -> dict[str, float]:
        """Give what each feature and name that is known adds to the log odds, beside its being not known."""
        row = self._row(values, user)
        rows = np.vstack([np.array([row]), self._columns.without_each(row)])
        sums = self._predictor.decision_function(rows, task=[user] * len(rows))
        whole = float(sums[0])
        shrunk = self.log_odds(values, user) / whole if whole else 0.0
        added = dict(zip((*self._columns.values_of, *NAMES), (whole - sums[1:]).tolist(), strict=True))
        return {name: shrunk * one for name, one in added.items() if values.get(name) is not None}

    def _row(self, values: Mapping[str, str | None], user: str) -> list[float]:
        return self._columns.row(values, self._rates.columns(user, values))

    def to_bytes(self) -> bytes:
        """Give it as a line of JSON and a file of :func:`kinfolk.save`."""
        head = {
            "values": {name: list(values) for name, values in self._columns.values_of.items()},
            "shares": self._columns.shares,
            "habits": self._rates.habits,
            "counts": self._rates.counts,
            "slope": self._slope,
            "one_sided": sorted(self.one_sided),
        }
        return json.dumps(head).encode() + b"\n" + self._archive

    @classmethod
    def from_bytes(cls, stored: bytes) -> LinearModel:
        """Load what :meth:`to_bytes` gave; nothing in it is executed.

        Raises
        ------
        ValueError
            If it is none, or damaged.
        """
        line, _, archive = stored.partition(b"\n")
        head = json.loads(line)
        values_of = {str(name): tuple(map(str, values)) for name, values in head["values"].items()}
        shares = {name: [float(one) for one in head["shares"][name]] for name in values_of}
        if any(len(shares[name]) != len(values) for name, values in values_of.items()):
            raise ValueError("its features have other numbers of values than of shares")
        habits = {str(user): float(rate) for user, rate in head["habits"].items()}
        if "" not in habits or not all(0.0 < rate < 1.0 for rate in habits.values()):
            raise ValueError("its habits are none")
        counts = {kind: _counts_from(head["counts"][kind]) for kind in NAMES}
        slope = float(head["slope"])
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model"
            path.write_bytes(archive)
            predictor = load(path, new_tasks="expected")
        columns = Columns(values_of, shares)
        n_columns = sum(map(len, values_of.values())) + len(NAMES)
        if predictor.coef_.shape[1:] != (n_columns,) or list(predictor.classes_) != [False, True]:
            raise ValueError("its weights are not those of its features")
        one_sided = frozenset(map(str, head["one_sided"]))
        rates = NameRates(habits, counts)
        return cls(predictor, columns, rates, slope=slope, one_sided=one_sided, archive=archive)


def _counts_from(told: Mapping[str, Any]) -> dict[str, dict[str, list[int]]]:
    return {
        str(name): {str(user): [int(both[0]), int(both[1])] for user, both in by_user.items()}
        for name, by_user in told.items()
    }
