"""Models of every kind, fitted to one small table, for the tests that save and load them."""

import numpy as np
import pandas as pd

import kinfolk
from kinfolk import ClusteredNB, CompleteSharingNB, NoSharingNB

_RNG = np.random.default_rng(2)
N_ROWS = 60
LABEL = _RNG.choice(["no", "yes"], N_ROWS)
TASK = _RNG.choice(["ann", "bob", "eve"], N_ROWS)
SHIFT = (LABEL == "yes") ^ (TASK == "eve")
X = pd.DataFrame(
    {
        "colour": np.where(SHIFT, "red", _RNG.choice(["blue", "grün"], N_ROWS)),
        "number": _RNG.integers(0, 4, N_ROWS),
        "size": np.where(_RNG.random(N_ROWS) < 0.1, np.nan, _RNG.normal(SHIFT, 1.0)),
        "flag": _RNG.random(N_ROWS) < 0.3,
        "grade": pd.Categorical(_RNG.choice(["low", "high"], N_ROWS), categories=["low", "high", "never"]),
    }
)
SOME_UNLABELLED = np.where(np.arange(N_ROWS) % 20 == 0, None, LABEL)
ASKED = pd.concat([X, X.iloc[:2].assign(colour=[None, "mauve"])], ignore_index=True)
ASKED_TASK = np.concatenate([TASK, ["ann", "somebody new"]])
SAMPLING = {"n_chains": 2, "n_burn_in": 3, "n_draws": 4, "random_state": 0}

MODELS = {
    "no sharing": (NoSharingNB(), LABEL),
    "complete sharing": (CompleteSharingNB(), LABEL),
    "own labels": (CompleteSharingNB(share_labels=False), LABEL),
    "bhc": (ClusteredNB(), LABEL),
    "averaged, tempered": (ClusteredNB(predictive="averaged", temper=0.5, concentration=2), LABEL),
    "exact": (ClusteredNB(inference="exact"), LABEL),
    "gibbs": (ClusteredNB(inference="gibbs", **SAMPLING), LABEL),
    "no sharing, unlabelled": (NoSharingNB(**SAMPLING), SOME_UNLABELLED),
    "complete sharing, unlabelled": (CompleteSharingNB(**SAMPLING), SOME_UNLABELLED),
    "exact, unlabelled": (ClusteredNB(inference="exact"), SOME_UNLABELLED),
    "gibbs, unlabelled": (ClusteredNB(inference="gibbs", **SAMPLING), SOME_UNLABELLED),
}


def saved(model, path):
    kinfolk.save(model, path)
    return path
