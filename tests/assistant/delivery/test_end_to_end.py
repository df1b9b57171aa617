"""The assistant between a real calendar server and a real mail server: from the inbox to the organiser's copy."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kinfolk_assistant.delivery.collecting import NOTHING, Seen, collect
from kinfolk_assistant.delivery.configuration import read_configuration
from kinfolk_assistant.delivery.routes import Routes
from kinfolk_assistant.ledger.store import Ledger
from kinfolk_assistant.reading.mail import read_mail
from kinfolk_assistant.service.assistant import Assistant
from kinfolk_assistant.service.calendar import Kept
from tests.assistant.delivery.conftest import Office
from tests.assistant.delivery.letterbox import Letterbox, listening
from tests.assistant.delivery.servers import Answer

_SETTINGS = """
ledger = "ledger.db"
[smtp]
host = "127.0.0.1"
port = {port}
security = "none"
[[users]]
address = "{bob}"
caldav = {{ url = "{url}", user = "{name}", password_file = "password" }}
"""


class Desk:
    """An assistant for Bob, made from a settings file as a server process makes it."""

    def __init__(self, office: Office, folder: Path, port: int) -> None:
        self.bob = office.address("bob")
        (folder / "password").write_text(office.bob.password, encoding="utf-8")
        values = {"port": port, "bob": self.bob, "url": office.bob.url, "name": office.bob.username}
        (folder / "assistant.toml").write_text(_SETTINGS.format(**values), encoding="utf-8")
        self.configuration = read_configuration(folder / "assistant.toml")
        self.ledger = Ledger(self.configuration.ledger)
        self.now = datetime(2026, 7, 1, 12, tzinfo=UTC)
        self.assistant = Assistant(self.ledger, Routes(self.configuration), clock=lambda: self.now)
        self.assistant.add_user(self.bob)

    def visit(self, seen: Seen = NOTHING) -> Seen:
        found = collect(self.configuration.accounts[self.bob], seen, now=self.now)
        for one in found.invitations:
            self.assistant.take_in(
                self.bob, [one.object], received_at=one.received_at, source="caldav", source_ref=one.href
            )
        if found.calendar is not None:
            self.assistant.take_calendar(self.bob, [Kept(*one) for one in found.calendar])
        self.assistant.work()
        return found.seen


@pytest.fixture
def box() -> Letterbox:
    return Letterbox()


@pytest.fixture
def desk(office: Office, tmp_path: Path, box: Letterbox) -> Iterator[Desk]:
    with listening(box) as port:
        one = Desk(office, tmp_path, port)
        yield one
        one.ledger.close()


def test_an_invitation_from_the_server_is_put_before_the_user_and_their_answer_reaches_the_organiser(
    office: Office, desk: Desk, box: Letterbox
) -> None:
    office.put("ann", office.meeting())
    seen = desk.visit()
    [prepared] = desk.assistant.inbox(desk.bob)
    assert (prepared.summary, prepared.organiser, prepared.action) == ("Plän für Juli", office.address("ann"), "ask")

    desk.assistant.answer(desk.bob, prepared.id, "accept")
    desk.visit(seen)

    assert office.bobs_answer("ann") == "ACCEPTED"
    assert office.bobs_answer("bob") == "ACCEPTED"
    assert office.bob.inbox() == []
    assert box.envelopes == []


def test_visits_again_and_again_answer_once(office: Office, desk: Desk) -> None:
    office.put("ann", office.meeting())
    desk.visit()
    [prepared] = desk.assistant.inbox(desk.bob)
    desk.assistant.answer(desk.bob, prepared.id, "decline")
    for _ in range(3):
        desk.visit()
    assert office.bobs_answer("ann") == "DECLINED"
    assert len(office.ann.inbox()) == 1


def test_a_server_that_was_down_gets_the_answer_when_it_is_back(office: Office, desk: Desk) -> None:
    office.put("ann", office.meeting())
    desk.visit()
    [prepared] = desk.assistant.inbox(desk.bob)
    desk.assistant.answer(desk.bob, prepared.id, "accept")
    office.gate.misbehave = lambda method, path: Answer(500)
    desk.assistant.work()
    assert office.gate.misbehave("GET", "/") is not None
    office.gate.misbehave = lambda method, path: None
    assert office.bobs_answer("ann") == "NEEDS-ACTION"
    desk.now = datetime(2026, 7, 1, 18, tzinfo=UTC)
    desk.assistant.work()
    assert office.bobs_answer("ann") == "ACCEPTED"


def test_an_invitation_by_mail_is_answered_by_mail_and_is_in_the_calendar(
    office: Office, desk: Desk, box: Letterbox
) -> None:
    mail = "\r\n".join(
        [
            f"From: {office.address('ann')}",
            f"To: {desk.bob}",
            "Message-ID: <invitation@example.org>",
            "MIME-Version: 1.0",
            "Content-Type: text/calendar; method=REQUEST; charset=utf-8",
            "Content-Transfer-Encoding: 8bit",
            "",
            office.meeting(method="REQUEST"),
        ]
    )
    [mailed] = read_mail(mail.encode())
    [number] = desk.assistant.take_in(
        desk.bob, [mailed.object], received_at=desk.now, source="mail", source_ref=mailed.message_id
    )
    desk.assistant.answer(desk.bob, number, "accept")
    desk.assistant.work()
    message = box.message()
    assert message["To"] == office.address("ann")
    assert message["In-Reply-To"] == "<invitation@example.org>"
    assert office.bobs_answer("bob") == "ACCEPTED"
