"""End to end against Xandikos, a real CalDAV server that schedules."""

from __future__ import annotations

import pytest
from icalendar import Calendar

from kinfolk_assistant.delivery.caldav_server import CalDAVDeliverer
from kinfolk_assistant.delivery.deliverer import NotDelivered
from tests.assistant.delivery.conftest import Office
from tests.assistant.delivery.servers import Answer


def test_an_invitation_arrives_is_answered_and_the_organiser_sees_it(office: Office) -> None:
    arrived = office.invite()
    assert arrived.text is not None
    assert Calendar.from_ical(arrived.text)["METHOD"] == "REQUEST"
    assert office.bobs_answer("ann") == "NEEDS-ACTION"

    CalDAVDeliverer(office.bob).deliver(office.answer("ACCEPTED", source_ref=arrived.href))

    assert office.bobs_answer("bob") == "ACCEPTED"
    assert office.bobs_answer("ann") == "ACCEPTED"
    assert office.bob.inbox() == []
    [reply] = office.ann.inbox()
    assert Calendar.from_ical(reply.text or "")["METHOD"] == "REPLY"


def test_a_declined_invitation_is_declined_on_the_organisers_copy(office: Office) -> None:
    arrived = office.invite()
    CalDAVDeliverer(office.bob).deliver(office.answer("DECLINED", source_ref=arrived.href))
    assert office.bobs_answer("ann") == "DECLINED"


def test_an_answer_delivered_twice_is_stored_once_and_told_once(office: Office) -> None:
    outgoing = office.answer("ACCEPTED", source_ref=office.invite().href)
    office.gate.seen.clear()
    CalDAVDeliverer(office.bob).deliver(outgoing)
    CalDAVDeliverer(office.bob).deliver(outgoing)
    assert CalDAVDeliverer.certain
    assert office.gate.count("PUT") == 1
    assert len(office.ann.inbox()) == 1


def test_a_second_answer_replaces_the_first(office: Office) -> None:
    arrived = office.invite()
    CalDAVDeliverer(office.bob).deliver(office.answer("ACCEPTED", source_ref=arrived.href))
    CalDAVDeliverer(office.bob).deliver(office.answer("DECLINED", source_ref=arrived.href))
    assert office.bobs_answer("ann") == "DECLINED"


def test_what_a_user_changes_meanwhile_is_not_overwritten(office: Office) -> None:
    arrived = office.invite()
    [stored] = office.bob.events()
    edited = stored.text.replace("END:VEVENT", "X-NOTE:bring the plan\nEND:VEVENT")
    edits = iter([lambda: office.put("bob", edited, stored.href.rpartition("/")[2])])

    def edit_before_put(method: str, path: str) -> None:
        if method == "PUT" and path == stored.href:
            for edit in edits:
                edit()

    office.gate.misbehave = edit_before_put
    CalDAVDeliverer(office.bob).deliver(office.answer("ACCEPTED", source_ref=arrived.href))
    assert "X-NOTE:bring the plan" in office.copy("bob")
    assert office.bobs_answer("ann") == "ACCEPTED"


def test_a_meeting_that_changes_each_time_is_given_up_after_the_second(office: Office) -> None:
    arrived = office.invite()
    office.gate.misbehave = lambda method, path: Answer(412) if method == "PUT" else None
    office.gate.seen.clear()
    with pytest.raises(NotDelivered, match="has the meeting changed whenever"):
        CalDAVDeliverer(office.bob).deliver(office.answer("ACCEPTED", source_ref=arrived.href))
    assert office.gate.count("PUT") == 2
    assert office.bobs_answer("ann") == "NEEDS-ACTION"
    assert len(office.bob.inbox()) == 1


def test_the_inbox_is_cleared_only_after_the_answer_is_stored(office: Office) -> None:
    arrived = office.invite()
    office.gate.seen.clear()
    CalDAVDeliverer(office.bob).deliver(office.answer("ACCEPTED", source_ref=arrived.href))
    methods = [method for method, _ in office.gate.seen]
    assert methods.index("PUT") < methods.index("DELETE")
    assert ("DELETE", arrived.href) in office.gate.seen


def test_an_answer_is_out_even_where_the_inbox_cannot_be_cleared(office: Office) -> None:
    arrived = office.invite()
    office.gate.misbehave = lambda method, path: Answer(500) if method == "DELETE" else None
    CalDAVDeliverer(office.bob).deliver(office.answer("ACCEPTED", source_ref=arrived.href))
    assert office.bobs_answer("ann") == "ACCEPTED"


