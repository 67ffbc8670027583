"""Recall and precision against k: true ranks, known depth, a drawing within its frame."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from example_run import example_run
from misslink.report.charts import draw_cutoff_curves
from misslink.retrieval import score_cases
from misslink.types import Case, Passage, Run, Trace


def _run(*pairs):
    """Cases that need passages, and what was found: a pair of needed ids and a trace."""
    cases = tuple(
        Case(id=str(n), question="Which?", relevant=list(needed))
        for n, (needed, _) in enumerate(pairs)
    )
    traces = tuple(
        trace.model_copy(update={"case_id": str(n)}) for n, (_, trace) in enumerate(pairs)
    )
    return Run(manifest={}, cases=cases, traces=traces, verdicts=(), links=(), summary={})


def _trace(ids, deeper=(), depth=None, **more):
    retrieved = tuple(Passage(id=one, rank=rank) for rank, one in enumerate(ids, 1))
    found = tuple(Passage(id=one, rank=rank) for one, rank in deeper)
    return Trace(case_id="-", retrieved=retrieved, deeper=found, depth=depth, **more)


def test_what_was_missed_comes_in_at_its_true_rank():
    drawn = draw_cutoff_curve(_run(("a", _trace("ax")), ("b", _trace("xy", [("b", 6)], 20))), 2)
    values = {j: (recall.value, precision.value) for j, recall, precision in drawn.rows}

    assert values[1] == ("50%", "50%")
    assert values[5] == ("50%", "10%")
    assert values[6] == ("100%", "17%")  # one hit of six places in both
    assert max(values) == 6  # all is found, further down nothing changes but precision


def test_it_agrees_with_a_ranking_written_out_in_full():
    filler = [f"f{n}" for n in range(40)]
    short = _trace(["x", "a"], [("b", 9), ("c", 31)], 40)
    ids = ["x", "a", *filler[:6], "b", *filler[6:27], "c", *filler[27:36]]
    full = _run(("abc", _trace(ids)))
    rows = {j: (r, p) for j, r, p in draw_cutoff_curve(_run(("abc", short)), 2).rows}

    for j in (1, 2, 8, 9, 30):
        names = [f"recall@{j}", f"precision@{j}"]
        oracle = score_cases(full.cases, full.traces, names)
        for shown, name in zip(rows[j], names, strict=True):
            assert shown.value == f"{round(100 * oracle[name]['0'])}%"


def test_it_ends_where_the_ranks_of_some_case_are_no_longer_known():
    deep = ("a", _trace("xy", [], 100))
    shallow = ("b", _trace("xyz", [], None))
    drawn = draw_cutoff_curve(_run(deep, shallow), 2)

    assert drawn.rows[-1][0] == 3
    assert drawn.facts[0] == "Ranks are known to 3 for all 2 cases with relevant passages."
    assert draw_cutoff_curve(_run(deep, deep), 2).rows[-1][0] == 100


def test_cases_that_need_nothing_or_were_not_measured_are_left_out():
    failed = ("b", _trace("", error="it broke"))
    nothing = ("", _trace("xy"))
    drawn = draw_cutoff_curve(_run(("a", _trace("ax")), failed, nothing), 2)

    assert {recall.n for _, recall, _ in drawn.rows} == {1}
    assert draw_cutoff_curves(_run(failed, nothing), 2) == ()
    assert draw_cutoff_curves(_run(("a", _trace("a"))), 1) == ()  # one point is no curve


def draw_cutoff_curve(run, k):
    return draw_cutoff_curves(run, k)[0]


@pytest.mark.parametrize("k", [1, 5, 100, 1000])
def test_the_drawing_stays_in_its_frame_and_marks_the_run_s_k(k):
    for drawn in draw_cutoff_curves(example_run(), k):
        _check_drawing(drawn, k)


def _check_drawing(drawn, k):
    left, top, right, bottom = drawn.frame

    for line in drawn.lines:
        for x, y in re.findall(r"([\d.]+) ([\d.]+)", line.path + line.band):
            assert left <= float(x) <= right
            assert top <= float(y) <= bottom
    assert (drawn.k_x is None) == (k > drawn.rows[-1][0])
    if drawn.k_x is not None:
        assert str(k) in [tick.label for tick in drawn.xs]
    places = [tick.at for tick in drawn.xs]
    assert all(b - a >= 18 for a, b in pairwise(places))
    upper, lower = sorted(line.label_y for line in drawn.lines)
    assert lower - upper >= 30


def test_it_says_how_many_passages_the_app_itself_retrieves():
    pairs = [("a", _trace("ax")), ("b", _trace("bx")), ("c", _trace("xyc"))]
    assert (
        "The app itself retrieves 2 passages, in 2 of 3 cases."
        in draw_cutoff_curve(_run(*pairs), 3).facts
    )
