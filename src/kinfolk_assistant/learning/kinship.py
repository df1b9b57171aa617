"""What a team's answers teach: clustered naive Bayes over its members (Roy 2006, sections 2.5 and A.1.3).

To learn loads scikit-learn, numba and polars; a model that comes from its archive answers with numpy alone.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.naive_bayes.answers.predictor import mixture_from
from kinfolk.naive_bayes.model.mixture import Mixture
from kinfolk.posterior import Archive, names_from, read_archive, save, schema_from
from kinfolk_assistant.learning.costs import ANSWERS
from kinfolk_assistant.learning.tempering import temper_after

if TYPE_CHECKING:
    import polars as pl

# Below this probability of sharing, two people's answers hardly touch each other's predictions.
_LEAST_SIMILARITY = 0.05
_MOST_KIN = 10
# What a stored model begins with where the rates of some users are not those of all their answers.
_TOTALS = b"kinfolk team 1 "


class Reason(NamedTuple):
    """What one feature of a request added to the log odds of "accept": above zero it speaks for accepting."""

    feature: str
    value: str
    log_ratio: float


class Kin(NamedTuple):
    """Someone whose answers help to predict another's, and the probability that the two share feature rates."""

    user: str
    similarity: float


class _Learnt(NamedTuple):
    """What an archive holds that predictions need."""

    values_of: dict[str, tuple[str, ...]]
    mixture: Mixture
    tempers: NDArray[np.float64]  # (users + 1,), the last for a newcomer
    partitions: NDArray[np.int64]  # (draws, users)


class _Parts(NamedTuple):
    """One prediction taken apart: the log odds of "accept" that each feature added, and those of all together."""

    features: NDArray[np.float64]
    log_odds: float


