"""A real Chromium and the report it opens, for every test in this folder.

Where Chromium or Playwright is missing the tests are skipped, and say so.
"""

import shutil
from collections import defaultdict

import pytest

from annotation_desk import Served, small_run, write_run
from misslink.report.page import write_html
from proven_run import proven_run
from watch import listening

# The shell has the same engine and no window, and opens a page in half of the time.
CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--js-flags=--single-threaded",  # tests wait for each page, so its threads only cost
]
VIEWPORT = {"width": 1280, "height": 720}  # Playwright's own


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The report of a hand-written run that uses every part of the page."""
    return write_html(proven_run(), tmp_path_factory.mktemp("report") / "report.html")


@pytest.fixture(scope="package")
def browser():
    """Chromium, headless, once for all files: this folder has an __init__.py, so it is a package.

    Not for the whole session: while Playwright runs, no other test can call asyncio.run.
    """
    if CHROMIUM is None:
        pytest.skip("neither chromium-headless-shell nor chromium is installed")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="package")
def free_tabs():
    """Tabs that tests have done with, by what they were opened with: a new one costs as much as the report."""
    return defaultdict(list)


@pytest.fixture
def tabs(browser, free_tabs):
    """Open a tab that shows nothing yet; what it says on its console and asks for is noted.

    A test that gives it a clock, a route or a listener sets `spent`: no other test takes it.
    """
    used = []

    def open_tab(**options):
        kind = repr(sorted(options.items()))
        if free_tabs[kind]:
            tab = free_tabs[kind].pop()
            tab.emulate_media(media="null")
            tab.set_viewport_size(options.get("viewport", VIEWPORT))
            tab.said.clear()
            tab.asked.clear()
        else:
            # Without smooth scrolling a click need not wait until the page stands still.
            options = {"viewport": VIEWPORT, "reduced_motion": "reduce", **options}
            tab = listening(browser.new_page(**options))
            tab.spent = False
        used.append((kind, tab))
        return tab

    yield open_tab
    for kind, tab in used:
        if tab.spent:
            tab.close()
            continue
        if tab.url.startswith("http"):
            tab.evaluate("localStorage.clear(), sessionStorage.clear()")
        tab.goto("about:blank")
        free_tabs[kind].append(tab)


@pytest.fixture
def opened(tabs, report):
    """The page, its console messages (violations of the policy too) and the requests it made."""
    page = tabs()
    page.goto(f"{report.as_uri()}#cases")
    return page


@pytest.fixture
def at(tabs, report):
    """Open the report at a fragment; what it says on the console ends the test."""
    pages = []

    def open_at(fragment="", **options):
        page = tabs(**options)
        page.goto(f"{report.as_uri()}#{fragment or 'cases'}")
        page.wait_for_selector("#rows[aria-busy=false]", state="attached")
        pages.append(page)
        return page

    yield open_at
    for page in pages:
        assert page.said == []


@pytest.fixture(scope="session")
def axe():
    library = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed"
    )
    return library.Axe()


@pytest.fixture
def run(tmp_path):
    """A small run to be labelled."""
    return write_run(tmp_path / "run", small_run())


@pytest.fixture
def served(run):
    """The server on which it is labelled."""
    server = Served(run)
    yield server
    server.stop()


@pytest.fixture
def noisy_page(tabs):
    return tabs()


@pytest.fixture
def page(noisy_page):
    """A page on which nothing may go wrong unnoticed."""
    yield noisy_page
    assert noisy_page.said == []
