"""The tables of the ledger, the same for SQLite and PostgreSQL. All times are UTC."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    DateTime,
    Dialect,
    ForeignKey,
    Index,
    LargeBinary,
    String,
    Text,
    UniqueConstraint,
    false,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.types import TypeDecorator


class Moment(TypeDecorator[datetime]):
    """An aware datetime kept in UTC: SQLite forgets time zones, so they are put back on the way out."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Turn into UTC on the way in."""
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Say that it is UTC on the way out."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Table(DeclarativeBase):
    """Base of all tables."""

    type_annotation_map = {datetime: Moment, dict[str, Any]: JSON, list[Any]: JSON}  # noqa: RUF012


# SQLite would give the number of a deleted row to a new one; a reply or a model must never be taken for another.
NUMBERED = {"sqlite_autoincrement": True}


VETOES = "overlap night weekend stranger"
"""What turns an automatic answer into a question unless its user says otherwise."""


class User(Table):
    """Someone whose invitations are answered, with the settings that are theirs."""

    __tablename__ = "users"

    address: Mapped[str] = mapped_column(String(320), primary_key=True)
    name: Mapped[str] = mapped_column(default="")
    password_hash: Mapped[str | None]
    zone: Mapped[str] = mapped_column(default="UTC")
    # The language of their pages and mails ("": what their browser asks for), a clock of "24" or "12" hours, and the
    # first day of their week (0 is Monday).
    language: Mapped[str] = mapped_column(String(3), default="", server_default="")
    clock: Mapped[str] = mapped_column(String(2), default="24", server_default="24")
    week_start: Mapped[int] = mapped_column(default=0, server_default="0")
    # Words of places that are near for this user, one a line; see the feature "location".
    places: Mapped[str] = mapped_column(Text, default="")
    # When their calendar was last read, whole; None: never, so that nothing is known of what stands in it.
    calendar_read_at: Mapped[datetime | None]
    # Their history helps others from this moment on; None: it does not.
    agreed_at: Mapped[datetime | None]
    automation: Mapped[bool] = mapped_column(default=False)
    # Since when an administrator has shut them out, so that nobody signs in and nothing is sent for them.
    disabled_at: Mapped[datetime | None]
    # When their server was last visited, and what went wrong then; "" where nothing did.
    visited_at: Mapped[datetime | None]
    visit_error: Mapped[str] = mapped_column(Text, default="", server_default="")
    # The same of their mailbox.
    mail_read_at: Mapped[datetime | None]
    mail_error: Mapped[str] = mapped_column(Text, default="", server_default="")
    # What turns an automatic answer into a question, and which answers may be given: "both", "accept" or "decline".
    vetoes: Mapped[str] = mapped_column(default=VETOES, server_default=VETOES)
    answers: Mapped[str] = mapped_column(String(8), default="both", server_default="both")
    daily_cap: Mapped[int] = mapped_column(default=10)
    # An automatic answer waits so long before it is sent, and can be taken back without a trace until then.
    undo_minutes: Mapped[int] = mapped_column(default=10)
    # What they answer on a page waits so many seconds, and can be taken back as well.
    undo_seconds: Mapped[int] = mapped_column(default=20, server_default="20")
    # The hour of their day at which a mail tells what waits (None: there is none), and the day of the last one.
    digest_hour: Mapped[int | None]
    digest_day: Mapped[str] = mapped_column(String(10), default="", server_default="")
    cost_false_accept: Mapped[float] = mapped_column(default=1.0)
    cost_false_decline: Mapped[float] = mapped_column(default=1.0)
    cost_ask: Mapped[float] = mapped_column(default=0.1)
    made_at: Mapped[datetime]


class Session(Table):
    """A browser that is signed in; only a hash of its token is kept."""

    __tablename__ = "sessions"

    token_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    user: Mapped[str] = mapped_column(ForeignKey("users.address", ondelete="CASCADE"), index=True)
    csrf: Mapped[str]
    expires_at: Mapped[datetime]


