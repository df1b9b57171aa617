"""``kinfolk assistant import``: a calendar with its past becomes rows to learn from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kinfolk_assistant.cli.options import LedgerFile, PeopleFile, SettingsFile, User, need_extra, open_ledger

EXAMPLE = """\b
Example:
  kinfolk assistant import calendar.ics --user ann@example.org --people people.csv
  kinfolk assistant import Mail/ --user ann@example.org"""


def import_(
    sources: Annotated[
        list[Path],
        typer.Argument(metavar="PATH...", help="Calendars (.ics), mails (.eml, .mbox), or folders of these."),
    ],
    user: User,
    people: PeopleFile = None,
    zone: Annotated[
        str | None, typer.Option(metavar="ZONE", help="Time zone of a user who is new, such as Europe/Berlin.")
    ] = None,
    settings: SettingsFile = None,
    ledger: LedgerFile = None,
) -> None:
    """Import a user's calendar with its past, and report what could be learnt from it.

    Each past invitation becomes a row with the answer that the user gave; what the calendar cannot tell of its own past
    stays unknown. May be repeated: what is there already is not added again.
    """
    need_extra()
    from datetime import UTC, datetime

    from kinfolk.cli.commands import say
    from kinfolk_assistant.features.people import People
    from kinfolk_assistant.importing.history import import_history
    from kinfolk_assistant.importing.sources import read_history
    from kinfolk_assistant.ledger.tables import Contact
    from kinfolk_assistant.ledger.users import known_zone, mail_address, make_user
    from kinfolk_assistant.service import settings as user_settings

    address = mail_address(user)
    table = None if people is None else People.read(people)
    if zone is not None:
        known_zone(zone)
    objects = []
    for source in sources:
        handed = read_history(source)
        objects += handed.objects
        for sentence in handed.skipped:
            say(sentence)
    now = datetime.now(UTC)
    with open_ledger(settings, ledger) as book:
        with book.begin() as session:
            found = make_user(session, address, zone=zone or "UTC", now=now)
            if zone is not None:
                found.zone = zone
            if table is not None:
                user_settings.set_contacts(session, address, table.contacts, now)
            known = table or People.from_contacts(session.query(Contact).where(Contact.user == address).all())
        typer.echo(str(import_history(book, address, objects, known, now=now)))
