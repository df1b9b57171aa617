from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import select

from kinfolk_assistant.ledger.store import Ledger
from kinfolk_assistant.ledger.tables import Decision, Reply, Request
from kinfolk_assistant.meeting import CalendarObject
from kinfolk_assistant.reading.bounds import INVITATION, WHOLE_CALENDAR
from kinfolk_assistant.reading.calendars import read_calendar
from kinfolk_assistant.reading.mail import read_mail
from kinfolk_assistant.service import deciding
from kinfolk_assistant.service.assistant import Assistant
from kinfolk_assistant.service.calendar import Kept
from tests.assistant.service import world
from tests.assistant.service.world import ANN, BOB, MONDAY, Clock, Recorder, invitation, teach

SLOT = MONDAY + timedelta(days=2)


def take(assistant: Assistant, *objects: CalendarObject, user: str = ANN, **ago: float) -> list[int]:
    at = assistant.clock() - timedelta(**ago)
    return assistant.take_in(user, objects, received_at=at, source="caldav")


def automate(assistant: Assistant, ledger: Ledger, **settings: object) -> None:
    teach(ledger, ANN)
    world.automate(assistant, **settings)


def decided(ledger: Ledger) -> list[tuple[str, str, bool]]:
    query = select(Request.uid, Decision.action, Decision.shadow).join(Request).order_by(Decision.id)
    with ledger.read() as session:
        return [tuple(row) for row in session.execute(query)]


def test_with_nothing_learnt_everything_is_put_before_the_user(assistant: Assistant, ledger: Ledger) -> None:
    assistant.change_settings(ANN, automation=True)
    take(assistant, invitation())
    assert assistant.work() == 1
    [shown] = assistant.inbox(ANN)
    assert (shown.action, shown.probability, shown.state) == ("ask", None, "open")


def test_in_shadow_mode_decisions_are_shown_and_nothing_is_ever_sent(
    assistant: Assistant, ledger: Ledger, recorder: Recorder, clock: Clock
) -> None:
    teach(ledger, ANN)
    take(assistant, invitation())
    assistant.work()
    clock.pass_(days=1)
    assistant.work()
    assert decided(ledger) == [("m1", "accept", True)]
    assert recorder.sent == []
    with ledger.read() as session:
        assert session.scalars(select(Reply)).all() == []


def test_turning_automation_on_does_not_answer_what_was_only_shown(
    assistant: Assistant, ledger: Ledger, recorder: Recorder, clock: Clock
) -> None:
    teach(ledger, ANN)
    take(assistant, invitation())
    assistant.work()
    assistant.change_settings(ANN, automation=True)
    teach(ledger, ANN)
    clock.pass_(hours=1)
    assistant.work()
    assert recorder.sent == []
    assert decided(ledger) == [("m1", "accept", True), ("m1", "accept", True)]


def test_of_two_for_one_slot_the_first_is_accepted_and_the_second_finds_it_taken(
    assistant: Assistant, ledger: Ledger
) -> None:
    automate(assistant, ledger)
    take(assistant, invitation("second", SLOT + timedelta(minutes=30)), minutes=1)
    take(assistant, invitation("first", SLOT), minutes=2)
    assistant.work()
    assert decided(ledger) == [("first", "accept", False), ("second", "decline", False)]
    with ledger.read() as session:
        assert session.scalars(select(Reply.state)).all() == ["prepared", "prepared"]


def test_in_shadow_mode_the_second_for_one_slot_finds_it_taken_by_the_first_that_is_not_answered(
    assistant: Assistant, ledger: Ledger
) -> None:
    teach(ledger, ANN)
    take(assistant, invitation("second", SLOT + timedelta(minutes=30)), minutes=1)
    [first] = take(assistant, invitation("first", SLOT), minutes=2)
    assistant.work()
    assert decided(ledger) == [("first", "accept", True), ("second", "decline", True)]
    assistant.answer(ANN, first, "decline")
    [third] = take(assistant, invitation("third", SLOT))
    assistant.answer(ANN, third - 2, "decline")
    assistant.work()
    assert decided(ledger)[-1] == ("third", "accept", True)


