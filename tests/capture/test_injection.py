"""Passages handed to real apps in place of what their retrievers would find."""

from __future__ import annotations

import asyncio
import threading

import pytest
from langchain_core.documents import Document
from langchain_core.example_selectors import SemanticSimilarityExampleSelector
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnableParallel
from langchain_core.tools import create_retriever_tool
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from misslink.capture import Watcher
from misslink.capture.hooks import build_app, inject_passages, retriever_parameter
from misslink.capture.injection import InjectedSearch, Injection
from misslink.errors import InputError
from misslink.types import Case, Passage
from watched_apps import ANSWER, CORPUS, WordCounts, chain_over, joined, model, tool_caller

FISH = Case(id="fish", question="which fish swims up rivers to spawn")
ROCKS = tuple(
    Passage(id=name, text=CORPUS[name], rank=at, metadata={"at": at})
    for at, name in enumerate(("basalt", "granite"), 1)
)


def replayed(app, passages=ROCKS, case=FISH, **options):
    """The trace of an app that is handed the passages, and how often it asked."""

    async def run():
        with inject_passages(passages, id_key=options.get("id_key")) as injection:
            return await Watcher(app, **options).watch(case), injection.asked

    return asyncio.run(run())


def ids(trace):
    return [passage.id for passage in trace.retrieved]


class Overriding(BaseRetriever):
    """Overrides both ways to be asked, and asks an inner one."""

    inner: BaseRetriever

    def _get_relevant_documents(self, query, *, run_manager):
        raise AssertionError("never asked this way")

    def invoke(self, query, config=None, **kwargs):
        return self.inner.invoke(query, config)

    async def ainvoke(self, query, config=None, **kwargs):
        return await self.inner.ainvoke(query, config)


class Nested(BaseRetriever):
    inner: BaseRetriever

    def _get_relevant_documents(self, query, *, run_manager):
        return self.inner.invoke(query)[:1]


