"""What the report says, before anything is drawn."""

from __future__ import annotations

import pytest
from example_run import HOSTILE, estimate, example_run, missing

from misslink.report.page import build
from misslink.types import Case, Claim, Evidence, Link, Missed, Passage, Run, Trace, Verdict


@pytest.fixture(scope="module")
def page():
    return build(example_run())


def _case(page, case_id):
    return next(case for case in page.cases if case.id == case_id)


def _run(**parts):
    empty = {"manifest": {}, "cases": (), "traces": (), "verdicts": (), "links": (), "summary": {}}
    return Run(**{**empty, **parts})


def _linked(value, low, high, n=100, wrong=None):
    link: dict = {
        "attributable_fraction": estimate(value, low, high, n),
        "risk_given_miss": estimate(0.57, 0.37, 0.76, 21),
        "risk_given_hit": estimate(0.09, 0.05, 0.17, 77),
        "risk_difference": estimate(0.48, 0.27, 0.67, 98),
        "risk_ratio": estimate(6.3, 2.9, 13.5, 98),
    }
    if wrong is not None:
        share = estimate(wrong, wrong - 0.3, wrong + 0.3, n)
        link["wrong"] = {"attributable_fraction": share}
    return build(_run(summary={"link": link})).headline


def test_the_headline_is_the_share_of_unfaithful_answers_that_go_with_a_miss():
    said = _linked(0.38, 0.24, 0.51)

    assert f"{said.share} {said.interval} {said.words}" == (
        "38 % [24, 51] of unfaithful answers go with a retrieval miss"
    )
    assert "57 % [37, 76] of answers were unfaithful (21 cases)" in said.paragraphs[0]
    assert "it was 9 % [5, 17] (77 cases)" in said.paragraphs[0]
    assert "+48 points [27, 67], the ratio 6.3 times [2.9, 13.5]" in said.paragraphs[0]
    assert "association, not cause" in said.paragraphs[1]
    assert "includes 0" not in said.paragraphs[1]


def test_the_headline_admits_an_interval_over_zero_and_few_cases():
    said = _linked(0.38, -0.08, 0.61, n=9).paragraphs[1]

    assert "includes 0" in said
    assert "Only 9 cases" in said


def test_the_headline_does_not_claim_a_link_that_is_not_there():
    said = _linked(-0.2, -0.4, 0.1, wrong=-0.1)
    text = " ".join(said.paragraphs)

    assert said.share == ""
    assert said.words == "Unfaithful answers are no more frequent after a miss than after a hit"
    assert (
        "The attributable share, \N{MINUS SIGN}20 % [\N{MINUS SIGN}40, 10], is not above 0" in text
    )
    assert "wrong by the reference are no more frequent after a miss" in text
    assert "go with a retrieval miss" not in text
    assert "could save" not in text


def test_the_headline_tells_the_share_of_wrong_answers_too():
    said = _linked(0.38, 0.24, 0.51, wrong=0.3)

    assert said.paragraphs[-1] == (
        "Of answers that are wrong by the reference, 30 % [0, 60] go with a retrieval miss."
    )


@pytest.mark.parametrize(
    ("manifest", "summary", "reason"),
    [
        ({"judge": "none"}, {}, "no judge was asked"),
        (
            {"judge": "none"},
            {"link": {"attributable_fraction": missing("no cases")}},
            "no judge was asked",
        ),
        ({"judge": "embedded"}, {}, "this run holds no links"),
        (
            {"judge": "embedded"},
            {"link": {"attributable_fraction": missing("no answer is unfaithful")}},
            "no answer is unfaithful",
        ),
    ],
)
def test_a_headline_that_cannot_be_given_says_why(manifest, summary, reason):
    said = build(_run(manifest=manifest, summary=summary)).headline

    assert said.share == ""
    assert "not measured" in said.words
    assert reason in said.paragraphs[0]


@pytest.mark.parametrize(
    ("judge", "badge"),
    [
        ("embedded", "heuristic judge"),
        ("embedded:minilm", "heuristic judge"),
        ("openai:some-model", "not calibrated"),
        ("none", "no judge"),
        (None, "judge not recorded"),
    ],
)
def test_the_badge_says_how_far_to_trust_the_judge(judge, badge):
    assert build(_run(manifest={"judge": judge})).badge.text == badge


