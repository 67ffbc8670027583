"""The canary and live pages in a real browser: accessible, nothing loaded, nothing wider than it."""

import pytest

from canary_runs import finished, result
from live_logs import report, simulated
from misslink.canary.alarms import detect_alarms
from misslink.canary.history import CanaryHistory
from misslink.canary.report import build_trend_page, render_trend_page
from misslink.live.page import build_live_page, render_live_page

pytestmark = pytest.mark.slow
_WIDER = """() => [...document.querySelectorAll("main *")].filter(
  (one) => !one.closest(".scroll, .lines, svg")
    && one.getBoundingClientRect().right > innerWidth + 1
).map((one) => one.outerHTML.slice(0, 80))"""
_SMALL_TARGETS = """() => [...document.querySelectorAll("main a, summary")].filter((one) => {
  const box = one.getBoundingClientRect();
  return box.width && (box.width < 24 || box.height < 24);
}).map((one) => one.outerHTML.slice(0, 80))"""


def _trend(folder):
    """A recovered event and an open one, with a suspect that has no place to break."""
    with CanaryHistory(folder / "canary.sqlite") as history:
        for number in range(45):
            ill = range(8) if number % 20 > 17 else (number % 10,) if number % 4 == 0 else ()
            history.enter(finished(number, ill, documents={"a long id " * 9: str(number // 31)}))
        readings = history.comparable("main")
        watched = detect_alarms(readings, learn=10)
        page = build_trend_page("main", history.runs("main"), readings, watched)
    return render_trend_page(page)


def _live(folder):
    log = simulated(folder / "live.sqlite", 600, (0.4, 0.7), name="a-name-without-any-break-" * 3)
    return render_live_page(build_live_page(report(log)))


@pytest.fixture(scope="module", params=[_trend, _live], ids=["trend", "live"])
def address(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    path = folder / "page.html"
    path.write_text(request.param(folder), encoding="utf-8")
    return path.as_uri()


@pytest.mark.parametrize(("width", "scheme"), [(1200, "dark"), (390, "light")])
def test_it_fits_the_screen_asks_for_nothing_and_axe_finds_no_violation(
    tabs, address, width, scheme
):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = tabs(viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True)
    page.goto(address)
    page.evaluate("() => document.querySelectorAll('details').forEach((one) => one.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(_WIDER) == []
    assert page.evaluate(_SMALL_TARGETS) == []
    assert page.said == []
    assert [url for url in page.asked if not url.startswith("file:")] == []
    assert page.locator("svg.trend").count() >= 1
    assert [fault["id"] for fault in axe.run(page).response["violations"]] == []


def test_a_number_at_a_chart_leads_to_its_alarm_without_javascript(browser, tmp_path):
    path = tmp_path / "trend.html"
    path.write_text(_trend(tmp_path), encoding="utf-8")
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(path.as_uri())
    link = page.locator(".marks a").first
    target = link.get_attribute("href")
    link.click()
    assert page.url.endswith(target)
    assert page.locator(target).is_visible()
    context.close()


@pytest.mark.parametrize("owner", [None, "team"])
def test_a_narrow_screen_says_what_was_before_and_what_is_now(browser, tmp_path, owner):
    with CanaryHistory(tmp_path / "canary.sqlite") as history:
        for number in range(15):
            results = tuple(result(f"c{n}", number < 12, owner=owner) for n in range(10))
            history.enter(finished(number, results=results))
        readings = history.comparable("main")
        watched = detect_alarms(readings, learn=10)
        text = render_trend_page(build_trend_page("main", history.runs("main"), readings, watched))
    (tmp_path / "trend.html").write_text(text, encoding="utf-8")
    page = browser.new_page(viewport={"width": 390, "height": 900})
    page.goto((tmp_path / "trend.html").as_uri())
    cells = (
        page.locator(".lost tbody tr")
        .first.locator("td")
        .evaluate_all(
            "cells => cells.map((one) => [getComputedStyle(one, '::before').content, one.innerText])"
        )
    )
    labelled = {text: label for label, text in cells}
    assert "Before" in labelled["the first expected passage is at rank 1"]
    assert "Now" in labelled["no expected passage"]
    page.close()
