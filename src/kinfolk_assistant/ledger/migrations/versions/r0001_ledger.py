"""The ledger as it was when revisions began: made, or completed where it has one of the ten layouts before that.

A layout differs from the one before it by columns, indexes and tables that were added. A new column has a default for
the rows that are there, so an old ledger opens at once, however large.
"""

from __future__ import annotations

from alembic import op
from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Connection,
    DateTime,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    false,
    inspect,
    text,
)
from sqlalchemy.schema import CreateColumn

revision = "0001"
down_revision = None

LAYOUT = 10
LEDGER = MetaData()
MOMENT = DateTime(timezone=True)

Table(
    "users",
    LEDGER,
    Column("address", String(320), primary_key=True),
    Column("name", String, nullable=False),
    Column("password_hash", String),
    Column("zone", String, nullable=False),
    Column("language", String(3), nullable=False, server_default=""),
    Column("clock", String(2), nullable=False, server_default="24"),
    Column("week_start", Integer, nullable=False, server_default="0"),
    Column("places", Text, nullable=False),
    Column("calendar_read_at", MOMENT),
    Column("agreed_at", MOMENT),
    Column("automation", Boolean, nullable=False),
    Column("disabled_at", MOMENT),
    Column("visited_at", MOMENT),
    Column("visit_error", Text, nullable=False, server_default=""),
    Column("mail_read_at", MOMENT),
    Column("mail_error", Text, nullable=False, server_default=""),
    Column("vetoes", String, nullable=False, server_default="overlap night weekend stranger"),
    Column("answers", String(8), nullable=False, server_default="both"),
    Column("daily_cap", Integer, nullable=False),
    Column("undo_minutes", Integer, nullable=False),
    Column("undo_seconds", Integer, nullable=False, server_default="20"),
    Column("digest_hour", Integer),
    Column("digest_day", String(10), nullable=False, server_default=""),
    Column("cost_false_accept", Double, nullable=False),
    Column("cost_false_decline", Double, nullable=False),
    Column("cost_ask", Double, nullable=False),
    Column("made_at", MOMENT, nullable=False),
)
Table(
    "sessions",
    LEDGER,
    Column("token_hash", String(64), primary_key=True),
    Column("user", String(320), ForeignKey("users.address", ondelete="CASCADE"), nullable=False, index=True),
    Column("csrf", String, nullable=False),
    Column("expires_at", MOMENT, nullable=False),
)
Table(
    "accounts",
    LEDGER,
    Column("user", String(320), ForeignKey("users.address", ondelete="CASCADE"), primary_key=True),
    Column("kind", String(6), primary_key=True),
    Column("url", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("sealed", Text, nullable=False),
    Column("made_at", MOMENT, nullable=False),
)
Table(
    "aliases",
    LEDGER,
    Column("address", String(320), primary_key=True),
    Column("user", String(320), ForeignKey("users.address", ondelete="CASCADE"), nullable=False, index=True),
)
Table(
    "positions",
    LEDGER,
    Column("user", String(320), ForeignKey("users.address", ondelete="CASCADE"), primary_key=True),
    Column("validity", BigInteger, nullable=False),
    Column("uid", BigInteger, nullable=False),
)
Table(
    "contacts",
    LEDGER,
    Column("id", Integer, primary_key=True),
    Column("user", String(320), ForeignKey("users.address", ondelete="CASCADE"), nullable=False, index=True),
    Column("kind", String, nullable=False),
    Column("key", String, nullable=False),
    Column("job", String, nullable=False),
    Column("relation", String, nullable=False),
    Column("importance", String, nullable=False),
    UniqueConstraint("user", "kind", "key"),
)
Table(
    "rules",
    LEDGER,
    Column("id", Integer, primary_key=True),
    Column("user", String(320), ForeignKey("users.address", ondelete="CASCADE"), nullable=False, index=True),
    Column("verdict", String(8), nullable=False),
    Column("organiser", String, nullable=False),
    Column("domain", String, nullable=False),
    Column("topic", String, nullable=False),
    Column("weekdays", String(7), nullable=False),
    Column("from_hour", Integer),
    Column("to_hour", Integer),
    Column("shortest", Integer),
    Column("longest", Integer),
    Column("conflict", String(3), nullable=False),
    Column("series", String(3), nullable=False),
    Column("made_at", MOMENT, nullable=False),
)
Table(
    "entries",
    LEDGER,
    Column("id", Integer, primary_key=True),
    Column("user", String(320), ForeignKey("users.address", ondelete="CASCADE"), nullable=False, index=True),
    Column("uid", String, nullable=False),
    Column("text", Text, nullable=False),
    Column("href", String, nullable=False),
    Column("etag", String, nullable=False),
    Column("seen_at", MOMENT, nullable=False),
    Column("gone_at", MOMENT),
    Column("starts_at", MOMENT),
    Column("ends_at", MOMENT),
    Column("recurs", Boolean),
    UniqueConstraint("user", "uid"),
    Index("entries_by_time", "user", "ends_at", "starts_at"),
)
Table(
    "requests",
    LEDGER,
    Column("id", Integer, primary_key=True),
    Column("user", String(320), ForeignKey("users.address", ondelete="CASCADE"), nullable=False),
    Column("uid", String, nullable=False),
    Column("recurrence_id", String, nullable=False),
    Column("sequence", Integer, nullable=False),
    Column("stamp", MOMENT),
    Column("received_at", MOMENT, nullable=False),
    Column("organiser", String, nullable=False),
    Column("organiser_name", String, nullable=False),
    Column("summary", Text, nullable=False),
    Column("location", Text, nullable=False),
    Column("starts_at", MOMENT, nullable=False),
    Column("ends_at", MOMENT, nullable=False),
    Column("all_day", Boolean, nullable=False),
    Column("text", Text, nullable=False),
    Column("source", String, nullable=False),
    Column("source_ref", String, nullable=False),
    Column("sender", String(320), nullable=False, server_default=""),
    Column("origin", JSON),
    Column("state", String(12), nullable=False),
    Column("sent_to", String(320), nullable=False, server_default=""),
    Column("snoozed_until", MOMENT),
    Column("decided", Boolean, nullable=False, server_default=false()),
    Column("recurs", Boolean),
    Column("features", JSON),
    Column("unknown", JSON),
    Column("label", String(8)),
    UniqueConstraint("user", "uid", "recurrence_id", "sequence"),
    Index("requests_by_organiser", "user", "organiser"),
    Index("requests_by_sender", "user", "sender", "received_at"),
    Index("requests_by_state", "state", "user"),
    Index("requests_by_time", "user", "ends_at", "starts_at"),
    Index("requests_in_order", "user", "state", "received_at"),
    Index("requests_undecided", "state", "decided", "user", "received_at"),
    sqlite_autoincrement=True,
)
Table(
    "cancellations",
    LEDGER,
    Column("id", Integer, primary_key=True),
    Column("user", String(320), ForeignKey("users.address", ondelete="CASCADE"), nullable=False),
    Column("uid", String, nullable=False),
    Column("recurrence_id", String, nullable=False),
    Column("organiser", String, nullable=False),
    Column("sequence", Integer, nullable=False),
    Column("stamp", MOMENT),
    Column("received_at", MOMENT, nullable=False),
    UniqueConstraint("user", "uid", "recurrence_id", "organiser"),
)
Table(
    "models",
    LEDGER,
    Column("id", Integer, primary_key=True),
    Column("owner", String(320), ForeignKey("users.address", ondelete="CASCADE"), index=True),
    Column("made_at", MOMENT, nullable=False),
    Column("n_rows", Integer, nullable=False),
    Column("users", JSON, nullable=False),
    Column("archive", LargeBinary, nullable=False),
    sqlite_autoincrement=True,
)
Table(
    "decisions",
    LEDGER,
    Column("id", Integer, primary_key=True),
    Column("request_id", Integer, ForeignKey("requests.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("made_at", MOMENT, nullable=False),
    Column("action", String(8), nullable=False),
    Column("probability", Double),
    Column("expected_losses", JSON, nullable=False),
    Column("reasons", JSON, nullable=False),
    Column("kin", JSON, nullable=False),
    Column("model_id", Integer),
    Column("shadow", Boolean, nullable=False),
    Column("why", Text, nullable=False, server_default=""),
    Column("rule", Text, nullable=False, server_default=""),
    sqlite_autoincrement=True,
)
Table(
    "replies",
    LEDGER,
    Column("id", Integer, primary_key=True),
    Column("request_id", Integer, ForeignKey("requests.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("once", Integer, unique=True),
    Column("by", String(9), nullable=False),
    Column("answer", String(12), nullable=False),
    Column("text", Text, nullable=False),
    Column("state", String(10), nullable=False),
    Column("made_at", MOMENT, nullable=False),
    Column("due_at", MOMENT, nullable=False),
    Column("sent_at", MOMENT),
    Column("attempts", Integer, nullable=False),
    Column("held_until", MOMENT),
    Column("error", Text, nullable=False),
    Index("replies_due", "state", "due_at"),
    sqlite_autoincrement=True,
)
Table(
    "deeds",
    LEDGER,
    Column("id", Integer, primary_key=True),
    Column("user", String(320), ForeignKey("users.address", ondelete="CASCADE"), nullable=False),
    Column("at", MOMENT, nullable=False),
    Column("by", String(9), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("request_id", Integer, ForeignKey("requests.id", ondelete="CASCADE"), index=True),
    Column("text", Text, nullable=False),
    Index("deeds_in_order", "user", "id"),
    sqlite_autoincrement=True,
)
Table(
    "askings",
    LEDGER,
    Column("id", Integer, primary_key=True),
    Column("at", MOMENT, nullable=False),
    Column("why", String(16), nullable=False),
    sqlite_autoincrement=True,
)
Table(
    "leases",
    LEDGER,
    Column("name", String(32), primary_key=True),
    Column("holder", String(64), nullable=False),
    Column("until", MOMENT),
)
Table(
    "switches",
    LEDGER,
    Column("name", String(16), primary_key=True),
    Column("since", MOMENT, nullable=False),
)
Table(
    "layout",
    LEDGER,
    Column("version", Integer, primary_key=True),
)

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
_FILLED = {
    6: "UPDATE requests SET decided = true WHERE EXISTS (SELECT 1 FROM decisions WHERE request_id = requests.id)",
}


def upgrade() -> None:
    """Make what is missing.

    Raises
    ------
    ValueError
        If the tables are of a layout that nobody made.
    """
    connection = op.get_bind()
    is_new = not inspect(connection).has_table("layout")
    found = None if is_new else connection.execute(text("SELECT max(version) FROM layout")).scalar()
    if found is not None and not 1 <= found <= LAYOUT:
        raise ValueError(f"layout {found}")
    lacking = range(LAYOUT + 1 if found is None else found + 1, LAYOUT + 1)
    for layout in lacking:
        for column in _ADDED[layout]:
            _add(connection, column)
    LEDGER.create_all(connection)
    for table in LEDGER.sorted_tables:
        for index in table.indexes:
            index.create(connection, checkfirst=True)
    for layout in lacking:
        if layout in _FILLED:
            connection.execute(text(_FILLED[layout]))
    if found is None:
        connection.execute(text("INSERT INTO leases (name, holder) VALUES ('models', '')"))
        connection.execute(text("INSERT INTO layout (version) VALUES (:now)"), {"now": LAYOUT})
    else:
        connection.execute(text("UPDATE layout SET version = :now"), {"now": LAYOUT})


def _add(connection: Connection, name: str) -> None:
    table, _, column = name.partition(".")
    made = CreateColumn(LEDGER.tables[table].columns[column]).compile(dialect=connection.dialect)
    connection.execute(text(f"ALTER TABLE {table} ADD COLUMN {made}"))
