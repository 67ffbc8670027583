"""Searches over a corpus in memory, rerankers, and the corpus cut another way."""

import asyncio
import logging

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_text_splitters import RecursiveCharacterTextSplitter

from misslink.embedding import Embedder
from misslink.errors import InputError
from misslink.linking.corpus_search import (
    DenseSearch,
    LexicalSearch,
    fuse_rankings,
    top_places,
)
from misslink.linking.whatif.search import (
    Chunking,
    open_reranker,
    rebuild_documents,
    rechunk,
    with_evidence_texts,
)
from misslink.text.normalization import stems
from misslink.types import Case, Passage, Reason
from town import Hashed

TEXTS = [
    "The ferry to Holm leaves at seven from the old harbour.",
    "The ferry is red.",
    "Bakers bake bread, and the bakery opens early.",
    "Nothing here.",
    "Ferries, ferries, ferries: the harbour is full of ferries to Holm.",
]


def rank(search, questions, depth=10):
    return asyncio.run(search.rank(questions, depth))


def test_bm25_orders_as_the_formula_of_robertson_and_zaragoza_does():
    asked = "When does the ferry leave for Holm?"
    rows = [stems(text) for text in TEXTS]
    mean = sum(map(len, rows)) / len(rows)
    scores = []
    for row in rows:
        total = 0.0
        for word in stems(asked):
            holders = sum(word in other for other in rows)
            idf = np.log(1 + (len(rows) - holders + 0.5) / (holders + 0.5))
            count = row.count(word)
            total += idf * count / (count + 1.5 * (1 - 0.75 + 0.75 * len(row) / mean))
        scores.append(total)
    expected = [at for at in np.argsort(-np.array(scores), kind="stable") if scores[at] > 0]
    assert len(expected) >= 3
    assert rank(LexicalSearch(TEXTS), [asked]) == [expected]


def test_bm25_finds_nothing_where_no_word_is_shared_and_in_no_corpus():
    assert rank(LexicalSearch(TEXTS), ["Zebras?", "the and of"]) == [[], []]
    assert rank(LexicalSearch([]), ["ferry"]) == [[]]
    assert rank(LexicalSearch(["", "..."]), ["ferry"]) == [[]]


def test_dense_orders_by_cosine():
    model = Hashed()
    asked = "the ferry to Holm"
    vectors = np.array([model.one(text) for text in TEXTS])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = vectors @ np.array(model.one(asked))
    found = rank(DenseSearch(TEXTS, Embedder(model)), [asked], 3)
    assert found == [np.argsort(-cosines, kind="stable")[:3].tolist()]


def test_the_corpus_is_embedded_once():
    model = Hashed()
    dense = DenseSearch(TEXTS, Embedder(model))
    rank(dense, ["ferry"])
    rank(dense, ["bakery"])
    assert model.calls == 1


def test_diversity_puts_a_repeated_passage_behind_another_one():
    # By hand, for the second place: the copy (0.82 - 1) / 2, the bakery (0.5 - 0.41) / 2.
    texts = ["red ferry holm", "red ferry holm", "ferry bakery", "museum garden"]
    dense = DenseSearch(texts, Embedder(Hashed()))
    assert rank(dense, ["red ferry"], 2) == [[0, 1]]
    assert asyncio.run(dense.diverse(["red ferry"], 2, 4)) == [[0, 2]]


def test_fusion_adds_the_reciprocal_ranks_by_hand():
    # 5: 1/61 + 1/62; 6: 1/62 + 1/61, the same, and 5 is first in the corpus; 7: 1/63.
    assert fuse_rankings([[5, 6, 7], [6, 5]], 3) == [5, 6, 7]
    assert fuse_rankings([[1, 2], [3, 2]], 1) == [2]
    assert fuse_rankings([[], []], 5) == []


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0]), max_size=30), st.integers(0, 12))
def test_the_best_are_those_of_a_stable_sort(scores, depth):
    array = np.array(scores)
    expected = np.argsort(-array, kind="stable")[:depth].tolist() if scores else []
    assert top_places(array, depth) == expected


@pytest.mark.parametrize("search", [LexicalSearch([]), DenseSearch([], Embedder(Hashed()))])
def test_no_question_has_no_ranking(search):
    assert rank(search, []) == []


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
    ("case", "code"),
    [
        (Case(id="c", question="q", relevant=["a"]), "longer_than_chunks"),
        (Case(id="c", question="q", relevant=["z"]), "needed_without_text"),
        (Case(id="c", question="q", relevant_any=[["a"], ["b"]]), "alternatives_unchunkable"),
    ],
)
def test_a_case_that_cannot_be_asked_by_text_says_why(case, code):
    said = with_evidence_texts(case, {"a": "x" * 200, "b": "short"}, 100)
    assert said == Reason(code=code)


