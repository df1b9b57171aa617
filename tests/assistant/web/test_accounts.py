"""Accounts that users enter themselves: tried, sealed, of allowed servers alone; and the past that they hand over."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.assistant.web.client import Client
from tests.assistant.web.team import ANN, BOB, calendar

from kinfolk_assistant.delivery.accounts import Accounts, seal_anew
from kinfolk_assistant.delivery.configuration import Configuration
from kinfolk_assistant.delivery.keys import Keys, add_key, keep_first_key, read_keys
from kinfolk_assistant.delivery.trouble import ServerTrouble
from kinfolk_assistant.ledger.tables import Account
from kinfolk_assistant.service.assistant import Assistant
from kinfolk_assistant.web import accounts as page
from kinfolk_assistant.web.app import make_app

SECRET = "an app password that nobody may read"
MAILBOX = {"kind": "imap", "url": "imaps://mail.example.org/INBOX", "name": "ann", "password": SECRET}


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return read_keys(tmp_path / "key")


@pytest.fixture
def accounts(assistant: Assistant, keys: Keys) -> Accounts:
    return Accounts(Configuration("unused", hosts=("*.example.org",)), assistant.ledger, keys)


@pytest.fixture
def visitor(assistant: Assistant, accounts: Accounts, keys: Keys) -> Client:
    return Client(make_app(assistant, secure_cookies=False, keys=keys, accounts=accounts)).enter(ANN)


@pytest.fixture(autouse=True)
def tried(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The servers that were tried; one called "down" does not answer."""
    found: list[str] = []

    def attempt(entered: page.Entered, certificate: str | None) -> None:
        found.append(entered.url)
        if "down" in entered.url:
            raise ServerTrouble("The mail server cannot be reached.")

    monkeypatch.setattr(page, "_try", attempt)
    return found


def test_a_password_that_was_entered_is_used_and_can_be_read_nowhere(
    visitor: Client, assistant: Assistant, accounts: Accounts, tried: list[str]
) -> None:
    assert visitor.post("/accounts/enter", MAILBOX).status_code == 303
    assert tried == [MAILBOX["url"]]
    mailbox = accounts.mailboxes()[ANN]
    assert (mailbox.host, mailbox.username, mailbox.password) == ("mail.example.org", "ann", SECRET)
    with assistant.ledger.read() as session:
        folder = Path(str(session.get_bind().url.database)).parent  # type: ignore[union-attr]
    assert all(SECRET.encode() not in path.read_bytes() for path in folder.iterdir() if path.is_file())
    assert SECRET not in visitor.get("/accounts").text
    assert SECRET not in repr(mailbox)
    visitor.post("/accounts/remove", {"kind": "imap"})
    assert accounts.mailboxes() == {}


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"url": "imaps://127.0.0.1/INBOX"}, "not one of the servers"),
        ({"url": "imaps://mail.example.org.evil.example/INBOX"}, "not one of the servers"),
        ({"url": "imap+plain://mail.example.org/INBOX"}, "in the clear"),
        ({"url": "file:///etc/passwd"}, "is no mailbox"),
        ({"kind": "caldav", "url": "http://dav.example.org/"}, "begins with https://"),
        ({"url": "imaps://down.example.org/INBOX"}, "cannot be reached"),
        ({"password": ""}, "a password are needed"),
    ],
)
def test_an_account_that_cannot_be_is_not_kept(
    visitor: Client, accounts: Accounts, more: dict[str, str], words: str
) -> None:
    refused = visitor.post("/accounts/enter", MAILBOX | more)
    assert refused.status_code == 400
    assert words in refused.text
    assert (accounts.mailboxes(), accounts.calendars()) == ({}, {})


def test_a_sealed_password_opens_for_its_own_user_alone_and_follows_a_new_key(
    visitor: Client, assistant: Assistant, accounts: Accounts, tmp_path: Path
) -> None:
    visitor.post("/accounts/enter", MAILBOX)
    add_key(tmp_path / "key")
    with assistant.ledger.begin() as session:
        assert seal_anew(session, read_keys(tmp_path / "key")) == 1
    keep_first_key(tmp_path / "key")
    renewed = Accounts(accounts.configuration, assistant.ledger, read_keys(tmp_path / "key"))
    assert renewed.mailboxes()[ANN].password == SECRET
    with pytest.raises(ValueError, match="not in the key file"):
        accounts.mailboxes()
    with assistant.ledger.begin() as session:
        own = session.get_one(Account, (ANN, "imap"))
        session.add(Account(user=BOB, kind="imap", url=own.url, name="bob", sealed=own.sealed, made_at=own.made_at))
    with pytest.raises(ValueError, match="not where it was stored"):
        renewed.mailboxes()


def test_an_erased_user_leaves_no_password_behind(visitor: Client, assistant: Assistant, accounts: Accounts) -> None:
    visitor.post("/accounts/enter", MAILBOX)
    assistant.erase(ANN)
    assert accounts.mailboxes() == {}


def test_a_past_that_is_handed_over_is_learnt_from(visitor: Client, assistant: Assistant) -> None:
    kept = [
        calendar(f"old-{n}", f"Old {n}", datetime(2026, 10, n + 1, 9, tzinfo=UTC), 30, ANN, method="").decode()
        for n in range(3)
    ]
    page_after = visitor.post(
        "/accounts/history", files={"past": ("past.ics", "".join(kept).encode(), "text/calendar")}
    )
    assert page_after.status_code == 200
    assert "past invitations" in page_after.text
    assert {one.summary for one in assistant.search(ANN, "Old")} == {"Old 0", "Old 1", "Old 2"}
    wrong = visitor.post("/accounts/history", files={"past": ("past.exe", b"MZ", "text/calendar")})
    assert wrong.status_code == 400
