"""A mailbox on a real IMAP server: what is new comes once, at once, and nothing there is changed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from kinfolk_assistant.delivery.files import FileDeliverer
from kinfolk_assistant.delivery.imap_mailbox import Mailbox, Position, can_wait, collect_mail
from kinfolk_assistant.delivery.trouble import ServerTrouble
from kinfolk_assistant.ledger.store import Ledger
from kinfolk_assistant.ledger.users import set_aliases
from kinfolk_assistant.service import mailboxes
from kinfolk_assistant.service.assistant import Assistant
from kinfolk_assistant.service.mailboxes import Mailboxes, take_mail
from tests.assistant.delivery.dovecot import DOVECOT, Server, running_dovecot
from tests.assistant.service.world import ANN, invitation

pytestmark = pytest.mark.skipif(DOVECOT is None, reason="needs Dovecot: apt-get install dovecot-imapd")


@pytest.fixture
def server() -> Iterator[Server]:
    # A folder of a short name: paths of sockets may have about a hundred letters.
    with TemporaryDirectory(prefix="dovecot-") as folder, running_dovecot(Path(folder)) as one:
        yield one


@pytest.fixture
def assistant(tmp_path: Path) -> Iterator[Assistant]:
    one = Assistant(Ledger(str(tmp_path / "ledger.db")), FileDeliverer(tmp_path / "answers"))
    one.add_user(ANN)
    yield one
    one.ledger.close()


def mail(uid: str, attendee: str = ANN) -> bytes:
    start = datetime.now(UTC) + timedelta(days=2)
    text = invitation(uid, start, summary=f"About {uid}", attendee=attendee).text
    head = "From: Boss <boss@example.org>\r\nTo: ann@example.org\r\nSubject: Plans\r\nMIME-Version: 1.0\r\n"
    kind = f"Message-ID: <{uid}@example.org>\r\nContent-Type: text/calendar; method=REQUEST; charset=utf-8\r\n"
    return f"{head}{kind}\r\n{text}".encode()


def ordinary() -> bytes:
    return b"From: a@example.org\r\nTo: ann@example.org\r\nSubject: Hello\r\n\r\nNo calendar here.\r\n"


def test_what_is_new_is_taken_in_once_and_nothing_is_marked_as_read(server: Server, assistant: Assistant) -> None:
    mailbox = server.mailbox()
    server.deliver(ordinary())
    server.deliver(mail("m1"))
    for expected in (1, 0, 0):
        with mailbox.connect() as client:
            assert take_mail(assistant, ANN, mailbox, client) == expected
    server.deliver(mail("m2"))
    server.deliver(b"From: x\r\nContent-Type: text/calendar\r\n\r\nnothing that can be read\r\n")
    with mailbox.connect() as client:
        assert take_mail(assistant, ANN, mailbox, client) == 1
    assert [one.summary for one in assistant.inbox(ANN)] == ["About m1", "About m2"]
    # Dovecot moves what it has shown from "new" to "cur"; a mail that is read would have the flag S there.
    read = [path for path in (server.folder / "mail" / "ann" / "cur").iterdir() if "S" in path.name.partition(":2,")[2]]
    assert read == []
    assert assistant.settings(ANN).mail_error == ""


def test_killed_before_the_position_is_kept_nothing_is_lost_and_nothing_comes_twice(
    server: Server, assistant: Assistant, monkeypatch: pytest.MonkeyPatch
) -> None:
    mailbox = server.mailbox()
    server.deliver(mail("m1"))

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as dying, mailbox.connect() as client:
        dying.setattr(mailboxes, "lock_user", die)
        with pytest.raises(KeyboardInterrupt):
            take_mail(assistant, ANN, mailbox, client)
    with mailbox.connect() as client:
        take_mail(assistant, ANN, mailbox, client)
    assert [one.summary for one in assistant.inbox(ANN)] == ["About m1"]


def test_another_uidvalidity_means_that_all_numbers_are_new(server: Server) -> None:
    server.deliver(mail("m1"))
    mailbox = server.mailbox()
    with mailbox.connect() as client:
        now = datetime.now(UTC)
        first = collect_mail(client, mailbox, Position(), now)
        assert len(first.letters) == 1
        assert collect_mail(client, mailbox, first.position, now).letters == []
        anew = collect_mail(client, mailbox, Position(first.position.validity + 1, 999), now)
        assert [one.object.message_id for one in anew.letters] == ["<m1@example.org>"]
        assert abs(first.letters[0].arrived - now) < timedelta(minutes=1)


def test_mail_that_comes_is_there_without_a_look_at_the_clock(server: Server, assistant: Assistant) -> None:
    woken: list[bool] = []
    watch = Mailboxes(assistant, lambda: {ANN: server.mailbox()}, lambda: woken.append(True))
    with server.mailbox().connect() as client:
        assert can_wait(client)
    watch.start()
    time.sleep(1.0)
    began = time.monotonic()
    server.deliver(mail("m1"))
    while not woken and time.monotonic() < began + 40:
        time.sleep(0.05)
    watch.stop(10.0)
    assert [one.summary for one in assistant.inbox(ANN)] == ["About m1"]
    # By looking every minute it would have taken up to sixty seconds.
    assert time.monotonic() - began < 45


@pytest.mark.parametrize(
    ("password", "folder", "words"),
    [
        ("wrong", "INBOX", "refused the user name or the password"),
        ("secret", "Nowhere", "did not do what"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(server: Server, password: str, folder: str, words: str) -> None:
    mailbox = server.mailbox(password, folder)
    with pytest.raises(ServerTrouble, match=words), mailbox.connect() as client:
        collect_mail(client, mailbox, Position(), datetime.now(UTC))


def test_a_server_that_is_not_there() -> None:
    nowhere = Mailbox.from_url("imap+plain://127.0.0.1:1/INBOX", "ann", "secret")
    with pytest.raises(ServerTrouble, match="cannot be reached"), nowhere.connect():
        pass


def test_an_invitation_to_another_address_is_answered_from_that_address(
    server: Server, assistant: Assistant, tmp_path: Path
) -> None:
    other = "ann.arbor@example.com"
    with assistant.ledger.begin() as session:
        set_aliases(session, ANN, [other])
    server.deliver(mail("m1", attendee=other))
    mailbox = server.mailbox()
    with mailbox.connect() as client:
        take_mail(assistant, ANN, mailbox, client)
    assistant.work(ANN)
    [one] = assistant.inbox(ANN)
    assert assistant.request(ANN, one.id).features["part"] == "required"
    assistant.answer(ANN, one.id, "accept")
    assistant.work(ANN)
    [answer] = (tmp_path / "answers").iterdir()
    assert f"PARTSTAT=ACCEPTED:mailto:{other}" in answer.read_text().replace("\n ", "")
