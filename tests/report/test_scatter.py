"""The map: one scale, one shape a failure mode, and every line also as a row."""

from __future__ import annotations

import re
from typing import get_args

import pytest

from example_run import HOSTILE, example_run
from misslink.report.charts import draw_scatter
from misslink.types import FailureMode
from proven_run import proven_run


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


def test_a_run_of_before_has_none():
    assert draw_scatter(example_run()) is None


def test_every_cause_has_a_shape_of_its_own(run):
    queries = [_query(failure, name=failure) for failure in get_args(FailureMode)]
    keys = _map(run, queries=queries, lines=[]).keys

    assert [key.kind for key in keys] == list(get_args(FailureMode))
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
    assert 0 < drawn.marks[0].x < drawn.width
    assert 0 < drawn.marks[0].y < drawn.height


def test_lines_lead_from_the_question_to_the_passage_and_stand_in_the_table(found):
    assert len(found.segments) == len(found.segments) == 3  # the fourth leads off the map
    assert found.segments[0].passage_id == "with#1"
    assert re.fullmatch(r"case=\d+", found.segments[0].href)
    segment = found.segments[0]
    assert any((mark.x, mark.y) == (segment.x1, segment.y1) for mark in found.marks)
    assert any(dot[:3] == (segment.x2, segment.y2, True) for dot in found.dots)


def test_a_cause_that_is_none_never_becomes_a_name_on_the_page(found):
    kinds = {mark.kind for mark in found.marks} | {one.kind for one in found.segments}
    assert kinds <= {*get_args(FailureMode), "other"}
    assert HOSTILE[3] not in kinds
    gone = next(mark for mark in found.marks if mark.kind == "other")
    assert gone.href == ""  # the run has no such case


def test_the_worst_lie_on_top(found):
    assert found.marks[-1].kind == "retrieval_miss"
    assert found.dots[-1][2]


def test_what_is_left_out_is_counted(found):
    assert "Passages not drawn, for want of room: 12." in found.facts
    assert "Questions not drawn, for want of room: 3." in found.facts
