"""What pages are laid out with: the frame of a page, sections, and tables that sort and can be searched.

A page is one file that needs nothing else. Its policy lets no script run but its own and nothing be fetched, whatever a
task or a column is called.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from math import isnan
from typing import Any, NamedTuple

from kinfolk.reporting.drawing import shortened
from kinfolk.reporting.markup import Html, element, joined


class Section(NamedTuple):
    """A part of the page: its anchor, its heading, and what stands below it."""

    anchor: str
    heading: str
    body: Html


def frame(heading: str, facts: Any, parts: Sequence[Section], first: Html, *, pictures: bool = False) -> str:
    """A whole page: the heading, what is answered first, and the sections with their list.

    With ``pictures``, files beside the page may be shown.
    """
    home = files("kinfolk.reporting")
    style, script = (home.joinpath(name).read_text("utf-8") for name in ("page.css", "page.js"))
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{allowed}'"
    policy += "; img-src 'self' file:" if pictures else ""
    links = [element("li", element("a", part.heading, href=f"#{part.anchor}")) for part in parts]
    body = [
        element("section", element("h2", part.heading), part.body, id=part.anchor, aria_label=part.heading)
        for part in parts
    ]
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", f"{heading} · kinfolk report"),
        element("style", Html(style)),
    )
    whole = element(
        "html",
        head,
        element(
            "body",
            element("a", "To the report", href="#summary", class_="skip"),
            element("header", element("h1", heading), element("p", facts, class_="faint")),
            element("nav", element("ul", *links), aria_label="Parts of the report"),
            element("main", element("section", first, id="summary", aria_label="Summary"), *body),
            element(
                "footer", "Made by kinfolk. ", None if pictures else "This page is self-contained and loads nothing."
            ),
            element("script", Html(script)),
        ),
        lang="en",
    )
    return f"<!doctype html>\n{whole}\n"


def sortable(
    anchor: str, heads: Sequence[str], rows: Sequence[Sequence[Any]], *, ids: Sequence[str] = (), search: bool = True
) -> Html:
    """A table that sorts by any column, and can be searched; without a script it is a plain table."""
    body = []
    for place, cells in enumerate(rows):
        tds = [cell if isinstance(cell, Html) and cell.startswith("<td") else element("td", cell) for cell in cells]
        body.append(element("tr", *tds, id=ids[place] if ids else None))
    numeric = [bool(rows) and 'class="n"' in str(rows[0][at])[:14] for at in range(len(heads))]
    head = element(
        "tr",
        *[element("th", name, scope="col", class_="n" if n else None) for name, n in zip(heads, numeric, strict=True)],
    )
    table = element("table", element("thead", head), element("tbody", *body), id=anchor, data_sortable=True)
    tools = None
    if search and len(rows) > 8:
        told = f"{anchor}-told"
        field = element(
            "input", type="search", data_for=anchor, data_told=told, aria_label="Search the table", placeholder="Search"
        )
        tools = element(
            "div", field, element("span", "", id=told, class_="small", role="status"), class_="tools", hidden=True
        )
    return joined(tools, element("div", table, class_="scroll"))


_COLUMNS = {
    "certainty": "Certainty: how probable it is that the task belongs to its cluster.",
    "answers rest on": "Answers rest on: the task’s own rows, those of its kin, those of everybody, and the prior.",
    "loss held out": "Loss held out: the mean loss of the task’s held-out rows; ± is the standard error over rows.",
    "gain over alone": "Gain over alone: how much larger the loss would be if the task learnt from its own rows only.",
    "flags": "Flags: the checks below that found something about the task.",
}


def legend_of(heads: Sequence[str]) -> Html | None:
    """What the columns of a table of tasks mean, of those that it has."""
    told = [_COLUMNS[head] for head in heads if head in _COLUMNS]
    return element("p", " ".join(told), class_="small") if told else None


def made_again(facts: Mapping[str, str]) -> Section:
    """What a page was made of and with, by name."""
    parts: list[Any] = []
    for name, value in facts.items():
        parts += [element("dt", name), element("dd", element("code", value))]
    return Section("again", "How to reproduce this page", element("dl", *parts))


def number(value: float, text: str) -> Html:
    """A cell that sorts by its value."""
    return element("td", text, class_="n", data_v=f"{value:.6g}")


def with_error(value: float, error: float, sign: str = "") -> Html:
    """A cell of a number with its standard error, either of which may be unknown."""
    if isnan(value):
        return element("td", "not tested", class_="n", data_v="")
    tail = "" if isnan(error) else f" ± {error:.3f}"
    return number(float(value), f"{value:{sign}.3f}{tail}")


def swatch(cluster: int) -> Html:
    """The colour of a cluster."""
    return element("span", class_=f"swatch c{cluster % 10}", aria_hidden="true")


def some(names: Sequence[str], most: int) -> str:
    """The first of some names, and how many more there are."""
    return ", ".join(names) if len(names) <= most else f"{', '.join(names[:most])} and {len(names) - most:,} more"


def short(value: Any) -> str:
    """A value of a table, its end left out where it is long."""
    return "missing" if value is None else shortened(str(value), 40)
