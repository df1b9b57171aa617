"""``kinfolk assistant user``: who is answered for."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from kinfolk_assistant.cli.options import LedgerFile, SettingsFile, need_extra, open_ledger

EXAMPLE = """\b
Example:
  kinfolk assistant user ann@example.org --name Ann --zone Europe/Berlin --place "Main Street"
  pass show ann | kinfolk assistant user ann@example.org --password-stdin"""


def user(
    address: Annotated[str, typer.Argument(metavar="ADDRESS", help="Mail address of the user.")],
    name: Annotated[str | None, typer.Option(metavar="NAME", help="Name to show.")] = None,
    zone: Annotated[str | None, typer.Option(metavar="ZONE", help="Time zone, such as Europe/Berlin.")] = None,
    place: Annotated[
        list[str] | None, typer.Option(metavar="WORDS", help="A place that is near; may be given several times.")
    ] = None,
    people: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Table of people and topics, CSV or vCard.")
    ] = None,
    also: Annotated[
        list[str] | None,
        typer.Option(metavar="ADDRESS", help="Another address of the user's; all are given anew, none with ''."),
    ] = None,
    agree: Annotated[
        bool | None, typer.Option("--agree/--withdraw", help="Whether the user's history helps others.")
    ] = None,
    password_stdin: Annotated[
        bool, typer.Option("--password-stdin", help="Read a password from standard input, and do not ask.")
    ] = False,
    settings: SettingsFile = None,
    ledger: LedgerFile = None,
) -> None:
    """Make a user, or change one.

    Asks for a password where there is a terminal and none is set; without a password a user can sign in only through a
    reverse proxy. A new password ends all sessions of the user.
    """
    need_extra()
    from datetime import UTC, datetime

    from sqlalchemy import delete

    from kinfolk_assistant.features.people import People
    from kinfolk_assistant.ledger.tables import Session
    from kinfolk_assistant.ledger.users import aliases_of, known_zone, mail_address, make_user, set_aliases
    from kinfolk_assistant.service import consent
    from kinfolk_assistant.service import settings as user_settings
    from kinfolk_assistant.web.passwords import hash_password

    address = mail_address(address)
    if zone is not None:
        known_zone(zone)
    contacts = None if people is None else People.read(people).contacts
    hashed = hash_password(sys.stdin.readline().rstrip("\r\n")) if password_stdin else None
    given = {"name": name, "zone": zone, "places": None if place is None else "\n".join(place)}
    now = datetime.now(UTC)
    with open_ledger(settings, ledger) as book:
        with book.begin() as session:
            found = make_user(session, address, now=now)
            user_settings.change(
                session, address, {key: value for key, value in given.items() if value is not None}, now
            )
            if also is not None:
                set_aliases(session, address, [one for one in also if one])
            if contacts is not None:
                user_settings.set_contacts(session, address, contacts, now)
            has_password = found.password_hash is not None
        if hashed is None and not has_password and sys.stdin.isatty():
            hashed = hash_password(typer.prompt("Password", hide_input=True, confirmation_prompt=True))
        with book.begin() as session:
            found = make_user(session, address, now=now)
            if hashed is not None:
                found.password_hash = hashed
                # Whoever had the old password may be signed in with it.
                session.execute(delete(Session).where(Session.user == address))
            if agree is not None and agree != (found.agreed_at is not None):
                (consent.agree if agree else consent.withdraw)(session, address, now)
            helps = "helps others" if found.agreed_at is not None else "helps nobody else"
            signs_in = "signs in with a password" if found.password_hash else "has no password"
            others = aliases_of(session, address)
            known_as = f", also {', '.join(others)}" if others else ""
            typer.echo(f"{address}{known_as}: zone {found.zone}, {signs_in}; the history {helps}.")
