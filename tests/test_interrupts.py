"""Ctrl-C once ends a fit at its next safe point and leaves what there is; twice ends it at once, and nobody goes on."""

import os
import signal
import subprocess
import sys
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import kinfolk
from kinfolk.interrupts import Stop, equally_long
from tests.test_checkpoints import GAPS, HALF, LENGTHS, MANY, NETS, NUMBERS, TASK, WHOSE, X, Y, kinds_of_tasks

SCHEDULE = {"n_chains": 3, "n_burn_in": 10, "n_draws": 12, "random_state": 3}


def naive_bayes(model, y=Y):
    return model, lambda one: one.fit(X, y, task=TASK), lambda one: one.posterior_.log_joint


def sequences(model):
    return model, lambda one: one.fit(X[:, :1], LENGTHS, task=WHOSE), lambda one: one.log_joint_


# Models that sample, how they are fitted, and what they drew, (chains, draws).
SAMPLERS = {
    "gibbs": naive_bayes(kinfolk.ClusteredNB(inference="gibbs", **SCHEDULE), HALF),
    "noisy copies": naive_bayes(kinfolk.ClusteredNB(inference="gibbs", within="noisy", **SCHEDULE)),
    "prototype with unlabelled rows": naive_bayes(kinfolk.PrototypeNB(**SCHEDULE), HALF),
    "nested iHMM": sequences(kinfolk.NestedIHMM(4, 3, **SCHEDULE)),
    "shared iHMM": sequences(kinfolk.SharedIHMM(4, **SCHEDULE)),
    "feature iHMM": sequences(kinfolk.FeatureIHMM(4, **SCHEDULE)),
}


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.fixture
def press(monkeypatch):
    """Press Ctrl-C when work asks for the n-th time whether to stop."""

    def at(n):
        asked, left = Stop.asked, n

        def asked_and_pressed(stop):
            nonlocal left
            left -= bool(stop.path)
            if left == 0:
                left = -1
                os.kill(os.getpid(), signal.SIGINT)
            return asked(stop)

        monkeypatch.setattr(Stop, "asked", asked_and_pressed)

    return at


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("n", [15, 21, 42])
def test_an_interrupted_sampler_has_the_first_draws_of_one_that_was_not(name, n, press, tmp_path):
    model, fit, drawn = SAMPLERS[name]
    whole = fit(clone(model))
    assert whole.interrupted_ is False
    cut = clone(model)
    press(n)
    with pytest.raises(KeyboardInterrupt):
        fit(cut)
    assert cut.interrupted_ is True
    n_chains, n_draws = drawn(cut).shape
    assert n_chains == (1 if n < 22 else 2)
    assert 0 < n_draws < SCHEDULE["n_draws"]
    np.testing.assert_array_equal(drawn(cut), drawn(whole)[:n_chains, :n_draws])
    kinfolk.save(cut, tmp_path / "cut.kin")
    assert kinfolk.load(tmp_path / "cut.kin", estimator=True).interrupted_ is True
    answers = "score_samples" if hasattr(cut, "log_joint_") else "predict_proba"
    given = (X[:, :1], LENGTHS) if hasattr(cut, "log_joint_") else (X,)
    said = getattr(cut, answers)(*given, task=WHOSE if len(given) == 2 else TASK)
    assert np.isfinite(said).all()
    if hasattr(cut, "label_distributions_"):
        np.testing.assert_allclose(cut.label_distributions_.sum(axis=1), 1.0)


@pytest.mark.parametrize("name", SAMPLERS)
def test_without_a_draw_an_estimator_stays_as_it_was(name, press):
    model, fit, drawn = SAMPLERS[name]
    fitted, fresh = fit(clone(model)), clone(model)
    before = drawn(fitted).copy()
    press(5)
    for one in (fitted, fresh):
        with pytest.raises(KeyboardInterrupt):
            fit(one)
        press(5)
    np.testing.assert_array_equal(drawn(fitted), before)
    with pytest.raises(NotFittedError):
        fresh.interrupted_  # noqa: B018 - asked for


