"""Answers by mail, to a real listener."""

from __future__ import annotations

import re
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from email import message_from_bytes
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.smtp import AuthResult
from icalendar import Calendar

from kinfolk_assistant.delivery.deliverer import NotDelivered, PerhapsDelivered
from kinfolk_assistant.delivery.smtp import MailServer, SmtpDeliverer, imip_message
from tests.assistant.delivery.calendars import ANN, BOB, meeting, outgoing
from tests.assistant.delivery.letterbox import Letterbox, listening, plain
from tests.assistant.delivery.servers import free_port


def test_the_organiser_gets_the_reply_as_imip() -> None:
    box, sent = Letterbox(), outgoing(source_ref="<invitation@example.org>")
    with listening(box) as port:
        SmtpDeliverer(plain(port)).deliver(sent)
    [envelope] = box.envelopes
    assert (envelope.mail_from, envelope.rcpt_tos) == (BOB, [ANN])
    message = box.message()
    assert message["From"] == BOB
    assert message["To"] == ANN
    assert message["Subject"] == "Accepted: Plän für Juli"
    assert message["Message-ID"] == sent.message_id
    assert message["In-Reply-To"] == "<invitation@example.org>"
    assert message["Auto-Submitted"] == "auto-replied"
    assert message.get_content_type() == "multipart/alternative"
    words, calendar = message.iter_parts()
    assert words.get_content().strip() == f"{BOB} has accepted “Plän für Juli” (2026-07-02 08:00 UTC)."
    assert calendar.get_content_type() == "text/calendar"
    assert calendar.get_param("method") == "REPLY"
    assert calendar.get_content_charset() == "utf-8"
    read = Calendar.from_ical(calendar.get_payload(decode=True))
    assert read["METHOD"] == "REPLY"
    assert str(read.events[0]["ATTENDEE"]) == f"mailto:{BOB}"
    assert read.events[0]["ATTENDEE"].params["PARTSTAT"] == "ACCEPTED"
    assert str(read.events[0]["SUMMARY"]) == "Plän für Juli"


def test_what_is_sent_is_seven_bit_whatever_the_meeting_is_called() -> None:
    box = Letterbox()
    with listening(box) as port:
        SmtpDeliverer(plain(port)).deliver(outgoing())
    assert (box.envelopes[0].original_content or b"").isascii()


def test_every_attempt_has_the_same_message_id_and_a_repetition_is_not_harmless() -> None:
    box = Letterbox()
    with listening(box) as port:
        for _ in range(2):
            SmtpDeliverer(plain(port)).deliver(outgoing())
    ids = [message_from_bytes(one.original_content or b"")["Message-ID"] for one in box.envelopes]
    assert ids == ["<reply-7.kinfolk@example.org>"] * 2
    assert not SmtpDeliverer.certain


@pytest.mark.parametrize(
    "summary",
    [
        r"Plan\nBcc: eve@example.com\n\nHello",
        "Plan\x0bBcc: eve@example.com",
        "Plan\u2028Bcc: eve@example.com",
        "Plan\x85Bcc: eve@example.com",
        "=?utf-8?q?Plan=0ABcc:_eve@example.com?=",
        "x" * 5000,
    ],
)
def test_no_summary_can_add_a_header_or_a_recipient(summary: str) -> None:
    box = Letterbox()
    with listening(box) as port:
        SmtpDeliverer(plain(port)).deliver(outgoing(request=meeting(summary=summary, method="REQUEST")))
    assert box.envelopes[0].rcpt_tos == [ANN]
    message = box.message()
    assert message["Bcc"] is None
    assert message.get_content_type() == "multipart/alternative"
    assert len(message["Subject"]) < 250


