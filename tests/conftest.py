"""Fixtures that several test files share."""

import signal

import pytest

from tests.saved_models import LABEL, TASK, X, saved

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # So it is where a shell runs the tests in the background; Ctrl-C is tested all the same, in other processes too.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def path(tmp_path):
    """Where a model may be saved."""
    return tmp_path / "model.kin"


@pytest.fixture
def bhc(path):
    """A fitted model that has a tree, saved."""
    from kinfolk import ClusteredNB

    model = ClusteredNB().fit(X, LABEL, task=TASK)
    saved(model, path)
    return model
