"""A summary.json as baseline: only numbers that can be, and what they are of is told."""

from __future__ import annotations

import json

import pytest

from gated_run import gated_run, write
from misslink.errors import InputError
from misslink.gate.baseline_diff import read_baseline, summary_estimate
from misslink.gate.criteria import read_criteria
from misslink.gate.decision import decide_gates

GATES = "gates: [{metric: recall@1, regression_max: 0.1}]"


def decided_against(tmp_path, gates, **changed):
    """The run held against a summary in which some numbers were changed."""
    run = gated_run("1111111100")
    summary = json.loads(json.dumps(gated_run("1111111000").summary))
    for path, value in changed.items():
        room, _, name = path.rpartition("__")
        (summary[room] if room else summary)[name.replace("_at_", "@")] = value
    (tmp_path / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    (tmp_path / "c.yaml").write_text(gates, encoding="utf-8")
    baseline = read_baseline(tmp_path / "summary.json")
    return decide_gates(run, read_criteria(tmp_path / "c.yaml"), baseline)


@pytest.mark.parametrize("number", [-3, 1.2, 80])
def test_a_number_that_cannot_be_is_refused(tmp_path, number):
    assert decided_against(tmp_path, GATES).passed
    with pytest.raises(InputError, match=r"summary\.json: recall@1 is .* must be between 0 and 1"):
        decided_against(tmp_path, GATES, retrieval__recall_at_1=number)


def test_counts_below_zero_are_no_counts(tmp_path):
    gates = "gates: [{metric: link.failures.retrieval_miss, regression_max: 0.3}]"
    assert decided_against(tmp_path, gates).passed
    with pytest.raises(InputError, match=r"has no link\.failures\.retrieval_miss"):
        decided_against(tmp_path, gates, link__failures={"retrieval_miss": -3, "passed": 13})


def test_another_number_of_cases_is_noted(tmp_path):
    assert "has the same questions is unknown" in decided_against(tmp_path, GATES).notes[0]
    told = "The baseline has other cases: 500, and the run has 10."
    assert told in decided_against(tmp_path, GATES, cases=500).notes
    assert not any("other cases" in note for note in decided_against(tmp_path, GATES).notes)


def test_the_undecided_are_no_part_of_a_share():
    summary = {
        **{level: {} for level in ("retrieval", "generation", "answer")},
        "link": {"failures": {"retrieval_miss": 2, "passed": 6, "inconclusive": 2}},
    }
    found = summary_estimate(summary, "link.failures.retrieval_miss")
    assert (found.value, found.n) == (0.25, 8)
    assert summary_estimate(summary, "link.failures.inconclusive").value == 0.2


def test_the_folder_or_the_summary_of_the_run_is_no_baseline_of_it(tmp_path):
    folder = write(tmp_path / "today", gated_run("1111111100"))
    other = write(tmp_path / "main", gated_run("1111111000"))
    (tmp_path / "c.yaml").write_text(GATES, encoding="utf-8")
    wanted = read_criteria(tmp_path / "c.yaml")
    run = gated_run("1111111100")
    for own in (folder, folder / "summary.json", tmp_path / "main" / ".." / "today"):
        with pytest.raises(InputError, match="the baseline is the run itself"):
            decide_gates(run, wanted, read_baseline(own), folder=folder)
    assert decide_gates(run, wanted, read_baseline(other), folder=folder).passed


def test_another_k_is_told_by_its_name_as_it_is_written(tmp_path):
    assert "k was 7 in the baseline and is 1 now." in decided_against(tmp_path, GATES, k=7).notes
