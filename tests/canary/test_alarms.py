"""Control charts of runs: when an alarm opens, what it says, and when it recovers."""

import dataclasses
import math
import random
from pathlib import Path

import pytest

from misslink.canary.alarms import CanaryMeasure, RunReading, detect_alarms, group_alarms

HEALTH = (CanaryMeasure("health", least=0.5),)
ANY_HEALTH = (CanaryMeasure("health"),)
ROOT = Path(__file__).parents[2]
NORMAL = [0.9, 0.87, 0.93, 0.9, 0.87, 0.9, 0.93, 0.87, 0.9, 0.93]


def history(*values, n=30, start=1, suspects=None):
    told = suspects or {}
    return [
        RunReading(run, run * 3600.0, {"health": value}, n, told.get(run, ()))
        for run, value in enumerate(values, start)
    ]


def usual(runs=20, seed=4):
    rng = random.Random(seed)
    return [round(rng.choice((26, 27, 27, 27, 28)) / 30, 6) for _ in range(runs)]


def test_a_history_without_runs_is_learning():
    said = detect_alarms([])
    assert (said.status, said.alarms, said.charts) == ("learning", (), {})
    assert said.reason == "nothing is measured yet"


def test_while_it_learns_it_says_how_far_it_is():
    said = detect_alarms(history(*usual(7)), HEALTH)
    assert said.status == "learning"
    assert said.reason == "health: 7 of 20 runs to learn from"


def test_a_steady_app_is_ok():
    said = detect_alarms(history(*usual(), *usual(40, seed=5)), HEALTH)
    assert (said.status, said.episodes, said.reason) == ("ok", (), None)
    assert len(said.charts["health"].points) == 60


def test_an_app_that_breaks_is_an_alarm_at_once_with_its_suspects():
    runs = history(*usual(), *usual(5), 0.2)
    runs[-1] = dataclasses.replace(runs[-1], suspects=("3 documents removed (a, b, c)",))
    said = detect_alarms(runs, HEALTH)
    (alarm,) = said.alarms
    assert said.status == "alarm"
    assert (alarm.chart, alarm.since, alarm.run, alarm.state) == ("jump", 26, 26, "open")
    assert alarm.is_new
    assert alarm.suspects == ("3 documents removed (a, b, c)",)
    assert "3 documents removed (a, b, c)" in alarm.sentence
    assert alarm.shift.value == pytest.approx(0.2 - alarm.expected)
    assert alarm.shift.low < alarm.shift.value < alarm.shift.high < 0


def test_the_size_of_a_change_of_a_share_is_a_possible_one():
    (alarm,) = detect_alarms(history(*[1.0] * 20, 0.0), HEALTH).alarms
    assert alarm.shift.value == alarm.shift.low == -1.0
    assert alarm.shift.high > -1.0


def test_a_score_that_never_varies_may_move_by_what_does_not_count():
    score = (CanaryMeasure("top_score", unit="score"),)
    runs = [RunReading(i, 0.0, {"top_score": 0.8}, 30) for i in range(20)]
    for value, status in ((0.796, "ok"), (0.70, "alarm")):
        later = [RunReading(20 + i, 0.0, {"top_score": value}, 30) for i in range(30)]
        assert detect_alarms([*runs, *later], score).status == status


def test_a_small_change_that_stays_is_seen_and_dated():
    runs = history(*usual(), *usual(10, seed=6), *[0.83] * 12)
    runs[30] = dataclasses.replace(runs[30], suspects=("the embedding model changed",))
    (alarm,) = detect_alarms(runs, HEALTH).alarms
    assert alarm.chart in {"ewma", "cusum"}
    assert abs(alarm.since - 31) <= 2
    assert alarm.suspects == ("the embedding model changed",)


def test_a_change_for_the_better_is_a_note_and_no_alarm():
    said = detect_alarms(history(*usual(), *[1.0] * 12), HEALTH)
    assert said.status == "ok"
    assert any("better than usual" in note for note in said.notes)


def test_a_question_that_never_moved_is_noted_and_an_alarm_when_it_stays():
    """A deterministic app: one question of ten is news of one question, and no proof yet."""
    said = detect_alarms(history(*[0.9] * 20, 0.8, n=10), HEALTH)
    assert said.status == "ok"
    (note,) = said.notes
    assert note.startswith("health moved by 1 question and never did in the runs learned from: 80%")
    assert note.endswith("90% is usual; it becomes an alarm if it stays")
    assert detect_alarms(history(*[0.9] * 20, *[0.8] * 8, n=10), HEALTH).status == "alarm"
    assert detect_alarms(history(*[0.9] * 20, 0.8, *[0.9] * 8, n=10), HEALTH).episodes == ()


