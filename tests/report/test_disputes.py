"""The queue of cases on which people disagree: ties first, linked, and how to settle them."""

from __future__ import annotations

import pytest

from example_run import HOSTILE
from misslink.documents import CalibrationDocument, calibration_of
from misslink.report.human_labels import read_disputes
from misslink.report.page import build_page, render_page
from proven_run import proven_run


def _queue(*rows):
    return CalibrationDocument.model_validate({"human": {"queue": list(rows)}})


def _row(case_id="memory", *, settled=True, claim=None, **labels):
    return {"case_id": case_id, "claim": claim, "labels": labels, "settled": settled}


def test_what_is_tied_comes_first_and_leads_to_its_case_and_claim():
    run = proven_run()
    found = read_disputes(run, calibration_of(run))

    told = [(one.case_id, one.number, one.fragment, one.tied) for one in found.disputes]
    assert told == [
        ("with-exit", 14, "case=14", True),
        (HOSTILE[5], None, "", True),
        ("memory", 10, "case=10", False),
        ("with-exit", 14, "case=14&claim=2", False),
        (HOSTILE[0], 4, "case=4", False),
    ]
    assert found.disputes[0].labels == (("ada", "good"), ("ben", "bad (0.30)"))
    assert found.disputes[3].claim == "claim 2"


@pytest.mark.parametrize(
    ("settled", "said"),
    [
        ([True], "Annotators disagree on 1 item, and a majority decides each."),
        ([False], "Annotators disagree on 1 item, and no majority decides it;"),
        ([False, False], "Annotators disagree on 2 items, and no majority decides any;"),
        ([True, False], "Annotators disagree on 2 items; of 1 no majority decides;"),
    ],
)
def test_it_is_counted_what_no_majority_decides(settled, said):
    rows = [_row(settled=one, ada=1.0, ben=0.0) for one in settled]
    found = read_disputes(proven_run(), _queue(*rows))
    assert found.says.startswith(said)
    assert "`misslink annotate RUN --adjudicate`" in found.says


def test_a_long_queue_is_cut_and_what_is_left_out_is_counted():
    found = read_disputes(
        proven_run(), _queue(*(_row(str(n), ada=1.0, ben=0.0) for n in range(27)))
    )
    assert (len(found.disputes), found.more) == (20, 7)


def test_without_a_disagreement_there_is_nothing_to_settle():
    assert read_disputes(proven_run(), _queue()) is None


def test_the_page_shows_who_said_what_with_every_name_escaped():
    html = render_page(build_page(proven_run()))
    assert html.count('<ul class="who">') == 5
    assert '<a href="#case=14&amp;claim=2">' in html
    assert "<code>misslink annotate RUN --adjudicate</code>" in html
    assert HOSTILE[1] not in html
