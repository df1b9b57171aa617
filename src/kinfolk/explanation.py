"""Why a row got its prediction, as a value that every classifier (thesis figure 4-2) and regression returns."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.tasks.frames import make_frame
from kinfolk.tasks.table import Backend

_SHARES = ("own", "kin", "everybody", "prior")


class Explanation(NamedTuple):
    """Additive parts of each row's log probabilities, and the sources of the data behind each feature.

    Attributes
    ----------
    classes, feature_names
        What the axes mean.
    values : list of lists of str
        The rows' own feature values, in the model's categories or bins.
    label_part : array of shape (n_rows, n_classes)
        From the task's label rates.
    feature_part : array of shape (n_rows, n_features, n_classes)
        From each feature; zero where its value is missing or unknown.
    remainder : array of shape (n_rows, n_classes)
        What is left of the log probability; differences between classes matter, not the values.
    own, kin, everybody, prior : arrays of shape (n_rows, n_features)
        Shares, adding up to one, of the counts behind a feature's rates that came from the task itself, from other
        tasks of its cluster, from a cluster that holds all tasks, and from the prior's pseudo-counts.
    backend : str
        Library that tables are made with.
    weights : dict, optional
        For an average of models, the weight of each for each row, which depends on how many rows its task has: arrays
        of shape (n_rows,) that add up to one.
    """

    classes: NDArray[Any]
    feature_names: list[str]
    values: list[list[str]]
    label_part: NDArray[np.float64]
    feature_part: NDArray[np.float64]
    remainder: NDArray[np.float64]
    own: NDArray[np.float64]
    kin: NDArray[np.float64]
    everybody: NDArray[np.float64]
    prior: NDArray[np.float64]
    backend: Backend
    weights: dict[str, NDArray[np.float64]] | None = None

    def __repr__(self) -> str:
        said = []
        for row in range(min(len(self.values), 3)):
            y, other = self._held_against(row, None, None)
            odds = self._parts(y, other)[row].sum()
            said.append(f"{self.classes.tolist()[y]!r} against {self.classes.tolist()[other]!r} {odds:+.2f}")
        more, rows = ", …" if len(self.values) > len(said) else "", "row" if len(self.values) == 1 else "rows"
        return f"<Explanation of {len(self.values):,} {rows}: log odds {', '.join(said)}{more}; table() has the parts>"

    def log_odds(self, label: Any = None, against: Any = None) -> NDArray[np.float64]:
        """Log odds of one label against another for each row; of the last against the first by default.

        Parameters
        ----------
        label, against : optional
            Two of the classes.

        Returns
        -------
        ndarray of shape (n_rows,)

        See Also
        --------
        table : The parts that they are made of.
        """
        y, other = label_pair(self.classes, label, against)
        return np.asarray(self._parts(y, other).sum(axis=1))

    def table(self, row: int | None = None, label: Any = None, against: Any = None) -> Any:
        """What the log odds of a row are made of, and whose data stood behind each feature.

        The weightiest feature comes first; after the features come "(label rates)", what the task's label rates added,
        "(rest)", what is left where a task may belong to several clusters or a value was summed out, and "(total)", to
        which all rows before it add up.

        Parameters
        ----------
        row : int, optional
            Which of the rows; by default all of them, one after another.
        label, against : optional
            Two of the classes; by default the label that is predicted, against the one that is most probable otherwise.

        Returns
        -------
        frame
            Columns label, against, feature, value, log_odds, own, kin, everybody, prior; before them row, where there
            is more than one. Values and shares are null where there are none.

        See Also
        --------
        log_odds : The totals alone.
        """
        names, columns = self.classes.tolist(), _empty_table("label", "against", "log_odds")
        for i in _chosen(self, row):
            y, other = self._held_against(i, label, against)
            *added, of_labels, rest = self._parts(y, other)[i].tolist()
            total = float(np.sum([*added, of_labels, rest]))
            sums = {"(label rates)": of_labels, "(rest)": rest, "(total)": total}
            words = {"label": names[y], "against": names[other]}
            _add(columns, self, i, words, "log_odds", added, sums)
        return _made(columns, self, row)

    def _parts(self, y: int, other: int) -> NDArray[np.float64]:
        """Every part of the log odds (rows, parts): the features', the label rates' and the rest."""
        every = np.concatenate([self.feature_part, self.label_part[:, None], self.remainder[:, None]], axis=1)
        return np.asarray(every[..., y] - every[..., other])

    def _held_against(self, row: int, label: Any, against: Any) -> tuple[int, int]:
        """Places of two labels: the one predicted against the next most probable, unless they are given."""
        total = self.label_part[row] + self.feature_part[row].sum(axis=0) + self.remainder[row]
        probable = np.argsort(-total, kind="stable").tolist()
        y, other = label_pair(self.classes, label, against)
        if label is None:
            y = next((place for place in probable if against is None or place != other), y)
        if against is None:
            other = next((place for place in probable if place != y), y)
        return y, other


class NumberExplanation(NamedTuple):
    """Additive parts of each row's expected number, and the sources of the data behind each feature.

    Attributes
    ----------
    feature_names
        What the axes mean.
    values : list of lists of str
        The rows' own feature values.
    level : array of shape (n_rows,)
        What the task's rows are expected to have, whatever their features: at the mean of every number.
    feature_part : array of shape (n_rows, n_features)
        What each feature adds; level and features add up to the prediction.
    own, kin, everybody, prior : arrays of shape (n_rows, n_features)
        Shares, adding up to one, of what settled a feature's weight: the task itself, tasks that resemble it, all
        tasks, and the prior.
    backend : str
        Library that tables are made with.
    weights : dict, optional
        As in :class:`Explanation`.
    """

    feature_names: list[str]
    values: list[list[str]]
    level: NDArray[np.float64]
    feature_part: NDArray[np.float64]
    own: NDArray[np.float64]
    kin: NDArray[np.float64]
    everybody: NDArray[np.float64]
    prior: NDArray[np.float64]
    backend: Backend
    weights: dict[str, NDArray[np.float64]] | None = None

    def __repr__(self) -> str:
        said = [f"{number:.4g}" for number in self.expected()[:3]]
        more, rows = ", …" if len(self.values) > len(said) else "", "row" if len(self.values) == 1 else "rows"
        return f"<Explanation of {len(self.values):,} {rows}: expected {', '.join(said)}{more}; table() has the parts>"

    def expected(self) -> NDArray[np.float64]:
        """What is predicted for each row, the sum of all parts.

        Returns
        -------
        ndarray of shape (n_rows,)

        See Also
        --------
        table : The parts.
        """
        return np.asarray(self.level + self.feature_part.sum(axis=1))

    def table(self, row: int | None = None) -> Any:
        """What a predicted number is made of, and whose data stood behind each feature.

        The weightiest feature comes first; after the features come "(level)", what the task's rows are expected to have
        whatever their features, and "(total)", to which all rows before it add up.

        Parameters
        ----------
        row : int, optional
            Which of the rows; by default all of them, one after another.

        Returns
        -------
        frame
            Columns feature, value, added, own, kin, everybody, prior; before them row, where there is more than one.
            Values and shares are null where there are none.

        See Also
        --------
        expected : The totals alone.
        """
        columns = _empty_table("added")
        for i in _chosen(self, row):
            added, level = self.feature_part[i].tolist(), float(self.level[i])
            sums = {"(level)": level, "(total)": float(np.sum([*added, level]))}
            _add(columns, self, i, {}, "added", added, sums)
        return _made(columns, self, row)


def _chosen(found: Explanation | NumberExplanation, row: int | None) -> Any:
    every = range(len(found.values))
    return every if row is None else [every[row]]


def _empty_table(*own: str) -> dict[str, list[Any]]:
    *words, amount = own
    return {name: [] for name in ("row", *words, "feature", "value", amount, *_SHARES)}


def _add(
    columns: dict[str, list[Any]],
    found: Explanation | NumberExplanation,
    row: int,
    words: dict[str, Any],
    amount: str,
    added: list[float],
    sums: dict[str, float],
) -> None:
    """Lines of a table for one row: its features, the weightiest first, and sums that no feature stands behind."""
    order, nothing = np.argsort(-np.abs(added), kind="stable"), [None] * len(sums)
    for name, value in {"row": row, **words}.items():
        columns[name] += [value] * (len(added) + len(sums))
    columns["feature"] += [*(found.feature_names[f] for f in order), *sums]
    columns["value"] += [*(found.values[row][f] for f in order), *nothing]
    columns[amount] += [*(added[f] for f in order), *sums.values()]
    for name in _SHARES:
        columns[name] += [*getattr(found, name)[row, order].tolist(), *nothing]


def _made(columns: dict[str, list[Any]], found: Explanation | NumberExplanation, row: int | None) -> Any:
    if row is not None or len(found.values) == 1:
        del columns["row"]
    return make_frame(columns, found.backend)


def label_pair(classes: NDArray[Any], label: Any, against: Any) -> tuple[int, int]:
    """Places of two labels to be held against each other; the last against the first, unless they are given.

    Examples
    --------
    >>> label_pair(np.array(["no", "yes"]), None, None), label_pair(np.array(["no", "yes"]), "no", None)
    ((1, 0), (0, 1))
    """
    known = classes.tolist()
    for given in (label, against):
        if given is not None and given not in known:
            raise ValueError(f"{given!r} is not a label; the labels are {known}")
    y = len(known) - 1 if label is None else known.index(label)
    if against is not None:
        return y, known.index(against)
    return y, 0 if y != 0 else len(known) - 1
