"""The demo's index with a real Chroma; a stand-in for MiniLM, so that no weights are needed."""

from importlib.util import find_spec

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

pytestmark = pytest.mark.skipif(not find_spec("chromadb"), reason="needs misslink[langchain]")


class LetterCounts(Embeddings):
    """The embedding of a text is how often it has each letter."""

    def __init__(self):
        self.embedded = 0

    def embed_documents(self, texts):
        self.embedded += len(texts)
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text):
        return [text.lower().count(letter) + 0.01 for letter in "abcdefghijklmnopqrstuvwxyz"]


class Interrupted(LetterCounts):
    """Dies after the first batch, as a killed build does."""

    def embed_documents(self, texts):
        if self.embedded:
            raise KeyboardInterrupt
        return super().embed_documents(texts)


@pytest.fixture
def few(app, monkeypatch):
    texts = ["a" * n + "b" * (41 - n) for n in range(1, 41)]
    documents = [
        Document(id=f"letters#{n}", page_content=text, metadata={"topic": "letters"})
        for n, text in enumerate(texts, start=1)
    ]
    monkeypatch.setattr(app, "split_reference", lambda: documents)
    return documents


def test_the_index_holds_every_passage_with_its_id_and_topic(app, few, tmp_path):
    store = app.open_index(tmp_path, LetterCounts())
    found = store.similarity_search("aaa" + "b" * 38, k=1)[0]

    assert len(store.get()["ids"]) == len(few)
    assert (found.id, found.metadata["topic"]) == ("letters#3", "letters")


def test_a_second_build_embeds_nothing(app, few, tmp_path):
    app.open_index(tmp_path, LetterCounts())
    second = LetterCounts()

    store = app.open_index(tmp_path, second)

    assert second.embedded == 0
    assert len(store.get()["ids"]) == len(few)


def test_another_splitter_gets_an_index_of_its_own(app, few, tmp_path, monkeypatch):
    app.open_index(tmp_path, LetterCounts())
    monkeypatch.setattr(app, "SPLITTER", {"chunk_size": 100, "chunk_overlap": 0})
    second = LetterCounts()

    app.open_index(tmp_path, second)

    assert second.embedded == len(few)
    assert len(list(tmp_path.glob("index-*"))) == 2


def test_another_corpus_gets_an_index_of_its_own(app, few, tmp_path, monkeypatch):
    app.open_index(tmp_path, LetterCounts())
    monkeypatch.setattr(app, "_topics", lambda: {"letters": "other text"})
    second = LetterCounts()

    app.open_index(tmp_path, second)

    assert second.embedded == len(few)


def test_an_interrupted_build_is_not_taken_for_an_index(app, few, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        app.open_index(tmp_path, Interrupted())
    assert list(tmp_path.glob("index-*")) == []

    store = app.open_index(tmp_path, LetterCounts())

    assert len(store.get()["ids"]) == len(few)


def test_what_a_killed_build_left_behind_is_not_taken_for_an_index(app, few, tmp_path):
    app.open_index(tmp_path, LetterCounts())
    (home,) = tmp_path.glob("index-*")
    home.rename(tmp_path / f"{home.name}.left.partial")
    second = LetterCounts()

    app.open_index(tmp_path, second)

    assert second.embedded == len(few)


def test_the_slower_of_two_builds_uses_the_index_of_the_faster(app, few, tmp_path):
    class Overtaken(LetterCounts):
        def embed_documents(self, texts):
            if not list(tmp_path.glob("index-*[!l]")):
                app.open_index(tmp_path, LetterCounts())
            return super().embed_documents(texts)

    store = app.open_index(tmp_path, Overtaken())

    assert len(store.get()["ids"]) == len(few)
    assert len(list(tmp_path.glob("index-*"))) == 1


@pytest.mark.usefixtures("few")
def test_a_retriever_can_be_asked_deeper(app, tmp_path):
    retriever = app.open_index(tmp_path, LetterCounts()).as_retriever(search_kwargs={"k": 3})

    assert len(retriever.invoke("aaa")) == 3
    assert len(retriever.invoke("aaa", k=20)) == 20