def test_a_server_that_says_stored_but_keeps_nothing_is_found_out(office: Office) -> None:
    arrived = office.invite()
    office.gate.misbehave = lambda method, path: Answer(204) if method == "PUT" else None
    with pytest.raises(NotDelivered, match="did not keep the answer"):
        CalDAVDeliverer(office.bob).deliver(office.answer("ACCEPTED", source_ref=arrived.href))


def test_a_cancelled_meeting_is_not_answered(office: Office) -> None:
    arrived = office.invite()
    [stored] = office.ann.events()
    with office.ann.connect() as server:
        server.delete(stored.href)
    with pytest.raises(NotDelivered, match="cancelled"):
        CalDAVDeliverer(office.bob).deliver(office.answer("ACCEPTED", source_ref=arrived.href))
    assert office.bobs_answer("bob") == "NEEDS-ACTION"


def test_a_meeting_that_was_changed_since_is_not_answered_for_the_old_one(office: Office) -> None:
    arrived = office.invite()
    office.put("ann", office.meeting(sequence=1).replace("T080000Z\r\nDTEND", "T083000Z\r\nDTEND"))
    with pytest.raises(NotDelivered, match="asks anew"):
        CalDAVDeliverer(office.bob).deliver(office.answer("ACCEPTED", source_ref=arrived.href))


def test_a_meeting_that_the_server_put_into_no_calendar_is_put_there_and_answered(office: Office) -> None:
    arrived = office.invite()
    [stored] = office.bob.events()
    with office.bob.connect() as server:
        server.delete(stored.href)
    CalDAVDeliverer(office.bob).deliver(office.answer("ACCEPTED", source_ref=arrived.href))
    assert office.bobs_answer("bob") == "ACCEPTED"
    assert office.bobs_answer("ann") == "ACCEPTED"


def test_an_invitation_by_mail_is_kept_in_the_calendar_without_the_server_telling_anybody(office: Office) -> None:
    told = CalDAVDeliverer(office.bob).store(office.answer("ACCEPTED", source_ref="<mail-1@example.org>"))
    assert not told
    assert office.bobs_answer("bob") == "ACCEPTED"
    assert "SCHEDULE-AGENT=CLIENT" in office.copy("bob").replace("\n ", "")
    assert office.ann.inbox() == []


def test_a_meeting_declined_by_mail_does_not_enter_the_calendar(office: Office) -> None:
    assert not CalDAVDeliverer(office.bob).store(office.answer("DECLINED", source_ref="<mail-1@example.org>"))
    assert office.bob.events() == []


def test_a_meeting_that_invites_somebody_else_is_not_answered(office: Office) -> None:
    office.put("bob", office.meeting().replace(office.address("bob"), "eve@example.org"))
    with pytest.raises(NotDelivered, match="does not invite"):
        CalDAVDeliverer(office.bob).deliver(office.answer("ACCEPTED"))


def test_a_uid_that_is_part_of_others_finds_its_own_meeting(office: Office) -> None:
    for name, uid in (("a", "plan-10"), ("b", "plan-1"), ("c", "my-plan-1")):
        office.put("bob", office.meeting(uid=uid), f"{name}.ics")
    assert CalDAVDeliverer(office.bob).store(office.answer("ACCEPTED"))
    answered = [stored.href[-5:] for stored in office.bob.events() if "PARTSTAT=NEEDS-ACTION" not in stored.text]
    assert answered == ["b.ics"]


def test_a_known_message_is_not_read_again(office: Office) -> None:
    arrived = office.invite()
    office.gate.seen.clear()
    [again] = office.bob.inbox({arrived.href: arrived.etag})
    assert again.text is None
    assert again.etag == arrived.etag
    assert office.gate.count("GET") == 0


def test_the_server_knows_whose_inbox_it_is(office: Office) -> None:
    assert office.bob.addresses() == [office.address("bob")]


def test_only_messages_of_the_inbox_are_removed(office: Office) -> None:
    arrived = office.invite()
    [stored] = office.bob.events()
    inbox = arrived.href.rpartition("/")[0]
    for href in (stored.href, f"{inbox}/../calendars/calendar/", f"{inbox}/", "http://elsewhere.example/"):
        with pytest.raises(ValueError, match="not in the scheduling inbox"):
            office.bob.remove(href)
    office.bob.remove(arrived.href)
    assert office.bob.inbox() == []
    assert len(office.bob.events()) == 1


