"""The estimator: Bayes nets of related tasks, their structures learnt together (Niculescu-Mizil and Caruana)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from kinfolk.estimator import TaskRouting
from kinfolk.networks.answers.archive import from_archive, to_archive
from kinfolk.networks.answers.rows import by_task
from kinfolk.networks.estimators.answering import Answers
from kinfolk.networks.estimators.arcs import make_constraints, make_starts, task_strengths, variable_strengths
from kinfolk.networks.estimators.reading import learn_tables_of
from kinfolk.networks.inference.assembly import assemble
from kinfolk.networks.inference.bootstrap import arc_confidence, confidence_columns
from kinfolk.networks.inference.em import learn_from_incomplete
from kinfolk.networks.inference.restarts import Effort
from kinfolk.networks.inference.structures import Plan, learn_structures
from kinfolk.networks.inference.validate import GRID, choose_strength, scaled
from kinfolk.networks.model.cases import lay_out
from kinfolk.networks.model.data import Data, check_overlap, first_missing
from kinfolk.networks.model.priors import check_costs, penalty_of, strength, structure_log_odds
from kinfolk.posterior import Archive
from kinfolk.progress import progress_bar, progress_wanted
from kinfolk.tasks.frames import make_frame
from kinfolk.tasks.table import backend_of
from kinfolk.tasks.whole_fits import all_or_nothing

_CHOICES = {
    "sharing": ("joint", "none", "identical", "pooled"),
    "prior": ("edit", "paired"),
    "criterion": ("bdeu", "k2", "bic"),
    "search": ("auto", "classes", "climb"),
    "missing": ("error", "em"),
    "tables": ("independent", "shared"),
}


class BayesNets(TaskRouting, Answers, BaseEstimator):
    """Bayes nets of several related tasks, one a task, whose structures are learnt together.

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
    criterion : {"bdeu", "k2", "bic"}, default="bdeu"
        Score of one structure given its task's rows.
    ess : float, default=1.0
        Equivalent sample size of BDeu.
    max_parents : int, optional
        Most parents that a variable may have.
    tabu : int, default=10
        Length of the tabu list: how many steps the search goes on without a new best, never undoing what it did in as
        many steps; 0 stops at the first optimum.
    restarts : int, default=0
        How often the best structures are disturbed and searched from again; ``restarts=0, tabu=0`` is one plain climb.
    search : {"auto", "classes", "climb"}, default="auto"
        Where the search of a single structure begins: at what a greedy search over equivalence classes (GES) finds from
        ``start``, or at ``start`` itself. Classes need "bdeu" or "bic", no ``structure_prior``, and no required or
        forbidden arcs; "auto" uses them where they can be, unless one plain climb is asked for.
    start : graph, list of arcs, or mapping from tasks to these, optional
        Structures to begin with; empty ones by default.
    required, forbidden : list of arcs, optional
        Arcs, as pairs of variables, that every structure must or must not have.
    structure_prior : mapping or (graph, float), optional
        Probabilities of arcs; or a graph believed to be near the true one and the factor, at most 1, by which each
        difference from it makes a structure less likely. Uniform by default.
    costs : mapping, optional
        Costs of kinds of edits: "add", "remove" and "reverse" with the Edit prior, 1 each by default; "arc" and
        "reverse" with the Paired prior, 1 and 2 by default.
    arc_penalty : mapping, optional
        Penalties δ of pairs of variables, where they differ from ``penalty``; factors on λ where that is "learn".
    task_penalty : mapping, optional
        Penalties δ of pairs of tasks, where they differ from ``penalty`` (Paired prior, and a number as ``penalty``).
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
    penalty_curve_ : frame
        With ``penalty="validate"``: mean log likelihood of the rows held out, for each value of the grid.
    arc_confidence_ : frame
        With ``bootstrap``: how often each arc of each task was found in resamples.

    References
    ----------
    A. Niculescu-Mizil and R. Caruana, "Inductive Transfer for Bayesian Network Structure Learning", AISTATS 2007.

    Examples
    --------
    >>> from kinfolk.datasets import make_related_networks, sample_tasks
    >>> networks = make_related_networks("asia", 3, p_delete=0.1, random_state=0)
    >>> model = BayesNets().fit(sample_tasks(networks, 500, random_state=0))
    >>> len(model.graphs_), sorted(model.graphs_[0].nodes)[:3]
    (3, ['asia', 'bronc', 'dysp'])
    """

    # scikit-learn's metadata routing passes ``task`` on without further requests.
    __metadata_request__fit: ClassVar = {"task": True}
    __metadata_request__score: ClassVar = {"task": True}

    # Fewest rows of a task, and what messages call one: tasks may be the classes of a classifier.
    _fewest_rows: ClassVar[int] = 2
    _called: ClassVar[str] = "task"
    _constant_columns: ClassVar[bool] = False

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
        structure_prior: Any = None,
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
        """
        self._check_parameters()
        with all_or_nothing(self):
            self._learn(X, task)
        return self

    def _check_parameters(self) -> None:
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if value not in choices:
                raise ValueError(f"{name}={value!r}: one of {', '.join(map(repr, choices))} is needed")
        for name, least in (("tabu", 0), ("restarts", 0), ("bootstrap", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
                raise ValueError(f"{name}={value!r}: a whole number of at least {least} is needed")
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
        check_costs(self.prior, self.costs or {})
        if self.task_penalty and not (self.prior == "paired" and number):
            raise ValueError('task_penalty needs prior="paired" and a number as penalty')
        if self.task_penalty and self.arc_penalty:
            raise ValueError("task_penalty and arc_penalty were both given: one of them is needed")
        if self.search == "classes" and not self._classes_can_be():
            raise ValueError(
                'search="classes" needs the criterion "bdeu" or "bic", no structure_prior, '
                "and no required or forbidden arcs"
            )

    def _classes_can_be(self) -> bool:
        """Whether all structures of an equivalence class are worth the same, and all are allowed."""
        free = self.structure_prior is None and self.required is None and self.forbidden is None
        return free and self.criterion != "k2"

    def _learn(self, X: Any, task: Any) -> None:
        for name in ("arc_confidence_", "penalty_curve_", "n_iter_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        tables, known = learn_tables_of(
            X,
            task,
            self.task_column,
            self.categorical_features,
            self.bins,
            self._fewest_rows,
            self._called,
            self._constant_columns,
            type(self).__name__,
            self.new_tasks,
        )
        self._remember_columns(known)
        self._schema, self.tasks_, self._present = tables.schema, tables.tasks, tables.present
        self._backend = backend_of(next(iter(X.values())) if by_task(X) else X)
        self._seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        gap = first_missing(tables)
        if gap is not None and self.missing == "error":
            raise ValueError(
                f'{gap}: a value is missing; fill it in, or learn with missing="em" (Input X contains NaN)'
            )
        if gap is not None and self.bootstrap:
            raise ValueError(f"{gap}: a value is missing, and bootstrap= needs complete rows: fill it in first")
        if self.sharing in ("joint", "identical"):
            check_overlap(tables)
        elif self.sharing == "pooled" and not tables.present.all():
            t, v = np.argwhere(~tables.present)[0]
            name = tables.tasks.tolist()[t]
            raise ValueError(f"task {name!r} has no variable {tables.variables[v]!r}: pooled rows need all of them")
        plan = self._plan(tables)
        if self.penalty == "validate" and self.sharing == "joint" and len(tables.tasks) > 1:
            plan = self._validated(plan, tables)
        self._conclude(plan, tables, incomplete=gap is not None)
        if self.bootstrap:
            self._resample(plan, tables)

    def _plan(self, tables: Data) -> Plan:
        variables, tasks = tables.variables, tables.tasks.tolist()
        constraints = make_constraints(self.required, self.forbidden, self.max_parents, variables)
        learnt = self.penalty in ("learn", "validate")
        base = 1.0 if learnt else strength(float(self.penalty))
        return Plan(
            self.sharing,
            self.prior,
            dict(self.costs or {}),
            self.criterion,
            float(self.ess),
            constraints,
            structure_log_odds(self.structure_prior, variables),
            variable_strengths(base, self.arc_penalty, variables, learnt),
            task_strengths(base, self.task_penalty, tasks),
            learnt,
            make_starts(self.start, tasks, tables.present, variables, constraints),
            Effort(int(self.tabu), int(self.restarts), max(5, len(variables) // 4)),
            self.search == "classes"
            or (self.search == "auto" and self._classes_can_be() and bool(self.tabu or self.restarts)),
            self.n_jobs,
        )

    def _validated(self, plan: Plan, tables: Data) -> Plan:
        """Choose the penalty by rows held out; all rows are learnt from again afterwards."""
        if first_missing(tables) is not None:
            raise ValueError('penalty="validate" needs complete rows: with missing="em", use "learn" or a number')
        with progress_bar("Trying penalties", len(GRID), progress_wanted(self.verbose)) as advance:
            curve = choose_strength(
                plan, tables.codes, tables.cards, tables.present, self.validation, self._seed, advance
            )
        columns = {
            "penalty": [penalty_of(value) for value in curve.strengths],
            "strength": curve.strengths.tolist(),
            "log_likelihood": curve.log_likelihood.tolist(),
        }
        self.penalty_curve_ = make_frame(columns, self._backend)
        return plan._replace(strengths=scaled(plan.strengths, curve.best), learnt=False)

    def _conclude(self, plan: Plan, tables: Data, incomplete: bool) -> None:
        """Learn structures and tables from all rows."""
        weights = None
        codes = tables.codes
        with progress_bar("Searching structures", None, progress_wanted(self.verbose)) as advance:
            if incomplete:
                filled = learn_from_incomplete(plan, codes, tables.cards, tables.present, self._seed, advance)
                outcome, codes, weights = filled.outcome, filled.codes, filled.weights
                self.n_iter_ = filled.n_rounds
            else:
                cases = lay_out(codes, tables.cards, tables.present)
                outcome = learn_structures(plan, cases, self._seed, advance)
        self.networks_ = assemble(plan, outcome.structures, tables, codes, weights, self.tables == "shared")
        self.log_score_, self.strength_ = outcome.score, outcome.strength
        self.penalty_ = penalty_of(outcome.strength)

    def _resample(self, plan: Plan, tables: Data) -> None:
        if plan.learnt:
            # One strength for all resamples: confidence is about arcs, given how alike the tasks were found to be.
            plan = plan._replace(strengths=scaled(plan.strengths, self.strength_), learnt=False)
        with progress_bar("Resampling rows", int(self.bootstrap), progress_wanted(self.verbose)) as advance:
            shares = arc_confidence(
                plan, tables.codes, tables.cards, tables.present, int(self.bootstrap), self._seed, self.n_jobs, advance
            )
        columns = confidence_columns(shares, tables.tasks.tolist(), tables.variables)
        self.arc_confidence_ = make_frame(columns, self._backend)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "networks_")

    def _to_archive(self) -> Archive:
        check_is_fitted(self)
        return to_archive(self)

    @classmethod
    def _from_archive(cls, archive: Archive) -> BayesNets:
        model: BayesNets = from_archive(cls, archive)
        return model
