"""Draws handed to ArviZ are those of the chains, whichever version of it there is."""

import inspect
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import kinfolk
from kinfolk.arviz_data import _drawn

ROWS = [["a", "x"], ["b", "y"], ["a", "y"], ["b", "x"]] * 6
LABELS = [0, 1, 0, 1] * 6
TASKS = np.repeat(["u", "v", "w"], 8)
SHORT = {"n_chains": 2, "n_burn_in": 5, "n_draws": 10, "random_state": 0}
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def clustered():
    return kinfolk.ClusteredNB(inference="gibbs", concentration="learn", **SHORT).fit(ROWS, LABELS, task=TASKS)


def prototype():
    return kinfolk.PrototypeNB(**SHORT).fit(ROWS, LABELS, task=TASKS)


def nested():
    X = np.random.default_rng(0).integers(0, 3, size=(60, 1))
    model = kinfolk.NestedIHMM(emission="categorical", n_states=3, n_clusters=3, **SHORT)
    return model.fit(X, [20, 20, 20], task=["u", "v", "w"])


def before_1(posterior=None, sample_stats=None, coords=None, dims=None):
    return SimpleNamespace(posterior=posterior, sample_stats=sample_stats, coords=coords, dims=dims)


def since_1(data, *, coords=None, dims=None):
    return SimpleNamespace(**data, coords=coords, dims=dims)


