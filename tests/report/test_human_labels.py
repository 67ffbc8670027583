"""Human labels in the report: beside the judge's, disputed, and how many are enough."""

import pytest

from example_run import HOSTILE, example_run, verdict
from misslink.calibration_document import CalibrationDocument
from misslink.documents import calibration_of
from misslink.report.cases import build_case_entries
from misslink.report.human_labels import (
    HumanLabel,
    forecast_labels,
    read_disputes,
    read_human_labels,
)
from misslink.report.page import build_page, render_page
from misslink.types import Case, Run
from proven_run import proven_run


def _run(share, value=0.4, threshold=0.5, queue=(), **verdict_fields):
    held = {
        "metric": "faithfulness",
        "threshold": threshold,
        "labelled": {} if share is None else {"a": share},
        "human": {"queue": list(queue)},
    }
    return Run(
        manifest={"judge": "openai:m"},
        cases=(Case(id="a", question="Which?"),),
        traces=(),
        verdicts=(verdict("a", "faithfulness", value, **verdict_fields),),
        links=(),
        summary={},
        calibration=held,
    )


@pytest.mark.parametrize(
    ("share", "threshold", "stands"),
    [
        (0.0, 0.5, "agree"),
        (1.0, 0.5, "disagree"),
        (1.0, 0.4, "agree"),  # from the threshold on a case is called good
        (0.5, 0.5, "disagree"),
    ],
)
def test_the_judges_call_is_that_at_the_calibrations_threshold(share, threshold, stands):
    found = read_human_labels(_run(share, threshold=threshold))
    assert found["a"]["faithfulness"].stands == stands


def test_a_verdict_that_failed_stands_neither_way():
    found = read_human_labels(_run(1.0, value=None, reason="unreadable"))
    assert found["a"]["faithfulness"] == HumanLabel("good", 1.0, "", ())


def test_what_is_tied_has_no_word_and_says_who_said_what():
    queue = [{"case_id": "a", "claim": None, "settled": False, "labels": {"ada": 1, "ben": 0.0}}]
    (found,) = read_human_labels(_run(None, queue=queue))["a"].values()
    assert found == HumanLabel("", None, "tied", ("ada: good; ben: bad",))


@pytest.mark.parametrize("share", [None, -1, 2])
def test_a_share_that_is_none_reads_as_absent(share):
    assert read_human_labels(_run(share)) == {}


def test_without_a_calibration_nobody_labelled():
    assert read_human_labels(example_run()) == {}


def test_a_case_lists_how_people_stand_and_shows_their_word_by_the_verdict():
    entries = {entry.id: entry for entry in build_case_entries(proven_run(), 5)}

    assert entries["memory"].people == ("disagree",)
    assert entries["lambda"].people == ("agree",)
    assert entries["with-exit"].people == ("tied", "disagree")  # of two metrics
    assert entries["refused"].people == ()  # its verdict failed
    (row,) = [one for one in entries["memory"].verdicts if one.metric == "faithfulness"]
    assert (row.people, row.stands) == ("bad (0.33)", "disagree")
    assert row.details[-1].startswith("annotators, ada: bad; ben: bad")
    (hostile,) = [one for one in entries[HOSTILE[0]].verdicts if one.metric == "faithfulness"]
    assert hostile.people == "good (0.67)"


def _queue(*rows):
    return CalibrationDocument.read({"human": {"queue": list(rows)}})


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


NEEDED = {
    "reason": None,
    "verdicts": 900,
    "curve": [
        {"labels": 25, "width": 0.256, "labelled_only": 0.3},
        {"labels": 1200, "width": 0.05, "labelled_only": 0.08},
    ],
    "for_width": {"0.2": 43, "0.1": 1231, "0.05": None},
}


def test_widths_are_told_as_points_to_either_side():
    """An interval 0.256 wide reaches 12.8 points to either side of its middle."""
    found = forecast_labels(CalibrationDocument.read({"n": 1200, "labels_needed": NEEDED}))
    assert found[1] == [
        ("25", "\u00b113 points", "\u00b115 points"),
        ("1,200 (now)", "\u00b12.5 points", "\u00b14 points"),
    ]


def test_the_labels_for_a_width_are_told_and_the_width_that_none_give():
    assert forecast_labels(CalibrationDocument.read({"labels_needed": NEEDED}))[0] == (
        "\u00b110 points need about 43 more labels, \u00b15 points need about 1,231 more labels; so "
        "many are enough in 8 of 10 cases. "
        "Not even a label on each of the 900 verdicts gives \u00b12.5 points."
    )


def test_without_a_forecast_nothing_is_told():
    """As `labels_needed` is where there is no label to go by, and before there was one."""
    nothing = {"reason": "there is no label to go by", "curve": [], "for_width": {}}
    empty = {"n": 0, "labels_needed": nothing}
    assert forecast_labels(CalibrationDocument.read(empty)) == ("", [])
    assert forecast_labels(CalibrationDocument.read({})) == ("", [])
