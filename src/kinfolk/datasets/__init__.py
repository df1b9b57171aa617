"""Generated data sets from the papers, and loaders of real ones found through ``KINFOLK_DATA``.

meetings, meeting_rules      a team's answers to invitations (Roy 2006)
networks, related_networks   Bayes nets, others made from them, and their rows (Niculescu-Mizil and Caruana)
lica_tasks                   tasks drawn from LICA's own model (Zhang et al. 2005)
sequences                    sequences of hidden Markov models, some of them kin (Ni et al. 2007)
real, numeric_tasks          real tables with many tasks
text_topics, feederwatch     news by topic; bird feeders by state and winter
vowels, music, sound/        recordings, and how sound is read
mocap                        recordings of movement
public                       real sets that other packages on PyPI bring
catalogue                    what belongs into the folder of ``KINFOLK_DATA``
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kinfolk.lazy import lazily

if TYPE_CHECKING:
    from kinfolk.datasets.feederwatch import load_feederwatch
    from kinfolk.datasets.lica_tasks import make_lica_documents, make_lica_tasks
    from kinfolk.datasets.meetings import MEETING_FEATURES, TEAM, make_meetings
    from kinfolk.datasets.mocap import load_mocap
    from kinfolk.datasets.music import load_music
    from kinfolk.datasets.networks import load_network, make_random_network, sample_tasks
    from kinfolk.datasets.numeric_tasks import load_numeric
    from kinfolk.datasets.public import load_public
    from kinfolk.datasets.real import load_real
    from kinfolk.datasets.related_networks import make_related_networks
    from kinfolk.datasets.sequences import make_kin_sequences, make_sequences
    from kinfolk.datasets.text_topics import load_rcv1, load_reuters
    from kinfolk.datasets.vowels import load_vowels

__all__ = [
    "MEETING_FEATURES",
    "TEAM",
    "load_feederwatch",
    "load_mocap",
    "load_music",
    "load_network",
    "load_numeric",
    "load_public",
    "load_rcv1",
    "load_real",
    "load_reuters",
    "load_vowels",
    "make_kin_sequences",
    "make_lica_documents",
    "make_lica_tasks",
    "make_meetings",
    "make_random_network",
    "make_related_networks",
    "make_sequences",
    "sample_tasks",
]

__getattr__, __dir__ = lazily(
    __name__,
    {
        "MEETING_FEATURES": "meetings",
        "TEAM": "meetings",
        "load_feederwatch": "feederwatch",
        "load_mocap": "mocap",
        "load_music": "music",
        "load_network": "networks",
        "load_numeric": "numeric_tasks",
        "load_public": "public",
        "load_rcv1": "text_topics",
        "load_real": "real",
        "load_reuters": "text_topics",
        "load_vowels": "vowels",
        "make_kin_sequences": "sequences",
        "make_lica_documents": "lica_tasks",
        "make_lica_tasks": "lica_tasks",
        "make_meetings": "meetings",
        "make_random_network": "networks",
        "make_related_networks": "related_networks",
        "make_sequences": "sequences",
        "sample_tasks": "networks",
    },
)
