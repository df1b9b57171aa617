"""The features of a request, each with the rule for every one of its values, in words and as a function.

Names and values of fifteen are those of Roy (2006), "Clustered Naive Bayes", appendix B, which defines none of them.
Their meanings are those of `kinfolk.datasets.meetings`; these rules say how each is read off a request and a calendar.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from kinfolk.datasets.meetings import MEETING_FEATURES, MEETING_MEANINGS
from kinfolk_assistant.features import calendar_rules, office, request_rules
from kinfolk_assistant.features.case import Case, Finding

ALL_FEATURES: Mapping[str, tuple[str, ...]] = {**MEETING_FEATURES, **office.OFFICE_FEATURES}
"""From each feature's name to its values, in order: the fifteen, then what offices run on beside them."""

_OFFICE_MEANINGS = {
    "weekday": "the day of the week",
    "hour": "the hour in which it starts",
    "outsider": "whether the organiser is of the owner's own domain",
    "invited": "how many are invited: at most so many, or more",
    "part": "whether the owner is required",
    "series": "whether it repeats",
    "acquaintance": "how well owner and organiser know each other, as the calendar shows",
}


class Rule(NamedTuple):
    """The rule of one feature.

    Attributes
    ----------
    feature : str
        Its name.
    meaning : str
        What it means; of the fifteen as `MEETING_MEANINGS` has it.
    how : str
        How it is read off the request, the people-and-topics table or the calendar.
    values : mapping of str to str
        For each value, in the feature's order, when it holds.
    missing : str
        When it is not known; "" where it always is.
    find : callable
        The rule itself.
    """

    feature: str
    meaning: str
    how: str
    values: Mapping[str, str]
    missing: str
    find: Callable[[Case], Finding]


def _rule(
    find: Callable[[Case], Finding], how: str, values: Mapping[str, str], *, missing: str = "", doubt: bool = False
) -> Rule:
    """Put a rule together; ``doubt`` if it hangs on engagements of which it may not be known whether they stood."""
    name = find.__name__
    reasons = "; or ".join(reason for reason in (missing, _DOUBT if doubt else "") if reason)
    in_order = {value: values[value] for value in ALL_FEATURES[name]}
    return Rule(name, MEETING_MEANINGS.get(name) or _OFFICE_MEANINGS[name], how, in_order, reasons, find)


_DOUBT = "an engagement would change it of which it is not known whether it stood there when the request came"
_LEVELS = ("unimportant", "possibly important", "important", "very important", "critical")
_IMPORTANCE = {level: f"the table calls the topic {level}" for level in _LEVELS}
_JOBS = ("officer", "planner", "student", "faculty", "administrator", "funding")
_RELATIONS = ("subordinate", "peer", "supervisor", "family")
_TAKEN = {
    "light": "at most a third is taken",
    "busy": "more than a third and at most two thirds are taken",
    "booked": "more than two thirds are taken",
}
_LEFT = {"free": "an unbroken hour stays free", "busy": "no unbroken hour stays free"}
_BUSYNESS = {f"{taken}-{left}": f"{_TAKEN[taken]}, and {_LEFT[left]}" for taken in _TAKEN for left in _LEFT}

