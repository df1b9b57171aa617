"""``decide``: one invitation, with no server and no database; what is known of it, what to do, and why."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from kinfolk.datasets.meetings import MEETING_FEATURES
from kinfolk_assistant.features.office import NAMES
from kinfolk_assistant.features.row import CALENDAR_FEATURES
from kinfolk_assistant.features.rules import ALL_FEATURES
from tests.assistant.cli.conftest import refused, worked
from tests.assistant.cli.files import ANN, calendar, engagement, event, mail
from tests.cli.conftest import Run

MEMBER = "abel@exercise.example"


@pytest.fixture(autouse=True)
def invitation(run: Run) -> None:
    """An invitation in the folder where the command runs."""
    Path("plans.ics").write_text(calendar(event()), newline="")


def decided(run: Run, *arguments: object, user: str = ANN) -> dict[str, Any]:
    """Decide, and give the one request of the JSON document."""
    document = json.loads(worked(run, "decide", *arguments, "--user", user, "--json"))
    assert document["user"] == user
    [request] = document["requests"]
    return dict(request)


def test_with_nothing_learnt_the_decision_is_to_ask(run: Run) -> None:
    found = decided(run, "plans.ics")
    assert found["decision"] == "ask"
    assert found["probability_of_accepting"] is None
    assert (found["reasons"], found["kin"], found["expected_losses"]) == ([], [], {})
    text = worked(run, "decide", "plans.ics", "--user", ANN)
    assert "About plans, from bob@example.org, 2024-03-05T14:00:00+00:00" in text
    assert "Decision: ask. Nothing is learnt yet" in text


def test_all_features_are_told_by_name_and_value(run: Run) -> None:
    Path("mine.ics").write_text(calendar(engagement(start="20231204T090000Z"), method=""), newline="")
    found = decided(run, "plans.ics", "--calendar", "mine.ics")
    assert list(found["features"]) == [*ALL_FEATURES, *NAMES]
    # A Tuesday at 14:00 for an hour, asked for four days before, from somebody unknown, at a time that is free.
    told = {name: value for name, value in found["features"].items() if value not in (None, "other")}
    assert told["start_time"] == "afternoon"
    assert told["duration"] == "60"
    assert told["invitee_soon"] == "7"
    assert told["conflict"] == "no"
    assert found["unknown"] == {"location": "the request names no place"}
    lines = worked(run, "decide", "plans.ics", "--user", ANN, "--calendar", "mine.ics").splitlines()
    for line, (name, value) in zip(lines[-len(found["features"]) :], found["features"].items(), strict=True):
        assert line.split("  ")[0] == name
        assert f" {value or 'unknown'}" in line


def test_without_a_calendar_nothing_is_said_of_it(run: Run) -> None:
    found = decided(run, "plans.ics")
    assert [found["features"][name] for name in CALENDAR_FEATURES] == [None] * len(CALENDAR_FEATURES)
    assert found["unknown"]["conflict"] == "no calendar was given, so it is not known what stands in it"


def test_nothing_is_written(run: Run) -> None:
    decided(run, "plans.ics")
    assert os.listdir() == ["plans.ics"]


def test_a_mail_tells_when_it_came_and_how_important_it_is(run: Run) -> None:
    Path("plans.eml").write_bytes(mail(calendar(event()), "Importance: high"))
    found, plain = decided(run, "plans.eml"), decided(run, "plans.ics")
    assert found["received"] == "2024-03-01T09:30:00+00:00"
    assert plain["received"] == "2024-03-01T09:00:00+00:00"
    changed = {name for name in MEETING_FEATURES if found["features"][name] != plain["features"][name]}
    assert changed == {"message_importance"}


def test_the_calendar_is_looked_at_as_it_stood_when_the_invitation_came(run: Run) -> None:
    for created, conflict in (("20240201T080000Z", "yes"), ("20240302T080000Z", "no")):
        Path("mine.ics").write_text(calendar(engagement(created=created), method=""), newline="")
        assert decided(run, "plans.ics", "--calendar", "mine.ics")["features"]["conflict"] == conflict


def test_the_people_table_says_who_asks_and_how_much_the_topic_matters(run: Run) -> None:
    Path("people.csv").write_text(
        "person,job,relation,topic,importance\nbob@example.org,faculty,peer,,\n,,,plans,critical\n"
    )
    found = decided(run, "plans.ics", "--people", "people.csv")["features"]
    assert (found["invitee_job"], found["invitee_relation"]) == ("faculty", "peer")
    assert found["topic_importance"] == "critical"


def test_zone_and_places_are_the_users(run: Run) -> None:
    Path("plans.ics").write_text(calendar(event("plans", "20240305T140000Z", "LOCATION:Hall 3")), newline="")
    Path("mine.ics").write_text(calendar(engagement(start="20231204T090000Z"), method=""), newline="")
    mine = ("--calendar", "mine.ics")
    found = decided(run, "plans.ics", "--zone", "America/Los_Angeles", "--place", "hall 3", *mine)
    assert found["start"] == "2024-03-05T06:00:00-08:00"
    assert (found["features"]["start_time"], found["features"]["location"]) == ("early", "local-none")
    assert decided(run, "plans.ics", "--place", "library", *mine)["features"]["location"] == "away-none"


def test_without_a_zone_it_is_the_invitations(run: Run) -> None:
    at_nine = event().replace("DTSTART:20240305T140000Z", "DTSTART;TZID=Asia/Tokyo:20240305T090000")
    Path("plans.ics").write_text(calendar(at_nine), newline="")
    assert decided(run, "plans.ics")["start"] == "2024-03-05T09:00:00+09:00"


def test_of_fewer_than_five_who_agreed_neither_names_nor_reasons_are_told(run: Run, team: Path) -> None:
    Path("plans.ics").write_text(calendar(event(attendee=MEMBER)), newline="")
    found = decided(run, "plans.ics", "--ledger", team, user=MEMBER)
    assert 0.0 < found["probability_of_accepting"] < 1.0
    assert (found["reasons"], found["kin"]) == ([], [])
    text = worked(run, "decide", "plans.ics", "--ledger", team, "--user", MEMBER)
    assert "not shown while fewer than 5 other people have agreed" in text
    assert "Whose answers helped" not in text
    assert "What weighed most" not in text


def test_what_the_team_has_learnt_decides_with_reasons(run: Run, team: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kinfolk_assistant.service.kin.LEAST", 1)
    Path("plans.ics").write_text(calendar(event(attendee=MEMBER)), newline="")
    costs = ("--false-accept", 2, "--false-decline", 3, "--ask", 0.7)
    found = decided(run, "plans.ics", "--ledger", team, *costs, user=MEMBER)
    p = found["probability_of_accepting"]
    assert 0.0 < p < 1.0
    losses = {"accept": 2 * (1 - p), "decline": 3 * p, "ask": 0.7}
    assert found["expected_losses"] == pytest.approx(losses)
    assert found["decision"] == min(losses, key=losses.__getitem__)
    assert 2 <= len(found["reasons"]) <= 3
    for reason in found["reasons"]:
        assert found["features"][reason["feature"]] == reason["value"]
    sizes = [abs(reason["log_ratio"]) for reason in found["reasons"]]
    assert sizes == sorted(sizes, reverse=True)
    text = worked(run, "decide", "plans.ics", "--ledger", team, *costs, "--user", MEMBER)
    assert f"Decision: {found['decision']}. The user would accept with probability {p:.2f}." in text
    assert f"{found['reasons'][0]['feature']} = {found['reasons'][0]['value']}" in text


def test_costs_alone_can_turn_the_decision(run: Run, team: Path) -> None:
    Path("plans.ics").write_text(calendar(event(attendee=MEMBER)), newline="")
    about = ("plans.ics", "--ledger", team)
    assert decided(run, *about, "--ask", 0, user=MEMBER)["decision"] == "ask"
    assert decided(run, *about, "--ask", 9, "--false-accept", 1e6, user=MEMBER)["decision"] == "decline"
    assert decided(run, *about, "--ask", 9, "--false-decline", 1e6, user=MEMBER)["decision"] == "accept"


def test_what_was_cancelled_needs_no_answer(run: Run) -> None:
    Path("cancel.ics").write_text(calendar(event(), method="CANCEL"), newline="")
    Path("status.ics").write_text(calendar(event("plans", "20240305T140000Z", "STATUS:CANCELLED")), newline="")
    for name in ("cancel.ics", "status.ics"):
        found = decided(run, name)
        assert (found["decision"], found["why"]) == ("none", "the organiser has cancelled it")
        text = worked(run, "decide", name, "--user", ANN)
        assert "Nothing to answer: the organiser has cancelled it." in text


def test_somebodys_reply_is_no_invitation(run: Run) -> None:
    Path("reply.ics").write_text(calendar(event(answer="ACCEPTED"), method="REPLY"), newline="")
    assert decided(run, "reply.ics")["why"] == "it is a REPLY, not an invitation"


def test_a_user_who_is_not_invited_is_told_so(run: Run) -> None:
    assert not decided(run, "plans.ics", user="zoe@example.org")["invited"]
    assert "Note: the user is not among those invited." in worked(
        run, "decide", "plans.ics", "--user", "zoe@example.org"
    )
    assert decided(run, "plans.ics")["invited"]
    assert "not among" not in worked(run, "decide", "plans.ics", "--user", ANN)


def test_each_event_of_a_file_is_decided_about(run: Run) -> None:
    Path("two.ics").write_text(calendar(event("one"), event("two", "20240306T140000Z")), newline="")
    document = json.loads(worked(run, "decide", "two.ics", "--user", ANN, "--json"))
    assert [request["uid"] for request in document["requests"]] == ["one", "two"]


def test_an_invitation_may_come_by_standard_input(run: Run) -> None:
    text = calendar(event())
    assert "Decision: ask" in worked(run, "decide", "-", "--user", ANN, given=text.encode())


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "is not a calendar"),
        (b"Dear Ann,\nlet us meet.\n", "no text/calendar part"),
        (bytes(range(256)) * 40, "is not a calendar"),
        (calendar(event()).encode()[:150], "bad.ics"),
        (calendar().encode(), "holds no event"),
        (mail("BEGIN:VCALENDAR\nEND:VCALENDAR\n"), "no event"),
        (calendar(event("plans", "yesterday")).encode(), "bad.ics"),
        (b"\xef\xbb\xbf" + calendar(event()).replace("UID:plans\r\n", "").encode(), "UID"),
    ],
    ids=["empty", "letter", "bytes", "cut off", "no event", "mail without event", "no date", "no UID"],
)
def test_a_file_that_cannot_be_used_is_refused_by_name(run: Run, content: bytes, told: str) -> None:
    Path("bad.ics").write_bytes(content)
    sentence = refused(run, "decide", "bad.ics", "--user", ANN)
    assert "bad.ics" in sentence
    assert told in sentence


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is nothing endless to read here")
def test_an_endless_file_is_not_read_to_its_end(run: Run) -> None:
    assert "at most" in refused(run, "decide", "/dev/zero", "--user", ANN)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("nothing.ics", "-u", ANN), ["nothing.ics", "No such file"]),
        ((".", "-u", ANN), ["Is a directory"]),
        (("plans.ics",), ["--user", "kinfolk assistant decide --help"]),
        (("plans.ics", "-u", "ann"), ["'ann'", "not a mail address"]),
        (("plans.ics", "-u", ANN, "--zone", "Mars/Base"), ["'Mars/Base'", "Europe/Berlin"]),
        (("plans.ics", "-u", ANN, "--calendar", "nothing.ics"), ["nothing.ics", "No such file"]),
        (("plans.ics", "-u", ANN, "--calendar", "people.csv"), ["people.csv", "not iCalendar"]),
        (("plans.ics", "-u", ANN, "--people", "plans.ics"), ["plans.ics", ".csv or a .vcf"]),
        (("plans.ics", "-u", ANN, "--people", "people.csv"), ["people.csv", "who"]),
        (("plans.ics", "-u", ANN, "--ask", "-1"), ["cost ask", "-1"]),
        (("plans.ics", "-u", ANN, "--false-accept", "nan"), ["cost false_accept", "nan"]),
        (("plans.ics", "-u", ANN, "--ask", "much"), ["--ask"]),
        (("plans.ics", "-u", ANN, "--ledger", "nothing.db"), ["no ledger nothing.db"]),
        (("plans.ics", "-u", ANN, "--ledger", "people.csv"), ["people.csv", "not a database"]),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(run: Run, arguments: tuple[str, ...], told: list[str]) -> None:
    Path("people.csv").write_text("who,what\nbob@example.org,faculty\n" * 20)
    sentence = refused(run, "decide", *arguments)
    for words in told:
        assert words in sentence
