"""Fixes are counted in failed cases of their owner, and one number stands for one fix."""

from example_run import example_run
from misslink.report.cases import build_case_entries
from misslink.report.findings import find
from misslink.report.fixes import count_fixes
from misslink.report.page import build_page
from misslink.report.summary import first_step, next_steps
from misslink.types import (
    Case,
    FailureEvidence,
    Link,
    Passage,
    RetrievalMiss,
    Run,
    Trace,
)

BELOW = RetrievalMiss(passage_id="b", true_rank=7, miss_type="below_cutoff")
FAR = RetrievalMiss(passage_id="f", true_rank=30, miss_type="ranked_low")
GONE = RetrievalMiss(passage_id="g", status="not_indexed")
WORDS = RetrievalMiss(passage_id="w", true_rank=80, bm25_rank=2, miss_type="keyword_match")


def run_of(*cases):
    """A run at k = 5 with a case for each (failure, missed passages)."""
    links = tuple(
        Link(case_id=f"c{n}", retrieval="miss" if missed else "hit", answer="faithful",
             failure=failure, missed=missed, reason="-")
        for n, (failure, missed) in enumerate(cases)
    )  # fmt: skip
    asked = tuple(Case(id=link.case_id, question="Which?") for link in links)
    summary = {"k": 5, "diagnosis": {"corpus": 100}}
    return Run(manifest={}, cases=asked, traces=(), verdicts=(), links=links, summary=summary)


MISS = "retrieval_miss"


def test_a_fix_counts_the_failed_cases_that_it_completes():
    run = run_of((MISS, (BELOW,)), (MISS, (BELOW, FAR)), ("passed", (BELOW,)), (MISS, (FAR,)))
    wider, rerank = count_fixes(run)
    assert (wider.label, wider.cases, wider.bound) == ("Retrieve 7 passages, not 5", (1,), False)
    assert (rerank.label, rerank.cases, rerank.bound) == ("Rerank the first 50", (1, 2, 4), True)


def test_a_larger_k_is_compared_with_what_the_app_retrieved():
    """Where no prompt was seen, the cutoff is a default of 5, and the app may retrieve fewer."""
    run = run_of((MISS, (BELOW,)))
    trace = Trace(case_id="c0", retrieved=(Passage(id="a", rank=1), Passage(id="c", rank=2)))
    fix, _ = count_fixes(run.model_copy(update={"traces": (trace,)}))
    assert fix.label == "Retrieve 7 passages, not 2"


def test_an_owner_without_failures_has_no_fix():
    assert count_fixes(run_of(("fabricated", (BELOW, GONE)), ("passed", (WORDS,)))) == ()


def test_measured_fixes_come_before_bounds():
    run = run_of(*[(MISS, (FAR,))] * 9, (MISS, (WORDS,)))
    assert [(fix.fix.name, len(fix.cases)) for fix in count_fixes(run)] == [
        ("hybrid_search", 1), ("rerank", 9),
    ]  # fmt: skip
    assert first_step(run).document() == {
        "fix": "hybrid_search", "action": "Add keyword search.", "owner": "retriever",
        "cases": 1, "basis": "measured_rank",
    }  # fmt: skip


def test_the_first_step_is_for_the_owner_with_most_failures():
    run = run_of((MISS, (BELOW,)), *[("over_refused", ())] * 3)
    step = first_step(run)
    assert (step.fix, step.owner, step.cases, step.basis) == (
        "over_refused", "generator", 3, "at_most",
    )  # fmt: skip
    assert first_step(run_of(("passed", ()))) is None


def test_what_a_replay_confirms_overrules_the_owner_that_the_run_names():
    """Of four misses the generator fails three with the relevant passages, too."""
    run = run_of(*[(MISS, (BELOW,))] * 4, ("fabricated", ()))
    cases = [
        {"case_id": f"c{n}", "failure": MISS, "confirmed": True, "owner": owner}
        for n, owner in enumerate(["generator"] * 3 + ["retriever"])
    ]
    replayed = run.model_copy(
        update={"replay": {"cases": cases, "owners": {"generator": 3, "retriever": 1}}}
    )
    assert {fix.cases for fix in count_fixes(replayed)} == {(4,)}
    assert first_step(run).fix == "larger_k"
    step = first_step(replayed)
    assert (step.fix, step.owner, step.cases, step.basis) == (
        "confirmed_owner", "generator", 3, "replay",
    )  # fmt: skip
    assert next_steps(replayed)[0].cases == (1, 2, 3)
    why = find(replayed).why
    assert (why.code, why.owners, why.others) == (
        "replayed_owners", {"generator": 3, "retriever": 1}, 3,
    )  # fmt: skip


def test_one_number_stands_for_one_fix_in_every_view():
    run = run_of(*[(MISS, (BELOW,))] * 4, ("passed", (BELOW,)))
    (counted,) = [fix for fix in count_fixes(run) if fix.fix.name == "larger_k"]
    page = build_page(run)
    assert len(counted.cases) == 4
    assert page.first.fixes[0] == counted
    assert len(next_steps(run)[0].cases) == first_step(run).cases == 4
    entry = build_case_entries(run, 5)[0]
    assert (entry.fix.label, entry.fix.cases) == ("Retrieve 7 passages, not 5", 4)
    assert next_steps(run)[0].reach == ("Measured: it reaches 4 failed cases.")


def test_passages_that_the_prompt_cuts_are_to_be_shown_whole():
    dropped = RetrievalMiss(passage_id="d", status="dropped_from_prompt")
    run = run_of(*[("dropped_from_prompt", (dropped,))] * 3)
    assert [fix.label for fix in count_fixes(run)] == ["Keep retrieved passages in the prompt"]
    cut = FailureEvidence(failure="dropped_from_prompt", reason_code="passage_cut")
    links = tuple(link.model_copy(update={"evidence": (cut,)}) for link in run.links)
    (fix,) = count_fixes(run.model_copy(update={"links": links}))
    assert (fix.label, fix.cases) == ("Show retrieved passages whole", (1, 2, 3))


def test_without_a_judge_every_case_that_missed_a_passage_counts():
    run = run_of((None, (BELOW,)), (None, (BELOW,)))
    assert count_fixes(run)[0].cases == (1, 2)


def test_the_example_run_counts_within_its_cases():
    numbers = range(1, len(example_run().cases) + 1)
    assert all(set(fix.cases) <= set(numbers) for fix in count_fixes(example_run()))
