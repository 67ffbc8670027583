"""Input that would be lost without a word: it is read as meant, or refused by its place."""

import csv
import datetime as dt
import json
import time

import numpy as np
import pandas as pd
import pytest
from langchain_core.documents import Document

import misslink
from misslink.errors import InputError
from misslink.io import read_goldset
from misslink.io.jsonl import read_objects
from misslink.io.trace_formats import read_logs, read_recording
from misslink.io.trace_formats.printed import parse_printed_document

FERRY = "The ferry leaves at seven."
DOGS = "Dogs travel free."
DOCUMENTS = [Document(FERRY, id="times", metadata={"page": 2}), Document(DOGS)]


def only(source):
    """The only case and trace of a recording."""
    recording = read_recording(source)
    (trace,) = recording.traces.values()
    return recording.cases.get(trace.case_id), trace


def write_table(path, columns, *rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([columns, *rows])
    return path


def write_sheet(path, *rows):
    import openpyxl

    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)
    return path


@pytest.mark.parametrize("printed", [repr(DOCUMENTS), str(list(map(str, DOCUMENTS)))])
@pytest.mark.parametrize(
    "columns",
    [
        ("question", "answer", "contexts"),
        ("user_input", "response", "retrieved_contexts"),
        ("query", "result", "source_documents"),
        ("input", "actual_output", "retrieval_context"),
    ],
)
def test_documents_that_python_printed_are_passages(tmp_path, columns, printed):
    path = write_table(tmp_path / "t.csv", columns, ("When?", "At seven.", printed))
    case, trace = only(path)
    assert (case.question, trace.answer) == ("When?", "At seven.")
    assert [passage.text for passage in trace.retrieved] == [FERRY, DOGS]
    assert (trace.retrieved[0].id == "times") == printed.startswith("[Document(")


SPOKEN = 'It\'s free,\nsaid "the" captain.'


@pytest.mark.parametrize(
    "printed", [lambda d: json.dumps([str(d)]), str, lambda d: str((d,)), lambda d: str([str(d)])]
)
def test_a_document_with_quotes_and_lines_is_its_text_however_it_was_printed(tmp_path, printed):
    """LangChain prints the text of a document as it is, so that no Python reads it."""
    document = Document(SPOKEN, metadata={"at": dt.date(2026, 5, 1)})
    row = ("When?", "At seven.", printed(document))
    path = write_table(tmp_path / "t.csv", ("question", "answer", "contexts"), row)
    assert [passage.text for passage in only(path)[1].retrieved] == [SPOKEN]


def test_documents_that_json_wrote_as_texts_are_no_ids(tmp_path):
    documents = [Document(SPOKEN, metadata={"page": 1}), *DOCUMENTS]
    row = {"case_id": "a", "retrieved": [*documents, "an-id"], "answer": "At seven."}
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps(row, default=str), encoding="utf-8")
    trace = only(path)[1]
    assert [passage.text for passage in trace.retrieved] == [SPOKEN, FERRY, DOGS, ""]
    assert trace.retrieved[0].metadata == {"page": 1}


@pytest.mark.parametrize("metadata", ["a", 5, [1], '{"a": 1}'])
def test_metadata_that_is_no_object_is_left_out(metadata):
    context = {"page_content": FERRY, "metadata": metadata}
    _, trace = only([{"question": "When?", "answer": "At.", "contexts": [context]}])
    assert trace.retrieved[0].text == FERRY


def _nodes():
    schema = pytest.importorskip("llama_index.core.schema")
    source = {schema.NodeRelationship.SOURCE: schema.RelatedNodeInfo(node_id="doc")}
    texts = {"times": FERRY, "dogs": f"{DOGS} It's <Relation.OF: '1'>."}
    return texts, [
        schema.NodeWithScore(
            node=schema.TextNode(id_=name, text=text, metadata={"at": 1}, relationships=source),
            score=0.5,
        )
        for name, text in texts.items()
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "printed",
    [
        str,
        lambda nodes: json.dumps([repr(node) for node in nodes]),
        lambda nodes: str([node.node for node in nodes]),
        lambda nodes: json.dumps([str(node) for node in nodes]),
    ],
)
def test_nodes_of_llama_index_that_python_printed_are_passages(tmp_path, printed):
    texts, nodes = _nodes()
    row = ("When?", "At seven.", printed(nodes))
    path = write_table(tmp_path / "t.csv", ("question", "answer", "contexts"), row)
    _, trace = only(path)
    assert {passage.id: passage.text for passage in trace.retrieved} == texts


def test_documents_that_cannot_be_read_are_refused_and_not_one_passage(tmp_path):
    printed = "[NodeWithScore(node=<object at 0x7f>, score=1)]"
    path = write_table(tmp_path / "t.csv", ("question", "contexts"), ("When?", printed))
    with pytest.raises(InputError, match=r"t\.csv, line 2, field 'contexts': This list cannot be"):
        read_recording(path)


