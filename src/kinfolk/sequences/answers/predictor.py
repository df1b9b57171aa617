"""What a fitted or a loaded infinite hidden Markov model answers; numpy alone is imported here."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.arrays import Floats
from kinfolk.posterior import Archive, known_from
from kinfolk.predictor import Predictor, check_quantiles
from kinfolk.sequences.answers.archive import kept_from, layout_from
from kinfolk.sequences.answers.forecasting import Forecast, draw_sequences, look_ahead
from kinfolk.sequences.answers.layout import Arranged, Layout, arrange
from kinfolk.sequences.answers.plain_filters import PlainFilters
from kinfolk.sequences.answers.prediction import (
    Kept,
    clusters_in_best_draw,
    log_predictive,
    log_predictive_of_tasks,
    most_probable_paths,
    state_probabilities,
)
from kinfolk.sequences.answers.segments import Decoded, check_decoding, cut_into_segments
from kinfolk.sequences.answers.states import (
    NEAR,
    differing_states,
    groups_of_tasks,
    names_of,
    similar_states,
    state_table,
    states_of,
)
from kinfolk.sequences.model.sequences import Sequences
from kinfolk.tasks.answering import Asked, Known, receive_sequences
from kinfolk.tasks.schema import places_of
from kinfolk.tasks.sequences import check_lengths
from kinfolk.tasks.table import as_column

_N_PATHS = 1000
_LEVELS = (0.05, 0.5, 0.95)


class SequencesPredictor(Predictor):
    """Infinite hidden Markov models as prediction needs them; :func:`kinfolk.load` makes one, and so does ``fit``.

    Methods are those of :class:`~kinfolk.NestedIHMM`, where they are described.

    Attributes
    ----------
    tasks_ : ndarray
        Ids of the tasks.
    """

    def __init__(self, known: Known, layout: Layout, kept: Kept) -> None:
        self.known, self.layout, self.kept = known, layout, kept
        self.tasks_ = known.tasks

    @classmethod
    def from_archive(cls, archive: Archive) -> SequencesPredictor:
        """Rebuild from plain data, checking that its parts fit together."""
        return cls(known_from(archive), layout_from(archive), kept_from(archive, PlainFilters))

    def as_drawn(self) -> SequencesPredictor:
        """The same predictor, each draw with the transitions and the θ that it has, not summed out.

        For distances between models whose parameters are given (Ni et al. 2007, eq. 11): a sequence that tells about
        itself is less of a surprise to every one of them.
        """
        draws = tuple(draw._replace(row_counts=None, code_counts=None, statistics=None) for draw in self.kept.draws)
        return SequencesPredictor(self.known, self.layout, self.kept._replace(draws=draws))

    def score_samples(self, X: Any, lengths: Any = None, *, task: Any = None) -> Floats:
        """Natural log of the posterior predictive likelihood of each sequence."""
        arranged = self._receive(X, lengths, task)
        return _back(log_predictive(self.kept, arranged.sequences), arranged.origin)

    def score(self, X: Any, lengths: Any = None, *, task: Any = None) -> float:
        """Mean of :meth:`score_samples` over sequences; NaN where there are none."""
        found = self.score_samples(X, lengths, task=task)
        return float(found.mean()) if len(found) else float("nan")

    def predict(self, X: Any, lengths: Any = None, *, task: Any = None, decoding: str = "viterbi") -> NDArray[np.int64]:
        """Hidden states of every step, in the draw that tells them."""
        check_decoding(decoding)
        if decoding == "marginal":
            return np.asarray(self.predict_proba(X, lengths, task=task).argmax(axis=1))
        arranged = self._receive(X, lengths, task)
        return _back(most_probable_paths(self.kept, arranged.sequences), arranged.steps)

    def predict_proba(self, X: Any, lengths: Any = None, *, task: Any = None) -> Floats:
        """Probability of each hidden state of every step, in the draw of :meth:`predict`, or averaged over draws."""
        arranged = self._receive(X, lengths, task)
        return _back(state_probabilities(self.kept, arranged.sequences), arranged.steps)

    def segments(
        self, X: Any, lengths: Any = None, *, task: Any = None, decoding: str = "viterbi"
    ) -> dict[str, list[Any]]:
        """Runs of steps in one hidden state, as columns of a table."""
        return cut_into_segments(self.decode(X, lengths, task=task, decoding=decoding))

    def decode(self, X: Any, lengths: Any = None, *, task: Any = None, decoding: str = "viterbi") -> Decoded:
        """The hidden states of sequences with all that is told of them."""
        check_decoding(decoding)
        asked = receive_sequences(X, self.known, lengths=lengths, task=task)
        arranged = self._arrange(asked)
        sequences, steps = arranged.sequences, arranged.steps
        probabilities = _back(state_probabilities(self.kept, sequences), steps)
        if decoding == "marginal":
            states = probabilities.argmax(axis=1)
        else:
            states = _back(most_probable_paths(self.kept, sequences), steps)
        clusters = _back(clusters_in_best_draw(self.kept, sequences), arranged.origin)
        assert asked.lengths is not None
        names = names_of(self.kept, self.layout)
        return Decoded(states, probabilities, asked.lengths, clusters, *self._called(asked), names, asked.rows)

    def sequences_of(self, X: Any, lengths: Any = None, *, task: Any = None) -> dict[str, list[Any]]:
        """Which sequences a table has: their tasks, what they are called, and their lengths, as columns of a table."""
        asked = receive_sequences(X, self.known, lengths=lengths, task=task)
        assert asked.lengths is not None
        tasks, called = self._called(asked)
        return {"task": tasks, "sequence": called, "n_steps": asked.lengths.tolist()}

    def _called(self, asked: Asked) -> tuple[list[Any], list[Any]]:
        """The task of each sequence, and what it is called."""
        assert asked.lengths is not None
        n = len(asked.lengths)
        tasks = np.repeat(self.tasks_, n) if asked.task is None else asked.task
        return tasks.tolist(), list(range(n)) if asked.sequence is None else asked.sequence.tolist()

    def states(self) -> dict[str, list[Any]]:
        """The hidden states that tasks use, as columns of a table."""
        return state_table(states_of(self.kept, self.layout))

    def similar_states(self, threshold: float = NEAR) -> dict[str, list[Any]]:
        """Pairs of states that emit alike, as columns of a table."""
        kept = self.kept
        return similar_states(states_of(kept, self.layout), kept.emission, threshold, kept.seed)

    def differing_states(self, groups: Any = None, threshold: float = NEAR) -> dict[str, list[Any]]:
        """The states of groups of tasks, and the nearest to each that other groups use, as columns of a table."""
        kept = self.kept
        of_tasks = groups_of_tasks(groups, kept.best, self.tasks_.tolist())
        return differing_states(states_of(kept, self.layout), kept.emission, of_tasks, threshold, kept.seed)

    def classify(self, X: Any, lengths: Any = None) -> Floats:
        """Probability that each sequence is of each known task (n_sequences, n_tasks)."""
        found = log_predictive_of_tasks(self.kept, self.receive_of_no_task(X, lengths))
        shares = np.exp(found - found.max(axis=1, keepdims=True))
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def sample(
        self, n_samples: int = 1, *, lengths: Any = None, task: Any = None, random_state: Any = None
    ) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """New sequences, each from a draw of the posterior that is chosen at random, and their hidden states."""
        _check_count("n_samples", n_samples)
        total = int(np.sum(lengths)) if lengths is not None and n_samples == 1 else int(n_samples)
        steps = check_lengths(lengths, total)
        places = self._places_of(task, len(steps))
        rng = _generator(random_state)
        observations, states = draw_sequences(self.kept, places.tolist(), steps.tolist(), rng)
        return self.layout.values(observations), states

    def forecast(
        self,
        X: Any,
        lengths: Any = None,
        *,
        task: Any = None,
        n_steps: int = 1,
        n_samples: int = _N_PATHS,
        quantiles: Any = None,
        random_state: Any = None,
    ) -> Forecast:
        """How the observations after the end of each sequence are distributed."""
        _check_count("n_steps", n_steps)
        _check_count("n_samples", n_samples)
        levels = check_quantiles(_LEVELS if quantiles is None else quantiles)
        if quantiles is not None and all(channel.symbols is not None for channel in self.layout.channels):
            raise ValueError(f"quantiles={quantiles!r}: the model has columns of symbols alone, which have none")
        arranged = self._receive(X, lengths, task)
        rng = _generator(random_state)
        outlook = look_ahead(self.kept, arranged.sequences, int(n_steps), int(n_samples), rng)
        back = np.argsort(arranged.origin)
        layout = self.layout
        values = layout.values(outlook.paths)
        shape = (len(back), int(n_samples), int(n_steps), *values.shape[1:])
        samples = values.reshape(shape)[back]
        forecast = Forecast({}, {}, {}, samples, {}, tuple(levels.tolist()))
        for channel, moments in zip(layout.channels, outlook.moments, strict=True):
            for place, column in enumerate(channel.columns):
                called: Any = column if layout.names is None else layout.names[column]
                if channel.symbols is not None:
                    shares = moments.mean[back]
                    forecast.probability[called] = {
                        symbol: shares[:, :, code] for code, symbol in enumerate(channel.symbols)
                    }
                else:
                    forecast.mean[called] = moments.mean[back][:, :, place]
                    assert moments.deviation is not None
                    forecast.deviation[called] = moments.deviation[back][:, :, place]
                    drawn = (samples if layout.is_flat else samples[..., column]).astype(np.float64)
                    forecast.quantiles[called] = np.moveaxis(np.quantile(drawn, levels, axis=1), 0, -1)
        return forecast

    def receive_of_no_task(self, X: Any, lengths: Any) -> Sequences:
        """New sequences, coded, as if of one task."""
        asked = receive_sequences(X, self.known, lengths=lengths, needs_task=False)
        assert asked.lengths is not None
        place = np.zeros(len(asked.lengths), dtype=np.int64)
        observations = self.layout.observations(asked.table, asked.lengths, asked.rows)
        return arrange(observations, asked.lengths, place, 1).sequences

    def _receive(self, X: Any, lengths: Any, task: Any) -> Arranged:
        """New sequences, coded and laid out: those of new tasks first, then those of each known task."""
        asked = receive_sequences(X, self.known, lengths=lengths, task=task)
        arranged = self._arrange(asked)
        return arranged if asked.rows is None else arranged._replace(steps=asked.rows[arranged.steps])

    def _arrange(self, asked: Asked) -> Arranged:
        """Sequences as they came, those of new tasks first, then those of each known task; steps in their order."""
        assert asked.lengths is not None
        assert asked.place is not None
        n_tasks = len(self.tasks_)
        group = np.where(asked.place == n_tasks, 0, asked.place + 1)
        observations = self.layout.observations(asked.table, asked.lengths, asked.rows)
        return arrange(observations, asked.lengths, group, n_tasks + 1)

    def _places_of(self, task: Any, n_sequences: int) -> NDArray[np.int64]:
        if task is None:
            if len(self.tasks_) > 1:
                raise ValueError(f"the model was fitted to {len(self.tasks_)} tasks: say which one to draw, task=...")
            return np.zeros(n_sequences, dtype=np.int64)
        tasks = np.atleast_1d(np.asarray(task)) if np.ndim(task) == 0 else as_column(task, "task")
        if len(tasks) not in (1, n_sequences):
            raise ValueError(f"task has {len(tasks)} entries for {n_sequences} sequences")
        place = places_of(tasks, self.tasks_)
        return np.broadcast_to(np.where(place == len(self.tasks_), -1, place), n_sequences)


def _back(found: NDArray[Any], origin: NDArray[np.int64]) -> NDArray[Any]:
    """What was found of sequences or steps, in the order in which they came."""
    out = np.empty_like(found)
    out[origin] = found
    return out


def _check_count(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name}={value!r}: a whole number of at least 1 is needed")


def _generator(random_state: Any) -> np.random.Generator:
    """Random numbers that hang on a seed, or on a generator as scikit-learn takes them."""
    if random_state is None or random_state is np.random:
        random_state = np.random.mtrand._rand
    if not isinstance(random_state, np.random.RandomState):
        random_state = np.random.RandomState(random_state)
    return np.random.default_rng(random_state.randint(np.iinfo(np.int32).max))
