"""The ledger's store: one SQLite file in WAL mode, or a PostgreSQL database where a URL is given."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.orm import Session

from kinfolk_assistant.ledger.migrations import HEAD, revision_of, upgrade

MODELS = "models"
"""The lease of the one process that learns; its row is also the lock of everything that makes or deletes models."""

_BUSY_SECONDS = 30
# Any number will do as long as all processes agree on it.
_LAYING_OUT = 0x6B696E66


class Ledger:
    """Everything the assistant knows and did.

    Parameters
    ----------
    url : str
        A path makes (or opens) an SQLite file; a URL such as ``postgresql://user@host/name`` opens a PostgreSQL
        database.

    Raises
    ------
    ValueError
        If the URL is of another database, or the tables are of another version of this program.

    Examples
    --------
    >>> import tempfile
    >>> from kinfolk_assistant.ledger.users import find_user, make_user
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger(f"{folder.name}/ledger.db")
    >>> with ledger.begin() as session:
    ...     _ = make_user(session, "ann@example.org", zone="Europe/Berlin")
    >>> with ledger.read() as session:
    ...     find_user(session, "ann@example.org").zone
    'Europe/Berlin'
    >>> ledger.close()
    >>> folder.cleanup()
    """

    def __init__(self, url: str) -> None:
        self.engine = _engine(url)
        self._readers = self.engine
        self._writers = self.engine.execution_options(writes=True)
        if self.engine.dialect.name == "postgresql":
            # One snapshot for a whole reading transaction, as SQLite gives it.
            self._readers = self.engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        try:
            self._lay_out()
        except DBAPIError as error:
            self.engine.dispose()
            said = str(error.orig).strip().splitlines() or ["no reason given"]
            raise OSError(f"The ledger {self.engine.url!r} cannot be opened: {said[0].rstrip('.')}.") from None
        except BaseException:
            self.engine.dispose()
            raise

    @contextmanager
    def begin(self) -> Iterator[Session]:
        """Give a session that writes, in one transaction: kept as a whole at the end, or not at all."""
        with Session(self._writers, expire_on_commit=False) as session, session.begin():
            yield session

    @contextmanager
    def read(self) -> Iterator[Session]:
        """Give a session that only reads, of one moment; it waits for no writer and holds none up."""
        with Session(self._readers, expire_on_commit=False) as session, session.begin():
            yield session

    def tidy(self) -> None:
        """Empty SQLite's write-ahead log as far as readers allow, so that what was erased is in no file."""
        if self.engine.dialect.name == "sqlite":
            with self.engine.connect() as connection:
                driver: Any = connection.connection.driver_connection
                driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    def _lay_out(self) -> None:
        with self._writers.begin() as connection:
            if self.engine.dialect.name == "postgresql":
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LAYING_OUT})
            try:
                upgrade(connection)
            except ValueError as unknown:
                raise ValueError(
                    f"The ledger {self.engine.url!r} was made by another version of kinfolk "
                    f"(it is of {unknown}, and this one knows {HEAD}); open it with that version."
                ) from None


def look_at_revision(url: str) -> str:
    """Give the revision that a ledger has, without bringing it up to date; "" where there is none yet."""
    if "://" not in url and not Path(url).exists():
        return ""
    engine = _engine(url)
    try:
        with engine.connect() as connection:
            return revision_of(connection)
    finally:
        engine.dispose()


def _engine(url: str) -> Engine:
    if "://" not in url:
        return _sqlite(Path(url))
    try:
        parsed = make_url(url)
    except ArgumentError:
        # The URL is not repeated: it may hold a password.
        raise ValueError("The ledger's URL is neither a path nor a postgresql:// URL.") from None
    if parsed.get_backend_name() == "sqlite" and parsed.database:
        return _sqlite(Path(parsed.database))
    if parsed.get_backend_name() != "postgresql":
        raise ValueError(f"The ledger {parsed!r} is neither a path nor a postgresql:// URL.")
    driven = parsed.set(drivername="postgresql+psycopg")
    try:
        return create_engine(driven, pool_size=10, max_overflow=40, pool_pre_ping=True)
    except ModuleNotFoundError:
        raise ImportError(
            "a PostgreSQL ledger needs psycopg, which is not installed: pip install 'kinfolk[postgresql]'"
        ) from None


def _sqlite(path: Path) -> Engine:
    # Meetings are private: the file is its owner's alone, and SQLite gives the files beside it the same rights.
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise OSError(f"The ledger {str(path)!r} cannot be opened: {error.strerror}.") from None
    engine = create_engine(f"sqlite:///{path}", pool_size=10, max_overflow=40, connect_args={"timeout": _BUSY_SECONDS})
    event.listen(engine, "connect", _prepare)
    event.listen(engine, "begin", _begin)
    return engine


def _prepare(connection: Any, record: object) -> None:
    # The driver must not begin transactions by itself: `_begin` does.
    connection.isolation_level = None
    for pragma in (
        "journal_mode = WAL",
        # With NORMAL, a power cut could undo "sending" after the answer had left.
        "synchronous = FULL",
        "foreign_keys = ON",
        # What is erased is overwritten.
        "secure_delete = ON",
    ):
        connection.execute(f"PRAGMA {pragma}")


def _begin(connection: Connection) -> None:
    # A writer takes the lock at once: a transaction that reads first could not be turned into a writer later.
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
