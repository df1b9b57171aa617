"""A classifier with a Bayes net for each class (Friedman, Geiger and Goldszmidt 1997), the nets learnt together.

The classes are the tasks of Niculescu-Mizil and Caruana 2007, as the last paragraph of that paper proposes. Of class c
with network B_c,

    p(c | x) ∝ p(c) p(x | B_c),        p(c) = (n_c + a) / (n + a·n_classes),

where n_c counts the class's rows, a is ``class_prior``, and values that x lacks are summed out of p(x | B_c).

In the papers: Niculescu-Mizil and Caruana (2012), section 5.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from kinfolk.estimator import TaskRouting
from kinfolk.explanation import Explanation
from kinfolk.networks.answers.predictor import MultinetPredictor
from kinfolk.networks.estimators.bayes_nets import BayesNets
from kinfolk.networks.estimators.reading import Columns
from kinfolk.posterior import Archive
from kinfolk.tasks.training import receive_labels, receive_table

if TYPE_CHECKING:
    import networkx as nx


class _NetsOfClasses(BayesNets):
    """Networks whose tasks are classes; one that has a single row takes its structure from the others.

    A column may be constant: a fold of cross-validation may lack a rare value, which is no fault of the user's.
    """

    _columns: ClassVar[Columns] = Columns(called="class", fewest_rows=1, constant=True)


class BayesMultinet(TaskRouting, ClassifierMixin, BaseEstimator):
    """Classifier with a Bayesian network for each class; the structures of all classes are learnt together.

    Parameters
    ----------
    sharing : {"joint", "none", "identical"}, default="joint"
        Structures that differ no more than the data ask for; every class for itself; or one structure for all, each
        class with tables of its own.
    prior, penalty, criterion, ess, max_parents, tabu, restarts, search, start, required, forbidden, tiers, \
