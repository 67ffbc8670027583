"""Recorded traces of any tool become traces and cases; what cannot be read names its place."""

import csv
import json

import numpy as np
import pandas as pd
import pytest
from openinference.instrumentation import (
    OITracer,
    TraceConfig,
    get_llm_attributes,
    get_retriever_attributes,
)
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import misslink
from misslink.errors import InputError
from misslink.io import read_goldset
from misslink.io.trace_formats import read_recording
from misslink.io.trace_formats.samples import NOT_RECORDED
from misslink.parts import case_ids
from misslink.types import Trace

FERRY = "The ferry leaves at seven."
DOGS = "Dogs travel free."
RAGAS = {"user_input": "When?", "retrieved_contexts": [FERRY, DOGS], "response": "At seven."}
TREC_RAG = {"topic_id": "1", "topic": "When?", "references": ["times"], "run_id": "r"}
RUN = {"id": "1", "trace_id": "T", "run_type": "chain", "inputs": {"question": "When?"}}
SEARCH = {"id": "2", "trace_id": "T", "run_type": "retriever", "inputs": {"query": "When?"}}
DOCUMENTS = [
    {"page_content": FERRY, "metadata": {"id": "times"}, "type": "Document"},
    {"page_content": DOGS, "metadata": {}, "id": "pets", "type": "Document"},
]
LANGSMITH = [
    {**RUN, "outputs": {"answer": "At seven."}, "start_time": "2026-01-01T10:00:00"},
    {**SEARCH, "parent_run_id": "1", "outputs": {"documents": DOCUMENTS}},
]
LANGFUSE = {
    "data": [
        {
            "id": "T", "timestamp": "2026-01-01T10:00:00Z", "projectId": "p",
            "input": {"question": "When?"}, "output": "At seven.",
            "observations": [
                {
                    "id": "o", "type": "RETRIEVER", "startTime": "2026-01-01T10:00:01Z",
                    "input": "When?", "output": DOCUMENTS,
                }
            ],
        }
    ],
    "meta": {"page": 1},
}  # fmt: skip


def write(path, *rows):
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def summary(recording):
    """Question, answer and texts of each trace."""
    return [
        (recording.cases[name].question, trace.answer, [p.text for p in trace.retrieved])
        for name, trace in recording.traces.items()
    ]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("ragas.jsonl", RAGAS),
        ("ragas.json", [RAGAS]),
        (
            "ragas01.csv",
            f"question,contexts,answer,ground_truth\nWhen?,\"['{FERRY}'\n '{DOGS}']\",At seven.,R",
        ),
        (
            "deepeval.json",
            [
                {
                    "input": "When?", "actual_output": "At seven.", "context": [FERRY],
                    "retrieval_context": [FERRY, DOGS],
                }
            ],
        ),
        (
            "deepeval.jsonl",
            {"input": "When?", "actualOutput": "At seven.", "retrievalContext": [FERRY, DOGS]},
        ),
        (
            "own.jsonl",
            {"question": "When?", "answer": "At seven.", "retrieved": [{"text": FERRY}, {"text": DOGS}]},
        ),
        ("log.csv", f'query;reply;contexts\nWhen?;At seven.;["{FERRY}", "{DOGS}"]'.replace('"', '""')
            .replace(';[""', ';"[""').replace('""]', '""]"')),
        ("langsmith.jsonl", LANGSMITH),
        ("langfuse.json", LANGFUSE),
    ],
)  # fmt: skip
def test_every_format_has_the_question_the_answer_and_the_passages(tmp_path, name, content):
    path = tmp_path / name
    if isinstance(content, str):
        path.write_text(content)
    elif name.endswith(".jsonl"):
        write(path, *(content if isinstance(content, list) else [content]))
    else:
        path.write_text(json.dumps(content, indent=2))
    recording = read_recording(path)
    assert summary(recording) == [("When?", "At seven.", [FERRY, DOGS])]
    assert len(recording.gold().cases) == 1


def test_labels_and_ids_of_the_file_are_those_of_the_cases(tmp_path):
    path = write(
        tmp_path / "ragas.jsonl",
        {**RAGAS, "reference": "R", "reference_contexts": ["E"], "retrieved_context_ids": ["a", "b"]},
        {**RAGAS, "response": "At eight."},
    )  # fmt: skip
    recording = read_recording(path)
    first, second = recording.cases.values()
    assert (first.references, dict(first.evidence)) == (("R",), {"E": 1})
    assert [p.id for p in recording.traces[first.id].retrieved] == ["a", "b"]
    assert second.id == f"{first.id}-2"  # the same question again is no trace less
    own = {"case_id": "c1", "question": "When?", "relevant": {"times": 2}, "retrieved": ["times"]}
    case = read_recording([own]).cases["c1"]
    assert (case.id, case.relevant) == ("c1", {"times": 2})


