"""Read recorded traces and the cases they belong to, whatever tool wrote the file."""

from __future__ import annotations

import gc
import itertools
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from misslink.errors import InputError
from misslink.io.goldset import GoldSet
from misslink.io.jsonl import EMPTY_FILE, SourceItem, as_list, intern_text
from misslink.io.shards import ItemLocations, list_shards, read_file_items
from misslink.io.storage import InputFile, open_decompressed, redact_url
from misslink.io.trace_formats import exports, samples
from misslink.io.trace_formats.requests import LogRequest
from misslink.io.trace_formats.spans import (
    OtelSpan,
    find_orphan,
    is_span_row,
    read_spans,
    requests_from_spans,
)
from misslink.io.trace_formats.tables import requests_from_rows
from misslink.io.traces import parse_trace
from misslink.text.normalization import fold
from misslink.types import Case, Passage, Trace

_log = logging.getLogger(__name__)

_Fields = dict[str, Any]
_SHOWN = 8  # names of fields in a message
_TREC_LINE = re.compile(rb"\s*(\S+)\s+\S+\s+(\S+)\s+\d+\s+(-?[\d.]\S*)\s+\S+\s*")
_CASE_FIELDS = {
    *Case.model_fields, "query", "reference"
} - {"id"}  # fmt: skip
_NO_SPAN = "no span of a retriever in the trace lists its documents"


class Recording(NamedTuple):
    """Traces by case id, and the cases of those whose file says what was asked."""

    name: str
    traces: dict[str, Trace]
    cases: dict[str, Case]
    places: ItemLocations

    def gold(self) -> GoldSet:
        """A gold set of the cases.

        Raises
        ------
        InputError
            The file does not say what was asked.
        """
        lacking = next((name for name in self.traces if name not in self.cases), None)
        if lacking is not None:
            raise InputError(
                f"The trace of '{lacking}' has no question. Add 'question' to the "
                "traces, or give a gold set.",
                path=self.name,
                line=None if self.places.in_rows else self.places.lines.get(lacking),
            )
        places = self.places
        cases = tuple(self.cases.values())
        return GoldSet(cases, self.name, places.lines, places.files, places.in_rows)

    def traces_for(self, gold: GoldSet) -> dict[str, Trace]:
        """The traces under the ids of a gold set's cases: by id, else by the same question."""
        ids = {case.id for case in gold.cases}
        by_question = {fold(case.question): case.id for case in gold.cases}
        traces: dict[str, Trace] = {}
        for name, trace in self.traces.items():
            case = self.cases.get(name)
            meant = None if name in ids or case is None else by_question.get(fold(case.question))
            if meant is not None and meant not in self.traces and meant not in traces:
                traces[meant] = trace.model_copy(update={"case_id": meant})
            else:
                traces[name] = trace
        return traces


def read_recording(source: str | Path | Iterable[Trace | Mapping[str, Any]]) -> Recording:
    """Read traces.

    Parameters
    ----------
    source : path, URL, data frame, or iterable of Trace or mapping
        Recognized by content: misslink's own traces (which may also have the fields of a case, such
        as ``question``); OpenTelemetry spans with gen_ai or OpenInference attributes (OTLP JSON,
        Phoenix); runs of LangSmith; traces and observations of Langfuse; samples of ragas, deepeval
        and TREC RAG; a TREC run; or a table with a column for questions. JSON Lines, a JSON array,
        parquet, CSV, Excel; several files are named by their folder or a pattern.

    Raises
    ------
    InputError
        The format is not known, a row has another than the rows before it, a span's parent is in no
        file, no trace says what was retrieved, or something is malformed; with file and line.
    """
    if isinstance(source, str | Path):
        name = redact_url(source)
        parts = [_file_items(file) for file in list_shards(source)]
    else:
        name = "the traces"
        parts = [iter([SourceItem(item, name) for item in as_list(source, name)])]
    recorder = _Recorder(name)
    collects = gc.isenabled()
    gc.disable()  # what is read stays, and looking for garbage takes a third of the time
    try:
        for items in parts:
            recorder.add_file(items)
        return recorder.result()
    finally:
        if collects:
            gc.enable()


def _file_items(file: InputFile) -> Iterator[SourceItem]:
    with open_decompressed(file) as content:
        start = content.peek(1 << 12).split(b"\n", 1)[0]
        if _TREC_LINE.fullmatch(start):
            lines = [SourceItem(line, str(file), n) for n, line in enumerate(content, 1)]
            return iter(lines)
    return read_file_items(file, None)


