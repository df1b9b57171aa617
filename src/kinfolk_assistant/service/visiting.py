"""Visits to the users' CalDAV servers: invitations are taken in, calendars are brought up to date."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress

from kinfolk_assistant.delivery.caldav_server import CalDAVAccount
from kinfolk_assistant.delivery.collecting import NOTHING, Seen, collect
from kinfolk_assistant.delivery.trouble import ServerTrouble
from kinfolk_assistant.ledger.users import NotYours
from kinfolk_assistant.service.assistant import Assistant
from kinfolk_assistant.service.background import Repeating
from kinfolk_assistant.service.calendar import Kept
from kinfolk_assistant.service.operating import note_visit

_log = logging.getLogger(__name__)


class Visits(Repeating):
    """A thread that visits every account again and again; a server that is down keeps no other from being visited.

    Parameters
    ----------
    assistant : Assistant
        Who takes in what is found. An account of somebody who is not its user is left alone: they may have been erased.
    accounts : mapping of str to CalDAVAccount
        The users' accounts, by address.
    every : float
        Seconds between visits.
    """

    def __init__(self, assistant: Assistant, accounts: Mapping[str, CalDAVAccount], every: float = 60.0) -> None:
        super().__init__("visits", self.visit_all, every)
        self.assistant = assistant
        self.accounts = accounts
        self._seen: dict[str, Seen] = {}

    def visit_all(self) -> None:
        """Visit every account once."""
        for address in self.accounts:
            try:
                self.visit(address)
                self._note(address, "")
            except ServerTrouble as trouble:
                _log.warning("%s: %s", address, trouble)
                self._note(address, str(trouble))
            except NotYours:
                _log.warning(
                    "%s is no user, so the account is not visited: kinfolk assistant user %s", address, address
                )
            except Exception:
                _log.exception("The account of %s could not be visited", address)

    def _note(self, address: str, error: str) -> None:
        with suppress(NotYours), self.assistant.ledger.begin() as session:
            note_visit(session, address, self.assistant.clock(), error)

    def visit(self, address: str) -> None:
        """Visit one user's account."""
        self.assistant.settings(address)
        found = collect(self.accounts[address], self._seen.get(address, NOTHING), now=self.assistant.clock())
        # The calendar first: an invitation is judged by the calendar as it stands.
        if found.calendar is not None:
            self.assistant.take_calendar(address, [Kept(one.object, one.href, one.etag) for one in found.calendar])
        else:
            self.assistant.calendar_unchanged(address)
        refused = list(found.refused)
        for invitation in found.invitations:
            try:
                self.assistant.take_in(
                    address,
                    [invitation.object],
                    received_at=invitation.received_at,
                    source="caldav",
                    source_ref=invitation.href,
                )
            except ValueError as refusal:
                # What a stranger sends must not keep other invitations, or other users', from being taken in.
                refused.append(str(refusal))
        for sentence in refused:
            _log.warning("%s: %s", address, sentence)
        self._seen[address] = found.seen
