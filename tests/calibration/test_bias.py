"""Planted biases are found, and what is only chance is not."""

from __future__ import annotations

import random

import pytest

from labelled import held, label, verdict


def planted(n=400, seed=1, **about):
    """Verdicts right in nine of ten, but for longer answers called bad twice as often as right."""
    generator = random.Random(seed)
    verdicts, labels = [], []
    for number in range(n):
        good = generator.random() < 0.6
        length = generator.choice([100, 900])
        call = good if generator.random() < 0.9 else not good
        if length == 900 and about.get("hard_on_long") and generator.random() < 0.5:
            call = False
        kind = generator.choice(["law", "food", "<b>tax</b>"])
        if kind == "law" and about.get("kind_to_law") and generator.random() < 0.6:
            call = True
        score = 0.9 if call else 0.1
        more = {"answer": "x" * length, "category": kind, "passages": generator.choice([3, 5])}
        verdicts.append(verdict(f"c{number}", score, **more))
        labels.append(label(f"c{number}", good))
    return held(verdicts, labels)["bias"]


def test_a_judge_that_is_hard_on_long_answers_is_found_out():
    found = planted(hard_on_long=True)
    assert found["length"]["coefficient"]["low"] > 0
    assert found["length"]["pull"]["high"] < 0
    assert found["length"]["finding"] == (
        "the judge errs more on longer answers; it is too strict on longer answers"
    )


def test_a_judge_that_is_kind_to_one_category_is_found_out():
    found = planted(kind_to_law=True)
    assert found["category: law"]["pull"]["low"] > 0
    assert "it is too lenient on answers with the category law" in found["category: law"]["finding"]


@pytest.mark.slow
def test_what_is_chance_is_seldom_called_a_bias():
    told = [
        name for seed in range(30) for name, entry in planted(120, seed).items() if entry["finding"]
    ]
    assert len(told) <= 6  # two families of tests at 5 % each over 30 repetitions: 3 expected


def test_what_no_case_tells_stands_there_as_missing():
    found = planted()
    assert found["evidence_position"]["coefficient"]["value"] is None
    assert "too few labelled cases" in found["evidence_position"]["coefficient"]["reason"]
    assert found["model"]["finding"] is None


def test_two_kinds_are_told_once_for_they_mirror_each_other():
    verdicts = [verdict(f"c{n}", 0.9, model="ab"[n % 2]) for n in range(40)]
    labels = [label(f"c{n}", n % 3 > 0) for n in range(40)]
    names = [name for name in held(verdicts, labels)["bias"] if name.startswith("model")]
    assert names == ["model: b"]


def test_a_judge_without_errors_has_no_bias_and_says_so():
    verdicts = [verdict(f"c{n}", float(n % 2), answer="x" * (n + 1)) for n in range(40)]
    found = held(verdicts, [label(f"c{n}", n % 2) for n in range(40)])["bias"]
    assert found["length"]["coefficient"]["reason"] == "the judge makes no error here"
