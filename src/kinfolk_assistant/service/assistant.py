"""The assistant: one door to everything that it does, each deed one transaction of the ledger."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from kinfolk_assistant.delivery.deliverer import Deliverer, may_propose
from kinfolk_assistant.features.people import ContactLike
from kinfolk_assistant.learning.costs import Costs
from kinfolk_assistant.learning.model import TeamModel
from kinfolk_assistant.ledger.calendar_read import mark_read
from kinfolk_assistant.ledger.deeds import read_deeds
from kinfolk_assistant.ledger.own_answers import OwnAnswers, own_answers
from kinfolk_assistant.ledger.requests import own_request, users_with_undecided
from kinfolk_assistant.ledger.store import Ledger
from kinfolk_assistant.ledger.tables import Contact, Deed, Rule, User
from kinfolk_assistant.ledger.users import NotYours, find_user, lock_user, make_user
from kinfolk_assistant.meeting import CalendarObject
from kinfolk_assistant.reading.origin import Origin
from kinfolk_assistant.reading.trust import Trust
from kinfolk_assistant.service import (
    answering,
    consent,
    deciding,
    intake,
    kin,
    outbox,
    retraining,
    rules,
    settings,
    surroundings,
    views,
)
from kinfolk_assistant.service.background import Repeating, log_name
from kinfolk_assistant.service.calendar import Kept, take_calendar
from kinfolk_assistant.service.errors import NotNow
from kinfolk_assistant.service.learner import Learner
from kinfolk_assistant.service.models import Models, model_ids
from kinfolk_assistant.service.rules import Proposal
from kinfolk_assistant.service.surroundings import Around
from kinfolk_assistant.service.values import Detail, Prepared, Preview, Readiness, Score

_log = logging.getLogger(__name__)


def now() -> datetime:
    """Give this moment in UTC."""
    return datetime.now(UTC)


class Assistant:
    r"""What the assistant does for its users; safe to use from many threads, and from many processes on one ledger.

    Every method is about one ``user``, and the number of somebody else's request raises ``NotYours`` just as one
    that does not exist.

    Parameters
    ----------
    ledger : Ledger
        Where everything is kept.
    deliver : Deliverer
        How answers are sent.
    clock : callable, default=now
        Gives the present moment.
    trust : Trust, optional
        Whom the assistant may answer without asking.
    part : callable, optional
        Called before a user is erased, so that others let go of what they keep for them.

    Examples
    --------
    >>> import tempfile
    >>> from kinfolk_assistant.delivery.files import FileDeliverer
    >>> from kinfolk_assistant.reading.calendars import read_calendar
    >>> folder = tempfile.TemporaryDirectory()
    >>> assistant = Assistant(Ledger(f"{folder.name}/ledger.db"), FileDeliverer(f"{folder.name}/answers"))
    >>> _ = assistant.add_user("ann@example.org", zone="Europe/Berlin")
    >>> lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:x", "METHOD:REQUEST", "BEGIN:VEVENT", "UID:1",
    ...          "DTSTAMP:20260301T090000Z", "DTSTART:20990305T140000Z", "DTEND:20990305T150000Z", "SUMMARY:Plans",
    ...          "ORGANIZER:mailto:bob@example.org", "ATTENDEE:mailto:ann@example.org", "END:VEVENT", "END:VCALENDAR"]
    >>> invitations = read_calendar("\r\n".join(lines).encode())
    >>> assistant.take_in("ann@example.org", invitations, received_at=now(), source="file")
    [1]
    >>> assistant.work()
    1
    >>> [(one.summary, one.action) for one in assistant.inbox("ann@example.org")]
    [('Plans', 'ask')]
    >>> assistant.answer("ann@example.org", 1, "accept")
    >>> assistant.work()
    1
    >>> assistant.request("ann@example.org", 1).reply_state
    'sent'
    >>> assistant.ledger.close()
    >>> folder.cleanup()
    """

    def __init__(
        self,
        ledger: Ledger,
        deliver: Deliverer,
        clock: Callable[[], datetime] = now,
        trust: Trust | None = None,
        part: Callable[[str], object] = lambda user: None,
    ) -> None:
        self.ledger = ledger
        self.deliver = deliver
        self.clock = clock
        self.trust = trust or Trust()
        self._part = part
        self.models = Models()
        self._judged_by: list[int] | None = None

    def add_user(self, user: str, *, name: str = "", zone: str = "UTC") -> User:
        """Make a user, or give the one there is."""
        with self.ledger.begin() as session:
            return make_user(session, user, name=name, zone=zone, now=self.clock())

    def take_in(
        self,
        user: str,
        objects: Iterable[CalendarObject],
        *,
        received_at: datetime,
        source: str,
        source_ref: str = "",
        sender: str = "",
        origin: Origin | None = None,
    ) -> list[int]:
        """Take invitations, updates and cancellations in, each once; the numbers of the requests they speak of."""
        with self.ledger.begin() as session:
            return intake.take_in(
                session,
                user,
                objects,
                received_at=received_at,
                source=source,
                source_ref=source_ref,
                now=self.clock(),
                sender=sender,
                origin=origin,
                trust=self.trust,
            )

    def take_calendar(self, user: str, kept: Iterable[Kept], *, whole: bool = True, read: bool = True) -> int:
        """Bring what is known of the user's calendar up to date; how many objects are new, changed or gone."""
        with self.ledger.begin() as session:
            changes = take_calendar(session, user, kept, now=self.clock(), whole=whole, read=read)
            deciding.look_again(session, user, self.models, self.clock())
            return changes

    def calendar_unchanged(self, user: str) -> None:
        """Note that the user's calendar was read and is as it was."""
        with self.ledger.begin() as session:
            if mark_read(lock_user(session, user), self.clock()):
                deciding.look_again(session, user, self.models, self.clock())

    def work(self, user: str | None = None) -> int:
        """Send what is due, and decide what is undecided, in order of arrival; how many things were done.

        Users have their turn one after the other, each with one request at a time, and what is due meanwhile is sent
        between two rounds: somebody who is flooded with requests holds up nobody else. May be called at any time, by
        several processes at once, and after one of them was killed.
        """
        return self._send(user) + self._decide(user) + self._judge_again(user) + self._send(user)

    def inbox(self, user: str) -> list[Prepared]:
        """Give the requests that wait for the user, and those whose answer is on its way."""
        with self.ledger.read() as session:
            return views.inbox(session, find_user(session, user).address, self.clock())

    def search(self, user: str, words: str) -> list[Prepared]:
        """Give the requests that have all of some words."""
        with self.ledger.read() as session:
            return views.search(session, find_user(session, user).address, words)

    def readiness(self, user: str) -> Readiness:
        """Say how often what was prepared lately was what the user then answered."""
        with self.ledger.read() as session:
            return views.readiness(session, find_user(session, user).address)

    def around(self, user: str, request_id: int) -> Around:
        """Give what stands around a request: its day, what it overlaps, who else is invited, what has changed."""
        with self.ledger.read() as session:
            return surroundings.around(session, find_user(session, user), request_id, self.clock())

    def confirm(self, user: str, prepared: Sequence[tuple[int, str]], *, can_undo: bool = False) -> int:
        """Give the prepared answers to several requests by the user's hand; how many could still be given.

        Each is named with the answer that the user saw: where another is prepared by now, nothing is done.
        """
        done = 0
        for request_id, choice in prepared:
            with suppress(NotNow, NotYours), self.ledger.begin() as session:
                done += answering.confirm(session, user, request_id, choice, self.clock(), can_undo=can_undo)
        return done

    def dismiss(self, user: str, request_id: int, *, ignore: bool = False) -> None:
        """Put a request away without an answer, or ignore its meeting with all that comes of it later."""
        with self.ledger.begin() as session:
            answering.dismiss(session, user, request_id, self.clock(), ignore=ignore)

    def snooze(self, user: str, request_id: int, until: datetime) -> None:
        """Show a request only from a moment on."""
        with self.ledger.begin() as session:
            answering.snooze(session, user, request_id, until, self.clock())

    def bring_back(self, user: str, request_id: int) -> None:
        """Show a request again that was put away, ignored or put off."""
        with self.ledger.begin() as session:
            answering.bring_back(session, user, request_id, self.clock())

    def propose(
        self,
        user: str,
        request_id: int,
        start: datetime,
        end: datetime,
        note: str = "",
        *,
        can_undo: bool = False,
    ) -> None:
        """Propose another time to the organiser."""
        if not may_propose(self.deliver, user):
            raise NotNow("Other times go by mail, and no mail server is set up here; decline with a note instead.")
        with self.ledger.begin() as session:
            answering.propose(session, user, request_id, start, end, self.clock(), note, can_undo=can_undo)

    def request(self, user: str, request_id: int) -> Detail:
        """Give one request with its features, reasons and history."""
        with self.ledger.read() as session:
            return views.detail(session, user.lower(), request_id)

    def request_text(self, user: str, request_id: int) -> str:
        """Give the invitation as it came."""
        with self.ledger.read() as session:
            return own_request(session, user, request_id).text

    def answer(self, user: str, request_id: int, choice: str, note: str = "", *, can_undo: bool = False) -> None:
        """Answer by the user's hand, "accept", "decline" or "tentative", with a note to the organiser or without.

        It is sent at once, or where they ``can_undo`` it after the seconds that they have set.
        """
        with self.ledger.begin() as session:
            answering.answer(session, user, request_id, choice, self.clock(), note, can_undo=can_undo)

    def undo(self, user: str, request_id: int) -> None:
        """Take an automatic answer back, or one of the user's own that has not left."""
        with self.ledger.begin() as session:
            answering.undo(session, user, request_id, self.clock())

    def mark_sent_again(self, user: str, reply_id: int) -> None:
        """Have a reply sent again that failed, or of which it is not known whether it was sent."""
        with self.ledger.begin() as session:
            outbox.send_again(session, user, reply_id, self.clock())

    def settings(self, user: str) -> User:
        """Give the user with their settings."""
        with self.ledger.read() as session:
            return find_user(session, user)

    def change_settings(self, user: str, **fields: Any) -> None:
        """Change settings; new costs change the proposals for all open requests at once."""
        with self.ledger.begin() as session:
            settings.change(session, user, fields, self.clock())

    def contacts(self, user: str) -> list[Contact]:
        """Give the user's table of people and topics."""
        with self.ledger.read() as session:
            return settings.read_contacts(session, find_user(session, user).address)

    def set_contacts(self, user: str, contacts: Sequence[ContactLike]) -> None:
        """Put a table of people and topics in the place of the user's."""
        with self.ledger.begin() as session:
            settings.set_contacts(session, user, contacts, self.clock())

    def preview(self, user: str, costs: Costs) -> Preview:
        """Say what costs would do with the user's recent requests."""
        with self.ledger.read() as session:
            return views.preview(session, find_user(session, user).address, costs, self.models)

    def score(self, user: str) -> Score:
        """Say how often decisions were what the user then did."""
        with self.ledger.read() as session:
            return views.score(session, find_user(session, user).address)

    def rules(self, user: str) -> list[Rule]:
        """Give the user's own rules."""
        with self.ledger.read() as session:
            return rules.rules_of(session, find_user(session, user).address)

    def add_rule(self, user: str, **fields: Any) -> None:
        """Make a rule of the user's own; see `kinfolk_assistant.ledger.tables.Rule`."""
        with self.ledger.begin() as session:
            rules.add_rule(session, user, fields, self.clock())

    def remove_rule(self, user: str, rule_id: int) -> None:
        """Take a rule away."""
        with self.ledger.begin() as session:
            rules.remove_rule(session, user, rule_id, self.clock())

    def proposed_rules(self, user: str) -> list[Proposal]:
        """Give rules that the user's own answers suggest."""
        with self.ledger.read() as session:
            return rules.propose(session, find_user(session, user).address)

    def own_answers(self, user: str) -> OwnAnswers:
        """Count what the user has answered by their own hand."""
        with self.ledger.read() as session:
            return own_answers(session, find_user(session, user).address)

    def deeds(self, user: str, before_id: int | None = None, limit: int = 50) -> list[Deed]:
        """Give what was done, the latest first."""
        with self.ledger.read() as session:
            return read_deeds(session, find_user(session, user).address, before_id, limit)

    def model(self, user: str) -> TeamModel | None:
        """Give the model that decides for the user; None where nothing is learnt."""
        with self.ledger.read() as session:
            return self.models.of(session, find_user(session, user).address).model

    def too_few_kin(self, user: str) -> bool:
        """Say whether so few others agreed that what was learnt from them would tell what one of them answers."""
        with self.ledger.read() as session:
            address = find_user(session, user).address
            return kin.too_few_kin(session, self.models.of(session, address).model, address)

    def agree(self, user: str) -> None:
        """Let the user's history help others."""
        with self.ledger.begin() as session:
            consent.agree(session, user, self.clock())

    def withdraw(self, user: str) -> None:
        """Let the user's history help others no longer, from now on."""
        with self.ledger.begin() as session:
            consent.withdraw(session, user, self.clock())

    def erase(self, user: str) -> None:
        """Delete everything of the user's, and every model that has learnt from them."""
        self._part(self.settings(user).address)
        with self.ledger.begin() as session:
            consent.erase(session, user, self.clock())
        self.ledger.tidy()

    def retrain(self, force: bool = False) -> bool:
        """Learn anew where there is something to learn; whether new models are in use."""
        return retraining.retrain(self.ledger, self.clock, force=force)

    def _decide(self, user: str | None) -> int:
        done = 0
        while True:
            with self.ledger.read() as session:
                users = users_with_undecided(session) if user is None else [find_user(session, user).address]
            decided = sum(_one_step(self._decide_one, one) for one in users)
            if not decided:
                return done
            done += decided + self._send(user)

    def _decide_one(self, user: str) -> bool:
        with self.ledger.read() as session:
            # Reading texts takes long: what this reads is remembered, so that the writer is quick.
            deciding.look_ahead(session, user, self.models)
        try:
            with self.ledger.begin() as session:
                return deciding.decide_next(session, user, self.models, self.clock(), self.trust)
        except (SQLAlchemyError, OSError):
            raise
        except Exception:
            _log.exception("A request of %s could not be judged", log_name(user))
            with self.ledger.begin() as session:
                return deciding.give_up_next(session, user, self.clock())

    def _judge_again(self, user: str | None) -> int:
        with self.ledger.read() as session:
            in_use = model_ids(session)
            if user is not None:
                users = [find_user(session, user).address]
            elif in_use == self._judged_by:
                return 0
            else:
                users = deciding.users_to_judge_again(session)
        done = sum(_until_done(self._judge_some, one) for one in users)
        if user is None:
            self._judged_by = in_use
        return done

    def _judge_some(self, user: str) -> int:
        with self.ledger.begin() as session:
            return deciding.judge_again(session, user, self.models, self.clock())

    def _send(self, user: str | None) -> int:
        with self.ledger.read() as session:
            users = outbox.users_with_due(session, self.clock()) if user is None else [find_user(session, user).address]
        done = 0
        while users:
            sent = {one: _one_step(self._send_one, one) for one in users}
            users = [one for one in users if sent[one]]
            done += sum(sent.values())
        return done

    def _send_one(self, user: str) -> bool:
        with self.ledger.begin() as session:
            claimed = outbox.claim(session, user, self.deliver, self.clock())
        if claimed is None:
            return False
        error = outbox.deliver(claimed, self.deliver)
        with self.ledger.begin() as session:
            outbox.settle(session, user, claimed, error, self.clock())
        return True


def _one_step(step: Callable[[str], int], user: str) -> int:
    """Take one step for a user, who may be erased at any moment: then there is nothing left to do."""
    with suppress(NotYours):
        return step(user)
    return 0


def _until_done(step: Callable[[str], int], user: str) -> int:
    """Take a step for a user until there is nothing left to do; how much was done."""
    done = 0
    # The user may be erased at any moment: then there is nothing left to do.
    with suppress(NotYours):
        while did := step(user):
            done += did
    return done


class Worker(Repeating):
    """A thread that works through what is to be done."""

    def __init__(self, assistant: Assistant, every: float = 10.0) -> None:
        super().__init__("worker", assistant.work, every)


class Trainer(Repeating):
    """A thread that has a process learn anew when labels have changed."""

    def __init__(self, assistant: Assistant, every: float = 30.0) -> None:
        self._learner = Learner(assistant.ledger)
        super().__init__("trainer", self._learner.learn, every)

    def stop(self, timeout: float = 30.0) -> None:
        """End at once: what is half learnt is learnt from the start another time."""
        self._learner.stop()
        super().stop(timeout)
