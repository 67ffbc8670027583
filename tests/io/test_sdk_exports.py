"""Files that the SDKs of other tools write are read; each SDK is optional, and calls a loopback."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from misslink.io.trace_formats import read_recording

QUESTION, FERRY, DOGS = "When does it leave?", "The ferry leaves at seven.", "Dogs travel free."
FOUND = [{"id": "times", "text": FERRY}, {"id": "pets", "text": DOGS}]
DSPY_ANSWER = "[[ ## answer ## ]]\nAt seven.\n\n[[ ## completed ## ]]"


class Loopback(BaseHTTPRequestHandler):
    """A model that calls the tool it is given and then answers; and a store of LangSmith's runs."""

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if "messages" not in body:
            run_id = body.get("id") or self.path.rpartition("/")[2]
            self.server.runs.setdefault(run_id, {}).update(body)
            self._reply({})
            return
        is_answered = any(message["role"] == "tool" for message in body["messages"])
        message = {"role": "assistant", "content": "At seven."}
        if "[[ ##" in json.dumps(body):
            message["content"] = DSPY_ANSWER
        elif body.get("tools") and not is_answered:
            name = body["tools"][0]["function"]["name"]
            call = {"name": name, "arguments": json.dumps({"query": "ferry"})}
            message["tool_calls"] = [{"id": "1", "type": "function", "function": call}]
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        self._reply(
            {
                "id": "1",
                "object": "chat.completion",
                "created": 1,
                "model": "m",
                "choices": [choice],
            }
        )

    do_PATCH = do_POST  # noqa: N815 - the name that http.server looks for

    def _reply(self, document):
        data = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture
def server():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Loopback)
    server.runs, server.url = {}, f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def spans():
    """A tracer provider, and what its spans say when the SDK writes them."""
    provider, memory = TracerProvider(), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    yield provider, lambda: [json.loads(span.to_json()) for span in memory.get_finished_spans()]
    provider.shutdown()


def check(rows, tmp_path, query=QUESTION):
    path = tmp_path / "export.jsonl"
    path.write_text("".join(f"{json.dumps(row, default=str)}\n" for row in rows))
    recording = read_recording(path)
    ((case_id, trace),) = recording.traces.items()
    assert (recording.cases[case_id].question, trace.answer) == (QUESTION, "At seven.")
    assert [passage.text for passage in trace.retrieved] == [FERRY, DOGS]
    assert [call.query for call in trace.calls] == [query]
    assert trace.trace_id
    assert trace.span_id
    return trace


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["retriever", "tool"])
def test_runs_of_the_langsmith_client(server, tmp_path, kind):
    langsmith = pytest.importorskip("langsmith")
    client = langsmith.Client(api_url=server.url, api_key="k", auto_batch_tracing=False)

    @langsmith.traceable(run_type=kind)
    def search(query):
        assert query
        if kind == "tool":
            return json.dumps(FOUND)
        return [{"page_content": one["text"], "type": "Document", "metadata": {}} for one in FOUND]

    @langsmith.traceable
    def app(question):
        search(question)
        return {"answer": "At seven."}

    with langsmith.tracing_context(client=client, enabled=True):
        app(QUESTION)
    trace = check(server.runs.values(), tmp_path)
    assert trace.trace_id in server.runs


def test_spans_of_the_openai_agents_sdk(server, spans, tmp_path):
    agents = pytest.importorskip("agents", reason="openai-agents is not installed")
    tracing = pytest.importorskip("openinference.instrumentation.openai_agents")
    provider, rows = spans
    tracing.OpenAIAgentsInstrumentor().instrument(tracer_provider=provider)

    @agents.function_tool
    def search(query: str) -> str:
        """Search the timetable."""
        assert query
        return json.dumps(FOUND)

    import openai

    client = openai.AsyncOpenAI(base_url=server.url, api_key="k")
    model = agents.OpenAIChatCompletionsModel("m", client)
    agent = agents.Agent(name="helper", instructions="Answer.", tools=[search], model=model)
    agents.Runner.run_sync(agent, QUESTION)
    (call,) = check(rows(), tmp_path, "ferry").calls
    assert (call.tool, call.passages) == ("search", ("times", "pets"))


def test_spans_of_dspy(server, spans, tmp_path):
    dspy = pytest.importorskip("dspy")
    tracing = pytest.importorskip("openinference.instrumentation.dspy")
    provider, rows = spans
    tracing.DSPyInstrumentor().instrument(tracer_provider=provider)

    class App(dspy.Module):
        def forward(self, question):
            context = dspy.Retrieve(k=2)(question).passages
            return dspy.Predict("context, question -> answer")(context=context, question=question)

    model = dspy.LM("openai/m", api_base=server.url, api_key="k", cache=False)
    passages = [dspy.Example(long_text=one["text"]) for one in FOUND]
    with dspy.context(lm=model, rm=lambda _, k, **__: passages[:k]):
        App()(question=QUESTION)
    check(rows(), tmp_path)


@pytest.mark.parametrize("kind", ["RETRIEVER", "TOOL"])
def test_observations_of_the_langfuse_sdk(tmp_path, kind):
    types = pytest.importorskip("langfuse.api.commons.types", reason="langfuse is not installed")
    common = {"trace_id": "T", "project_id": "p", "start_time": "2026-01-01T10:00:00Z"}
    rows = [
        {"id": "1", "type": "CHAIN", "input": {"question": QUESTION}, "output": "At seven."},
        {
            "id": "2",
            "type": kind,
            "parent_observation_id": "1",
            "input": json.dumps({"query": QUESTION}),
            "output": json.dumps(FOUND),
        },
    ]
    written = [json.loads(types.ObservationV2(**common, **row).json()) for row in rows]
    check(written, tmp_path)


