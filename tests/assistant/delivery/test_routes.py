"""Which way answers take."""

from __future__ import annotations

from pathlib import Path

import pytest

from kinfolk_assistant.delivery.caldav_server import CalDAVAccount, CalDAVDeliverer
from kinfolk_assistant.delivery.configuration import Configuration
from kinfolk_assistant.delivery.deliverer import NotDelivered, PerhapsDelivered, may_repeat
from kinfolk_assistant.delivery.files import FileDeliverer
from kinfolk_assistant.delivery.routes import Routes, WithCalendar
from kinfolk_assistant.delivery.smtp import MailServer, SmtpDeliverer
from tests.assistant.delivery.calendars import BOB, outgoing
from tests.assistant.delivery.conftest import Office
from tests.assistant.delivery.letterbox import Letterbox, listening, plain
from tests.assistant.delivery.servers import Answer, free_port

_MAIL = MailServer("mail.example.org")
_ACCOUNT = CalDAVAccount("https://dav.example.org/", "bob", "x")
_BY_MAIL, _BY_SERVER = "<invitation@example.org>", "/bob/inbox/1.ics"


@pytest.mark.parametrize(
    ("smtp", "folder", "accounts", "source_ref", "kind", "repeatable"),
    [
        (_MAIL, None, {}, _BY_MAIL, SmtpDeliverer, False),
        (_MAIL, Path("x"), {}, _BY_MAIL, SmtpDeliverer, False),
        (None, Path("x"), {}, _BY_MAIL, FileDeliverer, True),
        (_MAIL, None, {BOB: _ACCOUNT}, _BY_SERVER, CalDAVDeliverer, True),
        (None, Path("x"), {BOB: _ACCOUNT}, _BY_SERVER, CalDAVDeliverer, True),
        (None, None, {BOB: _ACCOUNT}, _BY_MAIL, CalDAVDeliverer, True),
        (_MAIL, None, {BOB: _ACCOUNT}, _BY_MAIL, WithCalendar, False),
        (None, Path("x"), {BOB: _ACCOUNT}, "", WithCalendar, True),
        (_MAIL, None, {"eve@example.org": _ACCOUNT}, _BY_MAIL, SmtpDeliverer, False),
    ],
)
def test_an_answer_takes_the_way_its_invitation_came(
    smtp: MailServer | None,
    folder: Path | None,
    accounts: dict[str, CalDAVAccount],
    source_ref: str,
    kind: type,
    repeatable: bool,
) -> None:
    routes = Routes(Configuration("ledger.db", smtp, folder, accounts))
    sent = outgoing(source_ref=source_ref)
    assert type(routes.route(sent)) is kind
    assert may_repeat(routes, sent) is repeatable
    assert routes.certain is (smtp is None)


def test_a_way_without_choice_says_itself_whether_it_may_be_repeated() -> None:
    assert may_repeat(FileDeliverer("x"), outgoing())
    assert not may_repeat(SmtpDeliverer(_MAIL), outgoing())


def test_without_any_way_the_sentence_says_what_to_add() -> None:
    with pytest.raises(NotDelivered, match=rf"no way for answers of {BOB}; add \[smtp\]"):
        Routes(Configuration("ledger.db")).deliver(outgoing())


def _routes(office: Office, port: int) -> Routes:
    return Routes(Configuration("ledger.db", plain(port), None, {office.address("bob"): office.bob}))


def test_an_invitation_by_mail_is_answered_by_mail_and_the_calendar_is_updated(office: Office) -> None:
    box = Letterbox()
    with listening(box) as port:
        _routes(office, port).deliver(office.answer("ACCEPTED", source_ref=_BY_MAIL))
    assert box.message()["To"] == office.address("ann")
    assert office.bobs_answer("bob") == "ACCEPTED"
    assert office.ann.inbox() == []


def test_an_invitation_through_the_server_is_answered_there_and_not_by_mail(office: Office) -> None:
    box = Letterbox()
    with listening(box) as port:
        _routes(office, port).deliver(office.answer("ACCEPTED", source_ref=office.invite().href))
    assert box.envelopes == []
    assert office.bobs_answer("ann") == "ACCEPTED"


def test_a_meeting_that_the_server_tells_of_is_not_answered_by_mail_as_well(office: Office) -> None:
    office.invite()
    box = Letterbox()
    with listening(box) as port:
        _routes(office, port).deliver(office.answer("ACCEPTED", source_ref=_BY_MAIL))
    assert box.envelopes == []
    assert office.bobs_answer("ann") == "ACCEPTED"


def test_a_server_that_does_not_schedule_leaves_the_telling_to_mail(office: Office) -> None:
    arrived = office.invite()
    office.gate.misbehave = lambda method, path: Answer(200) if method == "OPTIONS" else None
    box = Letterbox()
    with listening(box) as port:
        _routes(office, port).deliver(office.answer("ACCEPTED", source_ref=_BY_MAIL))
    assert len(box.envelopes) == 1
    with pytest.raises(NotDelivered, match="does not tell the organiser"):
        CalDAVDeliverer(office.bob).deliver(office.answer("ACCEPTED", source_ref=arrived.href))


def test_no_mail_leaves_while_the_calendar_cannot_be_updated(office: Office) -> None:
    office.gate.misbehave = lambda method, path: Answer(500)
    box = Letterbox()
    with listening(box) as port, pytest.raises(NotDelivered) as caught:
        _routes(office, port).deliver(office.answer("ACCEPTED", source_ref=_BY_MAIL))
    assert box.envelopes == []
    assert not isinstance(caught.value, PerhapsDelivered)


def test_a_mail_that_failed_is_sent_at_the_next_attempt(office: Office) -> None:
    sent = office.answer("ACCEPTED", source_ref=_BY_MAIL)
    with pytest.raises(NotDelivered):
        _routes(office, free_port()).deliver(sent)
    box = Letterbox()
    with listening(box) as port:
        _routes(office, port).deliver(sent)
    assert len(box.envelopes) == 1
    assert office.ann.inbox() == []
