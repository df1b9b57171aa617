"""The user's hand: answering a request, and taking back what the assistant has answered."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy.orm import Session

from kinfolk_assistant.ledger.deeds import ask_for_training, tell
from kinfolk_assistant.ledger.requests import LEFT, UNSENT, latest_decision, own_request, replies
from kinfolk_assistant.ledger.tables import Reply
from kinfolk_assistant.ledger.users import lock_user
from kinfolk_assistant.reading.reply import make_reply
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


def answer(session: Session, address: str, request_id: int, choice: str, now: datetime, note: str = "") -> None:
    """Answer a request by hand: a label for the model, and a reply unless the same answer is on its way already.

    An answer of the assistant's that agrees is confirmed and waits no longer; one that does not is withdrawn where it
    has not left, and followed by the user's own where it has. "Perhaps" is no label: it tells neither a yes nor a no.
    A note goes to the organiser with the answer.
    """
    if choice not in CHOICES:
        raise ValueError(f"The answer {choice!r} is neither accept nor decline nor tentative.")
    note = note.strip()[:MOST_NOTE]
    user = lock_user(session, address)
    request = own_request(session, user.address, request_id)
    if request.state in _OVER:
        raise NotNow(_OVER[request.state])
    if request.source == "history":
        raise NotNow("This request is part of the imported history; it was answered before.")
    given = [one for one in replies(session, request.id) if one.state in (*UNSENT, *LEFT)]
    last = given[-1] if given else None
    same = last is not None and last.answer == CHOICES[choice] and not note
    if last is not None and same and last.state != "uncertain":
        if last.state in UNSENT:
            last.due_at = min(last.due_at, now)
    elif same:
        # Nobody knows whether it has left: the label is taken, and sending again is asked for by itself.
        pass
    else:
        said = CHOICES[choice]
        text = make_reply(request.text, request.uid, request.recurrence_id, user.address, said, now, note)
        withdraw_unsent(session, request, now, "you answered otherwise")
        session.add(Reply(request_id=request.id, by="user", answer=said, text=text, made_at=now, due_at=now))
    request.state = "answered"
    label = choice if choice in ANSWERS else None
    if request.label != label or label is None:
        tell(session, user.address, now, "user", "answered", f"You {_TOLD[choice]} “{request.summary}”.", request)
    if request.label != label:
        request.label = label
        ask_for_training(session, now, "label")


def confirm(session: Session, address: str, request_id: int, choice: str, now: datetime) -> bool:
    """Answer as it was prepared; whether that is still what is prepared."""
    request = own_request(session, lock_user(session, address).address, request_id)
    last = latest_decision(session, request.id)
    if request.state != "open" or last is None or last.action != choice:
        return False
    answer(session, address, request_id, choice, now)
    return True


def dismiss(session: Session, address: str, request_id: int, now: datetime) -> None:
    """Put an open request away without an answer: the organiser hears nothing, and nothing is learnt from it."""
    user = lock_user(session, address)
    request = own_request(session, user.address, request_id)
    if request.state != "open":
        raise NotNow(_OVER.get(request.state, "There is nothing open to put away."))
    request.state = "dismissed"
    tell(session, user.address, now, "user", "dismissed", f"You put “{request.summary}” away unanswered.", request)


def undo(session: Session, address: str, request_id: int, now: datetime) -> None:
    """Take back what the assistant has answered by itself; the request is open again, for the user alone.

    What has not left is withdrawn without a trace at the organiser's; what has left stands there until the user
    answers. That the user took it back is no label: which answer is the right one, they have not said.
    """
    user = lock_user(session, address)
    request = own_request(session, user.address, request_id)
    if request.state in _OVER:
        raise NotNow(_OVER[request.state])
    given = [one for one in replies(session, request.id) if one.state in (*UNSENT, *LEFT)]
    if request.state != "answered" or not given or given[-1].by != "assistant" or request.label is not None:
        raise NotNow("There is no answer of the assistant's to take back.")
    unsent = withdraw_unsent(session, request, now, "you took it back")
    request.state = "open"
    text = f"You took the answer to “{request.summary}” back" + ("." if unsent else "; it had been sent already.")
    tell(session, user.address, now, "user", "undone", text, request)
