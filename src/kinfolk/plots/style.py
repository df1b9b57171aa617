"""What the pictures share: colours, axes, the names of tasks along an axis, and what is asked of models.

No file of this folder imports matplotlib, scipy or networkx before it draws: names of functions cost nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Colours of Okabe and Ito that stand out on white, then Tol's muted ones: told apart with any colour vision.
PALETTE = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#882255",
    "#117733",
    "#332288",
    "#999933",
)
ALONE = "#555555"
APART = "#B5B5B5"
GUIDE = "#EEEEEE"
INK = "#333333"

MOST_NAMES = 60
SMALLEST_TYPE, LARGEST_TYPE = 4.0, 10.0


def new_axes(width: float, height: float) -> Axes:
    """Make a figure of its own, in inches, through pyplot so that notebooks show it."""
    # Imported here because pyplot chooses a backend, which is not ours to choose where axes are given.
    import matplotlib.pyplot as plt

    _, ax = plt.subplots(figsize=(width, height), layout="constrained")
    return ax


def ink_on(colour: str) -> str:
    """What can be read on a colour: dark on light ones, white on dark ones.

    Examples
    --------
    >>> ink_on("#0072B2"), ink_on("#E69F00")
    ('white', '#333333')
    """
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return INK if 0.299 * red + 0.587 * green + 0.114 * blue > 140 else "white"


def is_model(thing: Any) -> bool:
    """Whether something is an estimator, fitted or not, or what a file gives."""
    return hasattr(thing, "fit") or hasattr(thing, "tasks_")


def asked_of(model: Any, attribute: str, owners: str) -> Any:
    """What a fitted model has, or one sentence that says why it does not.

    ``owners`` says which models have it.
    """
    try:
        return getattr(model, attribute)
    except AttributeError as error:
        name = type(model).__name__
        if not hasattr(model, "tasks_"):
            raise ValueError(f"this {name} is not fitted yet: call fit before it is drawn") from None
        # A property that knows more than that there is nothing says so itself.
        why = str(error) if hasattr(type(model), attribute) else f"{name} has no {attribute}"
        raise ValueError(f"{why}; {owners}") from None


def task_names(labels: Iterable[Any] | None, n_tasks: int) -> list[str]:
    """Give a name for each task: its label, or its number where there are no labels."""
    names = [str(label) for label in (range(n_tasks) if labels is None else labels)]
    if len(names) != n_tasks:
        raise ValueError(f"labels names {len(names)} tasks, but there are {n_tasks}.")
    return names


def groups_of_tasks(groups: Iterable[Hashable], n_tasks: int, argument: str) -> list[Hashable]:
    """Give the group of each task, once it is sure that every task has one."""
    found = [group.item() if isinstance(group, np.generic) else group for group in groups]
    if len(found) != n_tasks:
        raise ValueError(f"{argument} gives a group to {len(found)} tasks, but there are {n_tasks}.")
    return found


def colours(groups: Sequence[Hashable]) -> dict[Hashable, str]:
    """Give each group of two or more a colour, in the order of the tasks: the same in every picture."""
    several = [group for group, size in Counter(groups).items() if size > 1]
    return {group: PALETTE[place % len(PALETTE)] for place, group in enumerate(several)}


def write_names(ax: Axes, names: Sequence[str], inches: float, *, rows: bool = False) -> range:
    """Write the tasks' names below the axes, and beside the rows too if wished; return the places named.

    Every task is named up to `MOST_NAMES`, and evenly thinned out tasks beyond that.
    """
    places = range(0, len(names), -(-len(names) // MOST_NAMES))
    shown = [names[place] for place in places]
    points_apart = 72 * inches / len(places)
    size = float(np.clip(0.8 * points_apart, SMALLEST_TYPE, LARGEST_TYPE))
    # A letter is about 0.6 of the type size wide.
    upright = 0.6 * size * max(len(name) for name in shown) > 0.7 * points_apart
    # A name is text, whatever it holds: two dollar signs are not a formula.
    look: dict[str, Any] = {"fontsize": size, "color": INK, "parse_math": False}
    ax.set_xticks(places, shown, rotation=90 if upright else 0, **look)
    ax.tick_params(axis="x", length=0, pad=3)
    if rows:
        ax.set_yticks(places, shown, **look)
        ax.tick_params(axis="y", length=0, pad=3)
    return places


def write_title(ax: Axes, title: str | None) -> None:
    """Write the title, if there is one."""
    if title is not None:
        ax.set_title(title, color=INK, fontsize=12, pad=10)


def size_in_inches(ax: Axes) -> tuple[float, float]:
    """Measure axes as they stand now."""
    box = ax.get_window_extent()
    return box.width / ax.figure.dpi, box.height / ax.figure.dpi


def quieten(ax: Axes) -> None:
    """Leave of the frame two grey lines, and guides across."""
    ax.tick_params(labelsize=8, colors=ALONE)
    ax.grid(axis="y", color=GUIDE, linewidth=0.7)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(APART)


def name_axes(ax: Axes, across: str, up: str) -> None:
    """Name the axes in small grey letters."""
    ax.set_xlabel(across, fontsize=9, color=ALONE)
    ax.set_ylabel(up, fontsize=9, color=ALONE)


def write_key(ax: Axes, **where: Any) -> None:
    """Write the key without a frame."""
    ax.legend(frameon=False, fontsize=8, labelcolor=INK, **where)


def write_rows(ax: Axes, names: Sequence[str]) -> None:
    """Write names beside rows from the top, thinned out evenly where there are too many to read."""
    places = range(0, len(names), -(-len(names) // MOST_NAMES))
    inches = size_in_inches(ax)[1]
    size = float(np.clip(0.8 * 72 * inches / max(len(places), 1), SMALLEST_TYPE, 8.0))
    shown = [_within(names[place]) for place in places]
    ax.set_yticks(list(places), shown, fontsize=size, color=INK, parse_math=False)
    ax.tick_params(axis="y", length=0, pad=3)


def _within(name: str, longest: int = 28) -> str:
    return name if len(name) <= longest else f"{name[: longest - 1]}…"


# Lines are told apart in black and white by their dashes and markers.
DASHES = ("-", "--", "-.", ":")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
# Orange below zero and blue above: told apart with any colour vision, and the darker the farther from zero.
DIVERGING = ("#8A3B00", "#D55E00", "#F7D9C4", "#FFFFFF", "#CFE3F1", "#0072B2", "#003F63")


def diverging() -> Any:
    """A colour map from orange through white to blue."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("kinfolk", DIVERGING)