def test_blank_contexts_shift_no_id(tmp_path):
    contexts = {"retrieved_contexts": ["", FERRY, "", DOGS]}
    ids = {"retrieved_context_ids": ["a", "b", "", "d"]}
    path = write(
        tmp_path / "ragas.jsonl",
        {**RAGAS, **contexts, **ids},
        {**RAGAS, **contexts, "response": "At eight."},
    )
    first, second = read_recording(path).traces.values()
    assert [(p.id, p.text, p.rank) for p in first.retrieved] == [
        ("a", "", 1),
        ("b", FERRY, 2),
        ("d", DOGS, 3),
    ]
    assert [p.text for p in second.retrieved] == [FERRY, DOGS]


def test_langsmith_and_langfuse_documents_have_their_ids(tmp_path):
    (trace,) = read_recording(write(tmp_path / "runs.jsonl", *LANGSMITH)).traces.values()
    assert (trace.case_id, [p.id for p in trace.retrieved]) == ("T", ["times", "pets"])


def test_a_trec_run_needs_a_gold_set(tmp_path):
    (tmp_path / "run.txt").write_text("1 Q0 d1 1 3.5 bm25\n1 Q0 d2 2 4.5 bm25\n")
    recording = read_recording(tmp_path / "run.txt")
    assert [p.id for p in recording.traces["1"].retrieved] == ["d2", "d1"]
    with pytest.raises(InputError, match="has no question"):
        recording.gold()
    row = {"topic_id": "t", "topic": "When?", "references": ["d1"], "answer": [{"text": "Now."}]}
    recording = read_recording(write(tmp_path / "rag.jsonl", row))
    assert [p.id for p in recording.traces["t"].retrieved] == ["d1"]
    assert recording.traces["t"].answer == "Now."


def test_a_gold_set_is_matched_by_id_or_by_question():
    gold = read_goldset([{"id": "c1", "question": "when?"}, {"id": "c2", "question": "Who?"}])
    recording = read_recording([RAGAS, {**RAGAS, "user_input": "Who?"}])
    assert case_ids(recording.match(gold)) == ["c1", "c2"]


def test_a_question_with_another_history_is_another_case():
    said = [{"role": "user", "content": "The ferry?"}, {"role": "assistant", "content": "Yes."}]
    gold = read_goldset(
        [{"id": "alone", "question": "When?"}, {"id": "turn", "question": "when?", "history": said}]
    )
    rows = [{**RAGAS, "history": said}, RAGAS]
    assert case_ids(read_recording(rows).match(gold)) == ["turn", "alone"]
    twice = read_goldset([{"id": name, "question": "When?"} for name in "ab"])
    with pytest.raises(InputError, match="no trace belongs to a case"):  # of two, neither is meant
        read_recording([RAGAS]).match(twice)


@pytest.mark.parametrize("name", ["history", "chat_history"])
def test_rows_of_a_table_have_a_history_and_ids(tmp_path, name):
    said = [{"role": "user", "content": "The ferry?"}, {"role": "assistant", "content": "Yes."}]
    row = {
        "query": "When?",
        "reply": "At seven.",
        "contexts": [FERRY],
        "trace_id": "T",
        "span_id": "S",
    }
    recording = read_recording(write(tmp_path / "log.jsonl", {**row, name: said}))
    ((case_id, trace),) = recording.traces.items()
    history = recording.cases[case_id].history
    assert [message.content for message in history] == ["The ferry?", "Yes."]
    assert (trace.trace_id, trace.span_id) == ("T", "S")


def test_evaluate_needs_no_gold_set():
    run = misslink.evaluate(traces=pd.DataFrame([RAGAS]), cache=None, embedding="none")
    assert [case.question for case in run.cases] == ["When?"]
    assert run.traces[0].answer == "At seven."
    assert run.links[0].retrieval == "unlabelled"


# --- spans that the real SDK writes -----------------------------------------------------------


@pytest.fixture
def spans(tmp_path):
    """A tracer, and a function that writes its spans as the SDK's console exporter does."""
    provider, memory = TracerProvider(), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(memory))

    def save(name="spans.jsonl", *, dropped=()):
        lines = [span.to_json(indent=None) for span in memory.get_finished_spans()
                 if span.name not in dropped]  # fmt: skip
        (tmp_path / name).write_text("\n".join(lines))
        return tmp_path / name

    yield provider.get_tracer("app"), save
    provider.shutdown()