@pytest.mark.parametrize("extra", [(), ("RRULE:FREQ=WEEKLY;COUNT=4",)])
def test_an_accepted_meeting_takes_time_whatever_its_request_says_that_the_user_answered_before(
    assistant: Assistant, extra: tuple[str, ...]
) -> None:
    [first] = take(assistant, invitation("first", SLOT, sequence=1, partstat="DECLINED", extra=extra), minutes=2)
    assistant.answer(ANN, first, "accept")
    [second] = take(assistant, invitation("second", SLOT + (timedelta(days=7) if extra else timedelta())))
    assistant.work()
    assert assistant.request(ANN, second).features["conflict"] == "yes"


def test_an_entry_that_is_larger_than_an_invitation_may_be_takes_time_too(assistant: Assistant, clock: Clock) -> None:
    lines = tuple(f"X-NOTE-{i}:kept by the owner's own program" for i in range(INVITATION.work))
    text = invitation("large", SLOT, method="").text.replace("END:VEVENT", "\r\n".join([*lines, "END:VEVENT"]))
    [large] = read_calendar(text.encode(), bounds=WHOLE_CALENDAR)
    assistant.take_calendar(ANN, [Kept(large)])
    clock.pass_(minutes=1)
    [one] = take(assistant, invitation("small", SLOT))
    assistant.work()
    assert assistant.request(ANN, one).features["conflict"] == "yes"


def test_the_importance_of_a_mail_reaches_the_features(assistant: Assistant) -> None:
    head = "From: boss@example.org\r\nX-Priority: 1 (Highest)\r\nContent-Type: text/calendar\r\n\r\n"
    [mailed] = read_mail((head + invitation("urgent").text).encode())
    [one] = take(assistant, mailed.object)
    assistant.work()
    assert assistant.request(ANN, one).features["message_importance"] == "critical"


def test_a_request_that_comes_in_late_finds_what_was_accepted_before_it_was_seen(
    assistant: Assistant, ledger: Ledger
) -> None:
    automate(assistant, ledger)
    take(assistant, invitation("quick", SLOT), minutes=1)
    assistant.work()
    take(assistant, invitation("delayed", SLOT), hours=5)
    assistant.work()
    assert decided(ledger) == [("quick", "accept", False), ("delayed", "decline", False)]


def test_it_does_so_also_when_the_calendar_has_been_read_in_between(
    assistant: Assistant, ledger: Ledger, clock: Clock
) -> None:
    automate(assistant, ledger, undo_minutes=0)
    take(assistant, invitation("quick", SLOT), minutes=1)
    assistant.work()
    clock.pass_(minutes=5)
    stored = invitation("quick", SLOT, method="", partstat="ACCEPTED", stamp=clock())
    assistant.take_calendar(ANN, [Kept(stored)])
    take(assistant, invitation("delayed", SLOT), hours=5)
    assistant.work()
    assert decided(ledger)[-1] == ("delayed", "decline", False)


def test_an_accepted_meeting_that_is_cancelled_or_moved_frees_its_time(assistant: Assistant, ledger: Ledger) -> None:
    automate(assistant, ledger)
    take(assistant, invitation("cancelled", SLOT), invitation("moved", SLOT + timedelta(hours=2)))
    assistant.work()
    take(assistant, invitation("cancelled", SLOT, method="CANCEL", sequence=1))
    take(assistant, invitation("moved", SLOT + timedelta(days=1), sequence=1))
    take(assistant, invitation("a", SLOT), invitation("b", SLOT + timedelta(hours=2)))
    assistant.work()
    assert {(uid, action) for uid, action, _ in decided(ledger)[-2:]} == {("a", "accept"), ("b", "accept")}


def test_an_update_is_not_in_conflict_with_its_own_earlier_version(assistant: Assistant, ledger: Ledger) -> None:
    automate(assistant, ledger)
    take(assistant, invitation("m", SLOT))
    assistant.work()
    take(assistant, invitation("m", SLOT + timedelta(minutes=30), sequence=1))
    assistant.work()
    assert decided(ledger)[-1] == ("m", "accept", False)


def test_a_declined_meeting_does_not_take_time_though_the_calendar_still_has_it(
    assistant: Assistant, ledger: Ledger, clock: Clock
) -> None:
    teach(ledger, ANN)
    [one] = take(assistant, invitation("unwanted", SLOT))
    assistant.take_calendar(ANN, [Kept(invitation("unwanted", SLOT, method=""))])
    clock.pass_(minutes=1)
    assistant.answer(ANN, one, "decline")
    clock.pass_(minutes=1)
    take(assistant, invitation("other", SLOT))
    assistant.work()
    assert decided(ledger)[-1][:2] == ("other", "accept")