class Kinship:
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
    >>> model = Kinship.fit(rows)
    >>> request = meetings.data.row(0, named=True)
    >>> 0.0 < model.probability(request, "1") < 1.0
    True
    >>> Kinship.from_bytes(model.to_bytes()).probability(request, "1") == model.probability(request, "1")
    True
    """

    def __init__(self, users: list[str], learnt: _Learnt | None, archive: bytes) -> None:
        self.users = users
        self._learnt = learnt
        self._archive = archive
        self._place_of = {user: place for place, user in enumerate(users)}

    @classmethod
    def fit(cls, rows: pl.DataFrame, *, seed: int = 0, verbose: bool = False) -> Kinship:
        """Learn from the rows of all who help each other.

        The same rows with the same seed give the same model, whatever the order in which they come.

        Parameters
        ----------
        rows : polars.DataFrame
            The fifteen features, null where a value is not known; ``user``; ``answer``, "accept", "decline" or null;
            where it is there, ``censored``, true for answers that say nothing of how often such an answer is given.
        seed : int
            Seed of the sampler.
        verbose : bool
            Show progress on standard error.

        Returns
        -------
        Kinship
            One that has learnt nothing, and says so, where no row has an answer.
        """
        # Loaded here, so that a process which only serves answers starts without them.
        from kinfolk_assistant.learning.fitting import fit_team, label_totals
        from kinfolk_assistant.learning.rows import checked_rows

        checked = checked_rows(rows)
        if checked["answer"].is_null().all():
            return cls([], None, b"")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model"
            save(fit_team(checked, seed, verbose), path)
            return cls.from_bytes(_packed(label_totals(checked), path.read_bytes()))

    @classmethod
    def from_bytes(cls, archive: bytes) -> Kinship:
        """Load what :meth:`to_bytes` gave; nothing in it is executed.

        Raises
        ------
        ValueError
            If it is not the archive of such a model, or is damaged.
        """
        if not archive:
            return cls([], None, archive)
        totals, inside = _unpacked(archive)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model"
            path.write_bytes(inside)
            try:
                parts = read_archive(path)
            except ValueError as error:
                raise ValueError(str(error).replace(str(path), "The stored model")) from None
        try:
            return cls(*_learnt_from(parts, totals), archive)
        except (ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError) as error:
            raise ValueError(f"The stored model is damaged or not one of a team: {error}") from None

    def to_bytes(self) -> bytes:
        """Give the model as a file of :func:`kinfolk.save`, plain arrays and JSON; empty where nothing is learnt.

        Where somebody's past is censored, a line of JSON with the totals behind their rates stands before the file.
        """
        return self._archive

    def probability(self, values: Mapping[str, str | None], user: str) -> float | None:
        """Probability that the user accepts a request.

        Parameters
        ----------
        values : mapping
            The request's features; one that is None or not there is left out of the product.
        user : str
            The person asked. Someone whom the model does not know gets its prediction for a newcomer.

        Returns
        -------
        float or None
            None where nothing is learnt.
        """
        if self._learnt is None:
            return None
        return float(1.0 / (1.0 + np.exp(-self._parts(self._learnt, values, user).log_odds)))

    def reasons(self, values: Mapping[str, str | None], user: str, n: int = 3) -> list[Reason]:
        """Give the features that weighed most, the weightiest first (log ratios as in figure 4-2 of the thesis).

        A log ratio is log P(x_f | accept) / P(x_f | decline) as it enters the prediction: times the power to which the
        features are believed, and averaged over the clusters that the user may belong to, by their probabilities given
        the request. Where only one cluster is possible, the log ratios of all features and the log odds of the user's
        habit add up to the log odds of the probability; else they do so up to a small rest.
        """
        if self._learnt is None:
            return []
        added = self._parts(self._learnt, values, user).features
        known = [
            Reason(name, value, float(log_ratio))
            for name, log_ratio in zip(self._learnt.values_of, added, strict=True)
            if (value := values.get(name)) is not None and log_ratio != 0.0
        ]
        return sorted(known, key=lambda reason: -abs(reason.log_ratio))[:n]

    def kin(self, user: str, n: int = _MOST_KIN) -> list[Kin]:
        """Give those whose answers help this user's predictions, the nearest first; nobody for a newcomer."""
        place = self._place_of.get(user)
        if self._learnt is None or place is None:
            return []
        draws = self._learnt.partitions
        shared = (draws == draws[:, [place]]).mean(axis=0).tolist()
        near = [
            Kin(other, similarity)
            for other, similarity in zip(self.users, shared, strict=True)
            if other != user and similarity >= _LEAST_SIMILARITY
        ]
        return sorted(near, key=lambda one: (-one.similarity, one.user))[:n]

    def similarity(self) -> tuple[list[str], NDArray[np.float64]]:
        """Give the users, and for every two of them the probability that they share feature rates."""
        together = np.zeros((len(self.users), len(self.users)))
        if self._learnt is not None:
            for seats in self._learnt.partitions:
                together += seats[:, None] == seats[None, :]
            together /= len(self._learnt.partitions)
        return list(self.users), together

    def tree(self) -> NDArray[np.float64] | None:
        """Give an average-linkage tree of the users, as ``kinfolk.plots.tree`` draws it; None for fewer than two.

        The height of a merge is −log of the mean similarity between its two parts: nats against their being kin. Where
        no draw has put them together it is that of one draw in the next.
        """
        if self._learnt is None or len(self.users) < 2:
            return None
        from scipy.cluster.hierarchy import linkage
        from scipy.spatial.distance import squareform

        _, similarity = self.similarity()
        merges = np.array(linkage(squareform(1.0 - similarity, checks=False), "average"))
        rarest = 1.0 / (len(self._learnt.partitions) + 1)
        merges[:, 2] = np.abs(np.log(np.clip(1.0 - merges[:, 2], rarest, 1.0)))
        return merges

    def _parts(self, learnt: _Learnt, values: Mapping[str, str | None], user: str) -> _Parts:
        mixture = learnt.mixture
        place = self._place_of.get(user, len(self.users))
        entries = mixture.entries(place)
        cells = mixture.cells(_codes(learnt.values_of, values))[0]
        log_theta = mixture.log_theta[mixture.block[entries][:, None], cells]  # (clusters, features, labels)
        fits = learnt.tempers[place] * log_theta
        rates = mixture.log_rates[entries]
        log_joint = fits.sum(axis=1) + rates + mixture.log_weight[entries, None]
        joint = np.exp(log_joint - log_joint.max())
        accept, decline = np.log(joint.sum(axis=0))
        weight = joint.sum(axis=1) / joint.sum()
        return _Parts(
            np.asarray(weight @ (fits[:, :, 0] - fits[:, :, 1])),
            float(accept - decline),
        )


