"""Answers by mail: iMIP (RFC 6047), from the user to the organiser."""

from __future__ import annotations

import re
import smtplib
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email import policy
from email.errors import MessageError
from email.message import EmailMessage
from email.parser import BytesHeaderParser
from email.utils import localtime
from typing import Literal

from kinfolk_assistant.delivery.deliverer import NotDelivered, Outgoing, PerhapsDelivered
from kinfolk_assistant.delivery.finding import meeting_in
from kinfolk_assistant.meeting import Meeting
from kinfolk_assistant.reading.bounds import Refused

Security = Literal["starttls", "tls", "none"]

# Nowhere "=?": Python's email package reads encoded words in what it is given, and line ends out of them.
_ADDRESS = re.compile(r'(?!.*=\?)[^\s\x00-\x1f\x7f-\x9f<>(),;:\\"\[\]@]+@[^\s\x00-\x1f\x7f-\x9f<>(),;:\\"\[\]@]+')
_MESSAGE_ID = re.compile(r"(?!.*=\?)<[^\s\x00-\x1f\x7f-\x9f<>]+@[^\s\x00-\x1f\x7f-\x9f<>]+>")
_DID = {
    "ACCEPTED": "accepted",
    "DECLINED": "declined",
    "TENTATIVE": "tentatively accepted",
    "COUNTER": "proposed another time for",
}
_SUBJECTS = {"COUNTER": "New time proposed"}
_LONGEST_SUBJECT = 200


@dataclass(frozen=True)
class MailServer:
    """Where mail is handed over.

    Attributes
    ----------
    host, port
        Its name and port.
    security
        "starttls" (port 587 as a rule), "tls" from the first octet on (465), or "none" (a server on the same machine).
    user, password
        To sign in with; "" where the server does not ask.
    certificate
        A file with the certificates to trust, where the system's are not those.
    timeout
        Seconds to wait for each of the server's answers.
    sender
        Who the assistant's own mails to its users are from; "" where it sends none.
    """

    host: str
    port: int = 587
    security: Security = "starttls"
    user: str = ""
    password: str = field(default="", repr=False)
    certificate: str | None = None
    timeout: float = 20.0
    sender: str = ""

    def __str__(self) -> str:
        return f"the mail server {self.host}:{self.port}"

    @contextmanager
    def connect(self) -> Iterator[smtplib.SMTP]:
        """Greet the server and sign in; `OSError` (as all of smtplib's errors are) where that fails."""
        trusted = None if self.security == "none" else ssl.create_default_context(cafile=self.certificate)
        if self.security == "tls":
            smtp: smtplib.SMTP = smtplib.SMTP_SSL(self.host, self.port, timeout=self.timeout, context=trusted)
        else:
            smtp = smtplib.SMTP(self.host, self.port, timeout=self.timeout)
        try:
            smtp.ehlo_or_helo_if_needed()
            if self.security == "starttls":
                smtp.starttls(context=trusted)
                smtp.ehlo()
            if self.user:
                smtp.login(self.user, self.password)
            yield smtp
        finally:
            # Nothing that goes wrong from here on says anything of a mail that was taken.
            with suppress(OSError):
                smtp.quit()
            smtp.close()


class SmtpDeliverer:
    """Sends each answer as a mail.

    Nobody can know whether a mail was taken when the connection breaks after its last line: such an answer is only sent
    again when its user says so.

    Parameters
    ----------
    server : MailServer
        Where mail is handed over.
    """

    certain = False

    def __init__(self, server: MailServer) -> None:
        self.server = server

    def deliver(self, outgoing: Outgoing) -> None:
        """Send the answer."""
        message = imip_message(outgoing)
        try:
            with self.server.connect() as smtp:
                self._hand_over(smtp, outgoing, message)
        except NotDelivered:
            raise
        except (OSError, UnicodeError) as error:
            raise NotDelivered(f"{_capital(str(self.server))} could not be used: {trouble(error)}.") from error

    def _hand_over(self, smtp: smtplib.SMTP, outgoing: Outgoing, message: EmailMessage) -> None:
        plain = _is_ascii(outgoing)
        if not plain and not smtp.has_extn("smtputf8"):
            raise NotDelivered(f"{_capital(str(self.server))} does not take addresses like {outgoing.organiser!r}.")
        options = [] if plain else ["SMTPUTF8", "BODY=8BITMIME"]
        smtp.command_encoding = "ascii" if plain else "utf-8"
        self._check(*smtp.mail(outgoing.attendee, options))
        self._check(*smtp.rcpt(outgoing.organiser))
        try:
            self._check(*smtp.data(message.as_bytes()))
        except smtplib.SMTPDataError as error:
            self._check(error.smtp_code, error.smtp_error)
        except OSError as error:
            raise PerhapsDelivered(
                f"{_capital(str(self.server))} broke off while it took the mail, which may or may not have been sent."
            ) from error

    def _check(self, code: int, answer: bytes | str) -> None:
        if code not in (250, 251):
            raise NotDelivered(f"{_capital(str(self.server))} refused the mail: {_said(answer)} ({code}).")


