"""The first screen, and what the report advises."""

import re

import pytest

from example_run import example_run, verdict
from misslink.linking.findings import describe_run, find
from misslink.report.links import view_fragment
from misslink.report.page import build_page, render_markdown, render_page
from misslink.report.summary import mode_advice, next_steps, no_steps_reason, read_first_screen
from misslink.types import Case, Claim, Link, RetrievalMiss, Run
from proven_run import proven_run, whatif


def html(run):
    return render_page(build_page(run))


def first_screen(run):
    return read_first_screen(run, find(run))


def test_failures_stand_by_owner_before_what_passed():
    modes = first_screen(example_run()).modes
    retrieval_miss = ("retrieval miss", 2, "failure=retrieval_miss")
    assert modes[0] == ("retriever", "retriever", (retrieval_miss,))
    assert [owner for owner, _, _ in modes] == ["retriever", "generator", "", ""]
    assert [tint for _, tint, _ in modes[2:]] == ["passed", "inconclusive"]
    assert sum(n for _, _, parts in modes for _, n, _ in parts) == len(example_run().links)
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


def test_a_bound_says_up_to_and_only_a_whole_gain_is_printed():
    rows = html(proven_run()).partition('class="fixes"')[2].partition("</table>")[0].split("<tr>")
    fixes = {re.search(r'">([^<]+)</a>', row)[1]: row for row in rows[1:]}
    assert ">up to 1</td>" in fixes["Rerank the first 50"]
    assert "saves" not in fixes["Larger k"]  # its interval includes 0
    assert "saves 4.2 [1, 8] answers" in fixes["Add keyword search"]


def test_the_example_is_a_claim_that_a_missed_passage_contradicts():
    example = first_screen(example_run()).example
    assert example["claim"] == "The with statement swallows every exception"
    assert (example["relation"], example["rank"]) == (
        "Missed passage contradicts it", "rank 17",
    )  # fmt: skip
    assert example["fragment"] == "case=14"


def test_where_a_miss_has_no_bad_claim_the_example_is_its_question():
    run = example_run()
    links = tuple(link.model_copy(update={"claims": ()}) for link in run.links if link.missed)
    cases = {case.id: case for case in run.cases}
    good = {"support": "supported", "correct": None}
    verdicts = tuple(
        verdict.model_copy(
            update={"claims": tuple(claim.model_copy(update=good) for claim in verdict.claims)}
        )
        for verdict in run.verdicts
    )
    shown = run.model_copy(update={"links": links, "verdicts": verdicts})
    example = first_screen(shown).example
    assert example["relation"] == "Missed passage"
    assert (
        example["subject"],
        example["claim"] in {cases[link.case_id].question for link in links},
    ) == (
        "question",
        True,
    )
    assert 'class="claimed"' not in html(shown)
    assert 'class="claimed"' in html(run)


def test_a_run_of_nothing_and_one_without_a_judge_state_nothing_about_answers():
    empty = Run(manifest={}, cases=(), traces=(), verdicts=(), links=(), summary={})
    assert first_screen(empty).modes == first_screen(empty).exposure == ()
    links = tuple(link.model_copy(update={"failure": None}) for link in example_run().links)
    unjudged = example_run().model_copy(update={"links": links, "verdicts": ()})
    screen = first_screen(unjudged)
    assert (screen.exposure, screen.example) == ((), None)
    assert [parts[0][0] for _, _, parts in screen.modes] == [
        f"with {level} of their relevant passages" for level in ("none", "some", "all")
    ]


def test_every_part_of_the_bar_opens_exactly_its_cases():
    links = [*_links(gold_suspect=1, retrieval_miss=9, fabricated=7, distracted=5, incomplete=4,
                     over_refused=2, ignored_context=1, passed=3, missing_label=1, inconclusive=1),
             _link("99", "inconclusive").model_copy(update={"unexplained": True})]  # fmt: skip
    modes = {owner or tint: parts for owner, tint, parts in first_screen(_run(links)).modes}
    assert modes["generator"][-1] == ("others", 7, view_fragment(ids=range(23, 30)))
    assert modes["gold set"] == (("gold suspect", 1, "failure=gold_suspect"),)
    assert modes["unexplained"] == (
        ("unexplained", 1, view_fragment(state="failed", failure="inconclusive")),
    )
    assert modes["passed"] == (("passed", 4, "state=passed"),)
    assert modes["inconclusive"] == (("inconclusive", 1, "state=inconclusive"),)


