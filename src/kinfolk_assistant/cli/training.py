"""``kinfolk assistant train``: learn from all answers in the ledger."""

from __future__ import annotations

from typing import Annotated

import typer

from kinfolk_assistant.cli.options import LedgerFile, SettingsFile, need_extra, open_ledger

EXAMPLE = """\b
Example:
  kinfolk assistant train
  kinfolk assistant train --force"""


def train(
    force: Annotated[bool, typer.Option("--force", help="Learn even where no answer is new.")] = False,
    settings: SettingsFile = None,
    ledger: LedgerFile = None,
) -> None:
    """Learn from all answers in the ledger; the new model takes the old one's place whole.

    A server does this by itself when answers have changed.
    """
    need_extra()
    from datetime import UTC, datetime

    from kinfolk.progress import progress_bar
    from kinfolk_assistant.ledger.tables import Model
    from kinfolk_assistant.service.retraining import retrain

    with open_ledger(settings, ledger, new=False) as book:
        with progress_bar("Learning", None, True):
            learnt = retrain(book, lambda: datetime.now(UTC), force=force)
        with book.read() as session:
            models = session.query(Model.owner, Model.n_rows, Model.users).all()
    typer.echo("Learnt anew." if learnt else "Nothing was learnt: no answer is new, or a server is learning just now.")
    for owner, n_rows, users in models:
        whose = "shared by all who agreed" if owner is None else f"for {owner} alone"
        typer.echo(f"Model {whose}: {n_rows:,} rows of {len(users)} people.")
    if not models:
        typer.echo("Nothing is learnt yet: import calendars, or answer some invitations by hand.")