def test_readings_that_alternate_are_one_alarm():
    runs = history(*usual(), *[0.2, 0.9] * 10)
    opened = [
        end
        for end in range(21, 41)
        if any(a.is_new for a in detect_alarms(runs[:end], HEALTH).alarms)
    ]
    assert opened == [21]
    assert len(detect_alarms(runs, HEALTH).episodes) == 1


def test_an_alarm_is_held_until_it_was_quiet_for_long_enough_and_recovers_once():
    runs = history(*usual(), 0.2, *usual(30, seed=7))
    states = []
    for end in range(21, len(runs) + 1):
        said = detect_alarms(runs[:end], HEALTH)
        states.append(said.alarms[0].state if said.alarms else said.status)
    first_calm = states.index("held")
    assert states[:first_calm] == ["open"] * first_calm
    assert states[first_calm : first_calm + 4] == ["held"] * 4
    assert states[first_calm + 4] == "recovered"
    assert set(states[first_calm + 5 :]) == {"ok"}


def test_a_longer_history_does_not_change_what_was_said_of_its_beginning():
    rng = random.Random(2)
    values = [sum(rng.random() < 0.9 for _ in range(30)) / 30 for _ in range(60)]
    runs = history(*values, *[0.6] * 10, *values)
    whole = detect_alarms(runs, HEALTH)
    for end in range(25, len(runs), 7):
        part = detect_alarms(runs[:end], HEALTH)
        points = part.charts["health"].points
        assert points == whole.charts["health"].points[: len(points)]
        opened = [a.run for a in whole.episodes if a.run <= runs[end - 1].run]
        assert [a.run for a in part.episodes] == opened


def test_a_run_that_measured_nothing_is_neither_good_nor_bad():
    gaps = history(*usual(), 0.2, None, None, None, None, None, None, None)
    (alarm,) = detect_alarms(gaps, HEALTH).alarms
    assert alarm.state == "open"
    assert not alarm.is_new
    assert alarm.value == 0.2
    assert detect_alarms(history(*usual(), float("nan")), HEALTH).status == "ok"


def test_an_app_that_is_broken_from_the_beginning_is_not_the_norm():
    said = detect_alarms(history(*[0.1] * 40), HEALTH)
    assert said.status == "learning"
    assert "40 runs are below 50% and not learned from" in said.reason
    mended = detect_alarms(history(*[0.1] * 5, *usual(), *usual(5), 0.2), HEALTH)
    assert mended.charts["health"].centre > 0.85
    assert mended.status == "alarm"


def test_seconds_are_compared_by_their_ratio_and_shown_in_seconds():
    rng = random.Random(9)
    latency = CanaryMeasure("latency_s", better="low", unit="s")
    seconds = [rng.lognormvariate(0.7, 0.1) for _ in range(40)]
    runs = [RunReading(i, 0.0, {"latency_s": s}, 30) for i, s in enumerate([*seconds, 9.0])]
    said = detect_alarms(runs, (latency,))
    (alarm,) = said.alarms
    assert alarm.expected == pytest.approx(2.0, rel=0.1)
    assert alarm.shift.value == pytest.approx(9.0 - alarm.expected)
    drawn = said.charts["latency_s"]
    assert drawn.points[0].value == pytest.approx(seconds[0])
    assert drawn.jump_low < 2.0 < drawn.jump_high < 9.0
    faster = [*runs[:-1], dataclasses.replace(runs[-1], values={"latency_s": 0.1})]
    assert detect_alarms(faster, (latency,)).status == "ok"


def test_runs_too_far_off_to_learn_from_are_noted():
    values = [*NORMAL, *NORMAL]
    values[3] = 0.1
    assert detect_alarms(history(*values), ANY_HEALTH).notes == (
        "health was too far off to learn from in run 4",
    )


def test_a_start_that_was_not_steady_is_noted():
    settling = [0.3 + 0.02 * place for place in range(20)]
    notes = detect_alarms(history(*settling, *NORMAL, *NORMAL), ANY_HEALTH).notes
    assert "the runs before were not steady" in notes[0]
    assert "health was learned from runs" in notes[0]


def test_two_changes_with_a_recovery_between_them_are_two_alarms():
    values = [*NORMAL, *NORMAL, 0.2, *NORMAL, *NORMAL, 0.2, 0.2]
    first, second = detect_alarms(history(*values), ANY_HEALTH).episodes
    assert (first.run, first.state) == (21, "recovered")
    assert 26 <= first.ended <= 36
    assert f"recovered in run {first.ended}" in first.sentence
    assert (second.run, second.state, second.ended) == (42, "open", None)
    assert second.since == 42