def test_times_and_nan_in_metadata_do_not_hide_a_document(tmp_path):
    metadata = {"at": dt.datetime(2026, 5, 1, tzinfo=dt.UTC), "score": float("nan")}
    printed = repr([Document(FERRY, id="a", metadata=metadata)])
    path = write_table(tmp_path / "t.csv", ("question", "passages"), ("When?", printed))
    assert only(path)[1].retrieved[0].text == FERRY


@pytest.mark.parametrize(
    "retrieved",
    [
        DOCUMENTS,
        [(DOCUMENTS[0], np.float32(0.5)), (DOCUMENTS[1], 0.25)],
        np.array([{"id": "times", "text": FERRY, "score": np.float32(0.5)}, {"text": DOGS}]),
    ],
)
def test_documents_and_numpy_values_given_in_python_are_read(retrieved):
    row = {"case_id": np.int64(7), "retrieved": retrieved, "answer": np.str_("At seven.")}
    _, trace = only([row])
    assert (trace.case_id, trace.answer) == ("7", "At seven.")
    assert [passage.text for passage in trace.retrieved] == [FERRY, DOGS]
    assert trace.retrieved[0].id == "times"
    gold = read_goldset([{"id": np.int64(7), "question": "When?", "relevant": np.array(["times"])}])
    assert gold.cases[0].relevant == {"times": 1}


def test_what_a_retrieval_qa_chain_returns_is_a_trace():
    case, trace = only([{"query": "When?", "result": "Seven.", "source_documents": DOCUMENTS}])
    assert (case.question, trace.answer, len(trace.retrieved)) == ("When?", "Seven.", 2)


def test_a_ragas_sample_may_hold_documents_and_arrays():
    row = {"user_input": "When?", "response": "Seven.", "retrieved_contexts": DOCUMENTS}
    assert only([row])[1].retrieved[0].id == "times"
    row["retrieved_contexts"] = np.array([FERRY, DOGS])
    assert len(only([row])[1].retrieved) == 2


def test_bytes_that_are_no_text_are_one_sentence():
    with pytest.raises(InputError, match="bytes that are not UTF-8"):
        read_recording([{"case_id": "a", "answer": b"\xff"}])


SAVED = {  # what deepeval writes of one test case
    "input": "When does it leave?",
    "actual_output": "At seven.",
    "expected_output": "At seven",
    "retrieval_context": f"{FERRY}|{DOGS}",
    "context": f"{FERRY}|Daily.",
    "tools_called": None,
}


def check_deepeval(case, trace):
    assert case.references == ("At seven",)
    assert list(case.evidence) == [FERRY, "Daily."]
    assert [passage.text for passage in trace.retrieved] == [FERRY, DOGS]


def test_contexts_that_deepeval_joined_are_passages_again(tmp_path):
    path = write_table(tmp_path / "d.csv", SAVED.keys(), SAVED.values())
    check_deepeval(*only(path))
    path = tmp_path / "d.jsonl"
    path.write_text(json.dumps(SAVED), encoding="utf-8")
    check_deepeval(*only(path))
    path = tmp_path / "d.json"
    lists = {"retrieval_context": [FERRY, DOGS], "context": [FERRY, "Daily."]}
    path.write_text(json.dumps([SAVED | lists], indent=4), encoding="utf-8")
    check_deepeval(*only(path))
    run = misslink.evaluate(traces=path, judge="none", cache=None, embedding="none")
    assert run.summary["retrieval"]["recall@5"]["value"] == 0.5


def test_a_test_run_of_deepeval_is_its_cases(tmp_path):
    result = {
        "name": "test_case_0", "input": SAVED["input"], "actualOutput": "At seven.",
        "expectedOutput": "At seven", "retrievalContext": [FERRY, DOGS],
        "context": [FERRY, "Daily."], "success": True, "metricsData": [],
    }  # fmt: skip
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"testCases": [result], "testPassed": 1}, indent=2), "utf-8")
    check_deepeval(*only(path))


def test_a_deepeval_case_without_an_answer_stays_beside_the_others(tmp_path):
    path = write_table(
        tmp_path / "d.csv", SAVED.keys(), SAVED.values(), ("Why?", "", "Because.", "", "", "")
    )
    recording = read_recording(path)
    assert [trace.answer for trace in recording.traces.values()] == ["At seven.", None]


def test_objects_over_several_lines_follow_each_other(tmp_path):
    """As OpenTelemetry's console exporter prints spans."""
    path = tmp_path / "spans.json"
    rows = [{"a": {"b": 1}}, {"a": 2}, {"a": 3}]
    path.write_text("\n".join(json.dumps(row, indent=4) for row in rows), encoding="utf-8")
    assert [(item.data, item.number) for item in read_objects(path)] == [
        (rows[0], 1), (rows[1], 6), (rows[2], 9),
    ]  # fmt: skip
    path.write_text(path.read_text("utf-8") + "\n{\n 'broken'", encoding="utf-8")
    with pytest.raises(InputError, match=r"line 12: this is not JSON"):
        list(read_objects(path))


