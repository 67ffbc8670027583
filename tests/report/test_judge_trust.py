"""Whether the judge can be trusted: what labels say, and how to come by them."""

import re

import pytest

from example_run import HOSTILE, estimate, missing
from misslink.report.judge_trust import read_judge_trust
from misslink.report.page import build_page, render_page
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
        "evidence_position": {
            "coefficient": estimate(0.1, -0.2, 0.4, 574, "logistic"),
            "pull": estimate(-0.05, -0.3, 0.2, 574, "logistic"),
            "finding": None,
            "unit": "1.4 (one SD)",
        },
        "length": {
            "coefficient": estimate(-0.3, -0.5, -0.1, 574, "logistic"),
            "pull": estimate(0.7, 0.4, 1.0, 574, "logistic"),
            "finding": "the judge errs less on longer answers",
            "unit": "319 (one SD)",
        },
        "category": {
            "coefficient": missing("too few cases"),
            "pull": missing("too few cases"),
            "finding": None,
            "unit": None,
        },
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
    "uncertain_band": [0.25, 0.75],
    "labels_needed": {
        "verdicts": 900,
        "curve": [
            {"labels": 100, "width": 0.14, "labelled_only": 0.16},
            {"labels": 574, "width": 0.06, "labelled_only": 0.066},
        ],
        "for_width": {"0.2": 43, "0.1": 231, "0.05": None},
    },
    "verdict": "caution",
    "reasons": ["Specificity is 55%.", HOSTILE[0]],
    "notes": ["3 cases are tied and left out.", HOSTILE[0]],
}


def _run(calibration=None, calibration_of_run=None, **manifest):
    manifest = {"judge": "openai:m", "calibration": calibration_of_run, **manifest}
    return Run(
        manifest=manifest,
        cases=(),
        traces=(),
        verdicts=(),
        links=(),
        summary={},
        calibration=calibration,
    )


def trust(run):
    """The first of what is known of the judge."""
    return read_judge_trust(run)[0]


def test_a_run_without_a_judge_has_nothing_to_trust():
    assert read_judge_trust(_run(judge="none")) == read_judge_trust(_run(judge=None)) == ()


def test_a_judge_that_was_not_held_against_people_says_how_to():
    found = trust(_run())

    assert not found.measured
    assert found.advice.startswith("This judge was not compared with human labels")
    assert "`misslink annotate RUN`" in found.advice
    assert "`misslink calibrate RUN` (with a file: `--labels FILE`), which saves" in found.advice
    assert "`--calibration RUN/calibration.json`" in found.advice


def test_agreement_is_told_in_the_unit_of_each_statistic():
    found = trust(_run(DOCUMENT))

    assert found.measured
    assert [(label, shown.text) for label, shown in found.agreement] == [
        ("Cohen's kappa", "0.41 [0.30, 0.52], n = 574"),
        ("Sensitivity: of the good, called good", "90% [87, 93], n = 464"),
        ("Specificity: of the bad, called bad", "55% [46, 64], n = 110"),
    ]
    assert found.facts == (
        "Compared with human labels of faithfulness: 574 cases; annotators called 464 good. "
        "The judge calls a case good from 0.43 on."
    )
    assert (found.verdict, found.document.reasons[1]) == ("caution", HOSTILE[0])
    assert found.baselines == (("majority, F1", "0.000"), ("length, AUROC", "0.700"))
    assert not found.human[0][1].measured
    assert '<td class="right bad">44</td>' in render_page(build_page(_run(DOCUMENT)))


def bias_rows(**biases):
    """The rows of the bias audit as text."""
    html = render_page(build_page(_run({**DOCUMENT, "bias": biases or DOCUMENT["bias"]})))
    table = html.partition('Bias audit">')[2].partition("</tbody>")[0].partition("<tbody>")[2]
    return [" ".join(re.sub("<[^>]+>", " ", row).split()) for row in table.split("<tr>")[1:]]


