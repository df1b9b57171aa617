"""Sections of a page about hidden Markov models: how many states and clusters, what states show, and segments."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from kinfolk.reporting import drawing
from kinfolk.reporting.account import Account
from kinfolk.reporting.layout import Section, number, sortable
from kinfolk.reporting.markup import Html, element, joined
from kinfolk.sequences.answers.segments import Decoded, cut_into_segments

_MOST_ROWS = 300
_MOST_SEGMENTS = 100
_MOST_SEQUENCES = 40
_LONGEST_NAME = 22


def sections(account: Account) -> list[Section]:
    """How many states there are, what they show, and, where sequences were given, where they are in which."""
    found = [_numbers(account), _states(account)]
    return found if account.sequences is None else [*found, _segments(account.sequences)]


def _numbers(account: Account) -> Section:
    """Posteriors of the numbers of states and clusters."""
    findings = account.findings
    figures: list[Html] = []
    for what, share in (
        ("states, tasks averaged", findings.details["of_all"]),
        ("clusters", findings.details["n_clusters"]),
    ):
        if share is None:
            continue
        there = np.flatnonzero(share > 0.005)
        title = f"Posterior of the number of {what}"
        drawn = drawing.columns_of_counts([(str(k), float(share[k])) for k in there], title)
        figures.append(element("figure", drawn, element("figcaption", f"{title}.")))
    rows: list[list[Any]] = []
    for place, task in enumerate(findings.tasks[:_MOST_ROWS]):
        own = findings.details["n_states"][place]
        likeliest = int(own.argmax())
        mean = float(findings.details["mean_states"][place])
        rows.append(
            [
                element("td", str(task), class_="name"),
                number(likeliest, f"{likeliest}"),
                number(float(own[likeliest]), f"{own[likeliest]:.0%}"),
                number(mean, f"{mean:.2f}"),
            ]
        )
    heads = ["task", "likeliest number of states", "its probability", "mean"]
    return Section("states", "Hidden states", joined(*figures, sortable("state-table", heads, rows)))


def _states(account: Account) -> Section:
    """What states show, and which are alike."""
    states, similar = account.findings.details["states"], account.findings.details["similar_states"]
    rows: list[list[Any]] = [
        [
            number(cluster, str(cluster)),
            number(state, str(state)),
            name,
            number(share, f"{share:.0%}"),
            number(duration, f"{duration:.1f}"),
            number(n_tasks, f"{n_tasks:,}"),
        ]
        for cluster, state, name, share, duration, n_tasks in list(zip(*states.values(), strict=True))[:_MOST_ROWS]
    ]
    said = (
        "In the draw of the posterior that tells hidden states: what each shows in the columns in which it differs "
        "most from the others, the share of steps that the tasks which use it are there, how many steps they stay on "
        "average (up to 100), and how many tasks use it."
    )
    heads = ["cluster", "state", "shows", "share of steps", "mean stay", "tasks"]
    parts: list[Any] = [element("p", said, class_="small"), sortable("what-states-show", heads, rows)]
    if similar["distance"]:
        alike: list[list[Any]] = [
            [
                f"{cluster}/{state}: {name}",
                f"{other_cluster}/{other_state}: {other_name}",
                number(distance, f"{distance:.2f}"),
            ]
            for cluster, state, name, other_cluster, other_state, other_name, distance in list(
                zip(*similar.values(), strict=True)
            )[:_MOST_ROWS]
        ]
        told = (
            "States that are hard to tell apart, as cluster/state; the distance is how much one observation tells of "
            "which of the two it came from, from 0 (nothing) to 1 (all)."
        )
        parts += [
            element("p", told, class_="small"),
            sortable("similar-states", ["state", "is like", "distance"], alike),
        ]
    return Section("what-states-show-section", "What the states show", joined(*parts))


def _segments(decoded: Decoded) -> Section:
    """Sequences as bars, in the colours of their states, and all segments as a table."""
    found = cut_into_segments(decoded)
    columns = list(zip(*found.values(), strict=True))
    shown = min(len(decoded.lengths), _MOST_SEQUENCES)
    # Those of a task together, whatever the order of the rows.
    order = sorted(range(len(decoded.lengths)), key=lambda i: (str(decoded.tasks[i]), i))
    drawn = segment_bars(decoded, order[:shown])
    caption = "Sequences, a row each, in the colours of their hidden states, which mean the same within a cluster."
    if shown < len(decoded.lengths):
        caption += f" Of {len(decoded.lengths):,} sequences the first {shown}."
    rows: list[list[Any]] = [
        [
            str(task),
            str(sequence),
            number(start, f"{start:,}"),
            number(stop, f"{stop:,}"),
            number(duration, f"{duration:,}"),
            f"{cluster}/{state}: {name}",
            number(sure, f"{sure:.0%}"),
        ]
        for task, sequence, start, stop, duration, cluster, state, name, sure in columns[:_MOST_SEGMENTS]
    ]
    heads = ["task", "sequence", "start", "stop", "steps", "cluster/state: shows", "probability"]
    parts = [element("figure", drawn, element("figcaption", caption)), sortable("segment-table", heads, rows)]
    if len(columns) > _MOST_SEGMENTS:
        more = f"{len(columns) - _MOST_SEGMENTS:,} more segments are left out; kinfolk predict --what segments has all."
        parts.append(element("p", more, class_="small"))
    return Section("segments", "Segments", joined(*parts))


def segment_bars(decoded: Decoded, order: Sequence[int]) -> Html:
    """Some sequences as rows of coloured segments, the state's number in each that has room for it."""
    longest, n_sequences = int(decoded.lengths[list(order)].max(initial=1)), len(order)
    names = [f"{decoded.tasks[i]} {decoded.called[i]}" for i in order]
    left, width, step = 6.2 * min(max(map(len, names), default=1), _LONGEST_NAME) + 12, 560.0, 20.0
    parts: list[Any] = []
    stops = np.cumsum(decoded.lengths)
    for row, which in enumerate(order):
        length = int(decoded.lengths[which])
        states = decoded.states[stops[which] - length : stops[which]]
        ends = [0, *(np.flatnonzero(np.diff(states)) + 1).tolist(), length]
        name = drawing.shortened(names[row], _LONGEST_NAME)
        parts.append(
            element("text", name, x=f"{left - 6:g}", y=f"{(row + 0.5) * step:g}", dy="0.35em", text_anchor="end")
        )
        for begin, end in pairwise(ends):
            at, wide, state = left + begin / longest * width, (end - begin) / longest * width, int(states[begin])
            box = {"x": f"{at:.5g}", "y": f"{row * step + 1:g}", "width": f"{wide:.5g}", "height": f"{step - 2:g}"}
            parts.append(element("rect", **box, class_=f"c{state % 10}", fill_opacity="0.55"))
            parts.append(element("rect", **box, class_="frame"))
            if wide > 16:
                parts.append(
                    element("text", str(state), x=f"{at + wide / 2:.5g}", y=f"{(row + 0.5) * step:g}", dy="0.35em",
                            text_anchor="middle")
                )  # fmt: skip
    said = f"{n_sequences} sequences as rows of segments, each with the number of its hidden state."
    return drawing.picture(left + width + 6, n_sequences * step + 4, "Sequences and their segments", said, *parts)
