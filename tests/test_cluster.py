"""Independent work on a real Dask cluster of two worker processes: the same bits as here, even when a worker is killed.

The cluster runs on this machine; a scheduler elsewhere is asked in the same way.
"""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings
from importlib import import_module

import joblib
import numpy as np
import polars as pl
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score

import kinfolk
from kinfolk import checkpoints
from kinfolk.experiments.cells import cells, kept_in
from kinfolk.experiments.networks.problems import over_draws
from kinfolk.experiments.registry import EXPERIMENTS

distributed = pytest.importorskip("distributed")
cloudpickle = pytest.importorskip("cloudpickle")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

RNG = np.random.default_rng(0)
N = 240
X = RNG.integers(0, 4, size=(N, 4))
Y = np.where((X[:, 0] > 1) ^ (RNG.random(N) < 0.2), "yes", "no")
TASK = np.arange(N) % 6
CHANCE = RNG.random(X.shape)
LENGTHS, WHOSE = [20] * 12, list("aabbccddeeff")


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as found,
    ):
        yield found


def chains(n_draws=10):
    model = kinfolk.NestedIHMM(4, 3, n_chains=4, n_burn_in=10, n_draws=n_draws, random_state=1)
    return model.fit(X[:, :1], LENGTHS, task=WHOSE).log_joint_


def folds():
    table = pl.DataFrame(X, schema=list("abcd")).with_columns(who=pl.Series(TASK))
    model = kinfolk.ClusteredNB(task_column="who", random_state=0)
    return cross_val_score(model, table.to_pandas(), Y, cv=4, scoring="neg_log_loss")


def structures():
    model = kinfolk.BayesNets(restarts=2, random_state=0).fit(X.astype(str), task=TASK)
    return model.score_samples(X.astype(str), task=TASK)


def structures_apart():
    model = kinfolk.BayesNets(sharing="none", search="climb", tabu=0, random_state=0).fit(X.astype(str), task=TASK)
    return model.score_samples(X.astype(str), task=TASK)


def sampling():
    few = {"n_chains": 2, "n_burn_in": 5, "n_draws": 5, "random_state": 2}
    models = (kinfolk.ClusteredNB(inference="gibbs", **few), kinfolk.PrototypeNB(**few))
    return np.array([model.fit(X, Y, task=TASK).predict_proba(X, task=TASK) for model in models])


def resamples():
    model = kinfolk.BayesNets(bootstrap=4, search="climb", random_state=0).fit(X.astype(str), task=TASK)
    return np.asarray(model.arc_confidence_["confidence"])


def members():
    # With a bar, as on a terminal.
    given = {"n_folds": 2, "random_state": 0, "verbose": True}
    averages = kinfolk.AveragedNB(**given), kinfolk.TransferClassifier(**given)
    return np.array([model.fit(X, Y, task=TASK).predict_proba(X, task=TASK) for model in averages])


def regressions():
    model = kinfolk.ClusteredClassifier(n_chains=3, n_burn_in=5, n_draws=5, random_state=0)
    return model.fit(X * 1.0, Y, task=TASK).predict_proba(X * 1.0, task=TASK)


def cells_of_a_study():
    section = EXPERIMENTS["thesis-section-2-4"].home
    return import_module(section).study(quick=True, n_repeats=1).table["log_loss"].to_numpy()


def draws_of_a_study():
    def work(number, size):
        return [{"number": number, "mean": float(np.random.default_rng(number).normal(size=size).mean())}]

    return over_draws("Drawing", [(number, 5) for number in range(6)], work)["mean"].to_numpy()


def other_sampling():
    few = {"n_chains": 2, "n_burn_in": 5, "n_draws": 5, "random_state": 2}
    models = (
        kinfolk.ClusteredNB(inference="gibbs", within="noisy", **few),
        kinfolk.ClusteredNB(inference="gibbs", partition_per="feature", **few),
        kinfolk.ClusteredNB(inference="variational", partition_per="feature", random_state=2),
        kinfolk.ClusteredNB(inference="randomised-bhc", random_state=2),
        kinfolk.ClusteredNB(within="noisy", random_state=2),
        kinfolk.PrototypeNB(**few),
    )
    half = np.where(np.arange(N) % 5 == 0, None, Y.astype(object))
    given = [(model, y) for model in models for y in (Y, half) if y is Y or "gibbs" in str(model)]
    return np.array([model.fit(X, y, task=TASK).predict_proba(X, task=TASK) for model, y in given])


def joint_structures():
    numbers = X.astype(str)
    models = (
        kinfolk.BayesNets(missing="em", random_state=0),
        kinfolk.BayesNets(missing="em", sharing="none", random_state=0),
    )
    gaps = np.where(CHANCE < 0.05, None, numbers.astype(object))
    return np.array([model.fit(gaps, task=TASK).score_samples(numbers, task=TASK) for model in models])


