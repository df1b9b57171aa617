"""``import``, ``train`` and ``export``: a calendar's past becomes rows, then a model, and a table for research."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import polars as pl
import pytest
from sqlalchemy import select

from kinfolk.datasets.meetings import MEETING_FEATURES
from kinfolk_assistant.ledger.store import Ledger
from kinfolk_assistant.ledger.tables import Contact, Lease, Model, Request, User
from tests.assistant.cli.conftest import refused, worked
from tests.assistant.cli.files import ANN, BOB, calendar, engagement, event, mail, past_invitation
from tests.cli.conftest import Run

LEDGER = "kinfolk-assistant.db"


@pytest.fixture
def mine(run: Run) -> Path:
    """A calendar with two invitations accepted, one declined, one never answered, and an appointment of one's own."""
    events = [
        past_invitation("a", 8, "ACCEPTED", "LOCATION:Hall 3"),
        past_invitation("b", 9, "ACCEPTED"),
        past_invitation("c", 10, "DECLINED"),
        past_invitation("d", 11, "NEEDS-ACTION"),
        engagement(),
    ]
    path = Path("mine.ics")
    path.write_text(calendar(*events, method=""), newline="")
    return path


def rows(path: str | Path = LEDGER) -> list[tuple[str, str, str | None]]:
    ledger = Ledger(str(path))
    with ledger.read() as session:
        found = session.execute(select(Request.user, Request.uid, Request.label).order_by(Request.user, Request.uid))
        known = [tuple(row) for row in found]
    ledger.close()
    return known


def test_an_import_reports_answers_and_what_could_not_be_known(run: Run, mine: Path) -> None:
    worked(run, "user", ANN, "--place", "Hall 3")
    told = worked(run, "import", mine, "--user", ANN)
    assert f"{ANN}: 4 past invitations: 2 accepted, 1 declined, 1 without such an answer." in told
    assert "4 are new" in told
    # Three of the four name no place.
    assert "location: 75%" in told
    assert "the request names no place" in told
    assert rows() == [(ANN, "a", "accept"), (ANN, "b", "accept"), (ANN, "c", "decline"), (ANN, "d", None)]


def test_an_import_without_declines_says_so(run: Run) -> None:
    Path("mine.ics").write_text(calendar(past_invitation("a", 8, "ACCEPTED"), method=""), newline="")
    assert "No declined invitation was found." in worked(run, "import", "mine.ics", "--user", ANN)


def test_importing_again_adds_nothing(run: Run, mine: Path) -> None:
    worked(run, "import", mine, "--user", ANN)
    before = rows()
    assert "0 are new, 0 have changed" in worked(run, "import", mine, "--user", ANN)
    assert rows() == before


def test_people_and_zone_of_a_new_user_are_kept(run: Run, mine: Path) -> None:
    Path("people.csv").write_text(f"person,job\n{BOB},faculty\n")
    worked(run, "import", mine, "-u", "mailto:Ann@Example.org", "--people", "people.csv", "--zone", "Asia/Tokyo")
    worked(run, "import", mine, "-u", ANN)
    ledger = Ledger(LEDGER)
    with ledger.read() as session:
        assert session.scalars(select(User.zone).where(User.address == ANN)).one() == "Asia/Tokyo"
        assert session.execute(select(Contact.key, Contact.job)).all() == [(BOB, "faculty")]
        found = session.scalars(select(Request.features)).all()
    ledger.close()
    assert {row["invitee_job"] for row in found if row} == {"faculty"}
    # Ten o'clock in Greenwich is late in the day in Tokyo.
    assert {row["start_time"] for row in found if row} == {"late"}


def test_a_folder_is_read_with_its_mails_and_what_cannot_be_used_is_said(run: Run, mine: Path) -> None:
    Path("all/mail").mkdir(parents=True)
    mine.rename("all/mine.ics")
    Path("all/mail/one.eml").write_bytes(mail(calendar(event("mailed", "20240306T100000Z"))))
    Path("all/broken.ics").write_text("not a calendar")
    done = run("assistant", "import", "all", "--user", ANN)
    assert done.exit_code == 0
    assert done.stderr == "kinfolk: broken.ics is not iCalendar: it has no BEGIN:VCALENDAR.\n"
    assert [uid for _, uid, _ in rows()] == ["a", "b", "c", "d", "mailed"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("nothing.ics", "-u", ANN), ["nothing.ics", "No such file"]),
        (("mine.txt", "-u", ANN), ["mine.txt", ".ics"]),
        (("bad.ics", "-u", ANN), ["bad.ics", "not iCalendar"]),
        (("mine.ics", "-u", "ann"), ["'ann'", "not a mail address"]),
        (("mine.ics",), ["--user"]),
        (("mine.ics", "-u", ANN, "--zone", "Mars/Base"), ["Mars/Base"]),
        (("mine.ics", "-u", ANN, "--people", "mine.ics"), ["mine.ics", ".csv or a .vcf"]),
        (("mine.ics", "-u", ANN, "--settings", "nothing.toml"), ["nothing.toml", "No such file"]),
        (("mine.ics", "-u", ANN, "--ledger", "folder/ledger.db"), ["folder/ledger.db", "No such file"]),
        (("mine.ics", "-u", ANN, "--ledger", "mine.ics"), ["mine.ics", "not a database"]),
    ],
)
def test_what_cannot_be_imported_is_refused(run: Run, mine: Path, arguments: tuple[str, ...], told: list[str]) -> None:
    Path("mine.txt").write_text("x")
    Path("bad.ics").write_text("x")
    sentence = refused(run, "import", *arguments)
    for words in told:
        assert words in sentence


def test_the_settings_name_the_ledger(run: Run, mine: Path) -> None:
    Path("etc").mkdir()
    Path("etc/assistant.toml").write_text('ledger = "team.db"\n')
    worked(run, "import", mine, "-u", ANN, "--settings", "etc/assistant.toml")
    assert len(rows("etc/team.db")) == 4
    worked(run, "import", mine, "-u", ANN, "--settings", "etc/assistant.toml", "--ledger", "other.db")
    assert len(rows("other.db")) == 4
    assert not Path(LEDGER).exists()


def test_training_learns_once_from_what_is_new_and_again_when_told(run: Run, mine: Path) -> None:
    worked(run, "user", ANN)
    assert "Nothing is learnt yet" in worked(run, "train")
    worked(run, "import", mine, "--user", ANN)
    assert worked(run, "train") == f"Learnt anew.\nModel for {ANN} alone: 4 rows of 1 people.\n"
    assert worked(run, "train").startswith("Nothing was learnt")
    worked(run, "user", ANN, "--agree")
    assert worked(run, "train", "--force") == "Learnt anew.\nModel shared by all who agreed: 4 rows of 1 people.\n"


def test_training_does_not_disturb_another_process_that_learns(run: Run, mine: Path) -> None:
    from datetime import UTC, datetime, timedelta

    worked(run, "import", mine, "--user", ANN)
    ledger = Ledger(LEDGER)
    with ledger.begin() as session:
        lease = session.scalars(select(Lease)).one()
        lease.holder, lease.until = "another", datetime.now(UTC) + timedelta(minutes=5)
    assert "a server is learning just now" in worked(run, "train", "--force")
    with ledger.read() as session:
        assert session.scalars(select(Lease.holder)).one() == "another"
        assert session.scalars(select(Model.id)).all() == []
    ledger.close()


def test_training_needs_a_ledger_that_is_there(run: Run) -> None:
    assert f"there is no ledger {LEDGER}" in refused(run, "train")


@pytest.fixture
def both(run: Run, mine: Path) -> None:
    """Ann has agreed to help others; Bob has not."""
    worked(run, "import", mine, "--user", ANN)
    worked(run, "user", ANN, "--agree")
    Path("bobs.ics").write_text(
        calendar(event("x", "20240108T100000Z", organiser=ANN, attendee=BOB, answer="ACCEPTED"), method=""), newline=""
    )
    worked(run, "import", "bobs.ics", "--user", BOB)


@pytest.mark.usefixtures("both")
def test_only_the_rows_of_those_who_agreed_are_exported_and_without_names(run: Run) -> None:
    assert worked(run, "export", "-o", "t.csv") == "4 rows of 1 people are in t.csv.\n"
    text = Path("t.csv").read_text()
    with Path("t.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    assert list(table[0]) == ["user", *MEETING_FEATURES, "answer"]
    assert {row["user"] for row in table} == {"person 1"}
    assert [row["answer"] for row in table] == ["accept", "accept", "decline", ""]
    for secret in (ANN, BOB, "About", "Hall", "example.org"):
        assert secret not in text


@pytest.mark.usefixtures("both")
def test_one_may_export_ones_own_rows_and_name_people_by_address(run: Run) -> None:
    assert worked(run, "export", "-o", "t.json", "--user", "Bob@Example.org", "--names").startswith("1 rows")
    [row] = json.loads(Path("t.json").read_text())["rows"]
    assert (row["user"], row["answer"]) == (BOB, "accept")


@pytest.mark.usefixtures("both")
def test_every_format_holds_the_same_table(run: Run) -> None:
    for ending in ("csv", "tsv", "parquet", "json"):
        worked(run, "export", "-o", f"t.{ending}")
    table = pl.read_parquet("t.parquet")
    assert table.columns == ["user", *MEETING_FEATURES, "answer"]
    assert pl.read_csv("t.csv", infer_schema=False).equals(table)
    assert pl.read_csv("t.tsv", infer_schema=False, separator="\t").equals(table)
    assert json.loads(Path("t.json").read_text())["rows"] == table.to_dicts()


def test_kinfolk_can_be_fitted_to_what_was_exported(run: Run, team: Path) -> None:
    # The new invitations have features, and no answer yet.
    n_rows = len(rows(team))
    assert worked(run, "export", "-o", "t.csv", "--ledger", team) == f"{n_rows} rows of 2 people are in t.csv.\n"
    fitted = run("fit", "t.csv", "--task", "user", "--label", "answer", "-o", "team.kin")
    assert fitted.exit_code == 0, fitted.stderr
    described = run("inspect", "team.kin", "--json")
    assert "person 2" in described.stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("-o", "t.csv", "--user", "zoe@example.org"), "zoe@example.org has no rows"),
        (("-o", "t.xlsx"), ".parquet"),
        (("-o", "nowhere/t.csv"), "no folder"),
        ((), "--output"),
        (("-o", "t.csv", "--ledger", "nothing.db"), "no ledger nothing.db"),
    ],
)
def test_what_cannot_be_exported_is_refused(run: Run, mine: Path, arguments: tuple[str, ...], told: str) -> None:
    worked(run, "import", mine, "--user", ANN)
    assert told in refused(run, "export", *arguments)
    assert "nobody who agreed to help others has rows" in refused(run, "export", "-o", "t.csv")
