"""What annotators would find, beside the judge's own share."""

from __future__ import annotations

import pytest

from example_run import HOSTILE, estimate, example_run, missing, verdict
from misslink.calibration.verdicts import hash_verdicts
from misslink.report.overview import corrected_shares, metric_levels
from misslink.report.page import build_page, render_page
from misslink.types import Case, Run
from proven_run import proven_run


def _run(powered, *, own=True, good=8, summary=None, metric="faithfulness", **more):
    """Ten verdicts, `good` of them good, and a calibration of them or of another run."""
    run = Run(
        manifest={"judge": "openai:m"},
        cases=tuple(Case(id=str(n), question="Which?") for n in range(10)),
        traces=(),
        verdicts=tuple(verdict(str(n), metric, float(n < good)) for n in range(10)),
        links=(),
        summary=summary or {},
    )
    document = {
        "metric": metric,
        "n": 120,
        "threshold": 0.5,
        "confusion": {"true_good": 70, "false_bad": 10, "false_good": 12, "true_bad": 28},
        "corrected": {"prediction_powered": powered},
        "verdicts_sha256": hash_verdicts(run, metric) if own else "ab" * 32,
        **more,
    }
    return run.model_copy(update={"calibration": document})


def _shares(value=0.8):
    return {"generation": {"fully_faithful": estimate(value, 0.49, 0.94, 10)}}


def test_labels_of_the_runs_own_verdicts_are_used_with_all_of_them():
    found = corrected_shares(_run(estimate(0.61, 0.52, 0.7, 10, "ppi")))["fully_faithful"]

    assert found.judged.value == "80%"
    assert found.corrected.brief == "61% [52, 70]"
    assert (found.labels, found.of) == (120, "faithful answers")
    assert found.how == "By prediction-powered inference from 120 labels of this run's verdicts."


def test_a_calibration_of_another_run_gives_its_error_rates_alone():
    """Rogan and Gladen by hand: (0.8 + 0.7 - 1) / (0.875 + 0.7 - 1)."""
    found = corrected_shares(_run(estimate(0.61, 0.52, 0.7, 10, "ppi"), own=False))[
        "fully_faithful"
    ]

    assert found.corrected.value == f"{round(100 * 0.5 / 0.575)}%"
    assert "120 labels of another run" in found.how


@pytest.mark.parametrize(
    ("interval", "hint"),
    [
        ((0.61, 0.52, 0.7), "The judge's 80% lies above this interval: it is too kind."),
        ((0.9, 0.85, 0.95), "The judge's 80% lies below this interval: it is too strict."),
        ((0.75, 0.7, 0.8), ""),
    ],
)
def test_a_share_that_no_truth_within_the_interval_gives_is_pointed_out(interval, hint):
    found = corrected_shares(_run(estimate(*interval, 10, "ppi")))["fully_faithful"]
    assert found.hint == hint
    html = render_page(build_page(_run(estimate(*interval, 10, "ppi"), summary=_shares())))
    assert (hint.replace("'", "&#39;") in html) if hint else "lies above" not in html


def test_labels_that_carry_no_correction_say_why():
    run = _run(missing(HOSTILE[0]), corrected={"prediction_powered": missing(HOSTILE[0])})
    found = corrected_shares(run)["fully_faithful"]

    assert not found.corrected.measured
    assert found.hint == ""
    html = render_page(build_page(run.model_copy(update={"summary": _shares()})))
    assert ", by annotators" in html
    assert HOSTILE[0] not in html


def test_levels_show_both_and_a_run_without_labels_neither():
    run = proven_run()
    of = {m.shown.name: m.truth for level in metric_levels(run) for m in level.metrics}
    # The summary has no share of correct answers: it stands under the metric that it is of.
    assert {name for name, one in of.items() if one} == {"fully_faithful", "correctness"}
    assert not any(m.truth for level in metric_levels(example_run()) for m in level.metrics)


def test_a_metric_without_a_share_of_its_own_is_corrected_under_its_name():
    summary = {"generation": {"answer_relevance": estimate(0.7, 0.5, 0.9, 10)}}
    run = _run(estimate(0.6, 0.5, 0.7, 10), metric="answer_relevance", summary=summary)

    (found,) = corrected_shares(run).values()
    assert found.of == "cases that are good by answer_relevance"
    (metric,) = next(level for level in metric_levels(run) if level.metrics).metrics
    assert metric.truth == found
