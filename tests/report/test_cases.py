"""The order of the cases, and each as data: claims point at what decides them."""

import random

import pytest

from example_run import example_run
from misslink.documents import cutoff_of
from misslink.failure_modes import FAILURE_MODES
from misslink.matching import load_fit
from misslink.report.cases import (
    MAX_FULL_PAGE,
    PARTIAL_PAGE_CASES,
    NamedText,
    build_case_entries,
    page_size,
    rank_cases,
    select_worst,
)
from misslink.report.claims import is_sure
from misslink.types import (
    Case,
    Claim,
    ClaimLink,
    Evidence,
    Link,
    Passage,
    RetrievalMiss,
    Run,
    Trace,
    Verdict,
)


@pytest.fixture(scope="module")
def entries():
    return build_case_entries(example_run(), 5)


def _case(entries, case_id):
    return next(case for case in entries if case.id == case_id)


def _entry(k=5, **parts):
    empty = {"manifest": {}, "cases": (), "traces": (), "verdicts": (), "links": (), "summary": {}}
    (entry,) = build_case_entries(Run(**{**empty, **parts}), k)
    return entry


def _texts(row, kind=None):
    """The marked texts of a passage."""
    return [row.text[p.start : p.end] for p in row.marks if kind in (None, p.kind) and p.kind]


def test_cases_come_worst_first_by_cause_then_faithfulness(entries):
    failures = [case.failure for case in entries]

    assert failures == [mode for mode in FAILURE_MODES for case in entries if case.failure == mode]
    assert entries[0].id == "with-exit"  # 0.25 against 0.40
    assert failures[-3:] == ["passed"] * 3


def test_a_claim_points_at_its_quote_and_the_quote_is_marked_in_its_passage(entries):
    case = _case(entries, "with-exit")
    pointer = case.claims[1].quotes[0]
    passage = case.retrieved[pointer.passage - 1]

    assert (pointer.where, pointer.missed, pointer.quote) == ("rank 1", 0, "")
    assert _texts(passage) == ["nothing happens"]
    assert [piece.claims for piece in passage.marks if piece.kind] == [(2,)]


def test_an_unfaithful_claim_points_at_the_missed_passage_and_its_true_rank(entries):
    case = _case(entries, "with-exit")
    first = case.claims[0].needed[0]
    missed = case.missed[first.missed - 1]

    assert first.where == "rank 17 of 100 searched"
    assert first.words.startswith("contradicts")
    assert _texts(missed, "needed") == ["its type, value and traceback are passed to it"]
    assert [piece.claims for piece in missed.marks if piece.kind == "needed"] == [(1,)]
    assert case.claims[3].needed[0].where == "not within the first 100"


def test_the_answer_is_marked_by_its_claims(entries):
    case = _case(entries, "with-exit")
    marked = [(case.answer[p.start : p.end], p.kind, p.claims) for p in case.marks if p.kind]

    assert marked == [
        ("The with statement swallows every exception", "contradicted", (1,)),
        ("It calls __exit__() at the end.", "supported", (2,)),
        ("Since Python 2.2 it also closes sockets.", "unsupported", (3,)),
    ]


def test_what_the_list_narrows_and_sorts_by_is_told_of_every_case(entries):
    case = _case(entries, "with-exit")

    assert (case.failure, case.retrieval, case.answered, case.correct) == (
        "retrieval_miss", "miss", "unfaithful", "no",
    )  # fmt: skip
    assert case.miss_types == ("ranked_low",)
    assert case.tags == ("topic:context managers",)
    assert (case.values["faithfulness"], case.bad, case.latency_s) == (
        0.25,
        ("faithfulness",),
        2.34,
    )
    assert _case(entries, "crashed").values == {}
    assert _case(entries, "rtl").correct == "yes"


def test_a_claim_that_is_not_in_the_answer_is_listed_all_the_same(entries):
    case = _case(entries, "with-exit")

    assert [claim.unlocated for claim in case.claims] == [False, False, False, True]
    assert case.claims[3].note == "The judge's quote is in no passage."


def test_a_passage_says_whether_it_is_relevant_and_reached_the_prompt(entries):
    assert _case(entries, "lambda").retrieved[0].flags == ("relevant", "in the prompt")
    assert _case(entries, "with-exit").retrieved[2].flags == ("not in the prompt",)
    assert _case(entries, "long").retrieved[0].flags == ("relevant", "prompt not seen")