def test_one_number_a_level_at_the_run_s_own_cutoff(page):
    assert [one.shown.text for one in page.numbers] == [
        "54 % [29, 78], n = 12", "55 % [28, 79], n = 11", "57 % [25, 84], n = 7",
    ]  # fmt: skip


def test_the_table_of_wrong_answers_stands_beside_that_of_unfaithful_ones(page):
    unfaithful, wrong = page.crosses

    assert (unfaithful.miss, unfaithful.hit, unfaithful.left_out) == ((2, 2), (2, 3), 5)
    assert (wrong.bad, wrong.miss, wrong.hit) == ("Wrong", (1, 2), (2, 2))


def test_causes_are_counted_from_the_links_and_point_at_their_first_case(page):
    rows = {row.key: row for row in page.causes}

    assert [(key, row.count) for key, row in rows.items()][:2] == [
        ("retrieval_miss", 2), ("should_have_abstained", 1),
    ]  # fmt: skip
    assert sum(row.count for row in rows.values()) == 14
    assert rows["retrieval_miss"].share.brief == "14 % [4, 40]"  # Wilson for 2 of 14
    assert rows["retrieval_miss"].first_case == 4  # the fourth case of the gold set


def test_what_could_not_be_judged_is_counted_with_its_reason(page):
    generation = {one.shown.name: one for one in page.levels[1].metrics}

    assert generation["faithfulness"].why == ("3 failed: the reply was not JSON",)
    assert generation["faithful"].coverage == generation["faithfulness"].coverage == (11, 0, 3)
    assert not generation["context_utilization"].shown.measured


def test_groups_come_worst_first_and_small_ones_last_and_marked(page):
    category = page.slices[0]

    assert [(group.name, group.small) for group in category.groups] == [
        ("negative", False), ("comparative", False), ("simple_factual", False), (HOSTILE[3], True),
    ]  # fmt: skip


def test_cases_come_worst_first_by_cause_then_faithfulness(page):
    causes = [case.cause for case in page.cases]

    assert causes[:4] == [
        "retrieval_miss", "retrieval_miss", "should_have_abstained", "over_refused",
    ]  # fmt: skip
    assert page.cases[0].id == "with-exit"  # 0.25 against 0.40
    assert causes[-3:] == ["fine"] * 3


def test_a_claim_points_at_its_quote_and_the_quote_is_marked_in_its_passage(page):
    case = _case(page, "with-exit")
    pointer = case.claims[1].quotes[0]
    marked = [p for row in case.retrieved for p in row.pieces if pointer.href in p.anchors]

    assert pointer.where == "rank 1"
    assert [piece.text for piece in marked] == ["nothing happens"]


def test_an_unfaithful_claim_points_at_the_missed_passage_and_its_true_rank(page):
    case = _case(page, "with-exit")
    first = case.claims[0].needed[0]
    marked = [p for row in case.missed for p in row.pieces if first.href in p.anchors]

    assert first.where == "rank 17 of 100 asked"
    assert first.words.startswith("would have contradicted")
    assert [p.text for p in marked] == ["its type, value and traceback are passed to it"]
    assert case.claims[3].needed[0].where == "not within the first 100"


def test_a_click_on_a_claim_leads_to_what_decides_it(page):
    case = _case(page, "with-exit")
    targets = {piece.kind: piece.href for piece in case.answer if piece.kind}

    assert targets["supported"] == case.claims[1].quotes[0].href
    assert targets["contradicted"] == case.claims[0].needed[0].href


def test_a_claim_that_is_not_in_the_answer_is_listed_all_the_same(page):
    case = _case(page, "with-exit")

    assert [claim.located for claim in case.claims] == [True, True, True, False]
    assert case.claims[3].note == "The judge's quote is in no passage."


def test_a_passage_says_whether_it_is_relevant_and_reached_the_prompt(page):
    assert _case(page, "lambda").retrieved[0].flags == ("relevant", "in the prompt")
    assert _case(page, "with-exit").retrieved[2].flags == ("not in the prompt",)
    assert _case(page, "long").retrieved[0].flags == ("relevant", "prompt not seen")


def test_one_raw_reply_that_serves_several_metrics_is_shown_once(page):
    assert _case(page, "with-exit").raws == (
        ("faithfulness, answer_relevance", '{"claims": ["…"]}'),
    )


