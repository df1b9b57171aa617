"""Losses, and the decisions that minimise expected loss, "ask" among them (Roy 2006, chapters 1, 3)."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kinfolk.decisions.choosing import decide, expected_loss, realised_loss
    from kinfolk.decisions.classifier import DecisionClassifier
    from kinfolk.decisions.losses import Loss

__all__ = ["DecisionClassifier", "Loss", "decide", "expected_loss", "realised_loss"]

# A saved model decides with NumPy alone, so scikit-learn loads only when its estimator is asked for.
_HOMES = {
    "DecisionClassifier": "kinfolk.decisions.classifier",
    "Loss": "kinfolk.decisions.losses",
    "decide": "kinfolk.decisions.choosing",
    "expected_loss": "kinfolk.decisions.choosing",
    "realised_loss": "kinfolk.decisions.choosing",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
