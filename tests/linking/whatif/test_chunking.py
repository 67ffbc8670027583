from __future__ import annotations

import pytest
from langchain_core.documents import Document
from langchain_text_splitters import RecursiveCharacterTextSplitter

from misslink.errors import InputError
from misslink.linking.whatif.search import Chunking, rebuild_documents, rechunk, with_evidence_texts
from misslink.types import Case, Passage

TEXT = " ".join(f"Sentence {n} says something about ward {7 * n}." for n in range(60))


def split(text, size, overlap, *, source="a.md", start_index=False):
    splitter = RecursiveCharacterTextSplitter(
        chunk_size=size, chunk_overlap=overlap, add_start_index=start_index
    )
    metadata = {} if source is None else {"source": source}
    pieces = splitter.split_documents([Document(page_content=text, metadata=metadata)])
    return [
        Passage(id=f"{source}-{at}", text=one.page_content, rank=1, metadata=one.metadata)
        for at, one in enumerate(pieces)
    ]


@pytest.mark.parametrize(
    ("text", "size", "overlap"), [("600/0", 600, 0), ("400 / 50", 400, 50), ("80", 80, 0)]
)
def test_a_chunking_is_a_size_and_an_overlap(text, size, overlap):
    assert Chunking.parse(text) == Chunking(size, overlap)


@pytest.mark.parametrize("text", ["", "0/0", "100/100", "a/b", "100/", "-5/0", "1/2/3"])
def test_what_is_no_chunking_is_refused_in_one_sentence(text):
    with pytest.raises(InputError, match="chunking"):
        Chunking.parse(text)


def test_overlapping_chunks_of_a_source_become_its_document_again():
    pieces = split(TEXT, 300, 60)
    assert len(pieces) > 8
    (whole,) = rebuild_documents(pieces)
    assert whole.text.split() == TEXT.split()


def test_where_nothing_is_shared_a_document_ends():
    paragraphs = f"{TEXT}\n\n{TEXT[::-1]}"
    first, second = rebuild_documents(split(paragraphs, 300, 60))
    assert (first.text, second.text) == (TEXT, TEXT[::-1])


def test_chunks_without_overlap_are_put_together_by_their_start_index():
    (whole,) = rebuild_documents(split(TEXT, 300, 0, start_index=True))
    assert whole.text.split() == TEXT.split()


def test_chunks_out_of_order_are_put_in_order_by_their_start_index():
    (whole,) = rebuild_documents(split(TEXT, 300, 0, start_index=True)[::-1])
    assert whole.text.split() == TEXT.split()


def test_without_overlap_or_places_each_chunk_is_a_document():
    pieces = split(TEXT, 300, 0)
    assert [one.text for one in rebuild_documents(pieces)] == [one.text for one in pieces]


def test_chunks_of_two_sources_are_not_joined_although_their_texts_meet():
    first, second = split(TEXT, 300, 60)[:2]
    other = second.model_copy(update={"metadata": {"source": "b.md"}})
    assert len(rebuild_documents([first, other])) == 2


def test_a_chunk_that_lies_within_the_one_before_adds_nothing():
    long, part = "The ferry to Holm leaves at seven. It is red.", "It is red."
    first = Passage(id="a", text=long, rank=1, metadata={"source": "s", "start_index": 0})
    second = Passage(id="b", text=part, rank=2, metadata={"source": "s", "start_index": 35})
    (whole,) = rebuild_documents([first, second])
    assert whole.text == long


def test_the_new_chunks_are_those_of_langchains_splitter_over_the_documents():
    wholes = rebuild_documents(split(TEXT, 300, 60))
    again = [one.text for one in rechunk(wholes, Chunking(500, 0))]
    splitter = RecursiveCharacterTextSplitter(chunk_size=500, chunk_overlap=0)
    assert again == splitter.split_text(wholes[0].text)
    assert len({one.id for one in rechunk(wholes, Chunking(500, 0))}) == len(again)


def test_a_case_by_id_asks_for_the_text_of_its_passage():
    case = Case(id="c", question="q", relevant={"a": 2, "b": 0})
    asked = with_evidence_texts(case, {"a": "The ferry is red.", "b": "Other."}, 100)
    assert isinstance(asked, Case)
    assert (asked.evidence, asked.relevant) == ({"The ferry is red.": 2}, {})


def test_a_case_with_evidence_stays_as_it_is():
    case = Case(id="c", question="q", evidence=["The ferry is red."])
    assert with_evidence_texts(case, {}, 5) is case


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (Case(id="c", question="q", relevant=["a"]), "longer than the new chunks"),
        (Case(id="c", question="q", relevant=["z"]), "no text"),
        (Case(id="c", question="q", relevant_any=[["a"], ["b"]]), "alternative"),
    ],
)
def test_a_case_that_cannot_be_asked_by_text_says_why(case, reason):
    said = with_evidence_texts(case, {"a": "x" * 200, "b": "short"}, 100)
    assert isinstance(said, str)
    assert reason in said


def test_a_case_that_needs_nothing_has_no_text_to_ask_for():
    assert (
        with_evidence_texts(Case(id="c", question="q", relevant={"a": 0}), {"a": "text"}, 100)
        is None
    )