structure_prior, costs, arc_penalty, validation, categorical_features, bins, random_state, n_jobs, verbose, checkpoint
        As for :class:`~kinfolk.BayesNets`, with classes as tasks. ``max_parents=0`` is naive Bayes.
    tables : {"shared", "independent"}, default="shared"
        Whether tables are learnt with a hierarchical prior that lets classes borrow rows from each other as far as they
        are alike, or for each class by itself.
    missing : {"em", "error"}, default="em"
        What to do about missing values in training: learn by structural EM, or refuse them. Prediction sums them out.
    class_prior : float, default=1.0
        Pseudo-count of each class.

    Attributes
    ----------
    classes_ : ndarray
        The labels.
    class_log_prior_ : ndarray of shape (n_classes,)
        Log probability of each class before anything is known of a row.
    networks_ : dict
        A :class:`~kinfolk.networks.model.network.Network`, structure and tables, for each class.
    graphs_ : dict
        A ``networkx.DiGraph`` for each class.
    log_score_, penalty_, strength_ : float
        As for :class:`~kinfolk.BayesNets`: log posterior of the structures up to the prior's normaliser, δ and λ.
    nets_ : BayesNets
        The networks as an estimator that has classes as tasks, with ``sample``, ``to_bif`` and the like.

    References
    ----------
    N. Friedman, D. Geiger and M. Goldszmidt, "Bayesian Network Classifiers", Machine Learning 29, 1997.

    A. Niculescu-Mizil and R. Caruana, "Inductive Transfer for Bayesian Network Structure Learning", AISTATS 2007.

    Examples
    --------
    >>> from kinfolk.datasets import make_related_networks, sample_tasks
    >>> networks = make_related_networks("asia", 2, p_delete=0.2, random_state=0)
    >>> rows = sample_tasks(networks, 500, form="long", random_state=0)
    >>> X, y = rows.drop("task"), rows["task"]
    >>> model = BayesMultinet().fit(X, y)
    >>> model.predict_proba(X[:3]).shape, sorted(model.graphs_)
    ((3, 2), [0, 1])
    """

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
        tables: str = "shared",
        missing: str = "em",
        validation: float = 0.05,
        class_prior: float = 1.0,
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
        self.tables = tables
        self.missing = missing
        self.validation = validation
        self.class_prior = class_prior
        self.categorical_features = categorical_features
        self.bins = bins
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.checkpoint = checkpoint

    def fit(self, X: Any, y: Any) -> Self:
        """Learn a network for every class.

        Parameters
        ----------
        X : frame or array of shape (n_rows, n_variables)
            pandas, polars, pyarrow or numpy.
        y : array-like of shape (n_rows,)
            Labels of any type, none of them missing.

        Returns
        -------
        self

        See Also
        --------
        predict_proba : Probabilities of the classes.
        kinfolk.BayesNets : The networks by themselves, for tasks instead of classes.
        """
        self._check_parameters()
        arrival = receive_table(X, model="BayesMultinet", shares=False)
        if arrival.table.n_rows < 2:
            raise ValueError("X has 1 sample (row): networks that tell classes apart need at least 2")
        classes, codes = receive_labels(X, y, arrival.table.n_rows, model="BayesMultinet")
        if (codes < 0).any():
            row = int(np.argmax(codes < 0))
            raise ValueError(f"y, row {row}: a label is missing; leave rows without one out (Input y contains NaN)")
        counts = np.bincount(codes, minlength=len(classes))
        if self.penalty == "validate" and counts.min() < 2:
            name = classes.tolist()[int(counts.argmin())]
            raise ValueError(f'class {name!r} has one row: penalty="validate" holds one out and needs at least 2')
        of_nets = {name: value for name, value in self.get_params(deep=False).items() if name != "class_prior"}
        weights = counts + float(self.class_prior)
        nets = _NetsOfClasses(**of_nets).fit(X, task=classes[codes])
        # What is remembered of the table is the classifier's, by its own name.
        known = arrival.known._replace(tasks=classes)
        nets._keep(nets._model._replace(known=known))
        self._keep(nets, np.log(weights / weights.sum()))
        return self

    def _keep(self, nets: BayesNets, class_log_prior: NDArray[np.float64]) -> None:
        model = nets._model
        self._remember_columns(model.known)
        self._answers = MultinetPredictor(model, class_log_prior)
        self.nets_, self.classes_, self.networks_ = nets, self._answers.classes_, self._answers.networks_
        self.log_score_, self.penalty_, self.strength_ = nets.log_score_, nets.penalty_, nets.strength_
        self.class_log_prior_ = class_log_prior

    def _check_parameters(self) -> None:
        if self.sharing == "pooled":
            raise ValueError(
                "sharing='pooled' would give all classes one network, which tells none from another: one of 'joint', "
                "'none', 'identical' is needed"
            )
        prior = self.class_prior
        if isinstance(prior, bool) or not isinstance(prior, int | float | np.number) or not 0 <= prior < math.inf:
            raise ValueError(f"class_prior={prior!r}: a number of at least 0 is needed")

    @property
    def graphs_(self) -> dict[Any, nx.DiGraph]:
        """Structure of every class."""
        check_is_fitted(self)
        return {label: network.graph() for label, network in self.networks_.items()}

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Log probability of each class.

        Parameters
        ----------
        X : frame or array of shape (n_rows, n_variables)
            The variables of training, in their order. A missing value, or one never seen, is summed out.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Columns in the order of ``classes_``.

        See Also
        --------
        predict_proba : The probabilities themselves.
        """
        return self._predictor().predict_log_proba(X)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probability of each class.

        Parameters
        ----------
        X : frame or array of shape (n_rows, n_variables)
            The variables of training, in their order. A missing value, or one never seen, is summed out.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Columns in the order of ``classes_``.

        See Also
        --------
        predict : The most probable class.
        explain : What each variable added.
        """
        return self._predictor().predict_proba(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row.

        Parameters
        ----------
        X : frame or array of shape (n_rows, n_variables)
            The variables of training, in their order. A missing value, or one never seen, is summed out.

        Returns
        -------
        ndarray of shape (n_rows,)

        See Also
        --------
        predict_proba : How probable every class is.
        """
        return self._predictor().predict(X)

    def explain(self, X: Any) -> Explanation:
        """What each variable, given its parents, added to each row's log probability of every class.

        Parameters
        ----------
        X : frame or array

        Returns
        -------
        Explanation
            Its label part comes from the classes' own probabilities. Families with a missing value in any class's
            network stand at 0, and what was summed out there is in the remainder. All data are the table's own.

        See Also
        --------
        predict_proba : The probabilities themselves.
        """
        predictor = self._predictor()
        codes = predictor.codes(X)
        joint = predictor.log_joint(codes)
        networks = list(self.networks_.values())
        parts = np.zeros((len(codes), len(networks[0].variables), len(networks)))
        for v in range(parts.shape[1]):
            family = sorted({v, *(parent for network in networks for parent in network.parents[v])})
            known = (codes[:, family] >= 0).all(axis=1)
            for c, network in enumerate(networks):
                cells = tuple(codes[known, u] for u in (*network.parents[v], v))
                parts[known, v, c] = np.log(network.tables[v][cells])
        labels = np.tile(self.class_log_prior_, (len(codes), 1))
        remainder = joint - labels - parts.sum(axis=1)
        # Where nothing was summed out, only rounding is left.
        remainder[(codes >= 0).all(axis=1)] = 0.0
        own = np.ones(parts.shape[:2])
        schema = self.nets_._model.schema
        return Explanation(
            self.classes_,
            schema.names,
            schema.read_back(codes, None),
            labels,
            parts,
            remainder,
            own,
            np.zeros_like(own),
            np.zeros_like(own),
            np.zeros_like(own),
            self.nets_._model.backend,
        )

    def _predictor(self) -> MultinetPredictor:
        """The object that answers, which is what :func:`kinfolk.load` gives."""
        check_is_fitted(self)
        return self._answers

    def _to_archive(self) -> Archive:
        check_is_fitted(self)
        nets = self.nets_._to_archive()
        about = {**nets.about, "family": "multinet", "class_prior": float(self.class_prior)}
        return Archive(about, {**nets.arrays, "class_log_prior": self.class_log_prior_})

    @classmethod
    def _from_archive(cls, archive: Archive) -> Self:
        nets = _NetsOfClasses._from_archive(archive)
        own = set(cls().get_params(deep=False))
        params = {name: value for name, value in nets.get_params(deep=False).items() if name in own}
        model = cls(**params, class_prior=float(archive.about["class_prior"]))
        model._keep(nets, archive.array("class_log_prior", "f", (len(nets.tasks_),)))
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "em"
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "networks_")
