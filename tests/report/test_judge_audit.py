"""What the judge did when only what must not matter was changed."""

from __future__ import annotations

import pytest

from example_run import HOSTILE, example_run
from misslink.report.judge_notes import read_audit
from misslink.report.page import build_page, render_page
from people_documents import audit
from proven_run import proven_run


def _of(document):
    return read_audit(example_run().model_copy(update={"audit": document}))


def test_what_was_found_comes_first_in_the_unit_that_people_read():
    rows = _of(audit()).rows

    assert [(metric, change) for metric, change, _, _ in rows] == [
        ("faithfulness", "answer padded with its passages"),
        ("preference", "two answers swapped"),
        (HOSTILE[3], HOSTILE[0]),
        ("correctness", "answer padded with its passages"),
        ("faithfulness", "passages in reverse order"),
        ("faithfulness", "passages shuffled"),
        ("faithfulness", "nothing: asked again"),
    ]
    padded, swapped, _, lowered, *_ = rows
    assert padded[-1] == (
        "20% [10, 32] to good; 2% [0, 14] to bad; "
        "of the answer's own claims 8% [4, 14] are called otherwise"
    )
    assert swapped[-1] == "10 for the one shown first, 2 for the second"
    assert lowered[-1].endswith("it may rightly turn bad here")

    html = render_page(build_page(example_run().model_copy(update={"audit": audit()})))
    shown = html.partition("Score moved by</th>")[2].partition("</table>")[0].split("<tr>")[1:]
    assert '<b>22%</b> <span class="interval">[12, 34]' in shown[0]
    assert '<b>+6 points</b> <span class="interval">[3, 9]' in shown[0]
    assert "nothing beyond chance" in shown[4]
    assert '48<p class="small">2 left out' in shown[4]
    assert "nothing beyond chance" not in shown[5]
    assert "no case has two passages" in shown[5]


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
