"""Scores go back to the tool that the traces come from, tied to its ids."""

import base64
import csv
import json
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from google.protobuf import json_format
from langsmith.schemas import FeedbackCreate
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from typer.testing import CliRunner

import misslink
from misslink.cli.main import app
from misslink.errors import InputError
from misslink.io import read_complete_run
from misslink.report.scores import iter_scores, write_scores

FERRY = "The ferry leaves at seven."
RUN_ID, TRACE_ID = str(uuid.UUID(int=1)), str(uuid.UUID(int=2))
LANGSMITH = [
    {
        "id": RUN_ID, "trace_id": TRACE_ID, "run_type": "chain", "inputs": {"question": "When?"},
        "outputs": {"answer": "The ferry leaves at nine."}, "start_time": "2026-01-01T10:00:00",
        "child_runs": [
            {
                "id": str(uuid.UUID(int=3)), "trace_id": TRACE_ID, "parent_run_id": RUN_ID,
                "run_type": "retriever", "inputs": {"query": "When?"},
                "outputs": {"documents": [{"page_content": FERRY, "metadata": {}, "id": "times"}]},
            }
        ],
    }
]  # fmt: skip
GOLD = [{"id": "q", "question": "When?", "relevant": ["times"], "reference": "At seven."}]


@pytest.fixture(scope="module")
def spans():
    """The ids of a trace and its root span, and its spans as the SDK writes them."""
    provider, memory = TracerProvider(), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    tracer = provider.get_tracer("app")
    with tracer.start_as_current_span("app") as root:
        root.set_attributes({"input.value": "When?", "output.value": "The ferry leaves at nine."})
        with tracer.start_as_current_span("search") as search:
            search.set_attributes(
                {
                    "openinference.span.kind": "RETRIEVER",
                    "retrieval.documents.0.document.id": "times",
                    "retrieval.documents.0.document.content": FERRY,
                }
            )
        ids = (
            f"{root.get_span_context().trace_id:032x}",
            f"{root.get_span_context().span_id:016x}",
        )
    yield ids, [json.loads(span.to_json()) for span in memory.get_finished_spans()]
    provider.shutdown()


