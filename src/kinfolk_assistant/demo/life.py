"""Some months of a made-up person: invitations come, are answered by the person's rules, are moved and called off.

Told in the order in which things happen: the features of each invitation are those that `feature_row` finds in the
calendar as it is at that moment, and the answer follows from them.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

import numpy as np

from kinfolk.datasets.meeting_rules import Rule
from kinfolk_assistant.demo.asking import DAYS_SINCE, Scene
from kinfolk_assistant.demo.circle import Circle
from kinfolk_assistant.demo.slots import Intended
from kinfolk_assistant.demo.text import calendar_object, utc_text
from kinfolk_assistant.demo.weeks import any_level, standing
from kinfolk_assistant.features.row import feature_row
from kinfolk_assistant.meeting import CalendarObject, Meeting

Key = tuple[str, str, int]
"""Of an invitation: UID, RECURRENCE-ID, SEQUENCE."""

_ANSWERS = {"accept": "ACCEPTED", "reject": "DECLINED"}
_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)


class Habits(NamedTuple):
    """How a person answers, and how much of what happens to invitations happens to theirs."""

    rules: tuple[Rule, ...]
    noise: float = 0.05  # chance of an answer against the rules
    undecided: float = 0.06  # chance of "perhaps", or of no answer at all
    moved: float = 0.05  # chance that the organiser moves the meeting
    called_off: float = 0.03  # chance that the organiser calls it off
    series: int = 3  # how many of the invitations are to a series
    weekly: int = 3  # standing meetings of every week
    trips: int = 2  # days away
    mentions: float = 0.5  # share of those recently met with whom a meeting of one's own is entered


class Asked(NamedTuple):
    """An invitation as it came: its features then, what the rules say, and the answer given (None: neither)."""

    features: dict[str, str | None]
    by_rules: str
    label: str | None


class Arriving(NamedTuple):
    """A message that is still to be dealt with, and when it came."""

    received: datetime
    object: CalendarObject


class Life(NamedTuple):
    """What is left of a life: the calendar as it is now, all messages there were, and what came just now."""

    calendar: dict[str, CalendarObject]
    messages: list[CalendarObject]
    upcoming: list[Arriving]
    asked: dict[Key, Asked]


def follow(rules: Sequence[Rule], features: Mapping[str, str | None]) -> str:
    """Give the decision of the first rule that applies, "accept" or "reject"; what is not known fits no condition.

    Examples
    --------
    >>> from kinfolk.datasets.meeting_rules import accept, reject
    >>> follow((accept(conflict="no"), reject()), {"conflict": None})
    'reject'
    """
    return next(
        rule.decision for rule in rules if all(features[feature] in values for feature, values in rule.conditions)
    )


def live(
    circle: Circle,
    habits: Habits,
    intended: Sequence[Intended],
    *,
    begin: datetime,
    now: datetime,
    n_upcoming: int,
    rng: np.random.Generator,
) -> Life:
    """Tell a life from its begin until now; the last of the intended invitations come just now."""
    story = _Story(circle, habits, begin, now, rng)
    for one in standing(circle, begin, now, habits.weekly, habits.trips, rng):
        story.enter(one)
    past, coming = intended[: len(intended) - n_upcoming], intended[len(intended) - n_upcoming :]
    story.plan_invitations(past)
    story.run()
    story.bring(coming)
    return Life(story.calendar, story.messages, story.upcoming, story.asked)


class _Story(Scene):
    """A life while it is told: what is there, and what is to happen next."""

    def __init__(
        self, circle: Circle, habits: Habits, begin: datetime, now: datetime, rng: np.random.Generator
    ) -> None:
        super().__init__(circle, begin, rng)
        self.habits = habits
        self.begin = begin
        self.now = now
        self.messages: list[CalendarObject] = []
        self.upcoming: list[Arriving] = []
        self.asked: dict[Key, Asked] = {}
        self._agenda: list[tuple[datetime, int, Callable[[datetime], None]]] = []
        self._order = iter(range(10**6))

    def run(self) -> None:
        """Let everything happen that is on the agenda, in order."""
        while self._agenda:
            moment, _, happen = heapq.heappop(self._agenda)
            happen(moment)
            self.clock = moment

    def _later(self, moment: datetime, happen: Callable[[datetime], None]) -> None:
        heapq.heappush(self._agenda, (moment.replace(microsecond=0), next(self._order), happen))

    def plan_invitations(self, intended: Sequence[Intended]) -> None:
        """Spread invitations over the months, each with the earlier meeting that makes its sender recently met."""
        series = set(self.rng.permutation(len(intended))[: self.habits.series].tolist())
        last = self.now - _DAY
        for i, row in enumerate(intended):
            day = self.between(self.begin, last).astimezone(self.owner.zone).date()
            # On a Friday "tomorrow" would be a Saturday.
            day -= timedelta(days=max(0, day.weekday() - (3 if row["invitee_soon"] == "1" else 4)))
            received = self.diary.moment(day, self.minute_of_arrival(row)) + timedelta(seconds=i % 60)
            if not self.begin <= received <= last:
                received = self.between(self.begin, last)
            since = DAYS_SINCE.get(row["invitee_recent"])
            if since is not None and self.chance(self.habits.mentions):
                self._plan_earlier_meeting(row, received, int(self.rng.choice(since)))
            self._later(received, partial(self._ask, row=row, often=i in series))

    def _plan_earlier_meeting(self, row: Intended, received: datetime, days: int) -> None:
        local = received.astimezone(self.owner.zone)
        day = local.date() - timedelta(days=days)
        minute = local.hour * 60 + local.minute - 65 if days == 0 else int(self.rng.integers(36, 68)) * 15
        if minute < 360:
            return
        contacts = self.circle.contacts[row["invitee_job"], row["invitee_relation"]]
        met = contacts[self.rng.integers(len(contacts))]
        made = self.diary.moment(day, minute) - timedelta(minutes=int(self.rng.integers(60, 6 * 1440)))

        def happen(at: datetime) -> None:
            self.own(day, minute, minute + 30, made=at, level=any_level(self.rng), away=False, met=met)

        self._later(max(made, self.begin), happen)

    def _ask(self, at: datetime, row: Intended, often: bool) -> None:
        self._receive(at, self.invitation(at, row, often), ())

    def _receive(self, at: datetime, meeting: Meeting, others: tuple[Meeting, ...]) -> None:
        """Let an invitation come: its features are told, then it stands in the calendar until it is answered."""
        features = feature_row(meeting, self.owner, self.diary, self.people, at).values
        by_rules = follow(self.habits.rules, features)
        self.messages.append(calendar_object([meeting], "REQUEST"))
        self.enter(calendar_object([*others, meeting]))
        start = meeting.span(self.owner.zone)[0]
        given = by_rules
        if self.chance(self.habits.noise):
            given = "accept" if by_rules == "reject" else "reject"
        answer = _ANSWERS[given]
        if start < self.now - _DAY and not meeting.repeats and not others and self.chance(self.habits.undecided):
            answer = "TENTATIVE" if self.chance(0.5) else "NEEDS-ACTION"
        label = {"ACCEPTED": "accept", "DECLINED": "decline"}.get(answer)
        self.asked[meeting.uid, meeting.recurrence_id, meeting.sequence] = Asked(features, by_rules, label)
        patience = min(timedelta(minutes=int(self.rng.integers(3, 500))), (start - at) / 2)
        self._later(at + patience, lambda when: self._answer(when, meeting, others, answer))

    def _answer(self, at: datetime, meeting: Meeting, others: tuple[Meeting, ...], answer: str) -> None:
        answered = meeting
        if answer != "NEEDS-ACTION":
            answered = replace(meeting, stamp=at, attendees=(self.me(answer), *meeting.attendees[1:]))
            reply = replace(answered, attendees=(self.me(answer),))
            self.messages.append(calendar_object([reply], "REPLY"))
        one = calendar_object([*others, answered])
        self.calendar[meeting.uid] = one
        self.diary.put(one)
        if answer == "DECLINED" and not others:
            self.diary.remove(meeting.uid)
        if answer == "ACCEPTED":
            self._go_on(at, answered, others)

    def _go_on(self, at: datetime, meeting: Meeting, others: tuple[Meeting, ...]) -> None:
        """See whether the organiser moves an accepted meeting, or one of its occurrences, or calls it off."""
        start = meeting.span(self.owner.zone)[0]
        if meeting.repeats:
            occurrence = start.astimezone(self.owner.zone) + 7 * int(self.rng.integers(1, 5)) * _DAY
            moment = self.between(max(at, occurrence - 4 * _DAY), occurrence - _DAY)
            if moment < self.now - _DAY:
                self._later(moment, lambda when: self._move_occurrence(when, meeting, occurrence))
        elif not others and start - at > 2 * _DAY and start < self.now - _DAY and not meeting.sequence:
            moment = self.between(at + _HOUR, start - 12 * _HOUR)
            if self.chance(self.habits.moved):
                self._later(moment, lambda when: self._move(when, meeting))
            elif self.chance(self.habits.called_off):
                self._later(moment, lambda when: self._call_off(when, meeting))

    def _move(self, at: datetime, meeting: Meeting) -> None:
        delay = int(self.rng.integers(1, 4)) * _DAY
        again = (self.me("NEEDS-ACTION"), *meeting.attendees[1:])
        start, end = meeting.span(self.owner.zone)
        moved = replace(meeting, start=start + delay, end=end + delay, sequence=1, stamp=at, attendees=again)
        self._receive(at, moved, ())

    def _move_occurrence(self, at: datetime, series: Meeting, occurrence: datetime) -> None:
        length = series.span(self.owner.zone)[1] - series.span(self.owner.zone)[0]
        moved = replace(
            series,
            start=occurrence + 2 * _HOUR,
            end=occurrence + 2 * _HOUR + length,
            recurrence_id=utc_text(occurrence),
            sequence=1,
            stamp=at,
            created=at,
            repeats="",
            attendees=(self.me("NEEDS-ACTION"), *series.attendees[1:]),
        )
        self._receive(at, moved, (series,))

    def _call_off(self, at: datetime, meeting: Meeting) -> None:
        off = replace(meeting, sequence=1, stamp=at, cancelled=True)
        self.messages.append(calendar_object([off], "CANCEL"))
        self.calendar[meeting.uid] = calendar_object([off])
        self.diary.remove(meeting.uid)

    def bring(self, intended: Sequence[Intended]) -> None:
        """Let invitations come within the last hour, which nobody has answered yet."""
        for i, row in enumerate(intended):
            at = (self.now - _HOUR + _HOUR * (i + 1) / (len(intended) + 1)).replace(microsecond=0)
            # Not so soon that it is over before anybody has looked, nor at night.
            late = at.astimezone(self.owner.zone).hour >= 14
            row = {**row, "invitee_soon": "1"} if late and row["invitee_soon"] == "0" else row
            meeting = self.invitation(at, row, False, ahead=150)
            features = feature_row(meeting, self.owner, self.diary, self.people, at).values
            key = meeting.uid, meeting.recurrence_id, meeting.sequence
            self.asked[key] = Asked(features, follow(self.habits.rules, features), None)
            self.upcoming.append(Arriving(at, calendar_object([meeting], "REQUEST")))
            self.clock = at
