"""Why a row got its prediction, as a value that every classifier returns (thesis figure 4-2)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.tasks.frames import make_frame
from kinfolk.tasks.table import Backend


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
        table : What each feature added to them, for one row.
        """
        total = self.label_part + self.feature_part.sum(axis=1) + self.remainder
        y, other = label_pair(self.classes, label, against)
        return np.asarray(total[:, y] - total[:, other])

    def table(self, row: int = 0, label: Any = None, against: Any = None) -> Any:
        """One row's explanation, the weightiest feature first: what it added to the log odds, and whose data it was.

        Parameters
        ----------
        row : int, default=0
            Which of the rows.
        label, against : optional
            Two of the classes; by default the last against the first.

        Returns
        -------
        frame
            Columns feature, value, log_odds, own, kin, everybody, prior.

        See Also
        --------
        log_odds : What the parts add up to.
        """
        y, other = label_pair(self.classes, label, against)
        added = self.feature_part[row, :, y] - self.feature_part[row, :, other]
        order = np.argsort(-np.abs(added), kind="stable")
        return make_frame(
            {
                "feature": [self.feature_names[f] for f in order],
                "value": [self.values[row][f] for f in order],
                "log_odds": added[order].tolist(),
                "own": self.own[row, order].tolist(),
                "kin": self.kin[row, order].tolist(),
                "everybody": self.everybody[row, order].tolist(),
                "prior": self.prior[row, order].tolist(),
            },
            self.backend,
        )


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
