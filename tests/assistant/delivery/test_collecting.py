"""What a visit to the server brings."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kinfolk_assistant.delivery.caldav_server import CalDAVDeliverer
from kinfolk_assistant.delivery.collecting import collect
from tests.assistant.delivery.conftest import Office
from tests.assistant.delivery.servers import Answer

NOW = datetime(2026, 7, 1, 12, tzinfo=UTC)


def test_the_first_visit_brings_the_invitation_and_the_whole_calendar(office: Office) -> None:
    arrived = office.invite()
    found = collect(office.bob, now=NOW)
    [invitation] = found.invitations
    assert invitation.object.method == "REQUEST"
    assert invitation.object.meetings[0].organiser == office.address("ann")
    assert (invitation.received_at, invitation.href) == (NOW, arrived.href)
    assert found.calendar is not None
    assert [one.object.meetings[0].uid for one in found.calendar] == ["plan-1"]
    [stored] = office.bob.events()
    assert (found.calendar[0].href, found.calendar[0].etag) == (stored.href, stored.etag)
    assert found.refused == []


def test_a_visit_after_which_nothing_has_changed_brings_nothing_and_reads_nothing(office: Office) -> None:
    office.invite()
    seen = collect(office.bob, now=NOW).seen
    office.gate.seen.clear()
    found = collect(office.bob, seen, now=NOW)
    assert (found.invitations, found.calendar, found.seen) == ([], None, seen)
    assert office.gate.count("GET") == office.gate.count("REPORT") == 0


def test_what_is_not_taken_in_comes_again(office: Office) -> None:
    office.invite()
    assert collect(office.bob, now=NOW).invitations == collect(office.bob, now=NOW).invitations != []


def test_a_cancellation_is_brought_and_what_is_gone_is_no_longer_in_the_calendar(office: Office) -> None:
    office.invite()
    seen = collect(office.bob, now=NOW).seen
    [stored] = office.ann.events()
    with office.ann.connect() as server:
        server.delete(stored.href)
    found = collect(office.bob, seen, now=NOW)
    assert [one.object.method for one in found.invitations] == ["CANCEL"]
    assert found.calendar is not None
    assert found.calendar[0].object.meetings[0].cancelled
    with office.bob.connect() as server:
        server.delete(found.calendar[0].href)
    assert collect(office.bob, found.seen, now=NOW).calendar == []


def test_replies_to_the_users_own_invitations_are_left_alone(office: Office) -> None:
    CalDAVDeliverer(office.bob).deliver(office.answer("ACCEPTED", source_ref=office.invite().href))
    assert len(office.ann.inbox()) == 1
    assert collect(office.ann, now=NOW).invitations == []


def test_one_message_that_cannot_be_read_does_not_hide_the_others(office: Office) -> None:
    office.put("ann", office.meeting(uid="bad"), "bad.ics")
    office.put("ann", office.meeting(uid="good"), "good.ics")
    bad = next(one for one in office.bob.inbox() if "UID:bad" in (one.text or ""))
    spoilt = Answer(200, b"BEGIN:VCALENDAR\r\nBEGIN:VEVENT\xff\r\n", "text/calendar")
    office.gate.misbehave = lambda method, path: spoilt if (method, path) == ("GET", bad.href) else None
    found = collect(office.bob, now=NOW)
    assert [one.object.meetings[0].uid for one in found.invitations] == ["good"]
    assert len(found.refused) == 1
    assert bad.href in found.refused[0]
    assert collect(office.bob, found.seen, now=NOW).refused == []


def test_messages_are_in_the_order_of_their_stamps_where_the_server_does_not_date_them(office: Office) -> None:
    texts = {
        "/late": office.meeting(uid="late", method="REQUEST").replace("DTSTAMP:20260701T08", "DTSTAMP:20260701T11"),
        "/early": office.meeting(uid="early", method="REQUEST"),
    }
    office.put("ann", office.meeting(uid="a"), "a.ics")
    office.put("ann", office.meeting(uid="b"), "b.ics")
    hrefs = sorted(one.href for one in office.bob.inbox())
    answers = dict(zip(hrefs, texts.values(), strict=True))
    office.gate.misbehave = lambda method, path: (
        Answer(200, answers[path].encode(), "text/calendar") if method == "GET" and path in answers else None
    )
    found = collect(office.bob, now=NOW)
    assert [one.object.meetings[0].uid for one in found.invitations] == ["early", "late"]


def test_messages_that_are_too_large_are_refused_unread(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    arrived = office.invite()
    monkeypatch.setattr("kinfolk_assistant.delivery.caldav_server.MAX_OBJECT", arrived.size - 1)
    office.gate.seen.clear()
    found = collect(office.bob, now=NOW)
    assert found.invitations == []
    assert "too large" in found.refused[0]
    assert ("GET", arrived.href) not in office.gate.seen


def test_a_flood_of_messages_is_read_in_portions(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(3):
        office.put("ann", office.meeting(uid=f"m{i}"), f"m{i}.ics")
    monkeypatch.setattr("kinfolk_assistant.delivery.caldav_server.MAX_NEW", 2)
    first = collect(office.bob, now=NOW)
    second = collect(office.bob, first.seen, now=NOW)
    assert (len(first.invitations), len(second.invitations)) == (2, 1)
    uids = {one.object.meetings[0].uid for one in (*first.invitations, *second.invitations)}
    assert uids == {"m0", "m1", "m2"}