_IN_ORDER = (
    _rule(
        request_rules.start_time,
        "The clock time of the start in the owner's time zone.",
        {
            "early": "before 9:00",
            "morning": "from 9:00 to before 11:30",
            "mid": "from 11:30 to before 13:30",
            "afternoon": "from 13:30 to before 16:30",
            "late": "from 16:30 on",
        },
        missing="the meeting takes whole days, and so starts at no hour",
    ),
    _rule(
        request_rules.duration,
        "The time from start to end; a meeting without length counts as one minute.",
        {
            "15": "at most 15 minutes",
            "30": "more than 15 and at most 30 minutes",
            "60": "more than 30 and at most 60 minutes",
            "longer": "more than 60 minutes; so are whole days",
        },
    ),
    _rule(
        request_rules.message_importance,
        "The request's PRIORITY, or where it has none what X-MICROSOFT-CDO-IMPORTANCE says: 2 (high) as 1, 1 (normal) "
        "as 5, 0 (low) as 9; or where it has neither the importance of the mail that brought it (Importance, "
        "X-Priority or Priority): high as 1, normal as 5, low as 9.",
        {
            "other": "none of these says anything, or PRIORITY is 0",
            "unimportant": "PRIORITY is 9",
            "possibly important": "PRIORITY is 6, 7 or 8",
            "important": "PRIORITY is 5",
            "very important": "PRIORITY is 2, 3 or 4",
            "critical": "PRIORITY is 1",
        },
    ),
    _rule(
        request_rules.topic_importance,
        "The topics of the people-and-topics table that stand as whole words, in capitals or not, in the request's "
        "summary or in one of its categories; of several the most important counts.",
        {"other": "no topic of the table stands there, or only topics without importance", **_IMPORTANCE},
    ),
    _rule(
        request_rules.invitee_job,
        "The organiser's job in the people-and-topics table, found by mail address.",
        {
            "other": "the table does not name the organiser, or gives no job or another",
            **{job: f"the table says {job}" for job in _JOBS},
        },
    ),
    _rule(
        request_rules.invitee_relation,
        "What the organiser is to the owner by the people-and-topics table, found by mail address.",
        {
            "other": "the table does not name the organiser, or gives no relation or another",
            **{relation: f"the table says {relation}" for relation in _RELATIONS},
        },
    ),
    _rule(
        calendar_rules.invitee_recent,
        "The last engagement with the organiser that had ended when the request came, in days of the owner's time zone "
        "from its end to the request. The organiser had invited to it, or was invited and did not decline; the owner "
        "did not decline it, and it was not cancelled.",
        {
            "0": "on the same day",
            "1": "on the day before",
            "3": "two or three days before",
            "7": "four to seven days before",
            "longer ago": "more than seven days before, or never as far as the calendar tells",
        },
        missing="the request names no organiser",
        doubt=True,
    ),
    _rule(
        request_rules.invitee_soon,
        "Days of the owner's time zone from the request to the start of the meeting.",
        {
            "0": "on the same day, or the start has passed",
            "1": "on the day after",
            "3": "two or three days later",
            "7": "four to seven days later",
            "later": "more than seven days later",
        },
    ),
    _rule(
        calendar_rules.busy_fday,
        "The working day on which the meeting starts, 9:00 to 18:00 in the owner's time zone, at weekends too: how "
        "much of it other engagements take, time that two of them share counted once; then whether these and the "
        "meeting together leave an unbroken hour of it free.",
        _BUSYNESS,
        doubt=True,
    ),
    _rule(
        calendar_rules.busy_hday,
        "The half of the working day in which the meeting starts, told as busy_fday tells the whole: 9:00 to 12:00 if "
        "it starts before noon, else 12:00 to 18:00.",
        _BUSYNESS,
        doubt=True,
    ),
    _rule(
        calendar_rules.free_slot_time,
        "The free time right before the requested time and right after it, added up: back to the end of the engagement "
        "before and on to the start of the one after, no further than the working day (9:00 to 18:00) reaches. Where "
        "the meeting itself lies outside of it, there is none on that side; nor where an engagement reaches over the "
        "meeting's start or end.",
        {
            "0": "none",
            "15": "at most 15 minutes",
            "30": "more than 15 and at most 30 minutes",
            "60": "more than 30 and at most 60 minutes",
            "90": "more than 60 and at most 90 minutes",
            "135": "more than 90 and at most 135 minutes",
            "longer": "more than 135 minutes",
        },
        doubt=True,
    ),
    _rule(
        calendar_rules.conflict,
        "Whether an engagement overlaps the requested time. One that ends as the meeting starts does not.",
        {"no": "none does", "yes": "at least one does"},
        doubt=True,
    ),
    _rule(
        calendar_rules.conflict_importance,
        "The topics of the people-and-topics table, as topic_importance finds them, in the engagements that overlap "
        "the requested time; of several the most important counts.",
        {"other": "there is no conflict, or the table knows no topic of it", **_IMPORTANCE},
        doubt=True,
    ),
    _rule(
        calendar_rules.conflict_frequency,
        "How often the engagements that overlap the requested time recur; of several the most frequent counts.",
        {
            "other": "there is no conflict",
            "one time": "it is no occurrence of a series, and none like it was there in the four weeks before",
            "occasionally": "another with the same summary and organiser started in the four weeks before it started",
            "regularly": "it is an occurrence of a series",
        },
        doubt=True,
    ),
    _rule(
        calendar_rules.location,
        "First the place of the meeting, then that of the engagements that it overlaps or borders (at most 15 minutes "
        "lie between); of several of these one that is away counts. A place is local if it names one of the owner's "
        "places as whole words, or if it is a link, a telephone number or a meeting service; any other place is away.",
        {
            "local-none": "the meeting is local, and no engagement is beside it",
            "away-none": "the meeting is away, and no engagement is beside it",
            "local-local": "the meeting is local, and so is every engagement beside it",
            "away-local": "the meeting is away, and every engagement beside it is local",
            "local-away": "the meeting is local, and an engagement beside it is away",
            "away-away": "the meeting is away, and so is an engagement beside it",
        },
        missing="the meeting names no place, or an engagement beside it names none and none beside it is away; the "
        "owner has named no places, and it is neither link, number nor service",
        doubt=True,
    ),
)

