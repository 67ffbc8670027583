"""How many answers fail, and whether missing passages explain it."""

from __future__ import annotations

import html

import pytest

from misslink.linking.findings import count_errors, count_owners, find, first_step, rank_fixes
from misslink.render.format import CLUSTERED_SHARE
from misslink.render.headline import (
    describe_errors,
    describe_evidence,
    describe_findings,
    describe_verdict,
)
from misslink.stats import proportion
from misslink.types import (
    Case,
    Claim,
    ClaimLink,
    Estimate,
    Link,
    Need,
    RetrievalMiss,
    Run,
    Trace,
    Verdict,
)

LEVELS = ("miss", "partial", "hit")


def run_of(*groups, judge="heuristic", inconclusive=0, **parts):
    """A run with (failed, cases) after misses, partial hits and hits."""
    links = [
        Link(
            case_id=f"{level}{number}",
            retrieval=level,
            answer="unfaithful" if number < failed else "faithful",
            failure=None if judge == "none" else "fabricated" if number < failed else "passed",
            reason="-",
        )
        for level, (failed, cases) in zip(LEVELS, groups, strict=False)
        for number in range(cases)
    ]
    links += [
        Link(
            case_id=f"i{number}",
            retrieval="hit",
            answer="unknown",
            failure="inconclusive",
            reason="-",
        )
        for number in range(inconclusive)
    ]
    cases = tuple(Case(id=link.case_id, question="?") for link in links)
    given = {"manifest": {"judge": judge}, "traces": (), "verdicts": (), "summary": {}, **parts}
    return Run(cases=cases, links=tuple(links), **given)


@pytest.mark.parametrize(
    ("groups", "code"),
    [
        (((95, 100), (40, 60), (15, 40)), "missing_passages"),
        (((19, 20), (19, 20), (58, 60)), "generator"),
        (((6, 10), (6, 10), (9, 20)), "too_few"),
        (((0, 5), (0, 0), (9, 40)), "generator"),
        (((0, 0), (0, 0), (9, 40)), "too_few"),
        (((0, 20), (0, 20), (0, 20)), None),
        (((9, 10), (0, 5), (1, 4)), None),
        (((5, 20), (10, 20), (18, 20)), "generator"),
        (((3, 3), (0, 0), (60, 120)), "few_associated"),
    ],
)
def test_the_exposure_trend_is_an_association_beside_the_owners(groups, code):
    findings = find(run_of(*groups))
    found = findings.by_exposure
    assert (found and found.code) == code
    if findings.why:  # every failure of these runs is the generator's own, whatever it missed
        assert findings.why.parameters["owner"] == "generator"


def test_the_owner_with_most_failures_leads_whatever_was_missed():
    run = run_of((30, 30), (0, 0), (5, 30))
    misses = [
        link.model_copy(update={"failure": "retrieval_miss", "sufficient": "no"})
        for link in run.links[:7]
    ]
    others = [
        link.model_copy(update={"failure": "dropped_from_prompt"}) for link in run.links[7:12]
    ]
    links = (*misses, *others, *run.links[12:])
    findings = find(run.model_copy(update={"links": links}))
    assert findings.why.parameters["owner"] == "generator"
    assert count_owners(run.model_copy(update={"links": links})) == {
        "generator": 23, "retriever": 7, "prompt": 5,
    }  # fmt: skip
    assert "Most failures, 23, are the generator's." in describe_verdict(findings)
    only = run.model_copy(update={"links": (*misses, *run.links[35:])})
    text = describe_verdict(find(only))
    assert "Nothing that the answer needs reached 7 of 7 prompts." in text


def test_what_the_heuristic_judge_confuses_leads_nothing():
    run = run_of((0, 0), (0, 0), (30, 40))
    weak = [link.model_copy(update={"failure": "gold_suspect"}) for link in run.links[:20]]
    run = run.model_copy(update={"links": (*weak, *run.links[20:])})
    assert [*count_owners(run)] == ["generator", "gold_set"]
    certain = run.model_copy(update={"manifest": {"judge": "openai:m"}})
    assert [*count_owners(certain)] == ["gold_set", "generator"]


