"""Calendars at Google and Microsoft 365 that users have connected, with their sealed refresh tokens."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, DateTime, ForeignKey, String, Text

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the table, and let programs of before the revisions find that the ledger is not theirs."""
    op.create_table(
        "connections",
        Column("user", String(320), ForeignKey("users.address", ondelete="CASCADE"), primary_key=True),
        Column("service", String(9), nullable=False),
        Column("account", String(320), nullable=False),
        Column("sealed", Text, nullable=False),
        Column("broken", Text, nullable=False, server_default=""),
        Column("made_at", DateTime(timezone=True), nullable=False),
    )
    # Those look for a number up to 10 here, and take a ledger without this table for a new one.
    op.execute("UPDATE layout SET version = 11")