def test_without_a_missed_passage_the_example_is_what_the_prompt_or_the_reference_says():
    link = _link("1", "fabricated")
    claims = (Claim(text="It costs 3.", support="unsupported"),)
    faithful = verdict("1", "faithfulness", 0.0, claims=claims)
    cases = (Case(id="1", question="What does it cost?", references=("It costs 2.",)),)
    example = first_screen(_run([link], cases=cases, verdicts=(faithful,))).example
    assert (example["claim"], example["relation"], example["quote"]) == (
        "It costs 3.", "The reference answer", "It costs 2.",
    )  # fmt: skip


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
        _link("1", "retrieval_miss", "miss", "below_cutoff"),
        _link("2", "retrieval_miss", "miss", "below_cutoff"),
        _link("3", "retrieval_miss", "miss", status="not_indexed"),
        _link("4", "passed", "miss", status="not_indexed"),  # nothing went wrong there
    ]
    steps = next_steps(_run(links))

    assert [(step.cases, step.fragment) for step in steps] == [
        ((1, 2), "ids=1,2"),
        ((3,), "ids=3"),
    ]
    assert steps[1].action == "Index the document."
    assert "so no retriever can find it" in steps[1].why


def test_what_an_earlier_step_takes_care_of_is_not_advised_again():
    miss = _link("1", "retrieval_miss", "miss", "ranked_low", true_rank=12)
    both = miss.model_copy(
        update={"missed": (*miss.missed, RetrievalMiss(passage_id="q", miss_type="below_cutoff"))}
    )
    other = _link("2", "retrieval_miss", "miss", "ranked_low", true_rank=12)

    step, *_ = next_steps(_run([both, other]))
    assert step.action.startswith("Add a reranker")
    assert "up to 1 of 2 failed cases" in step.why  # the other lost a passage without a rank, too


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
    (step,) = next_steps(_run(links, whatif=whatif()))

    assert step.action.startswith("Search by words and by meaning together")
    assert step.cases == (1, 2, 3, 4, 5, 6)
    assert "It would give 5 of 6 failed cases all that they lost." in step.why
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


def test_an_option_without_a_detectable_gain_comes_after_all_others():
    document = whatif()
    document["options"] = document["options"][1:]  # one no different, one worse
    links = [_link("1", "retrieval_miss", "miss", "below_cutoff")]

    links += _links(fabricated=3, over_refused=1, ignored_context=2)
    steps = next_steps(_run(links, whatif=document))
    assert [step.fragment for step in steps] == [
        "failure=fabricated", "failure=ignored_context", "failure=over_refused",
    ]  # fmt: skip


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
        == ("7 of 12 judged answers fail. Most failures, 5, are the generator's.")
    )
    assert f"**{page.verdict}**" in render_markdown(page)
    assert page.verdict in describe_run(run)  # what terminal and notebook print
    assert "<b>7 of 12</b> judged answers fail." in html(run)


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
    ("misses", "hits", "owner", "first"),
    [
        ((12, 12), (30, 60), "generator", "Ask for quotes"),
        ((40, 40), (38, 40), "retriever", "Add a reranker"),
        ((9, 9), (80, 120), "generator", "Ask for quotes"),
    ],
)
def test_the_first_step_is_for_the_owner_that_the_headline_names(misses, hits, owner, first):
    run = _exposed(misses, hits)
    assert find(run).why.parameters["owner"] == owner
    page = build_page(run)
    assert page.steps[0].action.startswith(first)
    assert f"the {owner}'s" in page.verdict
