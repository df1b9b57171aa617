from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select

from kinfolk_assistant.features.past import GIVEN_UP
from kinfolk_assistant.features.people import Contact, People
from kinfolk_assistant.features.rules import ALL_FEATURES
from kinfolk_assistant.importing.history import ARRIVAL_UNKNOWN, DATED_FEATURES, import_history
from kinfolk_assistant.importing.report import NO_ACCEPTS, NO_DECLINES, NO_INVITATIONS, ImportReport
from kinfolk_assistant.ledger.store import Ledger
from kinfolk_assistant.ledger.tables import Asking, Deed, Entry, Request
from kinfolk_assistant.ledger.users import NotYours, make_user
from kinfolk_assistant.reading.mail import MailedObject
from tests.assistant.importing.calendars import BOSS, ME, NOW, event, objects

PEOPLE = People(
    [Contact("person", BOSS, "administrator", "supervisor"), Contact("topic", "audit", importance="critical")]
)


def run(ledger: Ledger, *given: object, now: datetime = NOW) -> ImportReport:
    flat = [one for group in given for one in (group if isinstance(group, list) else [group])]
    return import_history(ledger, ME, flat, PEOPLE, now=now)


def rows(ledger: Ledger) -> dict[tuple[str, str, int], Request]:
    with ledger.read() as session:
        return {(one.uid, one.recurrence_id, one.sequence): one for one in session.scalars(select(Request))}


def test_the_users_own_partstat_is_the_label_and_what_is_neither_yes_nor_no_is_unlabelled(ledger):
    answers = {"ACCEPTED": "accept", "DECLINED": "decline", "TENTATIVE": None, "NEEDS-ACTION": None, "DELEGATED": None}
    given = [event(answer, "20260504T170000Z", answer=answer, CREATED="20260501T170000Z") for answer in answers]
    report = run(ledger, objects(*given))
    assert {uid: one.label for (uid, _, _), one in rows(ledger).items()} == answers
    assert (report.rows, report.accepts, report.declines, report.unlabelled) == (5, 1, 1, 3)
    assert {one.source for one in rows(ledger).values()} == {"history"}
    assert "open" not in {one.state for one in rows(ledger).values()}


def test_own_events_and_those_that_do_not_name_the_user_are_no_invitations_but_entries_of_the_calendar(ledger):
    mine = event("mine", "20260504T170000Z", organiser=ME)
    alone = event("alone", "20260504T180000Z", organiser="")
    others = event("others", "20260504T190000Z").replace(ME, "someone@sri.example")
    report = run(ledger, objects(mine, alone, others))
    assert (report.rows, report.entries) == (0, 3)
    assert report.warnings == (NO_INVITATIONS,)
    with ledger.read() as session:
        entries = list(session.scalars(select(Entry)))
    assert {one.uid for one in entries} == {"mine", "alone", "others"}
    assert all(one.user == ME and one.seen_at == NOW and one.gone_at is None for one in entries)


def test_features_are_those_of_the_calendar_as_it_stood_when_the_invitation_came(ledger):
    # 17:00 UTC is 10:00 in Los Angeles; what stands in the way was entered before one of the two invitations only.
    in_the_way = event("own", "20260504T170000Z", organiser="", CREATED="20260502T000000Z", SUMMARY="Audit of May")
    before = event("before", "20260504T173000Z", CREATED="20260501T170000Z", SUMMARY="Talk", PRIORITY="1")
    after = event("after", "20260504T173000Z", CREATED="20260503T170000Z", SUMMARY="The audit")
    run(ledger, objects(in_the_way, before, after))
    first, second = (rows(ledger)[uid, "", 0].features for uid in ("before", "after"))
    assert (first["conflict"], first["invitee_soon"], first["message_importance"]) == ("no", "3", "critical")
    assert (second["conflict"], second["conflict_importance"], second["invitee_soon"]) == ("yes", "critical", "1")
    assert (second["topic_importance"], second["invitee_job"], second["invitee_relation"]) == (
        "critical",
        "administrator",
        "supervisor",
    )
    assert (second["start_time"], second["duration"]) == ("morning", "60")


