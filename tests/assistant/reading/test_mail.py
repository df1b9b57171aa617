from __future__ import annotations

import base64
import time
from datetime import UTC, datetime
from email.message import EmailMessage

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinfolk_assistant.reading.calendars import Refused, read_calendar
from kinfolk_assistant.reading.mail import read_mail
from tests.assistant.reading.corpus import TIMES, one

HEAD = (
    b"Received: from relay.example.org by mx.example.com; Wed, 01 Jul 2026 10:00:05 +0200\r\n"
    b"Received: from home.example.org by relay.example.org; Wed, 01 Jul 2026 09:59:00 +0200\r\n"
    b'From: "Bob, the builder" <Bob@Example.org>\r\n'
    b"To: ann@example.org\r\nMessage-ID: <1@example.org>\r\n"
    b"Date: Wed, 01 Jul 2026 09:58:00 +0200\r\nMIME-Version: 1.0\r\n"
)
REQUEST = one(*TIMES, "SUMMARY:Zürich")


def plain(content: bytes, kind: str = "text/calendar; charset=utf-8; method=REQUEST", encoding: str = "8bit") -> bytes:
    lines = [f"Content-Type: {kind}", f"Content-Transfer-Encoding: {encoding}", "", ""]
    return HEAD + "\r\n".join(lines).encode() + content


def outlook() -> EmailMessage:
    """A message as mail programs write it: text, HTML with a picture, the calendar, and the calendar attached."""
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "bob@example.org", "ann@example.org", "Zürich"
    message.set_content("Let us meet.")
    message.add_alternative("<p>Let us <b>meet</b>.</p>", subtype="html")
    message.get_payload()[1].add_related(b"\x89PNG", "image", "png", cid="<1>")
    message.add_alternative(REQUEST.decode(), subtype="calendar", params={"method": "REQUEST"})
    message.add_attachment(REQUEST, "application", "ics", filename="invite.ics")
    message.add_attachment(b"%PDF", "application", "pdf", filename="plan.pdf")
    return message


def test_a_message_tells_when_it_was_received_and_by_whom_it_was_sent():
    [found] = read_mail(plain(REQUEST))
    assert found.received == datetime(2026, 7, 1, 8, 0, 5, tzinfo=UTC)
    assert (found.sender, found.message_id, found.importance) == ("bob@example.org", "<1@example.org>", 0)
    assert (found.object.method, found.object.meetings[0].summary) == ("REQUEST", "Zürich")


@pytest.mark.parametrize(
    ("header", "priority"),
    [("Importance: High", 1), ("X-Priority: 5 (Lowest)", 9), ("Priority: non-urgent", 9), ("Importance: who knows", 0)],
)
def test_the_importance_of_a_mail_is_the_priority_of_a_meeting_that_has_none(header: str, priority: int):
    [found] = read_mail(header.encode() + b"\r\n" + plain(REQUEST))
    assert (found.importance, found.object.meetings[0].priority) == (priority, priority)
    # What is kept is the text, so it has to say so too.
    assert read_calendar(found.object.text.encode())[0].meetings[0] == found.object.meetings[0]
    [own] = read_mail(header.encode() + b"\r\n" + plain(one(*TIMES, "PRIORITY:3")))
    assert own.object.meetings[0].priority == 3


@pytest.mark.parametrize("wrong", [b"/ann/inbox/other.ics", b"<1@example.org> /ann", b"", b"1@example.org"])
def test_what_is_no_message_id_is_not_taken_for_one(wrong: bytes):
    [found] = read_mail(plain(REQUEST).replace(b"<1@example.org>", wrong))
    assert found.message_id == ""


def test_without_a_received_line_the_date_counts_and_without_both_nothing():
    lines = plain(REQUEST).split(b"\r\n")
    dated = b"\r\n".join(line for line in lines if not line.startswith(b"Received"))
    bare = b"\r\n".join(line for line in lines if not line.startswith((b"Received", b"Date")))
    assert read_mail(dated)[0].received == datetime(2026, 7, 1, 7, 58, tzinfo=UTC)
    assert read_mail(bare)[0].received is None


def test_the_calendar_among_alternatives_pictures_and_attachments_is_found_once():
    for linesep in ("\r\n", "\n"):
        [found] = read_mail(outlook().as_bytes().replace(b"\r\n", b"\n").replace(b"\n", linesep.encode()))
        assert (found.object.method, found.object.meetings[0].summary) == ("REQUEST", "Zürich")


def test_an_attachment_alone_is_enough_whatever_its_type():
    for kind in ("application/octet-stream", "application/ics", "text/plain"):
        mail = plain(base64.b64encode(REQUEST), f'{kind}; name="x.ICS"', "base64")
        assert read_mail(mail)[0].object.meetings[0].summary == "Zürich"


@pytest.mark.parametrize(
    ("content", "kind", "encoding"),
    [
        (REQUEST.replace("ü".encode(), b"=C3=BC").replace(b"CN=", b"CN=3D"), "utf-8", "quoted-printable"),
        (base64.encodebytes(REQUEST), "utf-8", "base64"),
        (REQUEST.decode().encode("latin-1"), "iso-8859-1", "8bit"),
        (base64.encodebytes(REQUEST.decode().encode("utf-16")), "utf-16", "base64"),
        (REQUEST.decode().encode("latin-1"), '"windows-1252"', "8bit"),
        (REQUEST, "no-such-charset", "8bit"),
        (REQUEST, "us-ascii", "8bit"),
    ],
)
def test_every_encoding_and_charset_is_decoded(content, kind, encoding):
    [found] = read_mail(plain(content, f"text/calendar; charset={kind}", encoding))
    assert found.object.meetings[0].summary == "Zürich"
    assert found.object.meetings[0].organiser_name == "Bob"


