"""What the infinite hidden Markov models have in common: parameters, the fit, and what it leaves behind."""

from __future__ import annotations

import warnings
from functools import partial
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from kinfolk.checkpoints import check_checkpoint
from kinfolk.estimator import TaskRouting
from kinfolk.interrupts import raise_if_interrupted
from kinfolk.partition.concentration import GammaPrior
from kinfolk.posterior import Archive, known_from, unplain
from kinfolk.progress import progress_wanted
from kinfolk.sequences.answers.archive import fitted_from, kept_from, layout_from, to_archive
from kinfolk.sequences.answers.compiled_filters import CompiledFilters
from kinfolk.sequences.answers.forecasting import draw_empty_clusters
from kinfolk.sequences.answers.layout import arrange
from kinfolk.sequences.answers.prediction import Kept
from kinfolk.sequences.answers.predictor import SequencesPredictor
from kinfolk.sequences.estimators.answers import Answers
from kinfolk.sequences.estimators.columns import learn_layout
from kinfolk.sequences.inference import gibbs, variational
from kinfolk.sequences.inference.options import Options, Schedule
from kinfolk.sequences.inference.state_merges import fit_from_blocks
from kinfolk.sequences.model.draw import HyperParameters
from kinfolk.sequences.model.emissions.emission import Emission
from kinfolk.sequences.model.emissions.families import choose_emission
from kinfolk.sequences.model.fitted import Fitted
from kinfolk.sequences.model.ndp_ihmm import ClusterPrior, Priors
from kinfolk.sequences.model.sequences import Sequences
from kinfolk.tasks.sequences import join_sequences
from kinfolk.tasks.table import is_flat
from kinfolk.tasks.training import receive_table
from kinfolk.tasks.whole_fits import all_or_nothing

LEARN = "learn"
INFERENCE = {"gibbs": gibbs.infer, "variational": variational.infer}
_LEARNT_OR_GIVEN = (
    "concentration",
    "state_concentration",
    "transition_concentration",
    "emission_strength",
    "stickiness",
)
_LEAST = {"n_states": 1, "n_clusters": 1, "n_chains": 1, "n_burn_in": 0, "n_draws": 1, "thin": 1}