def test_interrupted_empirical_bayes_has_the_first_iterations(press, tmp_path):
    model = kinfolk.LICAClassifier(2, tol=1e-9, random_state=0)
    whole, cut = clone(model).fit(X, Y, task=TASK), clone(model)
    press(8)
    with pytest.raises(KeyboardInterrupt):
        cut.fit(X, Y, task=TASK)
    assert (whole.interrupted_, cut.interrupted_) == (False, True)
    assert 1 < len(cut.objective_) < len(whole.objective_)
    np.testing.assert_array_equal(cut.objective_, whole.objective_[: len(cut.objective_)])
    kinfolk.save(cut, tmp_path / "cut.kin")
    assert kinfolk.load(tmp_path / "cut.kin", estimator=True).interrupted_ is True


@pytest.fixture
def press_after(monkeypatch, press):
    """Press Ctrl-C in a fit when it has asked a share of all times that a whole one asks."""

    # However short a piece of work is, it is kept if it is whole.
    monkeypatch.setattr("kinfolk.checkpoints.WORTH", 0.0)

    def at(share, fit):
        times, asked = 0, Stop.asked

        def counted(stop):
            nonlocal times
            times += bool(stop.path)
            return asked(stop)

        with monkeypatch.context() as patch:
            patch.setattr(Stop, "asked", counted)
            whole = fit()
        press(max(int(share * times), 1))
        return whole

    return at


@pytest.mark.parametrize("share", [0.1, 0.85, 0.95])
def test_an_interrupted_point_estimate_has_fewer_rounds(press_after, share):
    model = kinfolk.LICAClassifier(2, inference="map", tol=1e-9, random_state=0)
    whole, cut = press_after(share, lambda: clone(model).fit(X, Y, task=TASK)), clone(model)
    with pytest.raises(KeyboardInterrupt):
        cut.fit(X, Y, task=TASK)
    assert (whole.interrupted_, cut.interrupted_) == (False, True)
    assert 1 <= cut.n_iter_ < whole.n_iter_
    assert np.isfinite(cut.predict_proba(X, task=TASK)).all()
    if share > 0.5:  # before that, it was asked where to start from
        assert cut.n_iter_ > 3
        np.testing.assert_array_equal(cut.objective_[:-1], whole.objective_[: cut.n_iter_])


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.9])
def test_interrupted_structural_em_has_fewer_rounds_and_goes_on_from_the_last_whole_one(press_after, tmp_path, share):
    model = kinfolk.BayesNets(missing="em", random_state=3)
    cut = clone(model).set_params(checkpoint=tmp_path / "kept")
    whole = press_after(share, lambda: clone(model).set_params(checkpoint=tmp_path / "whole").fit(GAPS, task=MANY))
    with pytest.raises(KeyboardInterrupt):
        cut.fit(GAPS, task=MANY)
    assert (whole.interrupted_, cut.interrupted_) == (False, True)
    assert 1 <= cut.n_iter_ < whole.n_iter_
    kinfolk.save(cut, tmp_path / "cut.kin")
    assert kinfolk.load(tmp_path / "cut.kin", estimator=True).interrupted_ is True
    again = clone(cut).fit(GAPS, task=MANY)
    assert (again.interrupted_, again.log_score_, again.n_iter_) == (False, whole.log_score_, whole.n_iter_)


def test_interrupted_resampling_has_shares_of_the_resamples_so_far(press_after):
    model = kinfolk.BayesNets(bootstrap=10, search="climb", random_state=3)
    press_after(0.8, lambda: clone(model).fit(NETS, task=MANY))
    with pytest.raises(KeyboardInterrupt):
        model.fit(NETS, task=MANY)
    assert model.interrupted_
    shares = np.asarray(model.arc_confidence_["confidence"])
    so_far = [m for m in range(1, 11) if np.allclose(m * shares, np.round(m * shares), atol=1e-12)]
    assert so_far
    assert so_far[0] < 10