FERRY = "The ferry leaves at seven. It takes no cars. Dogs travel free of charge."


@pytest.mark.parametrize(
    ("shown", "unseen", "flag"),
    [
        (
            "The ferry leaves at seven.",
            [" It takes no cars. Dogs travel free of charge."],
            "cut: 36% shown",
        ),
        (
            "Dogs travel free of charge.",
            ["The ferry leaves at seven. It takes no cars. "],
            "cut: 38% shown",
        ),
        ("The ferry\n\n\u2026\n\nfree of charge.", [FERRY[9:57]], "cut: 33% shown"),
        (FERRY.replace("seven", "eight"), [], "in other words"),
        (None, [], None),
    ],
)
def test_of_a_passage_that_was_cut_the_part_that_no_model_saw_is_marked(shown, unseen, flag):
    row = _cut_row(shown)
    assert row.flags == tuple(filter(None, ("in the prompt", flag)))
    assert _texts(row, "unseen") == unseen


def test_a_quote_of_a_shown_part_is_marked_where_it_stands_in_the_passage():
    quote = Evidence(passage_id="p", quote="Dogs travel", start=0, end=11)
    claim = Claim(text="Dogs travel.", support="supported", evidence=(quote,))
    assert _texts(_cut_row("Dogs travel free of charge.", claim), "quote") == ["Dogs travel"]


def _cut_row(shown, *claims):
    seen = {} if shown is None else {"p": shown}
    retrieved = (Passage(id="p", text=FERRY, rank=1),)
    trace = Trace(case_id="q", retrieved=retrieved, prompted=("p",), shown=seen, answer="-")
    case = Case(id="q", question="?")
    (row,) = _entry(cases=(case,), traces=(trace,), verdicts=(faithful("q", 1, claims),)).retrieved
    return row


def test_one_raw_reply_that_serves_several_metrics_is_shown_once(entries):
    assert _case(entries, "with-exit").raws == (
        NamedText("faithfulness, answer_relevance", '{"claims": ["…"]}'),
    )


@pytest.mark.parametrize(
    ("missed", "retrieved", "expected"),
    [
        (RetrievalMiss(passage_id="a"), (), "rank not known"),
        (
            RetrievalMiss(passage_id="a"),
            (Passage(id="b", rank=1), Passage(id="c", rank=2)),
            "not among the 2 retrieved",
        ),
        (RetrievalMiss(passage_id="a", true_rank=7), (), "rank 7"),
        (RetrievalMiss(passage_id="a", true_rank=7, depth=50), (), "rank 7 of 50 searched"),
        (RetrievalMiss(passage_id="a", depth=50), (), "not within the first 50"),
        (
            RetrievalMiss(passage_id="a", true_rank=2, depth=50),
            (Passage(id="a", rank=2),),
            "rank 2, retrieved but not in the prompt",
        ),
    ],
)
def test_a_missed_passage_says_where_it_really_is(missed, retrieved, expected):
    entry = _entry(
        cases=(Case(id="q", question="?", relevant={"a": 1}),),
        traces=(Trace(case_id="q", retrieved=retrieved, prompted=(), answer="-"),),
        links=(
            Link(case_id="q", retrieval="miss", answer="unfaithful", failure="retrieval_miss",
                 reason="-", missed=(missed, missed)),
        ),
    )  # fmt: skip

    assert entry.missed[0].rank == expected


def test_a_passage_that_carries_two_missed_evidences_is_shown_once_with_both_marked(entries):
    case = _case(entries, "with-exit")

    assert [row.id for row in case.missed] == ["with#1", "evidence-2"]
    assert _texts(case.missed[0], "evidence") == [
        "calls the context manager's __exit__() method", "when the suite ends",
    ]  # fmt: skip


def test_a_quote_from_nowhere_points_nowhere_and_is_told(entries):
    claim = Claim(
        text="c",
        support="supported",
        evidence=(Evidence(passage_id="gone", quote="q"), Evidence(passage_id="p", quote="absent")),
    )
    entry = _entry(
        cases=(Case(id="q", question="?"),),
        traces=(Trace(case_id="q", answer="c", retrieved=(Passage(id="p", text="t", rank=1),)),),
        verdicts=(
            Verdict(case_id="q", metric="faithfulness", status="scored", value=1, judge="j",
                    claims=(claim,)),
        ),
    )  # fmt: skip

    quotes = entry.claims[0].quotes
    assert [(one.passage, one.missed, one.quote) for one in quotes] == [
        (0, 0, "q"),
        (0, 0, "absent"),
    ]
    assert (entry.failure, entry.retrieval) == ("", "")
    assert "the run has no judge" in entry.reason