def test_every_level_of_exposure_has_its_share_of_failures():
    findings = find(run_of((95, 100), (40, 60), (15, 40), inconclusive=7))
    assert {level: (share.value, share.n) for level, share in findings.exposure.items()} == {
        "none": (0.95, 100),
        "some": (pytest.approx(2 / 3), 60),
        "all": (0.375, 40),
    }
    assert (findings.failed.value, findings.failed.n) == (0.75, 200)
    assert (findings.lacking, findings.labelled, findings.incomplete) == (135, 207, 160)


def test_causes_that_are_not_known_are_no_owner():
    links = run_of((15, 30)).links
    unknown = {"retrieval": "unlabelled", "failure": "inconclusive", "unexplained": True}
    found = [link.model_copy(update=unknown) if link.failed else link for link in links]
    run = run_of((15, 30)).model_copy(update={"links": tuple(found)})
    assert find(run).why.code == "owner_unknown"
    assert first_step(run) is None


@pytest.mark.parametrize(
    ("value", "low", "high", "sentence"),
    [
        (0.34, 0.2, 0.5, "Replay: missing passages cause 34% of the failures."),
        (0.1, -0.2, 0.4, "Replay: not enough data to tell"),
        (-0.3, -0.5, -0.1, "In a replay, injecting the missed passages fixed fewer answers"),
    ],
)
def test_after_a_replay_the_causal_fraction_follows_the_owner(value, low, high, sentence):
    fraction = Estimate(value=value, low=low, high=high, n=40, method="m").model_dump()
    run = run_of((30, 40), (0, 0), (5, 20), replay={"causal_fraction": fraction})
    assert sentence in describe_verdict(find(run))
    assert find(run).by_exposure.code == "missing_passages"  # which the chart still says


def test_claims_of_failures_without_all_passages_are_counted_once():
    claims = [Claim(text=t, support=s) for t, s in zip("abc", ("unsupported", "supported", "contradicted"), strict=True)]  # fmt: skip
    verdict = Verdict(case_id="miss0", metric="faithfulness", status="scored", value=0.3, judge="j", claims=claims)  # fmt: skip
    other = verdict.model_copy(update={"case_id": "hit0"})
    run = run_of((1, 1), (0, 0), (1, 1), verdicts=(verdict, other))
    ties = tuple(ClaimLink(index=0, passage_id=p, relation="would_support") for p in ("p", "q"))
    links = (run.links[0].model_copy(update={"claims": ties}), *run.links[1:])
    findings = find(run.model_copy(update={"links": links}))
    assert (findings.unsupported_claims, findings.supported_by_missed) == (2, 1)
    denied = ClaimLink(index=2, passage_id="p", relation="would_contradict")
    links = (links[0].model_copy(update={"claims": (*ties, denied)}), *links[1:])
    findings = find(run.model_copy(update={"links": links}))
    assert (findings.supported_by_missed, findings.contradicted_by_missed) == (1, 1)
    assert "supported 1 and corrected 1 of its 2 unsupported claims" in describe_evidence(findings)
    wrong = ClaimLink(index=1, passage_id="p", relation="would_support")  # its claim is supported
    unknown = RetrievalMiss(passage_id="p")
    for missed, compared, sentence in (
        ((unknown.model_copy(update={"text": "text"}),), 2, "supported 0 of its 2 unsupported"),
        ((unknown,), 0, "The text of the missed passages is not known"),
    ):
        first = run.links[0].model_copy(update={"claims": (wrong,), "missed": missed})
        findings = find(run.model_copy(update={"links": (first, *run.links[1:])}))
        assert (findings.unsupported_claims, findings.supported_by_missed) == (2, 0)
        assert findings.compared_claims == compared
        assert sentence in describe_evidence(findings)


def test_errors_come_first_above_two_percent():
    def run(failing):
        traces = [
            Trace(case_id=f"hit{n}", **({"error": "boom"} if n < failing else {"answer": "x"}))
            for n in range(100)
        ]
        return run_of((0, 0), (0, 0), (50, 100), traces=tuple(traces))

    assert describe_errors(find(run(2))) == ""
    assert describe_findings(find(run(3)))[0] == "Errors: the app failed on 3 of 100 cases."
    silent = run(3).model_copy(update={"traces": (*run(3).traces, *[Trace(case_id="s")] * 2)})
    assert describe_errors(find(silent)) == (
        "Errors on 5 of 100 cases: the app failed, the app gave no answer."
    )