class OldFashioned(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        return [Document(CORPUS["oak"], id="oak")]

    def get_relevant_documents(self, query):
        return self.invoke(query)


def apps(store):
    retriever = store.as_retriever(search_kwargs={"k": 3})
    overriding = Overriding(inner=retriever)
    tool = create_retriever_tool(retriever, "look_up", "Look it up.")
    from langchain.agents import create_agent
    from langchain_classic.retrievers import EnsembleRetriever

    ensemble = EnsembleRetriever(retrievers=[retriever, Nested(inner=retriever)])

    async def asynchronous(question):
        found = await retriever.ainvoke(question)
        return await model().ainvoke(joined(found))

    return {
        "chain": chain_over(retriever),
        "overriding": chain_over(overriding),
        "asked by keyword": lambda question: model().invoke(
            joined(overriding.invoke(query=question, config={}))
        ),
        "nested": chain_over(Nested(inner=retriever)),
        "ensemble": chain_over(ensemble),
        "retried": chain_over(retriever.with_retry()),
        "agent": create_agent(tool_caller(("look_up", "fish")), [tool]),
        "closure": lambda question: model().invoke(joined(retriever.invoke(question))),
        "asynchronous": asynchronous,
        "batch": lambda question: model().invoke(joined(retriever.batch([question])[0])),
        "branches": RunnableParallel(answer=chain_over(retriever)) | RunnableLambda(
            lambda both: both["answer"]
        ),
        "before 1.0": lambda question: model().invoke(
            joined(OldFashioned().get_relevant_documents(question))
        ),
        "store": lambda question: model().invoke(joined(store.similarity_search(question, k=1))),
        "diverse": lambda question: model().invoke(
            joined(store.max_marginal_relevance_search(question))
        ),
    }  # fmt: skip


KINDS = (
    "chain", "overriding", "asked by keyword", "nested", "ensemble", "retried", "agent", "closure",
    "asynchronous", "batch", "branches", "before 1.0", "store", "diverse",
)  # fmt: skip


@pytest.fixture(scope="module")
def app_of_kind(store):
    return apps(store)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_an_app_answers_from_what_it_is_handed(app_of_kind, kind):
    trace, asked = replayed(app_of_kind[kind])
    assert trace.error is None
    assert ids(trace) == ["basalt", "granite"]
    assert trace.prompted == ("basalt", "granite")
    assert [passage.metadata["at"] for passage in trace.retrieved] == [1, 2]
    assert trace.answer == ANSWER
    assert asked == 1
    assert [call.nested for call in trace.calls] == [False]


def test_callbacks_name_the_retriever_that_was_replaced(store):
    trace, _ = replayed(chain_over(store.as_retriever()))
    assert [call.retriever for call in trace.calls] == ["VectorStoreRetriever"]
    assert trace.calls[0].query == FISH.question


def test_cases_under_way_at_once_get_each_their_own(store):
    chain = chain_over(store.as_retriever())
    watcher = Watcher(chain)
    started = asyncio.Barrier(12)

    async def one(number):
        mine = Passage(id=f"p{number}", text=f"Passage {number} says so.", rank=1)
        await started.wait()
        with inject_passages([mine]):
            trace = await watcher.watch(Case(id=str(number), question=f"What about {number}?"))
        return [passage.text for passage in trace.retrieved]

    async def all_of_them():
        return await asyncio.gather(*map(one, range(12)))

    assert asyncio.run(all_of_them()) == [[f"Passage {n} says so."] for n in range(12)]


def test_beside_an_injection_others_search_as_ever(store):
    retriever = store.as_retriever(search_kwargs={"k": 1})

    async def run():
        async def outside():
            return await retriever.ainvoke(FISH.question)

        waiting = asyncio.create_task(outside())  # its context is from before
        with inject_passages(ROCKS):
            inside = retriever.invoke(FISH.question)
            return inside, await waiting

    inside, outside = asyncio.run(run())
    assert [document.id for document in inside] == ["basalt", "granite"]
    assert [document.id for document in outside] == ["salmon"]


def test_afterwards_every_class_is_as_it_was(store):
    watched = [BaseRetriever, Overriding, OldFashioned, VectorStore, type(store)]
    before = [dict(vars(one)) for one in watched]
    replayed(chain_over(store.as_retriever()))
    assert [dict(vars(one)) for one in watched] == before


def test_an_app_may_write_into_its_documents():
    retriever = OldFashioned()

    def app(question):
        for document in retriever.invoke(question):
            document.metadata["at"] = "spoilt"
        found = retriever.invoke(question)
        return " ".join(str(document.metadata["at"]) for document in found)

    trace, asked = replayed(app)
    assert trace.answer == "1 2"
    assert asked == 2


def test_scores_stay_with_their_places_in_the_list(store):
    scored = [
        one.model_copy(update={"score": s}) for one, s in zip(ROCKS, (0.2, None), strict=True)
    ]

    def app(question):
        return str([score for _, score in store.similarity_search_with_score(question)])

    assert replayed(app, scored)[0].answer == "[0.2, 0.2]"
    assert replayed(app)[0].answer == "[0.0, 0.0]"

    def relevant(question):
        return str([s for _, s in store.similarity_search_with_relevance_scores(question)])

    assert replayed(relevant)[0].answer == "[1.0, 1.0]"


def test_ids_lie_where_the_app_keeps_them(store):
    chain = chain_over(store.as_retriever())
    trace, _ = replayed(chain, id_key="key")
    assert ids(trace) == ["basalt", "granite"]
    assert [passage.metadata["key"] for passage in trace.retrieved] == ["basalt", "granite"]


def test_no_passages_are_an_empty_list(store):
    trace, asked = replayed(chain_over(store.as_retriever()), [])
    assert (ids(trace), asked) == ([], 1)


def test_few_shot_examples_are_looked_up_as_ever(store):
    examples = InMemoryVectorStore(WordCounts())
    selector = SemanticSimilarityExampleSelector(vectorstore=examples, k=1)
    selector.add_example({"question": "which fish swims", "answer": "an example"})

    def app(question):
        example = selector.select_examples({"question": question})[0]
        found = store.similarity_search(question)
        return f"{example['answer']}, {len(found)} passages"

    trace, asked = replayed(app)
    assert (trace.answer, asked, ids(trace)) == ("an example, 2 passages", 1, ["basalt", "granite"])


def test_an_app_with_threads_of_its_own_is_seen_not_to_ask(store):
    retriever = store.as_retriever(search_kwargs={"k": 1})

    def app(question):
        found = []
        thread = threading.Thread(target=lambda: found.extend(retriever.invoke(question)))
        thread.start()
        thread.join()
        return found[0].page_content

    trace, asked = replayed(app)
    assert (trace.answer, asked) == (CORPUS["salmon"], 0)


class TestFactories:
    def test_what_takes_a_retriever_is_known_by_its_signature(self):
        def by_name(retriever): ...
        def by_class(search: BaseRetriever): ...
        def by_text(search: "langchain_core.retrievers.BaseRetriever", k=3): ...  # noqa: UP037, F821
        def keyword(*, retriever, verbose=False): ...
        def optional(retriever=None): ...
        def maybe(search: BaseRetriever | None = None, k=3): ...
        def maybe_by_text(search: "BaseRetriever | None" = None): ...  # noqa: UP037
        def app(question): ...
        def two(retriever, llm): ...
        def app_of_two(question, retriever=None): ...
        def app_with_default(question="", retriever=None): ...

        takes = (by_name, by_class, by_text, keyword, optional, maybe, maybe_by_text)
        assert [one.__name__ for one in takes if not retriever_parameter(one)] == []
        others = (app, two, app_of_two, app_with_default, type(by_name), model())
        assert not any(map(retriever_parameter, others))

    def test_what_it_is_given_may_be_called_as_a_function(self):
        def build(retriever=None):
            return lambda question: retriever(question)[0].page_content

        trace, asked = replayed(build_app(build))
        assert (trace.answer, asked) == (CORPUS["basalt"], 1)

    def test_it_builds_an_app_that_is_handed_the_passages(self):
        def build(*, retriever):
            return lambda question: retriever.invoke(question)[0].page_content

        trace, asked = replayed(build_app(build))
        assert (trace.answer, asked, ids(trace)) == (CORPUS["basalt"], 1, ["basalt", "granite"])

    def test_an_app_is_left_as_it_is(self):
        def app(question): ...

        assert build_app(app) is app

    def test_asked_in_a_thread_of_its_own_it_says_why_it_cannot_answer(self):
        def build(retriever):
            def app(question):
                raised = []

                def ask():
                    try:
                        retriever.invoke(question)
                    except RuntimeError as error:
                        raised.append(error)

                thread = threading.Thread(target=ask)
                thread.start()
                thread.join()
                raise raised[0]

            return app

        trace, asked = replayed(build_app(build))
        assert asked == 0
        assert "copy_context" in trace.error

    def test_one_that_fails_is_the_users_to_mend(self):
        def build(retriever):
            raise KeyError("llm")

        def build_nothing(retriever):
            return None

        with pytest.raises(InputError, match="raised KeyError when it was given a retriever"):
            build_app(build)
        with pytest.raises(InputError, match=r"build_nothing builds is a NoneType, not an app"):
            build_app(build_nothing)


def passages(*names):
    return tuple(
        Passage(id=name, text=f"Text of {name}.", rank=at) for at, name in enumerate(names, 1)
    )


SEARCHES = (
    InjectedSearch("fish", "Words", passages("a", "b")),
    InjectedSearch("fish", "Meaning", passages("c")),
    InjectedSearch("rock", "Words", ()),
)


def found(injection, query, name):
    return "".join(one.id for one in injection.documents(query, name))


class TestSeveralSearches:
    def test_each_is_known_by_its_query_and_whom_it_asks_in_any_order(self):
        handed = Injection(passages("z"), searches=SEARCHES)
        assert found(handed, "rock", "Words") == ""
        assert found(handed, "fish", "Meaning") == "c"
        assert found(handed, "fish", "Words") == "ab"
        assert found(handed, "fish", "Words") == "ab", "asked once more it finds the same"
        assert handed.asked == 4

    def test_else_by_the_query_then_by_whom_it_asks_then_by_its_place(self):
        handed = Injection(passages("z"), searches=SEARCHES)
        assert found(handed, "fish", "renamed") == "ab"
        assert found(handed, "rephrased", "Meaning") == "c"
        assert found(handed, "rephrased", "renamed") == ""
        assert found(handed, "one more", "renamed") == "z", "more searches than there were"

    def test_two_equal_searches_are_two(self):
        handed = Injection(passages("z"), searches=(SEARCHES[0], SEARCHES[0]))
        queries = ("fish", "other", "third")
        assert [found(handed, query, "none") for query in queries] == ["ab", "ab", "z"]

    def test_a_real_app_that_searches_twice_gets_both_lists(self, store):
        retriever = store.as_retriever(search_kwargs={"k": 2})

        def twice(question):
            kinds = (question, "which stone is grey")
            kept = [one for kind in kinds for one in retriever.invoke(kind)]
            kept += store.similarity_search("a tree", k=1)
            return "|".join(one.id for one in kept)

        async def run(searches):
            watcher = Watcher(RunnableLambda(twice))
            with inject_passages(passages("z"), searches=searches):
                return await watcher.watch(FISH)

        before = asyncio.run(Watcher(RunnableLambda(twice)).watch(FISH))
        own = [
            InjectedSearch(call.query, call.retriever, passages(*call.passages))
            for call in before.calls
            if not call.nested
        ]
        assert len(own) == 3
        again = asyncio.run(run(own))
        assert again.answer == before.answer
        assert [call.passages for call in again.calls] == [call.passages for call in before.calls]
        assert asyncio.run(run(())).answer == "z|z|z"
