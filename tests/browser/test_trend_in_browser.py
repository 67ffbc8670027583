"""The trend page in a real browser: nothing loaded, nothing wider than the screen, two schemes."""

from __future__ import annotations

import pytest

from misslink.canary.alarms import detect_alarms
from misslink.canary.history import CanaryHistory
from misslink.canary.trend_page import build_trend_page, render_trend_page
from watch import listening

pytestmark = pytest.mark.slow
_WIDER = """() => [...document.querySelectorAll("main *")].filter(
  (one) => !one.closest(".scroll, .lines, svg")
    && one.getBoundingClientRect().right > innerWidth + 1
).map((one) => one.outerHTML.slice(0, 80))"""


@pytest.fixture(scope="module")
def trend(tmp_path_factory):
    from canary_runs import finished

    folder = tmp_path_factory.mktemp("trend")
    with CanaryHistory(folder / "canary.sqlite") as history:
        for number in range(60):
            ill = range(8) if number % 40 > 30 else (number % 10,) if number % 4 == 0 else ()
            history.enter(finished(number, ill, documents={"a long id " * 9: str(number // 31)}))
        readings = history.comparable("main")
        html = render_trend_page(
            build_trend_page(
                "main", history.runs("main"), readings, detect_alarms(readings, learn=10)
            )
        )
    path = folder / "trend.html"
    path.write_text(html, encoding="utf-8")
    return path


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 390])
def test_it_fits_the_screen_and_asks_for_nothing(browser, trend, width, scheme):
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=True
    )
    page = listening(context.new_page())
    page.goto(trend.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(_WIDER) == []
    assert page.said == []
    assert [url for url in page.asked if not url.startswith("file:")] == []
    assert page.locator("svg.trend").count() >= 4
    context.close()


def test_a_number_on_a_chart_leads_to_its_alarm_without_javascript(browser, trend):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(trend.as_uri())
    link = page.locator("svg.trend a").first
    target = link.get_attribute("href")
    link.click()
    assert page.url.endswith(target)
    assert page.locator(target).is_visible()
    context.close()
