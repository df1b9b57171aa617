from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import polars as pl
import pytest
from sklearn.metrics import adjusted_rand_score
from sqlalchemy import select

from kinfolk import ClusteredNB
from kinfolk.datasets.meetings import MEETING_FEATURES, TEAM, make_meetings
from kinfolk_assistant.demo.life import Asked, follow
from kinfolk_assistant.demo.moving_in import history_of, move_in
from kinfolk_assistant.demo.team import MADE_UP, Member, make_team
from kinfolk_assistant.features.past import CHANGED
from kinfolk_assistant.features.people import People
from kinfolk_assistant.importing.history import import_history
from kinfolk_assistant.importing.report import ImportReport
from kinfolk_assistant.ledger.store import Ledger
from kinfolk_assistant.ledger.tables import Contact, Request, User
from kinfolk_assistant.reading.calendars import read_calendar

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
SIZES = (30, 50)
UPCOMING = 4


class Moved(NamedTuple):
    team: tuple[Member, ...]
    ledger: Ledger
    reports: dict[str, ImportReport]
    rows: dict[tuple[str, str, str, int], Request]
    asked: dict[tuple[str, str, str, int], Asked]


@pytest.fixture(scope="module")
def moved(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Moved]:
    team = make_team(NOW, n_requests=SIZES, n_upcoming=UPCOMING)
    ledger = Ledger(str(tmp_path_factory.mktemp("demo") / "ledger.db"))
    reports = move_in(ledger, team, now=NOW)
    with ledger.read() as session:
        rows = {(one.user, one.uid, one.recurrence_id, one.sequence): one for one in session.scalars(select(Request))}
    asked = {(one.circle.owner, *key): what for one in team for key, what in one.asked.items()}
    yield Moved(team, ledger, reports, rows, asked)
    ledger.close()


def test_the_team_is_that_of_table_4_1_in_its_institutions_and_time_zones(moved):
    assert tuple(member.person for member in moved.team) == TEAM
    assert len({member.circle.institution.zone for member in moved.team}) == 4
    with moved.ledger.read() as session:
        users = {one.address: one for one in session.scalars(select(User))}
    assert len(users) == 21
    assert all(one.agreed_at == NOW and one.places for one in users.values())


def test_everybody_gets_as_many_invitations_as_was_asked_for_and_some_are_moved(moved):
    for member in moved.team:
        sent = Counter((rid, sequence) != ("", 0) for _, rid, sequence in member.asked)
        assert SIZES[0] <= sent[False] - UPCOMING <= SIZES[1]
    sequences = Counter((bool(rid), sequence) for member in moved.team for _, rid, sequence in member.asked)
    assert sequences[False, 1] > 5
    assert sequences[True, 1] > 5


def test_histories_are_texts_with_answers_of_every_kind_and_cancelled_meetings(moved):
    some = moved.team
    objects = [one for member in some for one in history_of(member)]
    answers = {one.answer for found in objects for one in found.meetings[0].attendees[:1]}
    assert answers == {"ACCEPTED", "DECLINED", "TENTATIVE", "NEEDS-ACTION"}
    assert {one.method for one in objects} == {"", "REQUEST", "REPLY", "CANCEL"}
    assert any(one.meetings[0].cancelled for one in objects if not one.method)
    assert any(one.meetings[0].repeats and len(one.meetings) > 1 for one in objects if not one.method)


def test_answers_follow_the_persons_rules_but_for_the_noise(moved):
    rules = make_meetings(21, (SIZES[0] + UPCOMING, SIZES[1] + UPCOMING), random_state=0).rules
    against = []
    for member in moved.team:
        for what in member.asked.values():
            assert what.by_rules == follow(rules[member.person.id], what.features)
            if what.label is not None:
                against.append((what.label == "accept") != (what.by_rules == "accept"))
    # One in twenty, give or take four standard errors.
    assert sum(against) / len(against) == pytest.approx(0.05, abs=4 * (0.05 * 0.95 / len(against)) ** 0.5)


def test_everybody_accepts_a_fair_share_and_declines_a_fair_share(moved):
    for member in moved.team:
        labels = Counter(what.label for what in member.asked.values())
        assert 0.15 < labels["accept"] / (labels["accept"] + labels["decline"]) < 0.85


def test_import_finds_the_answers_that_were_given(moved):
    both = moved.rows.keys() & moved.asked.keys()
    assert len(both) > 0.98 * len(moved.rows)
    assert all(moved.rows[key].label == moved.asked[key].label for key in both)


