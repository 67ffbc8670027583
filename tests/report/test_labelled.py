"""People's labels of a case beside the judge's call of it."""

from __future__ import annotations

import pytest
from example_run import HOSTILE, example_run, verdict
from proven_run import proven_run

from misslink.report.cases import case_entries
from misslink.report.labelled import Labelled, labelled
from misslink.types import Case, Run


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
    found = labelled(_run(share, threshold=threshold))
    assert found["a"]["faithfulness"].stands == stands


def test_a_verdict_that_failed_stands_neither_way():
    found = labelled(_run(1.0, value=None, reason="unreadable"))
    assert found["a"]["faithfulness"] == Labelled("good", 1.0, "", ())


def test_what_is_tied_has_no_word_and_says_who_said_what():
    queue = [{"case_id": "a", "claim": None, "settled": False, "labels": {"ada": 1, "ben": 0.0}}]
    (found,) = labelled(_run(None, queue=queue))["a"].values()
    assert found == Labelled("", None, "tied", ("ada: good; ben: bad",))


@pytest.mark.parametrize("share", [None, "good", -1, 2, [1], True])
def test_a_share_that_is_none_reads_as_absent(share):
    assert labelled(_run(share)) == {}


def test_without_a_calibration_nobody_labelled():
    assert labelled(example_run()) == {}


def test_a_case_lists_how_people_stand_and_shows_their_word_by_the_verdict():
    entries = {entry.id: entry for entry in case_entries(proven_run(), 5)}

    assert entries["memory"].people == ("disagree",)
    assert entries["lambda"].people == ("agree",)
    assert entries["with-exit"].people == ("tied", "disagree")  # of two metrics
    assert entries["refused"].people == ()  # its verdict failed
    (row,) = [one for one in entries["memory"].verdicts if one.metric == "faithfulness"]
    assert (row.people, row.stands) == ("bad (0.33)", "disagree")
    assert row.said[-1].startswith("people, ada: bad; ben: bad")
    (hostile,) = [one for one in entries[HOSTILE[0]].verdicts if one.metric == "faithfulness"]
    assert hostile.people == "good (0.67)"
