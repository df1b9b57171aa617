"""A user's manner of being spoken to: language, clock of 12 or 24 hours, first day of the week."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from kinfolk_assistant.speech.catalogue import ENGLISH, Catalogue, catalogue, languages

WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
CLOCKS = ("24", "12")


class Manner(NamedTuple):
    """How times and sentences are told.

    Examples
    --------
    >>> from datetime import UTC
    >>> moment = datetime(2026, 7, 1, 13, 5, tzinfo=UTC)
    >>> Manner().moment(moment, ZoneInfo("UTC")), Manner(clock="12").time(moment)
    ('Wed 1 Jul 2026, 13:05', '1:05 pm')
    >>> Manner("de").moment(moment, ZoneInfo("UTC"))
    'Mi, 1. Juli 2026, 13:05'
    """

    language: str = ENGLISH
    clock: str = "24"
    week_start: int = 0
    """The first day of the week; 0 is Monday."""

    @property
    def catalogue(self) -> Catalogue:
        """The sentences of the language."""
        return catalogue(self.language)

    def say(self, text: str, **gaps: object) -> str:
        """Say a sentence, with what is put into its gaps."""
        return self.catalogue.gettext(text) % gaps

    def tell(self, text: str) -> str:
        """Say a sentence that was put together in English."""
        return self.catalogue.tell(text)

    def time(self, moment: datetime) -> str:
        """Say the time of a clock."""
        if self.clock == "24":
            return f"{moment:%H:%M}"
        return f"{moment.hour % 12 or 12}:{moment:%M} {'am' if moment.hour < 12 else 'pm'}"

    def day(self, moment: datetime, now: datetime) -> str:
        """Say a day of the calendar, with the year where it is another one than now."""
        names = {"weekday": self.say(WEEKDAYS[moment.weekday()]), "month": self.say(MONTHS[moment.month - 1])}
        day = self.say("%(weekday)s %(day)s %(month)s", day=moment.day, **names)
        return day if moment.year == now.year else f"{day} {moment.year}"

    def moment(self, moment: datetime, zone: ZoneInfo) -> str:
        """Say a moment to the minute."""
        moment = moment.astimezone(zone)
        return f"{self.day(moment, moment)} {moment.year}, {self.time(moment)}"

    def span(self, start: datetime, end: datetime, all_day: bool, zone: ZoneInfo, now: datetime) -> tuple[str, str]:
        """Say when a meeting is: its day, with the year where it is not this one, and its hours on that day.

        Examples
        --------
        >>> from datetime import UTC
        >>> start, end = datetime(2026, 7, 1, 8, tzinfo=UTC), datetime(2026, 7, 1, 9, tzinfo=UTC)
        >>> Manner().span(start, end, False, ZoneInfo("Europe/Berlin"), now=start)
        ('Wed 1 Jul', '10:00–11:00')
        """
        start, end = start.astimezone(zone), end.astimezone(zone)
        day = self.day(start, now.astimezone(zone))
        if all_day:
            last = end - timedelta(days=1)
            one_day = last.date() <= start.date()
            return day, self.say("all day") if one_day else self.say("to %(day)s", day=self.day(last, start))
        if end.date() == start.date():
            return day, f"{self.time(start)}–{self.time(end)}"
        return day, f"{self.time(start)}, {self.say('to %(day)s', day=self.day(end, start))} {self.time(end)}"

    def week(self) -> list[tuple[int, str]]:
        """Give the days of the week from its first on, with their numbers; 0 is Monday."""
        order = [(self.week_start + place) % 7 for place in range(7)]
        return [(number, DAYS[number]) for number in order]


def wanted_language(accepted: str) -> str:
    """Choose a language by what a browser accepts (RFC 9110 12.5.4).

    Examples
    --------
    >>> wanted_language("fr;q=0.9, de-AT;q=0.8, en;q=0.5"), wanted_language("")
    ('de', 'en')
    """
    weighed = []
    for place, one in enumerate(accepted[:400].split(",")):
        tag, _, quality = one.strip().partition(";q=")
        try:
            weighed.append((-float(quality or 1), place, tag.strip().lower().partition("-")[0]))
        except ValueError:
            continue
    return next((language for _, _, language in sorted(weighed) if language in languages()), ENGLISH)
