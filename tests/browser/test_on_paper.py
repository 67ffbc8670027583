"""Pages on paper: white, nothing wider than the sheet, and what is folded on the screen is read."""

import pytest

from annotation_desk import open_case
from canary_runs import finished
from live_logs import report as live_report
from live_logs import simulated
from misslink import compare
from misslink.canary.alarms import detect_alarms
from misslink.canary.history import CanaryHistory
from misslink.canary.report import build_trend_page, render_trend_page
from misslink.live.page import build_live_page, render_live_page
from misslink.report.page import write_html
from proven_run import proven_run
from small_runs import small_run, write_run

pytestmark = pytest.mark.slow
_SHEET = 695  # A4 at 96 dpi, less margins of 13 mm
_WIDER = """(sheet) => [...document.querySelectorAll("main *")].filter((one) => {
  const box = one.getBoundingClientRect();
  return box.width && box.right > sheet + 1 && !one.closest("svg");
}).map((one) => one.outerHTML.slice(0, 80))"""
_FOLDED = """() => [...document.querySelectorAll("details:not(.as-table, .change)")].filter(
  (one) => ![...one.children].slice(1).some((part) => part.getBoundingClientRect().height)
).map((one) => one.textContent.slice(0, 80))"""


def _report(folder):
    return write_html(proven_run(), folder / "page.html")


def _compare(folder):
    for name, hits in (("a", [1, 1, 1, 0]), ("b", [0, 1, 1, 1])):
        write_run(folder / name, small_run(hits, hits))
    return compare(folder / "a", folder / "b").html(folder / "page.html")


def _canary(folder):
    with CanaryHistory(folder / "canary.sqlite") as history:
        for number in range(45):
            history.enter(finished(number, range(8) if number > 42 else ()))
        readings = history.comparable("main")
        page = build_trend_page(
            "main", history.runs("main"), readings, detect_alarms(readings, learn=10)
        )
    (folder / "page.html").write_text(render_trend_page(page), encoding="utf-8")


def _live(folder):
    log = simulated(folder / "live.sqlite", 600, (0.4, 0.7))
    text = render_live_page(build_live_page(live_report(log)))
    (folder / "page.html").write_text(text, encoding="utf-8")


@pytest.mark.parametrize("make", [_report, _compare, _canary, _live])
def test_a_sheet_is_white_and_holds_all(tabs, tmp_path, make):
    make(tmp_path)
    page = tabs(viewport={"width": _SHEET, "height": 1000}, color_scheme="dark")
    page.goto((tmp_path / "page.html").as_uri())
    page.emulate_media(media="print")

    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate(_WIDER, _SHEET) == []
    assert page.evaluate(_FOLDED) == []


def test_the_first_broken_answers_of_a_comparison_are_read_on_paper(tabs, tmp_path):
    _compare(tmp_path)
    page = tabs()
    page.goto((tmp_path / "page.html").as_uri())
    broken = page.locator(".change:has(.broken-change) .columns")
    fixed = page.locator(".change:has(.fixed-change) .columns")
    assert not broken.is_visible()
    page.emulate_media(media="print")
    assert broken.bounding_box()["height"] > 0
    assert not fixed.is_visible()


def test_a_case_to_label_is_printed_without_its_buttons(page, served):
    open_case(page, served, "with-exit")
    assert page.locator("#dock").is_visible()
    page.emulate_media(media="print")
    assert page.locator("#dock").is_hidden()
