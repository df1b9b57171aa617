"""What every way of sending an answer has in common: what is sent, and what is said where it could not be."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple, Protocol, runtime_checkable


class NotDelivered(Exception):
    """An answer that was not sent, with one sentence that says why; it may be tried again."""


class PerhapsDelivered(NotDelivered):
    """An answer of which it cannot be known whether it was sent; only its user may have it sent again."""


class Outgoing(NamedTuple):
    """An answer on its way, the same at every attempt."""

    reply_id: int
    """The reply's number in the ledger."""
    user: str
    """The address of the one who answers."""
    organiser: str
    """The address of the one who is answered."""
    uid: str
    """Which meeting."""
    recurrence_id: str
    """Which occurrence of it, "" for all."""
    answer: str
    """ACCEPTED, DECLINED or TENTATIVE; COUNTER where another time is proposed."""
    text: str
    """The iTIP REPLY (RFC 5546 3.2.3) or COUNTER (3.2.7)."""
    request_text: str
    """The invitation as it came."""
    source_ref: str
    """Where it came from: a path on the CalDAV server, a mail's Message-ID, or ``google:`` and an event there."""
    message_id: str
    """The Message-ID of the answer where it goes by mail, the same at every attempt."""
    sent_to: str = ""
    """The address of the user's that was invited, where it is not ``user``."""
    made_at: datetime | None = None
    """When it was given; what a service has from before then is another answer."""

    @property
    def attendee(self) -> str:
        """The address by which the user is invited, and answers."""
        return self.sent_to or self.user


class Deliverer(Protocol):
    """A way to send answers.

    Attributes
    ----------
    certain : bool
        Whether `deliver` may be called again for the same answer without harm: after a crash nobody knows whether the
        first call had done its work.
    """

    @property
    def certain(self) -> bool:
        """Whether a repeated call does no harm."""
        ...

    def deliver(self, outgoing: Outgoing) -> None:
        """Send an answer.

        Raises
        ------
        NotDelivered
            With one sentence, where it was not sent (of the kind `PerhapsDelivered` where that cannot be known).
        """
        ...


@runtime_checkable
class Chooser(Protocol):
    """Sends each answer by one of several ways."""

    def route(self, outgoing: Outgoing) -> Deliverer:
        """Choose the way that an answer takes."""
        ...


@runtime_checkable
class Proposer(Protocol):
    """Says whether it can propose other times: mail can, calendar servers cannot (RFC 6638 has no COUNTER)."""

    def proposes(self, user: str) -> bool:
        """Whether other times can be proposed in a user's name."""
        ...


def may_propose(deliverer: Deliverer, user: str) -> bool:
    """Whether other times can be proposed this way in a user's name."""
    return not isinstance(deliverer, Proposer) or deliverer.proposes(user)


def may_repeat(deliverer: Deliverer, outgoing: Outgoing) -> bool:
    """Whether an answer may be sent again of which nobody knows whether it was sent, as after a crash."""
    return deliverer.route(outgoing).certain if isinstance(deliverer, Chooser) else deliverer.certain
