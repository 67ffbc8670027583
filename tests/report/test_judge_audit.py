"""What the judge did when only what must not matter was changed."""

from __future__ import annotations

import pytest

from example_run import HOSTILE, example_run
from misslink.report.html import render_page
from misslink.report.judge_notes import read_audit
from misslink.report.page import build_page
from people_documents import audit
from proven_run import proven_run


def _of(document):
    return read_audit(example_run().model_copy(update={"audit": document}))


def test_what_was_found_comes_first_in_the_unit_that_people_read():
    rows = _of(audit()).rows

    assert [(row.metric, row.change) for row in rows] == [
        ("faithfulness", "answer padded with its passages"),
        ("preference", "two answers swapped"),
        (HOSTILE[3], HOSTILE[0]),
        ("correctness", "answer padded with its passages"),
        ("faithfulness", "passages in reverse order"),
        ("faithfulness", "passages shuffled"),
        ("faithfulness", "nothing: asked again"),
    ]
    padded, swapped, _, lowered, order, shuffled, _ = rows
    assert padded.flipped.brief == "22% [12, 34]"
    assert padded.direction == (
        "20% [10, 32] to good; 2% [0, 14] to bad; "
        "of the answer's own claims 8% [4, 14] are called otherwise"
    )
    assert padded.shift.brief == "+6 points [3, 9]"
    assert swapped.direction == "10 for the one shown first, 2 for the second"
    assert swapped.shift is None
    assert lowered.direction.endswith("it may rightly turn bad here")
    assert (order.finding, order.n, order.left_out) == ("nothing beyond chance", 48, 2)
    assert (shuffled.finding, shuffled.flipped.reason) == ("", "no case has two passages")


def test_an_audit_of_another_judge_is_told_to_be_one():
    assert "not the judge of this run" not in _of(audit()).facts
    assert "It is not the judge of this run." in _of({**audit(), "judge": "openai:other"}).facts


def test_where_nobody_tried_the_page_names_the_command():
    html = render_page(build_page(example_run()))
    assert "<code>misslink judge audit RUN</code>" in html
    assert "padding</dt>" not in html
    html = render_page(build_page(proven_run()))
    assert "misslink judge audit RUN" not in html
    assert "padding</dt>" in html


@pytest.mark.parametrize("document", [None, {}])
def test_an_audit_of_nothing_is_none(document):
    assert _of(document) is None
