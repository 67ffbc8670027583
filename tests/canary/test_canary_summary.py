"""A run as text and tables: the alarm first; in markdown every text is escaped."""

from __future__ import annotations

from canary_runs import finished, hung, result
from misslink.canary.history import CanaryHistory
from misslink.canary.summary import history_parts, run_parts
from misslink.render.table import parts_markdown


def documents(path, *runs):
    with CanaryHistory(path) as history:
        return [history.enter(run).document for run in runs]


def test_an_alarm_and_who_owns_what_degraded_are_told(tmp_path):
    steady = [finished(n) for n in range(12)]
    last = finished(12, ill=range(8), documents={"d1": "y"})
    text = parts_markdown(run_parts(documents(tmp_path / "c.sqlite", *steady, last)[-1]))
    assert "of app.py:chain: ALARM." in text
    assert text.index("**open: health fell") < text.index("| Healthy canaries | 20%")
    assert "1 document edited (d1)" in text
    assert "| c3 | team 1 | degraded | no expected passage; before: the first expected" in text


def test_what_was_not_measured_says_why(tmp_path):
    (document,) = documents(tmp_path / "c.sqlite", finished(0, results=(hung("a"),)))
    text = parts_markdown(run_parts(document))
    assert "| Seconds to an answer | not measured |" in text
    assert "not measured: the health of no canary was measured" in text


def test_hostile_texts_stay_text(tmp_path):
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
