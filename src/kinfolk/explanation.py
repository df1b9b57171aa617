"""Why a row got its prediction, as a value that every classifier returns (thesis figure 4-2)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.tasks.frames import make_frame
from kinfolk.tasks.table import Backend

# What stands in a table beside the features.
_SUMS = ("(label rates)", "(rest)", "(total)")
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
        rows = range(len(self.values)) if row is None else [range(len(self.values))[row]]
        columns: dict[str, list[Any]] = {name: [] for name in ("row", "label", "against", "feature", "value")}
        columns |= {name: [] for name in ("log_odds", *_SHARES)}
        names, nothing = self.classes.tolist(), [None] * len(_SUMS)
        for i in rows:
            y, other = self._held_against(i, label, against)
            *added, of_labels, rest = self._parts(y, other)[i].tolist()
            order = np.argsort(-np.abs(added), kind="stable")
            n = len(added) + len(_SUMS)
            columns["row"] += [i] * n
            columns["label"] += [names[y]] * n
            columns["against"] += [names[other]] * n
            columns["feature"] += [*(self.feature_names[f] for f in order), *_SUMS]
            columns["value"] += [*(self.values[i][f] for f in order), *nothing]
            parts = [*(added[f] for f in order), of_labels, rest]
            columns["log_odds"] += [*parts, float(np.sum(parts))]
            for name in _SHARES:
                columns[name] += [*getattr(self, name)[i, order].tolist(), *nothing]
        if row is not None or len(self.values) == 1:
            del columns["row"]
        return make_frame(columns, self.backend)

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
