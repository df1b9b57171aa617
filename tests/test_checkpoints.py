"""A fit that is killed at any moment and started again ends as one that never was, bit for bit."""

import hashlib
import os
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import kinfolk
from kinfolk import checkpoints
from kinfolk.checkpoints import Checkpoint, Place
from kinfolk.naive_bayes.inference.gibbs import Chain
from kinfolk.transfer.models import NaiveBayesMember

RNG = np.random.default_rng(0)
N = 120
X = RNG.integers(0, 4, size=(N, 3))
Y = np.where((X[:, 0] > 1) ^ (RNG.random(N) < 0.2), "yes", "no")
TASK = np.arange(N) % 8
HALF = np.where(np.arange(N) % 5 == 0, None, Y.astype(object))
NUMBERS = X[:, 0] * (1.0 + TASK % 2) + RNG.normal(size=N)
MANY = np.repeat(np.arange(4), 60)
NETS = (RNG.normal(size=(len(MANY), 12)).cumsum(axis=1)[:, RNG.permutation(12)] > 0).astype(str)
GAPS = np.where(RNG.random(NETS.shape) < 0.05, None, NETS.astype(object))
LENGTHS, WHOSE = [10] * 12, list("aabbccddeeff")
SCHEDULE = {"n_chains": 2, "n_burn_in": 15, "n_draws": 15, "random_state": 3}


def naive_bayes(model, y=Y):
    return lambda folder: digest(model.set_params(checkpoint=folder).fit(X, y, task=TASK).predict_proba(X, task=TASK))


def numbers(model):
    return lambda folder: digest(
        model.set_params(checkpoint=folder).fit(X * 1.0, NUMBERS, task=TASK).predict(X * 1.0, task=TASK)
    )


def networks(model, rows=NETS):
    def fit(folder):
        fitted = model.set_params(checkpoint=folder).fit(rows, task=MANY)
        sure = fitted.arc_confidence_["confidence"] if fitted.bootstrap else []
        return digest(np.append(fitted.score_samples(NETS, task=MANY), sure))

    return fit


def sequences(model):
    return lambda folder: digest(model.set_params(checkpoint=folder).fit(X[:, :1], LENGTHS, task=WHOSE).log_joint_)


def multinet(model):
    return lambda folder: digest(model.set_params(checkpoint=folder).fit(GAPS[:, :4], MANY).predict_proba(GAPS[:, :4]))


def kinds_of_tasks():
    rng, task = np.random.default_rng(1), np.repeat(np.arange(1500), 6)
    # Tasks of a dozen kinds, which are not all found in the first round.
    rates = rng.dirichlet(np.full(4, 0.5), size=(12, 4)).cumsum(axis=-1)[task % 12]
    rows = (rng.random((len(task), 4, 1)) > rates[..., :-1]).sum(axis=-1)
    return rows, rng.integers(0, 2, len(task)), task


def many_tasks(model):
    rows, said, task = kinds_of_tasks()
    return lambda folder: digest(
        model.set_params(checkpoint=folder).fit(rows, said, task=task).predict_proba(rows, task=task)
    )


