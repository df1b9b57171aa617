"""Reports as values: made from models and rows, shown in notebooks, written to files."""

from __future__ import annotations

import os
import webbrowser
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kinfolk.files import whole_file
from kinfolk.reporting.account import Account, account_for, document
from kinfolk.reporting.markup import element
from kinfolk.tasks.frames import make_frame

_SUMMARY_STYLE = "border-left:4px solid #0072b2;padding:.2rem .9rem;margin:.3rem 0"


class Report:
    """A page about one model, or about two.

    Parameters
    ----------
    html : str
        The page.
    document : dict
        What it tells, as plain data.
    """

    def __init__(self, html: str, document: dict[str, Any]) -> None:
        self.html = html
        self.document = document

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to a file, whole or not at all.

        Parameters
        ----------
        path : str or path

        Returns
        -------
        Path
        """
        with whole_file(path) as file:
            file.write(self.html.encode("utf-8", "replace"))
        return Path(path)

    def open(self, path: str | os.PathLike[str] = "report.html") -> None:
        """Write the page and show it in a browser.

        Parameters
        ----------
        path : str or path, default="report.html"
        """
        webbrowser.open(self.save(path).resolve().as_uri())

    def __repr__(self) -> str:
        return (
            f"<Report of {self.document.get('model', 'models')}, {len(self.html) / 1024:,.0f} kB: save(path), open()>"
        )

    def _repr_html_(self) -> str:
        # A page within a page: its style and its script stay its own.
        return str(
            element("iframe", srcdoc=self.html, style="width:100%;height:36rem;border:1px solid #999", title="Report")
        )


def report(
    estimator: Any,
    path: str | os.PathLike[str] | None = None,
    data: Any = None,
    *,
    y: Any = None,
    task: Any = None,
    ignore: Sequence[str] = (),
    examples: bool = True,
    n_folds: int = 5,
    random_state: int = 0,
    again: Mapping[str, str] | None = None,
) -> Report:
    """Make a report of a fitted model.

    Parameters
    ----------
    estimator : fitted kinfolk estimator
    path : str or path, optional
        Where to write it.
    data : table, optional
        Rows to compare the model on with models that do not share; they may be those that it was fitted to, since
        copies of it learn without the rows that they are asked about. A tuple of table, labels and tasks will do; of
        sequences, a table with the columns of the fit, or a tuple of table, lengths and tasks.
    y, task : array-like or str, optional
        What is to be predicted, and each row's task: arrays, or names of columns of ``data``.
    ignore : sequence of str, default=()
        Checks to leave out, such as ``["KF003"]``.
    examples : bool, default=True
        Whether rows of ``data`` may be shown.
    n_folds : int, default=5
        Parts of the rows that are held out in turn.
    random_state : int, default=0
        Seed of the folds.
    again : mapping, optional
        What else is to be told of how to make it again.

    Returns
    -------
    Report

    Examples
    --------
    >>> import kinfolk
    >>> model = kinfolk.NoSharingNB(random_state=0).fit([["a"], ["b"]] * 4, [0, 1] * 4, task=["x"] * 4 + ["y"] * 4)
    >>> page = kinfolk.reporting.report(model)
    >>> page.document["model"], [entry["task"] for entry in page.document["tasks"]]
    ('NoSharingNB', ['x', 'y'])
    """
    from kinfolk.reporting.page import page

    found = account_for(
        estimator, data, y, task, ignore=ignore, examples=examples, n_folds=n_folds, seed=random_state, again=again
    )
    made = Report(page(found), document(found))
    if path is not None:
        made.save(path)
    return made


def checks(
    estimator: Any,
    data: Any = None,
    *,
    y: Any = None,
    task: Any = None,
    ignore: Sequence[str] = (),
    n_folds: int = 5,
    random_state: int = 0,
) -> Any:
    """Findings of the numbered checks as a table: code, title, severity, where, seen, why, advice.

    Parameters
    ----------
    estimator : fitted kinfolk estimator
    data, y, task, ignore, n_folds, random_state
        As in :func:`report`.

    Returns
    -------
    frame
    """
    found = account_for(estimator, data, y, task, ignore=ignore, n_folds=n_folds, seed=random_state)
    names = ("code", "title", "severity", "where", "seen", "why", "advice")
    columns = {name: [getattr(alert, name) for alert in found.alerts] for name in names}
    return make_frame(columns, _backend(found))


def _backend(account: Account) -> Any:
    """The library of the table that the model was fitted to, wherever its family keeps that."""
    estimator = account.findings.estimator
    kept = [getattr(estimator, name, None) for name in ("_result", "_average", "_model")]
    found = [fit.backend for fit in kept if fit is not None and hasattr(fit, "backend")]
    return getattr(estimator, "_backend", [*found, "polars"][0])


def notebook_summary(estimator: Any) -> str:
    """A few sentences about a fitted estimator, for notebooks."""
    from kinfolk.reporting import summary
    from kinfolk.reporting.findings import findings_of
    from kinfolk.reporting.numbered_checks import Seen, look

    findings = findings_of(estimator)
    found = Account(findings, None, None, None, look(Seen(findings)))
    head = element("b", f"{findings.model}, {findings.n_tasks_told}")
    verdict = None if findings.convergence is None else element("p", findings.convergence.advice())
    more = element("p", "report() makes a page of all that was found, checks() a table of what to look at.")
    return str(element("div", head, summary.who_is_kin(found, linked=False), verdict, more, style=_SUMMARY_STYLE))