def answer_with_openinference(tracer, *, nested=False):
    documents = [{"content": FERRY, "id": "times", "score": 0.9}, {"content": DOGS, "id": "pets"}]
    tracer = OITracer(tracer, TraceConfig())
    with tracer.start_as_current_span("app", openinference_span_kind="chain") as root:
        root.set_input("When?")
        with tracer.start_as_current_span("search", openinference_span_kind="retriever") as search:
            search.set_attributes(get_retriever_attributes(documents=documents))
            if nested:
                with tracer.start_as_current_span(
                    "part", openinference_span_kind="retriever"
                ) as part:
                    other = [{"content": "Never returned.", "id": "other"}]
                    part.set_attributes(get_retriever_attributes(documents=other))
        with tracer.start_as_current_span("model", openinference_span_kind="llm") as model:
            messages = [{"role": "user", "content": "Answer: When?"}]
            model.set_attributes(get_llm_attributes(input_messages=messages))
        root.set_output("At seven.")


@pytest.mark.parametrize("nested", [False, True])
def test_openinference_spans_of_the_sdk(spans, nested):
    tracer, save = spans
    answer_with_openinference(tracer, nested=nested)
    answer_with_openinference(tracer)
    recording = read_recording(save())
    assert summary(recording) == [("When?", "At seven.", [FERRY, DOGS])] * 2
    trace = next(iter(recording.traces.values()))
    assert [(p.id, p.score) for p in trace.retrieved] == [("times", 0.9), ("pets", None)]
    assert trace.latency_s is not None


def test_ids_that_protobuf_writes_in_base64_are_those_of_the_trace(tmp_path):
    asked = {"key": "input.value", "value": {"stringValue": "When?"}}
    found = {"key": "gen_ai.retrieval.documents", "value": {"stringValue": json.dumps(DOCUMENTS)}}
    kind = {"key": "openinference.span.kind", "value": {"stringValue": "RETRIEVER"}}
    span = {"traceId": "AAECAwQFBgcICQoLDA0ODw==", "spanId": "AAECAwQFBgc=",
            "attributes": [asked, found, kind]}  # fmt: skip
    batch = {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}
    (trace,) = read_recording(write(tmp_path / "x.jsonl", batch)).traces.values()
    assert (trace.trace_id, trace.span_id) == (bytes(range(16)).hex(), bytes(range(8)).hex())


def test_phoenix_rows_in_parquet(spans, tmp_path):
    tracer, save = spans
    answer_with_openinference(tracer)
    rows = []
    for line in save().read_text().splitlines():
        span = json.loads(line)
        rows.append(
            {
                "name": span["name"], "parent_id": span["parent_id"],
                "start_time": span["start_time"], "end_time": span["end_time"],
                "context.trace_id": span["context"]["trace_id"],
                "context.span_id": span["context"]["span_id"],
                **{f"attributes.{key}": value for key, value in span["attributes"].items()},
            }
        )  # fmt: skip
    pd.DataFrame(rows).to_parquet(tmp_path / "phoenix.parquet")
    assert summary(read_recording(tmp_path / "phoenix.parquet")) == [
        ("When?", "At seven.", [FERRY, DOGS])
    ]
    assert summary(read_recording(pd.DataFrame(rows))) == [("When?", "At seven.", [FERRY, DOGS])]


def test_gen_ai_spans_of_the_sdk(spans):
    tracer, save = spans
    documents = json.dumps([{"id": "times", "content": FERRY, "score": 0.5}])
    with tracer.start_as_current_span("invoke_agent"):
        with tracer.start_as_current_span("retrieval") as search:
            search.set_attribute("gen_ai.operation.name", "retrieval")
            search.set_attribute("gen_ai.retrieval.query.text", "When?")
            search.set_attribute("gen_ai.retrieval.documents", documents)
        with tracer.start_as_current_span("chat") as model:
            asked = [{"role": "user", "parts": [{"type": "text", "content": "When?"}]}]
            said = [{"role": "assistant", "parts": [{"type": "text", "content": "At seven."}]}]
            model.set_attribute("gen_ai.operation.name", "chat")
            model.set_attribute("gen_ai.input.messages", json.dumps(asked))
            model.set_attribute("gen_ai.output.messages", json.dumps(said))
    recording = read_recording(save())
    assert summary(recording) == [("When?", "At seven.", [FERRY])]
    ((call,),) = (trace.calls for trace in recording.traces.values())
    assert (call.query, call.passages) == ("When?", ("times",))


