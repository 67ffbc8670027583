"""How many related pairs of claim and passage never reach a judge, measured on human labels."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from misslink.judge.backends.heuristic import claim_relations
from misslink.judge.backends.heuristic.abstention import claim_spans, declines
from misslink.judge.backends.heuristic.matching import MatchingContext
from misslink.linking.claim_support import MIN_SHARED_STEMS, may_be_related, shared_stem_share

DATA = Path(__file__).parents[3] / "shared" / "data" / "faithfulness"
MOST_LOST = 0.02
LEAST_SPARED = 0.8

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the labelled data are not here")


def rows(name):
    return [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines()]


def cut(text):
    return [text[start:end] for start, end in claim_spans(text)]


def ragtruth():
    """Sentences without any marked span; at least one of their three passages supports them."""
    for row in rows("ragtruth_qa_dev.jsonl"):
        if declines(row["answer"]):
            continue
        for start, end in claim_spans(row["answer"]):
            if not any(s["start"] < end and start < s["end"] for s in row["spans"]):
                yield row["answer"][start:end], row["contexts"], row["question"]


def begin():
    """Replies that people found fully attributable to their one passage."""
    for row in rows("begin_dev.jsonl"):
        if row["human_label"] == "Fully attributable":
            for claim in cut(row["answer"]):
                yield claim, row["contexts"], row["previous_turn"]


def clapnq():
    """Answers that people wrote from their one passage."""
    for row in rows("clapnq_dev.jsonl"):
        for answer in row["gold_answers"] if row["answerable"] else ():
            for claim in cut(answer):
                yield claim, row["contexts"], row["question"]


@pytest.mark.parametrize(("source", "count"), [(ragtruth, 1360), (begin, 198), (clapnq, 411)])
def test_at_most_2_percent_of_related_pairs_are_lost_and_most_others_are_spared(source, count):
    pairs = list(source())
    assert len(pairs) == count
    related = [
        any(may_be_related(claim, passage, question) for passage in passages)
        for claim, passages, question in pairs
    ]
    assert related.count(False) / count <= MOST_LOST
    draw = random.Random(0)
    others = [draw.choice(pairs) for _ in pairs]
    foreign = [
        may_be_related(claim, other[1][0], question)
        for (claim, _, question), other in zip(pairs, others, strict=True)
        if other[2] != question
    ]
    assert foreign.count(False) / len(foreign) >= LEAST_SPARED


@pytest.mark.parametrize("source", [ragtruth, begin, clapnq])
def test_what_shares_too_little_is_unrelated_to_the_heuristic_judge_too(source):
    pairs = list(source())
    draw = random.Random(0)
    held = [(claim, draw.choice(pairs)[1][0]) for claim, _, _ in pairs]
    held += [(claim, passages[0]) for claim, passages, _ in pairs]
    apart = [pair for pair in held if shared_stem_share(*pair) < MIN_SHARED_STEMS]
    assert len(apart) > len(pairs) / 2
    assert {claim_relations([pair[0]], MatchingContext((pair[1],)))[0][0] for pair in apart} == {
        "unrelated"
    }


def test_no_sentence_that_people_marked_as_contradicted_is_lost():
    found = [
        any(may_be_related(claim, passage, row["question"]) for passage in row["contexts"])
        for row in rows("ragtruth_qa_dev.jsonl")
        for start, end in claim_spans(row["answer"])
        for claim in [row["answer"][start:end]]
        if any(
            "Conflict" in span["label_type"] and span["start"] < end and start < span["end"]
            for span in row["spans"]
        )
    ]
    assert len(found) >= 6
    assert all(found)
