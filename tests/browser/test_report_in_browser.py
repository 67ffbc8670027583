"""The report in a real Chromium: what people click, and what hostile texts try."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from misslink.report.html import write

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason=f"{CHROMIUM} is not installed")


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = Path(__file__).parents[1] / "report"
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)  # it builds on the example beside it
        example = runpy.run_path(str(folder / "proven_run.py"))
    return write(example["proven_run"](), tmp_path_factory.mktemp("report") / "report.html")


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def opened(browser, report):
    """The page, its console messages (violations of the policy too) and the requests it made."""
    # Without smooth scrolling a click need not wait until the page stands still.
    page = browser.new_page(reduced_motion="reduce")
    page.said, page.asked = [], []
    page.on("console", lambda message: page.said.append(message.text))
    page.on("pageerror", lambda error: page.said.append(str(error)))
    page.on("request", lambda request: page.asked.append(request.url))
    page.goto(report.as_uri())
    yield page
    page.close()


def _visible(page):
    return page.locator("details.case:visible").count()


def test_nothing_is_said_on_the_console_nothing_asked_and_no_hostile_script_runs(opened, report):
    opened.click("#open-all")
    for claim in opened.locator(".answer a.claim").all():
        claim.hover()
        claim.click()

    assert opened.said == []
    assert opened.asked == [report.as_uri()]
    assert opened.evaluate("typeof window.pwned") == "undefined"
    assert opened.locator("h1").is_visible()


def test_an_injected_script_would_be_stopped_by_the_policy(opened):
    opened.evaluate(
        "const s = document.createElement('script'); s.textContent = 'window.pwned = 9';"
        "document.body.append(s)"
    )

    assert opened.evaluate("typeof window.pwned") == "undefined"
    assert any("Content Security Policy" in text for text in opened.said)


def test_cases_are_filtered_by_cause_and_by_text(opened):
    assert _visible(opened) == 14

    opened.select_option("#by-cause", "retrieval_miss")
    assert _visible(opened) == 2
    opened.fill("#by-text", "SOCKETS by")
    assert _visible(opened) == 1
    assert opened.inner_text("#shown") == "1 of 14"
    opened.fill("#by-text", "")
    opened.select_option("#by-cause", "")
    assert _visible(opened) == 14


def test_a_cause_in_the_table_shows_its_cases(opened):
    opened.click("a[data-filter=fine]")

    assert _visible(opened) == 3
    assert opened.input_value("#by-cause") == "fine"


def test_a_click_on_a_claim_jumps_to_its_quote_and_to_the_missed_passage(opened):
    case = opened.locator("#case-14")
    case.locator("summary").first.click()
    for kind, mark in (("supported", "nothing happens"), ("contradicted", "its type, value and")):
        case.locator(f".answer a.{kind}").click()
        target = opened.locator(":target")
        assert target.inner_text().startswith(mark)
        assert target.evaluate("e => e.tagName") == "MARK"
        assert target.is_visible()


def test_an_address_with_a_place_in_it_opens_the_case_there(browser, report):
    page = browser.new_page()
    page.goto(report.as_uri() + "#case-14-missed-1-quote-1")

    assert page.locator(":target").is_visible()
    page.close()


def test_a_link_to_a_filtered_case_shows_it_again(opened):
    opened.fill("#by-text", "no such text anywhere")
    assert _visible(opened) == 0

    opened.evaluate("location.hash = '#case-14-claim-1'")
    opened.wait_for_selector("#case-14-claim-1", state="visible")

    assert opened.input_value("#by-text") == ""


def test_without_scripts_every_case_is_there(browser, report):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())

    assert _visible(page) == 14
    assert not page.locator("#filter").is_visible()
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_never_scrolls_sideways(browser, report, scheme):
    page = browser.new_page(viewport={"width": 390, "height": 844}, color_scheme=scheme)
    page.goto(report.as_uri())
    page.click("#open-all")

    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.close()


def test_an_axis_of_many_groups_is_folded_and_fits_a_phone_open_or_not(browser, tmp_path):
    example = runpy.run_path(str(Path(__file__).parents[1] / "report" / "example_run.py"))
    run = example["example_run"]()
    group = next(iter(run.summary["slices"]["category"].values()))
    many = {f"topic {number}": group for number in range(20)}
    summary = run.summary | {"slices": run.summary["slices"] | {"topic": many}}
    path = write(run.model_copy(update={"summary": summary}), tmp_path / "report.html")
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto(path.as_uri())
    assert not page.get_by_text("topic 19", exact=True).is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.get_by_text("20 groups").click()
    assert page.get_by_text("topic 19", exact=True).is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.close()


def test_a_mark_on_the_map_opens_its_case(opened):
    mark = opened.locator("svg.map a[href='#case-14'] path")
    assert "Retrieval miss: What does a with" in mark.locator("title").text_content()

    mark.click()

    assert opened.locator("#case-14").evaluate("e => e.open")
    assert opened.locator("#case-14 .measured").first.is_visible()


def test_the_keyboard_passes_the_map_s_marks_by(opened):
    assert opened.evaluate(
        "[...document.querySelectorAll('svg.map a')].every(a => a.tabIndex === -1)"
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_marks_of_the_map_stand_out_from_its_ground(browser, report, scheme):
    # WCAG 1.4.11: 3 to 1 for what a drawing says.
    page = browser.new_page(color_scheme=scheme)
    page.goto(report.as_uri())
    weak = page.evaluate("""() => {
      const light = (rgb) => {
        const [r, g, b] = rgb.match(/[\\d.]+/g).slice(0, 3).map((v) => {
          const c = v / 255;
          return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
      };
      const paper = light(getComputedStyle(document.body).backgroundColor);
      const ratio = (at) => {
        const [x, y] = [light(getComputedStyle(at).fill), paper].sort((p, q) => q - p);
        return x / y;
      };
      const keys = [...document.querySelectorAll(".keys .mark")];
      return [keys.length, keys.filter((at) => ratio(at) < 3).map((at) => at.classList.value)];
    }""")
    page.close()

    assert weak == [11, []]


def test_text_stands_out_from_its_ground_in_light_and_dark(browser, report):
    # WCAG AA: 4.5 to 1 for text of this size.
    contrast = """() => {
      const style = getComputedStyle(document.documentElement);
      const light = (name) => {
        const hex = style.getPropertyValue(name).trim().slice(1);
        const [r, g, b] = [0, 2, 4].map((i) => {
          const c = parseInt(hex.slice(i, i + 2), 16) / 255;
          return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
      };
      const pairs = [["ink", "paper"], ["soft", "paper"], ["soft", "wash"], ["accent", "paper"],
        ["accent", "accent-wash"], ["ink", "accent-wash"], ["ink", "calm-wash"], ["calm", "paper"],
        ["calm", "wash"]];
      return pairs.map(([a, b]) => {
        const [x, y] = [light("--" + a), light("--" + b)].sort((p, q) => q - p);
        return [a + " on " + b, x / y];
      });
    }"""
    for scheme in ("light", "dark"):
        page = browser.new_page(color_scheme=scheme)
        page.goto(report.as_uri())
        weak = [(pair, ratio) for pair, ratio in page.evaluate(contrast) if ratio < 4.5]
        page.close()
        assert weak == []
