"""Revisions of the ledger's tables, by Alembic: a ledger of an earlier version is brought up to date when it is opened.

All of it happens in the one transaction that the caller has begun, so that a ledger is of one revision or of another,
never in between, on SQLite and on PostgreSQL alike. Alembic is imported only where there is something to do.
"""

from __future__ import annotations

import logging
from pathlib import Path

from sqlalchemy import Connection, inspect, text

HEAD = "0002"
"""The revision that this code reads and writes; a new one is a file in ``versions`` and this number."""

BEFORE = "before 0001"
"""What a ledger is called that was made before there were revisions."""

_log = logging.getLogger(__name__)


def revision_of(connection: Connection) -> str:
    """Give the revision that a ledger has; "" where there is no ledger yet."""
    tables = inspect(connection)
    if tables.has_table("alembic_version"):
        return str(connection.execute(text("SELECT version_num FROM alembic_version")).scalar() or "")
    return BEFORE if tables.has_table("layout") else ""


def upgrade(connection: Connection) -> None:
    """Make all tables, or bring those of an earlier revision up to date.

    Raises
    ------
    ValueError
        If they are of a revision that this code does not know.
    """
    found = revision_of(connection)
    if found == HEAD:
        return
    from alembic.operations import Operations
    from alembic.runtime.migration import MigrationContext
    from alembic.script import ScriptDirectory

    script = ScriptDirectory(str(Path(__file__).parent))
    known = [one.revision for one in script.walk_revisions()]
    if found not in ("", BEFORE, *known):
        raise ValueError(f"revision {found}")
    done = found if found in known else "base"
    context = MigrationContext.configure(connection)
    with Operations.context(context):
        for revision in reversed(list(script.iterate_revisions("head", done))):
            if revision.revision != found:
                revision.module.upgrade()
                context.stamp(script, revision.revision)
    if found:
        _log.warning("The ledger was brought from revision %s to %s", found, HEAD)
