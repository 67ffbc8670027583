"""Real apps of LlamaIndex and Haystack, watched; and hooks are undone whatever happens."""

import asyncio
import contextlib
import os
import re
import sys
import types
from functools import partial

import pytest

import misslink
from misslink.capture import Watcher, load_app
from misslink.capture.hooks import SharedHook, _warn_of_framework, wrap_methods
from misslink.capture.passages import passages_from
from misslink.types import Case

os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")
FERRY, DOGS, BIKES = "The ferry leaves at seven.", "Dogs travel free.", "A bike costs two crowns."
MORE = " It is so on every day of the year, as the board at the old pier says."
WHEN = Case(id="when", question="When does the ferry leave?")
PETS = Case(id="pets", question="Do dogs travel free of charge?")


def words(text):
    return set(re.findall(r"\w{3,}", text.lower()))


def watch(app, *cases, **options):
    """The traces of cases that run at the same time."""

    async def run():
        watcher = Watcher(app, **options)
        return await asyncio.gather(*(watcher.watch(case) for case in cases or (WHEN,)))

    return asyncio.run(run())


def retrieved(trace):
    return [(passage.id, passage.text) for passage in trace.retrieved]


@pytest.fixture(scope="module")
def llama():
    """Nodes, and a function that builds a query engine over them."""
    core = pytest.importorskip("llama_index.core", reason="the llamaindex extra is not installed")
    from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
    from llama_index.core.llms.callbacks import llm_completion_callback
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, TextNode

    class Copying(CustomLLM):
        @property
        def metadata(self):
            return LLMMetadata(model_name="copying")

        @llm_completion_callback()
        def complete(self, prompt, **_):
            return CompletionResponse(text=next(t for t in (FERRY, DOGS) if t in prompt))

        @llm_completion_callback()
        def stream_complete(self, prompt, **_):
            raise NotImplementedError

    class Keywords(BaseRetriever):
        def _retrieve(self, bundle):
            texts = {"times": FERRY, "pets": DOGS, "bikes": BIKES}
            scored = [
                NodeWithScore(
                    node=TextNode(id_=name, text=text),
                    score=float(len(words(text) & words(bundle.query_str))),
                )
                for name, text in texts.items()
            ]
            return sorted(scored, key=lambda item: -item.score)[:2]

    tokenizer = core.Settings._tokenizer
    core.Settings.tokenizer = str.split  # the default one is downloaded
    yield Keywords(), Copying()
    core.Settings._tokenizer = tokenizer


def query_engine(llama, **more):
    from llama_index.core.query_engine import RetrieverQueryEngine

    retriever, model = llama
    return RetrieverQueryEngine.from_args(retriever, llm=model, **more)


@pytest.mark.slow
def test_a_query_engine_has_searches_prompt_and_answer(llama):
    (trace,) = watch(query_engine(llama))
    assert retrieved(trace)[0] == ("times", FERRY)
    assert (trace.answer, trace.error) == (FERRY, None)
    assert set(trace.prompted) == {passage.id for passage in trace.retrieved}
    (call,) = trace.calls
    assert (call.query, call.retriever, call.nested) == (WHEN.question, "Keywords", False)
    assert trace.notes == ()


@pytest.mark.slow
def test_cases_at_once_keep_apart(llama):
    cases = [WHEN, PETS] * 4
    traces = watch(query_engine(llama), *cases)
    assert [trace.retrieved[0].id for trace in traces] == ["times", "pets"] * 4
    assert all(len(trace.calls) == 1 for trace in traces)


@pytest.mark.slow
def test_a_retriever_alone_has_no_answer(llama):
    (trace,) = watch(llama[0])
    assert retrieved(trace)[0] == ("times", FERRY)
    assert trace.answer is None


def test_a_query_engine_inside_a_function_is_seen(llama):
    engine = query_engine(llama)
    (trace,) = watch(lambda question: str(engine.query(question)))
    assert retrieved(trace)[0] == ("times", FERRY)
    assert "times" in trace.prompted


def test_what_a_node_postprocessor_drops_is_not_in_the_prompt(llama):
    from llama_index.core.postprocessor.types import BaseNodePostprocessor

    class Last(BaseNodePostprocessor):
        def _postprocess_nodes(self, nodes, query_bundle=None):
            return [node for node in nodes if node.node_id == "times"]

    (trace,) = watch(query_engine(llama, node_postprocessors=[Last()]))
    assert trace.prompted == ("times",)
    assert len(trace.retrieved) == 2


