"""Draws handed to ArviZ are those of the chains, whichever version of it there is."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

import kinfolk

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


@pytest.mark.filterwarnings("ignore::FutureWarning")  # ArviZ 0.23 announces ArviZ 1
def test_arviz_itself_finds_the_r_hat_that_the_model_reports():
    arviz = pytest.importorskip("arviz", reason="ArviZ is not installed")
    model = kinfolk.ClusteredNB(inference="gibbs", n_chains=4, n_burn_in=20, n_draws=100, random_state=0)
    model.fit(ROWS, LABELS, task=TASKS)
    data = model.to_arviz()
    assert data["posterior"]["cluster"].dims == ("chain", "draw", "task")
    assert data["posterior"]["task"].values.tolist() == ["u", "v", "w"]
    lp = np.asarray(data["sample_stats"]["lp"])
    assert float(arviz.rhat(lp)) == pytest.approx(model.convergence_.r_hat["log joint"], rel=1e-6)


def test_models_without_chains_and_a_missing_arviz_are_told_of_in_a_sentence(monkeypatch):
    with pytest.raises(ValueError, match="ClusteredNB was not fitted by sampling"):
        kinfolk.ClusteredNB().fit(ROWS, LABELS, task=TASKS).to_arviz()
    with pytest.raises(ValueError, match="LICAClassifier was not fitted by sampling"):
        kinfolk.LICAClassifier(n_sources=1, random_state=0).fit(
            [[0.0], [1.0]] * 6, [0, 1] * 6, task=["u", "v"] * 6
        ).to_arviz()
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
