"""A label wins on its case, and all of them correct the count of failures."""

import pytest

from misslink.calibration.labelled_failures import (
    apply_labels,
    correct_failed,
    count_judged_too,
    find_labelled_failures,
    judged_run,
)
from misslink.calibration.verdicts import hash_verdicts
from misslink.io.run_folder import write_json
from misslink.pipeline.promote import promote
from misslink.render.headline import describe_verdict
from misslink.report.findings import find
from misslink.report.json_document import case_records
from misslink.report.page import build_page
from misslink.stats import proportion
from misslink.types import Case, Link, Run, Trace, Verdict
from small_runs import write_run

UNFAITHFUL = {"answer": "unfaithful", "failure": "fabricated"}
WRONG = {"answer": "faithful", "correct": False, "failure": "contradicts_context"}
PASSED = {"answer": "faithful", "correct": True, "failure": "passed"}
UNSURE = {"answer": "unknown", "correct": True, "failure": "inconclusive"}
INCOMPLETE = {"answer": "faithful", "correct": True, "complete": False, "failure": "incomplete"}
OVER_REFUSED = {"answer": "declined", "failure": "over_refused"}
SHOULD_DECLINE = {"answer": "faithful", "failure": "should_have_abstained"}
SUSPECT = {"answer": "faithful", "correct": False, "complete": False, "failure": "gold_suspect"}


def run_of(links, *, own=True, **labels):
    """A run with these links, and the mean labels of annotators by metric and case number."""
    cases = tuple(Case(id=f"c{n}", question=f"What of {n}?") for n in range(len(links)))
    made = tuple(
        Link(case_id=case.id, retrieval="hit", reason="-", **link)
        for case, link in zip(cases, links, strict=True)
    )
    verdicts = tuple(
        Verdict(case_id=case.id, metric=metric, status="scored", value=1.0, label=True, judge="j")
        for case in cases
        for metric in ("faithfulness", "correctness", "completeness", "abstention")
    )
    traces = tuple(Trace(case_id=case.id, answer="Yes.", retrieved=()) for case in cases)
    run = Run(manifest={}, cases=cases, traces=traces, verdicts=verdicts, links=made, summary={})
    documents = {
        metric: {
            "metric": metric,
            "labelled": {f"c{n}": share for n, share in shares.items()},
            "verdicts_sha256": hash_verdicts(run, metric) if own else "ab" * 32,
        }
        for metric, shares in labels.items()
    }
    if not documents:
        return run
    first, *others = documents
    stored = documents[first] | {"others": {name: documents[name] for name in others}}
    return run.model_copy(update={"calibration": stored})


@pytest.mark.parametrize(
    ("link", "labels", "failed"),
    [
        (UNFAITHFUL, {"faithfulness": 1.0}, False),
        (UNFAITHFUL, {"faithfulness": 0.0}, True),
        (UNFAITHFUL, {"faithfulness": 0.5}, None),  # a tie decides nothing
        (UNFAITHFUL | {"correct": False}, {"faithfulness": 1.0}, True),
        (UNFAITHFUL | {"correct": False}, {"faithfulness": 1.0, "correctness": 1.0}, False),
        (WRONG, {"correctness": 2 / 3}, False),
        (WRONG, {"faithfulness": 1.0}, True),
        (PASSED, {"correctness": 0.0}, True),
        (PASSED, {"faithfulness": 1.0}, False),
        (UNSURE, {"faithfulness": 1.0}, False),
        (UNSURE, {"faithfulness": 0.0}, True),
        (INCOMPLETE, {"correctness": 1.0}, True),
        (INCOMPLETE, {"correctness": 1.0, "completeness": 1.0}, False),
        (SUSPECT, {"faithfulness": 1.0}, True),
        (SUSPECT, {"correctness": 1.0}, False),
        (SUSPECT, {"correctness": 0.0}, True),
        (OVER_REFUSED, {"correctness": 1.0}, False),
        (OVER_REFUSED, {"abstention": 1.0}, False),
        (OVER_REFUSED, {"faithfulness": 1.0}, True),
        (SHOULD_DECLINE, {"faithfulness": 1.0}, True),
        (SHOULD_DECLINE, {"abstention": 1.0}, False),
        (PASSED, {"abstention": 0.0}, True),
    ],
)
def test_a_label_wins_on_its_case(link, labels, failed):
    run = run_of([link, PASSED], **{metric: {0: share} for metric, share in labels.items()})
    assert find_labelled_failures(run) == ({} if failed is None else {"c0": failed})
    shown = apply_labels(run).links[0]
    assert shown.failed == (run.links[0].failed if failed is None else failed)
    assert apply_labels(run).links[1] == run.links[1]


def test_a_false_alarm_is_the_judges_by_a_label_or_by_a_second_judge():
    by_label = apply_labels(run_of([UNFAITHFUL], faithfulness={0: 1.0})).links[0]
    assert (by_label.failure, by_label.owner, by_label.failed) == ("false_alarm", "judge", False)
    run = run_of([UNFAITHFUL, UNFAITHFUL])
    cases = [{"case_id": "c0", "cause": "judge"}, {"case_id": "c1", "cause": None}]
    replayed = run.model_copy(update={"replay": {"cases": cases}})
    assert [link.owner for link in apply_labels(replayed).links] == ["judge", run.links[1].owner]
    assert replayed.links == run.links  # only the views of the run have it
    labelled = run_of([UNFAITHFUL], faithfulness={0: 0.0}).model_copy(
        update={"replay": {"cases": cases}}
    )
    assert apply_labels(labelled).links[0].failed  # people outrank a judge