def test_a_case_that_app_and_judge_failed_on_is_one_error():
    failed = Verdict(case_id="a", metric="faithfulness", status="failed", reason="r", judge="j")
    traces = [Trace(case_id="a", error="boom"), Trace(case_id="b"), Trace(case_id="c", answer="x")]
    assert count_errors(traces, [failed]) == {"app": 1, "judge": 0, "no_answer": 1}


def test_without_a_judge_nothing_is_stated_about_answers():
    text = run_of((0, 20), (0, 5), (0, 25), judge="none").headline
    assert text == (
        "In 25 of 50 questions, a relevant passage never reached the prompt. No judge was used."
    )


def test_the_sentences_are_those_of_every_output():
    run = run_of((95, 100), (40, 60), (15, 40), inconclusive=1)
    assert run.headline == (
        "150 of 200 judged answers fail. All failures are the generator's. They fail more often when "
        "the prompt lacks a relevant passage. 135 of them lacked a relevant passage."
    )
    assert run.headline in html.unescape(run._repr_html_())


def test_intervals_respect_clusters():
    alone = run_of((5, 10), (0, 0), (5, 10))
    cases = tuple(
        case.model_copy(update={"group": f"g{n % 4}"}) for n, case in enumerate(alone.cases)
    )
    apart, together = find(alone), find(alone.model_copy(update={"cases": cases}))
    assert apart.failed.method == apart.exposure["none"].method == "wilson"
    assert together.failed.method == together.exposure["none"].method == CLUSTERED_SHARE
    assert together.failed.value == together.exposure["all"].value == 0.5


def test_failed_answers_of_unknown_cause_count_as_failures():
    run = run_of((15, 30))
    unknown = {"retrieval": "unlabelled", "failure": "inconclusive", "unexplained": True}
    passed = {"retrieval": "unlabelled"}
    links = tuple(
        link.model_copy(update=passed if link.failure == "passed" else unknown)
        for link in run.links
    )
    findings = find(run.model_copy(update={"links": links}))
    assert (findings.failed.n, findings.failed.value) == (30, 0.5)
    assert findings.why.parameters["failures"] == 15


def links(count, retrieval, failed, *missed):
    """So many cases, of which the first `failed` failed."""
    return [
        Link(
            case_id="", retrieval=retrieval, answer="faithful", reason="planted", missed=missed,
            failure="retrieval_miss" if number < failed else "passed",
        )
        for number in range(count)
    ]  # fmt: skip


def run_missing(*groups, corpus=100, **parts):
    rows = [link for group in groups for link in group]
    rows = [row.model_copy(update={"case_id": f"c{n}"}) for n, row in enumerate(rows)]
    cases = tuple(Case(id=row.case_id, question="Which?") for row in rows)
    summary = {"k": 5, "diagnosis": {"corpus": corpus}}
    given = {"manifest": {}, "traces": (), "verdicts": (), "summary": summary}
    return Run(**given, cases=cases, links=tuple(rows), **parts)


WORDS = RetrievalMiss(passage_id="w", true_rank=80, bm25_rank=2, miss_type="keyword_match")
BELOW = RetrievalMiss(passage_id="b", true_rank=7, miss_type="below_cutoff")
FAR = RetrievalMiss(passage_id="f", true_rank=30, miss_type="ranked_low")


def test_fixes_count_the_failed_cases_that_get_all_they_lost():
    run = run_missing(
        links(20, "miss", 18, BELOW), links(10, "miss", 9, WORDS), links(4, "miss", 4, BELOW, WORDS),
        links(100, "hit", 0),
    )  # fmt: skip
    larger, hybrid, rerank = rank_fixes(run)
    assert (larger.name, larger.retrieves, larger.missed, larger.k) == ("larger_k", 18, 31, 7)
    assert (larger.basis, larger.owner) == ("measured_rank", "retriever")
    assert larger.avoided.reason_code.code == "longer_context_unchecked"
    assert (hybrid.name, hybrid.retrieves, hybrid.basis) == ("hybrid_search", 9, "measured_rank")
    assert hybrid.cases == tuple(f"c{n}" for n in range(20, 29))
    assert (rerank.retrieves, rerank.basis) == (18, "at_most")
    step = first_step(run)
    assert (step.fix, step.owner, len(step.cases), step.k) == ("larger_k", "retriever", 18, 7)


