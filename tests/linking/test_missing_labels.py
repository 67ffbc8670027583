"""Missing labels: which unlisted passage answers a question, and what the metrics are with it."""

import asyncio

import pytest

from json_values import as_json
from misslink.errors import InputError
from misslink.io.goldset import read_goldset
from misslink.judge.config import JudgeConfig
from misslink.judge.judge_case import judge_case
from misslink.judge.judged_metric import Subject
from misslink.judge.session import open_judge
from misslink.linking.missing_labels import (
    add_missing_labels,
    find_missing_labels,
    missing_label_document,
    write_labelled_cases,
)
from misslink.linking.owners import link_case
from misslink.registry import judged_metrics
from misslink.retrieval import score_cases
from misslink.types import Case, Claim, Evidence, Link, Passage, Trace, Verdict

missing_label_document = as_json(missing_label_document)

K = 5
TEXTS = {
    "gold": "The ferry to Holm leaves at seven in the morning, on every day of the week.",
    "board": "From the notice board: the ferry to Holm leaves at seven.",
    "other": "Tickets are sold on board.",
}
JUDGE = "openai:m"


def case_of(**fields):
    given = {"id": "1", "question": "When does the ferry leave?", "relevant": {"gold": 2}}
    return Case(**{**given, **fields})


def trace_of(*names, prompted=None):
    passages = tuple(Passage(id=n, text=TEXTS[n], rank=r) for r, n in enumerate(names, 1))
    return Trace(case_id="1", retrieved=passages, prompted=prompted, answer="At seven.")


def scored(metric, value, judge=JUDGE, **more):
    return Verdict(
        case_id="1",
        metric=metric,
        status="scored",
        value=value,
        label=value == 1,
        judge=judge,
        **more,
    )


def said(*, relevant=("board",), sufficient=1.0, rests_on=None, judge=JUDGE, support="supported"):
    """What a judge said: of the passages, of the context, and of the answer's one claim."""
    passages = {name: float(name in relevant) for name in TEXTS}
    evidence = (Evidence(passage_id=rests_on, quote="at seven"),) if rests_on else ()
    claim = Claim(text="At seven.", support=support, evidence=evidence)
    yield scored("context_relevance", 0.5, judge, passages=passages)
    if sufficient is not None:
        yield scored("context_sufficiency", sufficient, judge)
    yield scored("faithfulness", 1.0, judge, claims=(claim,))


def link_of(retrieval="miss", *, answer="faithful", correct=True):
    return Link(
        case_id="1",
        retrieval=retrieval,
        answer=answer,
        correct=correct,
        failure="passed",
        reason="r",
    )


def holes(case=None, trace=None, verdicts=None, link=None):
    found = find_missing_labels(
        [case or case_of()],
        [trace or trace_of("other", "board")],
        list(said() if verdicts is None else verdicts),
        [link or link_of()],
        K,
    )
    return [(hole.passage_id, hole.rank) for hole in found]


def test_a_relevant_passage_that_suffices_without_the_needed_one_is_a_hole():
    (hole,) = find_missing_labels(
        [case_of()], [trace_of("other", "board")], list(said()), [link_of(correct=None)], K
    )
    assert (hole.case_id, hole.passage_id, hole.rank) == ("1", "board", 2)
    assert (hole.question, hole.text) == ("When does the ferry leave?", TEXTS["board"])
    assert hole.reason == (
        "openai:m calls it relevant, and the other passages suffice for an answer, although a "
        "relevant one was missing"
    )


def test_so_is_one_that_the_right_and_faithful_answer_rests_on_even_beside_the_needed_one():
    verdicts = list(said(rests_on="board", sufficient=None))
    trace = trace_of("gold", "board")
    assert holes(trace=trace, verdicts=verdicts, link=link_of("hit")) == [("board", 2)]
    for link in (
        link_of("hit", correct=False),
        link_of("hit", correct=None),
        link_of("hit", answer="unfaithful"),
    ):
        assert holes(trace=trace, verdicts=verdicts, link=link) == []
    contradicted = said(rests_on="board", sufficient=None, support="contradicted")
    assert holes(trace=trace, verdicts=contradicted, link=link_of("hit")) == []


def test_where_nothing_is_missing_it_is_the_listed_passages_that_suffice():
    assert holes(trace=trace_of("gold", "board"), link=link_of("hit")) == []