def test_an_answer_called_good_against_a_suspected_reference_passed():
    needs = {"needs": ({"text": "a", "source": "reference", "lost_at": "data"},)}
    link = apply_labels(run_of([SUSPECT | needs], correctness={0: 1.0})).links[0]
    assert (link.failure, link.owner, link.notes) == ("passed", "none", ("gold_suspect",))
    assert link.needs[0].lost_at is None  # no view counts a fact of it as lost


def test_labels_are_applied_once_and_can_be_taken_off():
    run = run_of([UNFAITHFUL] * 3 + [PASSED] * 3, faithfulness={0: 1.0, 3: 0.0})
    shown = apply_labels(run)
    assert [link.failed for link in shown.links] == [False, True, True, True, False, False]
    assert apply_labels(shown).links == shown.links
    assert judged_run(shown).links == run.links
    assert find_labelled_failures(shown) == find_labelled_failures(run)
    assert (shown.headline, correct_failed(shown)) == (run.headline, correct_failed(run))
    assert shown.metrics["link.owners.generator"] == run.metrics["link.owners.generator"]


def test_every_reader_of_cases_has_the_labels(tmp_path):
    run = run_of([SUSPECT, UNFAITHFUL, PASSED], correctness={0: 1.0}, faithfulness={1: 1.0, 2: 0.0})
    folder = write_run(tmp_path / "run", run)
    write_json(folder / "calibration.json", run.calibration)
    read = Run.read(folder)
    owners = [link.owner for link in read.links]
    assert owners == ["none", "judge", "unknown"]
    assert list(read.to_pandas()["owner"]) == owners
    assert [record["owner"] for record in case_records(run)] == owners
    assert [row["id"] for row in promote(read)] == ["c2"]


def test_labels_of_another_run_decide_no_case_here():
    run = run_of([UNFAITHFUL], own=False, faithfulness={0: 1.0})
    assert find_labelled_failures(run) == {}
    assert apply_labels(run) == run
    assert correct_failed(run).reason_code.code == "not_calibrated"


def test_the_count_is_corrected_by_labels_of_some():
    """The judge calls 30 of 60 bad; annotators, asked about every second, call a third of those bad."""
    links = [UNFAITHFUL] * 30 + [PASSED] * 30
    labels = {n: float(n >= 30 or n % 6 != 0) for n in range(0, 60, 2)}
    run = run_of(links, faithfulness=labels)
    corrected = correct_failed(run)
    assert corrected.value == pytest.approx(1 / 6, abs=0.02)
    assert corrected.low < 1 / 6 < corrected.high < 0.5
    page = build_page(run)
    assert page.verdict.startswith("About 10 of 60 answers fail (between ")
    assert "corrected by 30 labels. In all 20 found" in page.verdict
    assert page.verdict.endswith("Read first: c1, c3, c5 and 12 more.")
    assert "30 of 60" not in page.verdict
    assert {group.label: group.cases for group in page.first.owners} == {
        "generator": 20, "judge": 10, "passed": 30,
    }  # fmt: skip


def test_where_all_cases_are_labelled_annotators_alone_count():
    labels = {n: float(n != 0) for n in range(6)}
    links = [UNFAITHFUL] * 3 + [PASSED] * 3
    run = run_of(links, faithfulness=labels, correctness=dict.fromkeys(range(6), 1.0))
    assert (correct_failed(run).value, correct_failed(run).n) == (1 / 6, 6)
    assert describe_verdict(find(run)).startswith("1 of 6 answers fails, by annotators' labels.")


def test_a_judge_that_decides_beside_the_labels_is_named():
    """Each case is labelled, of three the correctness is the judge's alone, and one is not judged."""
    links = [UNFAITHFUL] * 3 + [PASSED] * 3 + [{"answer": "unknown", "failure": "inconclusive"}]
    run = run_of(links, faithfulness={n: float(n != 0) for n in range(6)})
    assert count_judged_too(run) == 3
    said = (
        "1 of 7 answers fails, by annotators' labels and, where these are missing, by the judge; 1 "
    )
    assert describe_verdict(find(run)).startswith(said)


def test_few_labels_correct_no_count_and_still_win_on_their_cases():
    run = run_of([UNFAITHFUL] * 9 + [PASSED] * 9, faithfulness={0: 1.0, 1: 1.0})
    assert correct_failed(run).value is None
    assert describe_verdict(find(run)).startswith("7 of 18 answers are flagged.")


def test_a_selftest_of_this_judge_says_how_many_really_fail():
    """Flagged are 30 of 60; it finds 80% of the planted faults and flags 20% of what is right."""
    run = run_of([UNFAITHFUL] * 30 + [PASSED] * 30)
    rates = {"found": proportion(160, 200), "false_alarm": proportion(40, 200)}
    document = {name: rate.model_dump() for name, rate in rates.items()} | {"judge": "j"}
    mine = run.model_copy(update={"manifest": {"judge": "j"}, "selftest": document})
    said = describe_verdict(find(mine))
    assert "30 of 60 answers are flagged. About 30 of 60 answers fail (between " in said
    assert "), if real faults are found like planted ones." in said
    assert said.endswith("Read first: c0, c1, c2 and 27 more.")
    other = run.model_copy(update={"manifest": {"judge": "k"}, "selftest": document})
    assert "planted" not in describe_verdict(find(other))
