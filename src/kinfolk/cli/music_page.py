"""The report of ``kinfolk music``: one HTML file that needs nothing else, with the Hinton diagram drawn into it."""

from __future__ import annotations

from html import escape
from io import StringIO
from pathlib import Path
from typing import Any

from kinfolk.cli.music import kin_text
from kinfolk.files import whole_file

STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #333; background: #fff; max-width: 60rem; margin: 2rem auto;
  padding: 0 1rem; }
h1, h2 { line-height: 1.2; font-weight: 600; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .35rem .8rem .35rem 0; border-bottom: 1px solid #eee; vertical-align: top; }
th, td.number { white-space: nowrap; }
td:first-child, li { min-width: 9rem; overflow-wrap: anywhere; }
td.number { font-variant-numeric: tabular-nums; }
figure { margin: 1rem 0; }
figure svg { max-width: 100%; height: auto; }
.swatch { display: inline-block; width: .8em; height: .8em; margin-right: .4em; }
.note { background: #fff7e0; border-left: 4px solid #e69f00; padding: .5rem 1rem; }
"""


def write_page(path: Path, about: dict[str, Any], model: Any) -> None:
    """Write what `kinfolk.cli.music.describe` found, whole or not at all."""
    with whole_file(path) as file:
        file.write(page(about, model).encode())


def page(about: dict[str, Any], model: Any) -> str:
    """The report as HTML."""
    from kinfolk import __version__
    from kinfolk.plots import style

    colours = style.colours([entry["group"] for entry in about["recordings"]])
    what = (
        "ten cepstral coefficients"
        if about["codes"] is None
        else f"one of {about['codes']} codes, learnt from all recordings"
    )
    how = "a variational approximation" if about["inference"] == "variational" else "Gibbs sampling"
    n_groups, n_recordings = len(about["groups"]), len(about["recordings"])
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>Which recordings are alike</title><style>{STYLE}</style></head><body>",
            "<h1>Which recordings are alike</h1>",
            f"<p>{n_recordings:,} recordings fall into {n_groups:,} {'group' if n_groups == 1 else 'groups'}.</p>",
            *(f'<p class="note">{escape(note)}</p>' for note in about["notes"]),
            "<h2>Groups</h2>",
            _groups(about, colours),
            "<h2>How probably each pair is kin</h2>",
            f"<figure>{_diagram(model)}</figure>",
            "<h2>Recordings and their kin</h2>",
            _table(about, colours),
            "<h2>How this was found</h2>",
            f"<p>Each frame of 25 ms is {what}; recordings are cut into sequences of one second. Every recording has a "
            "hidden Markov model of its own, and two are kin if their models share what the hidden states sound like "
            f"(the nDP-iHMM of Ni, Carin and Dunson, 2007). Probabilities come from {how}; the groups are the "
            "partition that agrees best with them.</p>",
            f"<p>kinfolk {escape(__version__)}</p>",
            "</body></html>\n",
        ]
    )


def _swatch(colours: dict[Any, str], group: int) -> str:
    from kinfolk.plots import style

    return f'<span class="swatch" style="background:{colours.get(group, style.ALONE)}"></span>'


def _groups(about: dict[str, Any], colours: dict[Any, str]) -> str:
    items = [
        f"<li>{_swatch(colours, number)}{', '.join(map(escape, names))}</li>"
        for number, names in enumerate(about["groups"], start=1)
    ]
    return f"<ol>{''.join(items)}</ol>"


def _table(about: dict[str, Any], colours: dict[Any, str]) -> str:
    rows = []
    for entry in about["recordings"]:
        silent = " (silent)" if entry["silent"] else ""
        rows.append(
            f"<tr><td>{_swatch(colours, entry['group'])}{escape(entry['recording'])}{silent}</td>"
            f'<td class="number">{entry["group"]}</td><td class="number">{entry["seconds"]:,.0f} s</td>'
            f"<td>{escape(kin_text(entry['kin'], most=8))}</td></tr>"
        )
    head = "<tr><th>recording</th><th>group</th><th>length</th><th>kin (probability)</th></tr>"
    return f"<table><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>"


def _diagram(model: Any) -> str:
    """The Hinton diagram as SVG, the same for the same model."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    from kinfolk.plots import hinton

    n_tasks = len(model.tasks_)
    inches = min(max(2.0 + 0.3 * n_tasks, 4.0), 11.0)
    # Letters as paths, so that the picture is the same whatever fonts a reader has.
    with mpl.rc_context({"svg.hashsalt": "kinfolk", "svg.fonttype": "path"}):
        figure = Figure(figsize=(inches, inches), layout="constrained")
        hinton(model, ax=figure.subplots())
        stream = StringIO()
        figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    drawn = stream.getvalue()
    return drawn[drawn.index("<svg") :]
