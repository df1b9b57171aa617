"""Pictures of a report as SVG within the page: they follow its light and dark colours, and print.

Colours are classes of the page's style sheet (``c0`` to ``c9`` for clusters), never values, so that one picture serves
both. Every picture has a title and a sentence for those who do not see it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.arrays import Floats
from kinfolk.reporting.markup import Html, element

_LEVELS = 8
_MOST_NAMED = 60
_LONGEST_NAME = 22
# A letter of the page's small type, and a line of it, in the units of the pictures.
_LETTER = 6.2
_LINE = 13.0


def picture(width: float, height: float, title: str, said: str, *parts: Any, role: str = "img") -> Html:
    """An SVG picture that is as wide as it may be, no wider than its own size, and never too small to be read.

    One that holds links is a "group" to screen readers, which do not look into an "img".
    """
    return element(
        "svg",
        element("title", title),
        element("desc", said),
        *parts,
        viewBox=f"0 0 {width:g} {height:g}",
        role=role,
        style=f"max-width:{width:g}px;min-width:{min(width, 34 * 16):g}px",
    )


def kinship_map(similarity: Floats, partition: NDArray[np.int64], order: Sequence[int], names: Sequence[str]) -> Html:
    """Probability that two tasks are kin, the darker the more probable, in the colour of the cluster they share.

    ``names`` are those of all tasks; each links to its row of the table.
    """
    n = len(order)
    named = n <= _MOST_NAMED
    cell = max(_LINE if named else 3.0, min(22.0, 620.0 / n))
    margin = _LETTER * min(max(map(len, names), default=1), _LONGEST_NAME) + 10 if named else 4.0
    table = similarity[np.ix_(order, order)]
    cluster = partition[list(order)]
    level = np.ceil(np.clip(table, 0.0, 1.0) * _LEVELS - 0.04).astype(int)
    same = cluster[:, None] == cluster[None, :]
    # Colour of each cell, −1 between clusters; runs of one colour and level in a row are one stroke.
    ink = np.where(same, cluster[:, None] % 10, -1)
    paths: dict[tuple[int, int], list[str]] = {}
    for i in range(n):
        j = 0
        while j < n:
            end = j + 1
            while end < n and level[i, end] == level[i, j] and ink[i, end] == ink[i, j]:
                end += 1
            if level[i, j] > 0:
                stroke = f"M{margin + j * cell:.5g} {margin + i * cell:.5g}h{(end - j) * cell:.5g}v{cell:.5g}H"
                paths.setdefault((int(ink[i, j]), int(level[i, j])), []).append(f"{stroke}{margin + j * cell:.5g}z")
            j = end
    parts: list[Any] = [
        element(
            "path", d="".join(strokes), class_="between" if at < 0 else f"c{at}", fill_opacity=f"{deep / _LEVELS:g}"
        )
        for (at, deep), strokes in sorted(paths.items())
    ]
    side = margin + n * cell
    parts.append(
        element("rect", x=f"{margin:g}", y=f"{margin:g}", width=f"{n * cell:g}", height=f"{n * cell:g}", class_="frame")
    )
    if named:
        for place, task in enumerate(order):
            at = margin + (place + 0.5) * cell
            name = shortened(names[task], _LONGEST_NAME)
            text = element("text", name, x=f"{margin - 5:g}", y=f"{at:.4g}", dy="0.35em", text_anchor="end")
            parts.append(element("a", element("title", names[task]), text, href=f"#task-{task}"))
            turned = f"translate({at:.5g} {margin - 5:g}) rotate(-90)"
            parts.append(element("text", name, transform=turned, dy="0.35em", aria_hidden="true"))
    said = f"A square of {n} tasks a side. A cell is the darker, the more probable it is that its two tasks are kin."
    return picture(side + 4, side + 4, "Who is kin", said, *parts, role="group" if named else "img")


def error_bars(rows: Sequence[tuple[str, float, float]], unit: str, own: str) -> Html:
    """Losses of models with their standard errors, one line each; less is better."""
    low = min(mean - 1.96 * error for _, mean, error in rows)
    high = max(mean + 1.96 * error for _, mean, error in rows)
    room = (high - low) * 0.06 or 1.0
    low, high = low - room, high + room
    left, width, step = 1.1 * _LETTER * max(len(name) for name, _, _ in rows) + 24, 400.0, 30.0

    def at(value: float) -> float:
        return left + (value - low) / (high - low) * width

    parts: list[Any] = []
    for place, (name, mean, error) in enumerate(rows):
        y = 16 + place * step
        kind = "own" if name == own else "other"
        parts += [
            element("text", name, x=f"{left - 14:g}", y=f"{y:g}", dy="0.35em", text_anchor="end", class_=kind),
            element("path", d=f"M{at(mean - 1.96 * error):.5g} {y:g}H{at(mean + 1.96 * error):.5g}", class_="whisker"),
            element("circle", cx=f"{at(mean):.5g}", cy=f"{y:g}", r="5", class_=f"dot {kind}"),
        ]
    bottom = 16 + len(rows) * step
    ticks = _ticks(low, high)
    for tick in ticks:
        parts.append(element("path", d=f"M{at(tick):.5g} 4V{bottom - 10:g}", class_="grid"))
        parts.append(element("text", f"{tick:g}", x=f"{at(tick):.5g}", y=f"{bottom + 4:g}", text_anchor="middle"))
    parts.append(
        element(
            "text", f"{unit}, less is better", x=f"{left + width / 2:g}", y=f"{bottom + 24:g}", text_anchor="middle"
        )
    )
    said = "; ".join(f"{name}: {mean:.4f} ± {error:.4f}" for name, mean, error in rows)
    return picture(left + width + 20, bottom + 30, "Loss on rows held out, with 95 % intervals", said, *parts)


def reliability(predicted: Floats, observed: Floats, low: Floats, high: Floats, what: str) -> Html:
    """Observed rates against predicted probabilities, with intervals; on the diagonal, both agree."""
    size, left, top = 320.0, 46.0, 10.0

    def x(value: float) -> float:
        return left + value * size

    def y(value: float) -> float:
        return top + (1.0 - value) * size

    parts: list[Any] = [element("rect", x=f"{left:g}", y=f"{top:g}", width=size, height=size, class_="frame")]
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts += [
            element("text", f"{tick:.0%}", x=f"{x(tick):g}", y=f"{top + size + 18:g}", text_anchor="middle"),
            element("text", f"{tick:.0%}", x=f"{left - 6:g}", y=f"{y(tick):g}", dy="0.35em", text_anchor="end"),
        ]
    parts.append(element("path", d=f"M{x(0):g} {y(0):g}L{x(1):g} {y(1):g}", class_="guide"))
    line = "L".join(f"{x(p):.5g} {y(o):.5g}" for p, o in zip(predicted, observed, strict=True))
    parts.append(element("path", d=f"M{line}", class_="trace"))
    for p, o, a, b in zip(predicted, observed, low, high, strict=True):
        parts.append(element("path", d=f"M{x(p):.5g} {y(a):.5g}V{y(b):.5g}", class_="whisker"))
        parts.append(element("circle", cx=f"{x(p):.5g}", cy=f"{y(o):.5g}", r="4", class_="dot own"))
    parts += [
        element("text", f"predicted {what}", x=f"{x(0.5):g}", y=f"{top + size + 38:g}", text_anchor="middle"),
        element("text", "observed", transform=f"translate(10 {y(0.5):g}) rotate(-90)", text_anchor="middle"),
    ]
    said = "; ".join(f"{p:.0%} predicted, {o:.0%} observed" for p, o in zip(predicted, observed, strict=True))
    return picture(left + size + 24, top + size + 46, "Calibration", said, *parts)


def traces(draws: NDArray[Any], name: str) -> Html:
    """What every chain drew, draw by draw; beyond 400 draws evenly thinned."""
    width, height, left = 640.0, 120.0, 66.0
    shown = draws[:, :: -(-draws.shape[1] // 400)].astype(np.float64)
    low, high = float(shown.min()), float(shown.max())
    if high == low:  # a line in the middle
        low, high = low - 1.0, high + 1.0
    reach = high - low
    parts: list[Any] = [element("rect", x=f"{left:g}", y="8", width=width, height=height, class_="frame")]
    for chain, own in enumerate(shown):
        across = left + np.arange(len(own)) / max(len(own) - 1, 1) * width
        down = 8 + height - (own - low) / reach * height
        points = "L".join(f"{a:.5g} {b:.4g}" for a, b in zip(across, down, strict=True))
        parts.append(element("path", d=f"M{points}", class_=f"line s{chain % 10}"))
    for value, at in ((high, 12.0), (low, 8 + height - 4)):
        parts.append(element("text", f"{value:,.6g}", x=f"{left - 6:g}", y=f"{at:g}", dy="0.35em", text_anchor="end"))
    said = f"{len(draws)} chains of {draws.shape[1]} draws, from {low:,.6g} to {high:,.6g}."
    return picture(left + width + 8, height + 16, f"Trace of the {name}", said, *parts)


def columns_of_counts(values: Sequence[tuple[str, float]], title: str) -> Html:
    """Probabilities as columns, each with its value below it."""
    step, height = 44.0, 120.0
    top = max((share for _, share in values), default=1.0) or 1.0
    parts: list[Any] = []
    for place, (name, share) in enumerate(values):
        x, tall = 10 + place * step, share / top * height
        box = {"x": f"{x:g}", "y": f"{20 + height - tall:.4g}", "width": f"{step - 10:g}", "height": f"{tall:.4g}"}
        parts += [
            element("rect", **box, class_="column"),
            element("text", name, x=f"{x + 17:g}", y=f"{height + 36:g}", text_anchor="middle"),
            element("text", f"{share:.0%}", x=f"{x + 17:g}", y=f"{14 + height - tall:.4g}", text_anchor="middle"),
        ]
    said = ", ".join(f"{name}: {share:.0%}" for name, share in values)
    return picture(20 + len(values) * step, height + 44, title, said, *parts)


def heat_table(values: Floats, rows: Sequence[str], columns: Sequence[str], title: str) -> Html:
    """Numbers of either sign as cells: full colour for the largest, one colour above zero and another below."""
    row_step, column_step = 20.0, 30.0
    left = _LETTER * min(max(map(len, rows), default=1), _LONGEST_NAME) + 12
    top = _LETTER * min(max(map(len, columns), default=1), _LONGEST_NAME) + 12
    largest = float(np.abs(values).max(initial=0.0)) or 1.0
    parts: list[Any] = []
    for i, row in enumerate(values):
        y = top + i * row_step
        name = shortened(rows[i], _LONGEST_NAME)
        parts.append(element("text", name, x=f"{left - 6:g}", y=f"{y + 10:g}", dy="0.35em", text_anchor="end"))
        for j, value in enumerate(row):
            parts.append(
                element(
                    "rect",
                    element("title", f"{rows[i]}, {columns[j]}: {value:.3f}"),
                    x=f"{left + j * column_step:g}",
                    y=f"{y:g}",
                    width=f"{column_step - 2:g}",
                    height=f"{row_step - 2:g}",
                    class_="above" if value >= 0 else "below",
                    fill_opacity=f"{abs(value) / largest:.2f}",
                )
            )
    for j, name in enumerate(columns):
        turned = f"translate({left + (j + 0.5) * column_step:g} {top - 6:g}) rotate(-90)"
        parts.append(element("text", shortened(name, _LONGEST_NAME), transform=turned, dy="0.35em"))
    said = f"{len(rows)} rows and {len(columns)} columns; the largest number is {largest:.3f}."
    return picture(left + len(columns) * column_step + 6, top + len(rows) * row_step + 6, title, said, *parts)


def share_bar(shares: Sequence[float], names: Sequence[str]) -> Html:
    """Shares that add up to one as a bar, with what they are in words."""
    said = ", ".join(f"{share:.0%} {name}" for name, share in zip(names, shares, strict=True) if share >= 0.005)
    parts, at = [], 0.0
    for place, share in enumerate(shares):
        if share > 0.0:
            parts.append(
                element("rect", x=f"{at:.4g}", y="0", width=f"{100 * share:.4g}", height="10", class_=f"p{place}")
            )
        at += 100 * share
    bar = element("svg", *parts, viewBox="0 0 100 10", class_="bar", aria_hidden="true", preserveAspectRatio="none")
    return element("span", bar, element("span", said, class_="small"), class_="shares")


def shortened(name: str, longest: int) -> str:
    """A name that fits, its end left out where it is too long.

    Examples
    --------
    >>> shortened("a very long name", 8)
    'a very …'
    """
    return name if len(name) <= longest else f"{name[: longest - 1]}…"


def _ticks(low: float, high: float) -> list[float]:
    """Three to seven round numbers within bounds."""
    raw = (high - low) / 5
    unit = 10.0 ** np.floor(np.log10(raw))
    step = unit * next(factor for factor in (1.0, 2.0, 5.0, 10.0) if unit * factor >= raw)
    # Adding zero leaves no minus before a zero.
    return [float(f"{tick:.6g}") + 0.0 for tick in np.arange(np.ceil(low / step), np.floor(high / step) + 1) * step]