def test_a_verdict_says_whether_it_is_good_or_bad(entries):
    def labels(case_id):
        return {row.metric: (row.value, row.label) for row in _case(entries, case_id).verdicts}

    assert labels("with-exit")["faithfulness"] == ("25%", "bad")
    assert labels("with-exit")["answer_relevance"] == ("80%", "")
    assert labels("rtl")["faithfulness"] == ("100%", "good")
    assert labels("inconclusive")["faithfulness"] == ("failed", "")


def test_evidence_that_was_found_split_over_two_passages_is_noted():
    evidence = "A long evidence text that the boundary of two chunks cuts in the middle."
    halves = (Passage(id="one", text=evidence[:36], rank=1),
              Passage(id="two", text=evidence[36:], rank=2))  # fmt: skip
    case = Case(id="q", question="?", evidence={evidence: 1})
    trace = Trace(case_id="q", retrieved=halves, answer="-", notes=("seen",))

    def notes(k):
        return _entry(k, cases=(case,), traces=(trace,)).notes

    assert notes(2) == (
        "seen", "found split over passages: evidence-1 over 'one' and 'two'",
    )  # fmt: skip
    assert notes(1) == ("seen",)


GOOD, BAD = Claim(text="g", support="supported"), Claim(text="b", support="unsupported")


def link(case_id, failure):
    return Link(case_id=case_id, retrieval="hit", answer="unknown", failure=failure, reason="-")


def faithful(case_id, value, claims=()):
    status = "failed" if value is None else "scored"
    return Verdict(
        case_id=case_id, metric="faithfulness", status=status, value=value, judge="j",
        claims=claims, reason="-",
    )  # fmt: skip


def at_rank(case_id, rank, *, of=6):
    """The needed passage at a rank, 0: nowhere."""
    names = [case_id if place == rank else f"other-{place}" for place in range(1, of + 1)]
    return Trace(
        case_id=case_id,
        answer="-",
        retrieved=tuple(Passage(id=one, text="t", rank=r) for r, one in enumerate(names, 1)),
    )


def ordered(ids, *, links=(), verdicts=(), traces=(), **parts):
    run = Run(
        manifest={}, summary={"k": 5}, links=tuple(links), verdicts=tuple(verdicts),
        cases=tuple(Case(id=one, question="?", relevant={one: 1}) for one in ids),
        traces=tuple(traces), **parts,
    )  # fmt: skip
    return "".join(run.cases[number - 1].id for number in rank_cases(run))


def test_the_cause_comes_first_and_what_is_fine_last():
    failures = {"a": "passed", "b": "inconclusive", "c": "fabricated", "d": "retrieval_miss"}
    said = [faithful("d", 1.0), faithful("a", 0.0)]
    links = [link(*one) for one in failures.items()]
    assert ordered("abcd", links=links, verdicts=said) == "dcba"


def test_a_case_that_no_link_speaks_of_comes_after_all_that_one_does():
    assert ordered("ab", links=[link("b", "passed")], verdicts=[faithful("a", 0.0)]) == "ba"


def test_of_one_cause_the_less_faithful_comes_first_and_the_unknown_last():
    said = [faithful("a", None), faithful("b", 0.75), faithful("c", 0.0), faithful("d", 0.5)]
    assert ordered("abcd", verdicts=said) == "cdba"


def test_of_one_share_more_unfaithful_claims_are_worse():
    said = [faithful("a", 0.5, (GOOD, BAD)), faithful("b", 0.5, (GOOD, BAD, GOOD, BAD))]
    assert ordered("ab", verdicts=said) == "ba"


def test_then_what_was_retrieved_worse_comes_first():
    traces = [at_rank("a", 1), at_rank("b", 6), at_rank("c", 4), at_rank("d", 0)]
    # Recall@5 is 0 for b and d, of which b has the better reciprocal rank.
    assert ordered("abcde", traces=traces) == "dbcae"


def test_what_is_equal_stays_in_the_order_of_the_gold_set():
    ids = "hbxaq"
    assert ordered(ids) == ids


