"""Strangers and forgeries: what a mail claims of its organiser sends nothing to anybody."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kinfolk_assistant.features.people import Contact
from kinfolk_assistant.ledger.store import Ledger
from kinfolk_assistant.reading.mail import read_mail
from kinfolk_assistant.reading.trust import Trust
from kinfolk_assistant.service.assistant import Assistant
from tests.assistant.service.world import ANN, BOSS, MONDAY, Recorder, automate, invitation, teach

SERVER = "mx.example.org"
SLOT = MONDAY + timedelta(days=2)
PASSED = f"Authentication-Results: {SERVER}; dkim=pass header.d=example.org; dmarc=pass header.from=example.org"
TRUST = Trust(
    servers=[SERVER],
    delegates={BOSS: ["office@temps.example"]},
    services=["calendar-notification@google.com"],
    deny=["vendor.example"],
    allow=["partner.example"],
)


@pytest.fixture
def ready(assistant: Assistant, ledger: Ledger) -> Assistant:
    """An assistant that answers Ann's invitations as soon as it may."""
    assistant.trust = TRUST
    teach(ledger, ANN)
    automate(assistant, undo_minutes=0, daily_cap=100)
    return assistant


def mail(
    assistant: Assistant,
    *headers: str,
    sender: str = BOSS,
    organiser: str = BOSS,
    sent_by: str = "",
    uid: str = "m1",
    method: str = "REQUEST",
    sequence: int = 0,
    hours: int = 0,
) -> list[int]:
    """Take a mail in, with the headers above From, as the own server puts them there."""
    start = SLOT + timedelta(hours=hours)
    text = invitation(uid, start, organiser=organiser, method=method, sequence=sequence).text
    text = text.replace("ORGANIZER;", f'ORGANIZER;SENT-BY="mailto:{sent_by}";') if sent_by else text
    lines = [*headers, f"From: Somebody <{sender}>", "Message-ID: <1@x>", "Content-Type: text/calendar", "", text]
    [one] = read_mail("\r\n".join(lines).encode())
    at = assistant.clock()
    numbers = assistant.take_in(ANN, [one.object], received_at=at, source="mail", origin=one.origin)
    assistant.work()
    return numbers


def test_an_organisers_own_mail_that_the_own_server_has_checked_is_answered(
    ready: Assistant, recorder: Recorder
) -> None:
    mail(ready, PASSED)
    assert recorder.answers() == [("m1", "ACCEPTED")]


FORGED = {
    "sent by somebody else": ((PASSED,), {"sender": "eve@evil.example"}, "sent by eve@evil.example, who is not"),
    "checked for somebody else": (
        (PASSED.replace("example.org;", "evil.example;", 2).replace("=example.org", "=evil.example"),),
        {},
        "did not say whether boss@example.org",
    ),
    "not checked": ((), {}, "did not say whether boss@example.org really sent it"),
    "checked by another server": ((PASSED.replace(SERVER, "mx.evil.example"),), {}, "did not say"),
    "checked below the line of the own server": (
        (
            f"Authentication-Results: {SERVER}; spf=none",
            "Received: from x by mx; Mon, 2 Mar 2026 09:00:00 +0000",
            PASSED,
        ),
        {},
        "did not say",
    ),
    "failed": ((f"Authentication-Results: {SERVER}; dmarc=fail header.from=example.org",), {}, "may not have sent it"),
    "soft failed": ((f"Authentication-Results: {SERVER}; spf=softfail smtp.mailfrom=example.org",), {}, "may not have"),
    "a list": ((PASSED, "List-Id: <all.example.org>"), {}, "came through a mailing list"),
    "sent by of another domain": (
        (PASSED.replace("=example.org", "=evil.example"),),
        {"sender": "eve@evil.example", "sent_by": "eve@evil.example"},
        "who is not its organiser",
    ),
    "a stranger": (
        (PASSED.replace("=example.org", "=far.example"),),
        {"sender": "x@far.example", "organiser": "x@far.example"},
        "you have never met x@far.example",
    ),
    "denied": (
        (PASSED.replace("=example.org", "=vendor.example"),),
        {"sender": "x@vendor.example", "organiser": "x@vendor.example"},
        "never answered automatically",
    ),
}


