"""Users' mailboxes, watched side by side: a thread for each waits until the server says that mail has come (IDLE)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from threading import Event, Thread
from time import monotonic

from imapclient import IMAPClient

from kinfolk_assistant.delivery.imap_mailbox import (
    Mailbox,
    Position,
    can_wait,
    collect_mail,
    wait_for_mail,
)
from kinfolk_assistant.delivery.trouble import ServerTrouble
from kinfolk_assistant.ledger import tables
from kinfolk_assistant.ledger.users import NotYours, lock_user
from kinfolk_assistant.service.assistant import Assistant
from kinfolk_assistant.service.background import Repeating, log_name

MOST_WATCHED = 500
_LOOKS = 60.0  # seconds between looks where the server tells nothing by itself
_SLICE = 5.0  # seconds after which a thread that waits looks whether it is to end
_RENEWED = 540.0  # servers end an IDLE after half an hour, and routers forget a silent connection after ten minutes
_FIRST_PAUSE, _LONGEST_PAUSE = 15.0, 600.0

_log = logging.getLogger(__name__)


def take_mail(assistant: Assistant, user: str, mailbox: Mailbox, client: IMAPClient) -> int:
    """Take in what has come to a mailbox; how many messages were about meetings.

    The position is kept after what stands before it was taken in: killed in between, the same messages are read again,
    and taking in the same one twice changes nothing.
    """
    taken = 0
    more = True
    while more:
        with assistant.ledger.read() as session:
            kept = session.get(tables.Position, user)
            position = Position() if kept is None else Position(kept.validity, kept.uid)
        found = collect_mail(client, mailbox, position, assistant.clock())
        for one in found.letters:
            try:
                assistant.take_in(
                    user,
                    [one.object.object],
                    received_at=one.arrived,
                    source="mail",
                    source_ref=one.object.message_id,
                    sender=one.object.sender,
                    origin=one.object.origin,
                )
                taken += 1
            except ValueError:
                # What a stranger sends must not keep other invitations from being taken in.
                _log.warning("A mail to %s was refused", log_name(user))
        with assistant.ledger.begin() as session:
            owner = lock_user(session, user)
            owner.mail_read_at, owner.mail_error = assistant.clock(), ""
            session.merge(tables.Position(user=user, validity=found.position.validity, uid=found.position.uid))
        more = found.more
    return taken


class Mailboxes(Repeating):
    """A thread that sees to it that every mailbox is watched by one of its own.

    Parameters
    ----------
    assistant : Assistant
        Who takes in what comes.
    mailboxes : callable
        Gives the mailboxes as they are now, by user.
    wake : callable, optional
        Called when something was taken in.
    """

    def __init__(
        self,
        assistant: Assistant,
        mailboxes: Callable[[], Mapping[str, Mailbox]],
        wake: Callable[[], object] = lambda: None,
        every: float = 15.0,
    ) -> None:
        super().__init__("mailboxes", self.look, every)
        self.assistant = assistant
        self.mailboxes = mailboxes
        self.wake_worker = wake
        self._watchers: dict[str, _Watcher] = {}

    def look(self) -> None:
        """Begin to watch what is new, and end what is gone or has changed."""
        wanted = dict(sorted(self.mailboxes().items())[:MOST_WATCHED])
        for user, watcher in list(self._watchers.items()):
            if wanted.get(user) != watcher.mailbox or not watcher.is_alive():
                watcher.ending.set()
                del self._watchers[user]
        for user in wanted.keys() - self._watchers.keys():
            self._watchers[user] = _Watcher(self.assistant, user, wanted[user], self.wake_worker)
            self._watchers[user].start()

    def stop(self, timeout: float = 30.0) -> None:
        """End all of them."""
        for watcher in self._watchers.values():
            watcher.ending.set()
        super().stop(timeout)
        for watcher in self._watchers.values():
            watcher.ending.set()
            watcher.join(2 * _SLICE)


class _Watcher(Thread):
    """Watches one mailbox until it is told to end; a server that is away is tried again, ever more seldom."""

    def __init__(self, assistant: Assistant, user: str, mailbox: Mailbox, wake: Callable[[], object]) -> None:
        super().__init__(name=f"mailbox {log_name(user)}", daemon=True)
        self.mailbox = mailbox
        self.ending = Event()
        self._assistant = assistant
        self._user = user
        self._wake = wake

    def run(self) -> None:
        pause = _FIRST_PAUSE
        while not self.ending.is_set():
            try:
                with self.mailbox.connect() as client:
                    pause = _FIRST_PAUSE
                    self._watch(client)
            except NotYours:
                return
            except ServerTrouble as trouble:
                _log.warning("The mailbox of %s cannot be read", log_name(self._user))
                self._note(str(trouble))
                self.ending.wait(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
            except Exception:
                _log.exception("The mailbox of %s could not be watched", log_name(self._user))
                self.ending.wait(_LONGEST_PAUSE)

    def _watch(self, client: IMAPClient) -> None:
        while not self.ending.is_set():
            if take_mail(self._assistant, self._user, self.mailbox, client):
                self._wake()
            if not can_wait(client):
                self.ending.wait(_LOOKS)
                continue
            until = monotonic() + _RENEWED
            while not self.ending.is_set() and monotonic() < until:
                if wait_for_mail(client, _SLICE):
                    break

    def _note(self, error: str) -> None:
        with suppress(NotYours), self._assistant.ledger.begin() as session:
            lock_user(session, self._user).mail_error = error[:500]
