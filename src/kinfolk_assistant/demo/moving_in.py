"""The made-up team moves into a ledger: users, tables, and their past through the same import as anybody's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from sqlalchemy import delete

from kinfolk_assistant.demo.team import Member
from kinfolk_assistant.features.people import People
from kinfolk_assistant.importing.history import import_history
from kinfolk_assistant.importing.report import ImportReport
from kinfolk_assistant.ledger.store import Ledger
from kinfolk_assistant.ledger.tables import Contact
from kinfolk_assistant.ledger.users import make_user
from kinfolk_assistant.meeting import CalendarObject
from kinfolk_assistant.reading.bounds import WHOLE_CALENDAR
from kinfolk_assistant.reading.calendars import read_calendar


def move_in(ledger: Ledger, team: Iterable[Member], *, now: datetime, agreed: bool = True) -> dict[str, ImportReport]:
    """Make the team's users and import their histories.

    Parameters
    ----------
    ledger : Ledger
        Where to; users that are there already are brought up to date.
    team : iterable of Member
        Who.
    now : datetime
        The time of the import.
    agreed : bool, default=True
        Whether they have agreed that their histories help each other.

    Returns
    -------
    dict of str to ImportReport
        For each address what the import found.
    """
    reports = {}
    for member in team:
        address, institution = member.circle.owner, member.circle.institution
        lines = member.circle.lines()
        with ledger.begin() as session:
            user = make_user(session, address, name=member.person.name, zone=institution.zone, now=now)
            user.places = institution.house
            if agreed and user.agreed_at is None:
                user.agreed_at = now
            session.execute(delete(Contact).where(Contact.user == address))
            session.add_all(Contact(user=address, **line._asdict()) for line in lines)
        reports[address] = import_history(ledger, address, history_of(member), People(lines), now=now)
    return reports


def history_of(member: Member) -> Iterator[CalendarObject]:
    """Read what someone of the team would hand over: the calendar, and the messages where they were kept."""
    for text in (*member.calendar, *member.messages):
        yield from read_calendar(text.encode(), f"the calendar of {member.person.name}", bounds=WHOLE_CALENDAR)
