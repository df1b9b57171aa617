"""A scikit-learn classifier that decides by expected loss (Roy 2006, equation 1.2)."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Tags, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted, column_or_1d

from kinfolk.decisions.choosing import decide, expected_loss
from kinfolk.decisions.losses import Loss
from kinfolk.decisions.predictor import decision_archive, parts_of
from kinfolk.posterior import Archive, estimator_from

__all__ = ["DecisionClassifier"]


class DecisionClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Predict the action with the smallest expected loss under another classifier's probabilities.

    Parameters
    ----------
    estimator : classifier with ``predict_proba``
        Where the probabilities come from. A model that is already fitted goes in as
        ``sklearn.frozen.FrozenEstimator(model)``.
    loss : "zero-one", array-like, Loss or callable, default="zero-one"
        A square array has its rows and columns in the order of ``classes_``. A `Loss` is matched to
        ``classes_`` by name. A callable is given ``classes_`` and returns either, for example
        ``functools.partial(Loss.asymmetric, 3)``.
    ask_cost : float or array-like of shape (n_classes,), optional
        Adds the action ``"ask"`` at this cost, one number or one for each of ``classes_``.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier.
    classes_ : ndarray of shape (n_classes,)
        Its classes.
    loss_ : Loss
        The loss, its rows in the order of ``classes_``.
    actions_ : ndarray of shape (n_actions,)
        What `predict` chooses from, first to last in case of a tie. It has the type of ``classes_`` where
        every action is a class, and the type object otherwise.
    n_features_in_, feature_names_in_
        As the fitted classifier has them.

    See Also
    --------
    kinfolk.decisions.decide : The decision itself, from probabilities.
    kinfolk.decisions.Loss : What each action costs under each true class.

    Notes
    -----
    Keyword arguments of the methods, such as ``task=``, go to the classifier: as they are by default, and as
    the classifier requests them under ``sklearn.set_config(enable_metadata_routing=True)``. Decisions come
    from probabilities, so then ``predict``, ``score`` and ``decision_losses`` pass on what is requested for
    ``predict_proba``.

    :func:`kinfolk.save` keeps a model of kinfolk inside together with ``loss_``; an estimator that is loaded has that
    loss, asking included, for its ``loss``.

    References
    ----------
    D. M. Roy (2006), *Clustered Naive Bayes*, MEng thesis, Massachusetts Institute of Technology, chapters 1
    and 3.2.1.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from kinfolk.decisions import DecisionClassifier
    >>> X, y = [[0.0], [1.0], [4.0], [5.0]], ["decline", "decline", "accept", "accept"]
    >>> model = DecisionClassifier(GaussianNB(), ask_cost=0.2).fit(X, y)
    >>> model.predict([[0.5], [2.5], [4.5]])
    array(['decline', 'ask', 'accept'], dtype=object)
    """

    def __init__(self, estimator: Any, loss: Any = "zero-one", ask_cost: ArrayLike | None = None) -> None:
        self.estimator = estimator
        self.loss = loss
        self.ask_cost = ask_cost

    def fit(self, X: Any, y: Any, **params: Any) -> Self:
        """Fit the classifier, and match the loss to the classes it found.

        Parameters
        ----------
        X, y
            As the classifier takes them.
        **params
            Passed on to the classifier's ``fit``, for example ``task``.

        Returns
        -------
        self

        See Also
        --------
        predict : The decisions of the fitted model.
        """
        if not hasattr(self.estimator, "predict_proba"):
            raise ValueError(
                f"{type(self.estimator).__name__} has no predict_proba; decisions need a classifier that "
                "gives probabilities."
            )
        return self._keep(clone(self.estimator).fit(X, y, **self._passed_on("fit", "fit", params)))

    def _keep(self, fitted: Any) -> Self:
        """Decide by a fitted classifier from now on."""
        self.estimator_ = fitted
        self.classes_ = self.estimator_.classes_
        self.loss_ = self._loss_for(self.classes_)
        self.actions_ = _with_class_labels(self.loss_, self.classes_)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    def predict(self, X: Any, **params: Any) -> NDArray[Any]:
        """Choose the action with the smallest expected loss for each row, the first in case of a tie.

        Parameters
        ----------
        X, **params
            As the classifier's ``predict_proba`` takes them.

        Returns
        -------
        ndarray of shape (n_rows,)
            Elements of ``actions_``.

        See Also
        --------
        decision_losses : What every action is expected to cost.
        predict_proba : The probabilities that decisions are made by.
        """
        # The bare matrix has no names, so the actions come back as positions in actions_.
        proba = self._probabilities("predict", X, params)
        chosen: NDArray[Any] = self.actions_[decide(proba, self.loss_.matrix)]
        return chosen

    def predict_proba(self, X: Any, **params: Any) -> NDArray[np.float64]:
        """Give the classifier's own probabilities, a column for each of ``classes_``.

        Parameters
        ----------
        X, **params
            As the classifier's ``predict_proba`` takes them.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)

        See Also
        --------
        predict : The actions that these probabilities lead to.
        """
        return self._probabilities("predict_proba", X, params)

    def decision_losses(self, X: Any, **params: Any) -> NDArray[np.float64]:
        """Give the expected loss of every action, a column for each of ``actions_``.

        Parameters
        ----------
        X, **params
            As the classifier's ``predict_proba`` takes them.

        Returns
        -------
        ndarray of shape (n_rows, n_actions)

        See Also
        --------
        predict : The actions of the smallest expected loss.
        kinfolk.decisions.expected_loss : The same of probabilities from elsewhere.
        """
        return expected_loss(self._probabilities("predict_proba", X, params), self.loss_.matrix)

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None, **params: Any) -> float:
        """Compute the share of rows whose decision is the true class.

        An action that is no class, such as ``"ask"``, is never right: asking lowers this score even where it
        lowers the loss. To choose among losses or costs, score by `kinfolk.decisions.realised_loss`.

        Parameters
        ----------
        X, **params
            As the classifier's ``predict_proba`` takes them.
        y : array-like of shape (n_rows,)
            The true classes.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows.

        Returns
        -------
        float

        See Also
        --------
        kinfolk.decisions.realised_loss : What decisions cost, where the true classes are known.
        """
        chosen = self.actions_[decide(self._probabilities("score", X, params), self.loss_.matrix)]
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        return float(np.average(chosen == column_or_1d(y), weights=weights))

    def get_metadata_routing(self) -> MetadataRouter:
        """Say which keyword arguments go where.

        Returns
        -------
        MetadataRouter

        See Also
        --------
        fit : Takes ``task`` by routing or by keyword.
        """
        mapping = MethodMapping().add(caller="fit", callee="fit")
        for caller in ("predict", "predict_proba", "score"):
            mapping.add(caller=caller, callee="predict_proba")
        return MetadataRouter(owner=self).add_self_request(self).add(estimator=self.estimator, method_mapping=mapping)

    def _to_archive(self) -> Archive:
        check_is_fitted(self)
        inner = self.estimator_.estimator if isinstance(self.estimator_, FrozenEstimator) else self.estimator_
        if not hasattr(inner, "_to_archive") or isinstance(inner, DecisionClassifier):
            raise TypeError(f"the {type(inner).__name__} inside is not a kinfolk classifier that can be saved")
        return decision_archive(inner._to_archive(), self.loss_)

    @classmethod
    def _from_archive(cls, archive: Archive) -> Self:
        part, loss = parts_of(archive)
        inner = estimator_from(part)
        model = cls(clone(inner), loss)
        return model._keep(inner)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        of_estimator = get_tags(self.estimator)
        tags.input_tags = of_estimator.input_tags
        tags.classifier_tags = of_estimator.classifier_tags
        return tags

    def _probabilities(self, caller: str, X: Any, params: Mapping[str, Any]) -> NDArray[np.float64]:
        check_is_fitted(self)
        proba: NDArray[np.float64] = self.estimator_.predict_proba(
            X, **self._passed_on(caller, "predict_proba", params)
        )
        return proba

    def _passed_on(self, caller: str, callee: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        if not get_config()["enable_metadata_routing"]:
            return params
        routed: Mapping[str, Any] = process_routing(self, caller, **params).estimator[callee]
        return routed

    def _loss_for(self, classes: NDArray[Any]) -> Loss:
        loss = self.loss
        if isinstance(loss, str):
            if loss != "zero-one":
                raise ValueError(
                    f"loss is {loss!r}; it needs 'zero-one', an array, a Loss or a function that returns one."
                )
            loss = Loss.zero_one(classes)
        elif callable(loss):
            loss = loss(classes)
        if not isinstance(loss, Loss):
            loss = Loss(loss)
            if loss.matrix.shape != (len(classes), len(classes)):
                raise ValueError(
                    f"loss has shape {loss.matrix.shape} but there are {len(classes)} classes; an array "
                    "needs a row and a column for each class, and a Loss can name other actions."
                )
        loss = loss.for_classes(classes)
        return loss if self.ask_cost is None else loss.with_ask(self.ask_cost)


def _with_class_labels(loss: Loss, classes: NDArray[Any]) -> NDArray[Any]:
    """Make the array of actions, out of the class labels themselves where every action is a class."""
    assert loss.classes is not None
    assert loss.actions is not None
    position_of = {name: position for position, name in enumerate(loss.classes)}
    if all(name in position_of for name in loss.actions):
        labels: NDArray[Any] = classes[[position_of[name] for name in loss.actions]]
        return labels
    actions = np.empty(len(loss.actions), dtype=object)
    actions[:] = loss.actions
    return actions