def test_a_bias_is_told_as_it_was_found_those_with_a_finding_first():
    assert bias_rows() == [
        (
            "length unit: 319 (one SD) the judge errs less on longer answers "
            "\u22120.30 [\u22120.50, \u22120.10] 0.70 [0.40, 1.00]"
        ),
        (
            "evidence position unit: 1.4 (one SD) no associated error beyond chance "
            "0.10 [\u22120.20, 0.40] \u22120.05 [\u22120.30, 0.20]"
        ),
    ]
    assert '<p class="small" dir="auto">Not measured: too few cases.</p>' in render_page(
        build_page(_run(DOCUMENT))
    )


PAIRS = {
    "pairs": 210,
    "questions": 48,
    "longer_preferred": estimate(0.63, 0.56, 0.7, 210, "wilson, clustered"),
    "p": 0.0003,
    "finding": HOSTILE[0],
}


def _bias(matched, finding=None):
    coefficient = estimate(0.1, -0.2, 0.4, 220, "logistic")
    return {"coefficient": coefficient, "finding": finding, "matched": matched}


def test_pairs_say_which_is_preferred_of_how_many_and_how_surely_and_come_first():
    first, second = bias_rows(position=_bias(None), length=_bias(PAIRS))
    assert (
        "scores the longer one better in 63% [56, 70] of 210 pairs (48 questions, p &lt; 0.001)"
        in first
    )
    assert ": beyond chance" in first
    assert second.startswith("position")


def test_a_kind_is_named_by_its_row():
    kind = {"pairs": 1, "questions": 1, "preferred": estimate(1.0, 0.2, 1.0, 1), "p": 1.0}
    (row,) = bias_rows(model_a=_bias(kind))
    assert "the one of this kind better in 1 of 1 pair (1 question, p = 1.00)." in row


@pytest.mark.parametrize(
    "matched",
    [None, {}, {"pairs": 4}, {"longer_preferred": missing("no question has two answers")}],
)
def test_where_nothing_can_be_matched_nothing_is_said_of_it(matched):
    (row,) = bias_rows(length=_bias(matched))
    assert "Of two answers" not in row


def test_the_diagram_has_a_dot_a_bin_with_cases_the_larger_the_more():
    """The axes are 300 - 2 x 36 = 228 long; the empty bin is no dot."""
    html = render_page(build_page(_run(DOCUMENT)))
    dots = re.findall(r'class="dot" cx="([\d.]+)" cy="([\d.]+)" r="([\d.]+)"><title>(.*?)<', html)
    assert dots == [
        ("93.0", "150.0", "8.0", "0.00 to 0.50: 50% [40, 60], n = 100"),  # the most cases
        ("264.0", "36.0", "5.5", "0.90 to 1.00: 100% [80, 100], n = 25"),  # 3 + 5 x sqrt(25 / 100)
    ]
    assert 'class="whisker" d="M93.0 172.8V127.2"' in html


@pytest.mark.parametrize("rows", [None, [], DOCUMENT["reliability"][1:2]])
def test_without_a_bin_there_is_no_diagram(rows):
    html = render_page(build_page(_run({**DOCUMENT, "reliability": rows})))
    assert "Is its probability calibrated?" not in html


def test_risks_that_were_not_corrected_by_it_yet_are_said_to_be_so():
    corrected = {"metric": "faithfulness"}
    assert "`--calibration RUN/calibration.json`" in trust(_run(DOCUMENT)).advice
    assert trust(_run(DOCUMENT, calibration_of_run=corrected)).advice == ""
    # Of another metric nothing is corrected, so there is nothing to advise.
    assert trust(_run({**DOCUMENT, "metric": "correctness"})).advice == ""


def test_people_of_whom_nothing_is_known_take_one_line_not_four():
    alone = missing("one person labelled")
    names = ("alpha", "alpha_with_judge", "kappa", "percent")
    found = trust(_run({**DOCUMENT, "human": {"annotators": 1} | dict.fromkeys(names, alone)}))
    assert [shown.reason for _, shown in found.human] == ["one person labelled"]
    known = {"kappa": alone, "alpha": estimate(0.7, 0.6, 0.8, 90, "bootstrap")}
    (row,) = trust(_run({**DOCUMENT, "human": known})).human
    assert (row[0], row[1].value) == ("Krippendorff's alpha", "0.70")


