"""The picture of the demonstration: learning curves on the left, who is kin on the right."""

from __future__ import annotations

from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from kinfolk.experiments.clustered_naive_bayes.learning_curves import average_over_people, draw_curves
from kinfolk.naive_bayes.estimators.clustered import ClusteredNB
from kinfolk.plots import hinton, style, tree


def draw_team_picture(everybody: pl.DataFrame, newcomer: pl.DataFrame, model: ClusteredNB, people: Any) -> Figure:
    """Draw learning curves beside the Hinton diagram and the tree of a fitted model.

    Parameters
    ----------
    everybody, newcomer : polars.DataFrame
        Scores, as `everybody_with_few` and `one_person_with_few` give them.
    model : ClusteredNB
        Fitted with ``inference="bhc"`` to all of the people.
    people : sequence of Person

    Returns
    -------
    Figure
        To be saved by ``figure.savefig(path)``.
    """
    figure = Figure(figsize=(13.4, 8.4), layout="constrained")
    halves: Any = figure.subfigures(1, 2, width_ratios=(1.0, 0.96), wspace=0.03)
    left, right = halves
    curves, kin = left.subplots(2, 2, sharex=True, sharey="row"), right.subplots(2, 1, height_ratios=(2.2, 1.0))
    _draw_setting(curves[:, 0], newcomer, "One newcomer, colleagues known", "examples of the newcomer")
    _draw_setting(curves[:, 1], everybody, "Everybody is new", "examples of each person")
    for ax, measure in zip(curves[:, 0], ("area under the ROC curve", "log loss"), strict=True):
        ax.set_ylabel(measure, fontsize=10, color=style.ALONE)
    _name_lines(left, curves[0, 0])
    named = {person.id: person.name for person in people}
    labels = [named[task] for task in model.tasks_.tolist()]
    tree(model, labels, ax=kin[1])
    # The two pictures tell the same story, so people stand in the same order.
    leaves = [labels.index(leaf.get_text()) for leaf in kin[1].get_xticklabels()]
    title = f"Who is kin to whom, by {max(everybody['examples'].to_list())} examples each"
    hinton(model, labels, order=leaves, ax=kin[0], title=title)
    return figure


def _draw_setting(panels: Any, scores: pl.DataFrame, title: str, examples: str) -> None:
    curves = average_over_people(scores)
    for ax, measure in zip(panels, ("auc", "log_loss"), strict=True):
        draw_curves(ax, curves, measure)
        ax.tick_params(labelbottom=True)
    style.write_title(panels[0], title)
    panels[1].set_xlabel(examples, fontsize=10, color=style.ALONE)


def _name_lines(figure: SubFigure, ax: Axes) -> None:
    # The model that the picture is about comes first.
    handles, names = ax.get_legend_handles_labels()
    figure.legend(handles[::-1], names[::-1], loc="outside lower center", ncols=3, fontsize=10, frameon=False)