@pytest.mark.parametrize("as_tool", [False, True])
def test_a_prompt_of_a_trace_in_which_the_app_cut_the_passages_shows_their_parts(spans, as_tool):
    tracer, save = spans
    tracer = OITracer(tracer, TraceConfig())
    text = f"{FERRY} It calls at three islands, carries bicycles, and turns round at the old pier."
    part = f"{FERRY} It calls at three islands"
    shown = json.dumps([{"text": part}]) if as_tool else f"Answer from this: {part}"
    with tracer.start_as_current_span("app", openinference_span_kind="chain") as root:
        root.set_input("When?")
        with tracer.start_as_current_span("search", openinference_span_kind="retriever") as search:
            documents = [{"content": text, "id": "times"}]
            search.set_attributes(get_retriever_attributes(documents=documents))
        with tracer.start_as_current_span("model", openinference_span_kind="llm") as model:
            asked = {"role": "user", "content": "When?"}
            messages = [asked, {"role": "tool" if as_tool else "user", "content": shown}]
            model.set_attributes(get_llm_attributes(input_messages=messages))
            model.set_output("At seven.")
        root.set_output("At seven.")
    (trace,) = read_recording(save()).traces.values()
    assert (trace.prompted, trace.shown) == (("times",), {"times": part})


@pytest.mark.parametrize(
    ("shown", "graded", "prompted"),
    [
        (FERRY, None, ("times",)),  # the other one was cut
        (FERRY, f"Relevant? {DOGS}", ("times",)),  # a grader dropped it
        ("Nothing.", f"Relevant? {FERRY} {DOGS}", ()),
        ("Nothing.", None, None),  # as where texts are hidden
        ("", None, None),
        (f"{DOGS} {FERRY[:-3]}", None, None),  # the exporter cut the text
        (f'[{{"role": "user", "content": "{FERRY}', None, None),  # or JSON
    ],
)
def test_the_prompt_of_a_trace_says_which_passages_reached_the_model(
    spans, shown, graded, prompted
):
    tracer, save = spans
    tracer = OITracer(tracer, TraceConfig())
    documents = [{"content": FERRY, "id": "times"}, {"content": DOGS, "id": "pets"}]

    def ask_model(prompt, reply):
        with tracer.start_as_current_span("model", openinference_span_kind="llm") as model:
            messages = {"input_messages": [{"role": "user", "content": prompt}]} if prompt else {}
            model.set_attributes(get_llm_attributes(**messages))
            model.set_output(reply)

    with tracer.start_as_current_span("app", openinference_span_kind="chain") as root:
        root.set_input("When?")
        with tracer.start_as_current_span("search", openinference_span_kind="retriever") as search:
            search.set_attributes(get_retriever_attributes(documents=documents))
        if graded:
            ask_model(graded, "no")
        ask_model(shown, "At seven.")
        root.set_output("At seven.")
    (trace,) = read_recording(save()).traces.values()
    assert trace.prompted == prompted
    assert set(trace.graded) == (set() if not graded else {"times", "pets"} - {*prompted})
    assert trace.prompt == (shown if prompted is not None else None)


@pytest.mark.parametrize("tool", ["langsmith", "langfuse"])
def test_the_prompt_of_an_export_says_which_passages_reached_the_model(tmp_path, tool):
    messages = [{"role": "system", "content": f"Use this: {FERRY}"}]
    if tool == "langsmith":
        model = {**SEARCH, "id": "9", "parent_run_id": "1", "run_type": "llm", "inputs": {"messages": [messages]},
                 "outputs": {"generations": [[{"text": "At seven."}]]}}  # fmt: skip
        rows = [*LANGSMITH, model]
    else:
        common = {"traceId": "T", "startTime": "2026-01-01T10:00:01Z", "input": "When?"}
        rows = [
            {**common, "id": "a", "type": "SPAN", "output": "At seven."},
            {**common, "id": "b", "parentObservationId": "a", "type": "RETRIEVER",
             "output": DOCUMENTS},
            {**common, "id": "c", "parentObservationId": "a", "type": "GENERATION",
             "input": messages, "output": "At seven."},
        ]  # fmt: skip
    (trace,) = read_recording(write(tmp_path / "x.jsonl", *rows)).traces.values()
    assert len(trace.retrieved) > 1
    assert [passage.text for passage in trace.context(5)] == [FERRY]


