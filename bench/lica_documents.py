"""Whether LICA finds the sources of made-up documents, and what its starts cost: ``python -m bench.lica_documents``.

Documents of tasks whose weights mix four known sources (``make_lica_documents(20, 2000, 100, 4)``), half of each task's
to learn from; areas under the ROC curve, averaged over tasks, are compared with those of every task learnt alone.
"""

from __future__ import annotations

import argparse
import warnings
from time import process_time
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from kinfolk import LICAClassifier
from kinfolk.datasets import make_lica_documents
from kinfolk.lica.inference.starts import STARTS
from kinfolk.lica.model.fitted import Begun

N_TASKS, N_WORDS, N_ROWS, N_SOURCES = 20, 2_000, 100, 4
ALONE = "every task alone"
MODELS: dict[str, dict[str, Any]] = {
    ALONE: {"sharing": "individual"},
    "eb, 4 sources": {"n_sources": N_SOURCES},
    "eb, 4 sources, one start": {"n_sources": N_SOURCES},
    "eb, number of sources chosen (default)": {},
    "map, 4 sources": {"n_sources": N_SOURCES, "inference": "map"},
}


def measure(model: str, draw: int) -> tuple[float, float]:
    """Mean area under the ROC curve over tasks, and processor seconds of the fit."""
    made = make_lica_documents(N_TASKS, N_WORDS, N_ROWS, N_SOURCES, random_state=draw)
    rng = np.random.default_rng(draw)
    train = np.concatenate([rng.permutation(N_ROWS) < N_ROWS // 2 for _ in range(N_TASKS)])
    found = LICAClassifier(**MODELS[model], random_state=0, verbose=False)
    if model.endswith("one start"):
        found._begun = Begun(STARTS[0])
    start = process_time()
    found.fit(made.X[train], made.y[train], task=made.task[train])
    seconds = process_time() - start
    score = found.predict_proba(made.X[~train], task=made.task[~train])[:, 1]
    y, task = made.y[~train], made.task[~train]
    each = [(y[task == k], score[task == k]) for k in np.unique(task)]
    return float(np.mean([roc_auc_score(*one) for one in each if 0 < one[0].mean() < 1])), seconds


def main() -> None:
    """Print a line for each model."""
    parser = argparse.ArgumentParser(prog="python -m bench.lica_documents", description=__doc__)
    parser.add_argument("--draws", type=int, default=8, help="data sets of which means are taken")
    n_draws = parser.parse_args().draws
    warnings.simplefilter("ignore")
    found = {model: np.array([measure(model, draw) for draw in range(n_draws)]) for model in MODELS}
    alone = found[ALONE][:, 0]
    for model, values in found.items():
        gain = values[:, 0] - alone
        error = gain.std(ddof=1) / np.sqrt(n_draws) if n_draws > 1 else np.nan
        auc, seconds = values.mean(axis=0)
        print(f"{model}: AUC {auc:.3f}, above {ALONE} {gain.mean():+.4f} ± {error:.4f}, {seconds:.2f} s")


if __name__ == "__main__":
    main()