def test_spans_of_the_console_exporter_are_traces(tmp_path):
    def span(name, parent, kind, **attributes):
        context = {"trace_id": "0xabc", "span_id": name, "trace_state": "[]"}
        attributes = {"openinference.span.kind": kind} | {
            key.replace("_", "."): value for key, value in attributes.items()
        }
        times = {"start_time": "2026-05-01T08:00:00Z", "end_time": "2026-05-01T08:00:02Z"}
        return {"name": name, "context": context, "parent_id": parent, "attributes": attributes,
                "status": {"status_code": "OK"}, **times}  # fmt: skip

    spans = [
        span("0x1", "0x2", "RETRIEVER", input_value="When?", **{
            "retrieval.documents.0.document.content": FERRY,
        }),
        span("0x2", None, "CHAIN", input_value="When?", output_value="At seven."),
    ]  # fmt: skip
    path = tmp_path / "console.json"
    path.write_text("\n".join(json.dumps(one, indent=4) for one in spans), encoding="utf-8")
    case, trace = only(path)
    assert (case.question, trace.answer) == ("When?", "At seven.")
    assert [passage.text for passage in trace.retrieved] == [FERRY]
    assert read_logs([path]).requests[0].answer == "At seven."


@pytest.mark.parametrize("name", ["t.csv", "t.xlsx"])
def test_a_column_without_a_name_that_holds_something_is_refused(tmp_path, name):
    rows = [("question", "answer", ""), ("When?", "Seven.", FERRY)]
    write = write_table if name == "t.csv" else write_sheet
    path = write(tmp_path / name, *rows)
    with pytest.raises(InputError, match=r"(line|row) 2: column 3 has no name and holds 'The"):
        read_recording(path)


def test_the_row_numbers_that_pandas_writes_need_no_name(tmp_path):
    path = tmp_path / "t.csv"
    pd.DataFrame({"question": ["When?"], "answer": ["At"], "passages": [FERRY]}).to_csv(path)
    assert only(path)[1].retrieved[0].text == FERRY


def test_numbers_and_dates_of_typed_tables_are_texts(tmp_path):
    """A year is an answer, and a date that Excel holds as midnight is that date."""
    day = dt.datetime(2024, 5, 3)  # noqa: DTZ001 - as Excel has it
    rows = [("id", "question", "reference", "category", "relevant"), (1, 2024, day, 7, 12)]
    gold = read_goldset(write_sheet(tmp_path / "g.xlsx", *rows))
    case = gold.cases[0]
    assert (case.id, case.question, case.references) == ("1", "2024", ("2024-05-03",))
    assert (case.category, case.relevant) == ("7", {"12": 1})
    pd.DataFrame([rows[1]], columns=rows[0]).to_parquet(tmp_path / "g.parquet")
    assert read_goldset(tmp_path / "g.parquet").cases == gold.cases
    traces = [("question", "answer", "passages"), ("When?", 42, 3.5), ("And?", day, 7)]
    for path in (write_sheet(tmp_path / "t.xlsx", *traces), tmp_path / "t.parquet"):
        if path.suffix == ".parquet":
            pd.DataFrame({"question": ["When?"], "answer": [42], "passages": [3.5]}).to_parquet(
                path
            )
        read = list(read_recording(path).traces.values())
        assert (read[0].answer, read[0].retrieved[0].text) == ("42", "3.5")
    assert list(read_recording(tmp_path / "t.xlsx").traces.values())[1].answer == "2024-05-03"


def test_an_empty_error_is_none():
    _, trace = only([{"case_id": "a", "retrieved": ["p"], "answer": "At.", "error": " "}])
    assert trace.error is None
    _, trace = only([{"case_id": "a", "answer": "At.", "error": "", "retrieved": None}])
    assert trace.unmeasured is not None


def test_an_id_that_is_prompted_twice_counts_once():
    row = {"case_id": "a", "retrieved": ["p", "q"], "prompted": ["p", "p"], "answer": "At."}
    assert only([row])[1].prompted == ("p",)
    gold = [{"id": "a", "question": "When?", "relevant": "p"}]
    run = misslink.evaluate(None, gold, traces=[row], judge="none", cache=None, embedding="none")
    assert run.manifest["k"] == 1


def test_a_run_folder_is_traces_and_cases(tmp_path):
    given = {"judge": "none", "cache": None, "embedding": "none"}
    gold = [{"id": "a", "question": "When?", "relevant": "times"}]
    rows = [{"case_id": "a", "retrieved": [{"id": "times", "text": FERRY}], "answer": "Seven."}]
    first = misslink.evaluate(None, gold, traces=rows, out=tmp_path / "run", **given)
    again = misslink.evaluate(traces=tmp_path / "run", **given)
    assert again.cases == first.cases
    assert [t.retrieved for t in again.traces] == [t.retrieved for t in first.traces]
    other = misslink.evaluate(
        None, [{**gold[0], "relevant": "x"}], traces=tmp_path / "run", **given
    )
    assert other.summary["retrieval"]["recall@5"]["value"] is None


@pytest.mark.slow
def test_a_hostile_text_that_looks_like_a_printed_document_takes_bounded_time():
    began = time.process_time()
    for text in ("' metadata={" * 40_000, "' metadata={}" * 40_000 + "x", "'\n" * 200_000 + "x"):
        assert isinstance(parse_printed_document(f"page_content='{text}"), str)
    assert time.process_time() - began < 10
