"""Generated data sets from the papers, and loaders of real ones found through ``KINFOLK_DATA``."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kinfolk.datasets.feederwatch import load_feederwatch
    from kinfolk.datasets.lica_tasks import make_lica_tasks
    from kinfolk.datasets.meetings import MEETING_FEATURES, TEAM, make_meetings
    from kinfolk.datasets.music import load_music
    from kinfolk.datasets.networks import load_network, make_random_network, sample_tasks
    from kinfolk.datasets.numeric_tasks import load_numeric
    from kinfolk.datasets.real import load_real
    from kinfolk.datasets.related_networks import make_related_networks
    from kinfolk.datasets.sequences import make_kin_sequences, make_sequences
    from kinfolk.datasets.text_topics import load_rcv1, load_reuters
    from kinfolk.datasets.vowels import load_vowels

_HOME = {
    "MEETING_FEATURES": "kinfolk.datasets.meetings",
    "TEAM": "kinfolk.datasets.meetings",
    "load_feederwatch": "kinfolk.datasets.feederwatch",
    "load_music": "kinfolk.datasets.music",
    "load_network": "kinfolk.datasets.networks",
    "load_numeric": "kinfolk.datasets.numeric_tasks",
    "load_rcv1": "kinfolk.datasets.text_topics",
    "load_real": "kinfolk.datasets.real",
    "load_reuters": "kinfolk.datasets.text_topics",
    "load_vowels": "kinfolk.datasets.vowels",
    "make_kin_sequences": "kinfolk.datasets.sequences",
    "make_lica_tasks": "kinfolk.datasets.lica_tasks",
    "make_meetings": "kinfolk.datasets.meetings",
    "make_random_network": "kinfolk.datasets.networks",
    "make_related_networks": "kinfolk.datasets.related_networks",
    "make_sequences": "kinfolk.datasets.sequences",
    "sample_tasks": "kinfolk.datasets.networks",
}

__all__ = [
    "MEETING_FEATURES",
    "TEAM",
    "load_feederwatch",
    "load_music",
    "load_network",
    "load_numeric",
    "load_rcv1",
    "load_real",
    "load_reuters",
    "load_vowels",
    "make_kin_sequences",
    "make_lica_tasks",
    "make_meetings",
    "make_random_network",
    "make_related_networks",
    "make_sequences",
    "sample_tasks",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
