"""Fixtures that several test files share."""

import pytest

from tests.saved_models import LABEL, TASK, X, saved


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
