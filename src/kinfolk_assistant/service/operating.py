"""What an administrator does and sees: one switch for everything, users shut out, the queue, what is kept how long."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import delete, func, or_, select
from sqlalchemy.orm import Session

from kinfolk_assistant.ledger.deeds import ask_for_training, tell
from kinfolk_assistant.ledger.tables import Deed, Entry, Model, Reply, Request, Switch, User
from kinfolk_assistant.ledger.tables import Session as Signed
from kinfolk_assistant.ledger.users import lock_user
from kinfolk_assistant.reading.trust import Trust

STOPPED = "the administrator has stopped all automatic answers"
DISABLED = "the administrator has shut your account"
_STOP = "stop"
_STATES = ("prepared", "sending", "failed", "uncertain", "sent", "withdrawn")


class UserStatus(NamedTuple):
    """How it stands with one user; nothing of their meetings."""

    address: str
    automation: bool
    disabled: bool
    open: int
    unsent: int
    visited_at: datetime | None
    visit_error: str
    calendar_read_at: datetime | None


class Counts(NamedTuple):
    """How much of what there is, of all users together."""

    users: int
    automated: int
    disabled: int
    open: int
    undecided: int
    replies: dict[str, int]
    failing_visits: int
    models: int
    learnt_at: datetime | None
    stopped: bool


class Pruned(NamedTuple):
    """How many rows were too old."""

    requests: int
    deeds: int
    entries: int


def stop(session: Session, now: datetime) -> None:
    """Let no automatic answer leave from now on, for anybody."""
    if not is_stopped(session):
        session.add(Switch(name=_STOP, since=now))


def resume(session: Session) -> None:
    """Let automatic answers leave again."""
    session.execute(delete(Switch).where(Switch.name == _STOP))


def is_stopped(session: Session) -> bool:
    """Whether the administrator has stopped all automatic answers."""
    return session.get(Switch, _STOP) is not None


def halted(session: Session, user: User) -> str:
    """Why no automatic answer leaves for a user now, whatever was prepared; "" where one may."""
    if user.disabled_at is not None:
        return DISABLED
    return STOPPED if is_stopped(session) else ""


def in_shadow(user: User, trust: Trust, now: datetime) -> str:
    """Why nothing is sent automatically for somebody who is new; "" where they are not.

    Examples
    --------
    >>> from datetime import UTC
    >>> new = User(address="ann@example.org", made_at=datetime(2026, 3, 1, tzinfo=UTC))
    >>> in_shadow(new, Trust(shadow_days=14), datetime(2026, 3, 5, 12, tzinfo=UTC))
    'in the first 14 days it only shows what it would do: 10 days more'
    """
    left = user.made_at + timedelta(days=trust.shadow_days) - now
    if not trust.shadow_days or left <= timedelta(0):
        return ""
    days = max(1, -(-left // timedelta(days=1)))
    return f"in the first {trust.shadow_days} days it only shows what it would do: {days} days more"


def disable(session: Session, address: str, now: datetime) -> None:
    """Shut a user out: all sessions end, nobody signs in, and nothing is sent for them."""
    user = lock_user(session, address)
    user.disabled_at = user.disabled_at or now
    session.execute(delete(Signed).where(Signed.user == user.address))
    tell(session, user.address, now, "assistant", "disabled", "The administrator has shut this account.")


def enable(session: Session, address: str, now: datetime) -> None:
    """Let a user in again."""
    user = lock_user(session, address)
    user.disabled_at = None
    tell(session, user.address, now, "assistant", "disabled", "The administrator has opened this account again.")


def note_visit(session: Session, address: str, now: datetime, error: str = "") -> None:
    """Write down that a user's server was visited, and what went wrong."""
    user = lock_user(session, address)
    user.visited_at, user.visit_error = now, error[:500]


def users(session: Session) -> list[UserStatus]:
    """Say how it stands with every user."""
    of_users = select(Request.user, func.count()).group_by(Request.user)
    waiting = dict(_pairs(session, of_users.where(Request.state == "open")))
    on_the_way = of_users.join(Reply, Reply.request_id == Request.id)
    unsent = dict(_pairs(session, on_the_way.where(Reply.state.in_(["prepared", "failed", "uncertain"]))))
    return [
        UserStatus(
            one.address,
            one.automation,
            one.disabled_at is not None,
            waiting.get(one.address, 0),
            unsent.get(one.address, 0),
            one.visited_at,
            " ".join(filter(None, (one.visit_error, one.mail_error))),
            one.calendar_read_at,
        )
        for one in session.scalars(select(User).order_by(User.address))
    ]


def counts(session: Session) -> Counts:
    """Count what there is."""

    def number(table: type[User | Request | Model], *where: object) -> int:
        return session.scalars(select(func.count()).select_from(table).where(*where)).one()  # type: ignore[arg-type]

    replies = dict(_pairs(session, select(Reply.state, func.count()).group_by(Reply.state)))
    return Counts(
        number(User),
        number(User, User.automation.is_(True)),
        number(User, User.disabled_at.is_not(None)),
        number(Request, Request.state == "open"),
        number(Request, Request.state == "open", Request.decided.is_(False)),
        {state: replies.get(state, 0) for state in _STATES},
        number(User, or_(User.visit_error != "", User.mail_error != "")),
        number(Model),
        session.scalars(select(func.max(Model.made_at))).one(),
        is_stopped(session),
    )


def prune(session: Session, older_than: timedelta, now: datetime) -> Pruned:
    """Delete what is older: requests whose meeting is over, lines of the ledger, entries that are gone or over.

    What was learnt from such requests is gone from the models once they are fitted anew, which is asked for.
    """
    before = now - older_than
    # The number is told by the rows themselves: databases differ in what they say of a deletion.
    old = select(Request.id).where(Request.ends_at < before, Request.received_at < before, Request.recurs.is_not(True))
    requests = list(session.scalars(old))
    for first in range(0, len(requests), 500):
        session.execute(delete(Request).where(Request.id.in_(requests[first : first + 500])))
    deeds = list(session.scalars(select(Deed.id).where(Deed.at < before)))
    for first in range(0, len(deeds), 500):
        session.execute(delete(Deed).where(Deed.id.in_(deeds[first : first + 500])))
    over = or_(Entry.gone_at < before, (Entry.ends_at < before) & Entry.recurs.is_(False))
    entries = list(session.scalars(select(Entry.id).where(over)))
    for first in range(0, len(entries), 500):
        session.execute(delete(Entry).where(Entry.id.in_(entries[first : first + 500])))
    if requests:
        ask_for_training(session, now, "retention")
    return Pruned(len(requests), len(deeds), len(entries))


def _pairs(session: Session, query: object) -> list[tuple[str, int]]:
    return [(row[0], row[1]) for row in session.execute(query)]  # type: ignore[call-overload]