class SequenceModel(TaskRouting, Answers, BaseEstimator):
    """Base class; a subclass says who shares with whom."""

    # Parameters, set by the subclasses' constructors.
    n_states: int
    emission: Any
    symbols: Any
    emission_strength: float | str
    state_concentration: float | str
    transition_concentration: float | str
    stickiness: float | str
    inference: str
    n_chains: int
    n_burn_in: int
    n_draws: int
    thin: int
    random_state: Any
    task_column: str | int | None
    sequence_column: str | int | None
    order_column: str | int | None = None
    new_tasks: str
    n_jobs: int | None
    verbose: bool | None
    checkpoint: str | PathLike[str] | None

    def fit(self, X: Any, lengths: Any = None, *, task: Any = None) -> Self:
        """Learn from sequences of all tasks.

        Parameters
        ----------
        X : array-like of shape (n_steps,) or (n_steps, n_columns), or list of such arrays or of frames
            Sequences one after the other, as hmmlearn takes them: a column of symbols or numbers, or a table of them
            from pandas, polars, pyarrow or numpy; or a list with an array or a frame for each sequence. ``None`` or NaN
            where an observation is missing.
        lengths : array-like of shape (n_sequences,), optional
            Steps of each sequence. Without it, without a list and without ``sequence_column`` all rows are one, or
            those of each task where there is a ``task_column``.
        task : array-like of shape (n_sequences,), optional
            The task of each sequence; sequences of a task need not follow each other. Without it, and without
            ``task_column``, all sequences are of one task.

        Returns
        -------
        self

        See Also
        --------
        kinfolk.save : Keep what was learnt.
        """
        self._check_parameters()
        with all_or_nothing(self):
            X, lengths = join_sequences(X, lengths)
            arrival = receive_table(
                X,
                model=type(self).__name__,
                lengths=lengths,
                sequence_column=self.sequence_column,
                order_column=self.order_column,
                task=task,
                task_column=self.task_column,
                sequences=True,
                new_tasks=self.new_tasks,
            )
            layout, tasks = learn_layout(arrival, is_flat(X), self.emission, self.symbols), arrival.known.tasks
            assert arrival.lengths is not None
            observations = layout.observations(arrival.table, arrival.lengths, arrival.rows)
            sequences = arrange(observations, arrival.lengths, arrival.place, len(tasks)).sequences
            emission = choose_emission(
                sequences.observations,
                [channel.kind for channel in layout.channels],
                None if self.emission_strength == LEARN else float(self.emission_strength),
                n_codes=[None if channel.symbols is None else len(channel.symbols) for channel in layout.channels],
            )
            seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
            options = self._options(tasks)
            hyper, fitted = self._infer(sequences, emission, options, seed)
            kept = self._kept(fitted, emission, options.n_clusters, seed)
            self._keep(SequencesPredictor(arrival.known, layout, kept), hyper, fitted)
            self._backend = arrival.backend
            judged = None if fitted.interrupted else fitted.convergence
            if judged is not None and not judged.converged:
                warnings.warn(judged.advice(), ConvergenceWarning, stacklevel=2)
        return raise_if_interrupted(self)

    def _infer(
        self, sequences: Sequences, emission: Emission, options: Options, seed: int
    ) -> tuple[HyperParameters, Fitted]:
        """Hyper-parameters, and all that inference leaves behind."""
        return INFERENCE[self.inference](sequences, emission, self._priors(), options, seed)

    def _kept(self, fitted: Fitted, emission: Emission, n_clusters: int | None, seed: int) -> Kept:
        """What prediction needs of a fit."""
        empty = draw_empty_clusters(fitted.draws, emission, np.random.default_rng([seed, 1]))
        filters = CompiledFilters(emission, self.n_jobs)
        rooms = fitted.draw_rooms
        weights = fitted.draw_weights
        return Kept(fitted.draws, empty, n_clusters, seed, emission, filters, weights, rooms, fitted.central)

    @property
    def interrupted_(self) -> bool:
        """Whether Ctrl-C ended the fit early: what there was by then is here."""
        check_is_fitted(self)
        return self.posterior_.interrupted

    def _keep(self, predictor: SequencesPredictor, hyper: HyperParameters, fitted: Fitted) -> None:
        """Hold the values that inference returned, and the predictor that they make."""
        self._remember_columns(predictor.known)
        self.tasks_, self.posterior_, self.emission_ = predictor.tasks_, fitted, predictor.kept.emission
        self._answers, self._hyper = predictor, hyper

    def _check_parameters(self) -> None:
        if self.inference not in INFERENCE:
            raise ValueError(f'inference={self.inference!r}: give "gibbs" or "variational"')
        parameters = self.get_params(deep=False)
        for name, least in _LEAST.items():
            value = parameters.get(name, least)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
                raise ValueError(f"{name}={value!r}: a whole number of at least {least} is needed")
        for name in _LEARNT_OR_GIVEN:
            value = parameters.get(name, LEARN)
            is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
            above = is_number and np.isfinite(value) and (value > 0 or (name == "stickiness" and value == 0))
            if not above and not (isinstance(value, str) and value == LEARN):
                least_number = "not below" if name == "stickiness" else "above"
                raise ValueError(f'{name}={value!r}: a finite number {least_number} zero or "learn" is needed')

    def _priors(self) -> Priors:
        """What is believed of the hyper-parameters: those to learn have exponential priors with mean one."""
        given = (
            getattr(self, "concentration", 1.0),
            self.state_concentration,
            self.transition_concentration,
            self.emission_strength,
            self.stickiness,
        )
        return Priors(*(GammaPrior() if isinstance(value, str) else float(value) for value in given))

    def _options(self, tasks: NDArray[Any]) -> Options:
        schedule = Schedule(int(self.n_chains), int(self.n_burn_in), int(self.n_draws), int(self.thin))
        n_clusters, partition = self._n_clusters(), self._starting_partition(tasks)
        return Options(
            int(self.n_states),
            n_clusters,
            partition,
            schedule,
            self.n_jobs,
            progress_wanted(self.verbose),
            check_checkpoint(self.checkpoint, self.random_state),
        )

    def _n_clusters(self) -> int | None:
        """How many clusters the model has room for; None where tasks never share."""
        raise NotImplementedError  # abstract

    def _starting_partition(self, tasks: NDArray[Any]) -> NDArray[np.int64] | None:
        """The cluster of each task to start from; None where it is to be found."""
        return np.zeros(len(tasks), dtype=np.int64)

    def _log_evidence_alone(self, sequences: Sequences) -> float:
        """Bound on the log evidence of sequences as those of one task on its own, by the mean hyper-parameters."""
        prior = ClusterPrior.of(self._hyper, int(self.n_states))
        rng = np.random.default_rng([self._answers.kept.seed, 2])
        return fit_from_blocks(sequences, self.emission_.with_strength(self._hyper.strength), prior, rng).bound

    def _to_archive(self) -> Archive:
        predictor = self._predictor()
        params = self.get_params(deep=False)
        del params["checkpoint"]  # of this machine alone
        if not isinstance(params["random_state"], int | np.integer | None):
            params["random_state"] = predictor.kept.seed
        return to_archive(params, predictor.known, predictor.layout, predictor.kept, self.posterior_)

    @classmethod
    def _from_archive(cls, archive: Archive) -> Self:
        model = cls(**{name: unplain(value) for name, value in archive.about["params"].items()})
        model._check_parameters()
        kept = kept_from(archive, partial(CompiledFilters, n_jobs=model.n_jobs))
        if kept.n_clusters != model._n_clusters():
            raise ValueError(f"it has room for {kept.n_clusters} clusters, its parameters for {model._n_clusters()}")
        fitted = fitted_from(archive, kept)
        predictor = SequencesPredictor(known_from(archive), layout_from(archive), kept)
        model._keep(predictor, fitted.mean_hyper(), fitted)
        return model

    def _predictor(self) -> SequencesPredictor:
        """The object that answers; an error where the estimator is not fitted."""
        check_is_fitted(self)
        return self._answers

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "posterior_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "density_estimator"
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags
