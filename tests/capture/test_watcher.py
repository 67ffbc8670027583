"""Real apps, watched."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import re
import threading
from typing import TypedDict

import pytest
from langchain_core.callbacks import BaseCallbackHandler, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnableParallel, chain
from langchain_core.tools import create_retriever_tool, tool
from langchain_core.vectorstores import InMemoryVectorStore

import misslink
from misslink.capture import Watcher, watcher
from misslink.retrieval import shown_shares
from misslink.types import Case
from watched_apps import ANSWER, CORPUS, WordCounts, chain_over, joined, model, tool_caller

FISH = Case(id="fish", question="which fish swims up rivers to spawn")


def watch(app, case=FISH, **options):
    return asyncio.run(Watcher(app, **options).watch(case))


def ids(trace):
    return [passage.id for passage in trace.retrieved]


class Fixed(BaseRetriever):
    """Finds what it is told to."""

    found: list[Document]

    def _get_relevant_documents(self, query, *, run_manager):
        return list(self.found)


class Failing(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        raise ConnectionError("index is down")


def documents(*names):
    return [Document(CORPUS[name], id=name) for name in names]


class TestKindsOfApp:
    def test_chain_over_chroma(self, store):
        trace = watch(chain_over(store.as_retriever(search_kwargs={"k": 3})))
        nearest = store.similarity_search_with_score(FISH.question, k=3)
        assert ids(trace) == [document.id for document, _ in nearest]
        assert [passage.score for passage in trace.retrieved] == [score for _, score in nearest]
        assert [passage.rank for passage in trace.retrieved] == [1, 2, 3]
        assert trace.retrieved[0].metadata == {"place": 3, "key": "key-salmon"}
        assert trace.prompted == tuple(ids(trace))
        assert (trace.answer, trace.error, trace.notes) == (ANSWER, None, ())
        assert trace.latency_s > 0
        (call,) = trace.calls
        assert (call.query, call.retriever) == (FISH.question, "VectorStoreRetriever")
        assert (call.passages, call.nested) == (tuple(ids(trace)), False)

    def test_retriever_alone_has_no_answer_and_no_error(self, store):
        trace = watch(store.as_retriever(search_kwargs={"k": 2}))
        assert len(trace.retrieved) == 2
        assert (trace.answer, trace.error, trace.prompted, trace.notes) == (None, None, None, ())

    def test_code_that_ignores_its_config_is_seen(self, store):
        retriever = store.as_retriever()
        llm = model()

        @chain
        def app(question):
            return llm.invoke(joined(retriever.invoke(question)))

        trace = watch(app)
        assert ids(trace)[0] == "salmon"
        assert len(trace.prompted) == 4
        assert trace.answer == ANSWER

    def test_async_callable(self, store):
        retriever = store.as_retriever(search_kwargs={"k": 1})

        async def app(question):
            found = await retriever.ainvoke(question)
            return (await model().ainvoke(joined(found))).content

        trace = watch(app)
        assert (ids(trace), trace.prompted) == (["salmon"], ("salmon",))
        assert trace.retrieved[0].score is not None

    def test_sync_callable_runs_outside_the_event_loop(self, store):
        retriever = store.as_retriever(search_kwargs={"k": 1})
        threads = []

        def app(question):
            threads.append(threading.current_thread())
            return model().invoke(joined(retriever.invoke(question)))

        trace = watch(app)
        assert (ids(trace), trace.answer) == (["salmon"], ANSWER)
        assert threads != [threading.main_thread()]

    def test_a_partial_of_an_async_function(self):
        async def app(prefix, question):
            return f"{prefix} {question}"

        assert watch(functools.partial(app, "you asked")).answer == f"you asked {FISH.question}"

    def test_an_object_with_an_async_call(self):
        class App:
            async def __call__(self, question):
                return question.upper()

        assert watch(App()).answer == FISH.question.upper()

    def test_app_that_passes_its_own_callbacks(self, store):
        class Own(BaseCallbackHandler):
            seen = 0

            def on_retriever_end(self, documents, **kwargs):
                self.seen += 1

        own = Own()
        app = chain_over(store.as_retriever(search_kwargs={"k": 2}))
        trace = watch(lambda question: app.invoke(question, config={"callbacks": [own]}))
        assert len(trace.retrieved) == 2
        assert own.seen == 1

    @pytest.mark.slow
    def test_agent_with_a_retriever_tool(self, store):
        agents = pytest.importorskip("langchain.agents")
        retriever = store.as_retriever(search_kwargs={"k": 2})
        look_up = create_retriever_tool(retriever, "look_up", "Looks things up.")
        llm = tool_caller(("look_up", "fish rivers spawn"), ("look_up", "dark rock lava"))
        trace = watch(agents.create_agent(llm, [look_up]))
        assert [call.query for call in trace.calls] == ["fish rivers spawn", "dark rock lava"]
        assert ids(trace)[:2] == ["salmon", "basalt"]  # both ranked first, in call order
        assert set(trace.prompted) == set(ids(trace))
        assert trace.answer == ANSWER
        assert (trace.usage.prompt_tokens, trace.usage.completion_tokens) == (70, 5)

    @pytest.mark.slow
    def test_tool_that_searches_the_store_itself(self, store):
        agents = pytest.importorskip("langchain.agents")

        @tool(response_format="content_and_artifact")
        def look_up(query: str):
            """Look things up."""
            found = store.similarity_search(query, k=2)
            return joined(found), found

        trace = watch(
            agents.create_agent(tool_caller(("look_up", "violin strings bow")), [look_up])
        )
        assert ids(trace)[0] == "violin"
        assert [call.retriever for call in trace.calls] == ["Chroma.similarity_search"]
        assert set(trace.prompted) == set(ids(trace))
        assert trace.retrieved[0].score is not None

    @pytest.mark.slow
    def test_tool_that_hands_out_documents_from_elsewhere(self):
        agents = pytest.importorskip("langchain.agents")

        @tool(response_format="content_and_artifact")
        def look_up(query: str):
            """Look things up."""
            return CORPUS["trout"], documents("trout")

        twice = tool_caller(("look_up", "cold streams"), ("look_up", "fish"))
        trace = watch(agents.create_agent(twice, [look_up]))
        assert (ids(trace), trace.prompted) == (["trout"], ("trout",))
        assert [(call.query, call.retriever, call.passages) for call in trace.calls] == [
            ("cold streams", "look_up", ("trout",)),
            ("fish", "look_up", ("trout",)),  # a search, although it found nothing new
        ]

    @pytest.mark.slow
    def test_agent_that_remembers_starts_each_case_anew(self):
        agents = pytest.importorskip("langchain.agents")
        from langgraph.checkpoint.memory import InMemorySaver

        llm = model("first", "second")
        watcher = Watcher(agents.create_agent(llm, [], checkpointer=InMemorySaver()))

        async def both():
            return [await watcher.watch(FISH), await watcher.watch(FISH)]

        assert [trace.answer for trace in asyncio.run(both())] == ["first", "second"]

    def test_compiled_graph_with_a_state_of_its_own(self, store):
        graph = pytest.importorskip("langgraph.graph")

        class State(TypedDict):
            question: str
            documents: list
            generation: str

        def retrieve(state):
            return {"documents": store.as_retriever().invoke(state["question"])}

        def generate(state):
            return {"generation": model().invoke(joined(state["documents"][:2])).content}

        built = graph.StateGraph(State).add_sequence([retrieve, generate])
        trace = watch(built.add_edge(graph.START, "retrieve").compile())
        assert len(trace.retrieved) == 4
        assert trace.prompted == tuple(ids(trace)[:2])
        assert trace.answer == ANSWER

    def test_direct_search_of_the_store(self, store):
        def app(question):
            return model().invoke(joined(store.similarity_search(question, k=2)))

        trace = watch(app)
        assert ids(trace)[0] == "salmon"
        assert trace.prompted == tuple(ids(trace))
        assert trace.notes == ()

    def test_direct_async_search_counts_once(self):
        store = InMemoryVectorStore(WordCounts())
        store.add_texts(list(CORPUS.values()), ids=list(CORPUS))

        async def app(question):
            return joined(await store.asimilarity_search(question, k=2))

        trace = watch(app)
        assert ids(trace)[0] == "salmon"
        assert len(trace.calls) == 1

    def test_few_shot_examples_are_no_passages(self, store):
        from langchain_core.example_selectors import SemanticSimilarityExampleSelector

        chooser = SemanticSimilarityExampleSelector(vectorstore=store, k=1)
        trace = watch(lambda question: f"{len(chooser.select_examples({'q': question}))} example")
        assert (trace.answer, trace.retrieved) == ("1 example", ())

    def test_callable_that_brings_its_own_passages(self):
        def app(question):
            found = [{"id": "a", "text": "A", "score": 0.9}, {"id": "b", "text": "B"}]
            return {"answer": question, "retrieved": found, "prompted": ["b"]}

        trace = watch(app)
        assert [(p.id, p.text, p.rank, p.score) for p in trace.retrieved] == [
            ("a", "A", 1, 0.9),
            ("b", "B", 2, None),
        ]
        assert (trace.prompted, trace.answer, trace.notes) == (("b",), FISH.question, ())

    def test_returned_documents_do_not_replace_those_that_were_seen(self, store):
        retriever = store.as_retriever(search_kwargs={"k": 2})
        app = RunnableLambda(
            lambda question: {"answer": "x", "context": retriever.invoke(question)[:1]}
        )
        assert len(watch(app).retrieved) == 2


class TestNestedAndRepeated:
    def test_an_ensemble_gives_its_own_ranking_and_reports_its_parts_as_nested(self, store):
        retrievers = pytest.importorskip("langchain_classic.retrievers")
        inner = [store.as_retriever(search_kwargs={"k": 2}), Fixed(found=documents("oak", "pine"))]
        ensemble = retrievers.EnsembleRetriever(retrievers=inner)
        trace = watch(chain_over(ensemble))
        assert [call.nested for call in trace.calls] == [False, True, True]
        assert ids(trace) == [document.id for document in ensemble.invoke(FISH.question)]
        assert trace.calls[0].passages == tuple(ids(trace))
        # Fused by rank: the store's distances order nothing here.
        assert {passage.score for passage in trace.retrieved} == {None}

    def test_compression_gives_what_it_lets_through(self, store):
        retrievers = pytest.importorskip("langchain_classic.retrievers")
        from langchain_core.documents import BaseDocumentCompressor

        class First(BaseDocumentCompressor):
            def compress_documents(self, documents, query, callbacks=None):
                return documents[:1]

        compressing = retrievers.ContextualCompressionRetriever(
            base_compressor=First(), base_retriever=store.as_retriever()
        )
        trace = watch(chain_over(compressing))
        assert ids(trace) == ["salmon"]
        assert [(call.nested, len(call.passages)) for call in trace.calls] == [
            (False, 1),
            (True, 4),
        ]

    def test_a_retriever_that_hides_its_config_is_still_around_its_parts(self, store):
        inner = store.as_retriever(search_kwargs={"k": 2})

        class Rewriting(BaseRetriever):
            def _get_relevant_documents(self, query, *, run_manager):
                return inner.invoke(model("fish of rivers").invoke(query).content)[:1]

        trace = watch(chain_over(Rewriting()))
        assert [call.nested for call in trace.calls] == [False, True]
        assert trace.calls[1].query == "fish of rivers"
        assert len(trace.retrieved) == 1

    def test_parts_asked_at_once_in_tasks_of_their_own_are_nested(self):
        class Both(BaseRetriever):
            parts: list[BaseRetriever]

            def _get_relevant_documents(self, query, *, run_manager):
                raise NotImplementedError

            async def _aget_relevant_documents(self, query, *, run_manager):
                found = await asyncio.gather(*(part.ainvoke(query) for part in self.parts))
                return [document for part in found for document in part]

        parts = [Fixed(found=documents("oak")), Fixed(found=documents("pine"))]
        trace = watch(chain_over(Both(parts=parts)))
        assert [call.nested for call in trace.calls] == [False, True, True]
        assert ids(trace) == ["oak", "pine"]

    def test_a_retriever_that_timed_out_is_not_around_what_comes_after_it(self):
        class Slow(BaseRetriever):
            def _get_relevant_documents(self, query, *, run_manager):
                raise NotImplementedError

            async def _aget_relevant_documents(self, query, *, run_manager):
                await asyncio.Event().wait()

        async def app(question):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.01):
                    await Slow().ainvoke(question)
            found = await Fixed(found=documents("oak")).ainvoke(question)
            return await model().ainvoke(joined(found))

        trace = watch(app)
        assert [call.nested for call in trace.calls] == [False, False]
        assert (ids(trace), trace.prompted) == (["oak"], ("oak",))

    def test_parallel_retrievers_are_beside_each_other(self):
        app = RunnableParallel(
            a=Fixed(found=documents("oak", "pine")), b=Fixed(found=documents("pine", "birch"))
        ) | (lambda found: model().invoke(joined(found["a"] + found["b"])))
        trace = watch(app)
        assert [call.nested for call in trace.calls] == [False, False]
        assert sorted(ids(trace)[:2]) == ["oak", "pine"]  # each of them first once
        assert ids(trace)[2] == "birch"

    def test_fallback_after_a_retriever_that_failed(self):
        retriever = Failing().with_fallbacks([Fixed(found=documents("oak"))])
        trace = watch(chain_over(retriever))
        assert [call.passages for call in trace.calls] == [(), ("oak",)]
        assert (ids(trace), trace.error) == (["oak"], None)


class TestWhatReachedThePrompt:
    def test_only_two_of_four_put_into_the_prompt(self, store):
        app = chain_over(store.as_retriever(), show=lambda found: joined(found[1:3]))
        trace = watch(app)
        assert len(trace.retrieved) == 4
        assert trace.prompted == tuple(ids(trace)[1:3])

    def test_model_called_and_none_of_them_in_its_prompt(self, store):
        trace = watch(chain_over(store.as_retriever(), show=lambda _: "nothing"))
        assert trace.prompted == ()

    def test_of_a_passage_that_was_cut_the_part_in_the_prompt_is_known(self, store):
        retriever = store.as_retriever(search_kwargs={"k": 1})
        trace = watch(chain_over(retriever, show=lambda found: found[0].page_content[:45]))
        (salmon,) = trace.retrieved
        assert (trace.prompted, trace.shown) == (("salmon",), {"salmon": salmon.text[:44]})
        assert [passage.text for passage in trace.context(5)] == [salmon.text[:44]]
        assert shown_shares(trace) == {"salmon": 44 / len(salmon.text)}

    def test_documents_that_the_app_cuts_in_place_were_retrieved_whole(self):
        text = (
            "The salmon is a fish that swims up rivers to breed, and smokes well over alder wood."
        )

        def cut(found):
            for document in found:
                document.page_content = document.page_content[:40]
            return joined(found)

        trace = watch(Fixed(found=[Document(text, id="salmon")]) | cut | model("a fish"))
        assert [passage.text for passage in trace.retrieved] == [text]
        assert trace.shown == {"salmon": text[:40]}

    def test_passages_that_lost_their_last_word_count(self, store):
        retriever = store.as_retriever(search_kwargs={"k": 1})
        trace = watch(chain_over(retriever, show=lambda found: found[0].page_content[:-9] + "..."))
        assert trace.prompted == ("salmon",)

    def test_no_model_seen(self, store):
        retriever = store.as_retriever(search_kwargs={"k": 1})
        trace = watch(lambda question: joined(retriever.invoke(question)))
        assert trace.prompted is None
        assert any("no model call was seen" in note for note in trace.notes)

    def test_a_model_that_only_rewrites_the_question_is_not_the_one_that_answers(self, store):
        retriever = store.as_retriever(search_kwargs={"k": 1})
        rewriter = model("fish rivers spawn")

        def app(question):
            found = retriever.invoke(rewriter.invoke(question).content)
            return f"A client of another make, shown {len(found)}, says salmon."

        trace = watch(app)
        assert ids(trace) == ["salmon"]
        assert trace.prompted is None
        assert any(
            note.startswith("no model call that misslink saw gave this answer")
            and "the first k" in note
            for note in trace.notes
        )

    def test_model_seen_and_no_retrieval(self):
        trace = watch(lambda question: model().invoke(question))
        assert (trace.retrieved, trace.prompted) == ((), ())
        assert trace.unmeasured.startswith("no retrieval was seen")

    def test_search_in_a_thread_of_the_apps_own_is_not_seen_and_said_so(self, store):
        retriever = store.as_retriever()

        def app(question):
            found = []
            thread = threading.Thread(target=lambda: found.extend(retriever.invoke(question)))
            thread.start()
            thread.join()
            return model().invoke(joined(found))

        trace = watch(app)
        assert trace.retrieved == ()
        assert "threads that the app starts itself" in trace.unmeasured


class TestTrouble:
    def test_app_that_raises_keeps_what_it_had_retrieved(self, store):
        def broken(found):
            raise TypeError("no  such\nkey")

        trace = watch(store.as_retriever(search_kwargs={"k": 2}) | broken)
        assert re.fullmatch(r"TypeError: no such key \(test_watcher\.py, line \d+\)", trace.error)
        assert trace.answer is None
        assert len(trace.retrieved) == 2
        assert 'raise TypeError("no  such' in trace.traceback

    def test_a_key_in_an_error_of_the_app_is_not_kept(self, monkeypatch):
        """Found: a server repeats the key to the app, and it stood in traces and report."""
        monkeypatch.setenv("OPENAI_API_KEY", "made/up+key")

        def app(question):
            raise ValueError(r"Incorrect key: made/up+key, made\/up+key")

        trace = watch(app)
        assert trace.error.startswith("ValueError: Incorrect key: ***, *** (test_watcher.py")
        assert "up+key" not in trace.model_dump_json()

    def test_half_a_surrogate_pair_in_anything_the_app_says_can_be_written_down(self):
        found = [Document("half \ud83d", id="d")]

        def app(question):
            Fixed(found=found).invoke(f"{question} \ud83d")
            return "answer \ud83d"

        def failing(question):
            raise ValueError("cannot say \ud83d")

        trace = watch(app)
        assert (trace.answer, trace.retrieved[0].text) == ("answer ?", "half ?")
        assert trace.calls[0].query == f"{FISH.question} ?"
        assert trace.model_dump_json().encode()
        assert watch(failing).error.startswith("ValueError: cannot say ? (test_watcher.py")
        for shown in (
            {"answer": "a \ud83d", "prompted": ["\ud83d"]},
            {"text": ["\ud83d"]},
            [1, "\ud83d"],
            {"messages": [{"role": "assistant", "content": "m \ud83d"}]},
        ):
            assert watch(lambda _, shown=shown: shown).model_dump_json().encode()

    def test_retriever_that_raises(self):
        trace = watch(chain_over(Failing()))
        assert trace.error.startswith("ConnectionError: index is down (test_watcher.py, line ")
        assert trace.retrieved == ()

    class UnprintableError(Exception):
        def __str__(self):
            raise RuntimeError

    @pytest.mark.slow
    @pytest.mark.parametrize("timeout", [None, 30])
    @pytest.mark.parametrize("is_async", [False, True])
    @pytest.mark.parametrize(
        "error",
        [
            SystemExit(3),
            StopIteration("over"),
            asyncio.CancelledError(),
            BaseException("odd"),
            UnprintableError(),
        ],
    )
    def test_odd_exceptions_lose_one_case_and_not_the_run(self, error, is_async, timeout):
        def app(question):
            raise error

        async def async_app(question):
            raise error

        found = watch(async_app if is_async else app, timeout=timeout).error
        assert type(error).__name__ in found or isinstance(error, StopIteration)

    def test_interrupt_passes_through(self):
        async def interrupt():
            started = asyncio.Event()

            async def app(question):
                started.set()
                await asyncio.Event().wait()

            watching = asyncio.create_task(Watcher(app).watch(FISH))
            await started.wait()
            watching.cancel()
            await watching

        with pytest.raises(asyncio.CancelledError):
            asyncio.run(interrupt())

    def test_what_cannot_be_read_is_an_error_of_its_case(self):
        class Odd:
            def __getattr__(self, name):
                raise RuntimeError(name)

        assert watch(lambda _: Odd()).error.startswith("RuntimeError")

    @pytest.mark.parametrize("value", [None, 42, {"question": "x"}, object()])
    def test_what_is_no_answer_is_an_error_that_says_what_came_back(self, value):
        trace = watch(lambda _: value)
        assert trace.answer is None
        assert trace.error.startswith("the app returned ")

    def test_two_texts_under_one_id(self):
        found = [Document("first text", id="x"), Document("other text", id="x")]
        a, b = (Fixed(found=[document]) for document in found)
        trace = watch(lambda question: joined(a.invoke(question) + b.invoke(question)))
        assert [passage.text for passage in trace.retrieved] == ["first text\n\nother text"]
        assert any("different texts were retrieved under the id 'x'" in n for n in trace.notes)

    def test_chunks_of_one_document_are_one_passage_with_what_the_model_read(self):
        texts = ("The ferry leaves at seven.", "A ticket costs 12.", "Dogs need a leash.")
        found = [Document(text, metadata={"doc": "ferry"}) for text in texts]
        app = Fixed(found=found) | (lambda found: joined(found[:2])) | model("12")
        trace = watch(app, id_key="doc")
        assert [passage.text for passage in trace.retrieved] == ["\n\n".join(texts)]
        assert [passage.text for passage in trace.context(1)] == [joined(found[:2])]
        assert trace.prompted == ("ferry",)
        assert trace.calls[0].passages == ("ferry",)
        assert not trace.notes

    def test_key_that_the_documents_do_not_have(self):
        trace = watch(Fixed(found=documents("oak")), id_key="nope")
        assert ids(trace) == ["oak"]
        assert any("1 of 1 documents have no metadata 'nope'" in note for note in trace.notes)

    def test_key_wins_over_the_documents_own_id(self, store):
        trace = watch(store.as_retriever(search_kwargs={"k": 1}), id_key="key")
        assert ids(trace) == ["key-salmon"]


class TestManyAtOnce:
    CASES = tuple(Case(id=f"c{at}", question=f"number {at} tree") for at in range(20))

    def gathered(self, app):
        watcher = Watcher(app)

        async def everything():
            return await asyncio.gather(*(watcher.watch(case) for case in self.CASES))

        return asyncio.run(everything())

    @pytest.mark.parametrize("kind", ["chain", "sync callable", "async callable"])
    def test_twenty_cases_do_not_mix(self, kind):
        class Echo(BaseRetriever):
            def _get_relevant_documents(self, query, *, run_manager):
                return [Document(f"passage for {query}", id=f"for {query}")]

        class EchoModel(type(model())):
            def _call(self, messages, *args, **kwargs):
                return messages[-1].content

        app = chain_over(Echo(), llm=EchoModel(responses=[]))
        if kind == "sync callable":
            traces = self.gathered(app.invoke)
        elif kind == "async callable":

            async def acall(question):
                await asyncio.sleep(0)
                return await app.ainvoke(question)

            traces = self.gathered(acall)
        else:
            traces = self.gathered(app)
        for case, trace in zip(self.CASES, traces, strict=True):
            assert trace.case_id == case.id
            assert ids(trace) == [f"for {case.question}"]
            assert len(trace.calls) == 1
            assert trace.prompted == (f"for {case.question}",)
            assert f"Q: {case.question}" in trace.answer


class TestTracelessness:
    def test_store_classes_are_left_as_they_were(self, store):
        from langchain_core.vectorstores import VectorStore

        kinds = [VectorStore, InMemoryVectorStore, type(store)]
        before = [dict(vars(kind)) for kind in kinds]
        wrapped = []

        def app(question):
            wrapped.append(vars(type(store))["similarity_search"])
            return joined(store.similarity_search(question))

        watch(app)
        assert wrapped != [before[2]["similarity_search"]]
        assert [dict(vars(kind)) for kind in kinds] == before

    def test_store_classes_are_left_as_they_were_after_an_error(self, store):
        before = dict(vars(type(store)))
        watch(store.as_retriever() | (lambda _: 1 / 0))
        assert dict(vars(type(store))) == before

    def test_the_hook_is_registered_once(self):
        from langchain_core.tracers.context import _configure_hooks

        from misslink.capture.recorder import CURRENT_RECORDER

        watch(str.upper)
        watch(str.upper)
        assert sum(hook[0] is CURRENT_RECORDER for hook in _configure_hooks) == 1

    def test_what_runs_outside_of_a_case_is_not_recorded(self, store):
        retriever = store.as_retriever()
        watcher = Watcher(lambda question: question)

        async def both():
            trace, _ = await asyncio.gather(watcher.watch(FISH), retriever.ainvoke("tree"))
            return trace

        assert asyncio.run(both()).calls == ()


def watched(app, question="When?"):
    return asyncio.run(Watcher(app).watch(Case(question=question)))


@pytest.mark.parametrize(
    "passages",
    [
        [{"id": "times", "text": "Seven.", "score": 0.5}],
        [(Document(id="times", page_content="Seven."), 0.5)],
        {"ids": [["times"]], "documents": [["Seven."]], "distances": [[0.5]]},
    ],
)
def test_a_reported_search_is_a_retrieval(passages):
    def app(question):
        misslink.record_retrieval(question.upper(), passages, name="raw")
        return "At seven."

    trace = watched(app)
    assert [(p.id, p.text, p.score) for p in trace.retrieved] == [("times", "Seven.", 0.5)]
    assert [(call.query, call.retriever) for call in trace.calls] == [("WHEN?", "raw")]
    assert trace.unmeasured is None


def test_several_searches_and_none_found():
    async def app(question):
        misslink.record_retrieval(question, ["a text with blanks"])
        misslink.record_retrieval(question, [])
        return "At seven."

    trace = watched(app)
    assert [len(call.passages) for call in trace.calls] == [1, 0]
    assert watched(lambda question: misslink.record_retrieval(question, []) or "A").retrieved == ()


def test_a_search_inside_a_retriever_is_nested():
    class Raw(BaseRetriever):
        def _get_relevant_documents(
            self, query: str, *, run_manager: CallbackManagerForRetrieverRun
        ) -> list[Document]:
            misslink.record_retrieval(query, [{"id": "raw", "text": "Raw."}])
            return [Document(id="times", page_content="Seven.")]

    trace = watched(Raw())
    assert [p.id for p in trace.retrieved] == ["times"]
    assert [call.nested for call in trace.calls] == [False, True]


def test_what_is_no_list_of_passages_is_an_error_of_the_app():
    trace = watched(lambda question: misslink.record_retrieval(question, 5) or "A")
    assert "record_retrieval got int" in trace.error


def test_a_search_in_a_thread_of_the_app_s_own_is_warned_of(caplog):
    def app(question):
        thread = threading.Thread(target=misslink.record_retrieval, args=(question, ["A text."]))
        thread.start()
        thread.join()
        return "At seven."

    watcher._warn_search_without_case.cache_clear()
    assert watched(app).unmeasured is not None
    assert "belongs to no case" in caplog.text
    caplog.clear()
    misslink.record_retrieval("When?", ["A text."])  # in production
    assert not caplog.text