def test_names_with_letters_that_paths_must_quote_are_found_again(office: Office) -> None:
    office.put("bob", office.meeting(), "50%25%20plän%20#1.ics".replace("#", "%23").replace("ä", "%C3%A4"))
    [stored] = office.bob.events()
    assert stored.href.endswith("/50% plän #1.ics")
    assert stored.text.startswith("BEGIN:VCALENDAR")
    with office.bob.connect() as server:
        content = server.get(stored.href)
    assert content is not None
    assert content.etag == stored.etag


def _series(office: Office, *, changed: bool) -> str:
    """Three days of a meeting, of which Ann may have moved the second by an hour."""
    series = office.meeting(more=("RRULE:FREQ=DAILY;COUNT=3",))
    if not changed:
        return series
    moved = office.meeting(more=("RECURRENCE-ID:20260703T080000Z",))
    moved = moved.replace("DTSTART:20260702T08", "DTSTART:20260703T09").replace(
        "DTEND:20260702T09", "DTEND:20260703T10"
    )
    event = moved[moved.index("BEGIN:VEVENT") : moved.index("END:VCALENDAR")]
    return series.replace("END:VCALENDAR", f"{event}END:VCALENDAR")


def test_an_occurrence_that_the_organiser_has_moved_is_answered_by_itself(office: Office) -> None:
    arrived = office.invite_with(_series(office, changed=True))
    sent = office.answer("ACCEPTED", source_ref=arrived.href, request=arrived.text)
    CalDAVDeliverer(office.bob).deliver(sent._replace(recurrence_id="20260703T080000Z"))
    answers = {
        "RECURRENCE-ID" in event: one.params["PARTSTAT"]
        for event in Calendar.from_ical(office.copy("bob")).events
        for one in event["ATTENDEE"]
        if str(one) == f"mailto:{office.address('bob')}"
    }
    assert answers == {False: "NEEDS-ACTION", True: "ACCEPTED"}


def test_where_the_server_lets_nobody_single_out_an_occurrence_its_rule_is_named(office: Office) -> None:
    arrived = office.invite_with(_series(office, changed=False))
    sent = office.answer("ACCEPTED", source_ref=arrived.href, request=arrived.text)
    with pytest.raises(NotDelivered, match=r"refused to store this \(attendee-allowed\)\.$"):
        CalDAVDeliverer(office.bob).deliver(sent._replace(recurrence_id="20260703T080000Z"))
    assert "RECURRENCE-ID" not in office.copy("bob")


def test_a_meeting_that_was_moved_after_it_was_accepted_is_accepted_anew(office: Office) -> None:
    CalDAVDeliverer(office.bob).deliver(office.answer("ACCEPTED", source_ref=office.invite().href))
    moved = office.meeting(sequence=1).replace("T080000Z\r\nDTEND", "T083000Z\r\nDTEND")
    arrived = office.invite_with(moved)
    assert office.bobs_answer("bob") == "ACCEPTED"
    assert office.bobs_answer("ann") == "NEEDS-ACTION"
    sent = office.answer("ACCEPTED", source_ref=arrived.href, request=arrived.text)._replace(
        message_id="<8@example.org>"
    )
    office.gate.misbehave = lambda method, path: Answer(500) if method == "DELETE" else None
    CalDAVDeliverer(office.bob).deliver(sent)
    assert office.bobs_answer("ann") == "ACCEPTED"
    told = len(office.ann.inbox())
    CalDAVDeliverer(office.bob).deliver(sent)
    assert len(office.ann.inbox()) == told


def test_nothing_is_changed_on_a_server_that_tells_no_versions(office: Office) -> None:
    arrived = office.invite()
    [stored] = office.bob.events()
    unversioned = Answer(200, stored.text.encode(), "text/calendar")
    office.gate.misbehave = lambda method, path: unversioned if (method, path) == ("GET", stored.href) else None
    office.gate.seen.clear()
    with pytest.raises(NotDelivered, match="no etags"):
        CalDAVDeliverer(office.bob).deliver(office.answer("ACCEPTED", source_ref=arrived.href))
    assert office.gate.count("PUT") == 0
