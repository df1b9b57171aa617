"""``kinfolk assistant receive``: a mail or calendar file is taken in, as the filter of a mail server hands it over."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from kinfolk_assistant.cli.options import LedgerFile, SettingsFile, User, need_extra, open_ledger

EXAMPLE = """\b
Example:
  kinfolk assistant receive invitation.eml --user ann@example.org
  kinfolk assistant receive - --user ann@example.org < invitation.ics"""


def receive(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="A mail or a calendar file; - is standard input.")],
    user: User,
    settings: SettingsFile = None,
    ledger: LedgerFile = None,
) -> None:
    """Take an invitation, an update or a cancellation in.

    It waits in the ledger until the server decides about it. Taking the same one in twice does no harm, so a filter may
    try again.
    """
    need_extra()
    from datetime import UTC, datetime

    from kinfolk_assistant.cli.reading import read_messages
    from kinfolk_assistant.ledger.users import NotYours, find_user
    from kinfolk_assistant.service.intake import take_in

    now = datetime.now(UTC)
    data = sys.stdin.buffer.read() if str(source) == "-" else source.read_bytes()
    messages = read_messages(data, source.name)
    book = open_ledger(settings, ledger, new=False)
    taken: list[int] = []
    with book.begin() as session:
        try:
            address = find_user(session, user).address
        except NotYours:
            raise ValueError(f"there is no user {user}: kinfolk assistant user {user}") from None
        for message in messages:
            taken += take_in(
                session,
                address,
                [message.object],
                received_at=min(message.received or now, now),
                source=message.source,
                source_ref=message.reference,
                now=now,
            )
    book.close()
    typer.echo(f"{len(taken)} of {len(messages)} messages are about requests to {address}.")
