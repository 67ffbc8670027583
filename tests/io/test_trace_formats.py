"""Logs as they come: tables of any names, OTLP, Phoenix; broken lines by their place."""

import csv
import gzip
import json

import pytest

from misslink.errors import InputError
from misslink.io.trace_formats import parse_columns, read_logs
from misslink.io.trace_formats.requests import (
    extract_answer,
    extract_history,
    extract_passages,
    extract_question,
    parse_time,
)
from misslink.types import Case


def lines(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def otlp(trace, span, parent, attributes, *, status=None, events=(), start=1_777_622_400):
    def value(v):
        if isinstance(v, bool):
            return {"boolValue": v}
        if isinstance(v, int):
            return {"intValue": str(v)}
        return {"doubleValue": v} if isinstance(v, float) else {"stringValue": v}

    made = {
        "traceId": trace,
        "spanId": span,
        "startTimeUnixNano": str(start * 10**9),
        "endTimeUnixNano": str((start + 2) * 10**9),
        "attributes": [{"key": key, "value": value(v)} for key, v in attributes.items()],
        "events": list(events),
        "status": status or {},
    }
    return made if parent is None else made | {"parentSpanId": parent}


def batch(*spans):
    return {
        "resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": list(spans)}]}]
    }


OPENINFERENCE = [
    otlp(
        "t1",
        "a",
        None,
        {
            "openinference.span.kind": "CHAIN",
            "session.id": "s9",
            "input.value": '{"question": "When does it open?"}',
            "input.mime_type": "application/json",
            "output.value": "At nine.",
        },
    ),
    otlp(
        "t1",
        "b",
        "a",
        {
            "openinference.span.kind": "RETRIEVER",
            "input.value": "open",
            "retrieval.documents.0.document.id": "times",
            "retrieval.documents.0.document.score": 0.5,
            "retrieval.documents.0.document.content": "Open from nine.",
            "retrieval.documents.1.document.id": 7,
            "retrieval.documents.1.document.content": "Closed.",
            "retrieval.documents.10.document.id": "last",
        },
    ),
    otlp(
        "t1",
        "c",
        "a",
        {
            "openinference.span.kind": "LLM",
            "llm.input_messages.0.message.role": "user",
            "llm.input_messages.0.message.content": "a whole prompt",
            "llm.output_messages.0.message.role": "assistant",
            "llm.output_messages.0.message.content": "other words",
        },
    ),
]


def test_openinference_spans_make_one_request(tmp_path):
    path = lines(tmp_path / "t.jsonl", batch(*OPENINFERENCE))
    (request,) = read_logs([path]).requests
    assert request.question == "When does it open?"
    assert request.answer == "At nine."
    assert [p.id for p in request.passages] == ["times", "7", "last"]
    assert request.passages[0].score == 0.5
    assert request.session == "s9"
    assert request.latency_s == 2
    assert request.at.isoformat() == "2026-05-01T08:00:00+00:00"


def test_a_whole_file_of_otlp_over_several_lines(tmp_path):
    path = tmp_path / "t.json"
    path.write_text(json.dumps(batch(*OPENINFERENCE), indent=2), encoding="utf-8")
    assert read_logs([path]).requests[0].question == "When does it open?"


def test_spans_of_one_trace_may_lie_in_two_files(tmp_path):
    first = lines(tmp_path / "1.jsonl", batch(OPENINFERENCE[1]))
    second = lines(tmp_path / "2.jsonl", batch(OPENINFERENCE[0]))
    (request,) = read_logs([first, second]).requests
    assert (request.question, len(request.passages)) == ("When does it open?", 3)


def test_gen_ai_conventions(tmp_path):
    messages = [
        {"role": "system", "parts": [{"type": "text", "content": "Be kind."}]},
        {"role": "user", "parts": [{"type": "text", "content": "May dogs travel?"}]},
    ]
    said = [{"role": "assistant", "parts": [{"type": "text", "content": "They may."}]}]
    path = lines(
        tmp_path / "t.jsonl",
        batch(
            otlp(
                "t",
                "a",
                None,
                {"gen_ai.operation.name": "invoke_agent", "gen_ai.conversation.id": "c1"},
                status={"code": 2, "message": "out of tokens"},
            ),
            otlp(
                "t",
                "b",
                "a",
                {
                    "gen_ai.operation.name": "retrieval",
                    "gen_ai.retrieval.documents": json.dumps([{"id": "pets", "score": 0.9}]),
                },
            ),
            otlp(
                "t",
                "c",
                "a",
                {
                    "gen_ai.operation.name": "chat",
                    "gen_ai.input.messages": json.dumps(messages),
                    "gen_ai.output.messages": json.dumps(said),
                },
            ),
        ),
    )
    (request,) = read_logs([path]).requests
    assert (request.question, request.answer) == ("May dogs travel?", "They may.")
    assert [(p.id, p.score) for p in request.passages] == [("pets", 0.9)]
    assert (request.session, request.error) == ("c1", "out of tokens")


