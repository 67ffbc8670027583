"""A real Chromium and the report it opens, for every test in this folder.

Where Chromium or Playwright is missing the tests are skipped, and say so.
"""

import shutil

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
]


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


@pytest.fixture
def opened(browser, report):
    """The page, its console messages (violations of the policy too) and the requests it made."""
    # Without smooth scrolling a click need not wait until the page stands still.
    page = listening(browser.new_page(reduced_motion="reduce"))
    page.goto(f"{report.as_uri()}#cases")
    yield page
    page.close()


@pytest.fixture
def at(browser, report):
    """Open the report at a fragment; what it says on the console ends the test."""
    pages = []

    def open_at(fragment="", **options):
        page = listening(browser.new_page(reduced_motion="reduce", **options))
        page.goto(f"{report.as_uri()}#{fragment or 'cases'}")
        page.wait_for_selector("#rows[aria-busy=false]", state="attached")
        pages.append(page)
        return page

    yield open_at
    for page in pages:
        assert page.said == []
        page.close()


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
def noisy_page(browser):
    made = listening(browser.new_page(reduced_motion="reduce"))
    yield made
    made.close()


@pytest.fixture
def page(noisy_page):
    """A page on which nothing may go wrong unnoticed."""
    yield noisy_page
    assert noisy_page.said == []
