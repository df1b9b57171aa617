"""What lies in the folder that ``KINFOLK_DATA`` names: every set's files, where they come from, and who reads them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from kinfolk.datasets.real import HOSPITALS, VARIABLE

_NETWORKS = ("alarm", "insurance")


class DataFolder(NamedTuple):
    """A folder of data: its files, the loader that reads them, where to get them, and the studies that need them."""

    name: str
    files: tuple[str, ...]
    loader: str
    source: str
    studies: tuple[str, ...] = ()


CATALOGUE = (
    DataFolder(
        "adult",
        ("adult.csv.gz",),
        "load_real",
        "Census income, UCI Machine Learning Repository (Becker and Kohavi): training and test rows in one table with "
        "a header, `?` for missing",
        ("sharing-real",),
    ),
    DataFolder(
        "bayesnets",
        tuple(f"{name}.bif.gz" for name in _NETWORKS),
        "load_network",
        "ALARM and INSURANCE in BIF, from the Bayesian network repository; the package pgmpy 0.1.25 on PyPI (MIT) "
        "brings them as example models",
        ("networks-figure-1", "networks-figure-2", "networks-figure-3", "networks-figure-4", "networks-figure-5"),
    ),
    DataFolder(
        "categorical_multitask",
        ("bank_choice.csv.gz", "contraception.csv.gz", "guimmun.csv.gz", "insteval.csv.gz"),
        "load_real",
        "Data sets of the R packages bayesm (bank), mlmRev (Contraception, guImmun) and lme4 (InstEval), all GPL-2 or "
        "later, written as CSV",
        ("sharing-real", "thesis-real"),
    ),
    DataFolder(
        "feederwatch_wa_or",
        ("checklists.csv.gz", "counts.npz", "species.csv"),
        "load_feederwatch",
        "Project FeederWatch (Cornell Lab of Ornithology and Birds Canada), Washington and Oregon, from the R package "
        "PFW (pfw_example, GPL-3)",
        ("networks-figure-7", "networks-figure-8"),
    ),
    DataFolder(
        "heart_disease",
        tuple(f"processed.{hospital}.data" for hospital in HOSPITALS),
        "load_real",
        "Heart disease, UCI Machine Learning Repository (Janosi, Steinbrunn, Pfisterer and Detrano), the four "
        "processed files as they are",
        ("sharing-real", "thesis-real"),
    ),
    DataFolder(
        "japanese_vowels",
        ("japanese_vowels.npz",),
        "load_vowels",
        "Japanese Vowels, UCI Machine Learning Repository (Kudo, Toyama and Shimbo): arrays `frames`, `lengths`, "
        "`speaker`, `is_train`",
        ("sequences-vowels",),
    ),
    DataFolder(
        "landmine",
        ("LandmineData.mat",),
        "load_numeric",
        "Landmine detection (Xue, Liao, Carin and Krishnapuram 2007), no licence stated",
        ("lica-numeric",),
    ),
    DataFolder(
        "lenk_computer",
        ("lenk_data.mat",),
        "load_numeric",
        "Ratings of computers (Lenk, DeSarbo, Green and Young 1996), no licence stated",
        ("lica-numeric",),
    ),
    DataFolder(
        "mocap6",
        ("actions_per_tstep.csv", "metadata_per_seq.csv", "sensor_data_per_tstep.csv"),
        "load_mocap",
        "Six recordings of exercises of the CMU motion capture database, labelled by Fox, Hughes, Sudderth and Jordan "
        "(2014), from the repository of bnpy (BSD-3-Clause)",
        ("sequences-mocap",),
    ),
    DataFolder(
        "music_clips",
        ("clips.json", "mfcc.npz"),
        "load_music",
        "Ten scores of the corpus of the package music21 (BSD), rendered with FluidSynth; not public as sound",
        ("sequences-music",),
    ),
    DataFolder(
        "parkinsons",
        ("parkinsons_updrs.csv.gz",),
        "load_numeric",
        "Parkinsons telemonitoring, UCI Machine Learning Repository (Tsanas and Little)",
    ),
    DataFolder(
        "rcv1_subsets",
        ("rcv1_subsets.npz",),
        "load_rcv1",
        "RCV1-v2, five samples of documents as vectors (Lewis et al. 2004), from the R package mldr.datasets",
        ("lica-figure-2-rcv1",),
    ),
    DataFolder(
        "reuters21578",
        ("reuters21578.jsonl.xz", "modapte_topics.json"),
        "load_reuters",
        "Reuters-21578, Distribution 1.0, for research only; a JSON object for each document",
        ("lica-figure-2-reuters",),
    ),
    DataFolder(
        "school",
        ("school.mat",),
        "load_numeric",
        "Examination scores of the Inner London Education Authority, as in the package MALSAR; no licence stated",
        ("lica-numeric",),
    ),
)


def missing_files(root: Path | None = None) -> dict[str, tuple[str, ...]]:
    """By the name of each folder, those of its files that are not there.

    Parameters
    ----------
    root : Path, optional
        The folder of folders; by default the one that ``KINFOLK_DATA`` names. Without either, all files are missing.

    Returns
    -------
    dict
    """
    named = os.environ.get(VARIABLE)
    home = root if root is not None else Path(named) if named else None
    return {
        folder.name: tuple(file for file in folder.files if home is None or not (home / folder.name / file).is_file())
        for folder in CATALOGUE
    }
