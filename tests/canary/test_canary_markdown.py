"""A run as markdown: the alarm first, every text escaped."""

from __future__ import annotations

from canary_runs import finished, hung, result
from misslink.canary.history import CanaryHistory
from misslink.canary.markdown import history_markdown, run_markdown


def documents(path, *runs):
    with CanaryHistory(path) as history:
        return [history.enter(run).document for run in runs]


def test_an_alarm_and_who_owns_what_degraded_are_told(tmp_path):
    steady = [finished(n) for n in range(12)]
    last = finished(12, ill=range(8), documents={"d1": "y"})
    text = run_markdown(documents(tmp_path / "c.sqlite", *steady, last)[-1])
    assert "**ALARM**" in text
    assert text.index("**open**") < text.index("| Healthy canaries | 20%")
    assert "1 document edited (d1)" in text
    assert "| c3 | team 1 | the first expected passage is at rank 1 | no expected passage |" in text


def test_what_was_not_measured_says_why(tmp_path):
    (document,) = documents(tmp_path / "c.sqlite", finished(0, results=(hung("a"),)))
    text = run_markdown(document)
    assert "| Seconds to an answer | not measured |" in text
    assert "not measured: the health of no canary was measured" in text


def test_hostile_texts_stay_text(tmp_path):
    def run(number, *, healthy):
        bad = result("a|b <b>@ops", healthy, owner="![x](http://evil)", reason="*now*")
        return finished(number, results=(bad,))

    text = run_markdown(
        documents(tmp_path / "c.sqlite", run(0, healthy=True), run(1, healthy=False))[-1]
    )
    assert "a&#124;b &lt;b&gt;" in text
    assert "http://" not in text
    assert "\\*now\\*" in text


def test_a_history_is_a_row_a_run(tmp_path):
    runs = documents(tmp_path / "c.sqlite", finished(0), finished(1, ill=(1,)))
    text = history_markdown({"name": "main", "status": "learning", "alarms": [], "runs": runs})
    assert "| 1 | 1970-01-01 00:00 | 100% \\[72, 100\\], n = 10 |" in text
    assert "| 2 | 1970-01-01 01:00 | 90% \\[60, 98\\], n = 10 |" in text
