"""A user's settings, and their table of people and topics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from kinfolk_assistant.features.people import ContactLike
from kinfolk_assistant.ledger.deeds import tell
from kinfolk_assistant.ledger.tables import VETOES, Contact
from kinfolk_assistant.ledger.users import known_zone, lock_user
from kinfolk_assistant.service.weighing import costs_of, weigh_again
from kinfolk_assistant.speech.catalogue import languages
from kinfolk_assistant.speech.manner import CLOCKS

_COSTS = ("cost_false_accept", "cost_false_decline", "cost_ask")
_TEXTS = {"name": 200, "places": 10_000}
_WHOLE = {"daily_cap": (0, 1000), "undo_minutes": (0, 1440), "undo_seconds": (0, 600), "week_start": (0, 6)}
_MOST_CONTACTS = 5000


def change(session: Session, address: str, fields: Mapping[str, Any], now: datetime) -> None:
    """Change a user's settings, all or none.

    Raises
    ------
    ValueError
        If there is no such setting, or a value is not one that it can have.
    """
    user = lock_user(session, address)
    changed = {name: _checked(name, value) for name, value in fields.items()}
    changed = {name: value for name, value in changed.items() if getattr(user, name) != value}
    for name, value in changed.items():
        setattr(user, name, value)
    costs_of(user).loss()
    if any(name in changed for name in _COSTS):
        weigh_again(session, user, now)
    for name, value in changed.items():
        shown = "" if name == "places" else f" to {value}"
        tell(session, user.address, now, "user", "settings", f"You changed {name.replace('_', ' ')}{shown}.")


def read_contacts(session: Session, user: str) -> list[Contact]:
    """Give a user's table of people and topics."""
    return list(session.scalars(select(Contact).where(Contact.user == user).order_by(Contact.kind, Contact.key)))


def set_contacts(session: Session, address: str, contacts: Sequence[ContactLike], now: datetime) -> None:
    """Put a table in the place of a user's."""
    if len(contacts) > _MOST_CONTACTS:
        raise ValueError(
            f"The table of people and topics has {len(contacts)} rows; at most {_MOST_CONTACTS} are taken."
        )
    user = lock_user(session, address)
    session.execute(delete(Contact).where(Contact.user == user.address))
    for one in contacts:
        session.add(
            Contact(
                user=user.address,
                kind=one.kind,
                key=one.key,
                job=one.job or "other",
                relation=one.relation or "other",
                importance=one.importance or "other",
            )
        )
    tell(session, user.address, now, "user", "settings", f"You set {len(contacts)} people and topics.")


def _checked(name: str, value: Any) -> Any:
    if name in _COSTS and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if name in _TEXTS and isinstance(value, str) and len(value) <= _TEXTS[name]:
        return value
    if name == "zone":
        return known_zone(str(value)).key
    if name == "vetoes" and isinstance(value, str) and set(value.split()) <= set(VETOES.split()):
        return " ".join(one for one in VETOES.split() if one in value.split())
    if name == "answers" and value in ("both", "accept", "decline"):
        return value
    if name == "digest_hour" and (value is None or (isinstance(value, int) and 0 <= value < 24)):
        return value
    if name == "language" and (value == "" or value in languages()):
        return value
    if name == "clock" and value in CLOCKS:
        return value
    if name == "automation" and isinstance(value, bool):
        return value
    if name in _WHOLE and isinstance(value, int) and not isinstance(value, bool):
        low, high = _WHOLE[name]
        if low <= value <= high:
            return value
        raise ValueError(f"The setting {name} is {value}; it needs to be from {low} to {high}.")
    if name in (*_COSTS, *_TEXTS, *_WHOLE, "automation", "vetoes", "answers", "digest_hour", "language", "clock"):
        raise ValueError(f"The setting {name} cannot be {str(value)[:80]!r}.")
    raise ValueError(f"There is no setting {name!r}.")