@pytest.mark.parametrize("share", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("target", [Y, X[:, 1], NUMBERS], ids=["two labels", "four labels", "numbers"])
def test_interrupted_partial_pooling_has_the_first_iterations(press_after, share, target, tmp_path):
    kind = kinfolk.HierarchicalRegressor if target is NUMBERS else kinfolk.HierarchicalClassifier
    model = kind(tol=1e-9, max_iter=20)
    cut, other = (clone(model).set_params(checkpoint=tmp_path / which) for which in ("cut", "whole"))
    whole = press_after(share, lambda: other.fit(X * 1.0, target, task=TASK))
    with pytest.raises(KeyboardInterrupt):
        cut.fit(X * 1.0, target, task=TASK)
    assert (whole.interrupted_, cut.interrupted_, cut.converged_) == (False, True, False)
    for own, every in zip(cut.posterior_, whole.posterior_, strict=True):
        assert 1 <= len(own.bound) <= len(every.bound)
        np.testing.assert_array_equal(own.bound, every.bound[: len(own.bound)])
    assert len(cut.posterior_[-1].bound) < len(whole.posterior_[-1].bound)
    kinfolk.save(cut, tmp_path / "cut.kin")
    assert kinfolk.load(tmp_path / "cut.kin", estimator=True).interrupted_ is True
    again = clone(cut).fit(X * 1.0, target, task=TASK)
    assert (again.interrupted_, again.log_evidence_) == (False, whole.log_evidence_)


@pytest.mark.parametrize("n_chains", [1, 3])
@pytest.mark.parametrize("share", [0.8, 0.95])
def test_interrupted_clusters_of_regressions_have_the_first_draws(press_after, share, n_chains, tmp_path):
    model = kinfolk.ClusteredClassifier(n_chains=n_chains, n_burn_in=4, n_draws=20, random_state=0)
    cut = clone(model).set_params(checkpoint=tmp_path / "kept")
    whole = press_after(share, lambda: clone(model).fit(X * 1.0, Y, task=TASK))
    with pytest.raises(KeyboardInterrupt):
        cut.fit(X * 1.0, Y, task=TASK)
    every, some = whole._model.clusters, cut._model.clusters
    n_draws = len(some.concentration) // some.n_chains
    assert cut.interrupted_
    assert 1 <= some.n_chains * n_draws < n_chains * 20
    first = every.concentration.reshape(n_chains, 20)[: some.n_chains, :n_draws]
    np.testing.assert_array_equal(some.concentration.reshape(some.n_chains, -1), first)
    kinfolk.save(cut, tmp_path / "cut.kin")
    loaded = kinfolk.load(tmp_path / "cut.kin", estimator=True)
    assert (loaded.interrupted_, loaded._model.clusters.n_chains) == (True, some.n_chains)
    again = clone(cut).fit(X * 1.0, Y, task=TASK)
    np.testing.assert_array_equal(again.predict_proba(X * 1.0, task=TASK), whole.predict_proba(X * 1.0, task=TASK))


def test_an_interrupted_hierarchy_of_weights_has_the_first_rounds(press_after):
    model = kinfolk.LICAClassifier(2, sharing="hierarchical", tol=1e-12, random_state=0)
    whole, cut = press_after(0.95, lambda: clone(model).fit(X, Y, task=TASK)), clone(model)
    with pytest.raises(KeyboardInterrupt):
        cut.fit(X, Y, task=TASK)
    assert (whole.interrupted_, cut.interrupted_) == (False, True)
    assert np.isfinite(cut.predict_proba(X, task=TASK)).all()


def test_clusters_of_regressions_without_a_draw_are_not_there(press_after):
    model = kinfolk.ClusteredClassifier(random_state=0)
    press_after(0.1, lambda: clone(model).fit(X * 1.0, Y, task=TASK))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X * 1.0, Y, task=TASK)
    with pytest.raises(NotFittedError):
        model.interrupted_  # noqa: B018 - asked for


