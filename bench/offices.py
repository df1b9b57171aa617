"""Made-up offices whose people answer by written sayings, as they would tell a new secretary; for measuring alone.

Nothing of it is known to the generator of the demo: there answers follow from the fifteen features, here from what
people say of their days ("Vendors never", "Wednesday is for work, but for my own unit"), and the first saying that
holds decides. People of one trade share their sayings but for some that they dropped, and have a few of their own, on
a day, an hour, a topic or a single colleague. One answer in a hundred goes against the sayings: minds change.

The assistant sees nothing but calendars and invitations, and none of its parameters is chosen by what is measured here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

import numpy as np

ZONE = ZoneInfo("Europe/Berlin")
BEGIN = datetime(2026, 1, 5, tzinfo=ZONE)  # a Monday
CHANGED_MINDS = 0.01
_A_WEEK = 7.5  # invitations to one person
_WEEKS = 4  # of a weekly round
_TOPICS = ("planning", "review", "status", "budget", "hiring", "talk", "training", "social", "workshop", "handover")


class Person(NamedTuple):
    """Somebody who invites or is invited."""

    address: str
    name: str
    post: str  # "head", "lead", "peer", "client", "vendor" or "family"
    unit: str


class Seen(NamedTuple):
    """An invitation as the person who is invited sees it."""

    by: Person
    ours: bool  # of the same unit
    hour: float
    weekday: int
    minutes: int
    invited: int
    optional: bool
    weekly: bool
    ahead: int  # days
    clash: str  # "", "private", "work" or "meeting"
    hours_taken: float
    topic: str


class Saying(NamedTuple):
    """What somebody says of invitations of a kind, and whether these are then accepted."""

    words: str
    holds: Callable[[Seen], bool]
    accept: bool


def _yes(words: str, holds: Callable[[Seen], bool]) -> Saying:
    return Saying(words, holds, True)


def _no(words: str, holds: Callable[[Seen], bool]) -> Saying:
    return Saying(words, holds, False)


_TWO_PLACES = _no("I am not in two places at once", lambda s: bool(s.clash))
_VENDORS = _no("Vendors never", lambda s: s.by.post == "vendor")
_FAMILY = _yes("Family first", lambda s: s.by.post == "family" and s.clash != "private")

TRADES: dict[str, tuple[Saying, ...]] = {
    "maker": (
        _FAMILY,
        _VENDORS,
        _yes("What my lead asks for", lambda s: s.by.post == "lead" and s.ours and s.clash != "meeting"),
        _no("Where I may stay away and many come, I stay away", lambda s: s.optional and s.invited > 8),
        _TWO_PLACES,
        _yes("Our own weekly rounds", lambda s: s.ours and s.weekly),
        _no("Nothing before ten from elsewhere", lambda s: s.hour < 10 and not s.ours),
        _no("Wednesday is for work, but for my own unit", lambda s: s.weekday == 2 and not s.ours),
        _no("Clients are for those who sell", lambda s: s.by.post == "client"),
        _no("Nothing over an hour and a half", lambda s: s.minutes > 90),
        _no("A full day stays as it is", lambda s: s.hours_taken >= 5),
        _yes("The rest", lambda s: True),
    ),
    "seller": (
        _FAMILY,
        _yes("Clients always, but not over another meeting", lambda s: s.by.post == "client" and s.clash != "meeting"),
        _VENDORS,
        _no("On Tuesdays and Thursdays I am on the road", lambda s: s.weekday in (1, 3)),
        _yes("The head", lambda s: s.by.post == "head" and s.clash != "meeting"),
        _TWO_PLACES,
        _no("What is optional is not for me", lambda s: s.optional),
        _no("Inside, an hour is enough", lambda s: s.minutes > 60),
        _no("Trainings", lambda s: s.topic == "training"),
        _yes("The rest", lambda s: True),
    ),
    "chief": (
        _FAMILY,
        _VENDORS,
        _yes("The head", lambda s: s.by.post == "head" and s.clash != "private"),
        _TWO_PLACES,
        _yes("A word between two with my own people", lambda s: s.ours and s.invited == 2),
        _no("Not within two days, but for my own people", lambda s: s.ahead < 2 and not s.ours),
        _no("Monday mornings are mine", lambda s: s.weekday == 0 and s.hour < 12),
        _yes("Budget and hiring", lambda s: s.topic in ("budget", "hiring")),
        _no("Rounds of more than twelve", lambda s: s.invited > 12),
        _no("Nothing after five", lambda s: s.hour >= 17),
        _no("Nothing over an hour", lambda s: s.minutes > 60),
        _no("Status can be written", lambda s: s.topic == "status" and not s.ours),
        _yes("The rest", lambda s: True),
    ),
    "clerk": (
        _FAMILY,
        _no("Friday afternoon I am gone", lambda s: s.weekday == 4 and s.hour >= 13),
        _TWO_PLACES,
        _yes("Vendors for half an hour", lambda s: s.by.post == "vendor" and s.minutes <= 30),
        _VENDORS,
        _no("Clients are not my business", lambda s: s.by.post == "client"),
        _no("Not on the same day", lambda s: s.ahead == 0 and s.by.post != "head"),
        _yes("The rest", lambda s: True),
    ),
    "scholar": (
        _FAMILY,
        _VENDORS,
        _no("Clients are for those who sell", lambda s: s.by.post == "client"),
        _TWO_PLACES,
        _yes("Talks", lambda s: s.topic == "talk"),
        _yes("Our own weekly rounds", lambda s: s.ours and s.weekly),
        _no("Mornings are for writing", lambda s: s.hour < 12),
        _no("Others' weekly rounds", lambda s: s.weekly),
        _no("What is optional", lambda s: s.optional),
        _no("Workshops and trainings", lambda s: s.topic in ("workshop", "training")),
        _yes("The rest", lambda s: True),
    ),
}


def _own_sayings(colleagues: Sequence[Person], rng: np.random.Generator) -> list[Saying]:
    """Draw one to three sayings of a person's own."""
    liked, disliked = (colleagues[i] for i in rng.choice(min(len(colleagues), 10), 2, replace=False))
    topic = str(rng.choice(_TOPICS))
    day = int(rng.integers(5))
    pool = (
        _no("Lunch is mine", lambda s: 12 <= s.hour < 13 and s.by.post != "family"),
        _no("At half past four I fetch the children", lambda s: s.hour >= 16.5),
        _no("Not before half past nine", lambda s: s.hour < 9.5),
        _no(f"Nothing from {disliked.name}", lambda s: s.by.address == disliked.address),
        _yes(f"Always {liked.name}", lambda s: s.by.address == liked.address and not s.clash),
        _no(f"No {topic}", lambda s: s.topic == topic and not s.ours),
        _yes(f"Any {topic}", lambda s: s.topic == topic and not s.clash and s.by.post != "vendor"),
        _no(f"Day {day} is my day at home", lambda s: s.weekday == day and not s.ours),
    )
    return [pool[i] for i in rng.choice(len(pool), rng.integers(1, 4), replace=False)]