@pytest.mark.parametrize(
    ("missed", "retrieved", "expected"),
    [
        (Missed(passage_id="a"), (), "rank not known, the retriever was not asked deeper"),
        (Missed(passage_id="a", true_rank=7), (), "rank 7"),
        (Missed(passage_id="a", true_rank=7, depth=50), (), "rank 7 of 50 asked"),
        (Missed(passage_id="a", depth=50), (), "not within the first 50"),
        (
            Missed(passage_id="a", true_rank=2, depth=50),
            (Passage(id="a", rank=2),),
            "rank 2, retrieved but not in the prompt",
        ),
    ],
)
def test_a_missed_passage_says_where_it_really_is(missed, retrieved, expected):
    page = build(
        _run(
            cases=(Case(id="q", question="?", relevant={"a": 1}),),
            traces=(Trace(case_id="q", retrieved=retrieved, prompted=(), answer="-"),),
            links=(
                Link(case_id="q", retrieval="miss", answer="unfaithful", cause="retrieval_miss",
                     reason="-", missed=(missed, missed)),
            ),
        )
    )  # fmt: skip

    assert page.cases[0].missed[0].rank == expected


def test_a_passage_that_carries_two_missed_evidences_is_shown_once_with_both_marked(page):
    case = _case(page, "with-exit")

    assert [row.id for row in case.missed] == ["with#1", "evidence-2"]
    assert [p.text for p in case.missed[0].pieces if p.kind == "evidence"] == [
        "calls the context manager's __exit__() method", "when the suite ends",
    ]  # fmt: skip


def test_a_quote_from_nowhere_gets_no_link():
    claim = Claim(
        text="c",
        support="supported",
        evidence=(Evidence(passage_id="gone", quote="q"), Evidence(passage_id="p", quote="absent")),
    )
    page = build(
        _run(
            cases=(Case(id="q", question="?"),),
            traces=(Trace(case_id="q", answer="c",
                          retrieved=(Passage(id="p", text="t", rank=1),)),),
            verdicts=(
                Verdict(case_id="q", metric="faithfulness", status="scored", value=1, judge="j",
                        claims=(claim,)),
            ),
        )
    )  # fmt: skip

    assert [pointer.href for pointer in page.cases[0].claims[0].quotes] == ["", ""]
    assert page.cases[0].cause_label == "Not linked"


def test_a_verdict_says_whether_it_is_good_or_bad(page):
    def labels(case_id):
        return {row.metric: (row.value, row.label) for row in _case(page, case_id).verdicts}

    assert labels("with-exit")["faithfulness"] == ("25 %", "bad")
    assert labels("with-exit")["answer_relevance"] == ("80 %", "")
    assert labels("rtl")["faithfulness"] == ("100 %", "good")
    assert labels("undecided")["faithfulness"] == ("failed", "")


def test_evidence_that_was_found_split_over_two_passages_is_noted():
    evidence = "A long evidence text that the boundary of two chunks cuts in the middle."
    halves = (Passage(id="one", text=evidence[:36], rank=1),
              Passage(id="two", text=evidence[36:], rank=2))  # fmt: skip
    case = Case(id="q", question="?", evidence={evidence: 1})
    trace = Trace(case_id="q", retrieved=halves, answer="-", notes=("seen",))

    def notes(k):
        return build(_run(cases=(case,), traces=(trace,), summary={"k": k})).cases[0].notes

    assert notes(2) == (
        "seen", "found split over two passages: evidence-1 over 'one' and 'two'",
    )  # fmt: skip
    assert notes(1) == ("seen",)


def test_how_deep_retrievers_were_asked_is_told_where_they_were():
    def deepest(*depths):
        traces = tuple(Trace(case_id=str(n), depth=depth) for n, depth in enumerate(depths))
        return dict(build(_run(manifest={"depth": 100}, traces=traces)).manifest).get(
            "Asked deeper to"
        )

    assert deepest(None, 100, None) == "100"
    assert deepest(None) is None


def test_a_run_of_nothing_at_all_is_a_page_that_says_so():
    page = build(_run())

    assert page.title == "A RAG app"
    assert page.flow is None
    assert page.cases == page.causes == page.crosses == page.slices == ()
    assert all(not number.shown.measured for number in page.numbers)
