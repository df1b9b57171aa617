"""``kinfolk warm-up`` compiles beforehand what a fit would compile."""

import pytest

import kinfolk
from kinfolk.cli import small_fits, warm_up
from kinfolk.cli.small_fits import Fit
from tests.cli.conftest import Run


def test_what_was_compiled_beforehand_is_not_compiled_again(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    groups = {"trees": (Fit("NoSharingNB"),), "others": (Fit("CompleteSharingNB"),)}
    monkeypatch.setattr(small_fits, "GROUPS", groups)
    folder = warm_up.warm_up(n_jobs=1).folder
    done = run("warm-up", "--jobs", 1)
    assert "compiled already" in done.stdout
    assert folder is not None
    assert done.stdout.endswith(f"they are in {folder}\n")
    assert any(folder.iterdir())


def test_every_estimator_is_among_the_small_fits() -> None:
    estimators = {
        name for name in kinfolk.__all__ if name.endswith(("NB", "Nets", "net", "IHMM", "sor")) or "LICA" in name
    }
    assert estimators <= {fit.estimator for fits in small_fits.GROUPS.values() for fit in fits}


def test_the_command_explains_itself_with_an_example(run: Run) -> None:
    assert "kinfolk warm-up" in run("warm-up", "--help").stdout