def test_an_invitation_came_when_it_was_created_or_else_last_stamped(ledger):
    created = event("created", "20260504T170000Z", CREATED="20260501T170000Z", DTSTAMP="20260502T170000Z")
    stamped = event("stamped", "20260504T170000Z", DTSTAMP="20260503T170000Z")
    report = run(ledger, objects(created, stamped))
    assert rows(ledger)["created", "", 0].received_at == datetime(2026, 5, 1, 17, tzinfo=UTC)
    assert rows(ledger)["stamped", "", 0].received_at == datetime(2026, 5, 3, 17, tzinfo=UTC)
    assert report.arrivals == {"created": 1, "stamp": 1}


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"DTSTAMP": "20260510T170000Z"},
        {"CREATED": "20260510T170000Z"},
        {"CREATED": "20260501T170000Z", "DTSTAMP": "20260502T170000Z", "SEQUENCE": "2"},
    ],
    ids=["says nothing", "stamped after the meeting", "created after the meeting", "a later version"],
)
def test_where_the_time_of_arrival_is_not_known_what_hangs_on_it_is_missing_and_the_rest_is_not(ledger, said):
    report = run(ledger, objects(event("1", "20260504T170000Z", **said)))
    [row] = rows(ledger).values()
    assert {name for name in ALL_FEATURES if row.features[name] is None} == set(DATED_FEATURES)
    assert set(row.unknown.values()) == {ARRIVAL_UNKNOWN}
    assert report.arrivals == {"": 1}
    assert report.unknown == {name: {ARRIVAL_UNKNOWN: 1} for name in DATED_FEATURES}


def test_a_stamp_that_an_export_put_on_several_events_is_no_evidence(ledger):
    given = [event(str(i), f"2026050{i}T170000Z", DTSTAMP="20260401T000000Z") for i in range(4, 7)]
    apart = event("apart", "20260508T170000Z", DTSTAMP="20260402T000000Z")
    assert run(ledger, objects(*given, apart)).arrivals == {"": 3, "stamp": 1}


def test_a_series_is_one_row_and_so_is_each_occurrence_that_was_answered_apart(ledger):
    series = event("s", "20260504T170000Z", CREATED="20260501T170000Z", RRULE="FREQ=WEEKLY;COUNT=5")
    declined = event(
        "s",
        "20260511T170000Z",
        answer="DECLINED",
        CREATED="20260501T170000Z",
        DTSTAMP="20260509T170000Z",
        RECURRENCE_ID="20260511T170000Z",
    )
    as_ever = event("s", "20260518T170000Z", CREATED="20260501T170000Z", RECURRENCE_ID="20260518T170000Z")
    report = run(ledger, objects(series, declined, as_ever))
    found = rows(ledger)
    assert {key: one.label for key, one in found.items()} == {
        ("s", "", 0): "accept",
        ("s", "20260511T170000Z", 0): "decline",
    }
    # CREATED is copied from the series, so that only the stamp tells of the occurrence.
    assert found["s", "20260511T170000Z", 0].received_at == datetime(2026, 5, 9, 17, tzinfo=UTC)
    assert found["s", "", 0].starts_at == datetime(2026, 5, 4, 17, tzinfo=UTC)
    assert (report.rows, report.entries) == (2, 1)
    # The occurrence is not in its own way.
    assert found["s", "20260511T170000Z", 0].features["conflict"] == "no"


def test_requests_and_replies_tell_of_exact_times_and_of_what_the_calendar_dropped(ledger):
    asked = event("1", "20260504T170000Z", answer="NEEDS-ACTION", DTSTAMP="20260430T160000Z")
    said_no = event("1", "20260504T170000Z", answer="DECLINED", DTSTAMP="20260430T180000Z")
    report = run(ledger, objects(asked, method="REQUEST"), objects(said_no, method="REPLY"))
    [row] = rows(ledger).values()
    assert (row.label, row.received_at) == ("decline", datetime(2026, 4, 30, 16, tzinfo=UTC))
    assert (report.declines, report.entries, report.arrivals) == (1, 0, {"request": 1})


def test_a_request_that_claims_to_come_from_the_future_says_nothing_of_when_it_came(ledger):
    asked = event("1", "20260504T170000Z", answer="NEEDS-ACTION", DTSTAMP="20360430T160000Z")
    assert run(ledger, objects(asked, method="REQUEST")).arrivals == {"": 1}


def test_an_accepted_invitation_that_the_calendar_no_longer_has_was_given_up_nobody_knows_when(ledger):
    asked = event("1", "20260504T170000Z", answer="NEEDS-ACTION", DTSTAMP="20260430T160000Z")
    said_yes = event("1", "20260504T170000Z", DTSTAMP="20260430T180000Z")
    later = event("later", "20260504T170000Z", CREATED="20260502T160000Z")
    run(ledger, objects(later), objects(asked, method="REQUEST"), objects(said_yes, method="REPLY"))
    row = rows(ledger)["later", "", 0]
    assert row.features["conflict"] is None
    assert row.unknown["conflict"] == GIVEN_UP