def test_the_part_of_a_node_that_a_postprocessor_keeps_is_what_the_prompt_shows(llama):
    from llama_index.core.postprocessor.types import BaseNodePostprocessor

    class FirstWords(BaseNodePostprocessor):
        def _postprocess_nodes(self, nodes, query_bundle=None):
            for item in nodes:  # in place
                item.node.text = item.node.text[:50]
            return nodes

    class Keywords(type(llama[0])):
        def _retrieve(self, bundle):
            found = [item.model_copy(deep=True) for item in super()._retrieve(bundle)]
            for item in found:
                item.node.text += MORE
            return found

    engine = query_engine((Keywords(), llama[1]), node_postprocessors=[FirstWords()])
    (trace,) = watch(engine)
    assert [passage.id for passage in trace.retrieved] == list(trace.prompted)
    assert trace.shown == {p.id: p.text[:50].strip() for p in trace.retrieved}


def test_a_chat_engine_gets_the_history_of_its_case_alone(llama):
    from llama_index.core.chat_engine import ContextChatEngine

    retriever, model = llama
    engine = ContextChatEngine.from_defaults(retriever=retriever, llm=model)
    earlier = [
        {"role": "user", "content": "Is there a boat?"},
        {"role": "assistant", "content": "There is one, at noon."},
    ]
    after = Case(id="after", question=WHEN.question, history=earlier)
    traces = [watch(engine, case)[0] for case in (PETS, after)]
    remembered = [str(message.content) for message in engine.chat_history]
    assert remembered[:3] == ["Is there a boat?", "There is one, at noon.", WHEN.question]
    assert (traces[1].answer, traces[1].error) == (FERRY, None)
    assert traces[1].retrieved[0].id == "times"


@pytest.mark.parametrize("options", [{}, {"timeout": 60.0}])
@pytest.mark.parametrize("kind", ["ContextChatEngine", "CondenseQuestionChatEngine"])
def test_conversations_of_one_chat_engine_do_not_mix(llama, kind, options):
    from llama_index.core import chat_engine
    from llama_index.core.llms import CompletionResponse

    prompts = []

    class Slow(type(llama[1])):
        async def acomplete(self, prompt, **_):
            prompts.append(prompt)
            await asyncio.sleep(0)  # lets the others in
            return CompletionResponse(text=FERRY)

    engine = query_engine((llama[0], Slow()))
    parts = {"query_engine": engine} if kind.startswith("Condense") else {"retriever": llama[0]}
    chat = getattr(chat_engine, kind).from_defaults(llm=Slow(), **parts)
    secrets = {"when": "SECRET-A", "pets": "SECRET-B"}
    cases = [
        Case(
            id=case.id,
            question=case.question,
            history=[
                {"role": "user", "content": secrets[case.id]},
                {"role": "assistant", "content": "Yes."},
            ],
        )
        for case in (WHEN, PETS)
    ]
    fresh = Case(id="fresh", question="What does a bike cost?")
    assert [trace.error for trace in watch(chat, *cases, fresh, **options)] == [None] * 3
    for case in (*cases, fresh):
        mine = [prompt for prompt in prompts if case.question in prompt]
        assert any(secrets.get(case.id, "") in prompt for prompt in mine)
        others = [secret for name, secret in secrets.items() if name != case.id]
        assert not any(secret in prompt for prompt in mine for secret in others)


def test_an_app_of_ones_own_with_names_of_llamaindex_is_called():
    class Own:
        def __call__(self, question):
            return FERRY

        def achat(self, question):
            raise NotImplementedError

        aquery = aretrieve = add_component = inputs = run = achat

    assert watch(Own())[0].answer == FERRY


def test_tokens_that_a_model_reports_as_an_object_are_counted(llama):
    from llama_index.core.llms import CompletionResponse
    from llama_index.core.llms.callbacks import llm_completion_callback
    from pydantic import BaseModel

    class Tokens(BaseModel):
        prompt_tokens: int = 11
        completion_tokens: int = 3

    class Raw(BaseModel):
        usage: Tokens = Tokens()

    class Reporting(type(llama[1])):
        @llm_completion_callback()
        def complete(self, prompt, **_):
            return CompletionResponse(text=FERRY, raw=Raw())

    engine = query_engine((llama[0], Reporting()))

    async def ask(question):  # each of its calls is inside of another one of the same model
        return str(await engine.aquery(question))

    for app in (lambda question: str(engine.query(question)), ask):
        usage = watch(app)[0].usage
        assert (usage.prompt_tokens, usage.completion_tokens) == (11, 3)


