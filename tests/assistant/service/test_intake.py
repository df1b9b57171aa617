from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import func, select

from kinfolk_assistant.ledger.store import Ledger
from kinfolk_assistant.ledger.tables import Cancellation, Deed, Reply, Request
from kinfolk_assistant.meeting import CalendarObject
from kinfolk_assistant.reading.calendars import read_calendar
from kinfolk_assistant.service.assistant import Assistant
from kinfolk_assistant.service.intake import MAX_MEETINGS, MAX_UID
from tests.assistant.service.world import ANN, BOB, BOSS, MONDAY, Clock, Recorder, automate, invitation, teach

LATER = MONDAY + timedelta(hours=1)


def take(assistant: Assistant, *objects: CalendarObject, user: str = ANN) -> list[int]:
    return assistant.take_in(user, objects, received_at=assistant.clock(), source="caldav", source_ref="<1@x>")


def states(ledger: Ledger) -> list[tuple[int, str]]:
    with ledger.read() as session:
        query = select(Request.sequence, Request.state).where(Request.source != "history")
        return [tuple(row) for row in session.execute(query.order_by(Request.sequence))]


def test_the_same_message_twice_is_one_request(assistant: Assistant, ledger: Ledger) -> None:
    assert take(assistant, invitation()) == take(assistant, invitation())
    assert states(ledger) == [(0, "open")]


def test_one_message_to_two_users_is_a_request_of_each(assistant: Assistant, ledger: Ledger) -> None:
    [one], [other] = take(assistant, invitation()), take(assistant, invitation(), user=BOB)
    assert one != other


def test_a_higher_sequence_supersedes_and_withdraws_the_prepared_answer(
    assistant: Assistant, ledger: Ledger, recorder: Recorder, clock: Clock
) -> None:
    teach(ledger, ANN)
    automate(assistant)
    take(assistant, invitation())
    assistant.work()
    take(assistant, invitation(sequence=1, start=MONDAY + timedelta(days=3)))
    assert states(ledger) == [(0, "superseded"), (1, "open")]
    with ledger.read() as session:
        assert session.scalars(select(Reply.state)).all() == ["withdrawn"]
    assistant.work()
    clock.pass_(minutes=11)
    assistant.work()
    assert [(one.uid, "SEQUENCE:1" in one.text) for one in recorder.sent] == [("m1", True)]


def test_an_update_that_is_overtaken_by_its_successor_needs_no_answer(assistant: Assistant, ledger: Ledger) -> None:
    take(assistant, invitation(sequence=2))
    take(assistant, invitation(sequence=1))
    assert states(ledger) == [(1, "superseded"), (2, "open")]


def test_a_later_stamp_of_the_same_sequence_refreshes_the_text_and_asks_for_no_new_answer(
    assistant: Assistant, ledger: Ledger, recorder: Recorder
) -> None:
    [one] = take(assistant, invitation())
    assistant.answer(ANN, one, "accept")
    assistant.work()
    assert take(assistant, invitation(stamp=LATER, summary="Better plans")) == [one]
    assistant.work()
    shown = assistant.request(ANN, one)
    assert (shown.summary, shown.state) == ("Better plans", "answered")
    assert "Better plans" in assistant.request_text(ANN, one)
    assert recorder.answers() == [("m1", "ACCEPTED")]


def test_a_meeting_that_is_moved_without_a_new_sequence_is_put_before_the_user_and_the_prepared_answer_withdrawn(
    assistant: Assistant, ledger: Ledger, recorder: Recorder, clock: Clock
) -> None:
    teach(ledger, ANN)
    automate(assistant)
    [one] = take(assistant, invitation())
    assistant.work()
    assert assistant.request(ANN, one).state == "answered"
    take(assistant, invitation(stamp=LATER, start=MONDAY + timedelta(days=4)))
    clock.pass_(hours=2)
    assistant.work()
    shown = assistant.request(ANN, one)
    assert recorder.sent == []
    assert (shown.state, shown.action, shown.starts_at) == ("open", "ask", MONDAY + timedelta(days=4))


def test_an_earlier_stamp_of_the_same_sequence_changes_nothing(assistant: Assistant) -> None:
    [one] = take(assistant, invitation(stamp=LATER, summary="New"))
    take(assistant, invitation(summary="Old"))
    assert assistant.request(ANN, one).summary == "New"


def test_a_cancel_ends_the_request(assistant: Assistant, ledger: Ledger) -> None:
    take(assistant, invitation())
    take(assistant, invitation(method="CANCEL", sequence=1))
    assert states(ledger) == [(0, "cancelled")]
    assert assistant.inbox(ANN) == []


