"""Visits to users' calendars, on CalDAV servers and online: invitations are taken in, calendars brought up to date."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress

from kinfolk_assistant.delivery.caldav_server import CalDAVAccount
from kinfolk_assistant.delivery.collecting import NOTHING, Collected, Seen, collect
from kinfolk_assistant.delivery.online.calendar import OnlineCalendar
from kinfolk_assistant.delivery.trouble import ServerTrouble
from kinfolk_assistant.ledger.deeds import tell
from kinfolk_assistant.ledger.users import NotYours
from kinfolk_assistant.service.assistant import Assistant
from kinfolk_assistant.service.background import Repeating, log_name
from kinfolk_assistant.service.calendar import Kept
from kinfolk_assistant.service.operating import note_visit

AT_ONCE = 8
"""So many servers are visited side by side; each visit has a bound of its own (see `CalDAVAccount.connect`)."""

PATIENCE = 30.0
"""Seconds after which a round is over: who is still being visited is left out of the next, and holds up nobody."""

UNREAD = "Entries of your calendar that cannot be read: {n}. What they fill is not free, so nothing is answered by it."

_log = logging.getLogger(__name__)


class Visits(Repeating):
    """A thread that visits every account again and again; a server that is slow or down keeps no other from its turn.

    Parameters
    ----------
    assistant : Assistant
        Who takes in what is found. An account of somebody who is not its user is left alone: they may have been erased.
    accounts : callable
        Gives the users' accounts as they are now, by address.
    every : float
        Seconds between visits.
    """

    def __init__(
        self,
        assistant: Assistant,
        accounts: Callable[[], Mapping[str, CalDAVAccount | OnlineCalendar]],
        every: float = 60.0,
    ) -> None:
        super().__init__("visits", self.visit_all, every)
        self.assistant = assistant
        self.accounts = accounts
        self._seen: dict[str, object] = {}
        self._unread: dict[str, int] = {}
        self._visitors = ThreadPoolExecutor(AT_ONCE, "visit")
        self._under_way: dict[str, Future[None]] = {}

    def visit_all(self) -> None:
        """Visit every account once, side by side."""
        accounts = dict(self.accounts())
        self._under_way = {user: one for user, one in self._under_way.items() if not one.done()}
        for address, account in accounts.items():
            if address not in self._under_way:
                self._under_way[address] = self._visitors.submit(self._try, address, account)
        wait(self._under_way.values(), timeout=PATIENCE)

    def stop(self, timeout: float = 30.0) -> None:
        """End; visits that are under way are left to their own bounds."""
        super().stop(timeout)
        self._visitors.shutdown(wait=False, cancel_futures=True)

    def _try(self, address: str, account: CalDAVAccount | OnlineCalendar) -> None:
        try:
            n_unread = self.visit(address, account)
            self._note(address, UNREAD.format(n=n_unread) if n_unread else "")
        except ServerTrouble as trouble:
            # What it said may name people: it is kept with the user, not in a log.
            _log.warning("The calendar server of %s cannot be used", log_name(address))
            self._note(address, str(trouble))
        except NotYours:
            _log.warning("The settings name %s, who is no user: their account is not visited", log_name(address))
        except Exception:
            _log.exception("The account of %s could not be visited", log_name(address))

    def _note(self, address: str, error: str) -> None:
        with suppress(NotYours), self.assistant.ledger.begin() as session:
            note_visit(session, address, self.assistant.clock(), error)

    def _collect(self, account: CalDAVAccount | OnlineCalendar, seen: object) -> Collected:
        if isinstance(account, OnlineCalendar):
            return account.collect(seen, now=self.assistant.clock())
        return collect(account, seen if isinstance(seen, Seen) else NOTHING, now=self.assistant.clock())

    def visit(self, address: str, account: CalDAVAccount | OnlineCalendar) -> int:
        """Visit one user's account; how many entries of the calendar cannot be read.

        A calendar is read when all of it is: what an entry fills that cannot be read is not free.
        """
        self.assistant.settings(address)
        found = self._collect(account, self._seen.get(address))
        # The calendar first: an invitation is judged by the calendar as it stands.
        if found.calendar is not None:
            self._unread[address] = found.unread
            kept = [Kept(one.object, one.href, one.etag) for one in found.calendar]
            self.assistant.take_calendar(address, kept, read=not found.unread)
        elif not self._unread.get(address):
            self.assistant.calendar_unchanged(address)
        refused = list(found.refused)
        for invitation in found.invitations:
            try:
                self.assistant.take_in(
                    address,
                    [invitation.object],
                    received_at=invitation.received_at,
                    source=account.name if isinstance(account, OnlineCalendar) else "caldav",
                    source_ref=invitation.href,
                )
            except ValueError as refusal:
                # What a stranger sends must not keep other invitations, or other users', from being taken in.
                refused.append(str(refusal))
        if refused:
            _log.warning("%d messages of %s cannot be used", len(refused), log_name(address))
            with self.assistant.ledger.begin() as session:
                for sentence in refused[:10]:
                    tell(session, address, self.assistant.clock(), "assistant", "refused", sentence[:500])
        self._seen[address] = found.seen
        return self._unread.get(address, 0)