@pytest.mark.parametrize("share", [0.0, 0.3, 0.8])
@pytest.mark.parametrize("given", [{}, {"batch_size": 600}, {"partition_per": "feature"}], ids=str)
def test_interrupted_sweeps_over_many_tasks_leave_a_valid_bound(press_after, share, given, tmp_path):
    rows, said, task = kinds_of_tasks()
    fixed = {"concentration": 1.0, "feature_prior": 1.0}
    model = kinfolk.ClusteredNB(inference="variational", random_state=3, **fixed, **given)
    cut, other = (clone(model).set_params(checkpoint=tmp_path / which) for which in ("cut", "whole"))
    whole = press_after(share, lambda: other.fit(rows, said, task=task))
    with pytest.raises(KeyboardInterrupt):
        cut.fit(rows, said, task=task)
    assert (whole.interrupted_, cut.interrupted_) == (False, True)
    assert -np.inf < cut.log_evidence_ <= whole.log_evidence_ + 1e-6
    np.testing.assert_allclose(cut.predict_proba(rows, task=task).sum(axis=1), 1.0)
    again = clone(cut).fit(rows, said, task=task)
    assert (again.interrupted_, again.log_evidence_) == (False, whole.log_evidence_)


@pytest.mark.parametrize("kind", [kinfolk.NestedIHMM, kinfolk.SharedIHMM, kinfolk.SingleIHMM])
def test_interrupted_mean_field_of_sequences_has_fewer_iterations(press_after, kind, tmp_path):
    model = kind(4, inference="variational", random_state=3)
    cut, other = (clone(model).set_params(checkpoint=tmp_path / which) for which in ("cut", "whole"))
    whole = press_after(0.99, lambda: other.fit(X[:, :1], LENGTHS, task=WHOSE))
    with pytest.raises(KeyboardInterrupt):
        cut.fit(X[:, :1], LENGTHS, task=WHOSE)
    assert (whole.interrupted_, cut.interrupted_) == (False, True)
    assert np.isfinite(cut.score_samples(X[:, :1], LENGTHS, task=WHOSE)).all()
    again = clone(cut).fit(X[:, :1], LENGTHS, task=WHOSE)
    assert again.posterior_.bound == whole.posterior_.bound
    if kind is kinfolk.SharedIHMM:
        return
    # Clusters are looked for, or tasks are left: there is no model yet.
    press_after(0.3, lambda: clone(whole).set_params(checkpoint=None).fit(X[:, :1], LENGTHS, task=WHOSE))
    early = clone(whole).set_params(checkpoint=tmp_path / "early")
    with pytest.raises(KeyboardInterrupt):
        early.fit(X[:, :1], LENGTHS, task=WHOSE)
    with pytest.raises(NotFittedError):
        early.interrupted_  # noqa: B018 - asked for
    assert early.fit(X[:, :1], LENGTHS, task=WHOSE).posterior_.bound == whole.posterior_.bound


def score_of(graphs):
    """Log score of given structures, by fits of each task that may learn no other."""
    total = 0.0
    for task, graph in graphs.items():
        arcs = list(graph.edges)
        others = [(a, b) for a in graph for b in graph if a != b and (a, b) not in arcs]
        only = kinfolk.BayesNets(required=arcs, forbidden=others, search="climb", tabu=0)
        total += only.fit(NETS[np.asarray(MANY) == task]).log_score_
    return total


