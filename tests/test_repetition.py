"""How much the verdicts and the run move between samples, worked out by hand."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from json_values import as_json
from misslink.judge.judge_case import combine_samples
from misslink.judge.judged_metric import Finding, failed_finding
from misslink.pipeline.summary import judge_repeatability
from misslink.stats import mean, proportion
from misslink.types import Verdict

judge_repeatability = as_json(judge_repeatability)


def verdict(case, *values, metric="faithfulness", cut=0.5):
    """The verdict of samples with these values; None is a sample that failed."""
    samples = [
        failed_finding("not JSON")
        if value is None
        else Finding("scored", value=value, label=value > cut)
        for value in values
    ]
    found, _ = combine_samples(samples)
    return Verdict(
        case_id=str(case),
        metric=metric,
        status=found.status,
        value=found.value,
        label=found.label,
        repeats=found.repeats,
        reason=found.reason,
        judge="j",
    )


def test_by_hand():
    verdicts = [
        verdict(1, 1.0, 1.0, 0.0),  # flips: 1 of 3, 2 of 3 pairs differ; sd sqrt(1/3)
        verdict(2, 0.0, 0.0, 0.0),
        verdict(3, 1.0, None, 1.0),  # unanimous, but one sample is missing
        verdict(4, None, 0.8, None),  # one sample only: cannot flip
        verdict(5, None, None, None),
    ]
    found = judge_repeatability(verdicts, ["faithfulness"])
    assert found["samples"] == 3
    by_verdict = found["metrics"]["faithfulness"]
    assert (by_verdict["n"], by_verdict["incomplete"]) == (3, 2)
    assert by_verdict["flip_rate"] == proportion(1, 3).model_dump()
    assert by_verdict["disagreement"] == mean([2 / 3, 0, 0]).model_dump()
    assert by_verdict["disagreement"]["value"] == pytest.approx(2 / 9)
    assert by_verdict["spread"]["value"] == pytest.approx(math.sqrt(1 / 3) / 3)
    run = found["run"]["faithfulness"]
    # Only cases 1 and 2 have every sample: 0.5, 0.5 and 0.
    assert run["values"] == [0.5, 0.5, 0.0]
    assert run["n"] == 2
    assert run["mean"] == pytest.approx(1 / 3)
    assert run["sd"] == pytest.approx(math.sqrt(1 / 12))
    assert run["reason"] is None


def test_flips_that_cancel_leave_the_runs_own_number_still():
    found = judge_repeatability([verdict(1, 1.0, 0.0), verdict(2, 0.0, 1.0)], ["faithfulness"])
    assert found["metrics"]["faithfulness"]["flip_rate"]["value"] == 1.0
    assert found["metrics"]["faithfulness"]["disagreement"]["value"] == 1.0
    assert found["metrics"]["faithfulness"]["spread"]["value"] == pytest.approx(math.sqrt(0.5))
    assert found["run"]["faithfulness"]["values"] == [0.5, 0.5]
    assert found["run"]["faithfulness"]["sd"] == 0.0


def test_metrics_are_kept_apart_and_one_without_samples_says_so():
    verdicts = [verdict(1, 1.0, 0.0), verdict(1, 0.2, 0.4, metric="helpfulness")]
    found = judge_repeatability(verdicts, {"faithfulness": 2, "helpfulness": 3, "correctness": 3})
    assert found["run"]["helpfulness"]["mean"] == pytest.approx(0.3)
    assert found["metrics"]["helpfulness"]["flip_rate"]["value"] == 0.0
    missing = found["metrics"]["correctness"]
    assert missing["n"] == 0
    for name in ("flip_rate", "disagreement", "spread"):
        assert missing[name]["value"] is None
        assert missing[name]["reason"].startswith("no verdict has two samples")
    run = found["run"]["correctness"]
    assert (run["mean"], run["sd"], run["values"], run["n"]) == (None, None, [], 0)
    assert run["reason"] == "no case has a value in every sample"


def test_nothing_sampled_twice_is_nothing_to_say():
    assert judge_repeatability([], ["faithfulness"]) == {"samples": 0, "metrics": {}, "run": {}}
    once = Verdict(case_id="1", metric="faithfulness", status="scored", value=1.0, judge="j")
    assert judge_repeatability([once], ["faithfulness"]) == {"samples": 0, "metrics": {}, "run": {}}


def test_a_run_stopped_before_its_last_sample_does_not_pretend_that_the_run_moved():
    # The second sample was had of the easy case only: its mean would be 1 for that reason alone.
    found = judge_repeatability([verdict(1, 1.0, 1.0), verdict(2, 0.0, None)], ["faithfulness"])
    assert found["run"]["faithfulness"]["values"] == [1.0, 1.0]
    assert found["run"]["faithfulness"]["n"] == 1
    assert found["metrics"]["faithfulness"]["incomplete"] == 1


@pytest.mark.slow
@given(
    st.integers(2, 5).flatmap(
        lambda samples: st.lists(
            st.lists(st.one_of(st.none(), st.floats(0, 1)), min_size=samples, max_size=samples),
            min_size=1,
            max_size=8,
        )
    )
)
def test_whatever_the_samples_the_numbers_are_numbers_or_say_why_not(rows):
    verdicts = [verdict(case, *row) for case, row in enumerate(rows)]
    found = judge_repeatability(verdicts, ["faithfulness"])
    json.dumps(found, allow_nan=False)
    by_verdict, run = found["metrics"]["faithfulness"], found["run"]["faithfulness"]
    flips, pairs = by_verdict["flip_rate"]["value"], by_verdict["disagreement"]["value"]
    assert (flips is None) == (pairs is None) == (by_verdict["n"] == 0)
    if flips is not None:
        assert pairs <= flips + 1e-12  # a pair differs only where not all are alike
        assert (pairs == 0) == (flips == 0)
    assert (run["mean"] is None) == (run["n"] == 0) == (run["reason"] is not None)
    backwards = [verdict(case, *row) for case, row in reversed(list(enumerate(rows)))]
    assert judge_repeatability(backwards, ["faithfulness"]) == found
