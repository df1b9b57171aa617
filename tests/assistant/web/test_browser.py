"""The pages in a real browser: by mouse, by keyboard alone, without a script, light and dark, wide and narrow."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.assistant.delivery.online.simulated import Simulated, simulated
from tests.assistant.web.serving import ARGUMENTS, CHROMIUM, served
from tests.assistant.web.team import ANN, PASSWORD, invite, requests_of

from kinfolk_assistant.delivery.accounts import Accounts
from kinfolk_assistant.delivery.configuration import Configuration
from kinfolk_assistant.delivery.keys import read_keys
from kinfolk_assistant.service.assistant import Assistant
from kinfolk_assistant.web.app import make_app

playwright = pytest.importorskip("playwright.sync_api", reason="needs Playwright")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: run scripts/install-chromium")

WIDE, NARROW = {"width": 1200, "height": 850}, {"width": 390, "height": 800}
Visit = Callable[..., Any]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def visit(browser: Any, assistant: Assistant) -> Iterator[Visit]:
    """Open a page as someone who sees the sign-in form first; whatever the browser complains of fails the test."""
    complaints: list[str] = []
    app = make_app(assistant, secure_cookies=False)
    app.state.wake = lambda: assistant.work(ANN)
    with served(app) as address:
        contexts = []

        def visit(**options: Any) -> Any:
            context = browser.new_context(base_url=address, **{"viewport": WIDE, **options})
            context.set_default_timeout(20_000)
            contexts.append(context)
            page = context.new_page()
            page.on("console", lambda message: complaints.append(message.text))
            page.on("pageerror", lambda error: complaints.append(str(error)))
            page.goto("/")
            return page

        yield visit
        for context in contexts:
            context.close()
    assert [one for one in complaints if "404 (Not Found)" not in one] == []


def sign_in(page: Any) -> None:
    page.get_by_label("Mail address").fill(ANN)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("heading", name="Inbox").wait_for()


def automatic_lunch(assistant: Assistant) -> int:
    assistant.change_settings(ANN, automation=True)
    number = invite(assistant, ANN, "lunch", "ann: Lunch", datetime(2026, 11, 19, 11, tzinfo=UTC))
    assistant.work(ANN)
    return number


@pytest.mark.parametrize("script", [True, False], ids=["with script", "without script"])
def test_sign_in_read_override_and_undo(visit: Visit, assistant: Assistant, script: bool) -> None:
    number = automatic_lunch(assistant)
    page = visit(java_script_enabled=script)
    sign_in(page)
    page.get_by_role("link", name="Weekly sync").click()
    page.get_by_role("heading", name="What weighed most").wait_for()
    assert "Probability that you accept" in page.locator("main").inner_text()
    page.get_by_role("link", name="Inbox", exact=True).first.click()

    sync, budget = requests_of(assistant, ANN)[:2]
    page.locator(f"#request-{sync}").get_by_role("button", name="Decline").click()
    page.get_by_text("Declined. The organiser will hear of it.").first.wait_for()
    assert assistant.request(ANN, sync).label == "decline"
    page.locator(f"#request-{budget}").get_by_role("button", name="Accept").click()
    page.get_by_text("Accepted. The organiser will hear of it.").first.wait_for()

    page.goto("/")
    page.locator(f"#request-{number}").get_by_role("button", name="Undo").click()
    page.get_by_text("Taken back before it was sent.").first.wait_for()
    assert assistant.request(ANN, number).state == "open"
    assert [one.answer for one in assistant.deliver.sent] == ["DECLINED", "ACCEPTED"]


def test_an_answer_needs_no_reload_and_the_focus_goes_on(visit: Visit, assistant: Assistant) -> None:
    page = visit()
    sign_in(page)
    page.evaluate("window.stays = true")
    first, second = requests_of(assistant, ANN)[:2]
    page.locator(f"#request-{first}").get_by_role("button", name="Accept").click()
    page.locator("[data-notice]").wait_for()
    assert page.evaluate("window.stays")
    assert page.evaluate("document.activeElement.closest('[data-row]').id") == f"request-{second}"
    assert "Accepted." in page.locator("#status").inner_text()


def test_moving_a_slider_shows_at_once_what_changes_and_saving_changes_it(visit: Visit, assistant: Assistant) -> None:
    page = visit()
    sign_in(page)
    assert page.get_by_text("Would accept").count() == 3
    page.get_by_role("link", name="Settings").click()
    slider = page.get_by_label("A question")
    slider.focus()
    slider.press("Home")
    page.locator("#preview").get_by_text("now 0").wait_for()
    assert page.locator("output[for=ask]").inner_text() == "0.00"
    assert page.locator("#preview").get_by_text("Asks you").count() == 4
    assert assistant.settings(ANN).cost_ask == 0.1
    page.get_by_role("button", name="Save these costs").click()
    page.get_by_text("Your costs are saved").wait_for()
    page.get_by_role("link", name="Inbox", exact=True).click()
    page.get_by_role("heading", name="Inbox").wait_for()
    assert page.get_by_text("Asks you").count() == 4
    assert page.get_by_text("Would accept").count() == 0


def test_without_a_script_the_sliders_show_what_changes_by_a_button(visit: Visit, assistant: Assistant) -> None:
    page = visit(java_script_enabled=False)
    sign_in(page)
    page.goto("/settings")
    page.get_by_label("A question").press("Home")
    page.get_by_role("button", name="See what changes").click()
    page.locator("#preview").get_by_text("now 0").wait_for()
    assert assistant.settings(ANN).cost_ask == 0.1


def test_the_keyboard_alone_signs_in_walks_answers_opens_and_undoes(visit: Visit, assistant: Assistant) -> None:
    number = automatic_lunch(assistant)
    page = visit()
    keys = page.keyboard
    keys.type(ANN)
    keys.press("Tab")
    keys.type(PASSWORD)
    keys.press("Enter")
    page.get_by_role("heading", name="Inbox").wait_for()

    keys.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    keys.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"

    sync, budget, hostile, offsite = requests_of(assistant, ANN)[:4]
    row = "document.activeElement.closest('[data-row]').id"
    keys.press("j")
    keys.press("j")
    keys.press("k")
    assert page.evaluate(row) == f"request-{sync}"
    keys.press("d")
    page.get_by_text("Declined.").first.wait_for()
    assert page.evaluate(row) == f"request-{budget}"
    keys.press("c")
    page.get_by_text("Accepted.").first.wait_for()
    assert page.evaluate(row) == f"request-{hostile}"
    keys.press("j")
    keys.press("a")
    page.locator(f"#request-{offsite} button[value=accept]").first.wait_for(state="detached")
    answered = [assistant.request(ANN, one).label for one in (sync, budget, hostile, offsite)]
    assert answered == ["decline", "accept", None, "accept"]

    keys.press("Enter")
    page.get_by_role("heading", name="What weighed most").wait_for()
    keys.press("?")
    assert page.locator("#keys").is_visible()
    keys.press("Escape")
    assert not page.locator("#keys").is_visible()

    page.goto(f"/requests/{number}")
    keys.press("u")
    page.get_by_text("Taken back before it was sent.").wait_for()
    assert assistant.request(ANN, number).state == "open"


def test_keys_do_nothing_while_typing_and_can_be_turned_off(visit: Visit, assistant: Assistant) -> None:
    page = visit()
    sign_in(page)
    page.goto("/settings")
    places = page.get_by_label("Places near you")
    places.focus()
    page.keyboard.type("jack?")
    assert places.input_value() == "jack?"
    page.goto("/")
    page.get_by_role("button", name="Keyboard").click()
    page.get_by_label("Use these keys in this browser").uncheck()
    page.get_by_role("button", name="Close").click()
    page.keyboard.press("j")
    page.keyboard.press("a")
    assert page.evaluate("document.activeElement.closest('[data-row]')") is None
    assert {one.state for one in assistant.inbox(ANN)} == {"open"}


def test_focus_is_always_seen(visit: Visit) -> None:
    page = visit()
    sign_in(page)
    for _ in range(12):
        page.keyboard.press("Tab")
        seen = page.evaluate("getComputedStyle(document.activeElement).outlineStyle + document.activeElement.tagName")
        assert seen.startswith("solid"), seen


def test_a_hostile_invitation_runs_nothing(visit: Visit, assistant: Assistant) -> None:
    page = visit()
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    sign_in(page)
    for path in ("/", f"/requests/{requests_of(assistant, ANN)[2]}", "/ledger"):
        page.goto(path)
        assert page.locator("main").get_by_text("<script>alert('x')</script>").count() > 0
        assert page.locator("main script").count() == 0
    assert dialogs == []


CONTRAST = """
() => {
  const channel = (v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const behind = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const colour = numbers(getComputedStyle(one).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || !element.checkVisibility() || element.closest("svg, .unseen, dialog, datalist, .skip")) continue;
    const lights = [light(numbers(getComputedStyle(element).color)), light(behind(element))].sort((a, b) => b - a);
    const ratio = (lights[0] + 0.05) / (lights[1] + 0.05);
    if (ratio < 4.5) found.push(`${element.className || element.tagName}: ${ratio.toFixed(2)}`);
  }
  return found;
}
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_every_page_has_contrast_fits_its_width_and_labels_its_fields(
    visit: Visit, assistant: Assistant, scheme: str, size: dict[str, int]
) -> None:
    def keep(name: str) -> None:
        """Keep a picture of the page for whoever asked for it."""
        if folder := os.environ.get("KINFOLK_SCREENSHOTS"):
            page.screenshot(path=Path(folder) / f"{name}-{scheme}-{size['width']}.png", full_page=True)

    number = automatic_lunch(assistant)
    page = visit(color_scheme=scheme, viewport=size)
    keep("sign-in")
    assert page.evaluate(CONTRAST) == []
    sign_in(page)
    for name, path in (
        ("inbox", "/"),
        ("request", f"/requests/{requests_of(assistant, ANN)[3]}"),
        ("automatic", f"/requests/{number}"),
        ("people", "/people"),
        ("settings", "/settings"),
        ("rules", "/rules"),
        ("ledger", "/ledger"),
        ("score", "/score"),
        ("about", "/about"),
        ("nothing", "/requests/999999"),
    ):
        page.goto(path)
        keep(name)
        assert page.evaluate(CONTRAST) == [], name
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"], name
        unlabelled = "[...document.querySelectorAll('input:not([type=hidden], [aria-hidden]), textarea')]"
        assert page.evaluate(f"{unlabelled}.filter((one) => !one.labels.length).length") == 0, name
        assert page.locator("h1").count() == 1, name
        assert page.locator("[aria-labelledby]").evaluate_all(
            "(all) => all.every((one) => document.getElementById(one.getAttribute('aria-labelledby')))"
        )


