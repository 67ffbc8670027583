"""The same retrievers asked again, after the fact."""

from __future__ import annotations

import asyncio
import math

import pytest
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from misslink.capture import Watcher
from misslink.types import Case, Trace
from watched_apps import CORPUS, WordCounts, chain_over, joined

FISH = Case(
    id="fish",
    question="which fish swims up rivers in the north to spawn, and is the dark bark of the tree "
    "a hard rock or four strings of acorns played",
)
OTHER = (
    "a hard rock of quartz, a dark tree with white bark that keeps needles, a violin of strings "
    "and a fish in cold rivers and feldspar tuned in fifths"
)


def deepened(app, wanted, **options):
    async def line():
        watcher = Watcher(app, **options)
        trace = await watcher.watch(FISH)
        return trace, await watcher.deepen(FISH, trace, lambda passage: passage.id in wanted)

    return asyncio.run(line())


def by_hand(question):
    """The whole corpus, by cosine similarity, worked out without a store."""
    embed = WordCounts().embed_query

    def cosine(a, b):
        return sum(x * y for x, y in zip(a, b, strict=True)) / math.hypot(*a) / math.hypot(*b)

    near = {name: cosine(embed(question), embed(text)) for name, text in CORPUS.items()}
    assert len({round(value, 4) for value in near.values()}) == len(near), "ties prove nothing"
    return sorted(near, key=lambda name: -near[name])


def test_missed_passages_get_the_rank_they_truly_have(store):
    order = by_hand(FISH.question)
    wanted = {order[1], order[4], order[6]}
    app = chain_over(store.as_retriever(search_kwargs={"k": 2}))
    trace, deeper = deepened(app, wanted)
    assert [passage.id for passage in trace.retrieved] == order[:2]
    # What was retrieved was not missed.
    assert [(one.id, one.rank, one.text) for one in deeper.deeper] == [
        (order[4], 5, CORPUS[order[4]]),
        (order[6], 7, CORPUS[order[6]]),
    ]
    assert (deeper.depth, deeper.notes) == (100, ())
    assert deeper.retrieved == trace.retrieved
    assert len(deeper.calls) == 1


def test_no_deeper_than_asked(store):
    order = by_hand(FISH.question)
    app = store.as_retriever(search_kwargs={"k": 2})
    _, deeper = deepened(app, {order[3], order[4]}, depth=4)
    assert [(one.id, one.rank) for one in deeper.deeper] == [(order[3], 4)]
    assert deeper.depth == 4


def test_the_filter_of_the_app_stays(store):
    app = store.as_retriever(search_kwargs={"k": 1, "filter": {"place": {"$gte": 5}}})
    _, deeper = deepened(app, set(CORPUS))
    retrieved_too = {"granite", "basalt", "violin"}
    assert {one.id for one in deeper.deeper} < retrieved_too
    assert sorted(one.rank for one in deeper.deeper) == [2, 3]


def test_what_the_app_gave_at_the_call_stays(store):
    retriever = store.as_retriever()
    _, deeper = deepened(
        lambda question: joined(retriever.invoke(question, k=1, filter={"place": {"$lt": 2}})),
        set(CORPUS),
    )
    second = [name for name in by_hand(FISH.question) if name in ("oak", "pine")][1]
    assert [(one.id, one.rank) for one in deeper.deeper] == [(second, 2)]


def test_a_search_of_the_store_itself_with_k_by_position(store):
    order = by_hand(FISH.question)
    app = lambda question: joined(store.similarity_search(question, 2))  # noqa: E731
    _, deeper = deepened(app, {order[5]})
    assert [(one.id, one.rank) for one in deeper.deeper] == [(order[5], 6)]


def test_of_several_calls_the_best_rank(store):
    retriever = store.as_retriever(search_kwargs={"k": 1})

    async def app(question):
        return joined([*await retriever.ainvoke(question), *await retriever.ainvoke(OTHER)])

    _, deeper = deepened(app, {"granite"})
    ranks = [by_hand(query).index("granite") + 1 for query in (FISH.question, OTHER)]
    assert ranks[0] > ranks[1]
    assert [one.rank for one in deeper.deeper] == [ranks[1]]


def test_a_threshold_is_left_out_and_said_so(store):
    app = store.as_retriever(
        search_type="similarity_score_threshold",
        search_kwargs={"k": 4, "score_threshold": 0.5},
    )
    trace, deeper = deepened(app, set(CORPUS))
    assert [passage.id for passage in trace.retrieved] == ["salmon"]
    assert len(deeper.deeper) == 7
    assert any("without its score threshold" in note for note in deeper.notes)
    assert app.search_type == "similarity_score_threshold"
    assert trace.retrieved[0].score >= 0.5  # the relevance it was held against, not the distance


def test_diversity_has_no_deeper_ranks(store):
    trace, deeper = deepened(store.as_retriever(search_type="mmr"), set(CORPUS))
    assert trace.retrieved
    assert (deeper.deeper, deeper.depth) == ((), None)
    assert any("searches by mmr" in note for note in deeper.notes)


def test_a_retriever_with_a_field_k_is_asked_as_a_copy():
    class Listed(BaseRetriever):
        docs: list[Document]
        k: int = 2

        def _get_relevant_documents(self, query, *, run_manager):
            return self.docs[: self.k]

    app = Listed(docs=[Document(text, id=name) for name, text in CORPUS.items()])
    _, deeper = deepened(app, {"violin"})
    assert [(one.id, one.rank) for one in deeper.deeper] == [("violin", 8)]
    assert app.k == 2


