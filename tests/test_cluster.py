"""Independent work on a real Dask cluster of two worker processes: the same bits as here, even when a worker is killed.

The cluster runs on this machine; a scheduler elsewhere is asked in the same way.
"""

import os
import signal
import subprocess
import sys
import threading
import time
import warnings

import joblib
import numpy as np
import polars as pl
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score

import kinfolk

distributed = pytest.importorskip("distributed")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

RNG = np.random.default_rng(0)
N = 240
X = RNG.integers(0, 4, size=(N, 4))
Y = np.where((X[:, 0] > 1) ^ (RNG.random(N) < 0.2), "yes", "no")
TASK = np.arange(N) % 6
LENGTHS, WHOSE = [20] * 12, list("aabbccddeeff")


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as found,
    ):
        yield found


def chains():
    model = kinfolk.NestedIHMM(4, 3, n_chains=4, n_burn_in=10, n_draws=10, n_jobs=2, random_state=1)
    return model.fit(X[:, :1], LENGTHS, task=WHOSE).log_joint_


def folds():
    table = pl.DataFrame(X, schema=list("abcd")).with_columns(who=pl.Series(TASK))
    model = kinfolk.ClusteredNB(task_column="who", random_state=0)
    return cross_val_score(model, table.to_pandas(), Y, cv=4, n_jobs=2, scoring="neg_log_loss")


def structures():
    model = kinfolk.BayesNets(restarts=2, n_jobs=2, random_state=0).fit(X.astype(str), task=TASK)
    return model.score_samples(X.astype(str), task=TASK)


def sampling():
    few = {"n_chains": 2, "n_burn_in": 5, "n_draws": 5, "n_jobs": 2, "random_state": 2}
    models = (kinfolk.ClusteredNB(inference="gibbs", **few), kinfolk.PrototypeNB(**few))
    return np.array([model.fit(X, Y, task=TASK).predict_proba(X, task=TASK) for model in models])


def resamples():
    model = kinfolk.BayesNets(bootstrap=4, search="climb", n_jobs=2, random_state=0).fit(X.astype(str), task=TASK)
    return np.asarray(model.arc_confidence_["confidence"])


def members():
    # With a bar, as on a terminal.
    given = {"n_folds": 2, "n_jobs": 2, "random_state": 0, "verbose": True}
    averages = kinfolk.AveragedNB(**given), kinfolk.TransferClassifier(**given)
    return np.array([model.fit(X, Y, task=TASK).predict_proba(X, task=TASK) for model in averages])


def regressions():
    model = kinfolk.ClusteredClassifier(n_chains=3, n_burn_in=5, n_draws=5, n_jobs=2, random_state=0)
    return model.fit(X * 1.0, Y, task=TASK).predict_proba(X * 1.0, task=TASK)


WORK = {work.__name__: work for work in (sampling, chains, regressions, folds, structures, resamples, members)}


@pytest.fixture(autouse=True)
def few_draws():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
def test_work_on_a_cluster_gives_the_bits_of_work_here(client, work):
    expected = work()
    with joblib.parallel_config("dask"):
        found = work()
    assert np.asarray(found).tobytes() == np.asarray(expected).tobytes()


def test_a_worker_killed_in_mid_run_costs_time_not_the_result(client):
    expected = chains()
    pids = {told["pid"] for told in client.run(lambda: {"pid": os.getpid()}).values()}

    def kill():
        time.sleep(1.0)
        os.kill(min(pids), signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    with joblib.parallel_config("dask"):
        found = chains()
    thread.join()
    assert found.tobytes() == expected.tobytes()


def test_a_command_counts_on_a_cluster(client, tmp_path):
    (tmp_path / "rows").mkdir()
    rows = pl.DataFrame(X, schema=list("abcd")).with_columns(who=pl.Series(TASK), ok=pl.Series(Y))
    rows[:100].write_parquet(tmp_path / "rows" / "a.parquet")
    rows[100:].write_parquet(tmp_path / "rows" / "b.parquet")
    answers = []
    for own in ([], ["--engine", "dask", "--scheduler", client.scheduler.address]):
        command = [sys.executable, "-c", "from kinfolk.cli import main; main()", "fit", "rows", "--temper", "1"]
        command += ["--task", "who", "--label", "ok"]
        subprocess.run([*command, *own, "-o", "model.kin"], cwd=tmp_path, check=True, capture_output=True)
        answers.append(kinfolk.load(tmp_path / "model.kin").predict_proba(rows.drop("ok")))
    np.testing.assert_array_equal(*answers)
