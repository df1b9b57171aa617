"""The documentation builds without a warning, and its pages work from a folder without a network."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CHROMIUM = shutil.which("chromium")
PAGES = (
    "index",
    "tutorial",
    "models/naive-bayes",
    "pictures/index",
    "reference",
    "api/kinfolk.ClusteredNB",
    "checks",
    "claims",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("pydata_sphinx_theme", reason="needs the extra docs")
    pytest.importorskip("sphinx_gallery", reason="needs the extra docs")
    source, built = tmp_path_factory.mktemp("source") / "repository", tmp_path_factory.mktemp("site")
    # Built elsewhere, since pages of the gallery and of the reference are made beside their sources.
    for part in ("docs", "bench", "results"):
        shutil.copytree(ROOT / part, source / part, ignore=shutil.ignore_patterns("_build", "api", "pictures"))
    for part in ("CHANGELOG.md", "README.md"):
        shutil.copy(ROOT / part, source / part)
    (source / "src").symlink_to(ROOT / "src")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", source / "docs", built]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT / "src")})
    assert done.returncode == 0, done.stderr
    return built


@pytest.mark.slow
def test_links_and_anchors_within_the_site_lead_somewhere(site):
    found = (page for page in site.rglob("*.html") if "_static" not in page.parts)
    pages = {page: page.read_text(encoding="utf-8") for page in found}
    anchors = {page: set(re.findall(r'\bid="([^"]+)"', text)) for page, text in pages.items()}
    lost = []
    for page, text in pages.items():
        for target in re.findall(r'href="([^"]+)"', text):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            path = path.partition("?")[0]
            there = (page.parent / path).resolve() if path else page
            if not there.exists() or (anchor and there in anchors and anchor not in anchors[there]):
                lost.append(f"{page.relative_to(site)}: {target}")
    assert lost == []


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: run scripts/install-chromium")
def test_pages_load_nothing_from_elsewhere_and_draw_their_equations(site):
    playwright = pytest.importorskip("playwright.sync_api", reason="needs Playwright")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1200, "height": 900})
        asked, errors = [], []
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        for name in PAGES:
            page.goto((site / f"{name}.html").as_uri())
            assert page.locator("h1").first.is_visible()
        page.goto((site / "models" / "naive-bayes.html").as_uri())
        heights = page.locator("math").evaluate_all("all => all.map(one => one.getBoundingClientRect().height)")
        assert len(heights) > 10
        assert min(heights) > 5
        laid_out = page.locator("div.math").evaluate_all("""all => all.map(box => {
            const [outer, inner] = [box, box.querySelector("math")].map(one => one.getBoundingClientRect());
            return [outer.left + outer.right - inner.left - inner.right, box.scrollHeight - box.clientHeight];
        })""")
        assert len(laid_out) >= 3
        assert all(abs(off_centre) < 4 and cut_off <= 0 for off_centre, cut_off in laid_out), laid_out
        browser.close()
    assert errors == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []


@pytest.mark.slow
def test_pages_of_the_gallery_show_no_warning_and_not_where_they_were_built(site):
    pages = list((site / "pictures").glob("plot_*.html"))
    assert len(pages) == len(list((ROOT / "docs" / "gallery").glob("plot_*.py")))
    assert [page.name for page in pages if "Warning" in (text := page.read_text("utf-8")) or "&lt;Axes" in text] == []