@pytest.mark.parametrize("sufficient", [0.5, 0.0, None])
def test_a_relevant_passage_alone_is_no_hole(sufficient):
    assert holes(verdicts=said(sufficient=sufficient)) == []


def test_a_passage_that_the_judge_does_not_call_relevant_is_none():
    assert holes(verdicts=said(relevant=())) == []


def test_the_heuristic_judge_never_says_it():
    assert holes(verdicts=said(judge="heuristic", rests_on="board")) == []


@pytest.mark.parametrize(
    "gold",
    [
        {"relevant": {"gold": 2, "board": 0}},
        {"relevant": {"gold": 2, "board": 1}},
        {"relevant": {}, "relevant_any": [["gold"], ["board", "gold"]]},
        {"relevant": {}, "evidence": ["leaves at seven", "on every day of the week"]},
        {"relevant": {}, "evidence": {"on every day of the week": 1, "the notice board": 0}},
        {
            "relevant": {},
            "evidence": ["the ferry to Holm leaves at seven. In summer it stays."],
        },
    ],
)
def test_what_the_gold_set_says_anything_of_is_no_hole(gold):
    assert holes(case=case_of(**gold)) == []


def test_a_case_that_lists_nothing_has_no_hole():
    assert holes(case=case_of(relevant={})) == []
    assert holes(case=case_of(relevant={}, answerable=False)) == []


def test_what_did_not_reach_the_context_was_not_judged():
    assert holes(trace=trace_of("board", "other", prompted=("other",))) == []


def test_a_case_without_trace_or_link_has_none():
    assert find_missing_labels([case_of()], [], list(said()), [link_of()], K) == ()
    assert find_missing_labels([case_of()], [trace_of("board")], list(said()), [], K) == ()
    assert find_missing_labels([], [], [], [], K) == ()


def found(case, *names):
    return find_missing_labels(
        [case], [trace_of(*names)], list(said(relevant=TEXTS)), [link_of()], K
    )


def test_accepted_holes_are_relevant_at_grade_1_and_the_case_stays_as_it_is():
    case = case_of(category="travel")
    (other,) = cases = [Case(id="2", question="Why?", relevant=["x"])]
    (first, second) = add_missing_labels([case, *cases], found(case, "board", "other"))
    assert first.relevant == {"gold": 2, "board": 1, "other": 1}
    assert first.model_copy(update={"relevant": case.relevant}) == case
    assert second is other
    assert case.relevant == {"gold": 2}


def test_where_evidence_counts_the_text_is_added_and_where_there_are_alternatives_one_more():
    case = case_of(relevant={}, evidence={"on every day of the week": 2})
    (with_text,) = add_missing_labels([case], found(case, "board"))
    assert with_text.evidence == {"on every day of the week": 2, TEXTS["board"]: 1}
    names = ["recall@5"]
    assert score_cases([case], [trace_of("board")], names)["recall@5"]["1"] == 0
    assert score_cases([with_text], [trace_of("board")], names)["recall@5"]["1"] == 0.5
    case = case_of(relevant={}, relevant_any=[["gold", "x"]])
    (wider,) = add_missing_labels([case], found(case, "board", "other"))
    assert wider.relevant_any == (("gold", "x"), ("board", "other"))
    assert score_cases([wider], [trace_of("board", "other")], names)["recall@5"]["1"] == 1


def test_the_document_shows_the_metrics_without_and_with_the_holes():
    """One of two cases has a hole at rank 1: recall 0 of 1 becomes 1 of 2, the other stays at 1."""
    cases = [case_of(), Case(id="2", question="Why?", relevant=["other"])]
    hit = Trace(case_id="2", retrieved=(Passage(id="other", text="x", rank=1),))
    traces = [trace_of("board"), hit]
    verdicts = list(said())
    (hole,) = find_missing_labels(cases, traces, verdicts, [link_of()], K)
    told = missing_label_document(cases, traces, verdicts, [hole], K)
    assert told["holes"] == [
        {
            "case_id": "1",
            "passage_id": "board",
            "rank": 1,
            "question": cases[0].question,
            "text": TEXTS["board"],
            "reason": hole.reason,
        }
    ]
    values = {n: (m["without"]["value"], m["with"]["value"]) for n, m in told["metrics"].items()}
    assert values["recall@5"] == pytest.approx((0.5, 0.75))
    assert values["hit@5"] == values["mrr"] == pytest.approx((0.5, 1.0))
    assert values["precision@5"] == pytest.approx((0.1, 0.2))
    assert all(
        m["with"]["n"] == 2 and m["with"]["low"] is not None for m in told["metrics"].values()
    )
    assert told["reason"] is None
    known = score_cases(cases, traces, list(told["metrics"]))
    assert missing_label_document(cases, traces, verdicts, [hole], K, scores=known) == told