def test_a_cancel_of_the_same_sequence_ends_the_request_too(assistant: Assistant, ledger: Ledger) -> None:
    take(assistant, invitation())
    take(assistant, invitation(method="CANCEL"))
    assert states(ledger) == [(0, "cancelled")]


def test_a_cancel_that_comes_before_its_request_is_remembered(assistant: Assistant, ledger: Ledger) -> None:
    assert take(assistant, invitation(method="CANCEL", sequence=1)) == []
    take(assistant, invitation())
    assert states(ledger) == [(0, "cancelled")]
    assert assistant.work() == 0


def test_a_cancel_that_was_overtaken_by_a_later_version_does_not_end_it(assistant: Assistant, ledger: Ledger) -> None:
    take(assistant, invitation(sequence=2))
    take(assistant, invitation(method="CANCEL", sequence=1))
    assert states(ledger) == [(2, "open")]


def test_a_version_later_than_the_cancel_is_open_whichever_comes_first(assistant: Assistant, ledger: Ledger) -> None:
    take(assistant, invitation(method="CANCEL", sequence=1))
    take(assistant, invitation(sequence=2))
    assert states(ledger) == [(2, "open")]


def test_inviting_again_with_the_same_sequence_and_a_later_stamp_reopens(assistant: Assistant, ledger: Ledger) -> None:
    take(assistant, invitation())
    take(assistant, invitation(method="CANCEL"))
    take(assistant, invitation(stamp=LATER))
    assert states(ledger) == [(0, "open")]


def test_a_request_reopened_after_the_assistant_answered_it_is_left_to_the_user(
    assistant: Assistant, ledger: Ledger, recorder: Recorder, clock: Clock
) -> None:
    teach(ledger, ANN)
    automate(assistant, undo_minutes=0)
    [one] = take(assistant, invitation())
    assistant.work()
    take(assistant, invitation(method="CANCEL"))
    take(assistant, invitation(stamp=LATER))
    clock.pass_(hours=1)
    assistant.work()
    assert recorder.answers() == [("m1", "ACCEPTED")]
    assert assistant.request(ANN, one).state == "open"


def test_a_message_cancelled_by_its_status_is_cancelled(assistant: Assistant, ledger: Ledger) -> None:
    take(assistant, invitation())
    take(assistant, invitation(stamp=LATER, extra=("STATUS:CANCELLED",)))
    assert states(ledger) == [(0, "cancelled")]


def test_somebody_else_can_neither_move_nor_cancel_a_meeting(assistant: Assistant, ledger: Ledger) -> None:
    take(assistant, invitation())
    take(assistant, invitation(method="CANCEL", sequence=9, organiser="mallory@example.org"))
    assert take(assistant, invitation(sequence=9, organiser="mallory@example.org")) == []
    assert states(ledger) == [(0, "open")]
    with ledger.read() as session:
        assert session.scalar(select(func.count()).where(Deed.kind == "ignored")) == 1


@pytest.mark.parametrize("method", ["CANCEL", "REQUEST"])
def test_a_mail_that_only_claims_to_be_the_organisers_is_put_before_the_user(
    assistant: Assistant, ledger: Ledger, recorder: Recorder, clock: Clock, method: str
) -> None:
    teach(ledger, ANN)
    automate(assistant)
    about = {"received_at": clock(), "source": "mail", "source_ref": "<1@x>"}
    # A first invitation may come from a machine that sends for its organiser.
    [first] = assistant.take_in(ANN, [invitation()], sender="no-reply@example.org", **about)
    assistant.work()
    forged = invitation(method=method, sequence=9, start=MONDAY + timedelta(days=3))
    assert assistant.take_in(ANN, [forged], sender="mallory@example.org", **about) == [first]
    assert states(ledger) == [(0, "open")]
    assert assistant.inbox(ANN)[0].action == "ask"
    clock.pass_(minutes=60)
    assistant.work()
    assert recorder.sent == []
    assistant.take_in(ANN, [forged], sender=BOSS, **about)
    assert states(ledger)[0] == (0, "cancelled" if method == "CANCEL" else "superseded")


def test_somebody_elses_cancel_that_comes_first_does_not_count(assistant: Assistant, ledger: Ledger) -> None:
    take(assistant, invitation(method="CANCEL", sequence=9, organiser="mallory@example.org"))
    take(assistant, invitation())
    assert states(ledger) == [(0, "open")]