_OFFICE_IN_ORDER = (
    _rule(
        office.weekday,
        "The day on which the meeting starts, in the owner's time zone.",
        {day: f"on a {day}" for day in office.OFFICE_FEATURES["weekday"]},
    ),
    _rule(
        office.hour,
        "The hour of the clock in which the meeting starts, in the owner's time zone.",
        {
            "before 8": "before 8:00",
            **{str(hour): f"from {hour}:00 to before {hour + 1}:00" for hour in range(8, 19)},
            "19 or later": "from 19:00 on",
        },
        missing="the meeting takes whole days, and so starts at no hour",
    ),
    _rule(
        office.outsider,
        "The domain of the organiser's address beside that of the owner's.",
        {
            "inside": "it is the same, or one below it",
            "outside": "it is another",
            "private": "it is one of those where anybody has a mailbox",
        },
        missing="the request names no organiser",
    ),
    _rule(
        office.invited,
        "How many addresses the request names, the owner's and the organiser's among them.",
        {
            "two": "two",
            "five": "three to five",
            "nine": "six to nine",
            "fifteen": "ten to fifteen",
            "more": "more than fifteen",
        },
    ),
    _rule(
        office.part,
        "ROLE of the owner among those invited (RFC 5545, section 3.2.16).",
        {
            "required": "the owner is required, or ROLE says nothing",
            "optional": "the owner may stay away, or is only told of it",
            "not named": "the owner is not named: it came to a list or was passed on",
        },
    ),
    _rule(
        office.series,
        "Whether the request is a series, or one occurrence of one.",
        {"no": "it is neither", "yes": "it is one of them"},
    ),
    _rule(
        office.acquaintance,
        "The engagements of the eight weeks before the request that brought the owner and the organiser together, as "
        "invitee_recent finds them.",
        {
            "never": "there was none",
            "once": "there was one",
            "sometimes": "there were two to four",
            "often": "there were five or more",
            "one-to-one": "two or more were occurrences of a series with nobody else",
        },
        missing="the request names no organiser",
        doubt=True,
    ),
)

RULES: Mapping[str, Rule] = {rule.feature: rule for rule in (*_IN_ORDER, *_OFFICE_IN_ORDER)}
"""From each feature's name, in the order of `ALL_FEATURES`, to its rule."""
