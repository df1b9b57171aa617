"""The daily mail through a real mail server, and its links: they ask first, answer once, and nobody else makes them."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest
from tests.assistant.delivery.letterbox import Letterbox, listening, plain
from tests.assistant.web.client import Client
from tests.assistant.web.team import ANN, NOW, StillClock, requests_of

from kinfolk_assistant.delivery.keys import Keys, add_key, keep_first_key, read_keys
from kinfolk_assistant.service.assistant import Assistant
from kinfolk_assistant.service.digest import Digests
from kinfolk_assistant.web.app import make_app


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return read_keys(tmp_path / "key")


def send(assistant: Assistant, keys: Keys, box: Letterbox) -> int:
    with listening(box) as port:
        server = plain(port, sender="assistant@example.org")
        return Digests(assistant, server, "https://kin.test/", keys).send_due()


def links_in(box: Letterbox) -> list[str]:
    text = box.message().get_content()
    return re.findall(r"https://kin\.test(/answer/\S+)", text)


def test_one_mail_a_day_tells_what_waits_from_the_users_hour_on(
    assistant: Assistant, keys: Keys, clock: StillClock
) -> None:
    box = Letterbox()
    assistant.change_settings(ANN, digest_hour=10)
    clock.now = NOW.replace(hour=8)  # 9:00 in Berlin
    assert send(assistant, keys, box) == 0
    clock.now = NOW.replace(hour=9)
    assert [send(assistant, keys, box) for _ in range(3)] == [1, 0, 0]
    message = box.message()
    assert (message["To"], message["From"], message["Auto-Submitted"]) == (
        ANN,
        "assistant@example.org",
        "auto-generated",
    )
    assert "4 invitations wait for you" in message["Subject"]
    assert "Weekly sync" in message.get_content()
    clock.now += timedelta(days=1)
    assert send(assistant, keys, box) == 1


def test_a_mail_that_the_server_refused_is_tried_again_and_one_with_nothing_to_tell_is_not_sent(
    assistant: Assistant, keys: Keys, clock: StillClock
) -> None:
    assistant.change_settings(ANN, digest_hour=0)
    assert send(assistant, keys, Letterbox(rcpt="550 no")) == 0
    box = Letterbox()
    assert send(assistant, keys, box) == 1
    clock.now += timedelta(days=60)
    assert send(assistant, keys, Letterbox()) == 0


def test_a_link_asks_first_and_answers_once(assistant: Assistant, keys: Keys, clock: StillClock) -> None:
    box = Letterbox()
    assistant.change_settings(ANN, digest_hour=0)
    send(assistant, keys, box)
    accept, decline = links_in(box)[:2]
    stranger = Client(make_app(assistant, secure_cookies=False, keys=keys))
    number = requests_of(assistant, ANN)[0]
    for _ in range(2):
        page = stranger.get(accept)
        assert page.status_code == 200
        assert "Weekly sync" in page.text
    assert stranger.ask("HEAD", accept).status_code in (200, 405)
    assert assistant.request(ANN, number).state == "open"

    assert "Accepted." in stranger.ask("POST", accept).text
    assert assistant.request(ANN, number).label == "accept"
    refused = stranger.ask("POST", decline)
    assert refused.status_code == 409
    assert assistant.request(ANN, number).label == "accept"
    assert "sign in to see it" in stranger.get(decline).text


def test_a_link_that_is_changed_too_old_or_of_another_key_opens_nothing(
    assistant: Assistant, keys: Keys, clock: StillClock, tmp_path: Path
) -> None:
    box = Letterbox()
    assistant.change_settings(ANN, digest_hour=0)
    send(assistant, keys, box)
    accept, decline = links_in(box)[:2]
    body, _, signature = accept.rpartition(".")
    other = decline.rpartition(".")[0]
    client = Client(make_app(assistant, secure_cookies=False, keys=keys))
    for link in (f"{other}.{signature}", f"{body}.{'0' * 64}", f"{body}.", "/answer/x", f"{body}x.{signature}"):
        assert client.get(link).status_code == 404
        assert client.ask("POST", link).status_code == 404
    strange = Client(make_app(assistant, secure_cookies=False, keys=read_keys(tmp_path / "other")))
    assert strange.get(accept).status_code == 404
    clock.now += timedelta(days=8)
    assert client.get(accept).status_code == 404


def test_links_signed_by_the_key_before_hold_until_that_is_taken_away(tmp_path: Path) -> None:
    path = tmp_path / "key"
    old = read_keys(path)
    signature, sealed = old.sign("x"), old.seal("ann", "secret")
    add_key(path)
    both = read_keys(path)
    assert both.is_signed("x", signature)
    assert both.unseal("ann", sealed) == "secret"
    with pytest.raises(ValueError, match="not where it was stored"):
        both.unseal("bob", sealed)
    anew = both.seal("ann", "secret")
    keep_first_key(path)
    new = read_keys(path)
    assert not new.is_signed("x", signature)
    assert new.unseal("ann", anew) == "secret"
    with pytest.raises(ValueError, match="not in the key file"):
        new.unseal("ann", sealed)


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "key"
    read_keys(path)
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    with pytest.raises(ValueError, match="chmod 600"):
        read_keys(path)