def test_the_parts_method_counts_where_the_calendar_has_none():
    assert read_mail(plain(one(*TIMES, method="")))[0].object.method == "REQUEST"
    assert read_mail(plain(one(*TIMES, method="CANCEL")))[0].object.method == "CANCEL"


def test_an_attached_copy_without_method_does_not_take_the_requests_place():
    message = outlook()
    message.add_attachment(one(*TIMES, method=""), "application", "ics", filename="copy.ics")
    assert [found.object.method for found in read_mail(message.as_bytes())] == ["REQUEST"]


def test_an_attachment_that_is_no_calendar_does_not_spoil_one_that_is():
    message = outlook()
    message.add_attachment(b"nonsense", "text", "calendar", filename="other.ics")
    assert len(read_mail(message.as_bytes())) == 1


@pytest.mark.parametrize(
    ("line", "importance"),
    [
        ("Importance: High", 1),
        ("Importance: low", 9),
        ("X-Priority: 1 (Highest)", 1),
        ("X-Priority: 4", 7),
        ("Priority: urgent", 1),
        ("Importance: whatever", 0),
    ],
)
def test_importance_is_told_on_the_scale_of_priority(line, importance):
    assert read_mail(line.encode() + b"\r\n" + plain(REQUEST))[0].importance == importance


def nested(depth: int, content: bytes = b"") -> bytes:
    parts = (b"Content-Type: multipart/mixed; boundary=b%d\r\n\r\n--b%d\r\n" % (i, i) for i in range(depth))
    return HEAD + b"".join(parts) + content


MAILS = {
    "nothing": b"",
    "no calendar": HEAD + b"\r\nLet us meet.\r\n",
    "an empty calendar": plain(b""),
    "a calendar that is refused": plain(one("DTSTART:20260701T080000Z", "DTEND:20260701T070000Z")),
    "broken base64": plain(b"!!!!", encoding="base64"),
    "nested deeply": nested(5000),
    "nested with many lines": nested(100, b"x\r\n" * 300_000),
    "messages within messages": HEAD + b"Content-Type: message/rfc822\r\n\r\n" * 5000,
    "a million headers": b"Subject: x\r\n" * 1_000_000 + plain(REQUEST),
    "a header of many parameters": HEAD + b"Content-Type: text/calendar; " + b'a="\\";' * 200_000 + b"\r\n\r\n",
    "a folded header of many parameters": HEAD
    + b"Content-Type: multipart/mixed;"
    + b'\r\n a="\\";' * 20_000
    + b"\r\n\r\n",
    "a thousand parts": nested(1, b"Content-Type: text/plain\r\n\r\nx\r\n--b0\r\n" * 1000),
    "ten different calendars": nested(
        1, b"".join(b"Content-Type: text/calendar\r\n\r\n%d\r\n--b0\r\n" % i for i in range(10))
    ),
    "50 MB": plain(b"x" * 50_000_000),
}


@pytest.mark.parametrize("name", MAILS)
def test_a_mail_that_cannot_be_used_is_refused_quickly_with_one_sentence(name):
    began = time.thread_time()
    with pytest.raises(Refused, match=r"^(the|a) .*\.$"):
        read_mail(MAILS[name])
    assert time.thread_time() - began < 2


@pytest.mark.parametrize(
    "sender", [b"(" * 50_000, b'"' * 50_000, b"a," * 50_000, b"\xff\xfe", b"=?utf-8?q?=C3?= <a@b>"]
)
def test_an_odd_sender_is_read_quickly(sender):
    began = time.thread_time()
    [found] = read_mail(plain(REQUEST).replace(b'"Bob, the builder" <Bob@Example.org>', sender))
    assert time.thread_time() - began < 2
    assert len(found.sender) <= 320


def test_a_large_attachment_beside_an_invitation_is_no_obstacle():
    message = outlook()
    message.add_attachment(b"x" * 7_000_000, "application", "pdf", filename="slides.pdf")
    data = message.as_bytes()
    began = time.thread_time()
    assert len(read_mail(data)) == 1
    assert time.thread_time() - began < 2


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_whatever_is_done_to_a_mail_it_is_read_or_refused(data):
    text = bytearray(data.draw(st.sampled_from([plain(REQUEST), outlook().as_bytes()])))
    for _ in range(data.draw(st.integers(1, 6))):
        place, length = data.draw(st.integers(0, len(text))), data.draw(st.integers(0, 20))
        pieces = st.sampled_from([b"\r\n", b"\r\n\r\n", b";", b"=?", b"boundary=", b"\xff", b'"', b"--", b"*0*="])
        text[place : place + length] = data.draw(st.one_of(pieces, st.binary(max_size=8)))
    try:
        found = read_mail(bytes(text))
    except Refused:
        return
    assert all(each.object.meetings for each in found)