def test_suspects_are_from_about_the_time_of_the_change_and_each_is_named_once():
    told = {5: ("long ago",), 24: ("a.md edited",), 25: ("a.md edited",), 28: ("later",)}
    values = [*NORMAL, *NORMAL, 0.9, 0.9, 0.9, 0.9, *[0.2] * 4]
    (alarm,) = detect_alarms(history(*values, suspects=told), ANY_HEALTH).alarms
    assert alarm.since == 25
    assert alarm.suspects == ("a.md edited",)


def test_without_a_suspect_it_says_that_none_is_known():
    (alarm,) = detect_alarms(history(*NORMAL, *NORMAL, 0.2), ANY_HEALTH).alarms
    assert alarm.suspects == ()
    assert "No change of the corpus or the embedding is known" in alarm.sentence


def test_a_measure_of_which_little_is_good_rises():
    errors = (CanaryMeasure("errors", better="low"),)
    runs = [RunReading(i, 0.0, {"errors": 0.0}, 30) for i in range(20)]
    (alarm,) = detect_alarms([*runs, RunReading(20, 0.0, {"errors": 1.0}, 30)], errors).alarms
    assert alarm.sentence.startswith("errors rose in run 20: 100% now, 0% is usual")


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


@pytest.mark.parametrize("page", ["docs/canary.md", "benchmarks/canary/canary_run_length.md"])
def test_both_pages_hold_the_whole_table(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    _, _, rest = text.partition("<!-- run lengths -->\n")
    rows = rest.partition("<!-- /run lengths -->")[0].splitlines()
    assert len(rows) == 2 + 27
    other = (ROOT / "docs/canary.md").read_text(encoding="utf-8")
    assert all(row in other for row in rows)


def test_false_alarms_are_no_oftener_than_promised_in_any_row_of_the_table():
    """At random times, 370 runs apart on average: 63% have one within 370 runs."""
    text = (ROOT / "docs/canary.md").read_text(encoding="utf-8")
    rows = text.partition("<!-- run lengths -->\n")[2].partition("<!-- /run")[0].splitlines()[2:]
    shares = [float(row.split("|")[5].partition("%")[0]) for row in rows]
    assert len(shares) == 27
    assert max(shares) <= 100 * (1 - math.exp(-1))


def reading(n=30, **values):
    return RunReading(1, 0.0, values, n)


def test_a_step_is_one_question_of_a_share():
    assert CanaryMeasure("health").step([reading(n=30), reading(n=30), reading(n=0)]) == 1 / 30
    assert CanaryMeasure("health").step([]) > 0


def test_a_step_of_a_score_is_a_hundredth_of_it():
    scores = [reading(top_score=-12.0), reading(top_score=8.0), reading(top_score=10.0)]
    assert CanaryMeasure("top_score", unit="score").step(scores) == pytest.approx(0.1)
    assert CanaryMeasure("top_score", unit="score").step([reading(top_score=0.0)]) > 0


@pytest.mark.parametrize("value", [None, float("nan"), float("inf"), float("-inf")])
def test_what_is_no_number_was_not_measured(value):
    assert CanaryMeasure("health").plotted(reading(health=value)) is None
    assert CanaryMeasure("health").plotted(reading()) is None


@pytest.mark.parametrize(
    ("measure", "one", "other", "told"),
    [
        (CanaryMeasure("health"), 0.75, 1.0, ("75%", "100%")),
        (CanaryMeasure("health"), 0.99996, 1.0, ("99.996%", "100.000%")),
        (CanaryMeasure("score", unit="score"), 0.5996, 0.6, ("0.5996", "0.6")),
        (CanaryMeasure("s", unit="s"), 2.5, 2.5, ("2.5 s", "2.5 s")),
        (CanaryMeasure("score", unit="score"), 0.1 + 0.2, 0.3, ("0.3", "0.3")),
    ],
)
def test_two_values_have_digits_enough_to_tell_them_apart(measure, one, other, told):
    assert measure.format_distinct(one, other) == told


def test_seconds_are_drawn_by_their_logarithm_even_where_there_were_none():
    latency = CanaryMeasure("latency_s", better="low", unit="s")
    assert latency.chart_to_value(latency.plotted(reading(latency_s=2.5))) == pytest.approx(2.5)
    assert latency.plotted(reading(latency_s=0.0)) is not None


def test_what_is_worse_than_bearable_is_not_learnt():
    assert CanaryMeasure("health", least=0.5).learnable(0.4) is None
    assert CanaryMeasure("health", least=0.5).learnable(0.5) == 0.5
    assert CanaryMeasure("health").learnable(0.0) == 0.0


def pairs(*runs, n=60):
    """Runs of `n` canaries, of which those numbered in each of `runs` fail."""
    return [
        RunReading(
            run,
            0.0,
            {"health": 1 - len(failing) / n},
            n,
            healthy={f"c{canary}": canary not in failing for canary in range(n)},
        )
        for run, failing in enumerate(map(set, runs), 1)
    ]


def test_many_canaries_lost_at_once_are_an_alarm_in_the_first_run_after_one_other():
    found = detect_alarms(pairs((), range(16)))
    (alarm,) = found.alarms
    assert found.status == "alarm"
    assert (alarm.measure, alarm.chart, alarm.run, alarm.is_new) == ("health", "paired", 2, True)
    assert (alarm.value, alarm.expected) == pytest.approx((44 / 60, 1.0))
    assert alarm.shift.value == pytest.approx(-16 / 60)
    assert alarm.shift.low < -16 / 60 < alarm.shift.high < 0
    assert "exact paired test of 60 canaries" in alarm.sentence


def test_canaries_that_come_and_go_are_no_alarm():
    """Eleven others fail in every run: as many are lost as are regained."""
    runs = [range(11 * (run % 5), 11 * (run % 5) + 11) for run in range(15)]
    assert detect_alarms(pairs(*runs)).status == "learning"
    assert detect_alarms(pairs((), range(10))).status == "learning", "2 ** -10 is not rare enough"


def test_more_history_makes_the_test_sharper():
    assert detect_alarms(pairs(*[()] * 9, range(3))).status == "learning"
    assert detect_alarms(pairs(*[()] * 13, range(3))).status == "alarm"


def test_a_paired_alarm_lasts_until_the_canaries_are_back():
    lost, calm = range(16), 5
    runs = [(), lost, lost, *[()] * calm]
    states = [
        [alarm.state for alarm in detect_alarms(pairs(*runs[:end])).alarms]
        for end in range(2, len(runs) + 1)
    ]
    assert states == [["open"], ["open"], *[["held"]] * 4, ["recovered"]]
    found = detect_alarms(pairs(*runs, lost))
    assert [(alarm.run, alarm.ended) for alarm in found.episodes] == [(2, 8), (9, None)]


def test_one_event_is_one_alarm():
    """Where a chart of health opens in the same run, the paired test adds none."""
    found = detect_alarms(pairs(*[()] * 25, range(30)))
    assert [(alarm.measure, alarm.run) for alarm in found.episodes] == [("health", 26)]


def test_alarms_of_measures_that_fell_together_are_one_event_and_later_ones_another():
    runs = [
        RunReading(run, 0.0, {"health": value, "coverage": value}, 30)
        for run, value in enumerate([*NORMAL, *NORMAL, 0.2, *NORMAL, *NORMAL, 0.2], 1)
    ]
    measures = (CanaryMeasure("health"), CanaryMeasure("coverage"))
    events = group_alarms(detect_alarms(runs, measures).episodes)
    assert [[(alarm.measure, alarm.run) for alarm in event] for event in events] == [
        [("health", 21), ("coverage", 21)],
        [("health", 42), ("coverage", 42)],
    ]
    assert group_alarms([]) == []


def test_a_second_chart_of_a_measure_is_the_same_event_while_the_first_alarm_lasts():
    (paired,) = detect_alarms(pairs(*[()] * 25, range(30))).episodes
    paired = dataclasses.replace(paired, since=17, run=17, ended=25)
    charted = dataclasses.replace(paired, chart="ewma", run=19, ended=26)
    again = dataclasses.replace(paired, since=26, run=27, ended=None)
    # The second began when the first was over, within two runs of the other's opening.
    soon = dataclasses.replace(paired, since=19, run=20, ended=None)
    ended = dataclasses.replace(paired, ended=18)
    assert group_alarms([paired, charted, again]) == [[paired, charted], [again]]
    assert group_alarms([ended, soon]) == [[ended], [soon]]


@pytest.mark.slow
def test_false_alarms_of_the_paired_test_are_rare(monkeypatch):
    """By the benchmark's own simulation, in few histories."""
    from canary_run_length import NOISE, paired_false_alarms

    assert sum(paired_false_alarms(name, 30, histories=3) for name in NOISE) <= 3
