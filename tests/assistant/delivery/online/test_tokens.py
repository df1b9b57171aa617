"""Tokens: renewed when they end, sealed, replaced, never in a log, and given up."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from kinfolk_assistant.delivery.accounts import seal_anew
from kinfolk_assistant.delivery.checks import doctor
from kinfolk_assistant.delivery.configuration import Configuration, read_configuration
from kinfolk_assistant.delivery.keys import add_key, keep_first_key, read_keys
from kinfolk_assistant.delivery.online import api
from kinfolk_assistant.delivery.online.connections import Connections
from kinfolk_assistant.ledger.tables import Connection
from tests.assistant.delivery.online.simulated import Said
from tests.assistant.delivery.online.world import SLOT, World
from tests.assistant.service.world import ANN


def kept(world: World) -> Connection:
    with world.assistant.ledger.read() as session:
        return session.get_one(Connection, ANN)


def renewals(world: World) -> int:
    return len(world.state.calls("POST", "/token"))


def test_one_access_token_serves_until_it_ends(world: World) -> None:
    world.visit()
    world.visit()
    assert renewals(world) == 1


def test_a_token_that_ends_by_the_clock_is_renewed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.visit()
    began = api.monotonic()
    monkeypatch.setattr(api, "monotonic", lambda: began + 3600)
    world.visit()
    assert renewals(world) == 2
    assert world.error() == ""


def test_a_token_that_is_refused_is_renewed_once_and_the_visit_goes_on(world: World) -> None:
    world.state.put(world.event("m"))
    world.visit()
    world.state.access.clear()
    world.state.put(world.event("n", SLOT.replace(hour=15)))
    world.visit()
    assert sorted(world.inbox()) == ["Plans m", "Plans n"]
    assert renewals(world) == 2


def test_a_service_that_refuses_every_token_is_asked_twice_and_no_more(world: World) -> None:
    world.state.misbehave = lambda asked: Said(401, {}) if "/api/" in asked.path else None
    world.visit()
    assert "connect it again" in world.error()
    assert len(world.state.calls("GET", "/api/")) == 2


def test_a_connection_that_was_taken_back_has_to_be_made_anew_and_is_not_tried_again(world: World) -> None:
    world.visit()
    world.state.access.clear()
    world.state.refresh.clear()
    world.visit()
    assert "connect it again" in world.error()
    assert "connect it again" in kept(world).broken
    before = renewals(world)
    world.visit()
    assert renewals(world) == before


@pytest.mark.parametrize("said", [Said(500), Said(400, {"error": "temporarily_unavailable"}), Said(200, {})])
def test_a_service_that_cannot_renew_now_is_tried_again(world: World, said: Said) -> None:
    world.state.misbehave = lambda asked: said if asked.path.endswith("/token") else None
    world.visit()
    assert world.error()
    assert kept(world).broken == ""
    world.state.misbehave = lambda asked: None
    world.visit()
    assert world.error() == ""


def test_a_refresh_token_that_the_service_replaces_is_kept(world: World) -> None:
    world.state.rotates = True
    for _ in range(3):
        world.visit()
        world.state.access.clear()
    assert world.error() == ""
    assert len(world.state.refresh) == 1


def secrets(world: World) -> set[str]:
    return world.state.access | world.state.refresh | {"client secret"}


def test_no_token_stands_in_the_ledger_in_a_log_or_in_what_is_printed(
    world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    world.visit()
    world.state.misbehave = lambda asked: Said(500)
    world.visit()
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
    calendar = world.calendar()
    shown = f"{caplog.text} {calendar!r} {vars(calendar)!r} {vars(calendar.api)!r} {world.accounts.configuration!r}"
    for secret in secrets(world):
        assert secret.encode() not in written
        assert secret not in shown


def test_a_sealed_token_opens_for_its_own_user_alone_and_follows_a_new_key(world: World, tmp_path: Path) -> None:
    add_key(tmp_path / "key")
    with world.assistant.ledger.begin() as session:
        assert seal_anew(session, read_keys(tmp_path / "key")) == 1
    keep_first_key(tmp_path / "key")
    services = world.accounts.configuration.services
    renewed = Connections(world.assistant.ledger, read_keys(tmp_path / "key"), lambda: services)
    renewed.calendars(ANN)[ANN].collect(None, now=world.clock())
    world.assistant.add_user("bob@example.org")
    with world.assistant.ledger.begin() as session:
        own = session.get_one(Connection, ANN)
        stolen = Connection(user="bob@example.org", service=own.service, account=ANN, sealed=own.sealed)
        stolen.made_at = own.made_at
        session.add(stolen)
    with pytest.raises(OSError, match="not where it was stored"):
        renewed.calendars()["bob@example.org"].collect(None, now=world.clock())


def test_whoever_disconnects_or_is_erased_has_the_token_given_up(world: World) -> None:
    assert world.accounts.connections is not None
    [refresh] = world.state.refresh
    world.assistant.erase(ANN)
    assert world.state.revoked == ([refresh] if world.name == "google" else [])
    assert world.accounts.calendars() == {}


def test_erasing_goes_on_though_the_service_is_away(world: World) -> None:
    world.state.misbehave = lambda asked: Said(503)
    world.assistant.erase(ANN)
    assert world.accounts.calendars() == {}


GOOGLE = """
ledger = "assistant.db"
[pages]
url = "https://assistant.example.org"
[google]
client_id = "id"
client_secret = "s"
"""


def settings(folder: Path, text: str) -> Configuration:
    path = folder / "assistant.toml"
    path.write_text(text, encoding="utf-8")
    path.chmod(0o600)
    return read_configuration(path)


def test_the_settings_name_services_whose_addresses_are_the_real_ones_by_default(tmp_path: Path) -> None:
    text = f'{GOOGLE}[microsoft]\nclient_id = "id"\nclient_secret = "t"\ntenant = "example.org"\n'
    services = settings(tmp_path, text).services
    assert services["google"].api == "https://www.googleapis.com/calendar/v3"
    assert services["microsoft"].token == "https://login.microsoftonline.com/example.org/oauth2/v2.0/token"
    assert "s" not in repr(services["google"]).partition("client_secret")[2]


@pytest.mark.parametrize("key", ["authorize", "token", "revoke", "api"])
def test_an_address_at_which_others_could_read_along_is_refused(tmp_path: Path, key: str) -> None:
    with pytest.raises(ValueError, match=rf"google\.{key} is 'http://google.example', but must begin with https://"):
        settings(tmp_path, f'{GOOGLE}{key} = "http://google.example"\n')
    near = settings(tmp_path, f'{GOOGLE}{key} = "http://127.0.0.1:8000/"\n')
    assert getattr(near.services["google"], key) == "http://127.0.0.1:8000"


def test_doctor_names_the_address_to_register_and_says_that_nothing_was_tried(tmp_path: Path) -> None:
    [finding] = [one for one in doctor(settings(tmp_path, GOOGLE)) if one.what == "Google"]
    assert finding.ok
    assert "https://assistant.example.org/accounts/connected" in finding.sentence
    assert "Not tried" in finding.sentence
