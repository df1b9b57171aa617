"""What the assistant gives to pages and commands: plain values, already read from the ledger."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from kinfolk_assistant.ledger.tables import Deed


class Prepared(NamedTuple):
    """A request of the inbox with the answer prepared for it."""

    id: int
    summary: str
    organiser: str
    organiser_name: str
    starts_at: datetime
    ends_at: datetime
    all_day: bool
    location: str
    received_at: datetime
    action: str
    """"accept", "decline" or "ask"; "" before anything is decided."""
    probability: float | None
    state: str
    reply_state: str
    """The state of the latest reply; "" where there is none."""
    conflict: bool
    snoozed_until: datetime | None
    """Where the user has put it off: until when it is not shown."""


class Answered(NamedTuple):
    """One reply to a request, as its page shows it."""

    id: int
    by: str
    answer: str
    state: str
    made_at: datetime
    due_at: datetime
    sent_at: datetime | None
    error: str
    tries_again: bool
    """Whether one that failed will be tried again by itself."""


class Detail(NamedTuple):
    """A request with everything that is known of it: :class:`Prepared` and what speaks for its answer."""

    id: int
    summary: str
    organiser: str
    organiser_name: str
    starts_at: datetime
    ends_at: datetime
    all_day: bool
    location: str
    received_at: datetime
    action: str
    probability: float | None
    state: str
    reply_state: str
    conflict: bool
    snoozed_until: datetime | None
    label: str | None
    """What the user answered by hand."""
    shadow: bool
    """Whether the decision is only shown."""
    why: str
    """Why it is asked or only shown; "" where nothing but the costs decided."""
    at_organiser: str
    """"accept" or "decline": what the organiser has, or may have, though the request is open again; else ""."""
    rule: str
    """The user's own rule that decided, in words; "" where none did."""
    features: dict[str, str | None]
    unknown: dict[str, str]
    reasons: list[dict[str, Any]]
    """Each with feature, value and log_ratio (above zero: towards accept)."""
    kin: list[dict[str, Any]]
    """Each with user and similarity."""
    expected_losses: dict[str, float]
    replies: list[Answered]
    deeds: list[Deed]


class Preview(NamedTuple):
    """What given costs would do with a user's recent requests."""

    n: int
    accept: int
    decline: int
    ask: int
    answered: int
    """How many of those that would be accepted or declined the user has answered by hand."""
    right: int
    """How many of these the user answered alike."""
    remembered: int
    """Of how many the probability is from a model that may have learnt from the very answer."""


class Tally(NamedTuple):
    """How often an action was chosen for requests that the user then answered, and how often the user did the same."""

    n: int
    right: int


ENOUGH_TO_JUDGE = 30
"""After so many prepared answers that were what the user then did, automation is proposed."""


class Readiness(NamedTuple):
    """Of the latest answers that were prepared and then given by hand: how many there are, and how many were alike."""

    n: int
    right: int

    @property
    def is_ready(self) -> bool:
        """Whether automation may be proposed: no more than one of thirty was otherwise."""
        return self.n >= ENOUGH_TO_JUDGE and self.right >= self.n - 1


class Score(NamedTuple):
    """The record of decisions on requests that the user answered by hand."""

    accept: Tally
    decline: Tally
    asked: int
    automatic: int
    """How many answers the assistant prepared by itself."""
    undone: int
    """How many of these the user took back."""