def test_a_retriever_that_takes_no_k_is_said_to():
    class Fixed(BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            return [Document("oak", id="oak")]

    _, deeper = deepened(Fixed(), set(CORPUS))
    assert deeper.depth is None
    assert deeper.notes == ("Fixed cannot be asked for more results than it gives",)


def test_a_store_that_fails_when_asked_deeper(own_store, chroma_client):
    retriever = own_store.as_retriever(search_kwargs={"k": 1})

    async def line():
        watcher = Watcher(retriever)
        trace = await watcher.watch(FISH)
        chroma_client.delete_collection(own_store._collection.name)
        return await watcher.deepen(FISH, trace, lambda _: True)

    deeper = asyncio.run(line())
    assert deeper.depth is None
    assert any("asking VectorStoreRetriever deeper failed: " in note for note in deeper.notes)


def test_a_case_that_was_not_watched():
    trace = Trace(case_id="fish", answer="x")
    watcher = Watcher(str.upper)
    deeper = asyncio.run(watcher.deepen(FISH, trace, lambda _: True))
    assert deeper.depth is None
    assert "it was not called in this run" in deeper.notes[0]


def corpus_after(app, asked, **options):
    async def line():
        watcher = Watcher(app, **options)
        before = await watcher.fetch(asked)
        await watcher.watch(FISH)
        after = await watcher.fetch(asked)
        return before, None if after is None else set(after), after

    return asyncio.run(line())


def test_the_store_says_which_ids_it_holds(store):
    app = chain_over(store.as_retriever(search_kwargs={"k": 1}))
    before, known, fetched = corpus_after(app, ["violin", "no-such-id"])
    assert before is None  # nobody has seen the store yet
    assert known == {"violin"}
    assert fetched["violin"].text == CORPUS["violin"]


def test_passages_without_metadata_are_held_too(own_store):
    own_store.add_texts(["A drum is a round box."], ids=["drum"])
    _, known, _ = corpus_after(own_store.as_retriever(), ["drum"])
    assert known == {"drum"}


def test_a_store_other_than_chroma_is_asked_by_id():
    from langchain_core.vectorstores import InMemoryVectorStore

    memory = InMemoryVectorStore(WordCounts())
    memory.add_texts(list(CORPUS.values()), ids=[f"m-{name}" for name in CORPUS])
    assert corpus_after(memory.as_retriever(), ["m-oak", "m-elm"])[1] == {"m-oak"}
    assert corpus_after(memory.as_retriever(), ["m-oak"], id_key="key")[1] is None


def test_by_metadata_key(store):
    app = store.as_retriever(search_kwargs={"k": 1})
    _, known, fetched = corpus_after(app, ["key-violin", "violin"], id_key="key")
    assert known == {"key-violin"}
    assert fetched["key-violin"].text == CORPUS["violin"]


def test_another_store_that_this_case_did_not_need_counts_too(store):
    from langchain_core.vectorstores import InMemoryVectorStore

    other = InMemoryVectorStore(WordCounts())
    other.add_texts(["about law"], ids=["law-1"])
    stores = {"law": other, "nature": store}
    app = lambda question: joined(  # noqa: E731
        stores["law" if "law" in question else "nature"].as_retriever().invoke(question)
    )
    _, known, _ = corpus_after(app, ["violin", "salmon", "law-1", "no-such-id", "violin"])
    assert known == {"violin", "salmon", "law-1"}


def test_the_store_of_another_app_in_the_process_does_not_count(store):
    from langchain_core.vectorstores import InMemoryVectorStore

    other = InMemoryVectorStore(WordCounts())
    other.add_texts(["about law"], ids=["law-1"])
    _, known, _ = corpus_after(chain_over(store.as_retriever()), ["violin", "law-1"])
    assert known == {"violin"}
    assert other.get_by_ids(["law-1"])


LATER = {}  # by name, as a module of an app may hold its stores


def test_a_store_that_the_apps_function_names_counts(store):
    from langchain_core.vectorstores import InMemoryVectorStore

    LATER["law"] = InMemoryVectorStore(WordCounts())
    LATER["law"].add_texts(["about law"], ids=["law-1"])

    class App:
        def __init__(self, retriever):
            self.retriever = retriever

        def __call__(self, question):
            return joined(self.search(question))

        def search(self, question):
            return (LATER["law"] if "law" in question else self).retriever.invoke(question)

    _, known, _ = corpus_after(App(store.as_retriever()), ["law-1", "violin"])
    LATER.clear()
    assert known == {"violin", "law-1"}


@pytest.mark.parametrize("has_ids", [True, False])
def test_a_store_is_asked_by_id_only_if_it_knows_the_ids_of_its_passages(store, has_ids):
    class Anonymous(BaseRetriever):
        vectorstore: object

        def _get_relevant_documents(self, query, *, run_manager):
            found = self.vectorstore.similarity_search(query, k=1)
            named = "other-id" if has_ids else None
            return [Document(document.page_content, id=named) for document in found]

    # Documents without an id have that of the store's passage with the same text.
    known = corpus_after(Anonymous(vectorstore=store), ["violin"])[1]
    assert known == (None if has_ids else {"violin"})


def test_a_retriever_that_keeps_its_passages_to_itself_says_nothing():
    class Fixed(BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            return [Document("oak", id="oak")]

    assert corpus_after(Fixed(), ["oak"])[1:] == (None, None)


def test_a_missed_passage_has_the_score_that_its_store_gives_it(store):
    retriever = store.as_retriever(search_kwargs={"k": 1})
    deeper = deepened(retriever, CORPUS)[1]
    found = store.similarity_search_with_score(FISH.question, k=len(CORPUS))
    given = {document.id: score for document, score in found}
    assert deeper.deeper
    for passage in deeper.deeper:
        assert passage.score == pytest.approx(given[passage.id])