def test_a_calendar_is_connected_by_a_click_and_disconnected_by_another(
    browser: Any, assistant: Assistant, tmp_path: Path
) -> None:
    keys = read_keys(tmp_path / "key")
    with simulated(ANN) as state:
        settings = Configuration("unused", services={"google": state.service("google")})
        accounts = Accounts(settings, assistant.ledger, keys)
        # A browser would stop a form that leads to another site, and a page whose policy forbids it; neither is there.
        with served(make_app(assistant, secure_cookies=False, keys=keys, accounts=accounts)) as address:
            context = browser.new_context(base_url=address, viewport=NARROW)
            page = context.new_page()
            page.goto("/")
            sign_in(page)
            page.goto("/accounts")
            page.get_by_role("link", name="Connect Google").click()
            page.get_by_text("Your calendar is connected").wait_for()
            assert len(state.refresh) == 1
            page.get_by_role("button", name="Disconnect").click()
            page.get_by_text("Your calendar is no longer connected").wait_for()
            context.close()
    assert len(state.revoked) == 1
    assert accounts.calendars() == {}


@pytest.mark.skipif(not os.environ.get("KINFOLK_AXE"), reason="needs axe-core: KINFOLK_AXE names its axe.min.js")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_to_complain_of(browser: Any, assistant: Assistant, scheme: str, tmp_path: Path) -> None:
    source = Path(os.environ["KINFOLK_AXE"]).read_text(encoding="utf-8")
    keys = read_keys(tmp_path / "key")
    services = {"google": Simulated(url="http://127.0.0.1:1").service("google")}
    settings = Configuration("unused", hosts=("mail.example.org",), admins=frozenset([ANN]), services=services)
    accounts = Accounts(settings, assistant.ledger, keys)
    app = make_app(assistant, secure_cookies=False, keys=keys, accounts=accounts, sends_digests=True)
    paths = ["/", f"/requests/{requests_of(assistant, ANN)[0]}", "/people", "/rules", "/score", "/ledger", "/about"]
    with served(app) as address:
        # The policy of the pages keeps foreign scripts out, which is just what this one is.
        context = browser.new_context(base_url=address, viewport=NARROW, color_scheme=scheme, bypass_csp=True)
        page = context.new_page()
        page.goto("/")
        sign_in(page)
        for path in (*paths, "/settings", "/accounts", "/admin"):
            page.goto(path)
            page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
            page.add_script_tag(content=source)
            found = page.evaluate("axe.run()")["violations"]
            assert [(one["id"], one["nodes"][0]["html"]) for one in found] == [], path
        context.close()