@pytest.mark.slow
def test_spans_that_phoenix_exports(tmp_path, monkeypatch):
    phoenix = pytest.importorskip("phoenix", reason="arize-phoenix is not installed")
    from openinference.instrumentation import OITracer, TraceConfig, get_retriever_attributes
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    monkeypatch.setenv("PHOENIX_PORT", "16006")
    monkeypatch.setenv("PHOENIX_GRPC_PORT", "14317")
    phoenix.launch_app(use_temp_dir=True)
    provider, address = TracerProvider(), "http://127.0.0.1:16006"
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(f"{address}/v1/traces")))
    tracer = OITracer(provider.get_tracer("app"), TraceConfig())
    documents = [{"id": one["id"], "content": one["text"]} for one in FOUND]
    with tracer.start_as_current_span("app", openinference_span_kind="chain") as root:
        root.set_input(QUESTION)
        with tracer.start_as_current_span("search", openinference_span_kind="retriever") as search:
            search.set_input(QUESTION)
            search.set_attributes(get_retriever_attributes(documents=documents))
        root.set_output("At seven.")
    provider.shutdown()
    spans = phoenix.client.Client(base_url=address).spans
    for _ in range(100):  # it writes what it received every now and then
        if len(exported := spans.get_spans(project_identifier="default")) == 2:
            break
    check(exported, tmp_path)
    frame = spans.get_spans_dataframe(project_identifier="default")
    frame.to_parquet(tmp_path / "phoenix.parquet")
    (trace,) = read_recording(tmp_path / "phoenix.parquet").traces.values()
    assert [passage.id for passage in trace.retrieved] == ["times", "pets"]
    phoenix.close_app()


def test_spans_that_the_langfuse_sdk_sends(spans, tmp_path):
    langfuse = pytest.importorskip("langfuse", reason="langfuse is not installed")
    provider, rows = spans
    client = langfuse.Langfuse(
        public_key="pk", secret_key="sk", base_url="http://127.0.0.1:9", tracer_provider=provider
    )
    observe = client.start_as_current_observation
    with observe(as_type="chain", name="app", input={"question": QUESTION}) as root:
        with observe(as_type="retriever", name="search", input=QUESTION) as search:
            search.update(output=[{"page_content": one["text"]} for one in FOUND])
        root.update(output={"answer": "At seven."})
    check(rows(), tmp_path)


OBSERVATIONS = [
    {"id": "1", "name": "app", "type": "SPAN", "input": {"question": QUESTION},
     "output": {"answer": "At seven."}},
    {"id": "2", "parent_observation_id": "1", "name": "search", "type": "RETRIEVER",
     "input": QUESTION, "output": FOUND},
]  # fmt: skip


def test_observations_in_langfuses_blob_storage(tmp_path):
    """Names and texts as the reference of its fields has them."""
    common = {"trace_id": "T", "project_id": "p", "start_time": "2026-05-01 08:00:00.000000"}
    rows = [
        {**common, **row, **{name: json.dumps(row[name]) for name in ("input", "output")}}
        for row in OBSERVATIONS
    ]
    check(rows, tmp_path)


def test_pages_of_an_api_are_their_objects(tmp_path):
    names = {"parent_observation_id": "parentObservationId"}
    observations = [
        {"traceId": "T", "startTime": "2026-05-01T08:00:00Z"}
        | {names.get(name, name): value for name, value in row.items()}
        for row in OBSERVATIONS
    ]
    check([{"data": observations, "meta": {"cursor": "x"}}], tmp_path)
    runs = [
        {"id": row["id"], "trace_id": "1", "parent_run_id": row.get("parent_observation_id"),
         "run_type": kind, "start_time": "2026-05-01T08:00:00",
         "inputs": {"question": QUESTION}, "outputs": outputs}
        for row, kind, outputs in zip(
            OBSERVATIONS, ("chain", "retriever"),
            ({"answer": "At seven."}, {"documents": [{"page_content": FERRY},
                                                     {"page_content": DOGS}]}), strict=True)
    ]  # fmt: skip
    check([{"runs": runs, "cursors": {"next": None}}], tmp_path)
    kinds = ("CHAIN", "RETRIEVER")
    phoenix = [
        {"name": row["name"], "context": {"trace_id": "abc", "span_id": row["id"]},
         "span_kind": kind, "parent_id": row.get("parent_observation_id"),
         "start_time": "2026-05-01T08:00:00+00:00", "status_code": "OK",
         "attributes": {"input.value": QUESTION, **found}}
        for row, kind, found in zip(
            OBSERVATIONS, kinds,
            ({"output.value": "At seven."},
             {f"retrieval.documents.{n}.document.content": one["text"]
              for n, one in enumerate(FOUND)}), strict=True)
    ]  # fmt: skip
    check([{"data": phoenix, "next_cursor": None}], tmp_path)


def test_a_root_alone_says_what_was_retrieved_if_it_returns_it(tmp_path):
    """As LangSmith lists runs with is_root: a chain returns its documents beside the answer."""
    outputs = {"answer": "At seven.", "context": [{"page_content": FERRY}, {"page_content": DOGS}]}
    run = {"id": "1", "trace_id": "1", "run_type": "chain", "inputs": {"input": QUESTION}}
    path = tmp_path / "runs.jsonl"
    path.write_text(json.dumps({**run, "outputs": outputs}), encoding="utf-8")
    (trace,) = read_recording(path).traces.values()
    assert trace.answer == "At seven."
    assert [passage.text for passage in trace.retrieved] == [FERRY, DOGS]
