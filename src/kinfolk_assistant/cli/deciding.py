"""``kinfolk assistant decide``: what the assistant would do with one invitation, without a server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kinfolk_assistant.cli.options import LedgerFile, PeopleFile, User, need_extra

if TYPE_CHECKING:
    from datetime import datetime
    from zoneinfo import ZoneInfo

    from kinfolk_assistant.cli.reading import Received
    from kinfolk_assistant.features.past import Past
    from kinfolk_assistant.features.people import People
    from kinfolk_assistant.learning.costs import Costs
    from kinfolk_assistant.learning.model import TeamModel
    from kinfolk_assistant.meeting import CalendarObject, Meeting

EXAMPLE = """\b
Example:
  kinfolk assistant decide invitation.ics --user ann@example.org --calendar calendar.ics
  kinfolk assistant decide invitation.eml --user ann@example.org --ledger team.db --json

Costs are relative to each other; with --ask 0.1 it asks unless it is 90 % sure."""


def decide(
    invitation: Annotated[Path, typer.Argument(metavar="FILE.ics", help="An invitation: a calendar file or a mail.")],
    user: User,
    calendar: Annotated[
        Path | None, typer.Option("--calendar", metavar="CAL.ics", help="The user's calendar; without it, free.")
    ] = None,
    people: PeopleFile = None,
    zone: Annotated[
        str | None, typer.Option(metavar="ZONE", help="The user's time zone; by default the invitation's.")
    ] = None,
    place: Annotated[
        list[str] | None, typer.Option(metavar="WORDS", help="A place that is near; may be given several times.")
    ] = None,
    false_accept: Annotated[float, typer.Option(metavar="COST", help="Cost of accepting wrongly.")] = 1.0,
    false_decline: Annotated[float, typer.Option(metavar="COST", help="Cost of declining wrongly.")] = 1.0,
    ask: Annotated[float, typer.Option(metavar="COST", help="Cost of asking the user.")] = 0.1,
    ledger: LedgerFile = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write one JSON document.")] = False,
) -> None:
    """Decide about one invitation: accept, decline or ask, with the probability, the features and the reasons.

    Needs no server and no ledger. What was learnt comes from a ledger where one is named; with nothing learnt, the
    decision is to ask. The calendar counts as it stood when the invitation came.
    """
    need_extra()
    from datetime import UTC, datetime

    from kinfolk.cli.tables import json_text
    from kinfolk_assistant.cli.reading import read_messages
    from kinfolk_assistant.features.past import Past, SeenObject
    from kinfolk_assistant.features.people import People
    from kinfolk_assistant.learning.costs import Costs
    from kinfolk_assistant.ledger.users import known_zone, mail_address

    address = mail_address(user)
    costs = Costs(false_accept, false_decline, ask)
    costs.loss()
    messages = read_messages(invitation)
    now = datetime.now(UTC)
    clock = known_zone(zone) if zone else _zone_of(messages)
    kept = [] if calendar is None else _calendar(calendar)
    past = None if calendar is None else Past([SeenObject(one) for one in kept], address, clock)
    known = People() if people is None else People.read(people)
    model, too_few = (None, False) if ledger is None else _model(ledger, address)
    found = [
        _judged(message, meeting, address, clock, tuple(place or ()), past, known, model, costs, now)
        for message in messages
        for meeting in message.object.meetings
    ]
    if too_few:
        found = [_without_kin(one) for one in found]
    if as_json:
        typer.echo(json_text({"user": address, "requests": found}), nl=False)
    else:
        typer.echo("\n\n".join(_in_words(one) for one in found))


def _calendar(path: Path) -> list[CalendarObject]:
    from kinfolk_assistant.reading.bounds import WHOLE_CALENDAR
    from kinfolk_assistant.reading.calendars import read_calendar

    if path.stat().st_size > WHOLE_CALENDAR.size:
        raise ValueError(f"{path} has {path.stat().st_size:,} bytes; at most {WHOLE_CALENDAR.size:,} are read")
    return read_calendar(path.read_bytes(), path.name, bounds=WHOLE_CALENDAR)


def _zone_of(messages: list[Received]) -> ZoneInfo:
    """The zone in which the first meeting with one is given, be it one that the invitation describes; else UTC."""
    from zoneinfo import ZoneInfo

    starts = [meeting.start for message in messages for meeting in message.object.meetings]
    zones = (getattr(start, "tzinfo", None) for start in starts)
    return next((zone for zone in zones if isinstance(zone, ZoneInfo)), ZoneInfo("UTC"))


def _model(path: Path, address: str) -> tuple[TeamModel | None, bool]:
    """Give what was learnt, and whether it comes from too few to be told of."""
    from kinfolk_assistant.cli.options import open_ledger
    from kinfolk_assistant.service.kin import too_few_kin
    from kinfolk_assistant.service.models import Models

    with open_ledger(None, path, new=False) as book, book.read() as session:
        model = Models().of(session, address).model
        return model, too_few_kin(session, model, address)


def _without_kin(found: dict[str, Any]) -> dict[str, Any]:
    """Leave out what would tell how one of a few others answers."""
    from kinfolk_assistant.service.kin import LEAST

    if not found.get("kin") and not found.get("reasons"):
        return found
    why = f"reasons and names are not shown while fewer than {LEAST} other people have agreed to help"
    return found | {"reasons": [], "kin": [], "not_shown": why}


def _judged(
    message: Received,
    meeting: Meeting,
    address: str,
    zone: ZoneInfo,
    places: tuple[str, ...],
    past: Past | None,
    people: People,
    model: TeamModel | None,
    costs: Costs,
    now: datetime,
) -> dict[str, Any]:
    from kinfolk_assistant.features.case import Owner
    from kinfolk_assistant.features.past import Past
    from kinfolk_assistant.features.row import feature_row, without_calendar
    from kinfolk_assistant.learning.judging import judge

    start, end = meeting.span(zone)
    about: dict[str, Any] = {
        "uid": meeting.uid,
        "recurrence_id": meeting.recurrence_id or None,
        "summary": meeting.summary,
        "organiser": meeting.organiser or None,
        "start": start.astimezone(zone).isoformat(),
        "end": end.astimezone(zone).isoformat(),
        "invited": bool(meeting.answer_of(address)),
    }
    if meeting.cancelled:
        return about | {"decision": "none", "why": "the organiser has cancelled it"}
    if message.object.method not in ("REQUEST", "PUBLISH", ""):
        return about | {"decision": "none", "why": f"it is a {message.object.method}, not an invitation"}
    # The clock of the sender may be ahead of ours.
    came = min(message.received or meeting.stamp or now, now)
    row = feature_row(meeting, Owner(address, zone, places), past or Past([], address, zone), people, came)
    if past is None:
        row = without_calendar(row, "no calendar was given, so it is not known what stands in it")
    judgement = judge(model, row.values, address, costs)
    return about | {
        "received": came.isoformat(),
        "decision": judgement.action,
        "probability_of_accepting": judgement.probability,
        "expected_losses": judgement.expected_losses,
        "features": row.values,
        "unknown": row.unknown,
        "reasons": [one._asdict() for one in judgement.reasons],
        "kin": [one._asdict() for one in judgement.kin],
    }


def _in_words(found: dict[str, Any]) -> str:
    from kinfolk.cli.tables import text_table

    asked = f"{found['summary'] or 'A meeting'}, from {found['organiser'] or 'an unknown organiser'}, {found['start']}"
    lines = [asked]
    if not found["invited"]:
        lines.append("Note: the user is not among those invited.")
    if found["decision"] == "none":
        return "\n".join([*lines, f"Nothing to answer: {found['why']}."])
    probability = found["probability_of_accepting"]
    if probability is None:
        lines.append("Decision: ask. Nothing is learnt yet about how this user answers.")
    else:
        losses = ", ".join(f"{action} {loss:.3f}" for action, loss in found["expected_losses"].items())
        lines.append(f"Decision: {found['decision']}. The user would accept with probability {probability:.2f}.")
        lines.append(f"Expected losses: {losses}.")
    if found.get("not_shown"):
        lines.append(f"Note: {found['not_shown']}.")
    if found["reasons"]:
        weighed = [
            f"{one['feature']} = {one['value']} ({one['log_ratio']:+.2f} {_towards(one['log_ratio'])})"
            for one in found["reasons"]
        ]
        lines.append(f"What weighed most (log ratios): {'; '.join(weighed)}.")
    if found["kin"]:
        lines.append("Whose answers helped: " + ", ".join(one["user"] for one in found["kin"]) + ".")
    rows = [
        [name, "unknown" if value is None else value, found["unknown"].get(name, "")]
        for name, value in found["features"].items()
    ]
    return "\n".join([*lines, text_table(["feature", "value", "why it is not known"], rows).rstrip("\n")])


def _towards(log_ratio: float) -> str:
    return "for accepting" if log_ratio > 0 else "against"