def imip_message(outgoing: Outgoing) -> EmailMessage:
    """Write the mail for an answer: a line to read, and the REPLY as ``text/calendar`` (RFC 6047 2.4).

    Raises
    ------
    NotDelivered
        Where an address or an identifier is not one: nothing of an invitation can add a header or a recipient.
    """
    for address in (outgoing.attendee, outgoing.organiser):
        if not _ADDRESS.fullmatch(address) or len(address) > 320:
            raise NotDelivered(f"{address[:80]!r} is not a mail address, so no answer can be sent.")
    if not _MESSAGE_ID.fullmatch(outgoing.message_id):
        raise NotDelivered(f"{outgoing.message_id[:80]!r} is not a Message-ID.")
    meeting = _meeting(outgoing)
    summary = line_of(meeting.summary if meeting else "") or "your meeting"
    did = _DID.get(outgoing.answer, "answered")
    message = EmailMessage(policy=policy.SMTP if _is_ascii(outgoing) else policy.SMTPUTF8)
    message["From"] = outgoing.attendee
    message["To"] = outgoing.organiser
    subject = _SUBJECTS.get(outgoing.answer, _capital(did))
    message["Subject"] = f"{subject}: {summary}".replace("=?", "= ?")
    message["Date"] = localtime()
    message["Message-ID"] = outgoing.message_id
    if _MESSAGE_ID.fullmatch(outgoing.source_ref) and outgoing.source_ref.isascii() and len(outgoing.source_ref) < 900:
        message["In-Reply-To"] = message["References"] = outgoing.source_ref
    # Keeps absence notes and other assistants from answering the answer (RFC 3834 5).
    message["Auto-Submitted"] = "auto-replied"
    words = f"{outgoing.attendee} has {did} “{summary}”{_when(outgoing, meeting)}.\n"
    message.set_content(words, cte="quoted-printable")
    method = "COUNTER" if outgoing.answer == "COUNTER" else "REPLY"
    message.add_alternative(
        outgoing.text, subtype="calendar", params={"method": method, "component": "VEVENT"}, cte="base64"
    )
    if not _has_only_its_headers(message):
        raise NotDelivered(f"The answer to {outgoing.organiser} would have had headers that nobody wrote.")
    return message


def trouble(error: Exception) -> str:
    """Say what a mail server said, or what kept it from saying anything."""
    if isinstance(error, smtplib.SMTPAuthenticationError):
        return f"it refused the user name or the password ({error.smtp_code})"
    if isinstance(error, smtplib.SMTPResponseException):
        return f"{_said(error.smtp_error)} ({error.smtp_code})"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({error.verify_message})"
    if isinstance(error, TimeoutError) or isinstance(error.__context__, TimeoutError):
        return "it did not answer in time"
    return line_of(str(getattr(error, "strerror", None) or error)) or type(error).__name__


def _is_ascii(outgoing: Outgoing) -> bool:
    """Whether any server can take the mail; letters beyond ASCII outside of texts need SMTPUTF8 (RFC 6531)."""
    return f"{outgoing.attendee}{outgoing.organiser}{outgoing.message_id}".isascii()


def _has_only_its_headers(message: EmailMessage) -> bool:
    """Whether a mail that is read again has the headers that were written, should all else have been outwitted."""
    try:
        read = BytesHeaderParser().parsebytes(message.as_bytes())
    except MessageError:  # newer versions of Python see for themselves that there is one too many
        return False
    return read.keys() == message.keys()


def _meeting(outgoing: Outgoing) -> Meeting | None:
    with suppress(Refused):
        return meeting_in(outgoing.request_text, outgoing.uid, outgoing.recurrence_id)
    return None


def _when(outgoing: Outgoing, meeting: Meeting | None) -> str:
    if meeting is None or meeting.recurrence_id != outgoing.recurrence_id:
        return ""
    return f" ({meeting.start})" if meeting.all_day else f" ({meeting.start:%Y-%m-%d %H:%M} {meeting.start:%Z})"


def _said(answer: bytes | str) -> str:
    return line_of(answer.decode(errors="replace") if isinstance(answer, bytes) else answer)


def line_of(text: str) -> str:
    """One line that can be printed, of what may hold anything."""
    visible = "".join(letter if letter.isprintable() else " " for letter in text)
    return " ".join(visible.split())[:_LONGEST_SUBJECT]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
