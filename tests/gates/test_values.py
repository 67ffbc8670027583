"""Every number of a run by its name: the same as the summary has it, of a part as of the whole."""

from pathlib import Path

import pytest

from misslink import evaluate
from misslink.comparison.run_metrics import (
    known_metric_names,
    link_summary,
    metric_value,
    select_cases,
)
from misslink.errors import InputError
from misslink.registry import judged_metrics
from misslink.types import Estimate, Run
from small_runs import small_run

HARBOUR = Path(__file__).parents[2] / "examples" / "harbour"


@pytest.fixture(scope="module")
def harbour():
    return evaluate(
        f"{HARBOUR / 'app.py'}:chain", HARBOUR / "goldset.jsonl", judge="heuristic", k=2, cache=None
    )


@pytest.fixture(scope="module")
def level_1():
    return evaluate(
        f"{HARBOUR / 'app.py'}:chain", HARBOUR / "goldset.jsonl", judge="none", k=3, cache=None
    )


def estimates(document, of=""):
    """Every estimate of a document, by its path."""
    for key, value in document.items():
        if isinstance(value, dict) and value.keys() >= {"value", "low", "high", "n"}:
            yield f"{of}{key}", value
        elif isinstance(value, dict):
            yield from estimates(value, f"{of}{key}.")


@pytest.mark.slow
@pytest.mark.parametrize("which", ["harbour", "level_1"])
def test_every_estimate_of_the_summary_comes_back_exactly(which, request):
    run = request.getfixturevalue(which)
    assert link_summary(run) == {name: run.summary[name] for name in ("link", "link_correctness")}
    computed = run.model_copy(update={"summary": {k: v for k, v in run.summary.items() if "link" not in k}})  # fmt: skip
    read = link_summary(run)
    read["link"]["reliability"] = (
        None  # of the rules that named the owners, and so not computed again
    )
    assert link_summary(computed) == read
    found = list(estimates(run.summary))
    assert len(found) > 40
    for path, expected in found:
        assert metric_value(run, path).estimate.model_dump() == expected, path


@pytest.mark.slow
def test_every_known_name_is_answered_by_the_mean_of_its_cases(harbour):
    names = known_metric_names(harbour)
    assert {"recall@2", "fully_faithful", "link.failures.passed", "coverage.faithfulness"} <= {
        *names
    }
    for name in names:
        value = metric_value(harbour, name)
        known = [one for one in (value.of_case or {}).values() if one is not None]
        if known:
            assert value.estimate.value == pytest.approx(sum(known) / len(known)), name
            assert value.estimate.n == len(known), name
        else:
            assert value.estimate.value is not None or value.estimate.reason, name


@pytest.mark.slow
def test_a_path_into_a_level_is_its_metric(harbour):
    assert metric_value(harbour, " generation.fully_faithful ").name == "fully_faithful"
    assert metric_value(harbour, "retrieval.recall@7").name == "recall@7"


def test_a_rank_metric_needs_not_be_in_the_summary():
    run = small_run([1, 0, 1, 1])
    value = metric_value(run, "hit@3")
    assert value.estimate.value == 0.75
    assert value.of_case == {"c1": 1.0, "c2": 0.0, "c3": 1.0, "c4": 1.0}


def test_a_case_that_needs_nothing_has_no_value():
    value = metric_value(small_run([1, None]), "recall@1")
    assert value.of_case == {"c1": 1.0, "c2": None}
    assert value.estimate.n == 1


def test_the_share_of_a_cause_is_over_the_cases_with_a_link():
    value = metric_value(small_run([1, 0, 0, 1]), "link.failures.retrieval_miss")
    assert (value.estimate.value, value.estimate.n, value.estimate.method) == (0.5, 4, "wilson")
    assert value.lower_is_better
    assert metric_value(small_run([1]), "link.failures.distracted").estimate.value == 0.0
    assert not metric_value(small_run([1]), "link.failures.passed").lower_is_better


def test_coverage_leaves_out_what_was_skipped(harbour):
    """Of 23 verdicts of the harbour's faithfulness 16 are scored and 7 skipped, none failed."""
    counts = harbour.summary["coverage"]["faithfulness"]
    value = metric_value(harbour, "coverage.faithfulness").estimate
    assert (value.value, value.n) == (1.0, counts["scored"])


def test_latency_is_the_median():
    assert metric_value(small_run([1, 1, 0]), "latency").estimate.value == 2.0


def test_without_a_judge_its_metrics_are_missing_and_not_unknown(level_1):
    for name in judged_metrics.names():
        assert metric_value(level_1, name).estimate.reason == "no judge was used"
    assert metric_value(level_1, "coverage.faithfulness").estimate.reason == "no judge was used"


def test_a_metric_the_run_was_not_judged_by_says_so():
    found = metric_value(small_run([1], faithful=[1]), "correctness").estimate
    assert found.reason == "this run was not judged by correctness"


