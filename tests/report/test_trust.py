"""Whether the judge can be trusted: what labels say, and how to come by them."""

from __future__ import annotations

import pytest
from example_run import HOSTILE, estimate, missing

from misslink.report.html import render
from misslink.report.page import build
from misslink.report.trust import trust
from misslink.types import Run

DOCUMENT = {
    "metric": "faithfulness",
    "n": 574,
    "positives": 464,
    "threshold": 0.43,
    "agreement": {
        "kappa": estimate(0.41, 0.3, 0.52, 574, "bootstrap"),
        "sensitivity": estimate(0.9, 0.87, 0.93, 464),
        "specificity": estimate(0.55, 0.46, 0.64, 110),
    },
    "detection": {"f1": estimate(0.53, 0.45, 0.6, 574, "bootstrap")},
    "human": {"annotators": 2, "alpha": missing("one annotator only")},
    "baselines": {"majority": {"f1": 0.0}, "length": {"auroc": 0.7}},
    "probability": {"brier": 0.11, "ece": 0.04},
    "corrected": {"prediction_powered": estimate(0.79, 0.74, 0.84, 900, "ppi")},
    "bias": {
        "length": {"coefficient": estimate(-0.3, -0.5, -0.1, 574, "logistic")},
        "position": {"coefficient": estimate(0.1, -0.2, 0.4, 574, "logistic")},
    },
    "confusion": {"true_good": 420, "false_good": 50, "true_bad": 60, "false_bad": 44},
    "reliability": [
        {
            "low": 0.0,
            "high": 0.5,
            "n": 100,
            "predicted": 0.25,
            "good": estimate(0.5, 0.4, 0.6, 100),
        },
        {"low": 0.5, "high": 1.0, "n": 0, "predicted": None, "good": missing("no case")},
        {"low": 0.9, "high": 1.0, "n": 25, "predicted": 1.0, "good": estimate(1.0, 0.8, 1.0, 25)},
    ],
    "verdict": "caution",
    "reasons": ["Specificity is 55 %.", HOSTILE[0]],
}


def _run(calibration=None, **manifest):
    manifest = {"judge": "openai:m", **manifest}
    return Run(
        manifest=manifest,
        cases=(),
        traces=(),
        verdicts=(),
        links=(),
        summary={},
        calibration=calibration,
    )


def test_a_run_without_a_judge_has_nothing_to_trust():
    assert trust(_run(judge="none")) is None
    assert trust(_run(judge=None)) is None


def test_a_judge_that_was_not_held_against_people_says_how_to():
    found = trust(_run())

    assert not found.measured
    assert found.advice.startswith("Nobody has held this judge against people")
    assert "`misslink calibrate RUN --labels labels.csv --json > calibration.json`" in found.advice


def test_agreement_is_told_in_the_unit_of_each_statistic():
    found = trust(_run(DOCUMENT))

    assert found.measured
    assert [(label, shown.text) for label, shown in found.agreement] == [
        ("Cohen's kappa", "0.41 [0.30, 0.52], n = 574"),
        ("Sensitivity: of the good, called good", "90 % [87, 93], n = 464"),
        ("Specificity: of the bad, called bad", "55 % [46, 64], n = 110"),
    ]
    assert found.facts == (
        "Held against human labels of faithfulness: 574 cases, of which people called 464 good. "
        "The judge calls good what has 0.43 or more."
    )
    assert (found.verdict, found.reasons, found.advice) == (
        "caution", ("Specificity is 55 %.", HOSTILE[0]), "",
    )  # fmt: skip
    assert found.baselines == (("majority, F1", "0.000"), ("length, AUROC", "0.700"))
    assert not found.human[0][1].measured
    assert (found.confusion.true_good, found.confusion.false_bad) == (420, 44)


def test_a_bias_is_told_with_whether_it_can_be_told_from_none():
    told = [(name, shown.brief, finding) for name, shown, finding in trust(_run(DOCUMENT)).bias]
    assert told == [
        ("length", "\u22120.30 [\u22120.50, \u22120.10]", "pulls verdicts down"),
        ("position", "0.10 [\u22120.20, 0.40]", "no detectable pull"),
    ]


def test_the_diagram_has_a_dot_a_bin_with_cases_the_larger_the_more():
    drawn = trust(_run(DOCUMENT)).reliability
    half, full = drawn.bins  # the empty bin is no dot

    middle = drawn.size / 2
    assert (half.y, full.y) == (middle, drawn.edge)
    assert (half.x, full.x) == (drawn.edge + (drawn.size - 2 * drawn.edge) / 4, 264.0)
    assert half.high < half.y < half.low
    assert half.radius == 8.0  # the one with most cases
    assert full.radius == 5.5  # 3 + 5 x sqrt(25 / 100)
    assert (half.span, half.predicted, half.good.text) == (
        "0.00 to 0.50", "0.25", "50 % [40, 60], n = 100",
    )  # fmt: skip


def test_the_few_numbers_of_a_manifest_are_shown_with_how_to_get_the_rest():
    kept = {
        "metric": "faithfulness",
        "threshold": 0.5,
        "sensitivity": estimate(0.9, 0.8, 0.95, 80),
        "specificity": estimate(0.7, 0.6, 0.8, 40),
    }
    run = _run()
    found = trust(run.model_copy(update={"manifest": {**run.manifest, "calibration": kept}}))

    assert [label.partition(":")[0] for label, _ in found.agreement] == [
        "Sensitivity", "Specificity",
    ]  # fmt: skip
    assert found.advice.startswith("The run keeps the two rates alone.")


@pytest.mark.parametrize("key", sorted(DOCUMENT))
@pytest.mark.parametrize("value", [None, "x" * 99, -3.5, [], [1], {"a": 1}, {"f1": {"b": None}}])
def test_a_document_of_any_shape_gives_a_page(key, value):
    html = render(build(_run({**DOCUMENT, key: value})))
    assert "Can the judge be trusted?" in html
    assert HOSTILE[0] not in html
