import math
from pathlib import Path

import pytest

from misslink.canary.alarms import CanaryMeasure, RunReading, detect_alarms

HEALTH = (CanaryMeasure("health"),)
ROOT = Path(__file__).parents[2]
NORMAL = [0.9, 0.87, 0.93, 0.9, 0.87, 0.9, 0.93, 0.87, 0.9, 0.93]


def history(values, suspects=()):
    told = dict(suspects)
    return [
        RunReading(run, 0.0, {"health": value}, 30, told.get(run, ()))
        for run, value in enumerate(values, 1)
    ]


def test_runs_too_far_off_to_learn_from_are_noted():
    values = [*NORMAL, *NORMAL]
    values[3] = 0.1
    assert detect_alarms(history(values), HEALTH).notes == (
        "health was too far off to learn from in run 4",
    )


def test_a_start_that_was_not_steady_is_noted():
    settling = [0.3 + 0.02 * place for place in range(20)]
    notes = detect_alarms(history([*settling, *NORMAL, *NORMAL]), HEALTH).notes
    assert "those before were not steady" in notes[0]
    assert "health was learnt from runs" in notes[0]


def test_two_changes_with_a_recovery_between_them_are_two_alarms():
    values = [*NORMAL, *NORMAL, 0.2, *NORMAL, *NORMAL, 0.2, 0.2]
    first, second = detect_alarms(history(values), HEALTH).episodes
    assert (first.run, first.state) == (21, "recovered")
    assert 26 <= first.ended <= 36
    assert f"recovered in run {first.ended}" in first.sentence
    assert (second.run, second.state, second.ended) == (42, "open", None)
    assert second.since == 42


def test_suspects_are_from_about_the_time_of_the_change_and_each_is_named_once():
    told = {5: ("long ago",), 24: ("a.md edited",), 25: ("a.md edited",), 28: ("later",)}
    values = [*NORMAL, *NORMAL, 0.9, 0.9, 0.9, 0.9, *[0.2] * 4]
    (alarm,) = detect_alarms(history(values, told), HEALTH).alarms
    assert alarm.since == 25
    assert alarm.suspects == ("a.md edited",)


def test_without_a_suspect_it_says_that_none_is_known():
    (alarm,) = detect_alarms(history([*NORMAL, *NORMAL, 0.2]), HEALTH).alarms
    assert alarm.suspects == ()
    assert "No change of the corpus or the embedding is known" in alarm.sentence


def test_a_measure_of_which_little_is_good_rises():
    errors = (CanaryMeasure("errors", better="low"),)
    runs = [RunReading(i, 0.0, {"errors": 0.0}, 30) for i in range(20)]
    (alarm,) = detect_alarms([*runs, RunReading(20, 0.0, {"errors": 1.0}, 30)], errors).alarms
    assert alarm.sentence.startswith("errors rose in run 20: 1.000 now, 0.000 is usual")


def test_sentences_name_measures_in_words_and_show_the_difference():
    runs = [
        RunReading(
            run, 0.0, {"health": 1.0, "top_score": 0.6 + (run % 3) * 1e-5, "latency_s": 0.4}, 30
        )
        for run in range(20)
    ]
    worse = RunReading(20, 0.0, {"health": 1.0, "top_score": 0.45, "latency_s": 4.0}, 30)
    said = {alarm.measure: alarm.sentence for alarm in detect_alarms([*runs, worse]).alarms}
    assert said["top_score"].startswith("top score fell in run 20: 0.45 now, 0.6 is usual")
    assert said["latency_s"].startswith("median latency rose in run 20: 4 s now, 0.4 s is usual")
    better = RunReading(20, 0.0, {"health": 1.0, "top_score": 0.604, "latency_s": 0.2}, 30)
    (note,) = (n for n in detect_alarms([*runs, better]).notes if "median latency" in n)
    assert "0.2 s in run 20, 0.4 s is usual" in note


@pytest.mark.parametrize("page", ["docs/canary.md", "benchmarks/canary_run_length.md"])
def test_both_pages_hold_the_whole_table(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    _, _, rest = text.partition("<!-- run lengths -->\n")
    rows = rest.partition("<!-- /run lengths -->")[0].splitlines()
    assert len(rows) == 2 + 27
    other = (ROOT / "docs/canary.md").read_text(encoding="utf-8")
    assert all(row in other for row in rows)


def test_false_alarms_are_no_oftener_than_promised_in_any_row_of_the_table():
    """At random times, 370 runs apart on average: 63 % have one within 370 runs."""
    text = (ROOT / "docs/canary.md").read_text(encoding="utf-8")
    rows = text.partition("<!-- run lengths -->\n")[2].partition("<!-- /run")[0].splitlines()[2:]
    shares = [float(row.split("|")[5].partition("%")[0]) for row in rows]
    assert len(shares) == 27
    assert max(shares) <= 100 * (1 - math.exp(-1))