def test_the_order_does_not_depend_on_that_of_the_files():
    draw = random.Random(7)
    ids = "abcdefghij"
    failures = ("retrieval_miss", "distracted", "passed")
    links = [link(one, draw.choice(failures)) for one in ids]
    said = [faithful(one, draw.choice((0.0, 0.5, None))) for one in ids]
    traces = [at_rank(one, draw.randrange(7)) for one in ids]
    expected = ordered(ids, links=links, verdicts=said, traces=traces)
    for _ in range(5):
        for part in (links, said, traces):
            draw.shuffle(part)
        assert ordered(ids, links=links, verdicts=said, traces=traces) == expected


def test_a_case_or_a_trace_given_twice_is_no_obstacle():
    assert ordered("aa", traces=[at_rank("a", 1), at_rank("a", 2)]) == "aa"


def test_of_many_the_worst_are_taken_and_each_other_cause_has_its_worst_there():
    ids = [f"c{place:03}" for place in range(400)]
    failures = ["retrieval_miss"] * 300 + ["passed"] * 60 + ["distracted"] * 39 + ["inconclusive"]
    run = Run(
        manifest={}, summary={}, traces=(), verdicts=(),
        cases=tuple(Case(id=one, question="?") for one in ids),
        links=tuple(link(*one) for one in zip(ids, failures, strict=True)),
    )  # fmt: skip
    order, taken = rank_cases(run), select_worst(run, 200)
    assert len(taken) == 200
    assert list(taken) == [number for number in order if number in set(taken)]
    # A fiftieth of the room for each: four of fine and of distracted, the one that is inconclusive.
    assert taken == (*range(1, 192), *range(361, 365), 400, *range(301, 305))
    assert select_worst(run, 10) == order[:10], "of so few none is kept free"
    assert select_worst(run, 0) == ()
    assert select_worst(run, 400) == select_worst(run, 500) == order


def test_up_to_so_many_cases_all_are_shown_and_of_more_the_worst():
    shown = {cases: page_size(cases) for cases in (0, 1, MAX_FULL_PAGE, MAX_FULL_PAGE + 1, 10**6)}
    assert shown == {
        0: 0,
        1: 1,
        MAX_FULL_PAGE: MAX_FULL_PAGE,
        MAX_FULL_PAGE + 1: PARTIAL_PAGE_CASES,
        10**6: PARTIAL_PAGE_CASES,
    }


@pytest.mark.parametrize(
    ("summary", "manifest", "expected"),
    [({"k": 3}, {"k": 7}, 3), ({}, {"k": 7}, 7), ({"k": None}, {}, 5), ({"k": 0}, {"k": None}, 5)],
)
def test_the_cutoff_is_what_the_run_tells(summary, manifest, expected):
    run = Run(manifest=manifest, cases=(), traces=(), verdicts=(), links=(), summary=summary)
    assert cutoff_of(run) == expected


@pytest.mark.parametrize(
    ("by", "probability", "sure"),
    [
        ("heuristic", load_fit().cap, True),
        ("heuristic", 0.96 * load_fit().cap, True),
        ("heuristic", 0.94 * load_fit().cap, False),
        ("heuristic", None, False),
        ("openai:m", 0.6, True),
        ("openai:m", None, True),
    ],
)
def test_a_missed_passage_supports_a_claim_only_by_a_models_word_or_surely(by, probability, sure):
    tie = ClaimLink(
        index=0, passage_id="p", relation="would_support", by=by, probability=probability
    )
    assert is_sure(tie) == sure
    claim = Claim(text="It is 3.", support="unsupported")
    verdict = Verdict(
        case_id="c", metric="faithfulness", status="scored", value=0.0, judge="j", claims=(claim,)
    )
    missed = RetrievalMiss(passage_id="p", text="It is 3.", true_rank=9)
    link = Link(case_id="c", retrieval="miss", answer="unfaithful", failure="retrieval_miss", reason="-",
                missed=(missed,), claims=(tie,))  # fmt: skip
    entry = _entry(
        cases=(Case(id="c", question="?"),), verdicts=(verdict,), links=(link,),
        traces=(Trace(case_id="c", answer="It is 3."),),
    )  # fmt: skip
    assert ("A missed passage would support 1" in entry.summary[1]) == sure
    (pointer,) = entry.claims[0].needed
    assert pointer.words.startswith("supports this claim") == sure