def _packed(totals: Mapping[str, list[float]], archive: bytes) -> bytes:
    return archive if not totals else _TOTALS + json.dumps(totals).encode() + b"\n" + archive


def _unpacked(archive: bytes) -> tuple[dict[str, list[float]], bytes]:
    if not archive.startswith(_TOTALS):
        return {}, archive
    head, _, inside = archive.removeprefix(_TOTALS).partition(b"\n")
    try:
        totals = {str(user): [float(n) for n in both] for user, both in json.loads(head).items()}
    except (ValueError, TypeError, AttributeError):
        raise ValueError("The stored model is damaged or not one of a team: its rates cannot be read") from None
    if not all(len(both) == len(ANSWERS) and min(both) > 0 for both in totals.values()):
        raise ValueError("The stored model is damaged or not one of a team: its rates are none")
    return totals, inside


def _with_totals(mixture: Mixture, users: list[str], totals: Mapping[str, list[float]]) -> Mixture:
    """Put other label rates in the place of those of some users."""
    rates = mixture.log_rates.copy()
    for user, both in totals.items():
        rates[mixture.entries(users.index(user))] = np.log(np.array(both) / sum(both))
    return mixture._replace(log_rates=rates)


def _learnt_from(archive: Archive, totals: Mapping[str, list[float]]) -> tuple[list[str], _Learnt]:
    """Users, and what predictions need, of an archive whose parts fit together."""
    users = names_from(archive.about["tasks"], "users")
    if not users or not all(isinstance(user, str) for user in users):
        raise ValueError("its users are not named by text")
    if archive.about["classes"] != list(ANSWERS):
        raise ValueError(f"its answers are not {' and '.join(ANSWERS)}")
    values_of = {column.name: tuple(column.categories or ()) for column in schema_from(archive).columns}
    partitions = archive.array("partitions", "i", (None, None, len(users)))
    if not partitions.size:
        raise ValueError("it has no draws")
    given = archive.array("label_counts", "f", (len(users), len(ANSWERS)))
    tempers = temper_after(np.append(given.sum(axis=1), 0.0))
    if not given.any(axis=0).all():
        # Nobody has ever given one of the answers: features cannot tell what it would depend on.
        tempers[:] = 0.0
    mixture = _with_totals(mixture_from(archive), users, totals)
    return users, _Learnt(values_of, mixture, tempers, partitions.reshape(-1, len(users)))


def _codes(values_of: Mapping[str, tuple[str, ...]], values: Mapping[str, str | None]) -> NDArray[np.int32]:
    """One row of codes, −1 where a value is not known."""
    for name in values:
        if name not in values_of:
            raise ValueError(f"Feature {name!r} is not one of the model's: {', '.join(values_of)}.")
    codes = []
    for name, known in values_of.items():
        value = values.get(name)
        if value is not None and value not in known:
            raise ValueError(
                f"Feature {name!r} is {value!r}; it needs to be one of {', '.join(map(repr, known))}, or None."
            )
        codes.append(-1 if value is None else known.index(value))
    return np.array([codes], dtype=np.int32)
