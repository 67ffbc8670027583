"""The first screen, and what the report advises."""

import re

import pytest

from example_run import example_run, verdict
from misslink.report.findings import describe_run, find
from misslink.report.links import view_fragment
from misslink.report.page import build_page, render_markdown, render_page
from misslink.report.summary import mode_advice, next_steps, no_steps_reason, read_first_screen
from misslink.types import Case, Link, RetrievalMiss, Run
from proven_run import proven_run, whatif


def html(run):
    return render_page(build_page(run))


def first_screen(run):
    return read_first_screen(run, find(run))


def test_failures_stand_by_owner_before_what_passed():
    owners = first_screen(example_run()).owners
    assert [(one.tint, one.label, one.cases, one.fragment) for one in owners] == [
        ("retriever", "retriever", 2, "owner=retriever"),
        ("generator", "generator", 5, "owner=generator"),
        ("passed", "passed", 5, "state=passed"),
        ("inconclusive", "inconclusive", 2, "state=inconclusive"),
    ]
    bar = re.findall(r'<rect class="part \w+" x="[\d.]+" width="([\d.]+)"', html(example_run()))
    assert round(sum(map(float, bar))) == 1000


def test_few_cases_are_counts_and_no_percentages():
    screen = first_screen(example_run())
    assert [(level, outcome) for level, outcome, _ in screen.exposure] == [
        ("none", "miss"), ("some", "partial"), ("all", "hit"),
    ]  # fmt: skip
    rows = html(example_run()).partition('class="exposure"')[2].partition("</table>")[0]
    assert re.findall(r"strong\">(.*?)</td>", rows) == ["2 of 4", "1 of 1", "3 of 5"]
    assert "95%" not in rows
    assert screen.exposure_title == "Too few answers to tell whether passages help"


def test_only_a_whole_gain_is_printed():
    run = proven_run()
    links = tuple(link.model_copy(update={"needs": ()}) for link in run.links)
    page = html(run.model_copy(update={"links": links}))
    rows = page.partition('class="fixes"')[2].partition("</table>")[0].split("<tr>")
    fixes = {re.search(r'">([^<]+)</a>', row)[1]: row for row in rows[1:]}
    assert "saves 4.2 [1, 8] answers" in fixes["Add keyword search"]


def test_a_run_of_nothing_and_one_without_a_judge_state_nothing_about_answers():
    empty = Run(manifest={}, cases=(), traces=(), verdicts=(), links=(), summary={})
    assert first_screen(empty).owners == first_screen(empty).exposure == ()
    links = tuple(link.model_copy(update={"failure": None}) for link in example_run().links)
    unjudged = example_run().model_copy(update={"links": links, "verdicts": ()})
    screen = first_screen(unjudged)
    assert (screen.exposure, screen.example) == ((), None)
    assert [group.label for group in screen.owners] == [
        f"with {level} of their relevant passages" for level in ("none", "some", "all")
    ]


def test_every_part_of_the_bar_opens_exactly_its_cases():
    links = [*_links(gold_suspect=1, retrieval_miss=9, fabricated=7, passed=3, missing_label=1,
                     inconclusive=1),
             _link("99", "inconclusive").model_copy(update={"unexplained": True})]  # fmt: skip
    assert {group.label: (group.cases, group.fragment) for group in first_screen(_run(links)).owners} == {
        "retriever": (9, "owner=retriever"),
        "generator": (7, "owner=generator"),
        "gold set": (1, "owner=gold_set"),
        "inconclusive (failed)": (1, view_fragment(state="failed", failure="inconclusive")),
        "passed": (4, "state=passed"),
        "inconclusive": (1, "state=inconclusive"),
    }  # fmt: skip


def _link(case_id, failure="passed", retrieval="hit", miss_type=None, reason="-", **miss):
    missed = RetrievalMiss(passage_id="p", miss_type=miss_type, **miss)
    return Link(
        case_id=case_id,
        retrieval=retrieval,
        answer="unknown" if failure == "inconclusive" else "faithful",
        failure=failure,
        missed=(missed,) if retrieval == "miss" else (),
        reason=reason,
    )


def _run(links, **parts):
    cases = tuple(Case(id=link.case_id, question="Which?") for link in links)
    given = {"manifest": {"judge": "heuristic"}, "traces": (), "verdicts": (), "summary": {}}
    return Run(**{**given, "cases": cases, "links": tuple(links), **parts})


def _links(**counts):
    """So many links of each failure mode, numbered on from case "1"."""
    failures = [failure for failure, count in counts.items() for _ in range(count)]
    return [_link(str(number), failure) for number, failure in enumerate(failures, 1)]