class _Recorder:
    """Collects the traces of all files."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.traces: dict[str, Trace] = {}
        self.cases: dict[str, Case] = {}
        self.places = ItemLocations()
        self._spans: list[OtelSpan] = []
        self._texts: dict[str, str] = {}

    def add_file(self, items: Iterator[SourceItem]) -> None:
        first = next(items, None)
        if first is None:
            raise InputError(EMPTY_FILE, path=self.name)
        items = itertools.chain([first], items)
        row = first.data
        if isinstance(row, bytes):
            self._add_trec_run(items)
            return
        if isinstance(row, Trace):
            for item in items:
                self._add(item, item.data)
            return
        if not isinstance(row, Mapping):
            raise first.error("This is not an object with fields. Write one JSON object a line.")
        for matches, add in self._formats():
            if matches(row):
                add(items, matches)
                return
        self._add_table(items, first)

    def _formats(self) -> Iterator[tuple[Callable[[Any], bool], Callable[..., None]]]:
        yield _is_misslink_row, self._add_recorded
        yield is_span_row, self._add_spans
        for matches, spans in (
            (exports.is_langsmith_row, exports.langsmith_spans),
            (exports.is_langfuse_row, exports.langfuse_spans),
        ):
            yield matches, partial(self._add_exported, spans)
        for matches, parse in (
            (samples.is_deepeval_row, samples.parse_deepeval),
            (samples.is_trec_rag_row, samples.parse_trec_rag),
            (samples.is_ragas_row, samples.parse_ragas),
        ):
            yield matches, partial(self._add_samples, parse)

    def _add_recorded(self, items: Iterable[SourceItem], _: object) -> None:
        for item in items:
            if not isinstance(item.data, Mapping):
                raise item.error("This is not an object with fields.")
            fields = {name: item.data[name] for name in _CASE_FIELDS & item.data.keys()}
            if fields.keys() <= {"history"}:
                self._add(item, parse_trace(item, None, self._texts))
                continue
            data = {name: value for name, value in item.data.items() if name not in fields}
            if "question" in fields or "query" in fields:
                named = data.pop("id", data.get("case_id"))
                case = item._replace(data={**fields, "id": named}).parse(Case, self._texts)
                data.setdefault("case_id", case.id)
                self._add(item, parse_trace(item._replace(data=data), None, self._texts), case)
            else:
                raise item.error("A case needs its question. Add it.", "question")

    def _add_samples(
        self,
        parse: Callable[[SourceItem], tuple[_Fields, _Fields | None]],
        items: Iterable[SourceItem],
        matches: Callable[[Any], bool],
    ) -> None:
        for item in items:
            _check_same_format(item, matches)
            fields, trace = parse(item)
            if fields["question"] is None:
                raise item.error("There is no question in this row. Add it, or remove the row.")
            self._add_pair(item, {k: v for k, v in fields.items() if v not in (None, [])}, trace)

    def _add_spans(self, items: Iterable[SourceItem], _: object) -> None:
        for file, rows in itertools.groupby(items, lambda item: item.file):
            self._spans += read_spans(Path(file), ((item.number, item.data) for item in rows))

    def _add_exported(
        self,
        spans: Callable[[SourceItem], Iterator[OtelSpan]],
        items: Iterable[SourceItem],
        matches: Callable[[Any], bool],
    ) -> None:
        for item in items:
            _check_same_format(item, matches)
            self._spans += spans(item)

    def _add_table(self, items: Iterable[SourceItem], first: SourceItem) -> None:
        # Read whole, so that an error of a line is not taken for one of the columns.
        rows = [(item.number, _without_blanks(item.data)) for item in items]
        try:
            log = requests_from_rows(Path(first.file), rows, {})
        except InputError as error:
            raise InputError(
                f"The format of these traces is not recognized (fields: "
                f"{', '.join(map(str, list(first.data)[:_SHOWN]))}). Name the columns question, "
                "answer and passages.",
                path=error.path,
            ) from None
        self._add_requests(log.requests, samples.NOT_RECORDED)
        self._report(log.left_out)

    def _add_trec_run(self, items: Iterable[SourceItem]) -> None:
        rankings: dict[str, list[tuple[float, str]]] = {}
        for item in items:
            if not item.data.strip():
                continue
            match = _TREC_LINE.fullmatch(item.data)
            try:
                query, document = (match[n].decode() for n in (1, 2)) if match else ("", "")
                rankings.setdefault(query, []).append((float(match[3] if match else ""), document))
            except ValueError:
                raise item.error(
                    "This is not a line of a TREC run: topic Q0 document rank score tag."
                ) from None
        for query, scored in rankings.items():
            # As trec_eval orders a run: by score, ties by document id, descending.
            ranked = enumerate(sorted(scored, reverse=True), 1)
            passages = tuple(Passage(id=name, rank=n, score=score) for n, (score, name) in ranked)
            if len({passage.id for passage in passages}) < len(passages):
                problem = f"A document is listed twice for the topic '{query}'. Keep one."
                raise InputError(problem, path=self.name)
            self._add(SourceItem(None, self.name), Trace(case_id=query, retrieved=passages))

    def _add_requests(self, requests: Iterable[LogRequest], unmeasured: str) -> None:
        for request in requests:
            file, _, number = request.place.rpartition(", line ")
            item = SourceItem(None, file, int(number) if number.isdigit() else None)
            trace = {
                "retrieved": request.passages or (),
                "answer": request.answer,
                "error": request.error,
                "latency_s": request.latency_s,
                "trace_id": request.trace_id,
                "span_id": request.span_id,
                "unmeasured": unmeasured if request.passages is None else None,
            }
            fields: _Fields = {
                "id": request.id,
                "question": request.question,
                "category": request.category,
                "history": list(request.history),
            }
            if request.reference:
                fields["reference"] = request.reference
            self._add_pair(item, fields, trace)

    def _add_pair(self, item: SourceItem, fields: _Fields, trace: _Fields | None) -> None:
        case = item._replace(data=fields).parse(Case, self._texts)
        if fields.get("id") is None and case.id in self.traces:  # asked several times
            numbers = (f"{case.id}-{n}" for n in itertools.count(2))
            name = next(name for name in numbers if name not in self.traces)
            case = case.model_copy(update={"id": name})
        if trace is None:
            trace = {"unmeasured": samples.NOT_RECORDED}
        try:
            for passage in trace.get("retrieved", ()):
                if isinstance(passage, dict):
                    passage["text"] = intern_text(passage["text"], self._texts)
                else:
                    intern_text(passage.text, self._texts)
        except InputError as error:
            raise item.error(error.problem) from None
        self._add(item, Trace(case_id=case.id, **trace), case)

    def _add(self, item: SourceItem, trace: Trace, case: Case | None = None) -> None:
        if trace.case_id in self.traces:
            where = self.places.first(trace.case_id, item)
            first = where and f" (the first {where})"
            raise item.error(
                f"the case '{trace.case_id}' has two traces{first}; keep one", "case_id"
            )
        self.traces[trace.case_id] = trace
        if case is not None:
            self.cases[case.id] = case
        self.places.add(trace.case_id, item)

    def _report(self, left_out: Mapping[str, int]) -> None:
        for reason, count in left_out.items():
            _log.warning("%s: %d %s are left out", self.name, count, reason)

    def result(self) -> Recording:
        if self._spans:
            if (orphan := find_orphan(self._spans)) is not None:
                raise InputError(
                    f"The span {orphan.id} has the parent {orphan.parent}, which is in no file. "
                    "Export whole traces.",
                    path=orphan.place,
                )
            log = requests_from_spans(self._spans)
            if log.requests and all(request.passages is None for request in log.requests):
                raise InputError(
                    f"None of {len(log.requests)} traces has a span of a retriever that lists its "
                    "documents, so it is not known what was retrieved. Instrument the retriever "
                    "(span kind RETRIEVER, or gen_ai.operation.name 'retrieval'), and do not hide "
                    "its output.",
                    path=log.requests[0].place,
                )
            self._add_requests(log.requests, _NO_SPAN)
            self._report(log.left_out)
        if not self.traces:
            raise InputError("there is no trace in it", path=self.name)
        return Recording(self.name, self.traces, self.cases, self.places)


def _is_misslink_row(row: Mapping[str, Any]) -> bool:
    return "case_id" in row or isinstance(row.get("retrieved"), list | tuple)


def _check_same_format(item: SourceItem, matches: Callable[[Any], bool]) -> None:
    if not isinstance(item.data, Mapping) or not matches(item.data):
        raise item.error(
            "This row has another format than the first one. Put it in a separate file."
        )


def _without_blanks(row: Mapping[str, Any]) -> dict[str, Any]:
    return {str(name): value for name, value in row.items() if value not in (None, "")}