@pytest.mark.parametrize(
    "address",
    [
        "ann@example.org\r\nBcc: eve@example.com",
        "ann@example.org, eve@example.com",
        "ann@example.org> SIZE=1",
        "<ann@example.org>",
        "eve",
        "",
        "@example.org",
        "a@b@c",
        f"{'a' * 400}@example.org",
        "ann\x00@example.org",
        "=?utf-8?q?ann=0D=0ABcc=3A_eve=40example=2Ecom?=@example.org",
    ],
)
def test_nothing_is_sent_to_what_is_not_one_address(address: str) -> None:
    box = Letterbox()
    with listening(box) as port, pytest.raises(NotDelivered, match=r"is not a mail address, so .*\.$"):
        SmtpDeliverer(plain(port)).deliver(outgoing()._replace(organiser=address))
    assert box.envelopes == []


def test_a_message_id_cannot_add_a_header() -> None:
    with pytest.raises(NotDelivered, match="not a Message-ID"):
        imip_message(outgoing()._replace(message_id="<7@example.org>\r\nBcc: eve@example.com"))
    for reference in ("<7@x>\r\nBcc: eve@example.com", "<=?utf-8?q?7=0ABcc=3A_eve?=@x>"):
        message = imip_message(outgoing(source_ref=reference))
        assert message["In-Reply-To"] is None
        assert b"\nBcc" not in message.as_bytes()


def test_a_header_that_nobody_wrote_is_never_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kinfolk_assistant.delivery.smtp._MESSAGE_ID", re.compile("<.*>"))
    # The email package of Python 3.11 would write this as two headers; that of 3.13 keeps it in one.
    try:
        sent = imip_message(outgoing(source_ref="<=?utf-8?q?7=0ABcc=3A_eve?=@x>")).as_bytes()
    except NotDelivered as refusal:
        sent = str(refusal).encode()
    assert b"headers that nobody wrote" in sent or (sys.version_info >= (3, 12) and b"\nBcc" not in sent)


def test_a_refused_recipient_is_not_delivered_and_the_servers_words_are_told() -> None:
    with (
        listening(Letterbox(rcpt="550 no such person here")) as port,
        pytest.raises(NotDelivered, match=r"refused the mail: no such person here \(550\)\.$") as caught,
    ):
        SmtpDeliverer(plain(port)).deliver(outgoing())
    assert not isinstance(caught.value, PerhapsDelivered)


def test_a_mail_refused_at_its_end_is_not_delivered() -> None:
    with (
        listening(Letterbox(data="554 looks like spam")) as port,
        pytest.raises(NotDelivered, match=r"looks like spam \(554\)") as caught,
    ):
        SmtpDeliverer(plain(port)).deliver(outgoing())
    assert not isinstance(caught.value, PerhapsDelivered)