class Account(Table):
    """A calendar or a mailbox for which a user has entered a password, which is kept sealed."""

    __tablename__ = "accounts"

    user: Mapped[str] = mapped_column(ForeignKey("users.address", ondelete="CASCADE"), primary_key=True)
    kind: Mapped[str] = mapped_column(String(6), primary_key=True)  # "caldav" or "imap"
    url: Mapped[str] = mapped_column(Text)
    name: Mapped[str] = mapped_column(Text)
    sealed: Mapped[str] = mapped_column(Text)
    made_at: Mapped[datetime]


class Connection(Table):
    """A calendar at Google or Microsoft 365 that a user has connected; the refresh token is kept sealed."""

    __tablename__ = "connections"

    user: Mapped[str] = mapped_column(ForeignKey("users.address", ondelete="CASCADE"), primary_key=True)
    service: Mapped[str] = mapped_column(String(9))  # "google" or "microsoft"
    # The address of the account there, which is one of the user's own.
    account: Mapped[str] = mapped_column(String(320))
    sealed: Mapped[str] = mapped_column(Text)
    # Why it has to be made anew; "" while it works.
    broken: Mapped[str] = mapped_column(Text, default="", server_default="")
    made_at: Mapped[datetime]


class Alias(Table):
    """Another address of a user's: what is sent to it is meant for them."""

    __tablename__ = "aliases"

    address: Mapped[str] = mapped_column(String(320), primary_key=True)
    user: Mapped[str] = mapped_column(ForeignKey("users.address", ondelete="CASCADE"), index=True)


class Position(Table):
    """Up to where a user's mailbox was read."""

    __tablename__ = "positions"

    user: Mapped[str] = mapped_column(ForeignKey("users.address", ondelete="CASCADE"), primary_key=True)
    validity: Mapped[int] = mapped_column(BigInteger)
    uid: Mapped[int] = mapped_column(BigInteger)