def test_no_handler_stays(llama):
    from llama_index.core.instrumentation import get_dispatcher

    handlers = list(get_dispatcher().event_handlers)
    watch(query_engine(llama), WHEN, PETS)
    assert get_dispatcher().event_handlers == handlers


def test_a_failed_search_encloses_no_later_one(llama):
    from llama_index.core.retrievers import BaseRetriever

    class Broken(BaseRetriever):
        def _retrieve(self, bundle):
            raise ConnectionError("index is down")

    engine = query_engine(llama)

    def app(question):
        with contextlib.suppress(ConnectionError):
            Broken().retrieve(question)
        return str(engine.query(question))

    (trace,) = watch(app)
    assert [call.nested for call in trace.calls] == [False, False]
    assert retrieved(trace)[0] == ("times", FERRY)


def test_parts_of_a_fusion_are_nested(llama):
    from llama_index.core.retrievers import QueryFusionRetriever

    retriever, model = llama
    fusion = QueryFusionRetriever(
        [retriever, retriever], llm=model, num_queries=1, similarity_top_k=1, use_async=False
    )
    (trace,) = watch(fusion)
    assert [passage.id for passage in trace.retrieved] == ["times"]
    assert [call.nested for call in trace.calls] == [False, True, True]


@pytest.fixture(scope="module")
def haystack():
    """A function that builds a pipeline of a keyword retriever, a prompt and a model."""
    core = pytest.importorskip("haystack", reason="the haystack extra is not installed")
    from haystack.components.builders import PromptBuilder
    from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    @core.component
    class Model:
        @core.component.output_types(replies=list[str])
        def run(self, prompt: str):
            return {"replies": [next((t for t in (FERRY, DOGS) if t in prompt), "I don't know.")]}

    @core.component
    class Ranker:
        @core.component.output_types(documents=list[core.Document])
        def run(self, query: str, documents: list[core.Document]):
            return {"documents": documents[:1]}

    def store_with(more):
        store = InMemoryDocumentStore()
        texts = {"times": FERRY + more, "pets": DOGS + more, "bikes": BIKES + more}
        store.write_documents([core.Document(id=name, content=t) for name, t in texts.items()])
        return store

    template = "{% for d in documents %}{{ d.content }}\n{% endfor %}Question: {{ question }}"

    def build(*, ranker=False, model=True, template=template, more=""):
        pipeline = core.Pipeline()
        pipeline.add_component("retriever", InMemoryBM25Retriever(store_with(more), top_k=2))
        source = "retriever"
        if ranker:
            pipeline.add_component("ranker", Ranker())
            pipeline.connect("retriever.documents", "ranker.documents")
            source = "ranker"
        if model:
            pipeline.add_component(
                "prompt", PromptBuilder(template, required_variables=["question", "documents"])
            )
            pipeline.add_component("model", Model())
            pipeline.connect(f"{source}.documents", "prompt.documents")
            pipeline.connect("prompt", "model")
        return pipeline

    return build


@pytest.mark.slow
def test_a_pipeline_has_searches_prompt_and_answer(haystack):
    first, second = watch(haystack(), WHEN, PETS)
    assert (retrieved(first)[0], first.answer) == (("times", FERRY), FERRY)
    assert (retrieved(second)[0], second.answer) == (("pets", DOGS), DOGS)
    assert first.prompted[0] == "times"
    assert [call.retriever for call in first.calls] == ["InMemoryBM25Retriever"]
    assert first.retrieved[0].score > 0


@pytest.mark.slow
def test_a_pipeline_that_only_searches(haystack):
    (trace,) = watch(haystack(model=False))
    assert retrieved(trace)[0] == ("times", FERRY)
    assert (trace.answer, trace.error) == (None, None)


@pytest.mark.slow
def test_what_a_ranker_drops_is_not_in_the_prompt(haystack):
    (trace,) = watch(haystack(ranker=True), Case(id="both", question="Do dogs like the ferry?"))
    assert len(trace.prompted) == 1
    assert [call.nested for call in trace.calls] == [False, True]  # the ranker's result counts
    assert trace.prompted[0] == trace.retrieved[0].id


@pytest.mark.slow
def test_a_template_that_cuts_the_documents_shows_their_parts(haystack):
    cut = "{% for d in documents %}- {{ d.content[:50] }}\n{% endfor %}Question: {{ question }}"
    (trace,) = watch(haystack(template=cut, more=MORE))
    assert trace.shown == {p.id: p.text[:50].strip() for p in trace.retrieved}