def test_import_finds_the_features_that_were_there_except_what_a_calendar_cannot_tell(moved):
    found: Counter[str] = Counter()
    with_messages = {member.circle.owner for member in moved.team if member.messages}
    for key in moved.rows.keys() & moved.asked.keys():
        for name, value in moved.rows[key].features.items():
            kind = "unknown" if value is None else "same" if value == moved.asked[key].features[name] else "other"
            found[kind] += 1
            found[f"{kind} with messages"] += key[0] in with_messages
    assert found["same"] > 0.99 * sum(found[kind] for kind in ("same", "other", "unknown"))
    # Where a moved meeting stood before, a calendar without messages tells nowhere.
    assert found["other"] < 0.0005 * found["same"]
    assert found["other with messages"] == 0


def test_with_messages_only_what_was_changed_without_any_is_not_known(moved):
    for member in moved.team:
        reasons = {why for of in moved.reports[member.circle.owner].unknown.values() for why in of}
        if member.messages:
            # The occurrence of their own weekly meeting that people move: nobody is sent anything about it.
            assert reasons <= {CHANGED}


def test_the_report_counts_what_the_rows_lack(moved):
    for address, report in moved.reports.items():
        mine = [row for key, row in moved.rows.items() if key[0] == address]
        lacking = Counter(name for row in mine for name, value in row.features.items() if value is None)
        assert {name: sum(reasons.values()) for name, reasons in report.unknown.items()} == lacking
        assert (report.rows, report.rows) == (len(mine), sum(report.arrivals.values()))
        assert report.accepts == sum(row.label == "accept" for row in mine)


def test_the_kin_found_in_the_imported_rows_are_the_groups_of_table_4_1(moved):
    group = {member.circle.owner: member.person.group for member in moved.team}
    rows = [row for row in moved.rows.values() if row.label is not None]
    table = pl.DataFrame(
        {
            name: pl.Series([row.features[name] for row in rows], dtype=pl.Enum(values))
            for name, values in MEETING_FEATURES.items()
        }
    )
    model = ClusteredNB().fit(table, [row.label for row in rows], task=[row.user for row in rows])
    found = dict(zip(model.tasks_, model.partition_, strict=True))
    assert adjusted_rand_score([group[user] for user in found], list(found.values())) > 0.8


def test_upcoming_invitations_came_within_the_hour_for_the_next_two_weeks_and_are_in_no_calendar(moved):
    for member in moved.team:
        assert len(member.upcoming) == UPCOMING
        assert [one.received for one in member.upcoming] == sorted(one.received for one in member.upcoming)
        kept = "".join(member.calendar)
        for received, one in member.upcoming:
            [read] = read_calendar(one.text.encode())
            meeting = read.meetings[0]
            assert read.method == "REQUEST"
            assert NOW - timedelta(hours=1) < received < NOW
            assert received < meeting.start < NOW + timedelta(days=15)
            assert meeting.answer_of(member.circle.owner) == "NEEDS-ACTION"
            assert f"UID:{meeting.uid}\r\n" not in kept


def test_the_table_of_people_and_topics_reads_the_same_as_csv(moved, tmp_path: Path):
    circle = moved.team[20].circle
    (tmp_path / "people.csv").write_text(circle.table())
    assert People.read(tmp_path / "people.csv").contacts == circle.lines()
    with moved.ledger.read() as session:
        kept = list(session.scalars(select(Contact).where(Contact.user == circle.owner)))
    assert People.from_contacts(kept).contacts == circle.lines()


def test_moving_in_again_changes_nothing(moved):
    member = moved.team[0]
    again = move_in(moved.ledger, [member], now=NOW + timedelta(days=1))[member.circle.owner]
    assert (again.added, again.refreshed) == (0, 0)
    people = People(member.circle.lines())
    third = import_history(moved.ledger, member.circle.owner, history_of(member), people, now=NOW)
    assert (third.added, third.rows) == (0, again.rows)


def test_the_same_seed_gives_the_same_team_and_another_seed_another():
    def texts(seed: int) -> list[object]:
        return [member[2:4] for member in make_team(NOW, n_people=3, n_requests=12, n_upcoming=2, seed=seed)]

    assert texts(4) == texts(4)
    assert texts(4) != texts(5)


def test_the_sentence_for_every_page_says_that_it_is_made_up():
    assert "made up" in MADE_UP
    assert "not public" in MADE_UP


def test_a_team_without_time_zone_or_without_past_is_refused():
    with pytest.raises(ValueError, match="needs a time zone"):
        make_team(NOW.replace(tzinfo=None))
    with pytest.raises(ValueError, match="30 days or longer"):
        make_team(NOW, days=7)