def test_without_a_language_model_it_says_why_there_are_none():
    told = missing_label_document(
        [case_of()], [trace_of("board")], list(said(judge="heuristic")), (), K
    )
    assert told["holes"] == []
    assert "no language model" in told["reason"]
    assert all(metric["with"] == metric["without"] for metric in told["metrics"].values())
    empty = missing_label_document([], [], [], (), K)["metrics"]["recall@5"]["with"]
    assert empty["value"] is None
    assert empty["reason"]


def test_what_is_written_is_a_gold_set(tmp_path):
    case = case_of(
        tags={"topic": "travel"}, references=["At seven."], asked_at="2026-01-02T10:30:00+01:00"
    )
    path = tmp_path / "holes.jsonl"
    holes_found = found(case, "board")
    other = Case(id="2", question="Why?", relevant=["x"])
    assert write_labelled_cases(path, [other, case], holes_found) == 1
    (read,) = read_goldset(path).cases
    (wanted,) = add_missing_labels([case], holes_found)
    assert read == wanted.model_copy(update={"tags": {"topic": "travel", "missing_label": "yes"}})


def test_a_file_that_may_hold_a_review_is_not_overwritten(tmp_path):
    path = tmp_path / "holes.jsonl"
    path.write_text("reviewed", encoding="utf-8")
    with pytest.raises(InputError, match=r"holes\.jsonl: it is there already"):
        write_labelled_cases(path, [case_of()], found(case_of(), "board"))
    assert path.read_text(encoding="utf-8") == "reviewed"
    with pytest.raises(InputError, match="cannot be written"):
        write_labelled_cases(path / "x.jsonl", [case_of()], found(case_of(), "board"))
    assert write_labelled_cases(tmp_path / "none.jsonl", [case_of()], ()) == 0
    assert not (tmp_path / "none.jsonl").exists()


def test_hostile_text_is_written_as_it_can_be(tmp_path):
    case = case_of(relevant={}, evidence=["on every day of the week"])
    passage = Passage(id="b\nad", text='"}\n{"id": "x"} \ud800 the ferry', rank=1)
    trace = Trace(case_id="1", retrieved=(passage,), answer="a")
    verdicts = [
        scored("context_relevance", 1.0, passages={"b\nad": 1.0}),
        scored("context_sufficiency", 1.0),
    ]
    holes_found = find_missing_labels([case], [trace], verdicts, [link_of()], K)
    path = tmp_path / "holes.jsonl"
    assert write_labelled_cases(path, [case], holes_found) == 1
    (read,) = read_goldset(path).cases
    assert list(read.evidence)[1] == '"}\n{"id": "x"} ? the ferry'


def test_the_whole_way_from_a_server_s_verdicts(judge_server):
    case = case_of(references=["The ferry to Holm leaves at seven."])
    trace = trace_of("other", "board").model_copy(
        update={"answer": "The ferry to Holm leaves at seven."}
    )
    metrics = [judged_metrics.get(name) for name in judged_metrics.names()]

    async def judge():
        terms = JudgeConfig(base_url=judge_server.url, api_key="k")
        asked = open_judge("openai:test-judge", cache=None, concurrency=1, terms=terms)
        verdicts = await judge_case(Subject(case, trace, K), metrics, asked)
        await asked.close()
        link = await link_case(case, trace, {v.metric: v for v in verdicts}, K)
        return verdicts, link

    verdicts, link = asyncio.run(judge())
    (hole,) = find_missing_labels([case], [trace], verdicts, [link], K)
    assert (hole.passage_id, link.notes) == ("board", ("missing_label",))
    assert hole.reason == "openai:test-judge calls it relevant, and the correct answer rests on it"
