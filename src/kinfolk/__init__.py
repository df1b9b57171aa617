"""Learn from many small, related data sets at once: find which tasks are kin and let just those share.

Public names load when they are first used, so that ``import kinfolk`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "NoSharingNB": "kinfolk.naive_bayes.no_sharing",
    "CompleteSharingNB": "kinfolk.naive_bayes.complete_sharing",
    "ClusteredNB": "kinfolk.naive_bayes.clustered",
}

if TYPE_CHECKING:
    from kinfolk.naive_bayes.clustered import ClusteredNB
    from kinfolk.naive_bayes.complete_sharing import CompleteSharingNB
    from kinfolk.naive_bayes.no_sharing import NoSharingNB

__all__ = ["ClusteredNB", "CompleteSharingNB", "NoSharingNB"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