def in_batches(folder):
    """A fit by mean field as of many tasks, in batches of two."""
    model = kinfolk.NestedIHMM(4, 3, inference="variational", random_state=3)
    inference = "kinfolk.sequences.inference."
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inference + "variational.MOST_TASKS_TO_AGGLOMERATE", 5)
        for name, few in (("_N_FOUNDERS", 3), ("_FEWEST_OF_BATCH", 2), ("_STEPS_OF_BATCH", 1)):
            patch.setattr(inference + f"stochastic_variational.{name}", few)
        steps = np.random.default_rng(2).integers(0, 2, 120)
        steps[60:] = (np.arange(60) // 3 + steps[60:]) % 4
        fitted = model.set_params(checkpoint=folder).fit(steps[:, None], LENGTHS, task=WHOSE)
        return digest(fitted.score_samples(steps[:, None], LENGTHS, task=WHOSE))


def digest(found):
    return hashlib.sha256(np.ascontiguousarray(found).tobytes()).hexdigest()


FITS = {
    "gibbs": naive_bayes(kinfolk.ClusteredNB(inference="gibbs", concentration="learn", **SCHEDULE)),
    "gibbs with unlabelled rows": naive_bayes(kinfolk.ClusteredNB(inference="gibbs", **SCHEDULE), HALF),
    "no sharing with unlabelled rows": naive_bayes(kinfolk.NoSharingNB(**SCHEDULE), HALF),
    "complete sharing with unlabelled rows": naive_bayes(kinfolk.CompleteSharingNB(**SCHEDULE), HALF),
    "a partition per feature": naive_bayes(kinfolk.ClusteredNB(inference="gibbs", partition_per="feature", **SCHEDULE)),
    "noisy copies": naive_bayes(kinfolk.ClusteredNB(inference="gibbs", within="noisy", **SCHEDULE)),
    "prototype": naive_bayes(kinfolk.PrototypeNB(**SCHEDULE)),
    "prototype with unlabelled rows": naive_bayes(kinfolk.PrototypeNB(**SCHEDULE), HALF),
    "variational": many_tasks(kinfolk.ClusteredNB(inference="variational", random_state=3)),
    "variational, in batches": many_tasks(kinfolk.ClusteredNB(inference="variational", batch_size=600, random_state=3)),
    "partially pooled labels": naive_bayes(kinfolk.HierarchicalClassifier(tol=1e-9, max_iter=30)),
    "partially pooled, three labels": naive_bayes(kinfolk.HierarchicalClassifier(), X[:, 0] % 3),
    "partially pooled numbers": numbers(kinfolk.HierarchicalRegressor(tol=1e-9, max_iter=30)),
    "clustered regressions": naive_bayes(kinfolk.ClusteredClassifier(n_burn_in=10, n_draws=10, random_state=3)),
    "nested iHMM": sequences(kinfolk.NestedIHMM(4, 3, **SCHEDULE)),
    "nested iHMM by mean field": sequences(kinfolk.NestedIHMM(4, 3, inference="variational", random_state=3)),
    "nested iHMM by mean field in batches": in_batches,
    "single iHMM by mean field": sequences(kinfolk.SingleIHMM(4, inference="variational", random_state=3)),
    "averaged iHMM": sequences(
        kinfolk.AveragedIHMM(4, 3, n_folds=2, n_chains=1, n_burn_in=3, n_draws=3, random_state=3)
    ),
    "shared iHMM": sequences(kinfolk.SharedIHMM(4, **SCHEDULE)),
    "single iHMM": sequences(kinfolk.SingleIHMM(4, **SCHEDULE)),
    "feature iHMM": sequences(kinfolk.FeatureIHMM(4, **SCHEDULE)),
    "networks with restarts": networks(kinfolk.BayesNets(restarts=6, random_state=3)),
    "networks apart": networks(
        kinfolk.BayesNets(
            sharing="none", tabu=0, restarts=9, search="climb", ess=20.0, structure_prior="uniform", random_state=7
        )
    ),
    "identical networks": networks(kinfolk.BayesNets(sharing="identical", criterion="bhd", random_state=3)),
    "networks from classes": networks(kinfolk.BayesNets(search="classes", structure_prior="learn", random_state=3)),
    "networks and resamples": networks(kinfolk.BayesNets(bootstrap=8, random_state=3)),
    "networks, validated": networks(kinfolk.BayesNets(penalty="validate", random_state=3)),
    "networks by structural EM": networks(kinfolk.BayesNets(missing="em", random_state=3), GAPS),
    "a multinet with gaps": multinet(kinfolk.BayesMultinet(missing="em", random_state=3)),
    "sources": naive_bayes(kinfolk.LICAClassifier(2, random_state=3)),
    "sources, each feature with a variance": naive_bayes(kinfolk.LICAClassifier(2, noise="diagonal", random_state=3)),
    "sources, how many": naive_bayes(kinfolk.LICAClassifier(random_state=3)),
    "sources by their mode": naive_bayes(kinfolk.LICAClassifier(2, inference="map", random_state=3)),
    "tasks alone": naive_bayes(kinfolk.LICAClassifier(2, sharing="individual", random_state=3)),
    "pooled tasks": numbers(kinfolk.LICARegressor(2, sharing="pooled", random_state=3)),
    "a Gaussian of tasks' weights": naive_bayes(kinfolk.LICAClassifier(2, sharing="hierarchical", random_state=3)),
    "sources of numbers": numbers(kinfolk.LICARegressor(2, random_state=3)),
    "averaged naive Bayes": naive_bayes(kinfolk.AveragedNB(n_folds=2, random_state=3)),
    "averaged with a member that samples": naive_bayes(
        kinfolk.AveragedNB([kinfolk.ClusteredNB(inference="gibbs", **SCHEDULE), kinfolk.NoSharingNB()], random_state=3)
    ),
    "transfer of labels": naive_bayes(kinfolk.TransferClassifier(n_folds=3, random_state=3)),
    "transfer of numbers": numbers(kinfolk.TransferRegressor(n_folds=3, random_state=3)),
}


@pytest.fixture(autouse=True)
def at_every_sweep(monkeypatch):
    monkeypatch.setattr(checkpoints, "SECONDS", 0.0)
    monkeypatch.setattr(checkpoints, "_SHARE", 1e9)
    monkeypatch.setattr(checkpoints, "WORTH", 0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.mark.parametrize("name", FITS)
def test_a_fit_that_ended_after_any_sweep_goes_on_to_the_same_bits(name, tmp_path, monkeypatch):
    fit, save = FITS[name], Place.save
    expected, rng, n_left, n_saved = fit(None), np.random.default_rng(1), 0, 0

    def save_and_die(place, value):
        nonlocal n_left, n_saved
        save(place, value)
        n_left, n_saved = n_left - 1, n_saved + 1
        if n_left == 0:
            raise Killed

    monkeypatch.setattr(Place, "save", save_and_die)
    assert fit(tmp_path / "anew") == expected
    n_anew, folder = n_saved, tmp_path / "kept"
    # It dies all along the way, so that whatever is kept is gone on from.
    for more in rng.integers(0, 3, size=4).tolist():
        n_left = 1 + n_anew // 5 + more
        try:
            fit(folder)
        except Killed:
            continue
    n_left = 0
    files = set(folder.iterdir())
    assert files
    assert fit(folder) == expected
    n_saved = 0
    assert fit(folder) == expected
    assert n_saved <= n_anew // 2, "what was kept is not done again"
    assert files <= set(folder.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("name", FITS)
def test_a_process_killed_at_random_moments_goes_on_to_the_same_bits(name, tmp_path):
    script = (
        "import sys, warnings; warnings.simplefilter('ignore')\n"
        "from kinfolk import checkpoints; checkpoints.SECONDS = checkpoints.WORTH = 0.0\n"
        "checkpoints._SHARE = 1e9\n"
        "from tests.test_checkpoints import FITS\n"
        "print('begun', flush=True); print(FITS[sys.argv[1]](sys.argv[2]))\n"
    )
    rng = np.random.default_rng(2)
    for _ in range(6):
        run = subprocess.Popen([sys.executable, "-c", script, name, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        assert run.stdout is not None
        run.stdout.readline()
        time.sleep(rng.exponential(0.3))
        run.kill()
        run.wait()
        run.stdout.close()
    assert FITS[name](tmp_path) == FITS[name](None)


def test_members_of_an_average_are_fitted_once_to_what_a_part_leaves(tmp_path, monkeypatch):
    model = kinfolk.AveragedNB(n_folds=4, random_state=3, checkpoint=tmp_path)
    learn, fitted_to = NaiveBayesMember.learn, []

    def learn_and_tell(member, coded):
        fitted_to.append(len(coded.counted))
        return learn(member, coded)

    monkeypatch.setattr(NaiveBayesMember, "learn", learn_and_tell)
    first = clone(model).fit(X, Y, task=TASK)
    assert fitted_to.count(120) == 4
    assert len(fitted_to) == 4 * (4 + 1)
    fitted_to.clear()
    again = clone(model).fit(X, Y, task=TASK)
    assert fitted_to == [120] * 4
    assert again.weights_ == first.weights_
    fitted_to.clear()
    clone(model).fit(X, np.roll(Y, 1), task=TASK)
    assert len(fitted_to) == 4 * (4 + 1)


def test_other_data_parameters_and_seeds_have_files_of_their_own(tmp_path):
    model = kinfolk.ClusteredNB(inference="gibbs", checkpoint=tmp_path, **SCHEDULE | {"n_chains": 1})
    expected = 0
    for change in ({}, {"random_state": 4}, {"n_draws": 16}, {"label_prior": 2.0}, {"concentration": 2.0}):
        clone(model).set_params(**change).fit(X, Y, task=TASK)
        expected += 1
        assert len(list(tmp_path.iterdir())) == expected
    clone(model).fit(X[1:], Y[1:], task=TASK[1:])
    clone(model).fit(X, Y, task=TASK)
    assert len(list(tmp_path.iterdir())) == expected + 1


def test_a_file_that_does_not_hold_what_its_name_says_is_refused(tmp_path):
    model = kinfolk.ClusteredNB(inference="gibbs", checkpoint=tmp_path, **SCHEDULE)
    model.fit(X, Y, task=TASK)
    one, other = sorted(tmp_path.iterdir())
    good = one.read_bytes()
    for content in (other.read_bytes(), good[:-1], good[:-9] + b"\0" + good[-8:], b"", b"\x80\x04pickled"):
        one.write_bytes(content)
        with pytest.raises(ValueError, match=r"\.checkpoint does not hold what its name says") as caught:
            clone(model).fit(X, Y, task=TASK)
        assert "\n" not in str(caught.value)
    one.unlink()
    clone(model).fit(X, Y, task=TASK)
    assert one.read_bytes() == good


@pytest.mark.parametrize(
    "estimator", [kinfolk.ClusteredNB(inference="gibbs"), kinfolk.PrototypeNB(), kinfolk.TransferClassifier()]
)
def test_a_checkpoint_needs_a_seed_and_a_folder(estimator, tmp_path):
    with pytest.raises(ValueError, match="checkpoint= needs a whole number as random_state, not None"):
        clone(estimator).set_params(checkpoint=tmp_path).fit(X, Y, task=TASK)
    with pytest.raises(ValueError, match="checkpoint=3: the path of a folder is needed"):
        clone(estimator).set_params(checkpoint=3, random_state=0).fit(X, Y, task=TASK)
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(ValueError, match="is a file: a folder is needed"):
        clone(estimator).set_params(checkpoint=str(file), random_state=0).fit(X, Y, task=TASK)


def test_a_saved_model_does_not_tell_the_folder_and_loads(tmp_path):
    model = kinfolk.PrototypeNB(checkpoint=tmp_path / "kept", **SCHEDULE).fit(X, Y, task=TASK)
    kinfolk.save(model, tmp_path / "model.kin")
    assert kinfolk.load(tmp_path / "model.kin", estimator=True).checkpoint is None
    assert b"kept" not in (tmp_path / "model.kin").read_bytes()


def test_the_same_fit_several_times_at_once_in_one_folder_ends_as_it_should_each_time(tmp_path):
    model = kinfolk.ClusteredNB(inference="gibbs", **SCHEDULE | {"n_chains": 1})
    expected = clone(model).fit(X, Y, task=TASK).predict_proba(X, task=TASK)
    kept = clone(model).set_params(checkpoint=tmp_path)
    fits = Parallel(n_jobs=4, prefer="threads")(delayed(clone(kept).fit)(X, Y, task=TASK) for _ in range(8))
    for fitted in fits:
        np.testing.assert_array_equal(fitted.predict_proba(X, task=TASK), expected)
    assert [path.suffix for path in tmp_path.iterdir()] == [".checkpoint"]


def test_a_file_that_somebody_else_is_writing_is_left_and_one_of_a_killed_process_is_not(tmp_path):
    place = Checkpoint(tmp_path).place("some work")
    others, forgotten = (place.path.with_name(f".{place.path.name}.{name}.part") for name in ("now", "then"))
    for path in (others, forgotten):
        path.touch()
    os.utime(forgotten, (time.time() - 7200,) * 2)
    place.save(1)
    assert set(tmp_path.iterdir()) == {place.path, others}


def test_equal_models_are_equal_files_whenever_they_are_saved(tmp_path, monkeypatch):
    model = kinfolk.NoSharingNB().fit(X, Y, task=TASK)
    kinfolk.save(model, tmp_path / "now.kin")
    monkeypatch.setattr(time, "time", lambda: 1.0e9)
    monkeypatch.setattr(time, "localtime", lambda *_: time.gmtime(1.0e9))
    kinfolk.save(model, tmp_path / "then.kin")
    assert (tmp_path / "now.kin").read_bytes() == (tmp_path / "then.kin").read_bytes()


def test_no_type_but_kinfolks_own_values_is_made(tmp_path):
    place = Checkpoint(tmp_path).place("some work")
    place.save((1, 2.5, float("inf"), {"a": (np.arange(3), np.float64(2.0), None)}, [frozenset({1})]))
    assert str(place.load()) == str(
        (1, 2.5, float("inf"), {"a": (np.arange(3), np.float64(2.0), None)}, [frozenset({1})])
    )
    for name in ("os:system", "kinfolk.files:whole_file", "kinfolk.checkpoints:Place", "kinfolk.nowhere:Thing"):
        with pytest.raises((ValueError, ModuleNotFoundError)):
            checkpoints._decode({"type": name, "parts": ["x"]}, {})
    with pytest.raises(TypeError, match="object cannot be written down"):
        place.save(object())


def test_ctrl_c_once_ends_after_a_sweep_which_is_kept_and_the_fit_goes_on(tmp_path, monkeypatch):
    model = kinfolk.ClusteredNB(inference="gibbs", checkpoint=tmp_path, **SCHEDULE)
    expected = clone(model).set_params(checkpoint=None).fit(X, Y, task=TASK).predict_proba(X, task=TASK)
    monkeypatch.setattr(checkpoints, "SECONDS", 60.0)
    sweep, swept = Chain.sweep, 0

    def interrupted(chain, rng):
        nonlocal swept
        swept += 1
        if swept == 6:
            os.kill(os.getpid(), signal.SIGINT)
        return sweep(chain, rng)

    monkeypatch.setattr(Chain, "sweep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y, task=TASK)
    [kept] = tmp_path.iterdir()
    assert Place(kept, kept.stem).load()[0] == 6
    np.testing.assert_array_equal(model.fit(X, Y, task=TASK).predict_proba(X, task=TASK), expected)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