def test_a_message_that_goes_with_no_invitation_gives_nothing(ledger):
    said_no = event("1", "20260504T170000Z", answer="DECLINED", DTSTAMP="20260430T180000Z")
    to_another = event("2", "20260504T170000Z", DTSTAMP="20260430T180000Z").replace(ME, "someone@sri.example")
    off = event("3", "20260504T170000Z", DTSTAMP="20260430T180000Z")
    given = [objects(said_no, method="REPLY"), objects(to_another, method="REQUEST"), objects(off, method="CANCEL")]
    assert run(ledger, *given).rows == 0


def test_a_declined_invitation_stood_in_the_way_from_when_it_came_until_the_reply(ledger):
    asked = event("1", "20260504T170000Z", answer="NEEDS-ACTION", DTSTAMP="20260430T160000Z")
    said_no = event("1", "20260504T170000Z", answer="DECLINED", DTSTAMP="20260430T180000Z")
    meanwhile = {"before": "15", "meanwhile": "17", "after": "19"}
    # Three that do not stand in each other's way themselves, as TRANSP says.
    others = [
        event(name, "20260504T170000Z", CREATED=f"20260430T{hour}0000Z", TRANSP="TRANSPARENT")
        for name, hour in meanwhile.items()
    ]
    run(ledger, objects(*others), objects(asked, method="REQUEST"), objects(said_no, method="REPLY"))
    found = rows(ledger)
    assert {name: found[name, "", 0].features["conflict"] for name in meanwhile} == {
        "before": "no",
        "meanwhile": "yes",
        "after": "no",
    }


def test_every_version_that_was_sent_is_a_row_and_stood_where_it_was_until_the_next(ledger):
    first = event("1", "20260504T170000Z", answer="NEEDS-ACTION", DTSTAMP="20260425T160000Z")
    said_yes = event("1", "20260504T170000Z", DTSTAMP="20260425T170000Z")
    moved = event("1", "20260506T170000Z", answer="NEEDS-ACTION", DTSTAMP="20260428T160000Z", SEQUENCE="1")
    kept = event(
        "1", "20260506T170000Z", answer="DECLINED", CREATED="20260425T160000Z", DTSTAMP="20260428T180000Z", SEQUENCE="1"
    )
    between = event("between", "20260504T170000Z", CREATED="20260427T160000Z")
    too_late = event("too late", "20260504T173000Z", CREATED="20260429T160000Z", answer="DECLINED")
    run(
        ledger,
        objects(between, too_late, kept),
        objects(moved, method="REQUEST"),
        objects(first, method="REQUEST"),
        objects(said_yes, method="REPLY"),
    )
    found = rows(ledger)
    assert (found["1", "", 0].label, found["1", "", 0].state) == ("accept", "superseded")
    assert (found["1", "", 1].label, found["1", "", 1].state) == ("decline", "answered")
    assert found["1", "", 1].received_at == datetime(2026, 4, 28, 16, tzinfo=UTC)
    assert found["between", "", 0].features["conflict"] == "yes"
    # Only "between" is in its way: the moved meeting has left.
    assert found["too late", "", 0].features["conflict"] == "yes"
    assert found["1", "", 1].features["conflict"] == "no"


def test_a_cancellation_is_no_invitation_of_its_own_though_it_has_its_own_sequence(ledger):
    asked = event("1", "20260504T170000Z", answer="NEEDS-ACTION", DTSTAMP="20260425T160000Z")
    off = event("1", "20260504T170000Z", DTSTAMP="20260428T160000Z", SEQUENCE="1", STATUS="CANCELLED")
    run(ledger, objects(asked, method="REQUEST"), objects(off))
    [row] = rows(ledger).values()
    assert (row.sequence, row.label, row.state) == (0, "accept", "cancelled")


def test_the_mail_that_brought_an_invitation_tells_when_it_came(ledger):
    [asked] = objects(
        event("1", "20260504T170000Z", answer="NEEDS-ACTION", DTSTAMP="20260430T160000Z"), method="REQUEST"
    )
    came = datetime(2026, 4, 30, 16, 5, tzinfo=UTC)
    kept = objects(event("1", "20260504T170000Z", CREATED="20260430T160700Z"))
    report = run(ledger, kept, MailedObject(asked, came, BOSS, "<1@sri.example>", 5))
    [row] = rows(ledger).values()
    assert (row.received_at, row.source_ref, row.label) == (came, "<1@sri.example>", "accept")
    assert row.features["message_importance"] == "important"
    assert report.arrivals == {"mail": 1}
    # The calendar alone, imported later, knows less.
    assert run(ledger, kept).refreshed == 0
    assert rows(ledger)["1", "", 0].received_at == came