@pytest.mark.parametrize("kind", FORGED)
def test_nothing_leaves_for_what_may_be_forged_or_a_strangers(ready: Assistant, recorder: Recorder, kind: str) -> None:
    headers, told, why = FORGED[kind]
    [number] = mail(ready, *headers, **told)  # type: ignore[arg-type]
    assert recorder.sent == []
    shown = ready.request(ANN, number)
    assert (shown.state, shown.action) == ("open", "accept")
    assert why in shown.why


def test_ten_mails_in_a_victims_name_send_the_victim_nothing(ready: Assistant, recorder: Recorder) -> None:
    for n in range(10):
        mail(
            ready, PASSED.replace("=example.org", "=evil.example"), sender="eve@evil.example", uid=f"m{n}", hours=2 * n
        )
    assert recorder.sent == []


TIED = {
    "automatic mail": ((PASSED, "Auto-Submitted: auto-generated"), {}),
    "Sender": ((PASSED, f"Sender: {BOSS}"), {"sender": "office@example.org"}),
    "sent by of the same domain": ((PASSED,), {"sender": "pa@example.org", "sent_by": "pa@example.org"}),
    "a delegate": ((PASSED.replace("=example.org", "=temps.example"),), {"sender": "office@temps.example"}),
    "a service": (
        (PASSED.replace("=example.org", "=google.com"),),
        {"sender": "calendar-notification@google.com"},
    ),
    "allowed": (
        (PASSED.replace("=example.org", "=partner.example"),),
        {"sender": "x@partner.example", "organiser": "x@partner.example"},
    ),
}


@pytest.mark.parametrize("kind", TIED)
def test_who_can_be_tied_to_the_organiser_is_answered(ready: Assistant, recorder: Recorder, kind: str) -> None:
    headers, told = TIED[kind]
    mail(ready, *headers, **told)  # type: ignore[arg-type]
    assert len(recorder.sent) == 1


@pytest.mark.parametrize("how", ["accepted before", "in the table"])
def test_an_outsider_who_was_met_is_no_stranger(ready: Assistant, recorder: Recorder, how: str) -> None:
    far = "x@far.example"
    passed = PASSED.replace("=example.org", "=far.example")
    if how == "in the table":
        ready.set_contacts(ANN, [Contact("person", far, "other", "other", "other")])
    else:
        [first] = mail(ready, passed, sender=far, organiser=far, uid="first", hours=5)
        ready.answer(ANN, first, "accept")
        ready.work()
        recorder.sent.clear()
    mail(ready, passed, sender=far, organiser=far)
    assert recorder.answers() == [("m1", "ACCEPTED")]


def test_no_more_than_the_cap_goes_to_one_organiser_or_one_domain_in_a_day(
    ready: Assistant, recorder: Recorder
) -> None:
    ready.trust = Trust(servers=[SERVER], allow=["far.example"], per_organiser=2, per_domain=3)
    passed = PASSED.replace("=example.org", "=far.example")
    whys = []
    for n, who in enumerate(("a", "a", "a", "b", "c")):
        far = f"{who}@far.example"
        [number] = mail(ready, passed, sender=far, organiser=far, uid=f"m{n}", hours=2 * n)
        whys.append(ready.request(ANN, number).why)
    assert whys == [
        "",
        "",
        "2 answers went to a@far.example today already",
        "",
        "3 answers went to far.example today already",
    ]
    assert len(recorder.sent) == 3


@pytest.mark.parametrize("method", ["CANCEL", "REQUEST"])
def test_a_forged_change_of_a_known_meeting_is_not_followed(ready: Assistant, recorder: Recorder, method: str) -> None:
    ready.change_settings(ANN, undo_minutes=10)
    [number] = mail(ready, PASSED)
    assert ready.request(ANN, number).reply_state == "prepared"
    failed = f"Authentication-Results: {SERVER}; dmarc=fail header.from=example.org"
    mail(ready, failed, method=method, sequence=1, hours=3)
    shown = ready.request(ANN, number)
    assert (shown.state, shown.action, shown.reply_state) == ("open", "ask", "withdrawn")
    assert "a mail that may not be from boss@example.org says that it has changed" in shown.why