def test_causes_are_advised_by_the_cases_that_each_would_mend():
    steps = next_steps(_run(_links(fabricated=6, over_refused=1, passed=3, ignored_context=8)))

    assert [step.fragment for step in steps] == [
        "failure=ignored_context", "failure=fabricated", "failure=over_refused",
    ]  # fmt: skip
    assert steps[1].cases == (1, 2, 3, 4, 5, 6)
    assert steps[1].why == "Fabricated: 6 of 18 cases."
    assert steps[1].action == "Ask for quotes, shorten the answer, try a stronger model."


def test_a_smaller_k_is_not_advised_where_relevant_passages_are_missing():
    distracted = _links(distracted=2)
    assert "lower k" in mode_advice(_run(distracted), "distracted")
    missed = _run([*distracted, _link("3", "retrieval_miss", "miss", "below_cutoff")])
    page = build_page(missed)
    advice = [row.advice for row in (*page.failures, *page.misses)]
    advice += [step.action for step in page.steps]
    assert any("a larger k" in text for text in advice)
    assert not any("lower k" in text for text in advice)


def test_misses_are_advised_by_why_they_were_missed_each_case_once():
    links = [
        _link("1", "retrieval_miss", "miss", "below_cutoff", true_rank=7),
        _link("2", "retrieval_miss", "miss", "below_cutoff", true_rank=9),
        _link("3", "not_indexed", "miss", status="not_indexed"),
        _link("4", "passed", "miss", status="not_indexed"),  # nothing went wrong there
    ]
    steps = next_steps(_run(links))

    assert [(step.cases, step.fragment) for step in steps] == [
        ((1, 2), "ids=1,2"),
        ((3,), "failure=not_indexed"),
    ]
    assert steps[1].action.startswith("Index the document, ")


def test_what_an_earlier_step_takes_care_of_is_not_advised_again():
    miss = _link("1", "retrieval_miss", "miss", "ranked_low", true_rank=12)
    both = miss.model_copy(
        update={"missed": (*miss.missed, RetrievalMiss(passage_id="q", miss_type="below_cutoff"))}
    )
    other = _link("2", "retrieval_miss", "miss", "ranked_low", true_rank=12)

    step, *_ = next_steps(_run([both, other]))
    assert step.action.startswith("Add a reranker")
    assert step.why.startswith("It reaches at most 1 failed case. ")  # the other lost more


def test_a_measured_option_goes_before_advice_for_the_same_cases():
    links = [_link(str(n), "retrieval_miss", "miss", "below_cutoff") for n in range(1, 7)]
    links = [
        link.model_copy(
            update={
                "missed": tuple(
                    miss.model_copy(update={"miss_type": "keyword_match"}) for miss in link.missed
                )
            }
        )
        for link in links
    ]
    document = whatif()
    document["options"][1]["reached"] = ["1"]  # by the larger k
    (step,) = next_steps(_run(links, whatif=document))

    assert step.action.startswith("Search by words and by meaning together")
    assert step.cases == (1, 2, 3, 4, 5)
    assert "What-if: it reaches 5 failed cases." in step.why
    assert "Forecast: 4.2 [1, 8] failures avoided." in step.why


def test_a_measured_fix_of_several_cases_comes_before_bounds_and_single_cases():
    links = [_link(str(n), "retrieval_miss", "miss", "keyword_match", true_rank=20)
             for n in range(1, 4)]  # fmt: skip
    links += [_link("4", "retrieval_miss", "miss", "ranked_low", true_rank=12),
              _link("5", "fabricated"), _link("6", "over_refused"), _link("7")]  # fmt: skip
    first, *others = next_steps(_run(links, summary={"diagnosis": {"corpus": 100}}))
    assert first.action.startswith("Search by words and by meaning together")
    assert first.cases == (1, 2, 3)
    assert {step.cases for step in others} == {(5,), (6,)}


def test_what_a_trial_reaches_counts_where_its_gain_cannot_be_told():
    document = whatif()
    document["options"] = document["options"][1:]  # one no different, one worse
    links = [_link(str(n), "retrieval_miss", "miss", "below_cutoff") for n in (1, 2, 3)]

    steps = next_steps(
        _run([*links, _link("4", "fabricated"), _link("5", "fabricated")], whatif=document)
    )
    assert [step.fix for step in steps] == ["larger_k", "fabricated"]
    assert "not enough data to tell" in steps[0].why


def test_gaps_in_the_gold_set_are_a_step_with_all_their_cases():
    holes = {"holes": [{"case_id": "2", "passage_id": "p"}, {"case_id": "gone"}]}
    run = _run(_links(missing_label=1, passed=2), summary={"diagnosis": {"missing_labels": holes}})
    (step,) = next_steps(run)

    assert (step.cases, step.fragment) == ((1, 2), "ids=1,2")
    assert "misslink diagnose RUN --missing-labels" in step.action