def evaluated(folder, traces):
    """The folder of a run over traces of another tool."""
    (folder / "traces.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in traces))
    (folder / "gold.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in GOLD))
    misslink.evaluate(
        traces=folder / "traces.jsonl", goldset=folder / "gold.jsonl", out=folder / "run"
    )
    return folder / "run"


@pytest.fixture(scope="module")
def otel_run(tmp_path_factory, spans):
    return evaluated(tmp_path_factory.mktemp("otel"), spans[1])


@pytest.fixture(scope="module")
def langsmith_run(tmp_path_factory):
    return evaluated(tmp_path_factory.mktemp("langsmith"), LANGSMITH)


def bodies(run, to, path):
    write_scores(read_complete_run(run), to, path)
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_events_parse_as_otlp_and_have_the_ids_of_the_trace(otel_run, spans, tmp_path):
    (trace_id, span_id), _ = spans
    (body,) = bodies(otel_run, "otel", tmp_path / "scores.jsonl")
    (record, *_) = records = body["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
    assert {(r["traceId"], r["spanId"], r["eventName"]) for r in records} == {
        (trace_id, span_id, "gen_ai.evaluation.result")
    }
    for each in records:  # protobuf's own JSON has bytes in base64, OTLP's has ids in hex
        for name in ("traceId", "spanId"):
            each[name] = base64.b64encode(bytes.fromhex(each[name])).decode()
    parsed = json_format.ParseDict(body, ExportLogsServiceRequest())
    (first, *_) = parsed.resource_logs[0].scope_logs[0].log_records
    attributes = {pair.key: pair.value for pair in first.attributes}
    assert first.trace_id.hex() == trace_id
    assert attributes["gen_ai.evaluation.name"].string_value == "failure"
    assert attributes["gen_ai.evaluation.score.label"].string_value == "ignored_context"
    assert attributes["gen_ai.evaluation.score.value"].double_value == 0
    assert record["timeUnixNano"].isdigit()


def test_every_measured_number_is_a_score(otel_run):
    scores = {score.name: score for score in iter_scores(read_complete_run(otel_run))}
    assert (scores["recall@5"].value, scores["recall@5"].by) == (1.0, "CODE")
    assert (scores["faithfulness"].value, scores["faithfulness"].label) == (0.0, "fail")
    assert "unsupported: The ferry leaves at nine." in scores["faithfulness"].comment
    assert "(owner: generator)" in scores["failure"].comment
    assert all(score.value is not None for score in scores.values())  # missing is no score


def test_langsmith_feedback_has_its_own_schema(langsmith_run, tmp_path):
    feedback = [
        FeedbackCreate.model_validate(body)
        for body in bodies(langsmith_run, "langsmith", tmp_path / "a.jsonl")
    ]
    assert {(str(f.run_id), str(f.trace_id)) for f in feedback} == {(RUN_ID, TRACE_ID)}
    assert {f.key: f.value for f in feedback}["failure"] == "ignored_context"
    again = bodies(langsmith_run, "langsmith", tmp_path / "b.jsonl")
    assert [str(f.id) for f in feedback] == [body["id"] for body in again]  # replaced, not doubled


def test_langfuse_scores_are_numbers_and_the_failure_is_a_word(langsmith_run, tmp_path):
    (scores,) = bodies(langsmith_run, "langfuse", tmp_path / "scores.jsonl")
    by_name = {score["name"]: score for score in scores}
    assert {score["traceId"] for score in scores} == {TRACE_ID}
    assert (by_name["failure"]["value"], by_name["failure"]["dataType"]) == (
        "ignored_context",
        "CATEGORICAL",
    )
    assert (by_name["recall@5"]["value"], by_name["recall@5"]["dataType"]) == (1.0, "NUMERIC")


def test_phoenix_annotations_are_of_the_root_span(otel_run, spans, tmp_path):
    (body,) = bodies(otel_run, "phoenix", tmp_path / "scores.jsonl")
    assert {each["span_id"] for each in body["data"]} == {spans[0][1]}
    assert {each["annotator_kind"] for each in body["data"]} == {"CODE"}  # the heuristic judge
    faithfulness = next(each for each in body["data"] if each["name"] == "faithfulness")
    assert faithfulness["result"]["score"] == 0.0


def test_a_table_needs_no_ids(tmp_path):
    run = evaluated(
        tmp_path, [{"case_id": "q", "retrieved": [{"id": "times", "text": FERRY}], "answer": "=1"}]
    )
    assert CliRunner().invoke(app, ["export", str(run), "--to", "csv"]).exit_code == 0
    rows = list(csv.DictReader((run / "scores.csv").open(newline="")))
    assert {row["case_id"] for row in rows} == {"q"}
    assert float(next(row for row in rows if row["name"] == "recall@5")["value"]) == 1.0
    with pytest.raises(InputError, match="no trace_id"):
        write_scores(read_complete_run(run), "otel", tmp_path / "x.jsonl")


@pytest.mark.parametrize("to", ["otel", "phoenix"])
def test_ids_of_another_tool_are_refused(otel_run, langsmith_run, tmp_path, to):
    with pytest.raises(InputError, match="which langsmith does not take"):
        write_scores(read_complete_run(otel_run), "langsmith", tmp_path / "x.jsonl")
    with pytest.raises(InputError, match=f"which {to} does not take"):
        write_scores(read_complete_run(langsmith_run), to, tmp_path / "x.jsonl")


@pytest.fixture
def server():
    """A server that keeps what it is sent; `answers` are its next statuses and bodies."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            content = self.rfile.read(int(self.headers["content-length"]))
            requests.append((self.path, dict(self.headers), json.loads(content)))
            status, reply = answers.pop(0) if answers else (202, "{}")
            self.send_response(status)
            self.end_headers()
            self.wfile.write(reply.encode())

        def log_message(self, *_):
            pass

    requests, answers = [], []
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=httpd.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{httpd.server_port}", requests, answers
    httpd.shutdown()
    thread.join()
    httpd.server_close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("to", "path", "keys", "header"),
    [
        (
            "otel",
            "/v1/logs",
            {"OTEL_EXPORTER_OTLP_HEADERS": "authorization=Basic%20YTpi"},
            ("authorization", "Basic YTpi"),
        ),
        (
            "langfuse",
            "/api/public/scores",
            {"LANGFUSE_PUBLIC_KEY": "a", "LANGFUSE_SECRET_KEY": "b"},
            ("authorization", "Basic YTpi"),
        ),
        ("langsmith", "/feedback", {"LANGSMITH_API_KEY": "k"}, ("x-api-key", "k")),
        (
            "phoenix",
            "/v1/span_annotations",
            {"PHOENIX_API_KEY": "k"},
            ("authorization", "Bearer k"),
        ),
    ],
)
def test_sent_is_what_the_file_has(
    langsmith_run, otel_run, tmp_path, server, monkeypatch, to, path, keys, header
):
    address, requests, _ = server
    run = otel_run if to in ("otel", "phoenix") else langsmith_run
    for name, value in keys.items():
        monkeypatch.setenv(name, value)
    out = tmp_path / "scores.jsonl"
    command = [
        "export",
        str(run),
        "--to",
        to,
        "--out",
        str(out),
        "--send",
        address,
        "--json",
    ]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["requests_sent"] == len(requests) > 0
    assert [body for *_, body in requests] == [json.loads(x) for x in out.read_text().splitlines()]
    assert {url for url, *_ in requests} == {path}
    sent = {name.lower(): value for name, value in requests[0][1].items()}
    assert sent[header[0]] == header[1]


def test_what_an_otlp_server_rejects_is_an_error(otel_run, tmp_path, server):
    address, _, answers = server
    answers.append((200, '{"partialSuccess": {"rejectedLogRecords": "2", "errorMessage": "old"}}'))
    command = [
        "export",
        str(otel_run),
        "--to",
        "otel",
        "--out",
        str(tmp_path / "x"),
        "--send",
        address,
    ]
    result = CliRunner().invoke(app, command)
    assert isinstance(result.exception, InputError)
    assert "rejectedLogRecords" in str(result.exception)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((401, "no such key"), "HTTP 401: no such key"),
        ((207, '{"accepted": 0, "errors": [{"message": "bad"}]}'), "bad"),
    ],
)
def test_a_refusal_is_an_error_and_the_file_stays(
    langsmith_run, tmp_path, server, monkeypatch, answer, message
):
    address, _, answers = server
    answers.append(answer)
    monkeypatch.setenv("LANGFUSE_PUBLIC_KEY", "a")
    monkeypatch.setenv("LANGFUSE_SECRET_KEY", "secret-word")
    out = tmp_path / "scores.jsonl"
    result = CliRunner().invoke(
        app,
        ["export", str(langsmith_run), "--to", "langfuse", "--out", str(out), "--send", address],
    )
    assert isinstance(result.exception, InputError)
    assert message in str(result.exception)
    assert "secret-word" not in str(result.exception)
    assert out.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--to", "langfuze"], "did you mean 'langfuse'"),
        (["--to", "csv", "--send", "http://127.0.0.1:9"], "A CSV file cannot be sent"),
        (["--to", "langfuse", "--send", "http://127.0.0.1:9"], "Set LANGFUSE_PUBLIC_KEY"),
        (["--to", "otel", "--send", "http://127.0.0.1:9"], "did not take line 1"),
        (["--to", "otel", "--out", "RUN/cases.jsonl"], "part of a run"),
    ],
)
def test_wrong_options_are_one_sentence(otel_run, tmp_path, monkeypatch, arguments, message):
    monkeypatch.delenv("LANGFUSE_PUBLIC_KEY", raising=False)
    out = [] if "--out" in arguments else ["--out", str(tmp_path / "x.jsonl")]
    arguments = [part.replace("RUN", str(otel_run)) for part in arguments]
    result = CliRunner().invoke(app, ["export", str(otel_run), *arguments, *out])
    assert isinstance(result.exception, InputError)
    assert message in str(result.exception)


def test_an_event_without_a_span_names_the_reply_of_the_model(tmp_path):
    """As the convention has it: gen_ai.response.id where no id of a span is known."""
    passages = [{"id": "times", "text": FERRY}]
    row = {"case_id": "q", "answer": "At nine.", "retrieved": passages, "response_id": "resp_1"}
    run = evaluated(tmp_path, [row])
    (body,) = bodies(run, "otel", tmp_path / "scores.jsonl")
    records = body["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
    for record in records:
        attributes = {pair["key"]: pair["value"] for pair in record["attributes"]}
        assert attributes["gen_ai.response.id"] == {"stringValue": "resp_1"}
        assert "spanId" not in record
    assert records


def test_the_id_of_a_reply_is_read_from_its_span(tmp_path, spans):
    _, rows = spans
    last = {**rows[-1], "attributes": {**rows[-1]["attributes"], "gen_ai.response.id": "resp_2"}}
    run = read_complete_run(evaluated(tmp_path, [*rows[:-1], last]))
    assert [trace.response_id for trace in run.traces] == ["resp_2"]
