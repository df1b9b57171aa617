"""The daily mail that tells a user what waits, with a link for each answer.

A digest is written down as sent before it leaves: one that is lost with the process that sent it does less harm than
one that comes twice.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from datetime import datetime
from email.message import EmailMessage
from email.utils import localtime, make_msgid

from sqlalchemy import select

from kinfolk_assistant.delivery.keys import Keys
from kinfolk_assistant.delivery.smtp import MailServer, line_of
from kinfolk_assistant.ledger.tables import User
from kinfolk_assistant.ledger.users import NotYours, known_zone, lock_user
from kinfolk_assistant.service import views
from kinfolk_assistant.service.assistant import Assistant
from kinfolk_assistant.service.background import Repeating
from kinfolk_assistant.service.links import LIFETIME, Link, make_token
from kinfolk_assistant.service.values import Prepared
from kinfolk_assistant.speech.manner import Manner

MOST_TOLD = 30
_log = logging.getLogger(__name__)


class Digests(Repeating):
    """A thread that sends everybody who wants one a mail a day.

    Parameters
    ----------
    assistant : Assistant
        Who knows what waits.
    server : MailServer
        Where mail is handed over; its ``sender`` is who the mails are from.
    url : str
        Where the pages are.
    keys : Keys
        By which links are signed.
    every : float
        Seconds between looks at the clock.
    """

    def __init__(self, assistant: Assistant, server: MailServer, url: str, keys: Keys, every: float = 60.0) -> None:
        super().__init__("digests", self.send_due, every)
        self.assistant = assistant
        self.server = server
        self.url = url.rstrip("/")
        self.keys = keys

    def send_due(self) -> int:
        """Send the digests for which it is time; how many there were."""
        with self.assistant.ledger.read() as session:
            wanted = select(User.address).where(User.digest_hour.is_not(None), User.disabled_at.is_(None))
            users = list(session.scalars(wanted.order_by(User.address)))
        sent = 0
        for address in users:
            with suppress(NotYours):
                sent += self._send(address)
        return sent

    def _send(self, address: str) -> bool:
        now = self.assistant.clock()
        with self.assistant.ledger.begin() as session:
            user = lock_user(session, address)
            local = now.astimezone(known_zone(user.zone))
            before, today = user.digest_day, f"{local:%Y-%m-%d}"
            if user.digest_hour is None or local.hour < user.digest_hour or before >= today:
                return False
            user.digest_day = today
            shown = views.inbox(session, user.address, now)
        waiting = [one for one in shown if one.state == "open" and (one.snoozed_until or now) <= now]
        if not waiting:
            return False
        message = self.message(user, waiting, now)
        try:
            with self.server.connect() as smtp:
                smtp.send_message(message)
        except (OSError, UnicodeError):
            _log.warning("A digest could not be sent; it is tried again")
            with self.assistant.ledger.begin() as session:
                lock_user(session, address).digest_day = before
            return False
        return True

    def message(self, user: User, waiting: list[Prepared], now: datetime) -> EmailMessage:
        """Write the mail."""
        manner = Manner(user.language or "en", user.clock, user.week_start)
        say, zone = manner.say, known_zone(user.zone)
        lines = [say("These invitations wait for you. Each link opens a page where you confirm the answer."), ""]
        for one in waiting[:MOST_TOLD]:
            day, hours = manner.span(one.starts_at, one.ends_at, one.all_day, zone, now)
            leaning = {"accept": say("Would accept"), "decline": say("Would decline")}.get(one.action, say("Asks you"))
            lines += [
                f"{line_of(one.summary) or say('(no title)')}",
                f"  {day}, {hours} · {line_of(one.organiser_name)} <{line_of(one.organiser)}>",
                f"  {leaning}",
                f"  {say('Accept')}: {self._link(user, one, 'accept', now)}",
                f"  {say('Decline')}: {self._link(user, one, 'decline', now)}",
                "",
            ]
        if len(waiting) > MOST_TOLD:
            lines += [say("and %(n)s more", n=len(waiting) - MOST_TOLD), ""]
        lines += [f"{say('Inbox')}: {self.url}/", f"{say('Settings')}: {self.url}/settings#digest", ""]
        message = EmailMessage()
        message["From"] = self.server.sender
        message["To"] = user.address
        message["Subject"] = manner.catalogue.ngettext(
            "%(n)s invitation waits for you", "%(n)s invitations wait for you", len(waiting)
        ) % {"n": len(waiting)}
        message["Date"] = localtime()
        message["Message-ID"] = make_msgid(domain=self.server.sender.rpartition("@")[2])
        message["Auto-Submitted"] = "auto-generated"
        message.set_content("\n".join(lines), cte="quoted-printable")
        return message

    def _link(self, user: User, one: Prepared, choice: str, now: datetime) -> str:
        link = Link(user.address, one.id, choice, now + LIFETIME)
        return f"{self.url}/answer/{make_token(self.keys, link)}"
