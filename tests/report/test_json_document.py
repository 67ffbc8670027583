"""A run as JSON."""

import json
import tracemalloc

import pytest

from example_run import HOSTILE, example_run, verdict
from misslink.errors import InputError
from misslink.failure_modes import FAILURE_MODES
from misslink.report.json_document import build_document, write_json
from misslink.types import Run
from proven_run import proven_run

CASE_KEYS = {
    *("number", "id", "question", "category", "tags", "tier"),
    *("retrieval", "answer", "correct", "failure", "failed", "owner", "also", "reason", "basis"),
    *("answer_text", "error", "latency_s", "metrics", "verdicts", "people", "missed", "claims"),
    "retrieved",
}


def refuse(constant):
    raise AssertionError(f"{constant} is no JSON")


@pytest.fixture(scope="module")
def read(tmp_path_factory):
    path = write_json(proven_run(), tmp_path_factory.mktemp("json") / "report.json")
    return json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)


@pytest.fixture(scope="module")
def of_case(read):
    return {case["id"]: case for case in read["cases"]}


def test_its_keys_are_those_that_are_promised(read):
    assert set(read) == {
        *(
            "format",
            "run",
            "manifest",
            "summary",
            "next",
            "fixes",
            "failures",
            "threads",
            "documents",
            "unmeasured",
            "cases",
        ),
        *("headline", "corrected", "corrected_failed", "calibrations", "audit", "selftest"),
    }
    assert read["format"] == 1
    assert read["run"] == "reports/today"
    assert all(set(case) == CASE_KEYS for case in read["cases"])
    assert all(
        {"action", "why", "cases", "fragment", "brief", "fix", "owner", "basis"} == set(step)
        for step in read["next"]
    )


def test_summary_and_manifest_are_as_they_were(read):
    run = proven_run()
    assert read["summary"] == run.summary
    assert read["manifest"] == run.manifest
    assert (read["corrected_failed"]["value"], read["corrected_failed"]["n"]) == (None, 5)


def test_cases_stand_in_the_order_of_the_gold_set(read):
    assert [case["number"] for case in read["cases"]] == list(range(1, 15))
    assert [case["id"] for case in read["cases"]] == [case.id for case in proven_run().cases]


def test_a_case_holds_what_every_level_said(of_case):
    """Worked out by hand from `example_run._miss` and its measured passages."""
    case = of_case["with-exit"]
    assert (case["retrieval"], case["answer"], case["correct"]) == ("miss", "unfaithful", False)
    assert (case["failure"], case["also"]) == ("retrieval_miss", ["fabricated"])
    assert (case["basis"], case["latency_s"]) == ("replayed", 2.34)
    assert case["claims"] == {"supported": 1, "contradicted": 1, "unsupported": 2}
    assert case["metrics"]["recall@5"] == case["metrics"]["mrr"] == 0
    assert case["metrics"]["faithfulness"] == 0.25
    assert case["metrics"]["fully_faithful"] == 0
    assert case["metrics"]["correctness_recall"] == 0.5
    assert case["verdicts"]["faithfulness"] == {
        "status": "scored",
        "value": 0.25,
        "label": False,
        "probability": 0.07,
        "reason": "1 of 4 claims is supported",
    }
    assert [one["passage_id"] for one in case["missed"]] == ["with#1", "with#1", "evidence-2"]
    assert {"grade", "true_rank", "miss_type", "depth", "distance"} <= set(case["missed"][0])


def test_a_hit_at_the_first_rank_has_its_rank_metrics_at_the_runs_k(of_case):
    found = of_case["lambda"]["metrics"]
    ranks = {name: found[name] for name in ("hit@5", "mrr", "recall@5", "precision@5", "ndcg@5")}
    assert ranks == {"hit@5": 1, "mrr": 1, "recall@5": 1, "precision@5": 0.2, "ndcg@5": 1}


def test_what_was_not_measured_is_null_and_says_why(of_case):
    refused = of_case["refused"]
    assert refused["metrics"]["faithfulness"] is None
    assert refused["claims"] is None
    assert refused["verdicts"]["faithfulness"]["status"] == "failed"
    assert refused["verdicts"]["faithfulness"]["reason"] == "the reply was not JSON"
    assert of_case["negative-1"]["metrics"]["recall@5"] is None, "it needs no passage"


def test_every_case_has_every_metric(read):
    (names,) = {tuple(case["metrics"]) for case in read["cases"]}
    assert "correctness" in names
    assert HOSTILE[3] in names, "a judged metric of anybody's"


