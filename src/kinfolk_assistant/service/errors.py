"""What cannot be done now, said in one sentence."""

from __future__ import annotations

from kinfolk_assistant.ledger.users import NotYours

__all__ = ["NotNow", "NotYours"]


class NotNow(ValueError):
    """Something that cannot be done in the state that things are in, with one sentence that says why."""
