from __future__ import annotations

import asyncio
import logging

import pytest

from misslink.errors import InputError
from misslink.linking.whatif.search import open_reranker

TEXTS = ["The ferry leaves at seven.", "Bread.", "The museum is closed on Mondays."]
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


def order(spec, texts=TEXTS):
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
    words = {word for text in [*TEXTS, "When does ?"] for word in text.lower().split()}
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
    ranked = model.rank("When does the ferry leave?", TEXTS)
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