def test_a_rerankers_documents_are_what_was_retrieved(tmp_path):
    spans = [
        *OPENINFERENCE[:2],
        otlp(
            "t1",
            "d",
            "a",
            {"openinference.span.kind": "RERANKER", "reranker.output_documents.0.document.id": "7"},
        ),
    ]
    (request,) = read_logs([lines(tmp_path / "t.jsonl", batch(*spans))]).requests
    assert [p.id for p in request.passages] == ["7"]


def test_feedback_of_an_evaluation_event_and_of_an_annotation(tmp_path):
    event = {
        "name": "gen_ai.evaluation.result",
        "attributes": [
            {"key": "gen_ai.evaluation.name", "value": {"stringValue": "user_feedback"}},
            {"key": "gen_ai.evaluation.score.value", "value": {"doubleValue": 0}},
        ],
    }
    spans = [
        otlp("t1", "a", None, {"input.value": "one?"}, events=[event]),
        otlp(
            "t2",
            "b",
            None,
            {
                "input.value": "two?",
                "annotations.user feedback.label": "thumbs-up",
                "annotations.user feedback.explanation": "nice",
            },
        ),
        otlp("t3", "c", None, {"input.value": "three?", "annotations.correctness.score": 0}),
    ]
    log = read_logs([lines(tmp_path / "t.jsonl", batch(*spans))])
    assert [request.feedback for request in log.requests] == [0, "thumbs-up", None]


def test_phoenix_rows_flat_and_nested_and_as_parquet(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    documents = [{"document.id": "times", "document.content": "Open from nine."}]
    flat = {
        "context.trace_id": "t",
        "context.span_id": "a",
        "span_kind": "RETRIEVER",
        "name": "r",
        "attributes.input.value": "When?",
        "attributes.retrieval.documents": documents,
        "start_time": "2026-05-01T08:00:00+00:00",
        "status_code": "OK",
    }
    nested = {
        "context": {"trace_id": "0xt", "span_id": "0xa"},
        "parent_id": None,
        "status_code": "ERROR",
        "attributes": {
            "openinference": {"span": {"kind": "RETRIEVER"}},
            "input": {"value": "When?"},
            "retrieval": {
                "documents": [{"document": {"id": "times", "content": "Open from nine."}}]
            },
        },
    }
    table = tmp_path / "spans.parquet"
    pq.write_table(pa.Table.from_pylist([flat]), table)
    for path in (table, lines(tmp_path / "f.jsonl", flat), lines(tmp_path / "n.jsonl", nested)):
        (request,) = read_logs([path]).requests
        assert request.question == "When?"
        assert [(p.id, p.text) for p in request.passages] == [("times", "Open from nine.")]
    assert read_logs([tmp_path / "n.jsonl"]).requests[0].error is not None
    with (tmp_path / "s.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        row = {**flat, "attributes.retrieval.documents": json.dumps(documents)}
        writer.writerows([row.keys(), row.values()])
    assert read_logs([tmp_path / "s.csv"]).requests[0].passages[0].id == "times"


def test_traces_without_a_question_are_counted(tmp_path):
    path = lines(tmp_path / "t.jsonl", batch(otlp("t", "a", None, {"x": 1}), *OPENINFERENCE))
    log = read_logs([path])
    assert (len(log.requests), log.left_out) == (1, {"traces without a question": 1})


def test_a_table_with_names_of_its_own(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("when;frage;antwort\n2026-05-01;Wann?;Um neun\n;;leer\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"--column question=NAME.*when, frage, antwort"):
        read_logs([path])
    log = read_logs([path], parse_columns(["question=frage", "answer=antwort", "time=when"]))
    assert [(r.question, r.answer, r.at.year) for r in log.requests] == [("Wann?", "Um neun", 2026)]
    assert log.left_out == {"rows without a question": 1}


def test_nested_columns_and_gzip(tmp_path):
    path = tmp_path / "log.jsonl.gz"
    row = {"inputs": {"payload": {"q": "Why?"}}, "contexts": ["one", "two", "one"]}
    path.write_bytes(gzip.compress((json.dumps(row) + "\n").encode()))
    (request,) = read_logs([path], parse_columns(["question=inputs.payload.q"])).requests
    assert request.question == "Why?"
    assert [p.text for p in request.passages] == ["one", "two"]


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("a.jsonl", b'{"question": "a?"}\n{"question": ', "a.jsonl, line 2: this is not JSON"),
        ("a.jsonl", b'{"question": "a?"}\n[1]', "a.jsonl, line 2"),
        ("a.csv", b"question,answer\na,b,c\n", "a.csv, line 2"),
        ("a.csv", b"", "a.csv"),
        ("a.csv", b"\xff\xfeq", "a.csv"),
        ("a.csv", b"questoin,answer\na,b\n", "question=questoin"),
        ("a.bin", b"PAR1 no table", "cannot be read"),
        ("a.csv.gz", b"\x1f\x8bbroken", "damaged"),
        ("a.jsonl", b'{"resourceSpans": 3}\n', "line 1, field 'resourceSpans'"),
        ("a.jsonl", b'{"resourceSpans": [{"scopeSpans": [3]}]}\n', "field 'scopeSpans'"),
        ("a.jsonl", b'{"traceId": "1", "spanId": "2", "attributes": 3}\n', "field 'attributes'"),
        (
            "a.jsonl",
            b'{"resourceSpans": []}\n{"question": "x"}\n',
            "line 2: This row is not a span",
        ),
        ("a.jsonl", b'{"resourceSpans": []}\n', "no question"),
        ("a.jsonl", b'{"question": {"a": {"b": 1}}}\n', "no question"),
    ],
)
def test_a_broken_file_is_one_sentence_with_its_place(tmp_path, name, content, told):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError) as wrong:
        read_logs([path])
    assert told in str(wrong.value)
    assert "\n" not in str(wrong.value)


def test_an_unknown_field_or_column_gives_the_nearest(tmp_path):
    with pytest.raises(InputError, match="did you mean 'question'"):
        parse_columns(["queston=x"])
    with pytest.raises(InputError, match="names no column"):
        parse_columns(["question"])
    path = lines(tmp_path / "a.jsonl", {"prompt_text": "Why?"})
    with pytest.raises(InputError, match="did you mean 'prompt_text'"):
        read_logs([path], {"question": "promt_text"})


@pytest.mark.parametrize(
    "value",
    [
        "Why?",
        {"question": "Why?"},
        '{"input": {"query": "Why?"}}',
        [
            {"role": "user", "content": "Before?"},
            {"role": "assistant", "content": "Yes."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Why?"},
                    {"type": "image_url", "image_url": "x"},
                ],
            },
        ],
        {"messages": [["human", "no"], {"type": "human", "data": {"content": "Why?"}}]},
        {
            "messages": [
                {"id": ["langchain", "schema", "HumanMessage"], "kwargs": {"content": "Why?"}}
            ]
        },
        [[{"type": "human", "content": "Why?"}]],
    ],
)
def test_a_question_is_found_in_the_shapes_in_which_apps_log_it(value):
    assert extract_question(value) == "Why?"


