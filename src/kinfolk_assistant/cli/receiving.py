"""``kinfolk assistant receive``: a mail or calendar file is taken in, as the filter of a mail server hands it over."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from kinfolk.cli.commands import say
from kinfolk_assistant.cli.options import LedgerFile, SettingsFile, User, need_extra, open_ledger, read_settings

EXAMPLE = """\b
Example:
  kinfolk assistant receive invitation.eml --user ann@example.org
  kinfolk assistant receive - --user ann@example.org < invitation.ics
  kinfolk assistant receive - --pipe --user ann@example.org    (in a filter of a mail server)"""


# What mail servers understand (sysexits.h): no such user, and try again later.
NO_USER, TRY_AGAIN = 67, 75


def receive(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="A mail or a calendar file; - is standard input.")],
    user: User,
    pipe: Annotated[
        bool, typer.Option("--pipe", help="Tell a mail server by the exit status what became of the mail.")
    ] = False,
    settings: SettingsFile = None,
    ledger: LedgerFile = None,
) -> None:
    """Take an invitation, an update or a cancellation in.

    It waits in the ledger until the server decides about it. Taking the same one in twice does no harm, so a filter may
    try again. With --pipe the exit status is 0 for every mail that is done with, be it an ordinary one or one that
    cannot be read, 67 where there is no such user, and 75 where the mail server shall try again later.
    """
    need_extra()
    if not pipe:
        _receive(source, user, settings, ledger)
        return
    try:
        _receive(source, user, settings, ledger)
    except _NoSuchUser as error:
        say(str(error))
        raise typer.Exit(NO_USER) from None
    except _NotThere as error:
        say(str(error))
        raise typer.Exit(TRY_AGAIN) from None
    except ValueError as error:
        # Whoever sends rubbish must not have it sent back in the user's name, nor tried again for days.
        say(str(error))
    except Exception as error:
        say(f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no reason given'}")
        raise typer.Exit(TRY_AGAIN) from None


class _NoSuchUser(ValueError):
    """A user whom the ledger does not know."""


class _NotThere(ValueError):
    """Settings or a ledger that cannot be opened now."""


def _receive(source: Path, user: str, settings: Path | None, ledger: Path | None) -> None:
    from datetime import UTC, datetime

    from kinfolk_assistant.cli.reading import read_messages
    from kinfolk_assistant.ledger.users import NotYours, find_user, mail_address, main_address
    from kinfolk_assistant.service.intake import take_in

    now = datetime.now(UTC)
    address = mail_address(user)
    messages = read_messages(source)
    told = 0
    with ExitStack() as stack:
        try:
            read = read_settings(settings, ledger)
            book = stack.enter_context(open_ledger(settings, ledger, new=False))
        except ValueError as error:
            raise _NotThere(str(error)) from None
        session = stack.enter_context(book.begin())
        address = main_address(session, address)
        try:
            find_user(session, address)
        except NotYours:
            raise _NoSuchUser(f"there is no user {address}: kinfolk assistant user {address}") from None
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