@pytest.mark.parametrize("search", ["orders", "classes", "climb"])
def test_an_interrupted_search_has_the_best_structures_so_far_with_their_score(press_after, search, tmp_path):
    model = kinfolk.BayesNets(sharing="none", search=search, restarts=3, random_state=3)
    scores = []
    for share in (0.0, 0.3, 0.6, 0.95):
        cut, other = (clone(model).set_params(checkpoint=tmp_path / f"{share} {which}") for which in range(2))
        whole = press_after(share, lambda other=other: other.fit(NETS, task=MANY))
        with pytest.raises(KeyboardInterrupt):
            cut.fit(NETS, task=MANY)
        assert (whole.interrupted_, cut.interrupted_) == (False, True)
        assert cut.log_score_ == pytest.approx(score_of(cut.graphs_), rel=1e-10)
        scores.append(cut.log_score_)
        again = clone(cut).fit(NETS, task=MANY)
        assert (again.interrupted_, again.log_score_) == (False, whole.log_score_)
    assert scores == sorted(scores)
    assert scores[0] < scores[-1] <= whole.log_score_


@pytest.mark.parametrize("share", [0.0, 0.5, 0.95])
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"penalty": 0.9},
        {"penalty": 1.0, "arc_penalty": {("0", "1"): 0.5}},
        {"sharing": "identical"},
        {"sharing": "pooled"},
        {"structure_prior": "learn"},
        {"prior": "paired"},
    ],
    ids=str,
)
def test_a_joint_search_that_was_interrupted_answers(press_after, tmp_path, share, given):
    model = kinfolk.BayesNets(random_state=3, **given)
    cut, other = (clone(model).set_params(checkpoint=tmp_path / which) for which in ("cut", "whole"))
    whole = press_after(share, lambda: other.fit(NETS, task=MANY))
    with pytest.raises(KeyboardInterrupt):
        cut.fit(NETS, task=MANY)
    assert cut.interrupted_
    assert np.isfinite([cut.log_score_, cut.arc_probability_]).all()
    assert np.isfinite(cut.score_samples(NETS, task=MANY)).all()
    again = clone(cut).fit(NETS, task=MANY)
    assert (again.interrupted_, again.log_score_, again.penalty_) == (False, whole.log_score_, whole.penalty_)


def test_a_penalty_that_was_being_validated_leaves_nothing(press_after):
    model = kinfolk.BayesNets(penalty="validate", random_state=3)
    press_after(0.3, lambda: clone(model).fit(NETS, task=MANY))
    with pytest.raises(KeyboardInterrupt):
        model.fit(NETS, task=MANY)
    with pytest.raises(NotFittedError):
        model.interrupted_  # noqa: B018 - asked for


SEARCHES = """
import os, signal, threading, time, warnings
import kinfolk
from kinfolk.datasets import make_random_network, sample_tasks
from kinfolk.interrupts import Stop

warnings.simplefilter("ignore")
small, large = (sample_tasks([make_random_network(n, random_state=0)], 5000, random_state=0) for n in (10, 200))
plain = kinfolk.BayesNets(sharing="none", search="climb", tabu=0).fit(small).log_score_
asked, pressed = Stop.asked, []
def press():
    pressed.append(time.process_time())
    os.kill(os.getpid(), signal.SIGINT)
def asked_and_timed(stop):
    # From the first question on, it is searched.
    if stop.path and not pressed:
        pressed.append(None)
        threading.Timer(0.02, press).start()
    return asked(stop)
Stop.asked = asked_and_timed
for tables, given in (
    (small, {"restarts": 10**7}),
    (large, {}),
    (large, {"search": "classes"}),
    (large, {"search": "climb", "tabu": 10**6}),
):
    pressed[:] = [None]
    kinfolk.BayesNets(sharing="none", random_state=0, **given | {"restarts": 0, "tabu": 1}).fit(small)
    pressed.clear()
    model = kinfolk.BayesNets(sharing="none", random_state=0, **given)
    try:
        model.fit(tables)
    except KeyboardInterrupt:
        waited = time.process_time() - pressed[-1]
        assert model.interrupted_ and waited < 3.0, (given, waited)
        assert len(model.graphs_[0]) == len(tables[0].columns)
        assert tables is large or model.log_score_ >= plain
        continue
    raise SystemExit(f"{given}: not interrupted")
print("as it should be")
"""


