"""The structures of several tasks' Bayes nets in one picture: what they have in common, and where they differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.plots import style
from kinfolk.plots.layered_layout import Layout, lay_out_in_layers

if TYPE_CHECKING:
    import networkx as nx
    from matplotlib.axes import Axes

__all__ = ["networks"]

COMMON, SOME, TURNED = style.INK, style.PALETTE[0], style.PALETTE[1]
THINNEST, THICKEST = 0.6, 2.2
TYPE = 8.0
LETTER = 0.66 * TYPE / 72  # inches, a wide one
LINE = 1.25 * TYPE / 72
LONGEST_LINE = 16
MARGIN = 0.12
KEY, FOR_TITLE = 0.4, 0.4
LARGEST_FIGURE = 24.0
NARROWEST_FIGURE = 4.2


class Arc(NamedTuple):
    """An arc of some task: by how many of the tasks that have both variables, and whether others turn it round."""

    tail: str
    head: str
    n_with: int
    n_tasks: int
    turned: bool

    @property
    def colour(self) -> str:
        """Dark where all tasks agree."""
        return COMMON if self.n_with == self.n_tasks else TURNED if self.turned else SOME

    @property
    def width(self) -> float:
        """Thicker the more tasks have it."""
        if self.n_with == self.n_tasks:
            return 1.2
        return THINNEST + (THICKEST - THINNEST) * self.n_with / self.n_tasks


def networks(model_or_graphs: Any, *, ax: Axes | None = None, title: str | None = None) -> Axes:
    """Draw the structures of several tasks as one graph.

    An arc that all tasks have is dark, one that only some have is blue, and thicker the more of them do. Where tasks
    turn an arc round, both directions are drawn, in orange. Tasks that lack one of its variables do not count for an
    arc; a variable that some tasks lack has a dashed border. Most arcs lead downwards.

    Parameters
    ----------
    model_or_graphs : fitted model, networkx.DiGraph, or mapping or sequence of these
        A fitted :class:`~kinfolk.BayesNets` gives its ``graphs_``; a mapping gives one graph for each task. Networks
        with a method ``graph``, as they are in ``networks_``, will do too.
    ax : Axes, optional
        Where to draw; by default on a new figure that is large enough for every name to be read.
    title : str, optional
        The title.

    Returns
    -------
    Axes

    See Also
    --------
    kinfolk.BayesNets : The model whose ``graphs_`` are drawn.

    Examples
    --------
    >>> import networkx as nx
    >>> from kinfolk.plots import networks
    >>> ax = networks({"north": nx.DiGraph([("rain", "wet")]), "south": nx.DiGraph([("wet", "rain")])})
    >>> sorted(text.get_text() for text in ax.texts)
    ['rain', 'wet']
    """
    graphs = _graphs(model_or_graphs)
    arcs = count_arcs(graphs)
    variables = list(dict.fromkeys(str(node) for graph in graphs for node in graph))
    if not variables:
        raise ValueError("the graphs have no variables: there is nothing to draw.")
    labels = [
        "\n".join(wrap(name, LONGEST_LINE, break_long_words=False, break_on_hyphens=False)) or name
        for name in variables
    ]
    lines = [label.split("\n") for label in labels]
    widths = np.array([LETTER * max(len(line) for line in its) + 0.14 for its in lines])
    box_height = LINE * max(len(its) for its in lines) + 0.1
    downward = _downward(arcs, variables)
    ends = [(arc.tail, arc.head) if down else (arc.head, arc.tail) for arc, down in zip(arcs, downward, strict=True)]
    place = {name: v for v, name in enumerate(variables)}
    row_height = box_height + float(np.clip(0.35 + 0.004 * len(arcs), 0.4, 0.9))
    layout = lay_out_in_layers([(place[a], place[b]) for a, b in ends], widths, box_height, row_height)
    if ax is None:
        size, scale = _figure_size(layout, len(graphs), title)
        ax = style.new_axes(*size)
    else:
        scale = _scale_in(ax, layout)
    _set_limits(ax, layout)
    everywhere = Counter(str(node) for graph in graphs for node in graph)
    for name, label, centre, width in zip(variables, labels, layout.centre, widths, strict=True):
        dashed = everywhere[name] < len(graphs)
        _draw_box(ax, label, centre, width, box_height, scale, dashed)
    for arc, down, route in zip(arcs, downward, layout.routes, strict=True):
        _draw_arc(ax, arc, route if down else route[::-1], scale)
    _draw_key(ax, arcs, len(graphs))
    style.write_title(ax, title)
    return ax


def count_arcs(graphs: Sequence[nx.DiGraph]) -> list[Arc]:
    """Every arc that any task has, in the order in which the tasks name them.

    Examples
    --------
    >>> import networkx as nx
    >>> count_arcs([nx.DiGraph([("a", "b"), ("b", "c")]), nx.DiGraph([("b", "a")])])[0]
    Arc(tail='a', head='b', n_with=1, n_tasks=2, turned=True)
    """
    counts = Counter((str(tail), str(head)) for graph in graphs for tail, head in graph.edges)
    nodes = [{str(node) for node in graph} for graph in graphs]
    return [
        Arc(tail, head, n_with, sum(tail in own and head in own for own in nodes), (head, tail) in counts)
        for (tail, head), n_with in counts.items()
    ]


def _graphs(given: Any) -> list[nx.DiGraph]:
    found = getattr(given, "graphs_", given)
    if hasattr(found, "edges") or callable(getattr(found, "graph", None)):
        found = [found]
    parts: Iterable[Any] = found.values() if isinstance(found, Mapping) else found
    try:
        graphs = [part if hasattr(part, "edges") else part.graph() for part in parts]
    except (TypeError, AttributeError):
        raise ValueError(
            f"a {type(given).__name__} was given; a fitted model, a graph, or graphs by task are needed."
        ) from None
    if not graphs:
        raise ValueError("there are no graphs to draw.")
    return graphs


def _downward(arcs: list[Arc], variables: list[str]) -> list[bool]:
    """Which arcs lead down: as many as can at once, those of the most tasks first."""
    import networkx as nx

    graph = nx.DiGraph()
    graph.add_nodes_from(variables)
    down = [False] * len(arcs)
    for number in sorted(range(len(arcs)), key=lambda number: -arcs[number].n_with / arcs[number].n_tasks):
        tail, head = arcs[number][:2]
        if not nx.has_path(graph, head, tail):
            graph.add_edge(tail, head)
            down[number] = True
    return down


def _figure_size(layout: Layout, n_graphs: int, title: str | None) -> tuple[tuple[float, float], float]:
    """Size of a figure that has room for the layout, and the length of the layout's inch on it."""
    width = layout.width + 2 * MARGIN
    height = layout.height + 2 * MARGIN + (KEY if n_graphs > 1 else 0.0) + (FOR_TITLE if title else 0.0)
    scale = min(1.0, LARGEST_FIGURE / max(width, height))
    return (scale * max(width, NARROWEST_FIGURE), scale * height), scale


