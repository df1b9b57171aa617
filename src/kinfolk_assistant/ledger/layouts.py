"""Layouts of the ledger's tables: one of an earlier version is brought up to date when it is opened.

A layout differs from the one before it by columns, indexes and tables that were added, never by one that has changed
its meaning. A new column has a default for the rows that are there, so an old ledger opens at once, however large.
"""

from __future__ import annotations

from sqlalchemy import Connection, Update, exists, inspect, text, update
from sqlalchemy.schema import CreateColumn

from kinfolk_assistant.ledger.tables import Decision, Request, Table

# What each layout has added to the one before: columns of tables that were there. New tables and new indexes need no
# mention: whatever is missing of them is made.
_ADDED: dict[int, tuple[str, ...]] = {
    2: ("decisions.why",),
    3: ("users.calendar_read_at",),
    4: ("requests.origin", "requests.sender"),
    5: ("users.vetoes", "users.answers", "decisions.rule"),
    6: ("requests.decided", "requests.recurs", "entries.starts_at", "entries.ends_at", "entries.recurs"),
    7: ("users.disabled_at", "users.visited_at", "users.visit_error"),
    8: ("users.undo_seconds", "users.digest_hour", "users.digest_day", "requests.snoozed_until"),
    9: ("users.language", "users.clock", "users.week_start"),
    10: ("users.mail_read_at", "users.mail_error", "requests.sent_to"),
}

# What the new columns of a layout hold for the rows that are there, where that is not their default.
_FILLED: dict[int, Update] = {
    6: update(Request).where(exists().where(Decision.request_id == Request.id)).values(decided=True),
}

LAYOUT = max(_ADDED)
"""The version of the tables that this code reads and writes."""


def bring_up_to_date(connection: Connection) -> bool:
    """Make all tables, or add to those of an earlier layout what they lack; False where they are of a later one."""
    is_new = not inspect(connection).has_table("layout")
    found = None if is_new else connection.execute(text("SELECT max(version) FROM layout")).scalar()
    if found is not None and not 1 <= found <= LAYOUT:
        return False
    for layout in range(LAYOUT if found is None else found + 1, LAYOUT + 1):
        if found is not None:
            for column in _ADDED[layout]:
                _add(connection, column)
    Table.metadata.create_all(connection)
    if found is not None and found < LAYOUT:
        for layout in range(found + 1, LAYOUT + 1):
            if layout in _FILLED:
                connection.execute(_FILLED[layout])
        _add_indexes(connection)
        connection.execute(text("UPDATE layout SET version = :now"), {"now": LAYOUT})
    return True


def _add(connection: Connection, name: str) -> None:
    table, _, column = name.partition(".")
    made = CreateColumn(Table.metadata.tables[table].columns[column]).compile(dialect=connection.dialect)
    connection.execute(text(f"ALTER TABLE {table} ADD COLUMN {made}"))


def _add_indexes(connection: Connection) -> None:
    """Make the indexes that tables of an earlier layout do not have."""
    for table in Table.metadata.sorted_tables:
        for index in table.indexes:
            index.create(connection, checkfirst=True)
