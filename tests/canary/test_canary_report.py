"""A run as text and tables, the alarm first; a series as the trend page."""

import re

import pytest

from canary_runs import SETTINGS, finished, hung, result
from misslink.canary.alarms import detect_alarms
from misslink.canary.history import CanaryHistory
from misslink.canary.report import (
    build_trend_page,
    history_parts,
    render_trend_page,
    run_parts,
)
from misslink.render.table import parts_markdown

HOSTILE = "</title><script>alert(1)</script>"


def page_of(path, *runs):
    with CanaryHistory(path) as history:
        for run in runs:
            history.enter(run)
        readings = history.comparable("main")
        watched = detect_alarms(readings, learn=10)
        return build_trend_page("main", history.runs("main"), readings, watched)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A series that learnt, got worse when a document was edited, and stayed so."""
    steady = [finished(n, ill=(n % 10,) if n % 3 == 0 else ()) for n in range(20)]
    bad = [finished(20 + n, ill=range(8), documents={"d1": "y"}) for n in range(5)]
    return page_of(tmp_path_factory.mktemp("trend") / "canary.sqlite", *steady, *bad)


def test_the_finding_names_the_measures_that_got_worse(page):
    assert page["is_alarm"]
    assert page["finding"].startswith("It got worse: ")
    assert "health" in page["finding"]


def test_one_event_is_one_alarm_with_the_questions_that_broke(page):
    (event,) = page["events"]
    assert event["heading"] == "Health, coverage"
    assert event["is_open"]
    assert event["when"] == "Since run 21, 1 Jan 1970, 20:00 UTC"
    assert event["suspects"] == "1 document edited (d1)"
    assert {canary["id"] for canary in event["broken"]} == {f"c{n}" for n in range(8)}
    assert [canary["owner"] for canary in event["broken"]] == ["team 0"] * 4 + ["team 1"] * 4
    assert len(event["changes"]) == 2
    html = render_trend_page(page)
    assert html.count('<li id="alarm-') == 1
    assert "8 questions broke" in html


def test_each_measure_has_a_panel_with_a_point_and_a_row_a_run(page):
    panels = {panel["name"]: panel for panel in page["panels"]}
    assert list(panels) == ["health", "coverage", "top_score", "latency_s"]  # nothing failed
    health = panels["health"]
    assert health["now"].value == "20%"
    assert len(health["drawn"]["spots"]) == len(health["rows"]) == 25
    assert health["drawn"]["spots"][-1]["is_out"]
    assert health["rows"][0][2] == "20%"
    assert health["drawn"]["band"]
    assert health["learnt"].startswith("Learned from ")


def test_points_stand_as_high_as_their_values(page):
    spots = page["panels"][0]["drawn"]["spots"]
    by_value = {spot["title"].rpartition(": ")[2]: spot["y"] for spot in spots}
    assert by_value["100%"] < by_value["90%"] < by_value["20%"]
    xs = [spot["x"] for spot in spots]
    assert xs == sorted(set(xs))


def test_an_event_is_marked_where_it_opened(page):
    panel = page["panels"][0]
    ((x, _, number),) = panel["marks"]
    assert number == page["events"][0]["number"]
    assert x == panel["drawn"]["spots"][20]["x"]


def test_a_reading_that_is_better_than_usual_is_not_marked_as_bad(tmp_path):
    best = tuple(result(f"c{n}", score=0.9) for n in range(10))
    steady = [finished(n) for n in range(12)]
    page = page_of(tmp_path / "canary.sqlite", *steady, finished(12, results=best))
    (panel,) = (one for one in page["panels"] if one["name"] == "top_score")
    assert any("top score is better" in note for note in page["notes"])
    assert not panel["drawn"]["spots"][-1]["is_out"]
    assert page["events"] == []


def test_a_question_of_an_open_alarm_is_listed_once(page):
    assert page["degraded"] == []
    assert page["listed_above"] == 7
    assert "7 are listed under the open alarms." in " ".join(render_trend_page(page).split())
    assert render_trend_page(page).count('<th scope="row" dir="auto">c3</th>') == 1


def test_a_degraded_question_without_an_alarm_is_in_the_headline(tmp_path):
    steady = [finished(n, ill=(n % 10,) if n % 3 == 0 else ()) for n in range(20)]
    page = page_of(tmp_path / "canary.sqlite", *steady, finished(20, ill=(6, 5)))
    assert not page["is_alarm"]
    assert page["finding"].startswith("2 questions degraded in the latest run")
    assert [canary["owner"] for canary in page["degraded"]] == ["team 0", "team 1"]
    html = render_trend_page(page)
    assert "Changed since the run before" not in html
    assert "listed under" not in html


def test_a_series_of_one_run_without_any_value_has_a_page(tmp_path):
    page = page_of(tmp_path / "canary.sqlite", finished(0, results=(hung("a"), hung("b"))))
    assert [panel["name"] for panel in page["panels"]] == ["errors"]
    html = render_trend_page(page)
    assert "Still learning what is usual: 1 run of 10." in html
    assert "not measured: the health of no canary was measured" in html
    assert "nan" not in html.lower().replace("canar", "")


def test_hostile_texts_stay_text_on_the_page(tmp_path):
    def run(number, *, healthy):
        bad = result(HOSTILE, healthy, owner=HOSTILE, reason=HOSTILE)
        settings = {**SETTINGS, "app": HOSTILE}
        return finished(
            number, results=(bad,), documents={HOSTILE: str(healthy)}, settings=settings
        )

    html = render_trend_page(
        page_of(tmp_path / "canary.sqlite", run(0, healthy=True), run(1, healthy=False))
    )
    assert "<script" not in html
    assert html.count("&lt;script&gt;") >= 5


def test_the_page_loads_nothing_and_runs_nothing(page):
    html = render_trend_page(page)
    assert "default-src 'none'" in html
    assert not re.search(r"<(script|img|link|iframe)\b|https?://", html)


def test_times_are_told_in_utc(page):
    assert page["runs"][-1]["at"] == "1 Jan 1970, 00:00 UTC"
    assert page["runs"][0]["at"] == "2 Jan 1970, 00:00 UTC"


def documents(path, *runs):
    with CanaryHistory(path) as history:
        return [history.enter(run)[0] for run in runs]


def test_an_alarm_and_who_owns_what_degraded_are_told(tmp_path):
    steady = [finished(n) for n in range(12)]
    last = finished(12, ill=range(8), documents={"d1": "y"})
    text = parts_markdown(run_parts(documents(tmp_path / "c.sqlite", *steady, last)[-1]))
    assert "of app.py:chain: ALARM." in text
    assert text.index("**open: health fell") < text.index("| Healthy canaries | 20%")
    assert "1 document edited (d1)" in text
    assert "| c3 | team 1 | degraded | no expected passage; before: the first expected" in text


def test_a_table_says_why_something_was_not_measured(tmp_path):
    (document,) = documents(tmp_path / "c.sqlite", finished(0, results=(hung("a"),)))
    text = parts_markdown(run_parts(document))
    assert "| Seconds to answer | not measured |" in text
    assert "not measured: the health of no canary was measured" in text


def test_hostile_texts_stay_text_in_tables(tmp_path):
    def run(number, *, healthy):
        bad = result("a|b <b>@ops", healthy, owner="![x](http://evil)", reason="*now*")
        return finished(number, results=(bad,))

    runs = documents(tmp_path / "c.sqlite", run(0, healthy=True), run(1, healthy=False))
    text = parts_markdown(run_parts(runs[-1]))
    assert "a&#124;b &lt;b&gt;" in text
    assert "http://" not in text
    assert "\\*now\\*" in text


def test_a_history_is_a_row_a_run(tmp_path):
    runs = documents(tmp_path / "c.sqlite", finished(0), finished(1, ill=(1,)))
    document = {"name": "main", "status": "learning", "alarms": [], "runs": runs}
    text = parts_markdown(history_parts({**document, "waiting": 0, "refused": []}))
    assert "| 1 | 1970-01-01 00:00 | 100% \\[72, 100\\] | 100% | 0.60 |" in text
    assert "| 2 | 1970-01-01 01:00 | 90% \\[60, 98\\] | 90% | 0.60 |" in text