def test_a_gen_ai_search_that_found_nothing_is_measured(spans):
    tracer, save = spans
    with tracer.start_as_current_span("app") as root:
        root.set_attribute("input.value", "When?")
        root.set_attribute("output.value", "I do not know.")
        with tracer.start_as_current_span("retrieval") as search:
            search.set_attribute("gen_ai.operation.name", "retrieval")
            search.set_attribute("gen_ai.retrieval.documents", "[]")
            search.set_attribute("output.value", "[]")
    (trace,) = read_recording(save()).traces.values()
    assert (trace.retrieved, trace.unmeasured) == ((), None)


def test_spans_without_retrieval_and_orphans_are_one_sentence(spans):
    tracer, save = spans
    answer_with_openinference(tracer)
    with pytest.raises(InputError, match=r"spans.jsonl, line \d: None of 1 traces has a span of a"):
        read_recording(save(dropped=["search"]))
    with pytest.raises(InputError, match=r"The span \w+ has the parent \w+, which is in no file"):
        read_recording(save(dropped=["app"]))


def test_a_root_whose_caller_is_elsewhere_is_a_root(spans):
    """The server that called the app is often traced to another place."""
    tracer, save = spans
    with tracer.start_as_current_span("server"):
        answer_with_openinference(tracer)
    assert summary(read_recording(save(dropped=["server"]))) == [
        ("When?", "At seven.", [FERRY, DOGS])
    ]


def test_some_traces_without_retrieval_are_unmeasured_and_counted(spans):
    tracer, save = spans
    answer_with_openinference(tracer)
    with tracer.start_as_current_span("app") as root:
        root.set_attribute("input.value", "Who?")
        root.set_attribute("output.value", "Nobody.")
    traces = list(read_recording(save()).traces.values())
    assert [trace.unmeasured is None for trace in traces] == [True, False]


@pytest.mark.parametrize(
    ("output", "retrieved"),
    [
        ({}, None),
        ("[hidden]", None),
        ({"matches": [{"id": "times"}]}, None),
        ({"documents": []}, ()),
        ([], ()),
    ],
)
@pytest.mark.parametrize("tool", ["langsmith", "langfuse", "openinference"])
def test_documents_that_are_hidden_are_unmeasured_and_not_none(tmp_path, tool, output, retrieved):
    attributes = {"openinference.span.kind": "RETRIEVER", "input.value": "When?"}
    hidden = {
        "langsmith": {**SEARCH, "parent_run_id": "1", "outputs": output},
        "langfuse": {
            "id": "o", "traceId": "T", "type": "RETRIEVER", "startTime": "2026-01-01T10:00:01Z",
            "input": "When?", "output": output,
        },
        "openinference": {
            "trace_id": "T", "span_id": "2",
            "attributes": {**attributes, "output.value": json.dumps(output)},
        },
    }[tool]  # fmt: skip
    readable = {
        "langsmith": [
            {**RUN, "outputs": {"answer": "A"}},
            {**RUN, "id": "5", "trace_id": "U"},
            {**SEARCH, "id": "6", "trace_id": "U", "outputs": {"documents": DOCUMENTS}},
        ],
        "langfuse": [{**hidden, "id": "p", "traceId": "U", "output": DOCUMENTS}],
        "openinference": [
            {
                "trace_id": "U", "span_id": "3",
                "attributes": {**attributes, "retrieval.documents": [{"document.content": FERRY}]},
            }
        ],
    }[tool]  # fmt: skip
    trace = read_recording(write(tmp_path / "x.jsonl", hidden, *readable)).traces["T"]
    assert trace.retrieved == ()
    assert (trace.unmeasured is None) == (retrieved == ())


@pytest.mark.parametrize(
    ("columns", "texts", "warned"),
    [
        ("Context 1;Context 2", [FERRY, DOGS], False),
        ("Retrieved chunk 1;Retrieved chunk 2", [FERRY, DOGS], False),
        ("Snippet A;Snippet B", [], True),
    ],
)
def test_passages_in_columns_of_their_own(tmp_path, caplog, columns, texts, warned):
    path = tmp_path / "sheet.csv"
    path.write_text(f"\ufeffQuestion;{columns};Answer\nWhen?;{FERRY};{DOGS};At seven.\n")
    (trace,) = read_recording(path).traces.values()
    assert [passage.text for passage in trace.retrieved] == texts
    assert ("(not read: Snippet A, Snippet B)" in caplog.text) == warned


def test_a_broken_line_of_a_table_names_its_line(tmp_path):
    row = json.dumps({"question": "When?", "answer": "A", "passages": [FERRY]})
    (tmp_path / "x.jsonl").write_text(f"{row}\n{row}\n{{bad\n")
    with pytest.raises(InputError, match=r"x.jsonl, line 3: (?!.*not recognized)"):
        read_recording(tmp_path / "x.jsonl")


