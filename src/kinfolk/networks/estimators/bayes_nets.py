"""The estimator: Bayes nets of related tasks, their structures learnt together (Niculescu-Mizil and Caruana)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from kinfolk.checkpoints import check_checkpoint
from kinfolk.estimator import TaskRouting
from kinfolk.interrupts import raise_if_interrupted
from kinfolk.networks.answers.archive import FittedNets, read, read_parameters, to_archive
from kinfolk.networks.answers.predictor import NetworksPredictor
from kinfolk.networks.estimators.answering import Answers
from kinfolk.networks.estimators.arcs import (
    LEARN,
    arc_log_odds,
    check_costs,
    knows_no_direction,
    make_constraints,
    make_starts,
    structure_log_odds,
    task_strengths,
    variable_strengths,
)
from kinfolk.networks.estimators.reading import Columns, Received, receive_data
from kinfolk.networks.inference.climb import Effort
from kinfolk.networks.inference.infer import infer
from kinfolk.networks.inference.structures import Hyper, Options
from kinfolk.networks.inference.validate import GRID
from kinfolk.networks.model.priors import strength
from kinfolk.networks.model.scores import CRITERIA
from kinfolk.parameters import check_choice, check_whole
from kinfolk.posterior import Archive
from kinfolk.progress import progress_bar, progress_wanted
from kinfolk.tasks.frames import make_frame

# How often the order of variables is disturbed in a search at most; and how often times the number of variables, and
# times its square, where these are many.
_ORDERS, _ORDERS_TIMES_VARIABLES, _ORDERS_TIMES_PAIRS = 30, 1_000, 200_000
# Most tasks with penalties of their own for pairs of tasks: their best states are found by branch and bound.
_MOST_BOUNDED = 12
_CHOICES = {
    "sharing": ("joint", "none", "identical", "pooled"),
    "prior": ("edit", "paired"),
    "criterion": tuple(CRITERIA),
    "search": ("auto", "orders", "classes", "climb"),
    "missing": ("error", "em"),
    "tables": ("independent", "shared"),
}


class BayesNets(TaskRouting, Answers, BaseEstimator):
    """Bayesian networks of several related tasks, one for each, whose structures are learnt together.

    Parameters
    ----------
    sharing : {"joint", "none", "identical", "pooled"}, default="joint"
        Structures that differ no more than the data ask for; every task for itself; one structure for all, each task
        with tables of its own; or all rows as one table, with one structure and one set of tables.
    prior : {"edit", "paired"}, default="edit"
        How differences between structures are counted: edits that make the arc between two variables the same in all
        tasks (eq. 7), or differences between every two tasks (eq. 8).
    penalty : float, "learn" or "validate", default="learn"
        δ from 0 (separate structures) to 1 (identical ones). ``"learn"`` infers it along with the structures;
        ``"validate"`` tries the values of a logarithmic grid on rows held out.
    criterion : {"bdeu", "k2", "bic", "bhd"}, default="bdeu"
        Score of one structure given its task's rows. ``"bhd"``, a hierarchical Dirichlet score, is one of the rows of
        all tasks together, whose probabilities differ around common ones: for ``sharing="identical"`` alone, and for
        tasks that have all variables.
    ess : float, default=1.0
        Equivalent sample size of BDeu, and of what BHD believes of the common probabilities.
    max_parents : int, optional
        Most parents that a variable may have.
    tabu : int, default=10
        Length of the tabu list: how many steps the search goes on without a new best, never undoing what it did in as
        many steps; 0 stops at the first optimum.
    restarts : int, default=0
        How often the best structures are disturbed and searched from again; ``restarts=0, tabu=0`` is one plain climb.
    search : {"auto", "orders", "classes", "climb"}, default="auto"
        Where the search of a single structure begins: at what a search over orders of the variables finds from
        ``start``, disturbed thirty times, less often with more than 80 variables; at what a greedy search over
        equivalence classes (GES) finds; or at ``start`` itself. With "orders", a joint search goes on from an order
        that all tasks have in common, too, disturbed thirty times by the number of tasks. Classes need "bdeu" or "bic",
        a ``structure_prior`` that gives both directions of every arc the same probability, and no required or forbidden
        arcs and no tiers. "auto" is "orders", unless a plain climb is asked for.
    start : graph, list of arcs, or mapping from tasks to these, optional
        Structures to begin with; empty ones by default.
    required, forbidden : list of arcs, optional
        Arcs, as pairs of variables, that every structure must or must not have.
    tiers : list of lists of variables, optional
        Variables in the order of time: no arc leads from a later tier to an earlier one. Variables that are in none may
        have arcs to and from any.
    structure_prior : "sparse", "learn", "uniform", float, mapping or (graph, float), default="sparse"
        Prior of each structure. ``"sparse"``: every arc has probability 1 / n_variables,
        which expects about one arc a variable and keeps small tables from superfluous ones; a number is such a
        probability, and ``"learn"`` infers it with the structures (their joint posterior mode). ``"uniform"`` or None
        is the paper's: all structures are as likely. Or probabilities of single arcs, all others being as likely as
        not; or a graph believed to be near the true one and the factor, at most 1, by which each difference from it
        makes a structure less likely. In a joint search of k tasks the paper's exponent weakens all of these: log odds
        are divided by 1 + (k − 1) δ, so that an arc of all tasks is paid for about once. An arc of odds o has in each
        task the effective odds o^(1 / (1 + (k − 1) δ)): with 40 variables, 5 tasks and δ = 0.99 a probability of 0.32
        in place of 0.025.
    costs : mapping, optional
        Costs of kinds of edits: "add", "remove" and "reverse" with the Edit prior, 1 each by default; "arc" and
        "reverse" with the Paired prior, 1 and 2 by default.
    arc_penalty : mapping, optional
        Penalties δ of pairs of variables, where they differ from ``penalty``; factors on λ where that is "learn".
    task_penalty : mapping, optional
        Penalties δ of pairs of tasks, where they differ from ``penalty`` (Paired prior, and a number as ``penalty``).
        The time of a step then grows exponentially with the number of tasks at worst; more than 12 are refused.
    tables : {"independent", "shared"}, default="independent"
        Whether tables are learnt for each task by itself, or with a hierarchical prior that lets tasks borrow rows.
    missing : {"error", "em"}, default="error"
        What to do about missing values: refuse them, or learn by structural EM.
    bootstrap : int, default=0
        Number of resamples from which ``arc_confidence_`` is made.
    validation : float, default=0.05
        Share of each task's rows held out by ``penalty="validate"``.
    task_column, new_tasks, categorical_features, bins
        As for the naive Bayes estimators: the column that holds the task; whether to warn of new ones; which columns
        are categories; how others are cut.
    random_state : int, RandomState or None
    n_jobs : int, optional
        Threads for tasks and resamples; results do not depend on it.
    verbose : bool, optional
        Show progress on standard error; by default on a terminal, once it takes more than a second.
    checkpoint : path, optional
        A folder in which a fit keeps each search that has ended, resamples, and where restarts and rounds of EM are:
        one that was stopped, by ``kill -9`` even, goes on when it is started again, and ends with the same result to
        the last bit. It needs a whole number as ``random_state``.

    Attributes
    ----------
    tasks_ : ndarray
        Ids of the tasks.
    graphs_ : dict
        A ``networkx.DiGraph`` for each task.
    networks_ : dict
        A :class:`~kinfolk.networks.model.network.Network`, structure and tables, for each task.
    log_score_ : float
        Log posterior of the structures, up to the joint prior's normaliser.
    penalty_, strength_ : float
        δ that was used, and λ = −ln(1 − δ), which keeps its digits near δ = 1.
    arc_probability_ : float
        Of any arc, before any rows: what ``structure_prior`` gave or learnt, 1/2 where it is uniform or by arc.
    penalty_curve_ : frame
        With ``penalty="validate"``: mean log likelihood of the rows held out, for each value of the grid.
    arc_confidence_ : frame
        With ``bootstrap``: how often each arc of each task was found in resamples.
    interrupted_ : bool
        Whether Ctrl-C ended the fit early: with the best structures by then (of tasks that had not been searched,
        those to begin with), after a round of structural EM, or with some of the resamples.

    Notes
    -----
    Searches hold about 50 bytes for each pair of variables and task, 40 for each row and variable, and at most 256 MiB
    of remembered scores, however many variables and tasks there are.

    References
    ----------
    A. Niculescu-Mizil and R. Caruana, "Inductive Transfer for Bayesian Network Structure Learning", AISTATS 2007.

    L. Azzimonti, G. Corani and M. Scutari, "A Bayesian Hierarchical Score for Structure Learning from Related Data
    Sets", International Journal of Approximate Reasoning 142, 2022 (``criterion="bhd"``).

    Examples
    --------
    >>> from kinfolk.datasets import make_related_networks, sample_tasks
    >>> networks = make_related_networks("asia", 3, p_delete=0.1, random_state=0)
    >>> model = BayesNets().fit(sample_tasks(networks, 500, random_state=0))
    >>> len(model.graphs_), sorted(model.graphs_[0].nodes)[:3]
    (3, ['asia', 'bronc', 'dysp'])
    """

    # How tables are read where tasks are something else: the classes of a classifier, say.
    _columns: ClassVar[Columns] = Columns()

    def __init__(
        self,
        *,
        sharing: str = "joint",
        prior: str = "edit",
        penalty: float | str = "learn",
        criterion: str = "bdeu",
        ess: float = 1.0,
        max_parents: int | None = None,
        tabu: int = 10,
        restarts: int = 0,
        search: str = "auto",
        start: Any = None,
        required: Any = None,
        forbidden: Any = None,
        tiers: Any = None,
        structure_prior: Any = "sparse",
        costs: Mapping[str, float] | None = None,
        arc_penalty: Mapping[Any, float] | None = None,
        task_penalty: Mapping[Any, float] | None = None,
        tables: str = "independent",
        missing: str = "error",
        bootstrap: int = 0,
        validation: float = 0.05,
        task_column: str | int | None = None,
        new_tasks: str = "warn",
        categorical_features: str | Sequence[Any] = "auto",
        bins: int | Mapping[Any, Any] = 8,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool | None = None,
        checkpoint: str | PathLike[str] | None = None,
    ) -> None:
        self.sharing = sharing
        self.prior = prior
        self.penalty = penalty
        self.criterion = criterion
        self.ess = ess
        self.max_parents = max_parents
        self.tabu = tabu
        self.restarts = restarts
        self.search = search
        self.start = start
        self.required = required
        self.forbidden = forbidden
        self.tiers = tiers
        self.structure_prior = structure_prior
        self.costs = costs
        self.arc_penalty = arc_penalty
        self.task_penalty = task_penalty
        self.tables = tables
        self.missing = missing
        self.bootstrap = bootstrap
        self.validation = validation
        self.task_column = task_column
        self.new_tasks = new_tasks
        self.categorical_features = categorical_features
        self.bins = bins
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.checkpoint = checkpoint

    def fit(self, X: Any, y: None = None, *, task: Any = None) -> Self:
        """Learn a network for every task.

        Parameters
        ----------
        X : frame or array of shape (n_rows, n_variables), or mapping from tasks to such tables
            pandas, polars, pyarrow or numpy. In a mapping, tables may have different columns.
        y : None
            Not used.
        task : array-like of shape (n_rows,), optional
            The task that each row belongs to. Without it, and without ``task_column``, all rows are one task.

        Returns
        -------
        self

        See Also
        --------
        score_samples : How likely rows are.
        query : Some variables given the values of others.
        """
        self._check_parameters()
        columns = self._columns._replace(
            task_column=self.task_column,
            new_tasks=self.new_tasks,
            categorical_features=self.categorical_features,
            bins=self.bins,
            model=type(self).__name__,
            sharing=self.sharing,
        )
        received = receive_data(X, task, columns)
        self._check_complete(received)
        hyper, options = self._hyper_and_options(received)
        if options.criterion.hierarchical:
            self._check_alike(received, options)
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        n_steps = (len(GRID) if options.validation else 0) + options.bootstrap
        with progress_bar("Learning networks", n_steps or None, progress_wanted(self.verbose)) as advance:
            hyper, fitted = infer(received.data, hyper, options, seed, advance)
        fitted = fitted.reordered(received.data.variables, received.schema.names)
        self._keep(
            FittedNets(
                received.known, received.schema, received.backend, seed, hyper.strength, fitted, hyper.arc_log_odds
            )
        )
        return raise_if_interrupted(self)

    def _check_parameters(self) -> None:
        for name, choices in _CHOICES.items():
            check_choice(name, getattr(self, name), choices)
        for name in ("tabu", "restarts", "bootstrap"):
            check_whole(name, getattr(self, name), 0)
        if self.max_parents is not None:
            check_whole("max_parents", self.max_parents, 0)
        if isinstance(self.ess, bool) or not (
            isinstance(self.ess, int | float | np.number) and 0 < self.ess < math.inf
        ):
            raise ValueError(f"ess={self.ess!r}: a positive number is needed")
        if not (isinstance(self.validation, float | np.floating) and 0 < self.validation < 1):
            raise ValueError(f"validation={self.validation!r}: a share between 0 and 1 is needed")
        number = isinstance(self.penalty, int | float | np.number) and not isinstance(self.penalty, bool)
        if self.penalty not in ("learn", "validate") and not (number and 0 <= float(self.penalty) <= 1):
            raise ValueError(f'penalty={self.penalty!r}: a number from 0 to 1, "learn" or "validate" is needed')
        for name in ("costs", "arc_penalty", "task_penalty"):
            if not isinstance(getattr(self, name), Mapping | None):
                raise ValueError(f"{name}={getattr(self, name)!r}: a mapping is needed")
        if self.task_penalty and not (self.prior == "paired" and number):
            raise ValueError('task_penalty needs prior="paired" and a number as penalty')
        if self.task_penalty and self.arc_penalty:
            raise ValueError("task_penalty and arc_penalty were both given: one of them is needed")
        if CRITERIA[self.criterion].hierarchical and self.sharing != "identical":
            raise ValueError(
                f"criterion={self.criterion!r} scores one structure of all tasks together: it needs "
                f"sharing='identical', not {self.sharing!r}"
            )
        if self.search == "classes" and not self._classes_can_be():
            raise ValueError(
                'search="classes" needs the criterion "bdeu" or "bic", a structure_prior that gives both '
                "directions of every arc the same probability, no required or forbidden arcs and no tiers"
            )

    def _classes_can_be(self) -> bool:
        """Whether all structures of an equivalence class are worth the same, and all are allowed."""
        ruled = any(rule is not None for rule in (self.required, self.forbidden, self.tiers))
        free = knows_no_direction(self.structure_prior) and not ruled
        return free and CRITERIA[self.criterion].equivalent

    def _check_complete(self, received: Received) -> None:
        """Refuse missing values where they cannot be."""
        gap = received.gap
        if gap is not None and self.missing == "error":
            raise ValueError(
                f'{gap}: a value is missing; fill it in, or learn with missing="em" (Input X contains NaN)'
            )
        if gap is not None and self.bootstrap:
            raise ValueError(f"{gap}: a value is missing, and bootstrap= needs complete rows: fill it in first")
        if gap is not None and self._validates(received):
            raise ValueError('penalty="validate" needs complete rows: with missing="em", use "learn" or a number')

    def _check_alike(self, received: Received, options: Options) -> None:
        """Refuse tasks that a hierarchical score cannot take as parts of one table."""
        if not received.data.present.all():
            t, v = np.argwhere(~received.data.present)[0]
            task, variable = received.known.tasks.tolist()[t], received.data.variables[v]
            raise ValueError(
                f"task {task!r} has no variable {variable!r}: criterion={self.criterion!r} needs all of them"
            )
        if (options.starts != options.starts[0]).any():
            raise ValueError(f"start= differs between tasks: criterion={self.criterion!r} needs one for all")

    def _validates(self, received: Received) -> bool:
        return self.penalty == "validate" and self.sharing == "joint" and len(received.data.codes) > 1

    def _hyper_and_options(self, received: Received) -> tuple[Hyper, Options]:
        data, tasks = received.data, received.known.tasks.tolist()
        validation = float(self.validation) if self._validates(received) else 0.0
        plain, n = not (self.tabu or self.restarts), len(data.variables)
        if self.task_penalty and len(tasks) > _MOST_BOUNDED:
            raise ValueError(
                f"task_penalty: there are {len(tasks)} tasks, and at most {_MOST_BOUNDED} can be, since time grows "
                "exponentially with them: give one penalty for all"
            )
        check_costs(self.prior, self.costs or {})
        learnt = self.penalty in ("learn", "validate")
        base = 1.0 if learnt else strength(float(self.penalty))
        hyper = Hyper(
            variable_strengths(base, self.arc_penalty, data.variables, learnt),
            task_strengths(base, self.task_penalty, tasks),
            learnt,
            arc_log_odds=arc_log_odds(self.structure_prior, int((~received.constant).sum())),
            arcs_learnt=isinstance(self.structure_prior, str) and self.structure_prior == LEARN,
        )
        constraints = make_constraints(
            self.required, self.forbidden, self.tiers, self.max_parents, data.variables, received.constant
        )
        options = Options(
            sharing=self.sharing,
            prior=self.prior,
            costs=dict(self.costs or {}),
            criterion=CRITERIA[self.criterion],
            ess=float(self.ess),
            constraints=constraints,
            log_odds=structure_log_odds(self.structure_prior, data.variables),
            starts=make_starts(self.start, tasks, data.present, data.variables, constraints),
            effort=Effort(
                int(self.tabu),
                int(self.restarts),
                max(5, n // 4),
                min(_ORDERS, max(_ORDERS_TIMES_VARIABLES // n, _ORDERS_TIMES_PAIRS // n**2)),
            ),
            first=self.search if self.search != "auto" else "climb" if plain else "orders",
            share_tables=self.tables == "shared",
            validation=validation,
            bootstrap=int(self.bootstrap),
            n_jobs=self.n_jobs,
            checkpoint=check_checkpoint(self.checkpoint, self.random_state),
        )
        return hyper, options

    @property
    def interrupted_(self) -> bool:
        """Whether Ctrl-C ended the fit early: what there was by then is here."""
        check_is_fitted(self)
        return self._model.fitted.interrupted

    def _keep(self, model: FittedNets) -> None:
        for name in ("arc_confidence_", "penalty_curve_", "n_iter_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        self._remember_columns(model.known)
        self._model, self._answers = model, NetworksPredictor(model)
        self.tasks_, self.networks_ = model.known.tasks, self._answers.networks_
        fitted = model.fitted
        self.log_score_, self.strength_, self.penalty_ = fitted.log_score, model.strength, -math.expm1(-model.strength)
        self.arc_probability_ = 1 / (1 + math.exp(-model.arc_log_odds))
        if fitted.n_rounds is not None:
            self.n_iter_ = fitted.n_rounds
        if fitted.curve is not None:
            columns = {
                "penalty": (-np.expm1(-fitted.curve.strengths)).tolist(),
                "strength": fitted.curve.strengths.tolist(),
                "log_likelihood": fitted.curve.log_likelihood.tolist(),
            }
            self.penalty_curve_ = make_frame(columns, model.backend)
        if fitted.arc_confidence is not None:
            shares, names, tasks = fitted.arc_confidence, model.schema.names, self.tasks_.tolist()
            arcs = np.argwhere(shares > 0).tolist()
            columns = {
                "task": [tasks[t] for t, _, _ in arcs],
                "parent": [names[i] for _, i, _ in arcs],
                "child": [names[j] for _, _, j in arcs],
                "confidence": [float(shares[t, i, j]) for t, i, j in arcs],
                "either_way": [float(shares[t, i, j] + shares[t, j, i]) for t, i, j in arcs],
            }
            self.arc_confidence_ = make_frame(columns, model.backend)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "em"
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "networks_")

    def _to_archive(self) -> Archive:
        check_is_fitted(self)
        # A folder of checkpoints is of this machine alone.
        params = {name: value for name, value in self.get_params(deep=False).items() if name != "checkpoint"}
        return to_archive(self._model, params)

    @classmethod
    def _from_archive(cls, archive: Archive) -> Self:
        model = cls(**read_parameters(archive))
        model._keep(read(archive))
        return model
