"""``kinfolk music``: which recordings of a folder are alike (the music study of Ni, Carin and Dunson 2007)."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kinfolk.cli.commands import say, told_by
from kinfolk.cli.options import AsJson
from kinfolk.cli.tables import fact_lines, json_text, text_table
from kinfolk.files import check_target

if TYPE_CHECKING:
    from kinfolk.datasets.sound.audio import Music

EXAMPLE = """\b
Example:
  kinfolk music songs -o songs.html
  kinfolk music songs --frames gaussian --quick --json"""

# A pair that is kin with less probability than this is not worth a line.
_LEAST_SIMILARITY = 0.005


class Frames(StrEnum):
    """What a recording is described by."""

    codes = "codes"
    gaussian = "gaussian"


def music(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder of sound files: WAV, or with the extra 'audio' most kinds.")
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write a report, one HTML file, as well.")
    ] = None,
    frames: Annotated[
        Frames,
        typer.Option(
            help="Describe a frame of 25 ms by one of a few codes that are learnt from all recordings, or by its ten "
            "cepstral coefficients, normally distributed in each hidden state."
        ),
    ] = Frames.codes,
    codes: Annotated[int, typer.Option(metavar="N", help="Number of codes.", min=1)] = 32,
    states: Annotated[int, typer.Option(metavar="N", help="Hidden states of a cluster, at most.", min=1)] = 20,
    longest: Annotated[
        float, typer.Option(metavar="SECONDS", help="Use the middle of a longer recording only.", min=1.0)
    ] = 60.0,
    skip: Annotated[
        bool, typer.Option("--skip", help="Leave out files that cannot be read, and say so, instead of stopping.")
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Approximate the posterior instead of sampling it: much faster.")
    ] = False,
    seed: Annotated[
        int, typer.Option(metavar="N", help="Seed of the random numbers: the same seed gives the same results.", min=0)
    ] = 0,
    jobs: Annotated[int, typer.Option(metavar="N", help="Processor cores to use; -1 for all.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Find out which recordings of a folder are alike.

    Every recording is a task, cut into sequences of one second, and has its own hidden Markov model. Two recordings are
    kin if their models share what the hidden states sound like; prints how probable that is for each pair.
    """
    import kinfolk

    if output is not None:
        check_target(output)
    read = _read(folder, frames, codes, longest, seed, skip)
    if len(read.recordings) < 2:
        raise ValueError(f"{folder} holds one recording that can be used: at least two are needed to compare")
    model = kinfolk.NestedIHMM(
        n_states=states,
        emission="categorical" if frames is Frames.codes else "gaussian",
        inference="variational" if quick else "gibbs",
        random_state=seed,
        n_jobs=jobs,
        verbose=sys.stderr.isatty(),
    )
    notes = [f"{recording.name} is silent" for recording in read.recordings if recording.silent]
    notes += _fit(model, read)
    for note in notes:
        say(note)
    about = describe(model, read, notes)
    if output is not None:
        from kinfolk.cli.music_page import write_page

        write_page(output, about, model)
    typer.echo(json_text(about) if as_json else _text(about, output), nl=False)


def _read(folder: Path, frames: Frames, codes: int, longest: float, seed: int, skip: bool) -> Music:
    from kinfolk.datasets.sound.audio import read_music
    from kinfolk.datasets.sound.sound_files import sound_files
    from kinfolk.progress import progress_bar

    files = sound_files(folder)
    with progress_bar("Reading recordings", len(files), sys.stderr.isatty()) as advance:
        return read_music(
            files,
            frames=frames.value,
            n_codes=codes,
            longest=longest,
            random_state=seed,
            advance=advance,
            leave_out=(lambda error: say(f"left out: {error}")) if skip else None,
        )


def _fit(model: Any, read: Music) -> list[str]:
    """Fit; give what warnings say."""
    import warnings

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(read.X, read.lengths, task=read.task)
    return told_by(caught)


def describe(model: Any, read: Music, notes: list[str]) -> dict[str, Any]:
    """What was found, as one document: groups, and for each recording how probably it is kin with others."""
    import numpy as np

    names = [str(task) for task in model.tasks_]
    similarity = np.asarray(model.similarity_)
    partition = np.asarray(model.partition_)
    known = {recording.name: recording for recording in read.recordings}
    n_sequences = dict(zip(*np.unique(read.task, return_counts=True), strict=True))
    recordings = []
    for place, name in enumerate(names):
        # By probability, and between equals in the order of names.
        others = [other for other in np.argsort(-similarity[place], kind="stable").tolist() if other != place]
        kin = [
            {"recording": names[other], "probability": float(similarity[place, other])}
            for other in others
            if similarity[place, other] >= _LEAST_SIMILARITY
        ]
        recording = known[name]
        recordings.append(
            {
                "recording": name,
                "seconds": round(recording.seconds, 3),
                "sequences": int(n_sequences[name]),
                "silent": recording.silent,
                "group": int(partition[place]) + 1,
                "kin": kin,
            }
        )
    groups = [
        [name for name, block in zip(names, partition.tolist(), strict=True) if block == number]
        for number in range(int(partition.max()) + 1)
    ]
    return {
        "frames": "gaussian" if read.codebook is None else "codes",
        "codes": None if read.codebook is None else len(read.codebook.centres),
        "inference": model.inference,
        "groups": groups,
        "recordings": recordings,
        "notes": notes,
    }


def kin_text(kin: list[dict[str, Any]], most: int = 4) -> str:
    """Kin with their probabilities, in words.

    Examples
    --------
    >>> kin_text([{"recording": "b", "probability": 0.97}, {"recording": "c", "probability": 0.01}])
    'b (0.97), c (0.01)'
    """
    if not kin:
        return "none"
    parts = [f"{other['recording']} ({other['probability']:.2f})" for other in kin[:most]]
    return ", ".join(parts) + (f" and {len(kin) - most} more" if len(kin) > most else "")


def _text(about: dict[str, Any], output: Path | None) -> str:

    what = "cepstra" if about["codes"] is None else f"{about['codes']} codes"
    facts = [
        ("recordings", f"{len(about['recordings']):,}, as {what}, 40 frames a second"),
        ("inference", about["inference"]),
        ("groups", f"{len(about['groups']):,}"),
        *([("report", str(output))] if output is not None else []),
    ]
    rows = [[entry["recording"], entry["group"], kin_text(entry["kin"])] for entry in about["recordings"]]
    return f"{fact_lines(facts)}\n{text_table(['recording', 'group', 'kin (probability)'], rows)}"