def test_the_page_shows_what_the_labels_need_and_where_the_judge_is_not_believed():
    html = render_page(build_page(_run(DOCUMENT)))
    assert "it is not to be believed either way" in html
    assert "3 cases are tied and left out." in html
    assert "From 0.25 to 0.75, shaded" in html
    assert 'class="unsure" x="93.0" y="36.0" width="114.0"' in html
    assert "\u00b17 points" in html
    assert "\u00b110 points need no more labels" in html
    without = {"uncertain_band": None, "uncertain_band_reason": HOSTILE[0]}
    html = render_page(build_page(_run({**DOCUMENT, **without})))
    assert "No probability is marked as uncertain" in html
    assert 'unsure"' not in html
    assert HOSTILE[0] not in html


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
    assert found.advice.startswith("The run has only the two error rates.")


def test_every_labelled_metric_is_told_faithfulness_first():
    correctness = {**DOCUMENT, "metric": "correctness", "verdict": HOSTILE[3]}
    held = {**correctness, "others": {"faithfulness": DOCUMENT, HOSTILE[0]: {"n": 3}}}
    found = read_judge_trust(_run(held))

    assert [one.metric for one in found] == ["faithfulness", "correctness", ""]
    assert found[1].verdict == HOSTILE[3]
    html = render_page(build_page(_run(held)))
    assert html.count("compared with labels as well") == 2
    assert HOSTILE[3] not in html


@pytest.mark.parametrize(
    ("threshold", "said"),
    [
        (0.43, "The run's failure modes and corrected risks were made with this calibration."),
        (0.5, "made with another calibration than this one (old.csv, 2026-05-01)"),
    ],
)
def test_it_is_said_with_which_calibration_the_links_were_made(threshold, said):
    """By its cut, its band and its rates, which are what reaches the links."""
    used = {
        "metric": "faithfulness",
        "threshold": threshold,
        "sensitivity": DOCUMENT["agreement"]["sensitivity"],
        "specificity": DOCUMENT["agreement"]["specificity"],
        "uncertain_band": [0.25, 0.75],
    }
    by = {"labels_from": "old.csv", "created": "2026-05-01T00:00:00+00:00"}
    found = trust(_run(DOCUMENT, calibration_of_run=used, calibrated_by=by))

    assert said in found.applied
    assert ("`--calibration RUN/calibration.json`" in found.applied) == (threshold == 0.5)
    assert trust(_run(DOCUMENT)).applied == ""  # with none: the advice says so


def test_the_age_of_a_calibration_and_what_of_the_judge_is_another_since_are_told():
    document = {
        **DOCUMENT,
        "created": "2026-01-02T00:00:00+00:00",
        "judge_identity": {"judge_identity.rules": "old", "judge_identity.judge": "heuristic"},
    }
    manifest = {
        "judge": "heuristic",
        "created": "2026-05-02T01:00:00+00:00",
        "inputs": {"judge_identity.rules": "new", "judge_identity.judge": "heuristic"},
    }
    run = _run(document, **manifest)
    assert trust(run).facts.endswith(
        " This calibration is of 2026-01-02, 120 days before the run; the judge may have drifted "
        "since. The judge's rules was old when it was calibrated and is new in this run; "
        "label some new answers."
    )
    assert "120 days before the run" in render_page(build_page(run))


@pytest.mark.parametrize("created", ["2026-05-02T01:00:00+00:00", "2026-05-03", "", None])
def test_a_calibration_of_the_same_day_or_of_no_known_day_has_no_age(created):
    manifest = {"judge": "heuristic", "created": "2026-05-02T01:00:00+00:00"}
    run = _run({**DOCUMENT, "created": created}, **manifest)
    assert trust(run).facts == trust(_run(DOCUMENT)).facts