def test_an_entry_of_the_calendar_takes_time_until_it_is_gone(
    assistant: Assistant, ledger: Ledger, clock: Clock
) -> None:
    teach(ledger, ANN)
    entry = Kept(invitation("own", SLOT, method="", organiser=ANN, stamp=MONDAY - timedelta(days=1)))
    assert assistant.take_calendar(ANN, [entry]) == 1
    assert assistant.take_calendar(ANN, [entry]) == 0
    clock.pass_(minutes=1)
    [first] = take(assistant, invitation("a", SLOT))
    assistant.work()
    assistant.answer(ANN, first, "decline")
    assert assistant.take_calendar(ANN, []) == 1
    clock.pass_(minutes=1)
    take(assistant, invitation("b", SLOT))
    assistant.work()
    assert [(uid, action) for uid, action, _ in decided(ledger)] == [("a", "decline"), ("b", "accept")]


def test_an_occurrence_that_is_called_off_frees_its_time_in_an_accepted_series(
    assistant: Assistant, ledger: Ledger
) -> None:
    automate(assistant, ledger)
    take(assistant, invitation("series", SLOT, extra=("RRULE:FREQ=WEEKLY;COUNT=5",)))
    assistant.work()
    second = SLOT + timedelta(days=7)
    rid = (f"RECURRENCE-ID:{second:%Y%m%dT%H%M%SZ}",)
    take(assistant, invitation("series", second, method="CANCEL", sequence=1, extra=rid))
    take(assistant, invitation("free", second), invitation("taken", second + timedelta(days=7)))
    assistant.work()
    assert {(uid, action) for uid, action, _ in decided(ledger)[-2:]} == {("free", "accept"), ("taken", "decline")}


def test_an_occurrence_that_is_moved_takes_its_new_time_and_not_its_old(assistant: Assistant, ledger: Ledger) -> None:
    automate(assistant, ledger)
    take(assistant, invitation("series", SLOT, extra=("RRULE:FREQ=WEEKLY;COUNT=5",)))
    second = SLOT + timedelta(days=7)
    rid = (f"RECURRENCE-ID:{second:%Y%m%dT%H%M%SZ}",)
    take(assistant, invitation("series", second + timedelta(hours=5), sequence=1, extra=rid))
    assistant.work()
    take(assistant, invitation("old", second), invitation("new", second + timedelta(hours=5)))
    assistant.work()
    assert {(uid, action) for uid, action, _ in decided(ledger)[-2:]} == {("old", "accept"), ("new", "decline")}