def test_only_the_passages_of_lost_needs_count():
    need = Need(text="t", source="reference", lost_at="rank", passage_id="b", by="judge")
    told = need.model_copy(update={"lost_at": "answer", "passage_id": "w"})
    gone = need.model_copy(update={"passage_id": None, "lost_at": "unknown"})
    row = links(1, "miss", 1, BELOW, WORDS)[0]
    for needs, names in (
        ((need, told), ["larger_k", "rerank"]),
        ((need, gone), []),
        ((told,), []),
    ):
        run = run_missing([row.model_copy(update={"needs": needs})])
        assert [fix.name for fix in rank_fixes(run)] == names


def test_nothing_ranked_helps_against_a_filter():
    hidden = WORDS.model_copy(
        update={"miss_type": "filtered_out", "true_rank": None, "also": ("keyword_match",)}
    )
    (fix,) = rank_fixes(run_missing(links(5, "miss", 5, hidden)))
    assert (fix.name, fix.basis, fix.retrieves) == ("check_filter", "measured_rank", 5)


def test_what_is_measured_goes_before_a_larger_upper_bound():
    run = run_missing(links(3, "miss", 3, WORDS), links(9, "miss", 9, FAR))
    assert [(fix.name, fix.retrieves) for fix in rank_fixes(run)] == [
        ("hybrid_search", 3),
        ("rerank", 9),
    ]


def test_a_rank_by_words_among_the_passages_of_traces_is_a_bound():
    run = run_missing(links(20, "miss", 18, WORDS), links(100, "hit", 10), corpus=None)
    fixes = {fix.name: (fix.basis, fix.avoided.value) for fix in rank_fixes(run)}
    assert fixes == {"hybrid_search": ("at_most", None)}


def test_the_first_step_is_for_the_owner_of_most_failures():
    rows = [*links(4, "miss", 4, BELOW), *links(9, "hit", 9)]
    rows[4:] = [row.model_copy(update={"failure": "over_refused"}) for row in rows[4:]]
    step = first_step(run_missing(rows))
    assert (step.fix, step.owner, len(step.cases)) == ("over_refused", "generator", 9)
    assert [fix.retrieves for fix in rank_fixes(run_missing(rows))] == [4, 4]


def test_without_verdicts_all_that_was_missed_counts():
    rows = [row.model_copy(update={"failure": None}) for row in links(5, "miss", 0, WORDS)]
    fixes = rank_fixes(run_missing(rows))
    assert [(fix.name, fix.retrieves) for fix in fixes] == [("hybrid_search", 5)]
    assert all(fix.avoided.value is None for fix in fixes)


@pytest.mark.parametrize(
    ("low", "high", "winner", "code"),
    [
        (2, 9, "option", "fix_gains"),
        (-1, 9, "option", "not_enough_data"),
        (2, 9, None, "not_enough_data"),
        (-9, -2, "option", None),
        (2, 9, "today", None),
    ],
)
def test_what_was_tried_decides(low, high, winner, code):
    avoided = Estimate(value=(low + high) / 2, low=low, high=high, n=50, method="rerun")
    option = {
        "name": "k=10", "newly_retrieved": 12, "failures_avoided": avoided.model_dump(),
        "metrics": {"recall@5": {"b": proportion(4, 5).model_dump(), "winner": winner}},
    }  # fmt: skip
    run = run_missing(
        links(20, "miss", 18, BELOW), links(50, "hit", 5), whatif={"options": [option]}
    )
    larger = next((fix for fix in rank_fixes(run) if fix.name == "larger_k"), None)
    assert (larger and larger.evidence.code) == code
    if larger:
        assert (larger.retrieves, larger.basis, larger.option) == (12, "whatif", "k=10")