@contextmanager
def scripted(*answers: bytes, wait: float = 0.0) -> Iterator[int]:
    """A server that greets, gives these answers in turn, and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(10)

        def run() -> None:
            with suppress(OSError):
                peer, _ = listener.accept()
                with peer, peer.makefile("rb") as lines:
                    for answer in answers:
                        peer.sendall(answer)
                        line = lines.readline()
                        while answer.startswith(b"354") and line not in (b".\r\n", b""):
                            line = lines.readline()
                    time.sleep(wait)

        thread = threading.Thread(target=run)
        thread.start()
        yield listener.getsockname()[1]
        thread.join()


_UNTIL_DATA = (b"220 hello\r\n", b"250 hello\r\n", b"250 ok\r\n", b"250 ok\r\n", b"354 go on\r\n")


def test_a_connection_that_breaks_after_the_last_line_is_perhaps_delivered() -> None:
    with scripted(*_UNTIL_DATA) as port, pytest.raises(PerhapsDelivered, match=r"may or may not have been sent\.$"):
        SmtpDeliverer(plain(port)).deliver(outgoing())


def test_a_server_silent_after_the_last_line_is_perhaps_delivered() -> None:
    with scripted(*_UNTIL_DATA, wait=1.0) as port, pytest.raises(PerhapsDelivered):
        SmtpDeliverer(MailServer("127.0.0.1", port, "none", timeout=0.3)).deliver(outgoing())


def test_a_connection_that_breaks_after_the_mail_was_taken_is_delivered() -> None:
    with scripted(*_UNTIL_DATA, b"250 taken\r\n") as port:
        SmtpDeliverer(plain(port)).deliver(outgoing())


def test_a_connection_that_breaks_before_the_mail_is_not_delivered() -> None:
    for length in range(1, 4):
        with scripted(*_UNTIL_DATA[:length]) as port, pytest.raises(NotDelivered, match=r"\.$") as caught:
            SmtpDeliverer(plain(port)).deliver(outgoing())
        assert not isinstance(caught.value, PerhapsDelivered)


def test_a_server_that_is_down_or_silent_is_said_in_one_sentence() -> None:
    with pytest.raises(NotDelivered, match=r"^The mail server 127\.0\.0\.1:\d+ could not be used: .*\.$"):
        SmtpDeliverer(plain(free_port())).deliver(outgoing())
    with scripted(wait=1.0) as port, pytest.raises(NotDelivered, match="did not answer in time"):
        SmtpDeliverer(MailServer("127.0.0.1", port, "none", timeout=0.3)).deliver(outgoing())


def test_signing_in_needs_the_right_password_which_is_never_shown() -> None:
    def check(*arguments: Any) -> AuthResult:
        return AuthResult(success=arguments[-1].password == b"right", handled=False)

    box = Letterbox()
    with listening(box, authenticator=check, auth_require_tls=False) as port:
        SmtpDeliverer(plain(port, user="bob", password="right")).deliver(outgoing())
        wrong = plain(port, user="bob", password="hunter2")
        with pytest.raises(NotDelivered, match="refused the user name or the password") as caught:
            SmtpDeliverer(wrong).deliver(outgoing())
    assert len(box.envelopes) == 1
    assert "hunter2" not in f"{caught.value} {wrong!r} {wrong}"


def test_an_address_with_letters_beyond_ascii_needs_a_server_that_takes_it() -> None:
    box = Letterbox()
    sent = outgoing()._replace(organiser="änne@example.org", message_id="<7@bücher.example>")
    with listening(box, enable_SMTPUTF8=True) as port:
        SmtpDeliverer(plain(port)).deliver(sent)
    assert box.envelopes[0].rcpt_tos == ["änne@example.org"]
    assert box.message()["Message-ID"] == "<7@bücher.example>"
    with listening(box, enable_SMTPUTF8=False) as port, pytest.raises(NotDelivered, match="does not take addresses"):
        SmtpDeliverer(plain(port)).deliver(sent)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ssl.SSLContext]:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl to make a certificate with")
    folder = tmp_path_factory.mktemp("certificate")
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(folder / "key"), "-out", str(folder / "crt")]
    subprocess.run(command, check=True, capture_output=True)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "crt", folder / "key")
    return folder / "crt", context


def test_starttls_ciphers_the_mail_and_wants_a_trusted_certificate(certificate: tuple[Path, ssl.SSLContext]) -> None:
    trusted, context = certificate
    box = Letterbox()
    with listening(box, tls_context=context, require_starttls=True) as port:
        SmtpDeliverer(MailServer("localhost", port, "starttls", certificate=str(trusted))).deliver(outgoing())
        with pytest.raises(NotDelivered, match="certificate is not trusted"):
            SmtpDeliverer(MailServer("localhost", port, "starttls")).deliver(outgoing())
        with pytest.raises(NotDelivered, match="STARTTLS"):
            SmtpDeliverer(plain(port)).deliver(outgoing())
    assert box.ciphered == [True]


def test_starttls_is_not_left_out_where_the_server_does_not_offer_it() -> None:
    box = Letterbox()
    with listening(box) as port, pytest.raises(NotDelivered, match="STARTTLS"):
        SmtpDeliverer(MailServer("127.0.0.1", port, "starttls")).deliver(outgoing())
    assert box.envelopes == []


def test_tls_from_the_first_octet_on(certificate: tuple[Path, ssl.SSLContext]) -> None:
    trusted, context = certificate
    box = Letterbox()
    with listening(box, ssl_context=context) as port:
        SmtpDeliverer(MailServer("localhost", port, "tls", certificate=str(trusted))).deliver(outgoing())
    assert len(box.envelopes) == 1
