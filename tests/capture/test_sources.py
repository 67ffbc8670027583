"""Everything an app's own sources hold, and the embedding they hold it by."""

from __future__ import annotations

import asyncio

import pytest
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import InMemoryVectorStore

from misslink.capture import Watcher
from misslink.capture import rank_probe as listing
from misslink.types import Case
from watched_apps import CORPUS, WordCounts, chain_over

FISH = Case(id="fish", question="which fish swims up rivers to spawn")


def watched(app, **options):
    watcher = Watcher(app, **options)
    trace = asyncio.run(watcher.watch(FISH))
    assert trace.error is None
    return watcher, trace


def corpus(app, limit=100, **options):
    watcher, trace = watched(app, **options)
    found = asyncio.run(watcher.corpus(limit))
    if found is not None:
        assert {one.id for one in trace.retrieved} <= {one.id for one in found}
        assert [one.rank for one in found] == list(range(1, len(found) + 1))
    return found


def texts(passages):
    return {passage.id: passage.text for passage in passages}


def in_memory(names, embedding=None):
    store = InMemoryVectorStore(embedding or WordCounts())
    store.add_texts([CORPUS[name] for name in names], ids=list(names))
    return store


class Listed(BaseRetriever):
    """Holds its documents, as BM25Retriever does."""

    docs: list[Document]

    def _get_relevant_documents(self, query, *, run_manager):
        return self.docs[:2]


