import dataclasses
import random

import pytest

from misslink.canary.alarms import CanaryMeasure, RunReading, detect_alarms
from misslink.errors import InputError

HEALTH = (CanaryMeasure("health", least=0.5),)


def history(*values, n=30, start=1):
    return [RunReading(run, run * 3600.0, {"health": v}, n) for run, v in enumerate(values, start)]


def usual(runs=20, seed=4):
    rng = random.Random(seed)
    return [round(rng.choice((26, 27, 27, 27, 28)) / 30, 6) for _ in range(runs)]


def test_a_history_without_runs_is_learning():
    said = detect_alarms([])
    assert (said.status, said.alarms, said.charts) == ("learning", (), {})
    assert said.reason == "nothing was measured yet"


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
    assert any("better than it was learnt" in note for note in said.notes)


def test_a_question_that_never_moved_is_noted_and_an_alarm_when_it_stays():
    """A deterministic app: one question of ten is news of one question, and no proof yet."""
    said = detect_alarms(history(*[0.9] * 20, 0.8, n=10), HEALTH)
    assert said.status == "ok"
    (note,) = said.notes
    assert note.startswith("health moved by 1 question and never did while it was learnt: 0.800")
    assert note.endswith("0.900 is usual; an alarm if it stays")
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
        said = detect_alarms(runs[:end], HEALTH, calm=5)
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
    assert "40 runs are below 0.500 and not learnt from" in said.reason
    mended = detect_alarms(history(*[0.1] * 5, *usual(), *usual(5), 0.2), HEALTH)
    assert mended.charts["health"].centre > 0.85
    assert mended.status == "alarm"


def test_an_accepted_change_begins_a_new_phase():
    runs = history(*usual(), *[0.7, 0.73, 0.7, 0.67] * 10)
    assert detect_alarms(runs, HEALTH).status == "alarm"
    anew = detect_alarms(runs, HEALTH, since=21)
    assert anew.status == "ok"
    assert anew.charts["health"].centre == pytest.approx(0.7)


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


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"learn": 9}, "--learn is 9; it must be at least 10"),
        ({"calm": 0}, "cannot recover after 0 runs"),
    ],
)
def test_an_option_out_of_its_range_is_refused(options, told):
    with pytest.raises(InputError, match=told):
        detect_alarms([], **options)


def test_runs_out_of_order_are_refused():
    runs = history(0.9, 0.9)
    with pytest.raises(InputError, match="run 1 stands behind run 2"):
        detect_alarms(runs[::-1])