def _scale_in(ax: Axes, layout: Layout) -> float:
    """Length of the layout's inch on given axes."""
    wide, high = style.size_in_inches(ax)
    return min(wide / (layout.width + 2 * MARGIN), high / (layout.height + 2 * MARGIN), 1.0)


def _set_limits(ax: Axes, layout: Layout) -> None:
    """Make an inch of the layout the same length both ways."""
    ax.set_axis_off()
    ax.set_aspect("equal")
    ax.set_xlim(-MARGIN, layout.width + MARGIN)
    ax.set_ylim(-MARGIN, layout.height + MARGIN)


def _draw_box(
    ax: Axes, label: str, centre: NDArray[np.float64], width: float, height: float, scale: float, dashed: bool
) -> None:
    from matplotlib.patches import FancyBboxPatch

    x, y = centre
    corner = (x - width / 2, y - height / 2)
    ax.add_patch(
        FancyBboxPatch(
            corner,
            width,
            height,
            boxstyle="round,pad=0,rounding_size=0.06",
            facecolor="white",
            edgecolor=style.ALONE,
            linestyle=(0, (3, 2)) if dashed else "solid",
            linewidth=0.8 * scale,
            zorder=3,
        )
    )
    ax.text(x, y, label, ha="center", va="center", fontsize=TYPE * scale, color=style.INK, parse_math=False, zorder=4)


def _draw_arc(ax: Axes, arc: Arc, points: NDArray[np.float64], scale: float) -> None:
    """Draw a smooth line through the points, with a head at the last; it leaves and arrives upright."""
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path

    slope = np.zeros(len(points))  # sideways for each step downwards
    slope[1:-1] = (points[2:, 0] - points[:-2, 0]) / (points[2:, 1] - points[:-2, 1])
    corners, codes = [points[0]], [Path.MOVETO]
    for k in range(len(points) - 1):
        (x, y), (next_x, next_y) = points[k], points[k + 1]
        reach = (next_y - y) / (2 if len(points) == 2 else 3)
        corners += [(x + slope[k] * reach, y + reach), (next_x - slope[k + 1] * reach, next_y - reach), points[k + 1]]
        codes += [Path.CURVE4] * 3
    ax.add_patch(
        FancyArrowPatch(
            path=Path(np.array(corners), codes),
            arrowstyle="-|>",
            mutation_scale=scale * (6 + 2 * arc.width),
            color=arc.colour,
            linewidth=scale * arc.width,
            zorder=2 if arc.colour == COMMON else 2.5,
            shrinkA=0,
            shrinkB=0,
        )
    )


def _draw_key(ax: Axes, arcs: list[Arc], n_graphs: int) -> None:
    if n_graphs == 1:
        return
    drawn = {arc.colour for arc in arcs}
    keys = [
        (COMMON, f"in all {n_graphs} tasks"),
        (SOME, "in some; thicker, in more"),
        (TURNED, "turned round by others"),
    ]
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=colour, linewidth=1.8, label=label) for colour, label in keys if colour in drawn]
    if handles:
        below: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0), "borderaxespad": 0.0}
        ax.legend(handles=handles, ncols=len(handles), frameon=False, fontsize=8, labelcolor=style.INK, **below)