@pytest.mark.parametrize("line", ["5", "null", '"text"', "question"])
def test_json_lines_whose_first_is_no_object_are_no_table(tmp_path, line):
    (tmp_path / "x.jsonl").write_text(f'{line}\n{{"question": "When?"}}\n')
    with pytest.raises(InputError, match=r"x.jsonl, line 1: "):
        read_recording(tmp_path / "x.jsonl")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"foo": 1, "bar": 2}], r"x.jsonl: The format of these traces is not recognized \(fields: f"),
        ([RAGAS, {"case_id": "a"}], r"x.jsonl, line 2: This row has another format"),
        ([*LANGSMITH, RAGAS], r"x.jsonl, line 3: This row has another format"),
        ([{"context": {"trace_id": "1", "span_id": "2"}}, RAGAS], "line 2: This row is not a span"),
        ([{**RAGAS, "retrieved_contexts": {"a": 1}}], "line 1, field 'retrieved_contexts'"),
        ([{**RAGAS, "user_input": None}], "line 1: There is no question in this row"),
        ([{"case_id": "a", "answer": "A", "reference": "B"}], "line 1, field 'question'"),
        ([{"case_id": "a", "question": "Q?", "answr": "A"}], "field 'answr'.*did you mean 'answer'"),
        ([{"case_id": "a"}, {"case_id": "a"}], "line 2.*two traces"),
        ([{**TREC_RAG, "answer": [{"text": 1}]}], "line 1, field 'answer': This must be a list of sen"),
        ([{**RAGAS, "retrieved_contexts": ["x" * 1_000_001]}], "line 1: a text has 1,000,001"),
        ([], "the file is empty"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_names_its_place(tmp_path, rows, message):
    with pytest.raises(InputError, match=message):
        read_recording(write(tmp_path / "x.jsonl", *rows))


@pytest.mark.parametrize(
    ("row", "name", "meant"),
    [
        ({"user_input": "When?", "response": "At 7.", "retrived_contexts": [FERRY]},
         "retrived_contexts", "retrieved_contexts"),
        ({**RAGAS, "references": "At seven."}, "references", "reference"),
        ({"input": "When?", "actual_output": "At 7.", "retreival_context": [FERRY]},
         "retreival_context", "retrieval_context"),
    ],
)  # fmt: skip
def test_a_misspelt_field_is_not_left_out(tmp_path, row, name, meant):
    with pytest.raises(InputError) as caught:
        read_recording(write(tmp_path / "traces.jsonl", row))
    assert (caught.value.field, caught.value.line) == (name, 1)
    assert f"'{meant}'" in caught.value.problem


def test_rows_that_repeat_another_are_warned_of(tmp_path, caplog):
    other = {**RAGAS, "response": "At nine."}
    recording = read_recording(write(tmp_path / "traces.jsonl", RAGAS, other, RAGAS, other))
    assert len(recording.traces) == 4
    assert "each of 2 rows repeats another one" in caplog.text


def test_fields_of_one_s_own_are_left_out(tmp_path):
    row = {**RAGAS, "reference_id": "r1", "context": "x", "score": 0.5, "answers_seen": 3}
    assert len(read_recording(write(tmp_path / "traces.jsonl", row)).traces) == 1


def read(tmp_path, *traces):
    path = tmp_path / "traces.jsonl"
    path.write_text("\n".join(json.dumps(trace) for trace in traces), encoding="utf-8")
    return read_recording(path).traces


def test_ranks_come_from_the_order_or_from_the_file(tmp_path):
    traces = read(
        tmp_path,
        {"case_id": "a", "retrieved": [{"id": "x", "text": "X"}, "y", {"text": "Z"}]},
        {"case_id": 2, "retrieved": [{"id": "x", "rank": 7}, {"id": "y", "rank": 3}]},
    )
    first = traces["a"].retrieved
    assert [(p.id, p.rank) for p in first[:2]] == [("x", 1), ("y", 2)]
    assert first[2].id.startswith("text-")
    assert [(p.id, p.rank) for p in traces["2"].retrieved] == [("y", 1), ("x", 2)]


def test_a_dumped_langchain_document_is_a_passage_and_an_empty_id_is_none(tmp_path):
    trace = {
        "case_id": "a",
        "retrieved": [{"page_content": "X", "id": ""}, {"text": "Y", "id": ""}],
    }
    found = read(tmp_path, trace)["a"].retrieved
    assert [passage.text for passage in found] == ["X", "Y"]
    assert len({passage.id for passage in found}) == 2


@pytest.mark.parametrize(
    ("trace", "message"),
    [
        ({"retrieved": []}, "field 'case_id': this field is required"),
        ({"case_id": "a", "retrieved": ["x", "x"]}, "the passage 'x' is listed twice"),
        ({"case_id": "a", "retrieved": ["x"], "prompted": ["y"]}, "'y' reached the prompt but"),
        ({"case_id": "a", "answers": "x"}, "did you mean 'answer'"),
        ({"case_id": "a", "retrieved": [{"id": "x", "score": "high"}]}, "retrieved.0.score"),
        ({"case_id": "a", "retrieved": [{"score": 1}]}, "retrieved.0.id"),
        ({"case_id": "a", "retrieved": {"x": 1}}, "field 'retrieved'"),
    ],
)
def test_a_mistake_names_the_line_and_the_field(tmp_path, trace, message):
    with pytest.raises(InputError, match=r"traces.jsonl, line 2.*") as caught:
        read(tmp_path, {"case_id": "fine"}, trace)
    assert message in str(caught.value)


def nested(tmp_path, depth):
    """Traces of which the second has metadata as deep as that."""
    deep = '{"a":' * depth + "1" + "}" * depth
    second = '{"case_id": "b", "retrieved": [{"id": "x", "metadata": ' + deep + "}]}"
    path = tmp_path / "traces.jsonl"
    path.write_text('{"case_id": "a"}\n' + second, encoding="utf-8")
    return path


@pytest.mark.parametrize("depth", [254, 900, 200_000])
def test_metadata_nested_too_deeply_names_file_and_line(tmp_path, depth):
    """Of 254 levels on, the models take some that they cannot write."""
    with pytest.raises(
        InputError, match=r"traces.jsonl, line 2: this is nested too deeply; remove"
    ):
        read_recording(nested(tmp_path, depth))


def test_the_deepest_metadata_that_is_read_can_be_written(tmp_path):
    """The trace, its passages and each passage are three of the hundred levels."""
    trace = read_recording(nested(tmp_path, 97)).traces["b"]
    assert Trace.model_validate_json(trace.model_dump_json()) == trace
    with pytest.raises(InputError, match="remove what is deeper than 100 levels"):
        read_recording(nested(tmp_path, 98))


def test_two_traces_of_one_case_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"line 2.*the case 'a' has two traces"):
        read(tmp_path, {"case_id": "a"}, {"case_id": "a"})