def test_ones_own_meetings_and_other_methods_are_no_requests(assistant: Assistant, ledger: Ledger) -> None:
    assert take(assistant, invitation(organiser=ANN)) == []
    for method in ("REPLY", "PUBLISH", "COUNTER", "REFRESH", ""):
        assert take(assistant, invitation(method=method)) == []
    assert states(ledger) == []


SERIES = "RRULE:FREQ=WEEKLY;COUNT=10"
SECOND = "RECURRENCE-ID:20260311T090000Z"


def test_cancelling_a_series_cancels_its_changed_occurrences(assistant: Assistant, ledger: Ledger) -> None:
    take(assistant, invitation(extra=(SERIES,)))
    take(assistant, invitation(extra=(SECOND,), start=MONDAY + timedelta(days=9, hours=2)))
    take(assistant, invitation(method="CANCEL", sequence=1))
    assert states(ledger) == [(0, "cancelled"), (0, "cancelled")]


def test_a_later_series_lets_earlier_changes_of_its_occurrences_rest(assistant: Assistant, ledger: Ledger) -> None:
    take(assistant, invitation(extra=(SERIES,)))
    take(assistant, invitation(extra=(SECOND,), sequence=1, start=MONDAY + timedelta(days=9, hours=2)))
    take(assistant, invitation(extra=(SERIES,), sequence=2, start=MONDAY + timedelta(days=2, hours=3)))
    assert states(ledger) == [(0, "superseded"), (1, "superseded"), (2, "open")]


def test_cancelling_one_occurrence_leaves_the_series(assistant: Assistant, ledger: Ledger) -> None:
    take(assistant, invitation(extra=(SERIES,)))
    take(assistant, invitation(method="CANCEL", sequence=1, extra=(SECOND,)))
    assert states(ledger) == [(0, "open")]
    take(assistant, invitation(extra=(SECOND,), start=MONDAY + timedelta(days=9, hours=2)))
    assert states(ledger) == [(0, "open"), (0, "cancelled")]


def test_a_cancel_twice_is_kept_once_at_its_highest_sequence(assistant: Assistant, ledger: Ledger) -> None:
    for sequence in (3, 1, 3):
        take(assistant, invitation(method="CANCEL", sequence=sequence))
    with ledger.read() as session:
        assert session.scalars(select(Cancellation.sequence)).all() == [3]


def test_what_cannot_be_kept_is_cut_or_refused_in_one_sentence(assistant: Assistant, ledger: Ledger) -> None:
    [one] = take(assistant, invitation(summary="x" * 5000, sequence=2**31 - 1))
    assert len(assistant.request(ANN, one).summary) == 1000
    with pytest.raises(ValueError, match=f"has {MAX_UID + 1} characters; at most {MAX_UID} are taken"):
        take(assistant, CalendarObject("REQUEST", (_with_uid("u" * (MAX_UID + 1)),), ""))
    many = CalendarObject("REQUEST", tuple(_with_uid("u") for _ in range(MAX_MEETINGS + 1)), "")
    with pytest.raises(ValueError, match=f"at most {MAX_MEETINGS} are taken"):
        take(assistant, many)
    assert len(states(ledger)) == 1


def _with_uid(uid: str):  # type: ignore[no-untyped-def]
    from dataclasses import replace

    return replace(invitation().meetings[0], uid=uid)


def test_characters_that_a_database_cannot_keep_are_left_out(assistant: Assistant) -> None:
    from dataclasses import replace

    strange = replace(invitation().meetings[0], summary="a\x00b\ud800c")
    [one] = take(assistant, CalendarObject("REQUEST", (strange,), "x\x00y"))
    assert assistant.request(ANN, one).summary == "ab?c"


def test_all_or_nothing_of_a_batch_is_taken_in(assistant: Assistant, ledger: Ledger) -> None:
    bad = CalendarObject("REQUEST", (_with_uid("u" * (MAX_UID + 1)),), "")
    with pytest.raises(ValueError, match="characters"):
        take(assistant, invitation(), bad)
    assert states(ledger) == []


def test_whole_days_are_those_of_the_users_zone(assistant: Assistant) -> None:
    assistant.change_settings(ANN, zone="America/New_York")
    text = invitation().text.replace("DTSTART:20260304T090000Z", "DTSTART;VALUE=DATE:20260304")
    text = text.replace("DTEND:20260304T100000Z", "DTEND;VALUE=DATE:20260305")
    [one] = take(assistant, *read_calendar(text.encode()))
    shown = assistant.request(ANN, one)
    # Midnight in New York is 5:00 UTC in winter.
    assert (shown.all_day, shown.starts_at) == (True, MONDAY.replace(day=4, hour=5))
    assert (shown.organiser, shown.organiser_name) == (BOSS, "The Boss")
