"""Fair under load: bounds, look-ups by time, users in turn, sending first."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import insert, select

from kinfolk_assistant.delivery.deliverer import Outgoing
from kinfolk_assistant.ledger.store import Ledger
from kinfolk_assistant.ledger.tables import Decision, Deed, Request
from kinfolk_assistant.reading.calendars import read_calendar
from kinfolk_assistant.reading.mail import read_mail
from kinfolk_assistant.service import intake, standing
from kinfolk_assistant.service.assistant import Assistant
from tests.assistant.service.world import ANN, BOB, MONDAY, Recorder, invitation

SLOT = MONDAY + timedelta(days=2)


def flood(ledger: Ledger, n: int, **away: float) -> None:
    """Give Ann so many open requests that are decided, all for one time."""
    start = SLOT + timedelta(**away)
    one = invitation("x", start).text
    rows = [
        {
            "user": ANN,
            "uid": f"flood-{i}",
            "received_at": MONDAY - timedelta(hours=1),
            "starts_at": start,
            "ends_at": start + timedelta(hours=1),
            "text": one.replace("UID:x", f"UID:flood-{i}"),
            "source": "caldav",
            "state": "open",
            "decided": True,
            "recurs": False,
        }
        for i in range(n)
    ]
    with ledger.begin() as session:
        session.execute(insert(Request), rows)


@pytest.mark.parametrize("away", [{"days": 90}, {}], ids=["elsewhere", "at the same time"])
def test_a_decision_reads_no_more_texts_however_many_requests_are_open(
    assistant: Assistant, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, away: dict[str, float]
) -> None:
    flood(ledger, 2000, **away)
    read = 0
    real = standing.parsed

    def counted(text: str) -> object:
        nonlocal read
        read += 1
        return real(text)

    monkeypatch.setattr(standing, "parsed", counted)
    [number] = assistant.take_in(ANN, [invitation("new", SLOT)], received_at=MONDAY, source="caldav")
    assistant.work()
    assert assistant.request(ANN, number).features["conflict"] == ("no" if away else "yes")
    # Twice: once to look ahead, once to decide.
    assert read < 2 * 3 * standing._MOST_WAITING


def test_users_have_their_turn_one_after_the_other(assistant: Assistant, ledger: Ledger) -> None:
    for n in range(6):
        one = invitation(f"a{n}", SLOT + timedelta(hours=n))
        assistant.take_in(ANN, [one], received_at=MONDAY - timedelta(hours=2), source="caldav")
    assistant.take_in(BOB, [invitation("b", attendee=BOB)], received_at=MONDAY, source="caldav")
    assistant.work()
    with ledger.read() as session:
        order = list(session.scalars(select(Request.user).join(Decision).order_by(Decision.id)))
    assert order.index(BOB) <= 1
    assert len(order) == 7


def test_what_is_due_is_sent_before_anything_is_decided(
    assistant: Assistant, ledger: Ledger, recorder: Recorder
) -> None:
    [one] = assistant.take_in(BOB, [invitation("b", attendee=BOB)], received_at=MONDAY, source="caldav")
    assistant.answer(BOB, one, "accept")
    for n in range(3):
        assistant.take_in(ANN, [invitation(f"a{n}")], received_at=MONDAY, source="caldav")
    seen = []

    def look(outgoing: Outgoing) -> None:
        with ledger.read() as session:
            seen.append(len(session.scalars(select(Decision.id)).all()))

    recorder.before = look
    assistant.work()
    assert seen == [0]


@pytest.mark.parametrize("by", ["sender", "organiser"])
def test_no_more_than_so_many_a_day_are_taken_in_from_one_sender_or_organiser(
    assistant: Assistant, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    monkeypatch.setattr(intake, "MOST_A_DAY", 3)
    for n in range(6):
        organiser = f"boss{n}@example.org" if by == "sender" else "boss@example.org"
        sender = "eve@evil.example" if by == "sender" else f"e{n}@x.example"
        head = f"From: {sender}\r\nContent-Type: text/calendar\r\n\r\n"
        [mailed] = read_mail((head + invitation(f"m{n}", organiser=organiser).text).encode())
        assistant.take_in(ANN, [mailed.object], received_at=MONDAY, source="mail", origin=mailed.origin)
    assert len(assistant.inbox(ANN)) == 3
    with ledger.read() as session:
        [told] = session.scalars(select(Deed.text).where(Deed.kind == "flood"))
    assert "More than 3 invitations came from" in told
    # The others' are taken in as ever, and so is what changes a meeting that is known.
    assistant.take_in(ANN, [invitation("other", organiser="z@z.example")], received_at=MONDAY, source="caldav")
    assert len(assistant.inbox(ANN)) == 4


def test_a_mail_with_very_many_meetings_is_refused(assistant: Assistant) -> None:
    one = invitation("x").text
    event = one[one.index("BEGIN:VEVENT") : one.index("END:VCALENDAR")]
    many = one.replace(event, "".join(event.replace("UID:x", f"UID:x{n}") for n in range(11)))
    with pytest.raises(ValueError, match="at most 10 are read"):
        read_calendar(many.encode())