class Invitation(NamedTuple):
    """An invitation with the answer that its owner gives; ``text`` is its REQUEST, ``kept`` the calendar's entry."""

    came: datetime
    uid: str
    text: str
    kept: str
    accept: bool


class Member(NamedTuple):
    """Somebody of the office: what stood in the calendar of itself, and the invitations in the order they came."""

    person: Person
    trade: str
    own: list[str]
    invitations: list[Invitation]


def make_office(seed: int, *, n_people: int = 16, n_invitations: int = 105) -> list[Member]:
    """Make up an office: units of one trade each, everybody with so many invitations.

    Examples
    --------
    >>> office = make_office(0, n_people=6, n_invitations=5)
    >>> len({member.trade for member in office}), len(office[0].invitations)
    (2, 5)
    """
    rng = np.random.default_rng((seed, 9))
    domain = f"office{seed}.example"
    trades = [str(one) for one in rng.permutation(list(TRADES))[: max(2, min(4, n_people // 3))]]
    heads = [Person(f"head@{domain}", "The head", "head", "")]
    leads = [Person(f"lead-{trade}@{domain}", f"Lead of {trade}s", "lead", trade) for trade in trades]
    members = [Person(f"p{i}@{domain}", f"P {i}", "peer", trades[i * len(trades) // n_people]) for i in range(n_people)]
    others = [Person(f"c{i}@{domain}", f"C {i}", "peer", f"unit {i % 4}") for i in range(14)]
    clients = [Person(f"k{i}@client{i % 5}.example", f"K {i}", "client", "") for i in range(10)]
    vendors = [Person(f"v{i}@vendor{i % 7}.example", f"V {i}", "vendor", "") for i in range(40)]
    office = []
    for person in members:
        family = [Person(f"home-{person.address.split('@')[0]}@home.example", "Home", "family", "")]
        near = [one for one in (*members, *leads) if one.unit == person.unit and one != person]
        far = [one for one in (*members, *leads, *others) if one.unit != person.unit]
        far = [far[i] for i in rng.permutation(len(far))]
        circles = {"near": near, "far": far, "head": heads, "client": clients, "vendor": vendors, "family": family}
        colleagues = [far[i] for i in rng.permutation(min(len(far), 10))]
        kept = [one for one in TRADES[person.unit][:-1] if rng.random() > 0.15]
        sayings = [*_own_sayings(colleagues, rng), *kept, TRADES[person.unit][-1]]
        office.append(_Days(person, circles, sayings, rng).live(n_invitations))
    return office


_SHARES = {
    "maker": (0.38, 0.38, 0.06, 0.04, 0.09, 0.05),
    "seller": (0.24, 0.26, 0.06, 0.30, 0.09, 0.05),
    "chief": (0.34, 0.34, 0.10, 0.08, 0.09, 0.05),
    "clerk": (0.28, 0.40, 0.07, 0.06, 0.15, 0.04),
    "scholar": (0.34, 0.40, 0.05, 0.06, 0.10, 0.05),
}


class _Slot(NamedTuple):
    start: datetime
    end: datetime
    kind: str


class _Days:
    """One person's weeks as they pass."""

    def __init__(
        self, person: Person, circles: dict[str, list[Person]], sayings: list[Saying], rng: np.random.Generator
    ) -> None:
        self.person = person
        self.circles = circles
        self.sayings = sayings
        self.rng = rng
        self.slots: list[_Slot] = []
        self.own: list[str] = []

    def live(self, n: int) -> Member:
        weeks = int(n / _A_WEEK) + 3
        for week in range(-1, weeks + 3):
            self._own_week(week)
        moments = np.sort(self.rng.uniform(0.0, n / _A_WEEK * 5, n))
        invitations = [self._invited(number, float(at)) for number, at in enumerate(moments)]
        return Member(self.person, self.person.unit, self.own, invitations)

    def _own_week(self, week: int) -> None:
        """Enter what a week holds of itself: hours of work put aside, and private things."""
        for number in range(int(self.rng.integers(2, 5))):
            kind = "private" if self.rng.random() < 0.3 else "work"
            day = BEGIN + timedelta(weeks=week, days=int(self.rng.integers(5)))
            start = day.replace(hour=int(self.rng.integers(8, 17)))
            end = start + timedelta(minutes=int(self.rng.choice((60, 90, 120))))
            self.slots.append(_Slot(start, end, kind))
            uid = f"own-{week}-{number}-{self.person.address}"
            lines = [f"SUMMARY:{'Dentist' if kind == 'private' else 'Focus'}"]
            self.own.append(_text(uid, BEGIN - timedelta(days=20), start, end, lines, method=""))

    def _invited(self, number: int, at: float) -> Invitation:
        rng = self.rng
        shares = _SHARES[self.person.unit]
        circle = str(rng.choice(list(self.circles), p=shares))
        by = self._one_of(self.circles[circle], circle)
        week, day = divmod(at, 5.0)
        came = BEGIN + timedelta(weeks=int(week), days=int(day), hours=7 + 11 * (day % 1.0))
        came = came.replace(second=0, microsecond=0)
        ahead = int(rng.choice((0, 1, 2, 3, 5, 7, 10, 14), p=(0.06, 0.16, 0.18, 0.16, 0.16, 0.14, 0.08, 0.06)))
        start = self._start(came, ahead, circle)
        minutes = int(rng.choice((15, 30, 45, 60, 90, 120), p=(0.06, 0.30, 0.10, 0.34, 0.10, 0.10)))
        end = start + timedelta(minutes=minutes)
        invited = 2 if rng.random() < 0.3 else int(min(30, 3 + rng.geometric(0.15)))
        optional = invited > 2 and bool(rng.random() < 0.3)
        weekly = circle in ("near", "far") and bool(rng.random() < 0.12)
        topic = {"vendor": "offer", "client": "contract", "family": "home"}.get(circle) or str(rng.choice(_TOPICS))
        seen = Seen(
            by,
            by.unit == self.person.unit,
            start.hour + start.minute / 60,
            start.weekday(),
            minutes,
            invited,
            optional,
            weekly,
            (start.date() - came.date()).days,
            self._clash(start, end),
            self._taken(start),
            topic,
        )
        accept = next(one.accept for one in self.sayings if one.holds(seen))
        if rng.random() < CHANGED_MINDS:
            accept = not accept
        if accept:
            weeks = [timedelta(weeks=n) for n in range(_WEEKS if weekly else 1)]
            self.slots += [_Slot(start + later, end + later, "meeting") for later in weeks]
        uid = f"asked-{number}-{self.person.address}"
        text, kept = (
            _text(uid, came, start, end, self._lines(seen, answer), method=method)
            for answer, method in (("NEEDS-ACTION", "REQUEST"), ("ACCEPTED" if accept else "DECLINED", ""))
        )
        return Invitation(came.astimezone(UTC), uid, text, kept, accept)

    def _one_of(self, people: Sequence[Person], circle: str) -> Person:
        """Draw who asks: of colleagues and clients a few ask most, vendors are ever new ones."""
        weights = np.ones(len(people)) if circle == "vendor" else 1.0 / np.arange(1, len(people) + 1)
        return people[int(self.rng.choice(len(people), p=weights / weights.sum()))]

    def _start(self, came: datetime, ahead: int, circle: str) -> datetime:
        rng = self.rng
        day = came + timedelta(days=ahead)
        if circle != "family" and day.weekday() > 4 and rng.random() < 0.93:
            day += timedelta(days=7 - day.weekday())
        hour = 19 + int(rng.integers(2)) if rng.random() < 0.02 else int(rng.integers(8, 18))
        start = day.replace(hour=hour, minute=int(rng.choice((0, 30))))
        return start if start > came + timedelta(minutes=30) else start + timedelta(days=1)

    def _clash(self, start: datetime, end: datetime) -> str:
        kinds = [one.kind for one in self.slots if one.start < end and one.end > start]
        return next((kind for kind in ("meeting", "private", "work") if kind in kinds), "")

    def _taken(self, start: datetime) -> float:
        return sum((one.end - one.start) / timedelta(hours=1) for one in self.slots if one.start.date() == start.date())

    def _lines(self, seen: Seen, answer: str) -> list[str]:
        role = "OPT-PARTICIPANT" if seen.optional else "REQ-PARTICIPANT"
        crowd = [one for one in (*self.circles["near"], *self.circles["far"]) if one != seen.by]
        guests = [crowd[i % len(crowd)].address for i in range(seen.invited - 2)]
        lines = [
            f"SUMMARY:{seen.topic.capitalize()}",
            f"ORGANIZER;CN={seen.by.name}:mailto:{seen.by.address}",
            f"ATTENDEE;PARTSTAT=ACCEPTED:mailto:{seen.by.address}",
            f"ATTENDEE;ROLE={role};PARTSTAT={answer};RSVP=TRUE:mailto:{self.person.address}",
            *(f"ATTENDEE;PARTSTAT=NEEDS-ACTION:mailto:{address}" for address in dict.fromkeys(guests)),
        ]
        return [*lines, f"RRULE:FREQ=WEEKLY;COUNT={_WEEKS}"] if seen.weekly else lines


def _text(uid: str, made: datetime, start: datetime, end: datetime, lines: Sequence[str], *, method: str) -> str:
    at, first, last = (f"{moment.astimezone(UTC):%Y%m%dT%H%M%SZ}" for moment in (made, start, end))
    head = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//offices//EN", *([f"METHOD:{method}"] if method else [])]
    event = [f"UID:{uid}", f"DTSTAMP:{at}", f"CREATED:{at}", f"DTSTART:{first}", f"DTEND:{last}"]
    return "\r\n".join([*head, "BEGIN:VEVENT", *event, *lines, "END:VEVENT", "END:VCALENDAR", ""])
