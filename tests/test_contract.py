"""Every estimator keeps scikit-learn's contract."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from kinfolk import BayesMultinet, BayesNets, ClusteredNB, CompleteSharingNB, NoSharingNB, PrototypeNB

ESTIMATORS = [
    NoSharingNB(),
    CompleteSharingNB(),
    CompleteSharingNB(share_labels=False),
    ClusteredNB(),
    ClusteredNB(inference="gibbs", n_chains=2, n_burn_in=2, n_draws=3, random_state=0),
    ClusteredNB(inference="exact"),
    ClusteredNB(inference="variational", random_state=0),
    PrototypeNB(n_chains=2, n_burn_in=2, n_draws=3, random_state=0),
    BayesNets(),
    BayesMultinet(),
    BayesMultinet(tables="independent"),
]


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learns_own_checks_pass(estimator, check):
    check(estimator)
