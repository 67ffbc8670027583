"""The checklist over a planted run: every number against an oracle, every verdict on both sides."""

import asyncio
import json
import re
from dataclasses import replace

import numpy as np
import pytest

from json_values import as_json
from misslink.linking.checklist import build_checklist
from misslink.linking.miss_measurement import MissMeasurements, SimilaritySamples, measure_misses
from misslink.retrieval import retrieval_outcome
from misslink.types import Case, Estimate, Passage, Trace

build_checklist = as_json(build_checklist)

NAMES = ["chunk_quality", "embedding_quality", "recall", "precision", "vocabulary", "boundaries"]
K = 2


def items(cases=(), traces=(), measured=None, **more):
    pairs = zip(cases, traces, strict=True)
    outcomes = {case.id: retrieval_outcome(case, trace, K) for case, trace in pairs}
    measured = replace(measured or MissMeasurements(missed={}), outcomes=outcomes)
    found = build_checklist(list(cases), list(traces), measured, K, **more)
    assert [item["name"] for item in found] == NAMES
    json.dumps(found, allow_nan=False)
    return {item["name"]: item for item in found}


def marked(values):
    return tuple((f"c{at}", float(value)) for at, value in enumerate(values))


def run_of(*, count=40, distances=False):
    """Cases of which the even ones find what they need first, the odd ones only at rank 7."""
    cases, traces = [], []
    for at in range(count):
        cases.append(Case(id=str(at), question=f"alpha{at} beta{at}?", relevant=[f"gold{at}"]))
        gold = Passage(id=f"gold{at}", text=f"Alpha{at} is beta{at}.", rank=1, score=0.9)
        noise = [
            Passage(id=f"n{at}-{n}", text=f"Noise{at} text{n} here.", rank=1, score=0.5 - n / 10)
            for n in range(3)
        ]
        ranked = [gold, *noise] if at % 2 == 0 else noise
        if distances:
            ranked = [one.model_copy(update={"score": 1 - one.score}) for one in ranked]
        ranked = [one.model_copy(update={"rank": place}) for place, one in enumerate(ranked, 1)]
        deeper = () if at % 2 == 0 else (gold.model_copy(update={"rank": 7}),)
        depth = None if at % 2 == 0 else 50
        traces.append(
            Trace(case_id=str(at), retrieved=ranked[:3], deeper=deeper, depth=depth, answer="a")
        )
    return cases, traces


def test_a_run_without_anything_answers_every_question_with_a_reason():
    for item in items().values():
        assert item["ok"] is None
        assert item["finding"].startswith("Not measured: ")
        for number in item["numbers"].values():
            if isinstance(number, dict):
                assert number["value"] is None
                assert number["reason"]


def test_every_finding_is_one_sentence_and_every_number_an_estimate_or_a_count():
    cases, traces = run_of()
    measured = asyncio.run(measure_misses(cases, traces, K, embedder=None, corpus=None))
    for item in items(cases, traces, measured).values():
        assert re.fullmatch(r"[A-Z0-9][^\n]*\.", item["finding"])
        assert item["question"].endswith("?")
        for number in item["numbers"].values():
            if isinstance(number, dict):
                Estimate.model_validate(number)
            else:
                assert number is None or isinstance(number, (int, float))


@pytest.mark.parametrize(("shift", "ok"), [(4.0, True), (0.5, False)])
def test_embedding_quality_is_the_area_between_known_and_random_pairs(shift, ok):
    from sklearn.metrics import roc_auc_score

    generator = np.random.default_rng(0)
    known, random = generator.normal(shift, 1, 60), generator.normal(0, 1, 300)
    pairs = SimilaritySamples(known=marked(known), random=marked(random))
    item = items(measured=MissMeasurements(missed={}, pairs=pairs, embedding="m"))[
        "embedding_quality"
    ]
    expected = roc_auc_score([1] * 60 + [0] * 300, [*known, *random])
    assert item["numbers"]["auroc"]["value"] == pytest.approx(expected)
    assert item["numbers"]["median_cosine_known"]["value"] == pytest.approx(np.median(known))
    assert item["ok"] is ok


def test_recall_in_the_context_and_at_depth():
    cases, traces = run_of()
    item = items(cases, traces)["recall"]
    assert item["numbers"]["recall_in_context"]["value"] == 0.5
    assert item["numbers"]["recall_at_depth"]["value"] == 1.0
    assert item["ok"] is False
    assert "100% [91, 100] is among the first 50" in item["finding"]


