"""The demo's gold set is about the text that the demo's app reads."""

import json
from collections import Counter
from pathlib import Path
from pydoc_data.topics import topics

import pytest

from misslink.text.normalization import content_words, fold
from misslink.types import Case

GOLDSET = Path(__file__).parents[2] / "examples" / "python_reference" / "goldset.jsonl"
CASES = [Case.model_validate(json.loads(line)) for line in GOLDSET.read_text("utf-8").splitlines()]
CATEGORIES = {
    "simple_factual",
    "complex_factual",
    "procedural",
    "entity_centric",
    "comparative",
    "negative",
}
ABSENT = {  # what the questions without an answer are about
    "sort-algorithm": ("timsort", "merge sort", "mergesort", "log n"),
    "empty-list-bytes": ("getsizeof", "memory footprint"),
    "with-first-release": ("version 2.5", "python 2.5", "guido van rossum and nick"),
    "dict-lookup-time": ("o(1)", "average time", "amortized", "hash table"),
    "frozen-dataclass": ("dataclass",),
    "gather-errors": ("asyncio", "gather("),
    "csv-rows": ("csv",),
    "pretty-json": ("json",),
    "lock-switch-interval": ("switch interval", "switchinterval", "interpreter lock"),
}


@pytest.fixture(scope="module")
def pages():
    return {topic: fold(page) for topic, page in topics.items()}


def test_it_has_at_least_fifty_questions_with_ids_of_their_own():
    assert len(CASES) >= 50
    assert len({case.id for case in CASES}) == len(CASES)
    assert len({case.question for case in CASES}) == len(CASES)


def test_each_category_has_at_least_seven_questions():
    counts = Counter(case.category for case in CASES)

    assert set(counts) == CATEGORIES
    assert min(counts.values()) >= 7


def test_every_evidence_stands_in_one_paragraph_of_the_corpus():
    paragraphs = [fold(text) for page in topics.values() for text in page.split("\n\n")]

    absent = [
        (case.id, text)
        for case in CASES
        for text in case.evidence
        if not any(fold(text) in paragraph for paragraph in paragraphs)
    ]

    assert absent == []


def test_evidence_is_a_sentence_or_a_good_part_of_one():
    lengths = {text: len(text) for case in CASES for text in case.evidence}

    assert [text for text, length in lengths.items() if not 20 <= length <= 300] == []


def test_the_tagged_topic_holds_some_of_the_evidence(pages):
    strangers = [
        case.id
        for case in CASES
        if case.evidence
        and not any(fold(text) in pages[case.tags["topic"]] for text in case.evidence)
    ]

    assert strangers == []


def test_answerable_questions_have_highly_relevant_evidence_and_a_reference():
    incomplete = [
        case.id
        for case in CASES
        if case.answerable and not (case.references and 2 in case.evidence.values())
    ]

    assert incomplete == []


def test_questions_without_an_answer_have_no_evidence_and_their_subject_is_not_in_the_corpus(pages):
    negatives = {case.id: case for case in CASES if case.category == "negative"}

    assert set(negatives) == set(ABSENT)
    for name, subjects in ABSENT.items():
        assert negatives[name].answerable is False
        assert not negatives[name].evidence
        found = [subject for subject in subjects for page in pages.values() if subject in page]
        assert found == [], name


def test_only_the_negative_category_is_unanswerable():
    assert {case.category for case in CASES if not case.answerable} == {"negative"}


def test_questions_are_not_copied_from_their_evidence():
    copied = [
        (case.id, phrase)
        for case in CASES
        for text in case.evidence
        for phrase in _phrases(case.question) & _phrases(text)
    ]

    assert copied == []


def test_questions_share_less_than_half_of_their_words_with_the_evidence():
    shares = []
    for case in CASES:
        if case.evidence:
            asked = set(content_words(case.question))
            told = set(content_words(" ".join(case.evidence)))
            shares.append(len(asked & told) / len(asked))

    assert sum(shares) / len(shares) < 0.5


def _phrases(text, length=5):
    words = fold(text).replace('"', "").split()
    return {tuple(words[i : i + length]) for i in range(len(words) - length + 1)}