def test_no_more_answers_than_the_daily_cap_are_given_in_a_day_of_the_users_zone(
    assistant: Assistant, ledger: Ledger, clock: Clock
) -> None:
    automate(assistant, ledger, daily_cap=2, zone="America/New_York", vetoes="")
    # 4:30 UTC is half past eleven in the evening in New York, in winter.
    clock.at = MONDAY.replace(hour=4, minute=30)
    take(assistant, *(invitation(f"m{n}", SLOT + timedelta(hours=2 * n)) for n in range(3)))
    assistant.work()
    assert [shadow for _, _, shadow in decided(ledger)] == [False, False, True]
    # Another day in UTC but not in New York, then past midnight there.
    for uid, at, shadow in (("late", timedelta(minutes=20), True), ("next", timedelta(minutes=31), False)):
        clock.at = MONDAY.replace(hour=4, minute=30) + at
        take(assistant, invitation(uid, SLOT + timedelta(days=at.seconds // 600)))
        assistant.work()
        assert decided(ledger)[-1] == (uid, "accept", shadow)


def test_an_answer_taken_back_counts_under_the_cap(assistant: Assistant, ledger: Ledger) -> None:
    automate(assistant, ledger, daily_cap=1)
    [one] = take(assistant, invitation("a"))
    assistant.work()
    assistant.undo(ANN, one)
    take(assistant, invitation("b", SLOT + timedelta(days=1)))
    assistant.work()
    assert decided(ledger)[-1] == ("b", "accept", True)


def test_nothing_is_answered_for_a_meeting_that_has_begun_or_for_somebody_not_invited_by_name(
    assistant: Assistant, ledger: Ledger, recorder: Recorder, clock: Clock
) -> None:
    automate(assistant, ledger, undo_minutes=0)
    take(assistant, invitation("begun", MONDAY - timedelta(minutes=10)))
    take(assistant, invitation("list", attendee="everybody@example.org"))
    assistant.work()
    assert [shadow for _, _, shadow in decided(ledger)] == [True, True]
    assert recorder.sent == []


def test_new_costs_change_the_proposals_for_open_requests_at_once(assistant: Assistant, ledger: Ledger) -> None:
    teach(ledger, ANN)
    [one] = take(assistant, invitation())
    assistant.work()
    before = assistant.request(ANN, one)
    assistant.change_settings(ANN, cost_ask=0.0, cost_false_accept=5.0)
    after = assistant.request(ANN, one)
    assert (before.action, after.action) == ("accept", "ask")
    assert before.probability == after.probability
    # Table 3.1: accepting costs the false accept times the probability that the user would decline.
    assert after.expected_losses["accept"] == pytest.approx(5.0 * (1 - after.probability))
    assert after.reasons == before.reasons


def test_a_new_model_judges_open_requests_anew_and_leaves_answered_ones(assistant: Assistant, ledger: Ledger) -> None:
    first = teach(ledger, ANN)
    [one, two] = take(assistant, invitation("a"), invitation("b", SLOT + timedelta(days=1)))
    assistant.work()
    assistant.answer(ANN, one, "accept")
    second = teach(ledger, ANN)
    assert assistant.work() == 2  # one is judged anew, one answer is sent
    assert assistant.work() == 0
    with ledger.read() as session:
        query = select(Decision.request_id, Decision.model_id).order_by(Decision.id)
        assert [tuple(row) for row in session.execute(query)] == [(one, first), (two, first), (two, second)]


def test_a_request_that_cannot_be_judged_does_not_hold_up_the_next(
    assistant: Assistant, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    teach(ledger, ANN)
    far = replace(invitation("far").meetings[0], start=MONDAY.replace(year=9500), end=MONDAY.replace(year=9501))
    take(assistant, CalendarObject("REQUEST", (far,), "not a calendar"), minutes=2)
    take(assistant, invitation("broken"), minutes=1)
    take(assistant, invitation("good", SLOT + timedelta(days=1)))
    real = deciding.feature_row

    def fails(meeting, *rest):  # type: ignore[no-untyped-def]
        if meeting.uid == "broken":
            raise RuntimeError("a fault")
        return real(meeting, *rest)

    monkeypatch.setattr(deciding, "feature_row", fails)
    assert assistant.work() == 3
    assert [(uid, action) for uid, action, _ in decided(ledger)] == [
        ("far", "ask"),
        ("broken", "ask"),
        ("good", "accept"),
    ]


def test_a_request_without_organiser_cannot_be_answered_and_is_put_before_the_user(
    assistant: Assistant, ledger: Ledger
) -> None:
    automate(assistant, ledger)
    one = invitation()
    text = "\r\n".join(line for line in one.text.splitlines() if not line.startswith("ORGANIZER")) + "\r\n"
    [number] = take(assistant, CalendarObject("REQUEST", (replace(one.meetings[0], organiser=""),), text))
    assistant.work()
    assert assistant.request(ANN, number).state == "open"


def test_each_user_is_worked_for_alone(assistant: Assistant, ledger: Ledger) -> None:
    teach(ledger, ANN, BOB)
    take(assistant, invitation("a"))
    take(assistant, invitation("b", attendee=BOB), user=BOB)
    assert assistant.work(ANN) == 1
    assert decided(ledger) == [("a", "accept", True)]
    assert assistant.work() == 1


def test_what_the_user_places_and_people_say_reaches_the_features(assistant: Assistant, ledger: Ledger) -> None:
    from kinfolk_assistant.features.people import Contact

    assistant.change_settings(ANN, places="Room 1\nLibrary")
    assistant.set_contacts(ANN, [Contact("person", "boss@example.org", "faculty", "supervisor", "other")])
    [one] = take(assistant, invitation())
    assistant.work()
    features = assistant.request(ANN, one).features
    assert (features["invitee_job"], features["invitee_relation"]) == ("faculty", "supervisor")
    assert features["location"] == "local-none"