def test_recall_at_depth_is_missing_where_nobody_asked_deeper():
    cases, traces = run_of()
    bare = [trace.model_copy(update={"deeper": (), "depth": None}) for trace in traces]
    depth = items(cases, bare)["recall"]["numbers"]["recall_at_depth"]
    assert (depth["value"], depth["reason"]) == (
        None,
        "the retriever was not asked for more passages",
    )


@pytest.mark.parametrize("distances", [False, True])
def test_precision_reads_scores_whichever_way_they_run(distances):
    item = items(*run_of(distances=distances))["precision"]
    assert item["numbers"]["auroc"]["value"] == 1.0
    assert item["numbers"]["precision"]["value"] == pytest.approx(20 / 120)
    assert item["ok"] is True
    assert ("low" if distances else "high") + " is better" in item["finding"]


def test_precision_takes_cosines_where_there_are_no_scores():
    pairs = SimilaritySamples(relevant=marked([0.9] * 20), irrelevant=marked(np.linspace(0, 1, 20)))
    item = items(measured=MissMeasurements(missed={}, pairs=pairs, embedding="m"))["precision"]
    assert item["numbers"]["auroc"]["value"] == pytest.approx(0.9)
    assert "cosines" in item["finding"]


@pytest.mark.parametrize(
    ("missed", "ok"), [([0.1, 0.2, 0.0] * 10, False), ([0.5, 0.7, 0.6] * 10, True), ([0.1], None)]
)
def test_vocabulary_tells_whether_missed_passages_lack_the_words(missed, ok):
    found = [0.5, 0.6, 0.7, 0.4] * 10
    pairs = SimilaritySamples(shared_found=marked(found), shared_missed=marked(missed))
    item = items(measured=MissMeasurements(missed={}, pairs=pairs))["vocabulary"]
    assert item["numbers"]["median_shared_missed"]["value"] == pytest.approx(np.median(missed))
    assert item["ok"] is ok
    # Fewer than 10 are not percentages, and both shares are in one unit.
    assert ("%" in item["finding"], "0.55 [" in item["finding"]) == (
        (False, True) if len(missed) < 10 else (True, False)
    )


@pytest.mark.parametrize(("split", "ok"), [(0, True), (40, False), (9, None)])
def test_boundaries_are_the_share_of_evidence_over_two_chunks(split, ok):
    item = items(measured=MissMeasurements(missed={}, whole=100 - split, split=split))["boundaries"]
    assert item["numbers"]["split"]["value"] == split / 100
    assert item["ok"] is ok


def test_chunks_of_whole_different_sentences_are_well():
    words = [f"{n} Different{n} word{n} and{n} so{n}." for n in range(60)]
    corpus = [Passage(id=str(n), text=text, rank=n + 1) for n, text in enumerate(words)]
    trace = Trace(case_id="c", retrieved=corpus[:K])
    traces = [trace.model_copy(update={"case_id": str(n)}) for n in range(60)]
    cases = [Case(id=str(n), question="q") for n in range(60)]
    item = items(cases, traces, corpus=corpus)["chunk_quality"]
    assert item["numbers"]["cut_within_a_sentence"]["value"] == 0
    assert item["numbers"]["median_characters"]["value"] == np.median([len(t) for t in words])
    assert item["ok"] is True
    assert item["finding"].startswith("The corpus has 60 chunks")


def test_chunks_cut_anywhere_are_not_well():
    corpus = [Passage(id=str(n), text=f"go{n} on and on, and{n}", rank=n) for n in range(1, 60)]
    item = items(corpus=corpus)["chunk_quality"]
    assert item["numbers"]["cut_within_a_sentence"]["value"] == 1
    assert item["ok"] is False


def test_copies_that_take_places_are_not_well():
    text = "One long notice about mooring fees that every harbour of the island has put up. "
    cases = [Case(id=str(n), question="q") for n in range(30)]
    traces = [
        Trace(case_id=str(n), retrieved=[Passage(id=f"{n}{i}", text=text, rank=i) for i in (1, 2)])
        for n in range(30)
    ]
    item = items(cases, traces)["chunk_quality"]
    assert item["numbers"]["near_duplicates"]["value"] == 1
    assert item["numbers"]["places_lost_to_duplicates"]["value"] == 0.5
    assert item["ok"] is False