def test_a_selection_is_a_run_of_its_own(harbour):
    """As if only these cases had been evaluated: the numbers of a run that holds no others."""
    ids = {case.id for case in harbour.cases if case.category == "reworded"}
    part = select_cases(harbour, ids)
    of_slice = harbour.summary["slices"]["category"]["reworded"]["metrics"]
    for name in ("recall@2", "fully_faithful", "correctness"):
        assert metric_value(part, name).estimate.model_dump() == of_slice[name]
    assert metric_value(part, "link.table.none.bad").estimate.value is not None


def test_a_selection_does_not_pass_off_the_whole_runs_numbers(harbour):
    part = select_cases(harbour, {harbour.cases[0].id})
    for name in ("usage.calls", "slices.category.simple.metrics.recall@2"):
        assert metric_value(part, name).estimate.value is None
        assert "for the whole run only" in metric_value(part, name).estimate.reason


def test_a_stratum_that_no_selected_case_is_of_is_missing_not_unknown(harbour):
    name = "link.adjusted.strata.comparative.risk_given_all"
    assert metric_value(harbour, name).estimate.value is not None
    part = select_cases(harbour, {case.id for case in harbour.cases if case.category == "odd"})
    assert metric_value(part, name).estimate.reason == "the selected cases have no such number"


def test_all_cases_selected_are_the_run(harbour):
    assert select_cases(harbour, {case.id for case in harbour.cases}) is harbour


def test_nothing_selected_has_no_numbers(harbour):
    part = select_cases(harbour, {"nobody"})
    names = (
        "recall@2 fully_faithful link.risk_ratio link.failures.passed coverage.faithfulness latency"
    )
    for name in names.split():
        assert metric_value(part, name).estimate.value is None
        assert metric_value(part, name).estimate.reason


def test_what_later_commands_add_is_missing_until_they_ran(harbour):
    assert "misslink replay" in metric_value(harbour, "replay.flaky").estimate.reason
    replayed = harbour.model_copy(update={"replay": {"flaky": 0.25}})
    assert metric_value(replayed, "replay.flaky").estimate.value == 0.25


def test_an_option_of_whatif_is_found_by_its_name():
    gain = {"value": 0.1, "low": 0.0, "high": 0.2, "n": 9, "method": "bootstrap", "reason": None}
    options = [{"name": "k=2.5", "gain": {"value": 1.0}}, {"name": "hybrid", "gain": gain}]
    run = small_run([1]).model_copy(update={"whatif": {"options": options}})
    assert metric_value(run, "whatif.options.hybrid.gain").estimate.value == 0.1
    assert metric_value(run, "whatif.options.k=2.5.gain.value").estimate.value == 1.0


def test_trust_is_what_the_run_was_calibrated_with():
    rate = {"value": 0.9, "low": 0.8, "high": 0.95, "n": 60, "method": "wilson", "reason": None}
    calibration = {
        "metric": "faithfulness",
        "threshold": 0.5,
        "sensitivity": rate,
        "specificity": rate,
        "uncertain_band": None,
    }
    run = small_run([1], calibration=calibration)
    assert metric_value(run, "trust.sensitivity").estimate == Estimate.model_validate(rate)
    assert metric_value(run, "trust.kappa").estimate.value is None
    assert "--calibration" in metric_value(small_run([1]), "trust.kappa").estimate.reason


def test_trust_is_also_what_calibrate_wrote_beside_the_run():
    kappa = {"value": 0.6, "low": 0.4, "high": 0.8, "n": 60, "method": "bootstrap", "reason": None}
    document = {"agreement": {"kappa": kappa}}
    run = small_run([1]).model_copy(update={"calibration": document})
    assert metric_value(run, "trust.kappa").estimate == Estimate.model_validate(kappa)
    assert metric_value(run, "trust.auroc").estimate.reason == "the run's calibration has no auroc"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("recal@5", "did you mean 'recall@5'"),
        ("recall", "needs a cutoff"),
        ("fully_faithfull", "did you mean 'fully_faithful'"),
        ("link.atributable_fraction", "did you mean 'link.attributable_fraction'"),
        ("coverage.faithfulnes", "did you mean 'coverage.faithfulness'"),
        ("passed", "did you mean 'link.failures.passed'"),  # as `compare` prints it
        ("retriever", "did you mean 'link.owners.retriever'"),
        ("usage", "no metric of a run is called 'usage'"),
        ("", "no metric of a run is called ''"),
        ("link.failures.hallucination", "no metric of a run is called"),
    ],
)
def test_a_misspelt_name_is_refused_with_the_nearest(harbour, name, told):
    with pytest.raises(InputError, match=told):
        metric_value(harbour, name)


def test_verdicts_of_a_plugin_that_is_not_installed_are_read():
    run = small_run([1, 1], faithful=[1, 0])
    charm = [one.model_copy(update={"metric": "charm"}) for one in run.verdicts]
    summary = {**run.summary, "lower_is_better": ["charm"]}
    run = Run(**{**dict(run), "verdicts": tuple(charm), "summary": summary})
    value = metric_value(run, "charm")
    assert value.estimate.value == 0.5
    assert value.lower_is_better