def test_a_search_of_one_structure_leaves_what_there_is_when_a_real_signal_comes():
    done = subprocess.run([sys.executable, "-c", SEARCHES], capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "as it should be"), done.stderr[-2000:]


@pytest.mark.parametrize("n_draws", [[3, 3], [9, 1], [5, 4, 4, 0], [1, 0]])
def test_chains_of_unlike_length_leave_as_many_draws_as_can_be(n_draws):
    most = max(len(some) * n for n in range(1, 10) for some in [[m for m in n_draws if m >= n]])
    which, n = equally_long(n_draws)
    assert len(which) * n == most
    assert all(n_draws[chain] >= n for chain in which)


ON_THREADS = """
import os, signal, threading, time, warnings
import numpy as np
import kinfolk
from kinfolk.naive_bayes.inference.gibbs import Chain

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X, y, task = rng.integers(0, 3, (200, 4)), rng.integers(0, 2, 200), np.arange(200) % 10
sweep, swept, slow = Chain.sweep, [], 0.0
def counted(chain, rng):
    swept.append(time.monotonic())
    time.sleep(slow)
    return sweep(chain, rng)
Chain.sweep = counted
def fit(model):
    try:
        model.fit(X, y, task=task)
    except KeyboardInterrupt:
        n = len(swept)
        time.sleep(0.5)
        # A sweep that each of two threads was in may have ended, and none has begun.
        assert len(swept) <= n + {over}, (len(swept), n)
        return time.monotonic() - pressed[-1] - 0.5
    raise SystemExit("not interrupted")
model = kinfolk.ClusteredNB(inference="gibbs", n_chains=2, n_burn_in=20, n_draws=10**6, n_jobs=2, random_state=0)
kinfolk.ClusteredNB(inference="gibbs", n_chains=1, n_burn_in=1, n_draws=1, random_state=0).fit(X, y, task=task)
swept.clear()
pressed, slow = [], {slow}
def press():
    pressed.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)
for delay in {delays}:
    threading.Timer(delay, press).start()
waited = fit(model)
assert hasattr(model, "tasks_") == {fitted}
if {fitted}:
    assert model.interrupted_ and model.posterior_.log_joint.shape[0] == 2
else:
    assert waited < 1.0, waited
print("as it should be")
"""


@pytest.mark.parametrize(
    "case",
    [
        {"delays": (1.5,), "slow": 0.0, "fitted": True, "over": 0},
        {"delays": (1.0, 1.3), "slow": 3.0, "fitted": False, "over": 2},
    ],
    ids=["once", "twice"],
)
def test_no_thread_goes_on_behind_an_interrupt(case):
    program = ON_THREADS
    for name, value in case.items():
        program = program.replace(f"{{{name}}}", repr(value))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "as it should be"), done.stderr[-2000:]


IN_PROCESSES = """
import os, signal, threading, time, warnings
import numpy as np
import kinfolk

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X, lengths, task = rng.integers(0, 4, 120), [10] * 12, list("aabbccddeeff")
model = kinfolk.SharedIHMM(4, n_chains=2, n_burn_in=5, n_draws=10**6, n_jobs=2, random_state=0, verbose=False)
# As a terminal does it: to all processes of the group.
threading.Timer(20.0, os.killpg, (os.getpgid(0), signal.SIGINT)).start()
try:
    model.fit(X, lengths, task=task)
except KeyboardInterrupt:
    assert model.interrupted_ and model.log_joint_.shape[0] == 2, model.log_joint_.shape
    print("as it should be")
"""


@pytest.mark.slow
def test_chains_in_processes_leave_their_draws():
    run = subprocess.run(
        [sys.executable, "-c", IN_PROCESSES],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        start_new_session=True,
    )
    assert (run.returncode, run.stdout.strip()) == (0, "as it should be"), run.stderr[-2000:]
