"""Every estimator keeps scikit-learn's contract."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from kinfolk import (
    AveragedIHMM,
    AveragedNB,
    BayesMultinet,
    BayesNets,
    ClusteredClassifier,
    ClusteredNB,
    CompleteSharingNB,
    FeatureIHMM,
    HierarchicalClassifier,
    HierarchicalRegressor,
    LICAClassifier,
    LICARegressor,
    NestedIHMM,
    NoSharingNB,
    PrototypeNB,
    SharedIHMM,
    SingleIHMM,
    TransferClassifier,
    TransferRegressor,
)


class _OneSequence:
    """The checks hand labels over in second place, where sequences have lengths: here all rows are one sequence."""

    def fit(self, X, y=None):
        return super().fit(X)

    def score(self, X, y=None):
        return super().score(X)


class OneAveragedIHMM(_OneSequence, AveragedIHMM):
    pass


class OneNestedIHMM(_OneSequence, NestedIHMM):
    pass


class OneFeatureIHMM(_OneSequence, FeatureIHMM):
    pass


class OneSharedIHMM(_OneSequence, SharedIHMM):
    pass


class OneSingleIHMM(_OneSequence, SingleIHMM):
    pass


_FEW = {"n_states": 3, "n_chains": 2, "n_burn_in": 1, "n_draws": 2, "random_state": 0}

# One configuration for each code that fits or answers; the checks know one task alone, so that what differs only
# between tasks (share_labels) would be checked twice.
ESTIMATORS = [
    NoSharingNB(),
    CompleteSharingNB(),
    ClusteredNB(),
    ClusteredNB(inference="gibbs", n_chains=2, n_burn_in=2, n_draws=3, random_state=0),
    ClusteredNB(inference="exact"),
    ClusteredNB(inference="variational", random_state=0),
    ClusteredNB(partition_per="feature"),
    ClusteredNB(within="noisy", n_chains=2, n_burn_in=2, n_draws=3, random_state=0),
    ClusteredNB(feature_prior="learn", concentration="learn"),
    ClusteredNB(numeric="gaussian"),
    AveragedNB({"none": NoSharingNB(), "kin": ClusteredNB()}, n_folds=2, random_state=0),
    TransferClassifier(["complete sharing", "interactions"], n_folds=2, random_state=0),
    TransferRegressor(["pooled", "interactions"], n_folds=2, random_state=0),
    PrototypeNB(n_chains=2, n_burn_in=2, n_draws=3, random_state=0),
    BayesNets(),
    BayesMultinet(),
    BayesMultinet(tables="independent"),
    LICAClassifier(n_sources=1, random_state=0),
    LICAClassifier(sharing="individual"),
    LICAClassifier(n_sources=1, inference="map"),
    LICARegressor(n_sources=1, random_state=0),
    HierarchicalClassifier(),
    HierarchicalRegressor(),
    ClusteredClassifier(n_burn_in=2, n_draws=3, random_state=0),
    OneNestedIHMM(n_clusters=2, **_FEW),
    OneAveragedIHMM(n_clusters=2, **_FEW),
    OneSharedIHMM(inference="variational", **_FEW),
    OneSingleIHMM(**_FEW),
    OneFeatureIHMM(**_FEW),
]

_WEIGHTS = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")
_HELD_OUT = "variances are chosen on rows held out, and copies of a row can be held out one without the other"


_FOLDS = "models are weighed by rows held out at random, and copies of a row can be held out one without the other"


_OF_SEQUENCES = {
    "check_fit1d": "a column of symbols or numbers may come without a table around it",
    "check_methods_sample_order_invariance": "the order of steps is what a sequence is about",
    "check_methods_subset_invariance": "some steps of a sequence are another sequence, and it has one score",
}
_OF_AVERAGES = (
    "probabilities are averaged over what is not known of the weights: of two rows the one about which less is known "
    "may have the larger linear predictor and the probability nearer to one half"
)


def exceptions(estimator):
    """Checks that an estimator does not pass, each with the reason."""
    if isinstance(estimator, _OneSequence):
        return _OF_SEQUENCES
    if isinstance(estimator, AveragedNB | TransferClassifier | TransferRegressor):
        return dict.fromkeys(_WEIGHTS, _FOLDS)
    if not isinstance(estimator, LICAClassifier | LICARegressor):
        return {}
    labels_by_bayes = isinstance(estimator, LICAClassifier) and estimator.inference == "eb"
    if labels_by_bayes and estimator.sharing == "sources":
        return {"check_decision_proba_consistency": _OF_AVERAGES}
    return dict.fromkeys(_WEIGHTS, _HELD_OUT)


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=exceptions)
def test_scikit_learns_own_checks_pass(estimator, check):
    check(estimator)


TEXT = pd.DataFrame({"a": list("pqrpqr") * 4, "b": list("xxyy") * 6})
NUMBER = pd.DataFrame({"a": np.arange(24.0) % 5, "b": np.arange(24.0) % 7})
TABLES = {
    "string": TEXT,
    "categorical": TEXT.astype("category"),
    "allow_nan": NUMBER.mask(NUMBER == 3.0),
    "sparse": csr_matrix(NUMBER),
}


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize(
    "estimator", {type(one): one for one in ESTIMATORS}.values(), ids=lambda one: type(one).__name__
)
def test_tags_say_which_tables_are_taken(estimator, kind):
    model, y = clone(estimator), np.arange(24) % 2
    if getattr(get_tags(estimator).input_tags, kind):
        model.fit(TABLES[kind], y)
    else:
        with pytest.raises((TypeError, ValueError)):
            model.fit(TABLES[kind], y)
