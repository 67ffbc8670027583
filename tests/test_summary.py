"""Levels, slices and coverage from verdicts counted by hand."""

import pytest

from json_values import as_json
from misslink.pipeline.summary import level_estimates, slice_estimates, verdict_coverage
from misslink.types import Case, Verdict

level_estimates = as_json(level_estimates)
slice_estimates = as_json(slice_estimates)
verdict_coverage = as_json(verdict_coverage)

LEVELS = {"faithfulness": 2, "correctness": 3, "abstention": 3}


def verdict(case_id, metric, value=None, reason="nothing to judge", **fields):
    status = fields.pop("status", "skipped" if value is None else "scored")
    return Verdict(
        case_id=case_id,
        metric=metric,
        status=status,
        value=value,
        reason=None if value is not None else reason,
        judge="j",
        **fields,
    )


VERDICTS = [
    verdict("a", "faithfulness", 1.0, label=True),
    verdict("b", "faithfulness", 0.5, label=False),
    verdict("c", "faithfulness"),
    verdict("d", "faithfulness", status="failed", reason="no JSON"),
    verdict("a", "correctness", 0.8, label=True, parts={"precision": 1.0, "recall": 2 / 3}),
    verdict("b", "correctness", 0.0, label=False, parts={"precision": None, "recall": 0.0}),
]
SCORES = {"recall@3": {"a": 1.0, "b": 0.0, "c": None}}
CASES = [
    Case(id="a", question="A?", category="x", tags={"topic": "t"}),
    Case(id="b", question="B?", category="x"),
    Case(id="c", question="C?", category="y"),
]


def test_what_has_no_value_is_in_no_mean_and_is_counted():
    found = level_estimates(SCORES, VERDICTS, LEVELS, seed=0)
    assert found["retrieval"]["recall@3"]["value"] == pytest.approx(0.5)
    assert found["retrieval"]["recall@3"]["n"] == 2
    assert found["generation"]["faithfulness"]["value"] == pytest.approx(0.75)
    assert found["generation"]["faithfulness"]["n"] == 2
    assert found["generation"]["fully_faithful"]["value"] == pytest.approx(0.5)
    assert found["answer"]["correct"]["value"] == pytest.approx(0.5)
    assert found["answer"]["correctness_precision"]["n"] == 1
    assert verdict_coverage(VERDICTS, LEVELS)["faithfulness"] == {
        "scored": 2,
        "skipped": 1,
        "failed": 1,
    }


def test_a_metric_without_any_value_says_why():
    found = level_estimates(
        {}, [verdict("c", "faithfulness", reason="the answer declines")], LEVELS, seed=0
    )
    assert found["generation"]["fully_faithful"]["value"] is None
    assert "1 of 1 skipped: the answer declines" in found["generation"]["fully_faithful"]["reason"]
    assert found["answer"]["abstention"]["reason"] == "no judge was used"


def test_slices_by_tier_come_after_those_by_category_and_before_tags():
    cases = [
        Case(id="a", question="A?", category="x", tier="gold", tags={"area": "t", "tier": "tag"}),
        Case(id="b", question="B?", tags={"tier": "gold"}),
        Case(id="c", question="C?", tier="gold"),
    ]
    found = slice_estimates(cases, SCORES, VERDICTS, k=3, seed=0)
    assert list(found) == ["category", "tier", "area"]
    assert {name: group["n"] for name, group in found["tier"].items()} == {"gold": 2}
    assert found["tier"]["gold"]["metrics"]["recall@3"]["n"] == 1  # of a; c has no value


def test_a_tag_called_tier_is_an_axis_where_no_case_has_a_tier():
    cases = [Case(id="a", question="A?", tags={"tier": "t"}), Case(id="b", question="B?")]
    assert slice_estimates(cases, SCORES, VERDICTS, k=3, seed=0)["tier"]["t"]["n"] == 1


def test_slices_are_by_category_and_by_tag():
    found = slice_estimates(CASES, SCORES, VERDICTS, k=3, seed=0)
    assert list(found) == ["category", "topic"]
    assert found["category"]["x"]["n"] == 2
    assert found["category"]["x"]["metrics"]["recall@3"]["value"] == pytest.approx(0.5)
    assert found["category"]["y"]["metrics"]["fully_faithful"]["value"] is None
    assert found["topic"]["t"]["metrics"]["fully_faithful"]["value"] == 1.0
