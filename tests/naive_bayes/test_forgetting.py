"""A task that is forgotten leaves the model of the others' rows."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from kinfolk import ClusteredNB, CompleteSharingNB, NoSharingNB, PrototypeNB

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


def test_a_task_that_is_not_there_or_the_only_one_is_not_forgotten():
    model = NoSharingNB().fit(X, Y, task=TASK)
    with pytest.raises(ValueError, match=r"^task 'eve' is not among those learnt from: 'ann', 'bob', 'cid'$"):
        model.forget("eve")
    with pytest.raises(ValueError, match=r"^task 'cid' is the only one: nothing would be left to learn from$"):
        model.forget("ann").forget("bob").forget("cid")