def test_failures_that_nothing_explains_ask_for_the_corpus():
    link = _link("1", "inconclusive", "unlabelled").model_copy(update={"unexplained": True})
    (step,) = next_steps(_run([link]))
    assert "--corpus" in step.action
    assert (step.cases, step.fragment) == ((1,), "ids=1")
    assert next_steps(_run([link], summary={"diagnosis": {"corpus": 9}})) == ()


def test_a_judge_that_nobody_checked_comes_last_and_names_no_cases():
    said = (verdict("1", "faithfulness", 1.0),)
    *_, last = steps = next_steps(_run(_links(fabricated=1, passed=2), verdicts=said))

    assert len(steps) == 2
    assert "misslink calibrate RUN" in last.action
    assert (last.cases, last.fragment) == ((), "trust")
    known = {"judge": "heuristic", "calibration": {"metric": "faithfulness"}}
    assert len(next_steps(_run(_links(fabricated=1), verdicts=said, manifest=known))) == 1
    held = _run(_links(fabricated=1), verdicts=said)  # by misslink calibrate, after the run
    assert len(next_steps(held)) == 2
    held = held.model_copy(update={"calibration": {"metric": "faithfulness"}})
    assert len(next_steps(held)) == 1


def test_cases_that_the_judge_failed_on_are_a_step_behind_the_fixes():
    said = (
        verdict("1", "faithfulness", 1.0),
        *(verdict(n, "faithfulness", None, status="failed", reason="no") for n in "42"),
    )
    *others, repeated = next_steps(_run(_links(fabricated=6, ignored_context=8), verdicts=said))

    assert len(others) == 2
    assert "same command again" in repeated.action
    assert (repeated.cases, repeated.fragment) == ((2, 4), "ids=2,4")
    links = _links(fabricated=6, over_refused=1, ignored_context=8)
    assert all(step.fix for step in next_steps(_run(links, verdicts=said)))  # it displaces none
    repeated, labels = next_steps(_run(_links(passed=4), verdicts=said))
    assert "same command again" in repeated.action
    assert labels.fragment == "trust"


def test_without_a_judge_misses_are_advised_whatever_the_answers_were():
    links = [_link("1", None, "miss", "ranked_low", true_rank=12), _link("2", None)]
    (step,) = next_steps(_run(links, manifest={"judge": "none"}))

    assert step.action.startswith("Add a reranker")
    assert step.cases == (1,)


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (_run([]), "this run has no cases"),
        (_run(_links(inconclusive=2), manifest={"judge": "none"}), "all cases are inconclusive"),
        (_run(_links(passed=3)), "none of 3 cases failed."),
        (_run(_links(passed=60)), "none of 60 cases failed."),
    ],
)
def test_a_run_with_nothing_to_do_says_so(run, said):
    assert next_steps(run) == ()
    assert said in no_steps_reason(run)


@pytest.mark.parametrize("run", [example_run(), proven_run()])
def test_there_are_at_most_three_and_the_view_of_each_is_its_cases(run):
    steps = next_steps(run)

    assert 0 < len(steps) <= 3
    for step in steps:
        assert list(step.cases) == sorted(set(step.cases))
        if step.fragment.startswith("ids="):
            assert step.fragment == view_fragment(ids=step.cases)


def test_page_markdown_and_headline_have_the_same_verdict():
    run = example_run()
    page = build_page(run)
    assert (
        "".join(page.verdict_parts)
        == page.verdict
        == ("7 of 14 answers are flagged; 2 could not be judged. In 5, the generator is at fault.")
    )
    assert f"**{page.verdict}**" in render_markdown(page)
    assert page.verdict in describe_run(run)  # what terminal and notebook print
    assert "<b>7 of 14</b> answers are flagged; 2 could" in html(run)


def _exposed(misses, hits):
    """Failed of all answers that lacked their passage, a reranker's, and of those that had it."""
    missed = [
        _link(
            f"m{n}",
            "retrieval_miss" if n < misses[0] else "passed",
            "miss", "ranked_low", true_rank=12,
        )
        for n in range(misses[1])
    ]  # fmt: skip
    found = [_link(f"h{n}", "fabricated" if n < hits[0] else "passed") for n in range(hits[1])]
    return _run([*missed, *found])


@pytest.mark.parametrize(
    ("misses", "hits", "why", "first"),
    [
        ((12, 12), (30, 60), "missing_passages", "Ask for quotes"),
        ((40, 40), (38, 40), "generator", "Add a reranker"),
        ((9, 9), (80, 120), "few_associated", "Ask for quotes"),
    ],
)
def test_headline_and_first_step_follow_the_evidence_and_not_the_association(
    misses, hits, why, first
):
    run = _exposed(misses, hits)
    assert find(run).why.code == why
    page = build_page(run)
    assert page.steps[0].action.startswith(first)
    assert ("the generator" in page.verdict) == (first == "Ask for quotes")