def test_importing_again_adds_nothing_and_refreshes_what_has_changed(ledger):
    def calendar(answer: str) -> list[object]:
        known = event("1", "20260504T170000Z", answer=answer, CREATED="20260501T170000Z")
        undated = event("2", "20260701T170000Z", answer="ACCEPTED")
        return [*objects(known, undated)]

    first = run(ledger, calendar("TENTATIVE"))
    before = rows(ledger)
    again = run(ledger, calendar("TENTATIVE"), now=NOW + timedelta(days=1))
    assert (first.added, first.refreshed, again.added, again.refreshed) == (2, 0, 0, 0)
    changed = run(ledger, calendar("DECLINED"), now=NOW + timedelta(days=2))
    after = rows(ledger)
    assert (changed.added, changed.refreshed, changed.rows) == (0, 1, 2)
    assert (before["1", "", 0].label, after["1", "", 0].label) == (None, "decline")
    assert {one.id for one in before.values()} == {one.id for one in after.values()}
    with ledger.read() as session:
        seen = {one.uid: one.seen_at for one in session.scalars(select(Entry))}
        assert seen == {"1": NOW + timedelta(days=2), "2": NOW}
        # The import that found nothing new left no line and asked for no training.
        assert len(list(session.scalars(select(Deed)))) == len(list(session.scalars(select(Asking)))) == 2


def test_an_invitation_that_is_neither_past_nor_answered_is_left_for_the_assistant(ledger):
    waiting = event("waiting", "20260701T170000Z", answer="NEEDS-ACTION", CREATED="20260501T170000Z")
    accepted = event("accepted", "20260701T170000Z", CREATED="20260501T170000Z")
    ignored = event("ignored", "20260504T170000Z", answer="NEEDS-ACTION", CREATED="20260501T170000Z")
    report = run(ledger, objects(waiting, accepted, ignored))
    assert {uid for uid, _, _ in rows(ledger)} == {"accepted", "ignored"}
    assert (report.rows, report.still_open, report.entries) == (2, 1, 3)


def test_what_the_assistant_has_dealt_with_itself_is_not_touched(ledger):
    with ledger.begin() as session:
        moment = datetime(2026, 5, 4, 17, tzinfo=UTC)
        session.add(
            Request(user=ME, uid="1", received_at=moment, starts_at=moment, ends_at=moment, text="", source="caldav")
        )
    report = run(ledger, objects(event("1", "20260504T170000Z", CREATED="20260501T170000Z")))
    [row] = rows(ledger).values()
    assert (row.source, row.state, row.label, row.features) == ("caldav", "open", None, None)
    assert (report.added, report.live) == (0, 1)


def test_entries_of_an_earlier_import_stand_in_the_way_of_invitations_of_a_later_one(ledger):
    run(ledger, objects(event("own", "20260504T170000Z", organiser="", CREATED="20260401T000000Z")))
    run(ledger, objects(event("1", "20260504T170000Z", CREATED="20260501T170000Z")))
    assert rows(ledger)["1", "", 0].features["conflict"] == "yes"


def test_an_import_touches_nobody_else(ledger):
    with ledger.begin() as session:
        make_user(session, "nils@sri.example", now=NOW)
    given = objects(event("1", "20260504T170000Z", CREATED="20260501T170000Z").replace(ME, "nils@sri.example"))
    import_history(ledger, "nils@sri.example", given, PEOPLE, now=NOW)
    run(ledger, objects(event("1", "20260504T170000Z", CREATED="20260501T170000Z", answer="DECLINED")))
    with ledger.read() as session:
        assert {one.user: one.label for one in session.scalars(select(Request))} == {
            "nils@sri.example": "accept",
            ME: "decline",
        }


def test_a_calendar_without_declines_or_without_accepts_is_warned_of_in_words(ledger):
    yes = event("1", "20260504T170000Z", CREATED="20260501T170000Z")
    no = event("2", "20260505T170000Z", CREATED="20260501T170000Z", answer="DECLINED")
    assert run(ledger, objects(yes)).warnings == (NO_DECLINES,)
    assert run(ledger, objects(no)).warnings == (NO_ACCEPTS,)
    both = run(ledger, objects(yes, no))
    assert both.warnings == ()
    assert "2 past invitations: 1 accepted, 1 declined, 0 without such an answer." in str(both)


def test_what_cannot_be_imported_is_refused_in_one_sentence(ledger):
    with pytest.raises(NotYours, match="There is no user"):
        import_history(ledger, "nobody@sri.example", [], PEOPLE, now=NOW)
    with pytest.raises(ValueError, match="needs a time zone"):
        import_history(ledger, ME, [], PEOPLE, now=NOW.replace(tzinfo=None))
