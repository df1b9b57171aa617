"""What a team's answers teach: who is kin, and how likely each is to accept.

Who is kin is told by clustered naive Bayes over the fifteen features of the thesis; how likely a yes is by linear
models over these and what offices run on beside them, where there is enough to fit them. To learn loads scikit-learn,
numba and polars; a model that comes from its archive answers with numpy alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kinfolk_assistant.learning.kinship import Kin, Kinship, Reason
from kinfolk_assistant.learning.linear import LinearModel

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Kin", "Reason", "TeamModel"]

# What a stored model of both parts begins with; one of an earlier version is that of kinship alone.
_BOTH = b"kinfolk team 2 "


class TeamModel:
    """What was learnt from a team's answers; made by :meth:`fit` or :meth:`from_bytes`.

    Attributes
    ----------
    users : list of str
        Those whose rows it was fitted to, sorted; empty where nothing is learnt.

    Examples
    --------
    >>> import polars as pl
    >>> from kinfolk.datasets.meetings import make_meetings
    >>> meetings = make_meetings(4, 60, random_state=0)
    >>> answers = ["decline" if answer == "reject" else answer for answer in meetings.target]
    >>> rows = meetings.data.with_columns(user=pl.Series(meetings.task), answer=pl.Series(answers))
    >>> model = TeamModel.fit(rows)
    >>> request = meetings.data.row(0, named=True)
    >>> 0.0 < model.probability(request, "1") < 1.0
    True
    >>> round(TeamModel.from_bytes(model.to_bytes()).probability(request, "1") - model.probability(request, "1"), 9)
    0.0
    """

    def __init__(self, kinship: Kinship, linear: LinearModel | None) -> None:
        self._kinship = kinship
        self._linear = linear
        self.users = kinship.users

    @classmethod
    def fit(cls, rows: pl.DataFrame, *, seed: int = 0, verbose: bool = False) -> TeamModel:
        """Learn from the rows of all who help each other.

        The same rows with the same seed give the same model.

        Parameters
        ----------
        rows : polars.DataFrame
            The fifteen features, null where a value is not known; ``user``; ``answer``, "accept", "decline" or null;
            where they are there, the features of `kinfolk_assistant.features.office`, ``organiser``, ``domain`` and
            ``title``, and ``censored``, true for answers that say nothing of how often such an answer is given. Of
            each user in the order they came.
        seed : int
            Seed of the sampler.
        verbose : bool
            Show progress on standard error.

        Returns
        -------
        TeamModel
            One that has learnt nothing, and says so, where no row has an answer.
        """
        # Loaded here, so that a process which only serves answers starts without them.
        from kinfolk_assistant.learning.fitting_linear import fit_linear
        from kinfolk_assistant.learning.rows import checked_rows

        checked = checked_rows(rows)
        kinship = Kinship.fit(checked, seed=seed, verbose=verbose)
        return cls(kinship, fit_linear(checked, seed) if kinship.users else None)

    @classmethod
    def from_bytes(cls, archive: bytes) -> TeamModel:
        """Load what :meth:`to_bytes` gave; nothing in it is executed.

        Raises
        ------
        ValueError
            If it is not the archive of such a model, or is damaged.
        """
        if not archive.startswith(_BOTH):
            return cls(Kinship.from_bytes(archive), None)
        head, _, rest = archive.removeprefix(_BOTH).partition(b"\n")
        try:
            size = int(json.loads(head)["kinship"])
            return cls(Kinship.from_bytes(rest[:size]), LinearModel.from_bytes(rest[size:]))
        except (ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError) as error:
            raise ValueError(f"The stored model is damaged or not one of a team: {error}") from None

    def to_bytes(self) -> bytes:
        """Give the model as plain arrays and JSON; empty where nothing is learnt."""
        kinship = self._kinship.to_bytes()
        if self._linear is None:
            return kinship
        return _BOTH + json.dumps({"kinship": len(kinship)}).encode() + b"\n" + kinship + self._linear.to_bytes()

    def probability(self, values: Mapping[str, str | None], user: str) -> float | None:
        """Probability that the user accepts a request.

        Parameters
        ----------
        values : mapping
            The request's features and what it names; what is None or not there is not known.
        user : str
            The person asked. Someone whom the model does not know gets its prediction for a newcomer.

        Returns
        -------
        float or None
            None where nothing is learnt.
        """
        linear = self._linear_for(user)
        if linear is None:
            return self._kinship.probability(_fifteen(values), user)
        return float(1.0 / (1.0 + np.exp(-linear.log_odds(values, user))))

    def reasons(self, values: Mapping[str, str | None], user: str, n: int = 3) -> list[Reason]:
        """Give what weighed most, the weightiest first: by how much the log odds of "accept" would change if the
        feature, or what is named, were not known.
        """
        linear = self._linear_for(user)
        if linear is None:
            return self._kinship.reasons(_fifteen(values), user, n)
        parts = linear.parts(values, user)
        known = [Reason(name, str(values[name]), one) for name, one in parts.items() if one != 0.0]
        return sorted(known, key=lambda reason: -abs(reason.log_ratio))[:n]

    def _linear_for(self, user: str) -> LinearModel | None:
        """Give the linear models; None where naive Bayes knows more, which learns from a one-sided past too."""
        return None if self._linear is None or user in self._linear.one_sided else self._linear

    def kin(self, user: str, n: int = 10) -> list[Kin]:
        """Give those whose answers are most like this user's, the nearest first; nobody for a newcomer."""
        return self._kinship.kin(user, n)

    def similarity(self) -> tuple[list[str], NDArray[np.float64]]:
        """Give the users, and for every two of them the probability that they share feature rates."""
        return self._kinship.similarity()

    def tree(self) -> NDArray[np.float64] | None:
        """Give an average-linkage tree of the users, as ``kinfolk.plots.tree`` draws it; None for fewer than two."""
        return self._kinship.tree()


def _fifteen(values: Mapping[str, str | None]) -> dict[str, str | None]:
    from kinfolk.datasets.meetings import MEETING_FEATURES

    return {name: values.get(name) for name in MEETING_FEATURES}