def test_an_answer_is_the_last_of_the_models_messages():
    messages = [
        {"role": "assistant", "content": "A"},
        {"role": "assistant", "content": "B"},
        {"role": "user", "content": "Why?"},
    ]
    assert extract_answer({"messages": messages}) == "B"


CALLS = {"role": "assistant", "content": "", "tool_calls": [{"id": "t", "name": "s", "args": {}}]}
USES = {"role": "assistant", "content": [{"type": "tool_use", "name": "s", "input": {"text": "x"}}]}
RETURNS = {"role": "user", "content": [{"type": "tool_result", "content": "found"}]}


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([["human", "Hi"], ["human", "Why?"]], []),
        (
            [["human", "A?"], ["human", "B?"], ["ai", "OK"], ["human", "Why?"]],
            [("user", "A?\nB?"), ("assistant", "OK")],
        ),
        (
            [
                *({"role": "user", "content": "A?"}, CALLS, {"role": "tool", "content": "found"}),
                *(USES, RETURNS, {"role": "assistant", "content": "OK"}),
                *({"role": "user", "content": "Why?"}, CALLS),
            ],
            [("user", "A?"), ("assistant", "OK")],
        ),
        (
            {"input": "Why?", "chat_history": [["ai", "OK"], ["human", "Why?"]]},
            [("assistant", "OK")],
        ),
    ],
)
def test_a_history_alternates_and_ends_with_the_assistant(messages, expected):
    history = extract_history(messages)
    assert [(message["role"], message["content"]) for message in history] == expected
    assert extract_question(messages) == "Why?"
    Case(id="c", question="Why?", history=history)


def test_what_is_nested_without_end_is_no_question():
    deep = "Why?"
    for _ in range(2000):
        deep = {"input": deep}
    assert extract_question(deep) is None


def test_passages_without_anything_are_none():
    assert extract_passages("no list") is None
    assert extract_passages([]) == ()
    assert extract_passages(["", True]) == ()
    assert extract_passages([None, {}, "", {"score": 1}, True]) is None  # not recorded
    assert (
        extract_passages([{"page_content": "x", "metadata": {"id": "m1"}, "score": "nan"}])[0].id
        == "m1"
    )


def test_moments_that_are_none():
    assert [parse_time(value) for value in ("", "soon", float("inf"), True, 1e300)] == [None] * 5