def test_a_data_frame_of_traces(tmp_path):
    passages = np.array([{"id": "x", "text": "X", "score": np.nan}, {"id": "y", "score": 1.5}])
    frame = pd.DataFrame(
        [{"case_id": 1, "answer": "A", "retrieved": passages}, {"case_id": 2, "answer": np.nan}]
    )
    traces = read_recording(frame).traces
    assert [(p.id, p.score) for p in traces["1"].retrieved] == [("x", None), ("y", 1.5)]
    assert traces["2"].answer is None


@pytest.mark.parametrize("wrong", [["p"], {"a": 1}, True, 1.5])
def test_a_passage_id_of_another_kind_is_told(wrong):
    with pytest.raises(InputError, match=r"field 'retrieved\.0\.id'"):
        read_recording([{"case_id": "c", "retrieved": [{"id": wrong, "text": "x"}]}])


def test_a_trace_that_does_not_say_what_was_retrieved_is_unmeasured():
    asked = {"case_id": "c1", "question": "When?", "answer": "At seven."}
    (unknown,) = read_recording([asked]).traces.values()
    (none,) = read_recording([{**asked, "retrieved": []}]).traces.values()
    assert (unknown.unmeasured, none.unmeasured) == (NOT_RECORDED, None)


@pytest.mark.parametrize(
    ("cell", "texts"),
    [
        ("The ferry leaves at seven.", ["The ferry leaves at seven."]),
        ("['The ferry leaves.'\n 'Dogs travel.']", ["The ferry leaves.", "Dogs travel."]),
        ('["The ferry leaves."]', ["The ferry leaves."]),
        ("[Note] The ferry leaves.", ["[Note] The ferry leaves."]),
    ],
)
def test_a_cell_of_a_table_is_one_passage_or_a_list(tmp_path, cell, texts):
    path = tmp_path / "traces.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["question", "answer", "passages"], ["When?", "Now.", cell]])
    (trace,) = read_recording(path).traces.values()
    assert [passage.text for passage in trace.retrieved] == texts
    assert trace.unmeasured is None