class Contact(Table):
    """A line of a user's people-and-topics table: a person (address) or a topic (word)."""

    __tablename__ = "contacts"
    __table_args__ = (UniqueConstraint("user", "kind", "key"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    user: Mapped[str] = mapped_column(ForeignKey("users.address", ondelete="CASCADE"), index=True)
    kind: Mapped[str]  # "person" or "topic"
    key: Mapped[str]
    job: Mapped[str] = mapped_column(default="other")
    relation: Mapped[str] = mapped_column(default="other")
    importance: Mapped[str] = mapped_column(default="other")


class Rule(Table):
    """What a user has said once and for all: always accept, never accept, or ask, where all that is named holds."""

    __tablename__ = "rules"

    id: Mapped[int] = mapped_column(primary_key=True)
    user: Mapped[str] = mapped_column(ForeignKey("users.address", ondelete="CASCADE"), index=True)
    verdict: Mapped[str] = mapped_column(String(8))  # "always", "never" or "ask"
    # An address, a domain, or words of the summary; "" where it does not matter.
    organiser: Mapped[str] = mapped_column(default="")
    domain: Mapped[str] = mapped_column(default="")
    topic: Mapped[str] = mapped_column(default="")
    weekdays: Mapped[str] = mapped_column(String(7), default="")  # digits, 0 is Monday
    # Clock times of the start in the user's zone, in hours, from the one to before the other; lengths in minutes.
    from_hour: Mapped[int | None]
    to_hour: Mapped[int | None]
    shortest: Mapped[int | None]
    longest: Mapped[int | None]
    conflict: Mapped[str] = mapped_column(String(3), default="")  # "yes", "no" or ""
    series: Mapped[str] = mapped_column(String(3), default="")
    made_at: Mapped[datetime]


class Entry(Table):
    """An object of a user's calendar as last seen; what it says of its own past is in its text."""

    __tablename__ = "entries"
    __table_args__ = (UniqueConstraint("user", "uid"), Index("entries_by_time", "user", "ends_at", "starts_at"))

    id: Mapped[int] = mapped_column(primary_key=True)
    user: Mapped[str] = mapped_column(ForeignKey("users.address", ondelete="CASCADE"), index=True)
    uid: Mapped[str]
    text: Mapped[str] = mapped_column(Text)
    href: Mapped[str] = mapped_column(default="")
    etag: Mapped[str] = mapped_column(default="")
    seen_at: Mapped[datetime]
    # When it was found to be gone from the calendar; it still counts for the days before.
    gone_at: Mapped[datetime | None]
    # Its first start and last end, and whether it is a series; None where an earlier version did not look.
    starts_at: Mapped[datetime | None]
    ends_at: Mapped[datetime | None]
    recurs: Mapped[bool | None]


class Request(Table):
    """An invitation to one user, once for each version (SEQUENCE) of each meeting."""

    __tablename__ = "requests"
    __table_args__ = (
        UniqueConstraint("user", "uid", "recurrence_id", "sequence"),
        Index("requests_in_order", "user", "state", "received_at"),
        Index("requests_by_state", "state", "user"),
        Index("requests_by_organiser", "user", "organiser"),
        Index("requests_by_sender", "user", "sender", "received_at"),
        Index("requests_undecided", "state", "decided", "user", "received_at"),
        Index("requests_by_time", "user", "ends_at", "starts_at"),
        NUMBERED,
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    user: Mapped[str] = mapped_column(ForeignKey("users.address", ondelete="CASCADE"))
    uid: Mapped[str]
    recurrence_id: Mapped[str] = mapped_column(default="")
    sequence: Mapped[int] = mapped_column(default=0)
    stamp: Mapped[datetime | None]
    received_at: Mapped[datetime]
    organiser: Mapped[str] = mapped_column(default="")
    organiser_name: Mapped[str] = mapped_column(default="")
    summary: Mapped[str] = mapped_column(Text, default="")
    location: Mapped[str] = mapped_column(Text, default="")
    starts_at: Mapped[datetime]
    ends_at: Mapped[datetime]
    all_day: Mapped[bool] = mapped_column(default=False)
    text: Mapped[str] = mapped_column(Text)
    # Where it came from: "history", "file", "mail", "caldav", "google" or "microsoft"; the reference is the server's
    # path, the mail's id, or what the service calls the event.
    source: Mapped[str] = mapped_column(default="file")
    source_ref: Mapped[str] = mapped_column(default="")
    # Of a mail: who sent it, and all that is known of where it comes from.
    sender: Mapped[str] = mapped_column(String(320), default="", server_default="")
    origin: Mapped[dict[str, Any] | None]
    # open → answered, dismissed (put away unanswered), ignored (with all that comes of it later), cancelled or
    # superseded (a later SEQUENCE came); history is never open.
    state: Mapped[str] = mapped_column(String(12), default="open")
    # The address of the user's that it was sent to, where that is not their main one: the answer comes from it.
    sent_to: Mapped[str] = mapped_column(String(320), default="", server_default="")
    # An open one that its user has put off is not shown before then.
    snoozed_until: Mapped[datetime | None]
    # Whether anything is decided about it yet, and whether it is a series (None: an earlier version did not look).
    decided: Mapped[bool] = mapped_column(default=False, server_default=false())
    recurs: Mapped[bool | None]
    # The fifteen features (None: could not be known) and, for those that could not, why.
    features: Mapped[dict[str, Any] | None]
    unknown: Mapped[dict[str, Any] | None]
    # The user's own answer, "accept" or "decline": what the model learns from. None: unlabelled.
    label: Mapped[str | None] = mapped_column(String(8))


class Cancellation(Table):
    """What an organiser has called off, up to which version; kept because a CANCEL may come before its REQUEST."""

    __tablename__ = "cancellations"
    __table_args__ = (UniqueConstraint("user", "uid", "recurrence_id", "organiser"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    user: Mapped[str] = mapped_column(ForeignKey("users.address", ondelete="CASCADE"))
    uid: Mapped[str]
    recurrence_id: Mapped[str] = mapped_column(default="")
    organiser: Mapped[str] = mapped_column(default="")
    sequence: Mapped[int] = mapped_column(default=0)
    stamp: Mapped[datetime | None]
    received_at: Mapped[datetime]


class Model(Table):
    """A fitted model, whole: the shared one, or one of a user who learns from others but does not help them."""

    __tablename__ = "models"
    __table_args__ = (NUMBERED,)

    id: Mapped[int] = mapped_column(primary_key=True)
    owner: Mapped[str | None] = mapped_column(ForeignKey("users.address", ondelete="CASCADE"), index=True)
    made_at: Mapped[datetime]
    n_rows: Mapped[int]
    users: Mapped[list[Any]]
    archive: Mapped[bytes] = mapped_column(LargeBinary)


class Decision(Table):
    """What the assistant decided about a request; the last one counts."""

    __tablename__ = "decisions"
    __table_args__ = (NUMBERED,)

    id: Mapped[int] = mapped_column(primary_key=True)
    request_id: Mapped[int] = mapped_column(ForeignKey("requests.id", ondelete="CASCADE"), index=True)
    made_at: Mapped[datetime]
    action: Mapped[str] = mapped_column(String(8))  # accept, decline or ask
    probability: Mapped[float | None]  # of "accept"; None where nothing is learnt yet
    expected_losses: Mapped[dict[str, Any]]
    reasons: Mapped[list[Any]]
    kin: Mapped[list[Any]]
    model_id: Mapped[int | None]
    shadow: Mapped[bool] = mapped_column(default=True)
    # Why it is asked, or only shown, in words; "" where nothing but the costs decided.
    why: Mapped[str] = mapped_column(Text, default="", server_default="")
    # The user's own rule that decided, in words; "" where none did.
    rule: Mapped[str] = mapped_column(Text, default="", server_default="")


class Reply(Table):
    """An answer on its way to the organiser. ``once`` makes a second one by the assistant impossible."""

    __tablename__ = "replies"
    __table_args__ = (Index("replies_due", "state", "due_at"), NUMBERED)

    id: Mapped[int] = mapped_column(primary_key=True)
    request_id: Mapped[int] = mapped_column(ForeignKey("requests.id", ondelete="CASCADE"), index=True)
    once: Mapped[int | None] = mapped_column(unique=True)  # the request's id where ``by`` is "assistant", else None
    by: Mapped[str] = mapped_column(String(9))  # "assistant" or "user"
    answer: Mapped[str] = mapped_column(String(12))  # ACCEPTED, DECLINED, TENTATIVE, or COUNTER: another time
    text: Mapped[str] = mapped_column(Text)  # the iTIP REPLY or COUNTER, fixed once and for all
    # prepared → sending → sent; withdrawn (undone in time, or cancelled); failed (will be tried again);
    # uncertain (the process died while sending by mail: only the user may send it again)
    state: Mapped[str] = mapped_column(String(10), default="prepared")
    made_at: Mapped[datetime]
    due_at: Mapped[datetime]
    sent_at: Mapped[datetime | None]
    attempts: Mapped[int] = mapped_column(default=0)
    # While "sending": the process that sends it is believed to be alive until then.
    held_until: Mapped[datetime | None]
    error: Mapped[str] = mapped_column(Text, default="")


class Deed(Table):
    """One line of the ledger that a user reads: what was done, when, by whom."""

    __tablename__ = "deeds"
    __table_args__ = (Index("deeds_in_order", "user", "id"), NUMBERED)

    id: Mapped[int] = mapped_column(primary_key=True)
    user: Mapped[str] = mapped_column(ForeignKey("users.address", ondelete="CASCADE"))
    at: Mapped[datetime]
    by: Mapped[str] = mapped_column(String(9))  # "assistant", "user" or "organiser"
    kind: Mapped[str] = mapped_column(String(16))
    request_id: Mapped[int | None] = mapped_column(ForeignKey("requests.id", ondelete="CASCADE"), index=True)
    text: Mapped[str] = mapped_column(Text)


class Asking(Table):
    """A reason to learn anew that no model has heard of yet."""

    __tablename__ = "askings"
    __table_args__ = (NUMBERED,)

    id: Mapped[int] = mapped_column(primary_key=True)
    at: Mapped[datetime]
    why: Mapped[str] = mapped_column(String(16))


class Lease(Table):
    """Work that one process at a time may do, and until when it is believed to be alive."""

    __tablename__ = "leases"

    name: Mapped[str] = mapped_column(String(32), primary_key=True)
    holder: Mapped[str] = mapped_column(String(64), default="")
    until: Mapped[datetime | None]


class Switch(Table):
    """A switch of the administrator's for everybody; one that is thrown has a row."""

    __tablename__ = "switches"

    name: Mapped[str] = mapped_column(String(16), primary_key=True)
    since: Mapped[datetime]
