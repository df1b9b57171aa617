"""Copies of a ledger: made while it is in use, and put in its place again without sending anything twice."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path

from sqlalchemy import update
from sqlalchemy.engine import make_url

from kinfolk_assistant.ledger.store import Ledger
from kinfolk_assistant.ledger.tables import Reply

_ELSEWHERE = "The ledger is a PostgreSQL database: use pg_dump and pg_restore."


def back_up(url: str, to: Path) -> None:
    """Copy an SQLite ledger as it is at one moment; writers go on meanwhile.

    A ledger of an earlier version is copied as such: so it can be copied before it is brought up to date.

    Raises
    ------
    ValueError
        If the ledger is no SQLite file, or the copy is there already.
    """
    path = _file(url)
    if to.exists():
        raise ValueError(f"{to} is there already")
    partial = to.with_name(f".{to.name}.partial")
    partial.unlink(missing_ok=True)
    os.close(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        source = sqlite3.connect(path)
        copy = sqlite3.connect(partial)
        try:
            source.backup(copy)
            # One file, without a log beside it.
            copy.execute("PRAGMA journal_mode = DELETE")
        finally:
            source.close()
            copy.close()
        partial.rename(to)
    finally:
        partial.unlink(missing_ok=True)


def restore_to(source: Path, url: str) -> int:
    """Make an SQLite ledger of a copy; how many replies were on their way when it was made.

    What has left since the copy was made is not known to it. So nothing that was on its way then is sent by itself:
    its users see that it may have been sent, and may send it again.

    Raises
    ------
    ValueError
        If the copy is no ledger, the ledger is no SQLite file, or there is one already.
    """
    target = _file(url)
    if target.exists():
        raise ValueError(f"there is a ledger {target} already: stop the server and move it away first")
    if not source.is_file() or source.read_bytes()[:15] != b"SQLite format 3":
        raise ValueError(f"{source} is no copy of a ledger")
    partial = target.with_name(f".{target.name}.partial")
    partial.unlink(missing_ok=True)
    os.close(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        shutil.copyfile(source, partial)
        ledger = Ledger(str(partial))
        try:
            with ledger.begin() as session:
                moving = update(Reply).where(Reply.state.in_(["prepared", "sending", "failed"]))
                why = "the ledger was restored from a backup, and it may have been sent since that was made"
                held = session.execute(moving.values(state="uncertain", error=why, held_until=None))
                n_held = int(held.rowcount)  # type: ignore[attr-defined]
            ledger.tidy()
        finally:
            ledger.close()
        partial.rename(target)
    finally:
        for beside in (partial, *(partial.with_name(partial.name + end) for end in ("-wal", "-shm"))):
            beside.unlink(missing_ok=True)
    return n_held


def _file(url: str) -> Path:
    """Give the file of an SQLite ledger."""
    if "://" not in url:
        return Path(url)
    parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite":
        raise ValueError(_ELSEWHERE)
    return Path(str(parsed.database))