def test_the_app_s_own_tracing_goes_on(haystack):
    from haystack import tracing
    from haystack.tracing.tracer import NullSpan

    seen = []

    class Own(tracing.Tracer):
        @contextlib.contextmanager
        def trace(self, operation_name, tags=None, parent_span=None):
            seen.append(operation_name)
            yield NullSpan()

        def current_span(self):
            return None

    own = Own()
    tracing.enable_tracing(own)
    try:
        (trace,) = watch(haystack())
        assert tracing.tracer.actual_tracer is own
    finally:
        tracing.disable_tracing()
    assert len(trace.calls) == 1
    assert "haystack.component.run" in seen


def test_a_pipeline_is_named_as_any_app(haystack, tmp_path):
    (tmp_path / "own.py").write_text("import haystack\npipe = haystack.Pipeline()\n")
    assert type(load_app("own.py:pipe", tmp_path)).__name__ == "Pipeline"


def test_another_package_with_a_framework_s_name_is_warned_of(monkeypatch, caplog):
    for name in [name for name in sys.modules if name.partition(".")[0] == "haystack"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "haystack", types.ModuleType("haystack"))
    assert [trace.answer for trace in watch(lambda _: FERRY, WHEN, PETS)] == [FERRY, FERRY]
    assert [record.args[0] for record in caplog.records] == ["haystack"]


def test_each_query_of_a_chromadb_call_is_a_search(chroma_client):
    collection = chroma_client.create_collection("many", embedding_function=None)
    collection.add(ids=["times", "pets"], documents=[FERRY, DOGS], embeddings=[[1, 0], [0, 1]])
    asked = {"query_embeddings": [[1.0, 0.1], [0.1, 1.0]], "n_results": 2}
    try:
        (searched,) = watch(lambda _: collection.query(**asked) and FERRY)
        found = collection.query(**asked)
    finally:
        chroma_client.delete_collection("many")
    orders = [("times", "pets"), ("pets", "times")]
    assert [call.passages for call in searched.calls] == orders
    (returned,) = watch(lambda _: found)  # found outside of the case
    for trace in (searched, returned):
        assert [name for name, _ in retrieved(trace)] == ["times", "pets"]


def test_a_store_imported_at_the_first_question_is_seen():
    from langchain_core.documents import Document
    from langchain_core.embeddings import DeterministicFakeEmbedding
    from langchain_core.vectorstores import InMemoryVectorStore

    stores, asked = [], []

    def app(question):
        asked.append(question)
        if not stores:

            class Late(InMemoryVectorStore):
                def similarity_search(self, query, k=4, **_):
                    return [Document(page_content=FERRY, id="times")][:k]

            stores.append(Late.from_texts([FERRY], DeterministicFakeEmbedding(size=4)))
        return stores[0].similarity_search(question, k=1)[0].page_content

    async def run():
        watcher = Watcher(app)
        return [await watcher.watch(case) for case in (WHEN, PETS)]

    traces = asyncio.run(run())
    assert [len(trace.calls) for trace in traces] == [1, 1]
    assert asked == [WHEN.question, WHEN.question, PETS.question]


def test_a_chromadb_client_is_seen(chroma_client):
    collection = chroma_client.create_collection("raw", embedding_function=None)
    collection.add(ids=["times", "pets"], documents=[FERRY, DOGS], embeddings=[[1, 0], [0, 1]])

    def app(question):
        found = collection.query(query_embeddings=[[1.0, 0.1]], n_results=1)
        return found["documents"][0][0]

    try:
        first, second = watch(app, WHEN, PETS)
    finally:
        chroma_client.delete_collection("raw")
    assert retrieved(first) == retrieved(second) == [("times", FERRY)]
    assert [call.retriever for call in first.calls] == ["raw"]


@pytest.mark.parametrize("by", ["query_texts", "query_embeddings"])
def test_a_chromadb_collection_says_true_ranks_and_what_it_lacks(chroma_client, by):
    from chromadb import EmbeddingFunction

    class Same(EmbeddingFunction):
        def __init__(self):
            pass

        def __call__(self, input):  # noqa: A002 - the name that chromadb wants
            return [[1.0, 0.0] for _ in input]

        @staticmethod
        def name():
            return "same"

    collection = chroma_client.create_collection("ranks", embedding_function=Same())
    names = [f"p{n}" for n in range(6)]
    collection.add(
        ids=names, documents=names, embeddings=[[1.0, n / 10] for n in range(6)],
        metadatas=[{"kind": "odd" if n % 2 else "even"} for n in range(6)],
    )  # fmt: skip

    def app(question):
        query = [question] if by == "query_texts" else [[1.0, 0.0]]
        found = collection.query(**{by: query}, n_results=1, where={"kind": "even"})
        return found["documents"][0][0]

    wanted = {"p0": None, "p4": ("not_retrieved", 3), "p1": ("not_retrieved", None),
              "gone": ("not_indexed", None)}  # fmt: skip
    gold = [{"id": name, "question": "Which?", "relevant": [name]} for name in wanted]
    try:
        run = misslink.evaluate(app, gold, k=1, cache=None)
    finally:
        chroma_client.delete_collection("ranks")
    found = {link.case_id: (*link.missed, None)[0] for link in run.links}
    assert {name: miss and (miss.status, miss.true_rank) for name, miss in found.items()} == wanted


