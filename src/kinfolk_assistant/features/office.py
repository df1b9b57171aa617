"""What offices run on beside the fifteen features of the thesis: who asks, when in the week, how many, how well known.

Names, values and rules are this project's own. Three more things that a request tells are no feature with listed values
but names, of which rates are kept: the organiser, the organiser's domain, and the words of the title.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

from kinfolk_assistant.features.calendar_rules import met, settle
from kinfolk_assistant.features.case import Case, Finding
from kinfolk_assistant.features.past import Engagement
from kinfolk_assistant.features.people import words_of
from kinfolk_assistant.features.request_rules import at_most
from kinfolk_assistant.meeting import Meeting
from kinfolk_assistant.reading.trust import PUBLIC_DOMAINS, domain_of

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_HOURS = ("before 8", *map(str, range(8, 19)), "19 or later")

OFFICE_FEATURES: Mapping[str, tuple[str, ...]] = {
    "weekday": _DAYS,
    "hour": _HOURS,
    "outsider": ("inside", "outside", "private"),
    "invited": ("two", "five", "nine", "fifteen", "more"),
    "part": ("required", "optional", "not named"),
    "series": ("no", "yes"),
    "acquaintance": ("never", "once", "sometimes", "often", "one-to-one"),
}
"""From each feature's name to its values, in order."""

NAMES = ("organiser", "domain", "title")
"""What a request names beside its features: organiser and domain as they are, of the title its words."""

FROM_CALENDAR = ("acquaintance",)
"""Which of the features hang on the owner's calendar."""

_LATELY = timedelta(weeks=8)
_MOST_WORDS = 8
_SHORTEST_WORD = 3


def weekday(case: Case) -> Finding:
    """Tell the day of the week in the owner's zone."""
    return Finding(_DAYS[case.start.astimezone(case.owner.zone).weekday()])


def hour(case: Case) -> Finding:
    """Tell the hour in which the meeting starts."""
    if case.meeting.all_day:
        return Finding(None, "the meeting takes whole days and starts at no hour")
    return Finding(_HOURS[min(max(case.start.astimezone(case.owner.zone).hour, 7), 19) - 7])


def outsider(case: Case) -> Finding:
    """Tell whether the organiser is of the owner's own domain."""
    own, other = domain_of(case.owner.address), domain_of(case.meeting.organiser)
    if not other:
        return Finding(None, "the request names no organiser")
    if other in PUBLIC_DOMAINS:
        return Finding("private")
    return Finding("inside" if own == other or other.endswith(f".{own}") else "outside")


def invited(case: Case) -> Finding:
    """Tell how many are invited, the owner and the organiser among them."""
    people = {one.address for one in case.meeting.attendees} | {case.meeting.organiser, case.owner.address}
    return Finding(at_most((2, 5, 9, 15), OFFICE_FEATURES["invited"], len(people - {""})))


def part(case: Case) -> Finding:
    """Tell whether the owner is required, by ROLE (RFC 5545 3.2.16)."""
    role = next((one.role for one in case.meeting.attendees if one.address == case.owner.address), None)
    if role is None:
        return Finding("not named")
    return Finding("optional" if role in ("OPT-PARTICIPANT", "NON-PARTICIPANT") else "required")


def series(case: Case) -> Finding:
    """Tell whether it repeats, or is an occurrence of what does."""
    return Finding("yes" if case.meeting.repeats or case.meeting.recurrence_id else "no")


def acquaintance(case: Case) -> Finding:
    """Tell how often the owner and the organiser met lately, by the calendar as it stood."""
    other = case.meeting.organiser
    if not other:
        return Finding(None, "the request names no organiser")

    def tell(engagements: Sequence[Engagement]) -> str:
        shared = [one for one in engagements if met(one, other, case.when)]
        if sum(one.recurring and _is_between_two(one.meeting, other, case.owner.address) for one in shared) > 1:
            return "one-to-one"
        return at_most((0, 1, 4), OFFICE_FEATURES["acquaintance"], len(shared))

    return settle(case.standing.between(case.when - _LATELY, case.when, case.meeting), tell)


def _is_between_two(meeting: Meeting, other: str, owner: str) -> bool:
    return {one.address for one in meeting.attendees} | {meeting.organiser} <= {other, owner, ""}


def names_of(case: Case) -> dict[str, str | None]:
    """Give what a request names; None where it names nothing."""
    organiser = case.meeting.organiser
    words = [one for one in words_of(case.meeting.summary) if len(one) >= _SHORTEST_WORD and not one.isdigit()]
    return {
        "organiser": organiser or None,
        "domain": domain_of(organiser) or None,
        "title": " ".join(dict.fromkeys(words[:_MOST_WORDS])) or None,
    }
