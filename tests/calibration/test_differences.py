"""Two runs of one judge beside each other, corrected by one calibration."""

from __future__ import annotations

import numpy as np
import pytest

from judged_runs import PROMPT, held, judged_run, keeping, labels_of
from misslink.calibration.corrected_prevalence import (
    compare_corrected_shares,
    corrected_share_difference,
    judge_mismatch,
)
from misslink.types import PromptRef

JUDGE = "1" * 60 + "0" * 40
PEOPLE = "1" * 30 + "0" * 5 + "-" * 25 + "0" * 28 + "1" * 2 + "-" * 10  # 65 labelled


def test_the_difference_is_the_raw_one_over_what_the_judge_tells_apart():
    a = judged_run(JUDGE)
    b = judged_run("1" * 75 + "0" * 25)
    document = held(a, PEOPLE)
    found = corrected_share_difference(a, b, "faithfulness", document)
    gain = 30 / 32 + 28 / 33 - 1
    assert found.difference.value == pytest.approx(0.15 / gain)
    assert found.b.value - found.a.value == pytest.approx(found.difference.value)
    assert found.difference.low < found.difference.value < found.difference.high
    assert found.labels == 65


def test_cases_without_a_verdict_in_one_run_are_in_neither_share():
    a, b = judged_run("1" * 60 + "0" * 30 + "f" * 10), judged_run("f" * 20 + "1" * 80)
    found = corrected_share_difference(a, b, "faithfulness", held(judged_run(JUDGE), PEOPLE))
    assert (found.a.n, found.b.n, found.difference.n) == (70, 70, 70)


def test_both_must_keep_a_calibration_and_who_does_not_is_told():
    a, b = judged_run(JUDGE), judged_run(JUDGE)
    assert compare_corrected_shares(a, b) == ({}, None)
    found, why = compare_corrected_shares(keeping(a, held(a, PEOPLE)), b)
    assert found == {}
    assert why.startswith("B has no calibration; evaluate it with  --calibration A/")


def test_where_the_judges_differ_nobody_is_told_to_use_the_ones_calibration_for_the_other():
    a, b = judged_run(JUDGE), judged_run(JUDGE, judge="openai:n")
    found, why = compare_corrected_shares(keeping(a, held(a, PEOPLE)), b)
    assert (found, why) == ({}, "one run was judged by openai:m, the other by openai:n")
    assert compare_corrected_shares(b, keeping(a, held(a, PEOPLE)))[1] == (
        "one run was judged by openai:n, the other by openai:m"
    )


def test_the_calibration_with_more_labels_corrects_both():
    a, b = judged_run(JUDGE), judged_run("1" * 75 + "0" * 25)
    many, few = held(a, PEOPLE), held(b, "1" * 30 + "-" * 45 + "0" * 5)
    found, why = compare_corrected_shares(keeping(a, many), keeping(b, few))
    assert why is None
    assert found["fully_faithful"].labels == 65
    assert found["fully_faithful"] == corrected_share_difference(a, b, "faithfulness", many)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"judge": "openai:n"}, "judged by openai:m, the other by openai:n"),
        (
            {"prompt": PromptRef(name=PROMPT.name, version=2, sha256="cd" * 32)},
            "the prompt 'examination' is not the same",
        ),
    ],
)
def test_another_judge_or_prompt_is_not_corrected_by_these_labels(changed, said):
    a, b = judged_run(JUDGE), judged_run(JUDGE, **changed)
    found, why = compare_corrected_shares(keeping(a, held(a, PEOPLE)), keeping(b, held(b, PEOPLE)))
    assert found == {}
    assert said in why


def test_a_calibration_of_another_judge_is_told_though_the_runs_are_alike():
    a = judged_run(JUDGE)
    document = held(judged_run(JUDGE, judge="openai:n"), PEOPLE)
    assert "of the judge openai:n" in judge_mismatch(a, a, "faithfulness", document)


def counted(good, said):
    """A calibration of nothing but the table of people against the judge."""
    cells = {"true_good": good & said, "false_bad": good & ~said}
    cells |= {"false_good": ~good & said, "true_bad": ~good & ~said}
    table = {name: int(cell.sum()) for name, cell in cells.items()}
    return {"metric": "faithfulness", "threshold": 0.5, "confusion": table}


def marks(said):
    return "".join("1" if one else "0" for one in said)


@pytest.mark.slow
def test_the_interval_covers_the_true_difference():
    """200 draws of two systems that are truly 60 and 72 % good, judged and labelled with error."""
    draws, generator, covered = 200, np.random.default_rng(7), 0
    for _ in range(draws):
        good = generator.random((2, 300)) < np.array([[0.6], [0.72]])
        said = generator.random((2, 300)) < np.where(good, 0.85, 0.2)
        a, b = (judged_run(marks(one)) for one in said)
        document = counted(good[0][:100], said[0][:100])
        found = corrected_share_difference(a, b, "faithfulness", document).difference
        covered += found.low <= 0.12 <= found.high
    assert covered / draws >= 0.93


def test_fewer_labels_make_the_interval_wider_about_the_same_difference():
    a, b = judged_run(JUDGE), judged_run("1" * 75 + "0" * 25)
    table = {"true_good": 18, "false_bad": 2, "false_good": 4, "true_bad": 16}
    many = {name: 50 * count for name, count in table.items()}
    few, sure = (
        corrected_share_difference(
            a, b, "faithfulness", {"threshold": 0.5, "confusion": one}
        ).difference
        for one in (table, many)
    )
    assert few.value == pytest.approx(sure.value) == pytest.approx(0.15 / 0.7)
    assert few.high - few.low > sure.high - sure.low


def test_labels_are_read_by_case_and_not_by_place():
    a = judged_run(JUDGE)
    assert held(a, PEOPLE)["n"] == len(labels_of(PEOPLE))
