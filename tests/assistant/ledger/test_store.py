from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from sqlalchemy import delete, select, text
from sqlalchemy.exc import IntegrityError

from kinfolk_assistant.ledger.store import Ledger
from kinfolk_assistant.ledger.tables import Asking, Contact, User
from kinfolk_assistant.ledger.users import NotYours, find_user, lock_user, make_user

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def test_what_fails_half_way_leaves_nothing(ledger: Ledger) -> None:
    with pytest.raises(ValueError, match="address"), ledger.begin() as session:
        make_user(session, "ann@example.org"), make_user(session, "no address")
    with ledger.read() as session, pytest.raises(NotYours):
        find_user(session, "ann@example.org")


def test_a_reader_neither_waits_for_a_writer_nor_sees_half_of_its_work(ledger: Ledger) -> None:
    with ledger.begin() as writer:
        make_user(writer, "ann@example.org")
        with ledger.read() as reader:
            assert reader.scalars(select(User)).all() == []


def test_a_reader_sees_one_moment_only(ledger: Ledger) -> None:
    with ledger.read() as reader:
        assert reader.scalars(select(User.address)).all() == []
        with ledger.begin() as writer:
            make_user(writer, "ann@example.org")
        assert reader.scalars(select(User.address)).all() == []


def test_moments_come_back_in_utc_from_whatever_zone_they_had(ledger: Ledger) -> None:
    with ledger.begin() as session:
        session.add(Asking(at=NOON.astimezone(timezone(timedelta(hours=-5))), why="label"))
    with ledger.read() as session:
        [at] = session.scalars(select(Asking.at))
    assert at == NOON
    assert at.tzinfo is UTC


def test_the_number_of_a_deleted_row_is_never_used_again(ledger: Ledger) -> None:
    numbers = []
    for _ in range(2):
        with ledger.begin() as session:
            one = Asking(at=NOON, why="label")
            session.add(one)
            session.flush()
            numbers.append(one.id)
            session.execute(delete(Asking))
    assert numbers[1] > numbers[0]


def test_a_row_that_refers_to_nobody_is_refused(ledger: Ledger) -> None:
    with pytest.raises(IntegrityError), ledger.begin() as session:
        session.add(Contact(user="nobody@example.org", kind="topic", key="budget"))


def test_a_locked_user_is_locked_for_the_other_writer_only_until_the_end(ledger: Ledger) -> None:
    from threading import Thread

    with ledger.begin() as session:
        make_user(session, "ann@example.org")
    order: list[str] = []

    def second() -> None:
        with ledger.begin() as session:
            lock_user(session, "ann@example.org")
            order.append("second")

    with ledger.begin() as session:
        lock_user(session, "ann@example.org")
        other = Thread(target=second)
        other.start()
        other.join(0.3)
        order.append("first")
    other.join(30)
    assert order == ["first", "second"]


def test_the_sqlite_file_is_its_owners_alone_and_survives_a_power_cut(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    ledger = Ledger(str(path))
    with ledger.begin() as session:
        make_user(session, "ann@example.org")
        pragmas = ("journal_mode", "synchronous", "foreign_keys", "secure_delete")
        found = [session.execute(text(f"PRAGMA {name}")).scalar_one() for name in pragmas]
        modes = {one.name: one.stat().st_mode & 0o777 for one in tmp_path.iterdir()}
    ledger.close()
    # synchronous: 2 is FULL
    assert found == ["wal", 2, 1, 1]
    assert "ledger.db-wal" in modes
    assert set(modes.values()) == {0o600}


def test_a_file_that_cannot_be_opened_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"^The ledger .* cannot be opened: No such file or directory\.$"):
        Ledger(str(tmp_path / "missing" / "ledger.db"))


def test_a_file_that_is_no_database_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    path.write_bytes(os.urandom(4096))
    with pytest.raises(OSError, match=r"^The ledger .* cannot be opened: file is not a database\.$"):
        Ledger(str(path))


@pytest.mark.parametrize("url", ["mysql://root@host/name", "://", "oracle://x"])
def test_another_kind_of_database_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"is neither a path nor a postgresql:// URL\.$"):
        Ledger(url)


@pytest.mark.parametrize("address", ["", "ann", "ann@exam ple.org", "@" + "x" * 400])
def test_a_user_needs_a_mail_address(ledger: Ledger, address: str) -> None:
    with pytest.raises(ValueError, match="is not a mail address"), ledger.begin() as session:
        make_user(session, address)


def test_a_user_is_found_whatever_the_case_of_the_address(ledger: Ledger) -> None:
    with ledger.begin() as session:
        make_user(session, "mailto:Ann@Example.org")
    with ledger.read() as session:
        assert find_user(session, "ANN@example.org").address == "ann@example.org"


def test_an_unknown_time_zone_is_refused(ledger: Ledger) -> None:
    with pytest.raises(ValueError, match="time zone 'Europe/Atlantis' is not known"), ledger.begin() as session:
        make_user(session, "ann@example.org", zone="Europe/Atlantis")
