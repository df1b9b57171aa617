"""What an experiment leaves behind: numbers as CSV, a picture as PNG, and the paper's findings beside ours."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Literal, NamedTuple

import polars as pl
from matplotlib.figure import Figure

from kinfolk.files import whole_file

DECIMALS = 6

# "open": the data at hand, or the length of the run, cannot tell.
Verdict = Literal["held", "partly", "not held", "open"]


class About(NamedTuple):
    """What stood in the paper, and what stands in for its data."""

    paper: str
    did: str
    stands_in: str
    found: tuple[str, ...]
    """The paper's findings, each of which is held against one of ours."""


class Study(NamedTuple):
    """What an experiment measured."""

    table: pl.DataFrame
    figure: Figure
    ours: tuple[str, ...]
    """What came out here, in the order of `About.found`."""
    setting: str
    """How much was run: people, splits, seed."""
    details: str = ""
    """What else the report should show, as Markdown."""
    held: tuple[Verdict, ...] = ()
    """Whether each of the paper's findings holds here; empty where the study leaves that to the reader."""


class Outcome(NamedTuple):
    """What was published: the numbers, the report's text, where the files are, what came out, and how much was run."""

    table: pl.DataFrame
    report: str
    csv: Path
    png: Path
    markdown: Path
    ours: tuple[str, ...]
    setting: str
    held: tuple[Verdict, ...] = ()


def publish(output: Path, name: str, title: str, about: About, study: Study) -> Outcome:
    r"""Write ``NAME.csv``, ``NAME.png`` and the report ``NAME.md`` into a folder, which is made where there is none.

    Parameters
    ----------
    output : Path
        The folder; experiments of several names can share it.
    name, title : str
        Of the experiment.
    about : About
    study : Study

    Returns
    -------
    Outcome

    Examples
    --------
    >>> import tempfile
    >>> about = About("Nobody (1900)", "Tossed a coin.", "A made-up coin.", ("It fell on its edge.",))
    >>> study = Study(pl.DataFrame({"edge": [0.0]}), Figure(), ("It did not.",), "one toss")
    >>> outcome = publish(Path(tempfile.mkdtemp()), "coin", "A coin", about, study)
    >>> outcome.csv.read_text()
    'edge\n0.000000\n'
    """
    output.mkdir(parents=True, exist_ok=True)
    csv, png, markdown = (output / f"{name}.{kind}" for kind in ("csv", "png", "md"))
    report = write_report(title, about, study)
    write_whole(csv, study.table.write_csv(float_precision=DECIMALS).encode())
    write_whole(png, as_png(study.figure))
    pointers = f"![{title}]({png.name})\n\nThe numbers are in [{csv.name}]({csv.name}).\n"
    write_whole(markdown, f"{report}\n{pointers}".encode())
    return Outcome(study.table, report, csv, png, markdown, study.ours, study.setting, study.held)


def write_report(title: str, about: About, study: Study) -> str:
    """Set the paper's findings beside ours, as Markdown."""
    if study.held:
        heads = ["| The paper found | Here | |", "| --- | --- | --- |"]
        found = zip(about.found, study.ours, study.held, strict=True)
        rows = [f"| {paper} | {here} | {verdict} |" for paper, here, verdict in found]
    else:
        heads = ["| The paper found | Here |", "| --- | --- |"]
        rows = [f"| {paper} | {here} |" for paper, here in zip(about.found, study.ours, strict=True)]
    return "\n".join(
        [
            f"# {title}",
            "",
            f"**The paper.** {about.paper}",
            "",
            f"**What it did.** {about.did}",
            "",
            f"**What data stands in.** {about.stands_in}",
            "",
            f"**What was run.** {study.setting}",
            "",
            *heads,
            *rows,
            "",
            *([study.details, ""] if study.details else []),
        ]
    )


def judge(*whole: bool | None, most: bool = False) -> Verdict:
    """One verdict of several conditions: all of them held, some, none; None among them cannot be told.

    Parameters
    ----------
    *whole : bool or None
        Conditions.
    most : bool, default=False
        Whether more than half of them are enough.

    Examples
    --------
    >>> judge(True, True), judge(True, False), judge(False), judge(None, False), judge(True, True, False, most=True)
    ('held', 'partly', 'not held', 'open', 'held')
    """
    if any(one is None for one in whole):
        return "open"
    true = sum(map(bool, whole))
    if true == len(whole) or (most and 2 * true > len(whole)):
        return "held"
    return "partly" if true else "not held"


def as_png(figure: Figure) -> bytes:
    """Draw a figure into the bytes of a PNG file."""
    stream = BytesIO()
    figure.savefig(stream, format="png", dpi=150, facecolor="white")
    return stream.getvalue()


def write_whole(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    with whole_file(path) as file:
        file.write(content)