def test_an_asynchronous_chromadb_collection_is_seen(chroma_client):
    from chromadb.api.models.AsyncCollection import AsyncCollection

    collection = chroma_client.create_collection("later", embedding_function=None)
    collection.add(ids=["times", "pets"], documents=[FERRY, DOGS], embeddings=[[1, 0], [0, 1]])

    class Server:  # a client of a server, over the one in this process
        async def _query(self, **asked):
            return chroma_client._server._query(**asked)

    distant = AsyncCollection(Server(), collection._model, None, None)

    async def app(_):
        found = await distant.query(query_embeddings=[[1.0, 0.1]], n_results=1)
        return found["documents"][0][0]

    try:
        (trace,) = watch(app)
    finally:
        chroma_client.delete_collection("later")
    assert retrieved(trace) == [("times", FERRY)]
    assert [call.retriever for call in trace.calls] == ["later"]
    assert vars(AsyncCollection)["query"].__module__.startswith("chromadb")


def test_a_collection_that_another_package_has_wrapped_ends_no_evaluation(monkeypatch, caplog):
    from chromadb.api.models.AsyncCollection import AsyncCollection
    from chromadb.api.models.Collection import Collection

    for owner in (Collection, AsyncCollection):
        monkeypatch.setattr(owner, "query", partial(vars(owner)["query"]))
    _warn_of_framework.cache_clear()
    assert watch(lambda _: FERRY)[0].answer == FERRY
    assert "another package has replaced Collection.query" in caplog.text


def test_chromadb_inside_a_langchain_store_is_one_search(store):
    (trace,) = watch(store.as_retriever(search_kwargs={"k": 2}))
    assert [call.nested for call in trace.calls] == [False]
    (trace,) = watch(lambda question: store.similarity_search(question, k=2))
    assert len(trace.calls) == 1


class Root:
    def find(self):
        return "found"


class Other(Root):
    def find(self):
        return "other"


def test_what_was_wrapped_before_wrapping_failed_is_put_back():
    mine, theirs = vars(Root)["find"], vars(Other)["find"]

    def wrap(original, name):
        if original is theirs:
            raise RuntimeError(name)
        return lambda _: "wrapped"

    wrapping = SharedHook(partial(wrap_methods, (Root, Other), ("find",), wrap))
    with pytest.raises(RuntimeError, match="find"), wrapping.in_place():
        pytest.fail("nothing is wrapped")
    assert vars(Root)["find"] is mine
    assert vars(Other)["find"] is theirs


@pytest.mark.slow
def test_cases_that_share_a_memory_take_turns(llama):
    from llama_index.core.llms import ChatMessage
    from llama_index.core.memory import Memory

    memory = Memory.from_defaults(session_id="all", tokenizer_fn=str.split)
    under_way = []

    def app(question):
        under_way.append(question)
        memory.put(ChatMessage(role="user", content=question))  # hangs in several threads at once
        llama[0].retrieve(question)
        memory.put(ChatMessage(role="user", content="more"))
        assert under_way == [question]
        return under_way.pop()

    traces = watch(app, *[WHEN, PETS] * 8)
    assert [(trace.error, trace.answer) for trace in traces] == [
        (None, case.question) for case in [WHEN, PETS] * 8
    ]


def test_the_document_of_a_node_is_a_key_of_its_metadata():
    pytest.importorskip("llama_index.core")
    from llama_index.core.schema import NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode

    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="fares")}
    nodes = [TextNode(id_=str(n), text=f"part {n}", relationships=source) for n in range(2)]
    found = [NodeWithScore(node=node, score=1.0) for node in nodes]
    assert [p.id for p in passages_from(found)] == ["0", "1"]
    (passage,) = passages_from(found, id_key="ref_doc_id")
    assert (passage.id, passage.text) == ("fares", "part 0\n\npart 1")