def test_causes_say_how_many_of_how_many_and_which(read):
    names = [row["failure"] for row in read["failures"]]
    assert names == [name for name in FAILURE_MODES if name in names]
    first = read["failures"][0]
    assert (first["count"], first["cases"]) == (1, [14])  # annotators call case 4 good
    assert first["share"]["n"] == 14
    assert first["share"]["value"] == pytest.approx(1 / 14)
    assert sum(row["count"] for row in read["failures"]) == 14


def test_a_run_of_cases_alone_says_nothing_of_them():
    run = example_run().model_copy(update={"traces": (), "verdicts": (), "links": ()})
    found = build_document(run)
    assert found["failures"] == []
    first = found["cases"][0]
    assert first["failure"] is first["answer_text"] is first["claims"] is None
    assert first["metrics"] == dict.fromkeys(["hit@5", "mrr", "recall@5", "precision@5", "ndcg@5"])


def test_an_empty_run_is_a_document_too():
    empty = Run(manifest={}, cases=(), traces=(), verdicts=(), links=(), summary={})
    found = build_document(empty)
    assert (found["run"], found["cases"], found["failures"]) == (None, [], [])


def test_a_metric_of_a_plugin_that_is_not_here_says_so():
    run = example_run()
    ranks = run.summary["retrieval"] | {"far_rank@5": run.summary["retrieval"]["mrr"]}
    found = build_document(run.model_copy(update={"summary": run.summary | {"retrieval": ranks}}))
    assert "far_rank" in found["unmeasured"]["far_rank@5"]
    assert "far_rank@5" not in found["cases"][0]["metrics"]


def test_of_two_verdicts_of_a_metric_the_first_counts_as_on_the_page():
    run = example_run()
    again = verdict("lambda", "faithfulness", 0.5)
    found = build_document(run.model_copy(update={"verdicts": (*run.verdicts, again)}))
    assert found["cases"][1]["metrics"]["faithfulness"] == 1


def test_a_document_is_written_as_it_is_made(tmp_path):
    run, size = example_run(), 100_000
    case = run.cases[0].model_copy(update={"question": "Why?" * (size // 4)})
    many = tuple(case.model_copy(update={"id": f"c{n}"}) for n in range(50))
    tracemalloc.start()
    try:
        path = write_json(run.model_copy(update={"cases": many}), tmp_path / "r.json")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert path.stat().st_size > 50 * size
    assert peak < 25 * size  # all of it was held four times


def test_half_a_surrogate_pair_is_no_obstacle(tmp_path):
    run = example_run()
    case = run.cases[0].model_copy(update={"question": "What\ud800?"})
    path = write_json(run.model_copy(update={"cases": (case,)}), tmp_path / "r.json")
    assert json.loads(path.read_text(encoding="utf-8"))["cases"][0]["question"] == "What??"


def test_two_cases_of_one_id_are_refused():
    run = example_run()
    with pytest.raises(InputError, match="two cases have the id 'rtl'"):
        build_document(run.model_copy(update={"cases": (*run.cases, run.cases[0])}))


def test_what_people_found_stands_beside_what_the_judge_did(read, of_case):
    run = proven_run()
    faithful, correct = read["corrected"]["fully_faithful"], read["corrected"]["correct"]

    assert faithful["metric"] == "faithfulness"
    stored = run.calibration["corrected"]["prediction_powered"]
    assert faithful["estimate"] == {"reason_code": None, **stored}
    assert (faithful["by"], faithful["labels"], faithful["own"]) == (
        "prediction-powered",
        220,
        True,
    )
    assert faithful["raw"]["value"] == pytest.approx(7 / 11)  # at 0.43; three verdicts failed
    assert (correct["by"], correct["own"]) == ("rogan-gladen", False)
    assert set(read["calibrations"]) == {"faithfulness", "correctness"}
    assert read["audit"] == run.audit
    assert of_case["memory"]["people"] == {
        "faithfulness": {"word": "bad (0.33)", "share": 1 / 3, "stands": "disagree"}
    }
    assert of_case["with-exit"]["people"]["faithfulness"] == {
        "word": None,
        "share": None,
        "stands": "tied",
    }
    assert of_case["negative-2"]["people"] == {}


def test_a_run_that_nobody_labelled_has_nothing_to_correct():
    found = build_document(example_run())
    assert (found["corrected"], found["calibrations"], found["audit"]) == ({}, {}, None)
