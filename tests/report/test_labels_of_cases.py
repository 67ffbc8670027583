"""People's labels of a case beside the judge's call of it."""

from __future__ import annotations

import pytest

from example_run import HOSTILE, example_run, verdict
from misslink.report.cases import build_case_entries
from misslink.report.human_labels import HumanLabel, read_human_labels
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
