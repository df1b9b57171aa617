"""A task that is forgotten leaves the model of the others' rows."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from kinfolk import AveragedNB, ClusteredNB, CompleteSharingNB, NoSharingNB, PrototypeNB, TransferClassifier

RNG = np.random.default_rng(0)
X = pd.DataFrame({"sky": RNG.choice(["red", "blue", "grey"], 90), "wind": RNG.choice(["n", "s"], 90)})
Y = np.where(RNG.random(90) < 0.4, "yes", "no").astype(object)
TASK = np.array(["ann", "bob", "cid"])[np.arange(90) % 3]
HALF = np.where(np.arange(90) % 4 == 0, None, Y)
FEW = {"n_chains": 1, "n_burn_in": 3, "n_draws": 5}
MODELS = [
    (NoSharingNB(), Y),
    (CompleteSharingNB(), Y),
    (ClusteredNB(), Y),
    (ClusteredNB(inference="gibbs", **FEW), HALF),
    (PrototypeNB(**FEW), Y),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("model", "y"), MODELS, ids=lambda value: repr(value)[:40])
@pytest.mark.parametrize("gone", ["ann", "bob", "cid"])
def test_a_forgotten_task_leaves_the_model_of_the_others(model, y, gone):
    model = clone(model).set_params(random_state=1)
    others = np.not_equal(TASK, gone)
    expected = clone(model).fit(X[others], y[others], task=TASK[others])
    found = clone(model).fit(X, y, task=TASK).forget(gone)
    assert found.tasks_.tolist() == expected.tasks_.tolist()
    # What is asked about the forgotten task is asked about a new one.
    np.testing.assert_array_equal(found.predict_proba(X, task=TASK), expected.predict_proba(X, task=TASK))


@pytest.mark.parametrize("gone", ["ann", "cid"])
def test_an_average_by_evidence_forgets_a_task_as_if_it_had_never_been_there(gone):
    given = {"temper": 1, "label_prior": 1, "feature_prior": 1}
    members = {"apart": NoSharingNB(**given), "kin": ClusteredNB(random_state=0, **given)}
    model, others = AveragedNB(members, weigh_by="evidence", random_state=1), np.not_equal(TASK, gone)
    expected = clone(model).fit(X[others], Y[others], task=TASK[others])
    found = clone(model).fit(X, Y, task=TASK).forget(gone)
    assert found.tasks_.tolist() == expected.tasks_.tolist()
    assert found.weights_ == pytest.approx(expected.weights_)
    np.testing.assert_allclose(found.predict_proba(X, task=TASK), expected.predict_proba(X, task=TASK))


@pytest.mark.filterwarnings("ignore")
def test_averages_forget_where_all_members_count_and_keep_their_weights():
    model = AveragedNB([NoSharingNB(), CompleteSharingNB()], n_folds=2, random_state=1).fit(X, Y, task=TASK)
    before = model.weights_
    others = TASK != "bob"
    apart = {name: clone(one).fit(X[others], Y[others], task=TASK[others]) for name, one in model.members_.items()}
    assert model.forget("bob").weights_ == before
    mixed = sum(before[name] * one.predict_proba(X, task=TASK) for name, one in apart.items())
    np.testing.assert_allclose(model.predict_proba(X, task=TASK), mixed, rtol=1e-9)
    with pytest.raises(ValueError, match=r"^task 'eve' is not among those learnt from"):
        model.forget("eve")
    assert model.tasks_.tolist() == ["ann", "cid"]
    assert not hasattr(TransferClassifier(), "forget")


def test_a_task_that_is_not_there_or_the_only_one_is_not_forgotten():
    model = NoSharingNB().fit(X, Y, task=TASK)
    with pytest.raises(ValueError, match=r"^task 'eve' is not among those learnt from: 'ann', 'bob', 'cid'$"):
        model.forget("eve")
    with pytest.raises(ValueError, match=r"^task 'cid' is the only one: nothing would be left to learn from$"):
        model.forget("ann").forget("bob").forget("cid")
