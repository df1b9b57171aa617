"""The user's hand: answering a request, proposing another time, and taking back what has not left yet."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy.orm import Session

from kinfolk_assistant.ledger.deeds import ask_for_training, tell
from kinfolk_assistant.ledger.requests import LEFT, UNSENT, latest_decision, own_request, replies
from kinfolk_assistant.ledger.tables import Reply, Request, User
from kinfolk_assistant.ledger.users import lock_user
from kinfolk_assistant.reading.reply import make_counter, make_reply
from kinfolk_assistant.service.deciding import ANSWERS
from kinfolk_assistant.service.errors import NotNow
from kinfolk_assistant.service.withdrawing import withdraw_unsent

_OVER = {
    "cancelled": "The organiser has cancelled this meeting; there is nothing to answer.",
    "superseded": "The organiser has changed this meeting since; answer its later version.",
}


CHOICES = {**ANSWERS, "tentative": "TENTATIVE"}
"""What a user can answer by hand, and what it is called in iCalendar."""

MOST_NOTE = 2000
_TOLD = {"accept": "accept", "decline": "decline", "tentative": "tentatively accept"}


def answer(
    session: Session,
    address: str,
    request_id: int,
    choice: str,
    now: datetime,
    note: str = "",
    *,
    can_undo: bool = False,
) -> None:
    """Answer a request by hand: a label for the model, and a reply unless the same answer is on its way already.

    An answer of the assistant's that agrees is confirmed and waits no longer; one that does not is withdrawn where it
    has not left, and followed by the user's own where it has. "Perhaps" is no label: it tells neither a yes nor a no.
    A note goes to the organiser with the answer. Where the user ``can_undo`` it, it waits as long as they have set.
    """
    if choice not in CHOICES:
        raise ValueError(f"The answer {choice!r} is neither accept nor decline nor tentative.")
    note = note.strip()[:MOST_NOTE]
    user, request = _answerable(session, address, request_id)
    due_at = _due_at(user, now, can_undo)
    given = [one for one in replies(session, request.id) if one.state in (*UNSENT, *LEFT)]
    last = given[-1] if given else None
    same = last is not None and last.answer == CHOICES[choice] and not note
    if last is not None and same and last.state != "uncertain":
        if last.state in UNSENT:
            last.due_at = min(last.due_at, due_at)
    elif same:
        # Nobody knows whether it has left: the label is taken, and sending again is asked for by itself.
        pass
    else:
        said = CHOICES[choice]
        text = make_reply(request.text, request.uid, request.recurrence_id, user.address, said, now, note)
        withdraw_unsent(session, request, now, "you answered otherwise")
        session.add(Reply(request_id=request.id, by="user", answer=said, text=text, made_at=now, due_at=due_at))
    request.state, request.snoozed_until = "answered", None
    label = choice if choice in ANSWERS else None
    if request.label != label or label is None:
        tell(session, user.address, now, "user", "answered", f"You {_TOLD[choice]} “{request.summary}”.", request)
    if request.label != label:
        request.label = label
        ask_for_training(session, now, "label")


def propose(
    session: Session,
    address: str,
    request_id: int,
    start: datetime,
    end: datetime,
    now: datetime,
    note: str = "",
    *,
    can_undo: bool = False,
) -> None:
    """Propose another time to the organiser (iTIP COUNTER), who then asks anew, or stays with the one there is.

    It is no label: neither a yes nor a no to the time that was asked for.
    """
    user, request = _answerable(session, address, request_id)
    if not now < start < end:
        raise NotNow("The time that you propose needs to lie ahead, and to end after it begins.")
    if (start, end) == (request.starts_at, request.ends_at):
        raise NotNow("That is the time that you were asked for.")
    what = request.text, request.uid, request.recurrence_id, user.address
    try:
        text = make_counter(*what, start, end, now, note.strip()[:MOST_NOTE])
    except ValueError as refusal:
        raise NotNow(f"{str(refusal)[:1].upper()}{str(refusal)[1:]}") from None
    withdraw_unsent(session, request, now, "you answered otherwise")
    due_at = _due_at(user, now, can_undo)
    session.add(Reply(request_id=request.id, by="user", answer="COUNTER", text=text, made_at=now, due_at=due_at))
    request.state, request.snoozed_until = "answered", None
    tell(session, user.address, now, "user", "answered", f"You proposed another time for “{request.summary}”.", request)
    if request.label is not None:
        request.label = None
        ask_for_training(session, now, "label")


def _answerable(session: Session, address: str, request_id: int) -> tuple[User, Request]:
    """Give the user and their request, which can still be answered."""
    user = lock_user(session, address)
    request = own_request(session, user.address, request_id)
    if request.state in _OVER:
        raise NotNow(_OVER[request.state])
    if request.source == "history":
        raise NotNow("This request is part of the imported history; it was answered before.")
    return user, request


def _due_at(user: User, now: datetime, can_undo: bool) -> datetime:
    return now + timedelta(seconds=user.undo_seconds) if can_undo else now


def confirm(
    session: Session, address: str, request_id: int, choice: str, now: datetime, *, can_undo: bool = False
) -> bool:
    """Answer as it was prepared; whether that is still what is prepared."""
    request = own_request(session, lock_user(session, address).address, request_id)
    last = latest_decision(session, request.id)
    if request.state != "open" or last is None or last.action != choice:
        return False
    answer(session, address, request_id, choice, now, can_undo=can_undo)
    return True


def dismiss(session: Session, address: str, request_id: int, now: datetime, *, ignore: bool = False) -> None:
    """Put an open request away without an answer: the organiser hears nothing, and nothing is learnt from it.

    A later version of it is shown again, unless the user wants to ``ignore`` the meeting altogether.
    """
    user = lock_user(session, address)
    request = own_request(session, user.address, request_id)
    if request.state != "open":
        raise NotNow(_OVER.get(request.state, "There is nothing open to put away."))
    request.state, request.snoozed_until = "ignored" if ignore else "dismissed", None
    did = f"You ignore “{request.summary}” from now on." if ignore else f"You put “{request.summary}” away unanswered."
    tell(session, user.address, now, "user", "dismissed", did, request)


def snooze(session: Session, address: str, request_id: int, until: datetime, now: datetime) -> None:
    """Show an open request only from a moment on, which lies before its meeting."""
    user = lock_user(session, address)
    request = own_request(session, user.address, request_id)
    if request.state != "open":
        raise NotNow(_OVER.get(request.state, "There is nothing open to put off."))
    if until <= now or (until >= request.starts_at and not request.recurs):
        raise NotNow("The meeting begins before that: it cannot be put off so long.")
    request.snoozed_until = until
    tell(session, user.address, now, "user", "snoozed", f"You put “{request.summary}” off for later.", request)


def bring_back(session: Session, address: str, request_id: int, now: datetime) -> None:
    """Put a request into the inbox again that was put away, ignored or put off."""
    user = lock_user(session, address)
    request = own_request(session, user.address, request_id)
    if request.state not in ("dismissed", "ignored") and (request.state != "open" or request.snoozed_until is None):
        raise NotNow(_OVER.get(request.state, "It is not put away."))
    request.state, request.snoozed_until = "open", None
    tell(session, user.address, now, "user", "brought back", f"You brought “{request.summary}” back.", request)


def undo(session: Session, address: str, request_id: int, now: datetime) -> None:
    """Take an answer back: one of the user's own that has not left, or one that the assistant has given by itself.

    The request is open again, for the user alone. What has not left is withdrawn without a trace at the organiser's;
    what has left stands there until the user answers. That the user took it back is no label: which answer is the
    right one, they have not said.
    """
    user = lock_user(session, address)
    request = own_request(session, user.address, request_id)
    if request.state in _OVER:
        raise NotNow(_OVER[request.state])
    given = [one for one in replies(session, request.id) if one.state in (*UNSENT, *LEFT)]
    if request.state != "answered" or not given:
        raise NotNow("There is no answer to take back.")
    is_own = given[-1].by == "user" or request.label is not None
    if is_own and given[-1].state not in UNSENT:
        raise NotNow("Your answer has left already; to change it, answer otherwise.")
    unsent = withdraw_unsent(session, request, now, "you took it back")
    request.state = "open"
    if request.label is not None:
        request.label = None
        ask_for_training(session, now, "label")
    text = f"You took the answer to “{request.summary}” back" + ("." if unsent else "; it had been sent already.")
    tell(session, user.address, now, "user", "undone", text, request)
