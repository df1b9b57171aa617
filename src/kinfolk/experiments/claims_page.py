"""The page of all claims: every figure, table and claim of the papers, ours beside it, and whether it holds."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any, NamedTuple

from kinfolk.reporting.layout import Section, frame, sortable
from kinfolk.reporting.markup import Html, element, joined

Record = Mapping[str, Any]


class Claim(NamedTuple):
    """What a paper says at a place, and the finding of a study that measures it; or why none does.

    ``because`` is why it does not hold here, not wholly, or cannot be told.
    """

    paper: str
    place: str
    says: str
    study: str | None
    finding: int
    why: str
    because: str = ""


def read_claims() -> list[Claim]:
    """All claims of ``claims.toml``, in its order."""
    text = files("kinfolk.experiments").joinpath("claims.toml").read_text("utf-8")
    return [
        Claim(paper, **({"study": None, "finding": 0, "why": ""} | one))
        for paper, of_paper in tomllib.loads(text).items()
        for one in of_paper["claims"]
    ]


def claims_page(records: Iterable[Record]) -> str:
    """What papers claim beside what came out, as one page.

    Parameters
    ----------
    records : iterable of mapping
        What each study that was run has left.

    Returns
    -------
    str
        HTML. Pictures are those beside the page, ``NAME.png``.
    """
    known = {record["name"]: record for record in records}
    claims = read_claims()
    counted = Counter(verdict_on(claim, known)[0] for claim in claims)
    parts = [
        _paper(number, paper, [claim for claim in claims if claim.paper == paper], known)
        for number, paper in enumerate(dict.fromkeys(claim.paper for claim in claims))
    ]
    studies = [
        element("div", element("h3", name), _study(record), id=name, class_="study") for name, record in known.items()
    ]
    parts.append(Section("runs", "Studies", joined(*studies)))
    done = [record for record in known.values() if record["not_run"] is None]
    short = sum(bool(record["with"]["quick"]) for record in done)
    said = f"{len(done)} of {len(known)} studies were run{f', {short} of them in their quick form' * bool(short)}."
    order = ("held", "partly", "not held", "open", "in words", "not run", "no measurement")
    totals = [[word, _MEANS[word], str(counted[word])] for word in order if counted[word]]
    states = [
        [
            element("a", name, href=f"#{name}"),
            record["title"],
            _length(record) if record["not_run"] is None else f"not run: {record['not_run']}",
        ]
        for name, record in known.items()
    ]
    first = [
        element("p", f"The papers have {len(claims)} figures, tables and claims in all. {said}"),
        sortable("verdicts", ["verdict", "what it means", "claims"], totals, search=False),
        sortable("studies", ["name", "study", "state"], states),
    ]
    return frame(
        "The papers\u2019 claims, and ours", "Every figure, table and claim", parts, joined(*first), pictures=True
    )


_MEANS = {
    "held": "came out here as the paper says",
    "partly": "some of it did, or on some of the data",
    "not held": "came out otherwise; the sentence beside it says how",
    "open": "the data at hand cannot tell, or the run was too short",
    "in words": "the study gives numbers and leaves the verdict to the reader",
    "not run": "its study was not run, or could not be",
    "no measurement": "a definition, a drawing, a conjecture, or a statement about a program",
}


def verdict_on(claim: Claim, known: Mapping[str, Record]) -> tuple[str, str]:
    """Whether a claim holds, in a word, and what came out."""
    if claim.study is None:
        return "no measurement", claim.why
    record = known.get(claim.study)
    if record is None or record["not_run"] is not None:
        return "not run", "" if record is None else record["not_run"]
    if claim.finding > len(record["ours"]):
        return "not run", "The study\u2019s record is older than this claim."
    held = record.get("held") or []
    verdict, ours = (held[claim.finding - 1] if held else "in words"), record["ours"][claim.finding - 1]
    return verdict, f"{ours} {claim.because}".rstrip() if verdict in ("partly", "not held", "open") else ours


def _paper(number: int, paper: str, claims: list[Claim], known: Mapping[str, Record]) -> Section:
    rows = []
    for claim in claims:
        verdict, ours = verdict_on(claim, known)
        study = "" if claim.study is None else element("a", claim.study, href=f"#{claim.study}")
        record = known.get(claim.study or "")
        quick = record is not None and record["not_run"] is None and record["with"]["quick"]
        told = f"{verdict}{' (quick)' * bool(quick)}"
        rows.append([claim.place, _with_code(claim.says), _with_code(ours), told, study])
    heads = ["where", "the paper says", "here", "verdict", "study"]
    return Section(f"paper-{number}", paper, sortable(f"claims-{number}", heads, rows))


def _length(record: Record) -> str:
    if record["with"]["quick"]:
        return "run, quick"
    if record["with"].get("part"):
        return "run in part"
    repeats = record["with"].get("repeats")
    if repeats is None:
        return "run in full"
    return "run once, without repeats" if repeats == 1 else f"run, with {repeats} repeats of everything"


def _with_code(text: str) -> Html:
    """Text in which what stands between backticks is code."""
    parts = text.split("`")
    return joined([element("code", part) if at % 2 else part for at, part in enumerate(parts)])


def _command(record: Record) -> str:
    command = f"kinfolk reproduce {record['name']}" + (" --quick" if record["with"]["quick"] else "")
    if "repeats" in record["with"]:
        command += f" --repeats {record['with']['repeats']}"
    return command + (f" --seed {record['with']['seed']}" if record["with"]["seed"] else "")


def _study(record: Record) -> Html:
    parts: list[Any] = [
        element("p", record["title"]),
        element("p", f"Paper: {record['paper']} Data: ", _with_code(record["stands_in"]), class_="small"),
    ]
    if record["not_run"] is not None:
        parts += [element("p", element("b", "Not run: "), record["not_run"])]
        parts += [element("ul", *[element("li", f"The paper found: {found}") for found in record["found"]])]
    else:
        held = record.get("held") or [""] * len(record["ours"])
        rows = [list(cells) for cells in zip(record["found"], record["ours"], held, strict=True)]
        heads = ["The paper found", "Here", "Verdict"]
        parts.append(sortable(f"{record['name']}-table", heads, rows, search=False))
        picture = element("img", src=f"{record['name']}.png", alt=f"Picture of {record['name']}", loading="lazy")
        parts.append(element("figure", picture))
        took = (
            f"{record['run']} {record['seconds']:g} s on {record['processor']}, {record['cores']} cores, Python "
            f"{record['python']}; kinfolk {record['with']['kinfolk']}"
            + (f", commit {record['commit']}." if record["commit"] else ".")
        )
        parts.append(element("p", took, class_="small"))
        parts.append(element("p", "Numbers: ", element("a", f"{record['name']}.csv", href=f"{record['name']}.csv")))
    parts.append(element("p", "Again: ", element("code", _command(record))))
    return joined(*parts)
