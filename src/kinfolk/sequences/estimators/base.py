"""What the infinite hidden Markov models have in common: the way in, the fit, and what it leaves behind."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from kinfolk.partition.concentration import GammaPrior
from kinfolk.posterior import Archive
from kinfolk.progress import progress_bar
from kinfolk.sequences.answers.archive import from_archive, to_archive
from kinfolk.sequences.answers.compiled_filters import CompiledFilters
from kinfolk.sequences.answers.door import Arrival, arrange, learn_layout, place_tasks, receive
from kinfolk.sequences.answers.forecasting import draw_empty_clusters
from kinfolk.sequences.answers.new_tasks import Empty
from kinfolk.sequences.answers.prediction import Kept
from kinfolk.sequences.estimators.answers import Answers
from kinfolk.sequences.inference.chains import Schedule, run_chains
from kinfolk.sequences.inference.mean_field import Hyper
from kinfolk.sequences.inference.starts import GibbsSampler
from kinfolk.sequences.inference.task_set_fits import fit_from_blocks
from kinfolk.sequences.inference.variational import draws_of, fit_approximately
from kinfolk.sequences.model.emissions.choosing import choose_emission
from kinfolk.sequences.model.emissions.emission import Emission
from kinfolk.sequences.model.fitted import Fitted
from kinfolk.sequences.model.ndp_ihmm import Priors
from kinfolk.sequences.model.sequences import Sequences
from kinfolk.tasks.whole_fits import all_or_nothing

LEARN = "learn"
_LEARNT_OR_GIVEN = (
    "concentration",
    "state_concentration",
    "transition_concentration",
    "emission_strength",
    "stickiness",
)
_LEAST = {"n_states": 1, "n_clusters": 1, "n_chains": 1, "n_burn_in": 0, "n_draws": 1, "thin": 1}


class SequenceModel(Answers, BaseEstimator):
    """Base class; a subclass says who shares with whom, and infers."""

    # scikit-learn's metadata routing passes these on without further requests.
    __metadata_request__fit: ClassVar = {"lengths": True, "task": True}
    __metadata_request__score: ClassVar = {"lengths": True, "task": True}
    __metadata_request__predict: ClassVar = {"lengths": True, "task": True}
    __metadata_request__predict_proba: ClassVar = {"lengths": True, "task": True}

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
    n_jobs: int | None
    verbose: bool

    def fit(self, X: Any, lengths: Any = None, *, task: Any = None) -> Self:
        """Learn from sequences of all tasks.

        Parameters
        ----------
        X : array-like of shape (n_steps,) or (n_steps, n_columns)
            Sequences one after the other, as hmmlearn takes them: a column of symbols or numbers, or a table of them
            from pandas, polars, pyarrow or numpy. ``None`` or NaN where an observation is missing.
        lengths : array-like of shape (n_sequences,), optional
            Steps of each sequence. Without it all rows are one sequence.
        task : array-like of shape (n_sequences,), optional
            The task of each sequence; sequences of a task need not follow each other. Without it all sequences are of
            one task.

        Returns
        -------
        self
        """
        self._check_parameters()
        with all_or_nothing(self):
            self._learn(X, receive(X, lengths, task))
        return self

    def _check_parameters(self) -> None:
        if self.inference not in ("gibbs", "variational"):
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

    def _learn(self, X: Any, arrival: Arrival) -> None:
        self._check_columns(X, arrival, reset=True)
        layout = learn_layout(X, arrival, self.emission, self.symbols)
        tasks, place = place_tasks(arrival)
        arranged = arrange(layout.observations(arrival.table), arrival.lengths, place)
        emission = choose_emission(
            arranged.sequences.observations,
            [channel.kind for channel in layout.channels],
            None if self.emission_strength == LEARN else float(self.emission_strength),
            n_codes=[None if channel.symbols is None else len(channel.symbols) for channel in layout.channels],
        )
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        self.tasks_, self._layout, self._seed = tasks, layout, seed
        fitted = self._infer(arranged.sequences, emission, seed)
        self._keep(fitted, emission, draw_empty_clusters(fitted.draws, emission, np.random.default_rng([seed, 1])))
        if fitted.convergence is not None and not fitted.convergence.converged:
            warnings.warn(fitted.convergence.advice(), ConvergenceWarning, stacklevel=3)

    def _keep(self, fitted: Fitted, emission: Emission, empty: Empty) -> None:
        self.posterior_, self.emission_ = fitted, emission
        self._kept = Kept(fitted.draws, empty, self._n_clusters(), self._seed, CompiledFilters(emission, self.n_jobs))

    def _check_columns(self, X: Any, arrival: Arrival, reset: bool) -> None:
        """Hold columns to scikit-learn's rules: their number and names are those seen at fit."""
        if not arrival.is_flat and (hasattr(X, "shape") or isinstance(X, list | tuple)):
            validate_data(self, X, skip_check_array=True, reset=reset)
        elif reset:
            self.n_features_in_ = len(arrival.table.columns)
            self.__dict__.pop("feature_names_in_", None)
        elif arrival.is_flat and self.n_features_in_ > 1:
            raise ValueError(
                f"X is one column, and the model was fitted to {self.n_features_in_}. Reshape your data, if it is a "
                "single step by X.reshape(1, -1)"
            )

    def _priors(self) -> Priors:
        """What is believed of the hyper-parameters: those to learn have exponential priors with mean one."""

        def prior(given: float | str) -> GammaPrior | float:
            return GammaPrior() if isinstance(given, str) else float(given)

        return Priors(
            clusters=prior(getattr(self, "concentration", 1.0)),
            states=prior(self.state_concentration),
            transitions=prior(self.transition_concentration),
            strength=prior(self.emission_strength),
            stickiness=prior(self.stickiness),
        )

    def _schedule(self) -> Schedule:
        return Schedule(int(self.n_chains), int(self.n_burn_in), int(self.n_draws), int(self.thin))

    def _infer_clusters(
        self,
        sequences: Sequences,
        emission: Emission,
        n_clusters: int,
        partition: NDArray[np.int64] | None,
        seed: int,
        n_alongside: int = 1,
    ) -> Fitted:
        """Infer as the parameters say, beside so many other models of the same kind."""
        if self.inference == "variational":
            with progress_bar("Fitting", None, bool(self.verbose)):
                shape = (n_clusters, int(self.n_states))
                mixture = fit_approximately(sequences, emission, self._priors(), *shape, partition, seed)
                return draws_of(mixture, int(self.n_draws), np.random.default_rng([seed, 3]), n_alongside)
        schedule = self._schedule()
        # Chains have threads of their own; a lone chain has them for its tasks.
        inner, outer = (self.n_jobs, 1) if schedule.n_chains == 1 else (1, self.n_jobs)
        shape = (n_clusters, int(self.n_states))
        sampler = GibbsSampler(
            sequences, emission, self._priors(), *shape, partition, n_jobs=inner, n_learning=schedule.n_burn_in
        )
        with progress_bar("Sampling", schedule.n_chains * schedule.n_sweeps, bool(self.verbose)) as advance:
            return run_chains(sampler, schedule, seed, outer, advance)

    def _log_evidence_alone(self, sequences: Sequences) -> float:
        """Bound on the log evidence of sequences as those of one task on its own, by the mean hyper-parameters."""
        mean = {name: float(drawn.mean()) for name, drawn in self.posterior_.traces.hyper_parameters.items()}
        stickiness = float(np.mean([draw.stickiness for draw in self.posterior_.draws]))
        hyper = Hyper(mean["gamma"], mean["alpha"], stickiness, int(self.n_states))
        rng = np.random.default_rng([self._seed, 2])
        return fit_from_blocks(sequences, self.emission_.with_strength(mean["strength"]), hyper, rng).bound

    def _infer(self, sequences: Sequences, emission: Emission, seed: int) -> Fitted:
        raise NotImplementedError  # abstract

    def _n_clusters(self) -> int | None:
        """How many clusters the model has room for; None where tasks never share."""
        raise NotImplementedError  # abstract

    def _to_archive(self) -> Archive:
        check_is_fitted(self)
        return to_archive(self)

    @classmethod
    def _from_archive(cls, archive: Archive) -> Self:
        model: Self = from_archive(cls, archive)
        return model

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "posterior_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "density_estimator"
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags
