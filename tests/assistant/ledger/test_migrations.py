"""Ledgers of earlier versions are brought up to date; those of later ones are refused."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, inspect, select, text

from kinfolk_assistant.delivery.checks import doctor
from kinfolk_assistant.delivery.configuration import Configuration
from kinfolk_assistant.ledger import migrations
from kinfolk_assistant.ledger.backup import back_up, restore_to
from kinfolk_assistant.ledger.migrations.versions import r0001_ledger
from kinfolk_assistant.ledger.store import Ledger, look_at_revision
from kinfolk_assistant.ledger.tables import Decision, Table, User


def driven(url: str) -> str:
    return url.replace("postgresql://", "postgresql+psycopg://") if "://" in url else f"sqlite:///{url}"


def make_old(path: Path) -> None:
    """A ledger of the first layout, as the program of then has made it."""
    with closing(sqlite3.connect(path)) as old:
        old.executescript((Path(__file__).parent / "layout-1.sql").read_text(encoding="utf-8"))


def make_layout_10(url: str) -> None:
    """A ledger of the last layout before there were revisions, with one user."""
    engine = create_engine(driven(url))
    with engine.begin() as connection:
        r0001_ledger.LEDGER.create_all(connection)
        connection.execute(text("INSERT INTO layout (version) VALUES (10)"))
        connection.execute(text("INSERT INTO leases (name, holder) VALUES ('models', '')"))
        users = r0001_ledger.LEDGER.tables["users"]
        row = {one.name: 0 for one in users.columns if not one.nullable and one.server_default is None}
        row |= {"address": "ann@example.org", "name": "", "zone": "UTC", "places": "", "automation": False}
        connection.execute(users.insert().values(row | {"made_at": datetime(2026, 11, 18, tzinfo=UTC)}))
    engine.dispose()


def test_the_last_revision_is_the_one_that_the_code_writes() -> None:
    script = ScriptDirectory(str(Path(migrations.__file__).parent))
    assert script.get_current_head() == migrations.HEAD
    assert len(script.get_heads()) == 1


def test_the_revisions_make_the_very_tables_that_the_code_describes(ledger: Ledger) -> None:
    with ledger.engine.connect() as connection:
        differences = compare_metadata(MigrationContext.configure(connection), Table.metadata)
    # What programs of before the revisions look at stays, though this one does not.
    assert [(what[0], what[1].name) for what in differences] == [("remove_table", "layout")]


def test_a_ledger_of_the_first_layout_opens_with_all_that_is_in_it(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    make_old(path)
    ledger = Ledger(str(path))
    with ledger.read() as session:
        assert session.scalars(select(User.address)).all() == ["ann@example.org"]
        [decision] = session.scalars(select(Decision))
        assert (decision.action, decision.why) == ("accept", "")
        assert session.execute(text("SELECT decided FROM requests")).scalars().all() == [1]
        made = {
            table: sorted(column["name"] for column in inspect(session.connection()).get_columns(table))
            for table in Table.metadata.tables
        }
    ledger.close()
    assert made == {name: sorted(table.columns.keys()) for name, table in Table.metadata.tables.items()}
    assert look_at_revision(str(path)) == migrations.HEAD
    Ledger(str(path)).close()


def test_a_ledger_from_before_the_revisions_keeps_its_users_and_gains_the_new_table(url: str) -> None:
    make_layout_10(url)
    assert look_at_revision(url) == migrations.BEFORE
    ledger = Ledger(url)
    with ledger.read() as session:
        assert session.scalars(select(User.address)).all() == ["ann@example.org"]
        assert inspect(session.connection()).has_table("connections")
        # A program of then refuses what is above 10.
        assert session.execute(text("SELECT version FROM layout")).scalars().all() == [11]
    ledger.close()
    assert look_at_revision(url) == migrations.HEAD


def test_a_revision_that_fails_leaves_the_ledger_as_it_was(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make_layout_10(url)
    monkeypatch.setattr(migrations, "HEAD", "never")
    stamp = MigrationContext.stamp

    def fail(self: MigrationContext, script: ScriptDirectory, revision: str) -> None:
        if revision == "0002":
            raise RuntimeError("the power is gone")
        stamp(self, script, revision)

    monkeypatch.setattr(MigrationContext, "stamp", fail)
    with pytest.raises(RuntimeError):
        Ledger(url)
    engine = create_engine(driven(url))
    with engine.connect() as connection:
        tables = set(inspect(connection).get_table_names())
        assert connection.execute(text("SELECT version FROM layout")).scalars().all() == [10]
    engine.dispose()
    assert not {"connections", "alembic_version"} & tables


def test_a_ledger_of_a_later_version_is_refused_in_one_sentence(url: str) -> None:
    ledger = Ledger(url)
    with ledger.begin() as session:
        session.execute(text("UPDATE alembic_version SET version_num = '0999'"))
    ledger.close()
    with pytest.raises(ValueError, match=r"made by another version of kinfolk .*0999.*; open it with that version\.$"):
        Ledger(url)


def test_a_ledger_may_be_opened_by_several_processes_at_once(url: str) -> None:
    make_layout_10(url)
    code = "import sys; from kinfolk_assistant.ledger.store import Ledger; Ledger(sys.argv[1]).close()"
    started = [subprocess.Popen([sys.executable, "-c", code, url]) for _ in range(4)]
    assert [one.wait(60) for one in started] == [0, 0, 0, 0]
    ledger = Ledger(url)
    with ledger.read() as session:
        assert session.execute(text("SELECT version_num FROM alembic_version")).scalars().all() == [migrations.HEAD]
    ledger.close()


def test_a_ledger_that_is_up_to_date_opens_without_alembic(tmp_path: Path) -> None:
    path = str(tmp_path / "ledger.db")
    Ledger(path).close()
    code = (
        "import sys; from kinfolk_assistant.ledger.store import Ledger; Ledger(sys.argv[1]).close(); "
        "print('alembic' in sys.modules)"
    )
    told = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "False"


def test_an_old_ledger_is_copied_as_it_is_and_doctor_says_how_before_it_changes(tmp_path: Path) -> None:
    path, copy, back = tmp_path / "ledger.db", tmp_path / "copy.db", tmp_path / "back.db"
    make_old(path)
    [finding] = [one for one in doctor(Configuration(str(path), folder=tmp_path / "out")) if one.what == "ledger"]
    assert finding.ok
    assert "before 0001" in finding.sentence
    assert "admin backup" in finding.sentence
    back_up(str(path), copy)
    assert look_at_revision(str(path)) == look_at_revision(str(copy)) == migrations.BEFORE
    restore_to(copy, str(back))
    assert look_at_revision(str(back)) == migrations.HEAD
    Ledger(str(path)).close()
    [finding] = [one for one in doctor(Configuration(str(path), folder=tmp_path / "out")) if one.what == "ledger"]
    assert f"revision {migrations.HEAD}" in finding.sentence
