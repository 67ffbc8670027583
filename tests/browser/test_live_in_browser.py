"""The live page in a real browser: nothing loaded, nothing wider than the screen, two schemes."""

from __future__ import annotations

import pytest

from misslink.live.experiment_report import live_report
from misslink.live.page import build_live_page, render_live_page
from watch import listening

pytestmark = pytest.mark.slow
_WIDER = """() => [...document.querySelectorAll("main *")].filter(
  (one) => !one.closest(".scroll, .lines, svg")
    && one.getBoundingClientRect().right > innerWidth + 1
).map((one) => one.outerHTML.slice(0, 80))"""


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    from live_logs import simulated

    folder = tmp_path_factory.mktemp("live")
    name = "a-name-without-any-break-" * 3
    log = simulated(folder / "live.sqlite", 600, (0.4, 0.7), name=name)
    path = folder / "live.html"
    path.write_text(render_live_page(build_live_page(live_report(log))), encoding="utf-8")
    return path


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 390])
def test_it_fits_the_screen_and_asks_for_nothing(browser, live, width, scheme):
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=True
    )
    page = listening(context.new_page())
    page.goto(live.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(_WIDER) == []
    assert page.said == []
    assert [url for url in page.asked if not url.startswith("file:")] == []
    assert page.locator("svg.live-chart").count() == 1
    context.close()