class Hidden(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        return [Document("somewhere", id="s")]


class Parents(BaseRetriever):
    """Searches small pieces and hands out what they are cut from."""

    vectorstore: InMemoryVectorStore

    def _get_relevant_documents(self, query, *, run_manager):
        return [Document("the whole document", id="parent")]


def test_chroma_is_listed_page_by_page(store, monkeypatch):
    monkeypatch.setattr(listing, "_PAGE", 3)
    found = corpus(chain_over(store.as_retriever(search_kwargs={"k": 2})))
    assert texts(found) == CORPUS
    assert found[3].metadata == {"place": 3, "key": "key-salmon"}


def test_chroma_by_its_metadata_key(store):
    found = corpus(store.as_retriever(), id_key="key")
    assert texts(found) == {f"key-{name}": text for name, text in CORPUS.items()}


@pytest.mark.parametrize(("limit", "known"), [(len(CORPUS), True), (len(CORPUS) - 1, False)])
def test_more_than_the_limit_is_not_listed(store, limit, known):
    assert (corpus(store.as_retriever(), limit=limit) is not None) == known


def test_an_in_memory_store_is_listed():
    assert texts(corpus(chain_over(in_memory(CORPUS).as_retriever()))) == CORPUS


def test_a_retriever_with_its_documents_is_listed_with_the_ids_retrieval_gives():
    documents = [Document(text) for text in CORPUS.values()]
    found = corpus(chain_over(Listed(docs=documents)))
    assert [passage.text for passage in found] == list(CORPUS.values())


def test_several_sources_are_one_corpus_and_the_limit_is_over_all():
    ensemble = pytest.importorskip("langchain_classic.retrievers").EnsembleRetriever
    names = list(CORPUS)
    sources = [
        in_memory(names[:5]).as_retriever(search_kwargs={"k": 2}),
        Listed(docs=[Document(CORPUS[name], id=name) for name in names[3:]]),
    ]
    app = chain_over(ensemble(retrievers=sources, weights=[0.5, 0.5]))
    assert [passage.id for passage in corpus(app)] == names
    assert corpus(app, limit=7) is None


def test_a_source_that_cannot_be_listed_hides_the_whole():
    ensemble = pytest.importorskip("langchain_classic.retrievers").EnsembleRetriever
    sources = [in_memory(CORPUS).as_retriever(), Hidden()]
    assert corpus(ensemble(retrievers=sources, weights=[0.5, 0.5])) is None
    assert corpus(Hidden()) is None


def test_a_store_of_pieces_is_not_the_corpus_of_what_they_are_cut_from():
    assert corpus(Parents(vectorstore=in_memory(CORPUS))) is None


def test_before_any_search_nothing_is_known(store):
    watcher = Watcher(store.as_retriever())
    assert asyncio.run(watcher.corpus(100)) is None
    assert watcher.embeddings() is None


def test_a_store_that_refuses_is_said_and_not_taken_as_empty(own_store, chroma_client, caplog):
    watcher, _ = watched(own_store.as_retriever())
    chroma_client.delete_collection(own_store._collection.name)
    assert asyncio.run(watcher.corpus(100)) is None
    assert "Chroma cannot be listed: " in caplog.text


def test_faiss_is_listed():
    pytest.importorskip("faiss")
    faiss = pytest.importorskip("langchain_community.vectorstores").FAISS
    found = faiss.from_texts(list(CORPUS.values()), WordCounts(), ids=list(CORPUS))
    assert texts(corpus(chain_over(found.as_retriever()))) == CORPUS


class OtherCounts(WordCounts):
    pass


class TestEmbeddings:
    def test_the_stores_own_model(self, store):
        watcher, _ = watched(chain_over(store.as_retriever()))
        assert watcher.embeddings() is store.embeddings

    def test_two_equal_models_are_one_and_two_different_ones_none(self):
        ensemble = pytest.importorskip("langchain_classic.retrievers").EnsembleRetriever

        def over(*models):
            stores = [in_memory(CORPUS, model).as_retriever() for model in models]
            sources = [*stores, Listed(docs=[Document("no vectors", id="n")])]
            return watched(ensemble(retrievers=sources))[0].embeddings()

        one = WordCounts()
        assert over(one, WordCounts()) is one
        assert over(one, OtherCounts()) is None

    def test_no_vectors_no_model(self):
        assert watched(Listed(docs=[Document("a", id="a")]))[0].embeddings() is None


def vectors(app, limit=100):
    watcher, _ = watched(app)
    return asyncio.run(watcher.vectors(limit))


@pytest.mark.parametrize("kind", ["chroma", "in memory"])
def test_the_vectors_that_a_store_keeps_are_those_its_model_makes(kind, store):
    source = store if kind == "chroma" else in_memory(CORPUS)
    found = vectors(source.as_retriever())
    made = WordCounts().embed_documents(list(CORPUS.values()))
    assert list(found) == list(CORPUS.values())
    for ours, model in zip(found.values(), made, strict=True):
        assert list(ours) == pytest.approx(model)
    assert vectors(source.as_retriever(), limit=3) == {}


def test_a_retriever_without_vectors_gives_none():
    assert vectors(Hidden()) == {}


class Around(BaseRetriever):
    """Somebody's own retriever: it searches one store or several, and may add what is in none."""

    stores: list
    added: list = []  # noqa: RUF012 (a field, which pydantic copies)

    def _get_relevant_documents(self, query, *, run_manager):
        found = [one for store in self.stores for one in store.similarity_search(query, k=2)]
        return [*found, *self.added]


def test_the_store_that_somebodys_own_retriever_searches_is_listed():
    store = in_memory(CORPUS)
    app = chain_over(Around(stores=[store]))
    assert texts(corpus(app)) == CORPUS
    watcher, _ = watched(app)
    assert watcher.embeddings() is store.embeddings
    assert set(asyncio.run(watcher.fetch(["basalt", "none"]))) == {"basalt"}


def test_of_a_retriever_over_several_stores_or_with_passages_from_elsewhere_nothing_is_listed():
    names = list(CORPUS)
    several = [in_memory(names[:3]), in_memory(names[3:])]
    assert corpus(chain_over(Around(stores=several))) is None
    elsewhere = [Document("From elsewhere.", id="elsewhere")]
    assert corpus(chain_over(Around(stores=[in_memory(CORPUS)], added=elsewhere))) is None