def test_a_case_that_needs_nothing_has_no_text_to_ask_for():
    assert (
        with_evidence_texts(Case(id="c", question="q", relevant={"a": 0}), {"a": "text"}, 100)
        is None
    )


FERRY = ["The ferry leaves at seven.", "Bread.", "The museum is closed on Mondays."]
COMPRESSOR = """
from langchain_core.documents.compressor import BaseDocumentCompressor

class Shortest(BaseDocumentCompressor):
    def compress_documents(self, documents, query, callbacks=None):
        return sorted(documents, key=lambda one: len(one.page_content))[:2]

class Failing(BaseDocumentCompressor):
    def compress_documents(self, documents, query, callbacks=None):
        raise RuntimeError("the server is gone")

class Forgetful(BaseDocumentCompressor):
    def compress_documents(self, documents, query, callbacks=None):
        return [one.model_copy(update={"metadata": {}}) for one in documents]

shortest, failing, forgetful, nothing = Shortest(), Failing(), Forgetful(), 5
"""


@pytest.fixture
def own(tmp_path, monkeypatch, imports_forgotten):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(COMPRESSOR, encoding="utf-8")


def order(spec, texts=FERRY):
    return asyncio.run(open_reranker(spec).order("When does the ferry leave?", texts))


@pytest.mark.usefixtures("own")
def test_a_langchain_compressor_orders_and_may_leave_out():
    assert order("mine.py:shortest") == [1, 0]
    assert open_reranker("mine.py:shortest").name == "mine.py:shortest"


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("mine.py:failing", "failed: RuntimeError: the server is gone"),
        ("mine.py:forgetful", "without the metadata"),
        ("mine.py:nothing", "no reranker"),
        ("mine.py:shortst", "did you mean 'shortest'"),
    ],
)
def test_what_does_not_rerank_is_told_in_one_sentence(spec, said):
    with pytest.raises(InputError, match=said):
        order(spec)


@pytest.fixture(scope="module")
def cross_encoder(tmp_path_factory):
    """A real cross-encoder, tiny and untrained, as its folder."""
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("sentence_transformers")
    folder = tmp_path_factory.mktemp("cross-encoder")
    words = {word for text in [*FERRY, "When does ?"] for word in text.lower().split()}
    letters = "abcdefghijklmnopqrstuvwxyz.?"
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *sorted(words)]
    (folder / "vocab.txt").write_text("\n".join(vocabulary), encoding="utf-8")
    transformers.set_seed(1)
    config = transformers.BertConfig(
        vocab_size=len(vocabulary), hidden_size=16, num_hidden_layers=1,
        num_attention_heads=2, intermediate_size=16, num_labels=1, initializer_range=1.0,
    )  # fmt: skip
    transformers.BertForSequenceClassification(config).save_pretrained(folder)
    transformers.BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
    return folder


@pytest.mark.slow
def test_a_cross_encoder_orders_by_its_own_scores(cross_encoder):
    from sentence_transformers import CrossEncoder

    model = CrossEncoder(str(cross_encoder), device="cpu")
    ranked = model.rank("When does the ferry leave?", FERRY)
    found = order(str(cross_encoder))
    assert found == [one["corpus_id"] for one in ranked]
    assert order(str(cross_encoder), []) == []


@pytest.mark.slow
def test_a_model_that_is_nowhere_is_told_in_one_sentence(tmp_path):
    with pytest.raises(InputError, match="no cross-encoder could be loaded from"):
        open_reranker(str(tmp_path / "nowhere"))


@pytest.mark.usefixtures("own")
def test_a_long_message_is_cut_at_a_word(tmp_path):
    long = COMPRESSOR.replace("the server is gone", "servers " * 60)
    (tmp_path / "mine.py").write_text(long, encoding="utf-8")
    with pytest.raises(InputError, match=r"failed: RuntimeError: (servers )+\.\.\.$"):
        order("mine.py:failing")


@pytest.mark.slow
def test_the_hubs_own_messages_stay_out_of_the_way(tmp_path, caplog):
    with pytest.raises(InputError):
        open_reranker("nobody/has-this-model")
    assert not caplog.records
    assert logging.getLogger("huggingface_hub").level != logging.CRITICAL
