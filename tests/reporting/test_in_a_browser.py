"""Reports in a real browser: hostile names, keyboard, sorting and searching, light and dark, narrow, on paper."""

import os
import re
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import kinfolk
from tests.reporting.examples import HOSTILE, kin

playwright = pytest.importorskip("playwright.sync_api", reason="needs Playwright")
CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: run scripts/install-chromium")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    X, y, task = kin(12, 10, name=lambda t: f"{HOSTILE} {t}")
    X = X.rename(columns={"a": '"><img src=x onerror="window.broken = 1">', "b": "</style><script>1</script>"})
    labels = np.where(y == "go", "'><svg onload=alert(1)>", "javascript:alert(1)")
    model = kinfolk.ClusteredNB(random_state=0).fit(X, labels, task=task)
    path = tmp_path_factory.mktemp("report") / "report.html"
    model.report(path, X, y=labels, task=task)
    return path


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def visit(browser, page_file):
    """Open the page; whatever the browser complains of, or fetches beside the page, fails the test."""
    said, asked, contexts = [], [], []

    def visit(**options):
        context = browser.new_context(**{"viewport": {"width": 1200, "height": 850}, **options})
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(page_file.as_uri())
        return page

    yield visit
    for context in contexts:
        context.close()
    assert said == []
    assert set(asked) == {page_file.as_uri()}


def first_column(page):
    return page.locator("#task-table tbody tr:not(.hidden) td:first-child").all_inner_texts()


def test_names_of_tasks_columns_and_labels_run_nothing_and_are_read_as_text(visit):
    page = visit()
    assert page.evaluate("window.broken") is None
    assert page.locator("script").count() == 1
    assert page.locator("img").count() == 0
    assert first_column(page)[0].startswith(HOSTILE)


def test_tables_sort_and_can_be_searched_by_keyboard_alone(visit):
    page = visit()
    head = page.locator("#task-table th", has_text="loss held out").get_by_role("button")
    head.focus()
    page.keyboard.press("Enter")
    losses = page.locator("#task-table tbody tr td:nth-child(6)").evaluate_all("c => c.map(x => Number(x.dataset.v))")
    assert losses == sorted(losses)
    page.keyboard.press("Enter")
    losses = page.locator("#task-table tbody tr td:nth-child(6)").evaluate_all("c => c.map(x => Number(x.dataset.v))")
    assert losses == sorted(losses, reverse=True)
    search = page.get_by_label("Search the table").first
    search.focus()
    page.keyboard.type("> 11")
    assert first_column(page) == [f"{HOSTILE} 11"]
    assert page.locator("#task-table-told").inner_text() == "1 of 12 shown"


def test_without_a_script_all_rows_are_there_and_nothing_useless_is_shown(visit):
    page = visit(java_script_enabled=False)
    assert page.locator("#task-table tbody tr").count() == 12
    assert not page.get_by_label("Search the table").first.is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_in_light_and_dark(visit, scheme):
    page = visit(color_scheme=scheme)
    pairs = page.evaluate("""() => ["body", ".faint", ".small", ".answer strong", "a"].map(name => {
        const found = getComputedStyle(document.querySelector(name));
        return [found.color, getComputedStyle(document.body).backgroundColor];
    })""")
    for ink, paper in pairs:
        assert contrast(ink, paper) >= 4.5, (scheme, ink, paper)


def contrast(one, other):
    """Ratio of luminances as the Web Content Accessibility Guidelines define it."""
    lights = sorted(luminance([int(part) for part in colour[4:-1].split(",")]) for colour in (one, other))
    return (lights[1] + 0.05) / (lights[0] + 0.05)


def luminance(colour):
    parts = [c / 255 / 12.92 if c / 255 <= 0.03928 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def test_on_a_phone_nothing_but_tables_and_pictures_is_wider_than_the_screen(visit):
    page = visit(viewport={"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_what_is_wider_than_a_phone_scrolls_by_keyboard_and_only_that_stops_the_tab_key(visit):
    wide = """() => [...document.querySelectorAll("figure, .scroll")]
        .map(box => [box.scrollWidth > box.clientWidth, box.tabIndex === 0])"""
    for width in (390, 1200):
        found = visit(viewport={"width": width, "height": 800}).evaluate(wide)
        assert all(wider == stops for wider, stops in found)
        assert any(wider for wider, _ in found) == (width == 390)


def test_names_at_the_kinship_map_do_not_run_into_each_other(browser, tmp_path):
    X, y, task = kin(60, 4)
    kinfolk.ClusteredNB(random_state=0).fit(X, y, task=task).report(tmp_path / "sixty.html")
    page = browser.new_page(viewport={"width": 1200, "height": 850})
    page.goto((tmp_path / "sixty.html").as_uri())
    boxes = page.locator("svg a text").evaluate_all(
        "all => all.map(t => [t.getBoundingClientRect()].map(b => [b.y, b.height])[0])"
    )
    page.close()
    assert len(boxes) == 60
    assert all(after - before >= height * 0.8 for (before, height), (after, _) in pairwise(sorted(boxes)))


def test_on_paper_no_row_is_lost_that_a_search_hides(visit):
    page = visit()
    page.get_by_label("Search the table").first.fill("> 11")
    page.emulate_media(media="print")
    assert page.locator("#task-table tbody tr").evaluate_all("rows => rows.every(r => r.offsetHeight > 0)")
    assert not page.locator("nav").is_visible()


@pytest.mark.skipif(shutil.which("pdftotext") is None, reason="needs pdftotext, of Poppler")
def test_on_paper_every_page_of_a_long_table_has_its_heads(browser, tmp_path):
    X, y, task = kin(60, 4)
    kinfolk.ClusteredNB(random_state=0).fit(X, y, task=task).report(tmp_path / "sixty.html", X, y=y, task=task)
    page = browser.new_page()
    page.goto((tmp_path / "sixty.html").as_uri())
    page.pdf(path=tmp_path / "sixty.pdf")
    page.close()
    text = subprocess.run(["pdftotext", "-layout", tmp_path / "sixty.pdf", "-"], capture_output=True, text=True).stdout
    pages = [one for one in text.split("\f") if re.search(r"^ *task \d+ +4 ", one, re.MULTILINE)]
    assert len(pages) > 2
    assert all("gain over alone" in one for one in pages)


@pytest.mark.skipif(not os.environ.get("KINFOLK_AXE"), reason="needs axe-core: KINFOLK_AXE names its axe.min.js")
@pytest.mark.parametrize("width", [1200, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_to_complain_of(visit, scheme, width):
    # The policy of the page keeps foreign scripts out, which is just what this one is.
    page = visit(color_scheme=scheme, bypass_csp=True, viewport={"width": width, "height": 850})
    page.evaluate(Path(os.environ["KINFOLK_AXE"]).read_text(encoding="utf-8"))
    found = page.evaluate("axe.run()")["violations"]
    assert [(one["id"], one["nodes"][0]["html"]) for one in found] == []


def test_headings_go_down_one_step_at_a_time(visit):
    levels = visit().locator("h1, h2, h3, h4").evaluate_all("all => all.map(h => Number(h.tagName[1]))")
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_pictures_have_titles_and_anchors_lead_somewhere(visit):
    page = visit()
    assert page.locator("svg[role]").evaluate_all("all => all.every(s => s.querySelector('title, desc'))")
    lost = page.evaluate("""() => [...document.querySelectorAll("a[href^='#']")].map(a => a.getAttribute("href"))
        .filter(target => !document.getElementById(target.slice(1)))""")
    assert lost == []