@pytest.mark.parametrize("column", ["passages", "retrieved_contexts"])
def test_a_list_that_was_cut_off_is_an_error_of_its_line(tmp_path, column):
    path = tmp_path / "traces.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = [["question", "answer", column], ["When?", "Now.", "['The ferry leaves."]]
        csv.writer(file).writerows(rows)
    with pytest.raises(InputError) as raised:
        read_recording(path)
    assert (raised.value.line, raised.value.field) == (2, column)


@pytest.mark.parametrize("index", [False, True])  # pandas writes Phoenix's index before its twin
def test_phoenix_spans_written_with_to_csv_have_their_documents(tmp_path, index):
    printed = "[{'document.content': 'The ferry leaves.', 'document.score': 0.5}\n {'document.content': 'Dogs travel.'}]"
    names = ["context.span_id", "context.trace_id", "span_kind", "parent_id"]
    names += ["attributes.input.value", "attributes.output.value"]
    rows = [
        [*names, "attributes.retrieval.documents"],
        ["a", "t", "CHAIN", "", "When?", "At seven.", ""],
        ["b", "t", "RETRIEVER", "a", "When?", "", printed],
    ]
    rows = [[*row[: int(index)], *row] for row in rows]
    path = tmp_path / "spans.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    (trace,) = read_recording(path).traces.values()
    assert [passage.text for passage in trace.retrieved] == ["The ferry leaves.", "Dogs travel."]


def test_an_answer_that_is_a_number_is_an_answer():
    row = {"user_input": "How many?", "retrieved_contexts": ["Five."], "response": 5}
    (trace,) = read_recording([row]).traces.values()
    assert trace.answer == "5"


def test_a_misspelt_column_of_passages_is_named(tmp_path, caplog):
    path = write(
        tmp_path / "traces.jsonl",
        {"question": "When?", "answer": "At 7.", "retrived_contexts": ["At 7."]},
    )
    read_recording(path)
    assert "did you mean 'retrieved_contexts'?" in caplog.text.lower()


CHUNKS = [
    {"doc_id": "fares", "text": "One way costs 12 crowns."},
    {"doc_id": "dogs", "text": "Dogs need a leash."},
    {"doc_id": "fares", "text": "A return costs 20 crowns."},
]


def test_chunks_of_one_id_are_one_passage_with_what_the_model_read(tmp_path):
    row = {"question": "Return?", "answer": "20", "documents": CHUNKS}
    (trace,) = read_recording(write(tmp_path / "table.jsonl", row)).traces.values()
    fares = trace.retrieved[0]
    assert [passage.id for passage in trace.retrieved] == ["fares", "dogs"]
    assert (fares.id, fares.text) == ("fares", f"{CHUNKS[0]['text']}\n\n{CHUNKS[2]['text']}")
    ragas = {"user_input": "Return?", "response": "20"}
    ragas["retrieved_contexts"] = [chunk["text"] for chunk in CHUNKS]
    ragas["retrieved_context_ids"] = [chunk["doc_id"] for chunk in CHUNKS]
    (trace,) = read_recording(write(tmp_path / "ragas.jsonl", ragas)).traces.values()
    assert [passage.text for passage in trace.retrieved] == [fares.text, CHUNKS[1]["text"]]
    shown = [{"page_content": c["text"], "metadata": {"doc_id": c["doc_id"]}} for c in CHUNKS]
    run = {"trace_id": "t", "parent_run_id": "root", "inputs": {"query": "Return?"}}
    runs = [
        {
            "id": "root",
            "run_type": "chain",
            "inputs": {"input": "Return?"},
            "outputs": {"output": "20"},
        },
        {**run, "id": "r", "run_type": "retriever", "outputs": {"documents": shown}},
        {
            **run,
            "id": "m",
            "run_type": "llm",
            "inputs": {"prompts": [CHUNKS[2]["text"]]},
            "outputs": {"output": "20"},
        },
    ]
    runs[0] |= {"trace_id": "t", "child_runs": "none"}  # no list: no runs
    (trace,) = read_recording(write(tmp_path / "runs.jsonl", *runs)).traces.values()
    assert [passage.id for passage in trace.retrieved] == ["fares", "dogs"]
    assert trace.prompted == ("fares",)
    assert trace.retrieved[0].text == fares.text
    assert trace.shown == {"fares": CHUNKS[2]["text"]}


def test_documents_without_a_text_are_not_recorded(tmp_path):
    row = {"question": "When?", "answer": "7", "documents": [{"text": None}, {"source": "x.pdf"}]}
    (trace,) = read_recording(write(tmp_path / "table.jsonl", row)).traces.values()
    assert trace.unmeasured is not None
