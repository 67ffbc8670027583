"""The charts: areas, scales and lines stay true and inside their frames."""

import re
from itertools import pairwise
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from example_run import HOSTILE, example_run
from misslink.failure_modes import FAILURE_MODES
from misslink.report.charts import draw_cutoff_curves, draw_sankey, draw_scatter
from misslink.report.glossary import ANSWERS, RETRIEVALS
from misslink.retrieval import score_cases
from misslink.types import Case, FailureMode, Link, Passage, Run, Trace
from proven_run import proven_run


def _link(retrieval, answer, failure):
    return Link(case_id="a", retrieval=retrieval, answer=answer, failure=failure, reason="-")


_LINKS = st.lists(
    st.builds(
        _link,
        st.sampled_from(tuple(RETRIEVALS)),
        st.sampled_from(tuple(ANSWERS)),
        st.sampled_from(tuple(FAILURE_MODES)),
    ),
    min_size=1,
    max_size=30,
)


def test_without_links_there_is_no_flow():
    assert draw_sankey([]) is None


def test_two_cases_alike_are_one_ribbon_twice_as_wide_as_that_of_one():
    drawn = draw_sankey(
        [
            _link("miss", "unfaithful", "retrieval_miss"),
            _link("miss", "unfaithful", "retrieval_miss"),
            _link("hit", "faithful", "passed"),
        ]
    )

    assert [(r.failure, r.count, r.tone) for r in drawn.ribbons] == [
        ("Retrieval miss", 2, "linked"), ("Passed", 1, "fine"),
    ]  # fmt: skip
    miss, hit = (node for node in drawn.nodes if node.column == 0)
    assert miss.height == pytest.approx(2 * hit.height, abs=0.1)


@given(_LINKS)
def test_every_column_holds_every_case_once_and_its_nodes_do_not_overlap(links):
    drawn = draw_sankey(links)

    assert sum(ribbon.count for ribbon in drawn.ribbons) == len(links)
    for column in range(3):
        nodes = [node for node in drawn.nodes if node.column == column]
        assert sum(node.count for node in nodes) == len(links)
        for above, below in pairwise(nodes):
            assert above.y + above.height + 16 <= below.y  # a line of text fits between


@given(_LINKS)
def test_everything_lies_inside_the_drawing_and_ribbons_touch_their_nodes(links):
    drawn = draw_sankey(links)

    for node in drawn.nodes:
        assert node.y >= 0
        assert node.y + node.height <= drawn.height
    for ribbon in drawn.ribbons:
        numbers = [float(x) for x in re.findall(r"[\d.]+", ribbon.path)]
        assert all(0 <= x <= max(drawn.width, drawn.height) for x in numbers)
        left = next(n for n in drawn.nodes if n.column == 0 and n.label == ribbon.retrieval)
        assert left.y - 0.11 <= numbers[1] <= left.y + left.height + 0.11


def test_the_order_of_cases_does_not_matter():
    links = list(example_run().links)

    assert draw_sankey(links) == draw_sankey(links[::-1])


@pytest.fixture(scope="module")
def run():
    return proven_run()


@pytest.fixture(scope="module")
def found(run):
    return draw_scatter(run)


def _map(run, **parts):
    return draw_scatter(run.model_copy(update={"map": run.map | parts}))


def _query(failure, x=0.5, y=0.5, name="q"):
    return {"id": name, "x": x, "y": y, "failure": failure, "text": "t"}


def test_every_cause_has_a_shape_of_its_own(run):
    queries = [_query(failure, name=failure) for failure in get_args(FailureMode)]
    keys = [key for key, _ in _map(run, queries=queries, lines=[]).keys]

    assert [key.label for key in keys] == [mode.label for mode in FAILURE_MODES.values()]
    assert len({key.shape for key in keys}) == len(keys)


def test_both_axes_have_one_scale_and_y_points_upwards(run):
    corners = [
        _query("passed", 0, 0, "a"),
        _query("passed", 1, 0, "b"),
        _query("passed", 0, 1, "c"),
    ]
    a, b, c = _map(run, queries=corners, lines=[]).marks

    assert (b.x - a.x, b.y) == (a.y - c.y, a.y)
    assert c.y < a.y


def test_marks_stay_inside_whatever_the_document_says(run):
    wild = [
        _query("passed", -3, 1e9, "a"),
        _query("passed", None, 0, "b"),
    ]
    drawn = _map(run, queries=wild, lines=[])

    assert len(drawn.marks) == 1  # the other has no place
    assert 0 < drawn.marks[0].x < drawn.size
    assert 0 < drawn.marks[0].y < drawn.size


def test_lines_lead_from_the_question_to_the_passage_and_stand_in_the_table(found):
    assert len(found.segments) == 3  # the fourth leads off the map
    question, passage = found.segments[0]
    assert passage.id == "with#1"
    assert re.fullmatch(r"case=\d+", question.href)
    assert question in found.marks
    assert any(dot.id == passage.id and dot.needed for dot in found.dots)


def test_a_cause_that_is_none_never_becomes_a_name_on_the_page(found):
    kinds = {mark.kind for mark in found.marks} | {key.kind for key, _ in found.keys}
    assert kinds <= {*get_args(FailureMode), "other"}
    assert HOSTILE[3] not in kinds
    gone = next(mark for mark in found.marks if mark.kind == "other")
    assert gone.href == ""  # the run has no such case


def test_the_worst_lie_on_top(found):
    assert found.marks[-1].kind == "retrieval_miss"
    assert found.dots[-1].needed


def test_what_is_left_out_is_counted(found):
    assert "Passages not drawn, for want of room: 12." in found.facts
    assert "Questions not drawn, for want of room: 3." in found.facts


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

    assert values[1] == ("1 of 2", "1 of 2")
    assert values[5] == ("1 of 2", "0.10")
    assert values[6] == ("2 of 2", "0.17")  # one hit of six places in both
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
            value = oracle[name]["0"]
            assert shown.value == (f"{value:.0f} of 1" if value in (0, 1) else f"{value:.2f}")


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
