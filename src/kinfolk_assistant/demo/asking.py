"""Who asks a made-up person for what, and what the person enters into the calendar by themselves."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np

from kinfolk_assistant.demo.circle import Circle, Contact
from kinfolk_assistant.demo.diary import Diary
from kinfolk_assistant.demo.slots import Intended, Slot, choose_slot, furnish
from kinfolk_assistant.demo.text import calendar_object
from kinfolk_assistant.demo.weeks import any_level
from kinfolk_assistant.features.people import People
from kinfolk_assistant.features.row import Owner
from kinfolk_assistant.meeting import Attendee, CalendarObject, Meeting

_PRIORITY = {"critical": 1, "very important": 3, "important": 5, "possibly important": 7, "unimportant": 9}
DAYS_SINCE = {"0": (0,), "1": (1,), "3": (2, 3), "7": (4, 5, 6, 7)}
"""Days that may lie between an earlier meeting and an invitation, for each value of invitee_recent but the last."""

_HOURS = timedelta(hours=12)


class Scene:
    """A person with circle and calendar, at the moment `clock` that the telling has reached."""

    def __init__(self, circle: Circle, begin: datetime, rng: np.random.Generator) -> None:
        self.circle = circle
        self.rng = rng
        zone = ZoneInfo(circle.institution.zone)
        self.owner = Owner(circle.owner, zone, (circle.institution.house,))
        self.people = People(circle.lines())
        self.diary = Diary(circle.owner, zone)
        self.calendar: dict[str, CalendarObject] = {}
        self.clock = begin
        self._numbers = iter(range(10**6))

    def chance(self, share: float) -> bool:
        """Toss a coin that falls so in this share of times."""
        return bool(self.rng.random() < share)

    def between(self, first: datetime, last: datetime) -> datetime:
        """Draw a moment, to the second as iCalendar has it."""
        return (first + (last - first) * float(self.rng.random())).replace(microsecond=0)

    def me(self, answer: str) -> Attendee:
        """The person as someone invited."""
        return Attendee(self.owner.address, self.circle.name, answer)

    def enter(self, one: CalendarObject) -> None:
        """Put an object into the calendar, in the place of the version of it that there was."""
        self.calendar[one.meetings[0].uid] = one
        self.diary.put(one)

    def own(
        self, day: date, start: int, end: int, *, made: datetime, level: str, away: bool, met: Contact | None = None
    ) -> None:
        """Enter an engagement of the person's own, alone or with someone."""
        attendees = () if met is None else (self.me("ACCEPTED"), Attendee(met.address, met.name, "ACCEPTED"))
        meeting = Meeting(
            f"own-{next(self._numbers)}-{self.owner.address}",
            self.diary.moment(day, start),
            self.diary.moment(day, end),
            stamp=made,
            created=made,
            organiser=self.owner.address if met is not None else "",
            attendees=attendees,
            summary=self.circle.summary(level, self.rng),
            location=self.circle.place(away, self.rng),
        )
        self.enter(calendar_object([meeting]))

    def minute_of_arrival(self, row: Intended) -> int:
        """Draw at which minute of the day an invitation comes."""
        if row["invitee_soon"] != "0":
            return int(self.rng.integers(450, 1050))
        # Early enough for the meeting to be on the same day.
        earliest = {"early": 400, "morning": 530, "mid": 680, "afternoon": 800, "late": 960}[row["start_time"]]
        return earliest - int(self.rng.integers(0, 90))

    def invitation(self, at: datetime, row: Intended, often: bool, ahead: int = 0) -> Meeting:
        """Make an invitation, and enter what shall stand beside it."""
        local = at.astimezone(self.owner.zone)
        sender = self._sender(row, at)
        slot = choose_slot(row, local.date(), local.hour * 60 + local.minute + ahead, self.diary, self.rng)
        self._furnish(at, row, slot)
        start, end = self.diary.moment(slot.day, slot.start), self.diary.moment(slot.day, slot.end)
        if often:
            start, end = start.astimezone(self.owner.zone), end.astimezone(self.owner.zone)
        return Meeting(
            f"asked-{next(self._numbers)}-{self.owner.address}",
            start,
            end,
            stamp=at,
            created=at,
            organiser=sender.address,
            organiser_name=sender.name,
            attendees=(self.me("NEEDS-ACTION"), Attendee(sender.address, sender.name, "ACCEPTED")),
            summary=self.circle.summary(row["topic_importance"], self.rng),
            location=self.circle.place(row["location"].startswith("away"), self.rng),
            priority=_PRIORITY.get(row["message_importance"], 0),
            repeats="FREQ=WEEKLY;COUNT=6" if often else "",
        )

    def _furnish(self, at: datetime, row: Intended, slot: Slot) -> None:
        # Entered after everything that has happened before, so that no feature already told changes by it.
        for plan in furnish(row, slot, self.diary.on(slot.day), self.rng):
            made = max(self.between(max(self.clock, at - _HOURS), at), self.clock + timedelta(seconds=1))
            level = row["conflict_importance"] if plan.clashes else any_level(self.rng)
            self.own(slot.day, plan.start, plan.end, made=min(made, at), level=level, away=plan.away)

    def _sender(self, row: Intended, at: datetime) -> Contact:
        """Choose who asks: of those with the job and relation the one who was last met about as long ago as meant."""
        contacts = self.circle.contacts[row["invitee_job"], row["invitee_relation"]]
        contacts = tuple(contacts[i] for i in self.rng.permutation(len(contacts)))
        today = at.astimezone(self.owner.zone).date()
        last: dict[str, datetime] = {}
        for one in self.diary.between(self.diary.moment(today - timedelta(days=7), 0), at):
            if one.end <= at:
                for address in {one.meeting.organiser, *(other.address for other in one.meeting.attendees)}:
                    last[address] = max(one.end, last.get(address, one.end))
        meant = DAYS_SINCE.get(row["invitee_recent"], (15,))

        def misfit(contact: Contact) -> int:
            met = last.get(contact.address)
            days = 15 if met is None else (today - met.astimezone(self.owner.zone).date()).days
            return min(abs(days - one) for one in meant)

        return min(contacts, key=misfit)