@pytest.mark.parametrize("from_dict", [before_1, since_1])
@pytest.mark.parametrize("made", [clustered, prototype, nested])
def test_both_versions_of_arviz_get_the_draws_of_the_chains(made, from_dict, monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", SimpleNamespace(from_dict=from_dict))
    model = made()
    found = model.to_arviz()
    assert found.sample_stats["lp"].shape == (2, 10)
    assert all(values.shape[:2] == (2, 10) for values in found.posterior.values())
    if made is not prototype:
        assert found.coords == {"task": ["u", "v", "w"]}
        assert found.dims == {"cluster": ["task"]}
        numbers = [len(set(draw)) for draw in found.posterior["cluster"].reshape(-1, 3).tolist()]
        assert found.posterior["n_clusters"].ravel().tolist() == numbers
    wanted = {clustered: {"concentration"}, prototype: {"strength", "prototype"}, nested: {"eta", "gamma", "alpha"}}
    assert wanted[made] <= set(found.posterior)


def per_feature():
    model = kinfolk.ClusteredNB(partition_per="feature", inference="gibbs", concentration="learn", **SHORT)
    return model.fit(pd.DataFrame(ROWS, columns=["first", "second"]), LABELS, task=TASKS)


def noisy():
    return kinfolk.ClusteredNB(within="noisy", **SHORT).fit(ROWS, LABELS, task=TASKS)


def unlabelled():
    return kinfolk.PrototypeNB(**SHORT).fit(ROWS, [None] * 3 + LABELS[3:], task=TASKS)


def regressions():
    X = np.random.default_rng(0).normal(size=(24, 2))
    return kinfolk.ClusteredClassifier(random_state=0).fit(X, X[:, 0] > 0, task=TASKS)


def of_sequences(kind, **parameters):
    X = np.random.default_rng(0).integers(0, 3, size=(60, 1))
    model = getattr(kinfolk, kind)(emission="categorical", **parameters, **SHORT)
    return model.fit(X, [20, 20, 20], task=["u", "v", "w"])


SAMPLED = {
    "ClusteredNB": clustered,
    "ClusteredNB, noisy copies": noisy,
    "ClusteredNB, a partition per feature": per_feature,
    "PrototypeNB": prototype,
    "PrototypeNB, rows without a label": unlabelled,
    "ClusteredClassifier": regressions,
    "NestedIHMM": nested,
    "SharedIHMM": lambda: of_sequences("SharedIHMM", n_states=3),
    "SingleIHMM": lambda: of_sequences("SingleIHMM", n_states=3),
    "FeatureIHMM": lambda: of_sequences("FeatureIHMM", n_states=3),
    "AveragedIHMM": lambda: of_sequences("AveragedIHMM", n_states=3),
}


@pytest.fixture(scope="module")
def arviz():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ArviZ 0.23 announces ArviZ 1
        return pytest.importorskip("arviz", reason="ArviZ is not installed")


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")  # its R-hat of what never changes
@pytest.mark.parametrize("name", SAMPLED)
def test_arviz_itself_reads_what_every_model_that_samples_drew_and_finds_the_same_r_hat(name, arviz):
    model = SAMPLED[name]()
    data = model.to_arviz()
    posterior, stats = data["posterior"], data["sample_stats"]
    assert all(values.dims[:2] == ("chain", "draw") for group in (posterior, stats) for values in group.values())
    assert len(arviz.summary(data)) >= len(posterior)
    if "cluster" in posterior:
        assert posterior["task"].values.tolist() == ["u", "v", "w"]
        assert (posterior["cluster"].max("task") + 1 == posterior["n_clusters"]).all()
    judged = getattr(model, "convergence_", None)
    for quantity, here in () if judged is None else judged.r_hat.items():
        drawn = {"log joint": stats.get("lp"), "number of clusters": posterior.get("n_clusters")}
        known, _, of = quantity.partition(" of feature ")
        if known not in drawn:
            continue
        values = drawn[known] if not of else drawn[known].isel(feature=int(of))
        if len(np.unique(values)) > 1:  # of what never changes ArviZ's is not a number
            assert rhat_of(arviz, values) == pytest.approx(here, rel=1e-6), quantity


def rhat_of(arviz, values):
    """ArviZ's R-hat of draws (chain, draw); its versions since 1 ask where the two dimensions are."""
    array = np.asarray(values, dtype=float)
    asked = inspect.signature(arviz.rhat).parameters
    return float(arviz.rhat(array, chain_axis=0, draw_axis=1) if "chain_axis" in asked else arviz.rhat(array))


def test_partitions_of_features_are_told_apart_by_the_features_names(arviz):
    model = per_feature()
    posterior = model.to_arviz()["posterior"]
    assert posterior["cluster"].dims == ("chain", "draw", "feature", "task")
    assert posterior["feature"].values.tolist() == ["first", "second"]
    drawn = posterior["cluster"].sel(feature="second").values
    assert (drawn == model.posterior_.by_feature[1].partitions).all()


def test_chains_of_several_models_have_the_models_names_since_only_chains_of_one_compare(arviz):
    model = of_sequences("AveragedIHMM", n_states=3)
    data = model.to_arviz()
    kinds = ["single", "shared", "nested"]
    assert data["posterior"]["chain"].values.tolist() == [f"{kind} {number}" for kind in kinds for number in (1, 2)]
    shared = data["sample_stats"]["lp"].sel(chain=["shared 1", "shared 2"])
    assert rhat_of(arviz, shared) == pytest.approx(model.convergence_.r_hat["log joint of shared"], rel=1e-6)


def test_drawn_partitions_of_regressions_say_how_probable_it_is_that_two_tasks_share():
    model = regressions()
    found = _drawn(model)
    clusters = found.posterior["cluster"]
    assert clusters.shape == (2, 30, 3)
    together = (clusters[..., :, None] == clusters[..., None, :]).mean(axis=(0, 1))
    np.testing.assert_allclose(together, model.similarity_)


def test_models_without_chains_and_a_missing_arviz_are_told_of_in_a_sentence(monkeypatch):
    with pytest.raises(ValueError, match="ClusteredNB was not fitted by sampling"):
        kinfolk.ClusteredNB().fit(ROWS, LABELS, task=TASKS).to_arviz()
    with pytest.raises(ValueError, match="LICAClassifier was not fitted by sampling"):
        kinfolk.LICAClassifier(n_sources=1, random_state=0).fit(
            [[0.0], [1.0]] * 6, [0, 1] * 6, task=["u", "v"] * 6
        ).to_arviz()
    averaged = kinfolk.AveragedNB(random_state=0).fit(ROWS, LABELS, task=TASKS)
    with pytest.raises(ValueError, match=r"AveragedNB is an average .*: take members_\['prototype'\].to_arviz\(\)"):
        averaged.to_arviz()
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(ImportError, match="pip install arviz"):
        clustered().to_arviz()


@pytest.mark.parametrize("broken", ["raise RuntimeError('no match for numpy')", "import no_such_neighbour"])
def test_a_broken_arviz_breaks_nothing_but_what_asks_for_it(broken, tmp_path, monkeypatch):
    (tmp_path / "arviz.py").write_text(broken)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "arviz", raising=False)
    model = clustered()
    assert set(model.convergence_.r_hat) >= {"log joint"}
    model.report(tmp_path / "page.html")
    assert "arviz" not in sys.modules
    with pytest.raises(ImportError, match="ArviZ, which cannot be imported here: "):
        model.to_arviz()
