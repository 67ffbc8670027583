"""An audit becomes part of a calibration where it is of the same judge and prompts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from labelled import table
from misslink.calibration import read_verdicts
from misslink.calibration.advice import (
    TrustCriteria,
    advise,
    audit_findings,
    audit_numbers,
    matching_audit,
)

PROMPT = {"name": "examination", "version": 1, "sha256": "ab" * 32}


def share(value, low):
    return {
        "value": value, "low": low, "high": 1.0, "n": 50, "method": "wilson", "reason": None,
    }  # fmt: skip


def audit(**more):
    def entry(low, **rest):
        return {
            "n": 50, "flipped": share(0.5, low), "to_good": share(0.4, low / 2),
            "may_lower": False, "finding": None, **rest,
        }  # fmt: skip

    return {
        "judge": "openai:m",
        "prompts": {"examination": "ab" * 32},
        "judge_identity": {"judge_identity.model": "m"},
        "created": "2026-01-01T00:00:00+00:00",
        "seed": 0,
        "cases": 50,
        "metrics": {
            "faithfulness": {
                "padding": entry(0.1, finding="Padding moves it."),
                "passage_order": entry(0.01),
                "passage_shuffle": entry(0.3),
                "again": entry(0.02),
            }
        },
        **more,
    }


@pytest.fixture
def verdicts():
    rows = table(judge="openai:m", prompt=PROMPT)[0]
    return replace(read_verdicts(rows, "faithfulness"), identity={"judge_identity.model": "m"})


def test_what_was_found_of_the_metric_is_kept_and_weighed(verdicts):
    kept = matching_audit(audit(), verdicts)
    assert set(kept) == {"audit"}
    assert kept["audit"]["cases"] == 50
    assert audit_numbers(kept) == {
        "padding_flips_low": 0.1, "order_flips_low": 0.3, "again_flips_low": 0.02,
    }  # fmt: skip
    assert audit_findings(kept) == ["Padding moves it."]


def test_where_padding_may_lower_only_what_turns_good_is_weighed(verdicts):
    told = audit()
    told["metrics"]["faithfulness"]["padding"]["may_lower"] = True
    assert audit_numbers(matching_audit(told, verdicts))["padding_flips_low"] == 0.05


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"judge": "openai:other"}, "it is of openai:other, the verdicts are of openai:m"),
        ({"prompts": {"examination": "cd" * 32}}, "the prompt 'examination' was another one"),
        ({"judge_identity": {"judge_identity.model": "n"}}, "model of the judge was another one"),
        ({"metrics": {"correctness": {}}}, "it does not cover faithfulness"),
        ({"metrics": ["<b>"]}, "it does not cover faithfulness"),
    ],
)
def test_an_audit_of_something_else_is_not_used_and_says_why(verdicts, more, reason):
    kept = matching_audit(audit(**more), verdicts)
    assert kept == {"audit": None, "audit_reason": reason}
    assert set(audit_numbers(kept).values()) == {None}
    assert audit_findings(kept) == []


def test_verdicts_of_no_certain_judge_have_no_audit(verdicts):
    assert (
        "an unknown judge" in matching_audit(audit(), replace(verdicts, judge=None))["audit_reason"]
    )


def test_a_judge_that_was_not_audited_is_not_worse_for_it(verdicts):
    assert matching_audit(None, verdicts) == {}
    numbers = audit_numbers({})
    names = {"kappa", *numbers}
    rules = tuple(rule for rule in TrustCriteria().rules if rule.name in names)
    assert len(rules) == len(names) == 4
    assert advise({"kappa": 0.9, **numbers}, TrustCriteria(rules))["verdict"] == "trust"


def test_flips_beyond_the_limits_stand_against_the_judge(verdicts):
    numbers = audit_numbers(matching_audit(audit(), verdicts))
    rules = tuple(rule for rule in TrustCriteria().rules if rule.name in numbers)
    found = advise(numbers, TrustCriteria(rules))
    assert found["verdict"] == "do not use"
    order, padding = found["reasons"]
    assert order.startswith("30% or more of the verdicts change with the order of the passages;")
    assert order.endswith("at most 20% is needed to use it at all.")
    assert padding.startswith("10% or more of the verdicts change if an answer is padded with")
    assert padding.endswith("at most 5% is needed to trust it.")