def weights():
    models = kinfolk.LICAClassifier(2, sharing="individual", random_state=0), kinfolk.LICAClassifier(2, inference="map")
    return np.array([model.fit(X * 1.0, Y, task=TASK).predict_proba(X * 1.0, task=TASK) for model in models])


def comparison():
    found = kinfolk.evaluate(X, Y, task=TASK, n_folds=2, models=["clustered", "alone", "pooled"])
    return np.array([found.losses[name] for name in sorted(found.losses)])


def sources():
    model = kinfolk.LICAClassifier(random_state=3).fit(X * 1.0, Y, task=TASK)
    return model.predict_proba(X * 1.0, task=TASK)


def sequences_averaged():
    model = kinfolk.AveragedIHMM(4, 3, n_folds=2, n_chains=2, n_burn_in=3, n_draws=3, random_state=3)
    return model.fit(X[:, :1], LENGTHS, task=WHOSE).score_samples(X[:, :1], LENGTHS, task=WHOSE)


def runs_of_annealing():
    model = kinfolk.NoSharingNB().fit(X, Y, task=TASK)
    return model.conditional_evidence(n_runs=4, max_powers=20, random_state=0).value


WORK = {
    work.__name__: work
    for work in (
        sampling,
        chains,
        regressions,
        folds,
        structures,
        structures_apart,
        resamples,
        members,
        comparison,
        other_sampling,
        joint_structures,
        weights,
        sources,
        sequences_averaged,
        runs_of_annealing,
        cells_of_a_study,
        draws_of_a_study,
    )
}


@pytest.fixture(autouse=True)
def few_draws():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
def test_work_on_a_cluster_gives_the_bits_of_work_here(client, work):
    expected, scheduler = work(), client.cluster.scheduler
    before = scheduler.transition_counter
    with joblib.parallel_config("dask"):
        found = work()
    assert scheduler.transition_counter > before, "nothing was done on the cluster"
    assert np.asarray(found).tobytes() == np.asarray(expected).tobytes()


class ReadOnly(joblib.parallel.ThreadingBackend):
    """Sends work and results as Ray does: arrays lie beside what is pickled, and who gets them cannot write to them."""

    supports_return_generator = False

    def submit(self, func, callback=None):
        return super().submit(lambda: sent(sent(func)()), callback)


SENDING = threading.Lock()


def sent(value):
    buffers = []
    # Numba's dispatchers cannot be pickled twice at once.
    with SENDING:
        pickled = cloudpickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    return pickle.loads(pickled, buffers=[bytes(buffer.raw()) for buffer in buffers])


@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
def test_work_by_a_backend_whose_arrays_are_read_only_gives_the_same_bits(work):
    expected = work()
    joblib.register_parallel_backend("read-only", ReadOnly)
    with joblib.parallel_config("read-only", n_jobs=2):
        found = work()
    assert np.asarray(found).tobytes() == np.asarray(expected).tobytes()


def test_a_worker_killed_in_mid_run_costs_time_not_the_result(client):
    expected = chains(300)
    pids, killed = client.run(os.getpid), []

    def kill():
        until = time.monotonic() + 120.0
        while not killed and time.monotonic() < until:
            time.sleep(0.3)
            busy = [address for address, pieces in client.processing().items() if pieces]
            for address in busy[:1]:
                os.kill(pids[address], signal.SIGKILL)
                killed.append(pids[address])

    thread = threading.Thread(target=kill)
    thread.start()
    with joblib.parallel_config("dask"):
        found = chains(300)
    thread.join()
    assert killed
    assert not set(killed) & set(client.run(os.getpid).values())
    assert found.tobytes() == expected.tobytes()


def test_cells_that_a_cluster_measured_are_kept(client, tmp_path):
    jobs, measured = [(base, 2) for base in range(5)], tmp_path / "measured"
    measured.mkdir()

    def measure(base, power):
        (measured / f"{base} {os.getpid()}").touch()
        return base**power

    with pytest.MonkeyPatch.context() as patch, kept_in(tmp_path / "kept", "a study"):
        patch.setattr(checkpoints, "WORTH", 0.0)
        client.run(_keep_all)
        with joblib.parallel_config("dask"):
            assert list(cells(measure, jobs)) == [0, 1, 4, 9, 16]
        assert list(cells(measure, jobs)) == [0, 1, 4, 9, 16]
    names = [path.name.split() for path in measured.iterdir()]
    assert sorted(base for base, _ in names) == list("01234")
    assert str(os.getpid()) not in {pid for _, pid in names}


def _keep_all():
    """However short a piece of work was, let this worker keep it."""
    checkpoints.WORTH = 0.0


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
