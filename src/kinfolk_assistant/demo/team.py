"""The made-up team: the 21 people of table 4.1 of Roy (2006), each with a calendar, its past, and new invitations."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

import numpy as np

from kinfolk.datasets.meeting_rules import GROUPS
from kinfolk.datasets.meetings import MEETING_FEATURES, Person, make_meetings
from kinfolk_assistant.demo.circle import Circle, make_circle
from kinfolk_assistant.demo.life import Arriving, Asked, Habits, Key, live
from kinfolk_assistant.meeting import CalendarObject

MADE_UP = (
    "This team, its calendars and its answers are made up: the people, institutions and groups are those of table 4.1 "
    "of the thesis “Clustered Naive Bayes” (Roy, 2006), whose own data are not public, and what is measured here says "
    "nothing about real people."
)
"""To be shown wherever results on this team are."""


class Member(NamedTuple):
    """Someone of the team.

    Attributes
    ----------
    person : Person
        Number, name, institution and group.
    circle : Circle
        Address, time zone, near place, and people-and-topics table (``circle.table()`` is the CSV).
    calendar : tuple of str
        The calendar as it is now: iCalendar texts, one for each UID.
    messages : tuple of str
        Requests, replies and cancellations that were kept, as iCalendar texts in the order they came; () for those
        who keep declined invitations in the calendar, and so have no need of them.
    upcoming : tuple of Arriving
        Invitations of the last hour to meetings within two weeks, in the order they came.
    asked : dict of Key to Asked
        The truth behind it: the features of every invitation when it came, and the answer.
    """

    person: Person
    circle: Circle
    calendar: tuple[str, ...]
    messages: tuple[str, ...]
    upcoming: tuple[Arriving, ...]
    asked: dict[Key, Asked]


def make_team(
    now: datetime,
    *,
    n_people: int = 21,
    n_requests: int | tuple[int, int] = (90, 190),
    n_upcoming: int = 8,
    days: int = 270,
    noise: float = 0.05,
    quirk: float = 0.5,
    seed: int = 0,
) -> tuple[Member, ...]:
    """Make up a team with its calendars.

    People, the rules by which they answer, and which kind of invitation they get are those of
    `kinfolk.datasets.meetings.make_meetings`. Its rows are what is intended; the rows that count are those that
    `feature_row` finds in the calendar as it stands when the invitation comes, and the answers follow from these.

    Parameters
    ----------
    now : datetime
        When the telling ends; the upcoming invitations come in the hour before.
    n_people : int, default=21
        How many of the team; beyond 21 the same groups come round again.
    n_requests : int or (int, int), default=(90, 190)
        Past invitations per person: one number for all, or the fewest and the most. Moved meetings come on top.
    n_upcoming : int, default=8
        Invitations per person that nobody has answered yet.
    days : int, default=270
        How far the past reaches back.
    noise : float, default=0.05
        Chance that an answer goes against the person's rules.
    quirk : float, default=0.5
        How far people differ from their group, from 0 to 1.
    seed : int, default=0
        The same seed and `now` give the same team.

    Returns
    -------
    tuple of Member
        In the order of their numbers.

    Examples
    --------
    >>> from datetime import UTC
    >>> [abel] = make_team(datetime(2026, 3, 2, 12, tzinfo=UTC), n_people=1, n_requests=10, n_upcoming=2)
    >>> abel.circle.owner, len(abel.upcoming)
    ('abel@exercise.example', 2)
    >>> abel.calendar[0].splitlines()[0]
    'BEGIN:VCALENDAR'
    """
    if now.tzinfo is None:
        raise ValueError(f"The team is to be made up until {now}, but that needs a time zone.")
    if days < 30:
        raise ValueError(f"days is {days}, but the past of the made-up team must be 30 days or longer.")
    fewest, most = (n_requests, n_requests) if isinstance(n_requests, int) else n_requests
    sizes = fewest + n_upcoming, most + n_upcoming
    now = now.replace(microsecond=0)
    drawn = make_meetings(n_people, sizes, noise=noise, quirk=quirk, frame=None, random_state=seed)
    begin = now - timedelta(days=days)
    members = []
    for person in drawn.people:
        rows = [dict(zip(MEETING_FEATURES, row, strict=True)) for row in drawn.data[drawn.task == person.id]]
        rng = np.random.default_rng((seed, person.id))
        circle = make_circle(person)
        mix = GROUPS[person.group].mix
        habits = Habits(drawn.rules[person.id], noise, weekly=round(8 * mix.load), trips=round(8 * mix.old_away))
        told = live(circle, habits, rows, begin=begin, now=now, n_upcoming=n_upcoming, rng=rng)
        deletes = person.id % 3 == 0
        kept = [one for one in told.calendar.values() if not (deletes and _declined(one, circle.owner))]
        messages = tuple(one.text for one in told.messages) if deletes else ()
        texts = tuple(one.text for one in kept)
        members.append(Member(person, circle, texts, messages, tuple(told.upcoming), told.asked))
    return tuple(members)


def _declined(one: CalendarObject, user: str) -> bool:
    return one.meetings[0].answer_of(user) == "DECLINED"
