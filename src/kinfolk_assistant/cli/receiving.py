"""``kinfolk assistant receive``: a mail or calendar file is taken in, as the filter of a mail server hands it over."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kinfolk_assistant.cli.options import LedgerFile, SettingsFile, User, need_extra, open_ledger, read_settings

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
    from kinfolk_assistant.ledger.users import NotYours, find_user, mail_address
    from kinfolk_assistant.service.intake import take_in

    now = datetime.now(UTC)
    address = mail_address(user)
    messages = read_messages(source)
    read = read_settings(settings, ledger)
    told = 0
    with open_ledger(settings, ledger, new=False) as book, book.begin() as session:
        try:
            find_user(session, address)
        except NotYours:
            raise ValueError(f"there is no user {address}: kinfolk assistant user {address}") from None
        for message in messages:
            taken = take_in(
                session,
                address,
                [message.object],
                received_at=min(message.arrived or now, now),
                source=message.source,
                source_ref=message.reference,
                now=now,
                sender=message.sender,
                origin=message.origin,
                trust=read.trust,
            )
            told += bool(taken)
    typer.echo(f"{told} of {len(messages)} messages are about requests to {address}.")
