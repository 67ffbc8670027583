"""Read recorded traces and the cases they belong to, whatever tool wrote the file."""

from __future__ import annotations

import gc
import itertools
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from misslink.errors import InputError, did_you_mean
from misslink.io.goldset import GoldSet
from misslink.io.jsonl import EMPTY_FILE, SourceItem, intern_text
from misslink.io.rows import open_items, read_file_items
from misslink.io.run_folder import is_run_folder, read_run
from misslink.io.storage import list_shards, open_decompressed, read_bytes, redact_url
from misslink.io.suite import is_suite_row, suite_trace
from misslink.io.tables import RetrievalTable, read_trec_table
from misslink.io.trace_formats import exports, samples
from misslink.io.trace_formats.printed import parse_printed_document
from misslink.io.trace_formats.requests import RequestLog
from misslink.io.trace_formats.spans import (
    OtelSpan,
    find_orphan,
    is_span_row,
    read_spans,
    requests_from_spans,
)
from misslink.io.trace_formats.tables import COLUMN_NAMES, requests_from_rows
from misslink.parts import PartWriter, by_case, case_ids, items_of, places_of, stored
from misslink.text.normalization import content_id, fold
from misslink.text.prompt_matching import ModelCall, PromptMatch, match_prompts
from misslink.types import Case, Passage, Trace

_log = logging.getLogger(__name__)

_Fields = dict[str, Any]
_SHOWN = 8  # names of fields in a message
_TREC_LINE = re.compile(rb"\s*\S+\s+\S+\s+\S+\s+\d+\s+-?[\d.]\S*\s+\S+\s*")
_PLACE = re.compile(r"(?P<file>.*), (?P<kind>line|row) (?P<number>\d+)", re.DOTALL)
_CASE_FIELDS = {
    *Case.model_fields, "query", "reference"
} - {"id"}  # fmt: skip
# How each format is recognized by a row, and read.
_EXPORTS = (
    (exports.is_langsmith_row, exports.langsmith_spans),
    (exports.is_langfuse_row, exports.langfuse_spans),
    (exports.is_mlflow_row, exports.mlflow_spans),
)
# Of a sample, how the first row is recognized and every other one: one without an answer has the
# question alone.
_SAMPLES = (
    (samples.is_deepeval_row, lambda row: "input" in row, samples.parse_deepeval),
    (samples.is_trec_rag_row, samples.is_trec_rag_row, samples.parse_trec_rag),
    (samples.is_ragas_row, samples.is_ragas_row, samples.parse_ragas),
)
# What lists several objects, with a field beside them: pages of Langfuse, Phoenix and LangSmith, and
# a test run of deepeval.
_PAGES = (
    ("data", {"meta", "next_cursor"}),
    ("runs", {"cursors"}),
    ("testCases", {"testCases"}),
)
_NO_SPAN = "no span of a retriever in the trace lists its documents"


class DuplicatePassageError(InputError):
    """A ranking names a passage twice."""


class Recording(NamedTuple):
    """Traces, and the cases of those whose file has the questions."""

    name: str
    items: Sequence[Trace]
    cases: Mapping[str, Case]
    places: dict[str, SourceItem]

    @property
    def traces(self) -> Mapping[str, Trace]:
        """The traces by case id."""
        return by_case(self.items)

    def gold(self) -> GoldSet:
        """A gold set of the cases.

        Raises
        ------
        InputError
            The file has no questions.
        """
        gold = GoldSet(tuple(self.cases.values()), self.name, self.places)
        lacking = next((name for name in case_ids(self.items) if name not in self.cases), None)
        if lacking is not None:
            raise gold.item(lacking).error(
                f"The trace of '{lacking}' has no question. Add 'question' to the "
                "traces, or give a gold set."
            )
        return gold

    def match(self, gold: GoldSet) -> Sequence[Trace]:
        """Return the traces of a gold set's cases, by id, else by the same question.

        What does not fit is logged.

        Raises
        ------
        InputError
            No trace belongs to any case.
        """
        ids = {case.id for case in gold.cases}
        by_question: dict[Any, list[str]] = {}
        for case in gold.cases:
            by_question.setdefault(_conversation_key(case), []).append(case.id)
        sources: dict[str, int] = {}  # by the id of the case that a trace belongs to, its place
        places = places_of(self.items)
        for name, place in places.items():
            recorded = self.cases.get(name)
            same = (
                []
                if name in ids or recorded is None
                else by_question.get(_conversation_key(recorded), [])
            )
            meant = same[0] if len(same) == 1 else None
            if meant is not None and meant not in places and meant not in sources:
                sources[meant] = place
            else:
                sources[name] = place
        strangers = [case_id for case_id in sources if case_id not in ids]
        if len(strangers) == len(sources):
            raise InputError(
                f"no trace belongs to a case of {gold.name} (the first is of case "
                f"'{strangers[0]}'); the ids of both files must agree"
            )
        if strangers:
            _log.warning(
                "%d traces belong to no case of %s and are left out, such as that of '%s'",
                len(strangers),
                gold.name,
                strangers[0],
            )
        known = {name: place for name, place in sources.items() if name in ids}
        if all(places.get(name) == place for name, place in known.items()):
            return items_of(self.items, known.values())
        return stored(
            Trace,
            (
                self.items[place].model_copy(update={"case_id": name})
                for name, place in known.items()
            ),
        )


def _conversation_key(case: Case) -> tuple[str, ...]:
    """The question and the messages before it, as they are compared."""
    return (fold(case.question), *(fold(message.content) for message in case.history))


def read_recording(
    source: str | Path | Iterable[Trace | Mapping[str, Any]],
    *,
    dedupe: Literal["first"] | None = None,
) -> Recording:
    """Read traces.

    Parameters
    ----------
    source : path, URL, data frame, or iterable of Trace or mapping
        A run folder, or files that are recognized by content: misslink's own traces (which may also have the fields of a case, such
        as ``question``); OpenTelemetry spans with gen_ai or OpenInference attributes (OTLP JSON,
        Phoenix); runs of LangSmith; traces and observations of Langfuse; samples of ragas, deepeval
        and TREC RAG; a TREC run; or a table with a column for questions. JSON Lines, a JSON array,
        parquet, CSV, Excel; several files are named by their folder or a pattern. In misslink's
        own traces ``retrieved`` lists passages best first, as objects ``{"id", "text", "score"}``
        (``page_content`` is understood as text) or as bare ids; a passage without an id is named by
        its text. With ``prompt``, the prompt as text, the parts that it shows are found; ``shown`` has
        them by passage id.
    dedupe : {'first'} or None
        Of a passage that is listed twice keep the first; None: it is an error.

    Raises
    ------
    DuplicatePassageError
        A passage is listed twice.
    InputError
        The format is not known, a row has another than the rows before it, a span's parent is in no
        file, no trace says what was retrieved, a case has two traces, ``prompted`` names a passage
        that was not retrieved (so does ``shown``), or something is malformed; with file and line.
    """
    if isinstance(source, str | Path) and is_run_folder(Path(source)):
        return _read_run_traces(Path(source))
    files = list_shards(source) if isinstance(source, str | Path) else ()
    recorder = _Recorder(
        redact_url(source) if isinstance(source, str | Path) else "the traces", dedupe
    )
    collects = gc.isenabled()
    gc.disable()  # what is read stays, and looking for garbage takes a third of the time
    try:
        if not files:
            recorder.add_items(open_items(source, recorder.name)[1])
        for file in files:
            with open_decompressed(file) as content:
                start = content.peek(1 << 12).split(b"\n", 1)[0]
            if _TREC_LINE.fullmatch(start):
                recorder.add_trec_run(read_trec_table(read_bytes(file), file, "run"))
            else:
                recorder.add_items(read_file_items(file))
        return recorder.result()
    finally:
        if collects:
            gc.enable()


def _read_run_traces(folder: Path) -> Recording:
    """The traces and cases of a run folder."""
    run = read_run(folder)
    return Recording(str(folder), run.traces, by_case(run.cases), {})


class _Recorder:
    """Collects the traces of all files."""

    def __init__(self, name: str, dedupe: str | None) -> None:
        self.name, self.dedupe = name, dedupe
        self._traces = PartWriter(Trace)
        self.cases: dict[str, Case] = {}
        self.places: dict[str, SourceItem] = {}
        self._spans: list[OtelSpan] = []
        self._texts: dict[str, str] = {}
        self._asked: dict[str, list[Trace]] = {}  # without their ids, by that of the first
        self._repeats = 0  # rows that are the same as another one

    def add_items(self, items: Iterable[SourceItem]) -> None:
        items = _without_pages(items)
        first = next(items, None)
        if first is None:
            raise InputError(EMPTY_FILE, path=self.name)
        items = itertools.chain([first], items)
        row = first.data
        if not isinstance(row, Mapping | Trace):
            raise first.error("This is not an object with fields. Write one JSON object a line.")
        if (
            isinstance(row, Trace)
            or "case_id" in row
            or isinstance(row.get("retrieved"), list | tuple)
        ):
            for item in items:
                self._add_recorded(item)
        elif is_span_row(row):
            self._spans += read_spans(items)
        elif export := next((kind for kind in _EXPORTS if kind[0](row)), None):
            for item in _of_one_format(items, export[0]):
                self._spans += export[1](item)
        elif sample := next((kind for kind in _SAMPLES if kind[0](row)), None):
            self._add_samples(items, first, *sample[1:])
        else:
            self._add_table(items, first)

    def _add_samples(
        self,
        items: Iterable[SourceItem],
        first: SourceItem,
        matches: Callable[[Mapping[str, Any]], bool],
        parse: Callable[[SourceItem], tuple[_Fields, _Fields | None]],
    ) -> None:
        if parse is not samples.parse_trec_rag:
            samples.check_names(first)
        for item in _of_one_format(items, matches):
            fields, trace = parse(item)
            if fields["question"] is None:
                raise item.error("There is no question in this row. Add it, or remove the row.")
            fields = {name: value for name, value in fields.items() if value not in (None, [])}
            self._add_pair(item, fields, trace)

    def _add_recorded(self, item: SourceItem) -> None:
        if isinstance(item.data, Trace):
            self._add(item, item.data)
            return
        if not isinstance(item.data, Mapping):
            raise item.error("This is not an object with fields.")
        if is_suite_row(item.data):
            item = suite_trace(item)
        data, case = dict(item.data), None
        fields = {name: data[name] for name in _CASE_FIELDS & data.keys()}
        if not fields.keys() <= {"history"}:  # which a trace has too
            data = {name: value for name, value in data.items() if name not in fields}
            if not {"question", "query"} & fields.keys():
                raise item.error("A case needs its question. Add it.", "question")
            named = data.pop("id", data.get("case_id"))
            case = item._replace(data={**fields, "id": named}).parse(Case, self._texts)
            data.setdefault("case_id", case.id)
        for name in ("retrieved", "error"):
            if data.get(name) is None or (isinstance(data[name], str) and not data[name].strip()):
                data.pop(name, None)
        if data.keys().isdisjoint(("retrieved", "error")):
            data.setdefault("unmeasured", samples.NOT_RECORDED)
        trace = _parse_trace(item._replace(data=data), self.dedupe, self._texts)
        if trace.prompt is not None and "shown" not in data:
            trace = _find_shown(trace, [case.question] if case else [])
        self._add(item, trace, case)

    def _add_table(self, items: Iterable[SourceItem], first: SourceItem) -> None:
        # Read whole, so that an error of a line is not taken for one of the columns.
        rows = list(_of_one_format(items, lambda _: True))
        try:
            log = requests_from_rows(first.file, rows, {})
        except InputError as error:
            if error.line is not None:  # of one row, in a format that is known
                raise
            raise InputError(
                f"The format of these traces is not recognized (fields: "
                f"{', '.join(map(str, list(first.data)[:_SHOWN]))}). Name the columns question, "
                "answer and passages.",
                path=error.path,
            ) from None
        if all(request.passages is None for request in log.requests):
            unread = [name for name in first.data if name not in log.columns.values()]
            hints = (did_you_mean(str(name), COLUMN_NAMES["passages"]) for name in unread)
            hint = next(filter(None, hints), "Name it 'passages', or number several: passage_1.")
            _log.warning(
                "%s: no column holds passages%s. %s",
                first.file,
                f" (not read: {', '.join(map(str, unread[:_SHOWN]))})" if unread else "",
                hint[0].upper() + hint[1:],
            )
        self._add_log(log, samples.NOT_RECORDED)

    def add_trec_run(self, run: RetrievalTable) -> None:
        rankings: dict[str, list[tuple[float, str]]] = {}
        for queries, documents, scores in run.batches():
            numbers = () if scores is None else scores.tolist()
            rows = zip(queries.to_pylist(), documents.to_pylist(), numbers, strict=True)
            for query, document, score in rows:
                rankings.setdefault(query, []).append((score, document))
        for query, scored in rankings.items():
            # As trec_eval orders a run: by score, ties by document id, descending.
            ranked = enumerate(sorted(scored, reverse=True), 1)
            passages = tuple(Passage(id=name, rank=n, score=score) for n, (score, name) in ranked)
            if len({passage.id for passage in passages}) < len(passages):
                problem = f"A document is listed twice for the topic '{query}'. Keep one."
                raise InputError(problem, path=self.name)
            self._add(SourceItem(None, self.name), Trace(case_id=query, retrieved=passages))

    def _add_log(self, log: RequestLog, unmeasured: str) -> None:
        for request in log.requests:
            trace = {
                "retrieved": request.passages or (),
                "answer": request.answer,
                "error": request.error,
                "latency_s": request.latency_s,
                "calls": request.calls,
                "trace_id": request.trace_id,
                "span_id": request.span_id,
                "response_id": request.response_id,
                **(request.prompt.trace_fields(request.passages or ()) if request.prompt else {}),
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
            place = _PLACE.fullmatch(request.place)
            item = SourceItem(None, request.place)
            if place is not None:
                item = SourceItem(None, place["file"], int(place["number"]), place["kind"] == "row")
            self._add_pair(item, fields, trace)
        for reason, count in log.left_out.items():
            _log.warning("%s: %d %s are left out", self.name, count, reason)

    def _add_pair(self, item: SourceItem, fields: _Fields, trace: _Fields | None) -> None:
        case = item._replace(data=fields).parse(Case, self._texts)
        earlier = self._asked.setdefault(case.id, []) if fields.get("id") is None else []
        if earlier:  # asked several times
            numbers = (f"{case.id}-{n}" for n in itertools.count(len(earlier) + 1))
            name = next(name for name in numbers if name not in self.places)
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
        parsed = Trace(case_id=case.id, **trace)
        content = parsed.model_copy(update={"case_id": ""})
        self._repeats += content in earlier
        earlier.append(content)
        self._add(item, parsed, case)

    def _add(self, item: SourceItem, trace: Trace, case: Case | None = None) -> None:
        if trace.case_id in self.places:
            where = self.places[trace.case_id].first_place(item)
            first = where and f" (the first {where})"
            raise item.error(
                f"the case '{trace.case_id}' has two traces{first}; keep one", "case_id"
            )
        self._traces.add(trace)
        if case is not None:
            self.cases[case.id] = case
        self.places[trace.case_id] = item._replace(data=None)

    def result(self) -> Recording:
        if self._repeats:
            _log.warning(
                "%s: %s word for word and counts again, which makes intervals too narrow. Remove "
                "the copies.",
                self.name,
                "1 row repeats another one"
                if self._repeats == 1
                else f"each of {self._repeats:,} rows repeats another one",
            )
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
            self._add_log(log, _NO_SPAN)
        if not self.places:
            raise InputError("it has no traces", path=self.name)
        return Recording(self.name, self._traces.part(), self.cases, self.places)


def _find_shown(trace: Trace, questions: Sequence[str]) -> Trace:
    """The trace with the parts of its passages that its prompt shows."""
    if not any(passage.text.strip() for passage in trace.retrieved):
        return trace
    call = ModelCall(trace.prompt or "", trace.answer or "")
    found = match_prompts(trace.retrieved, [call], None, questions)
    fields = PromptMatch(found.shown or {}).trace_fields(trace.retrieved)
    if trace.prompted is not None:
        fields["prompted"] = trace.prompted
    return trace.model_copy(update={name: fields[name] for name in ("prompted", "shown")})


def _without_pages(items: Iterable[SourceItem]) -> Iterator[SourceItem]:
    """The objects, and those in what lists several, such as a page of an API."""
    for item in items:
        row = item.data if isinstance(item.data, Mapping) else {}
        parts = next((row.get(name) for name, others in _PAGES if others & row.keys()), None)
        if isinstance(parts, list):
            yield from (item._replace(data=part) for part in parts)
        else:
            yield item


def _of_one_format(
    items: Iterable[SourceItem], matches: Callable[[Mapping[str, Any]], bool]
) -> Iterator[SourceItem]:
    for item in items:
        if not isinstance(item.data, Mapping) or not matches(item.data):
            raise item.error(
                "This row has another format than the first one. Put it in a separate file."
            )
        yield item


def _parse_trace(item: SourceItem, dedupe: str | None, texts: dict[str, str]) -> Trace:
    data = item.data
    if isinstance(data.get("retrieved"), list | tuple):
        passages = list(map(_normalize_passage, data["retrieved"]))
        if all(isinstance(p, dict) and isinstance(p.get("rank"), int) for p in passages):
            passages.sort(key=lambda passage: passage["rank"])
        if dedupe == "first":
            first: dict[str, Any] = {}
            for index, passage in enumerate(passages):
                name = passage.get("id") if isinstance(passage, dict) else None
                # Malformed passages are reported where the trace is parsed.
                first.setdefault(name if isinstance(name, str) else f"\0{index}", passage)
            passages = list(first.values())
        data["retrieved"] = [
            {**passage, "rank": rank} if isinstance(passage, dict) else passage
            for rank, passage in enumerate(passages, start=1)
        ]
    if isinstance(data.get("prompted"), list | tuple):
        ids = [_id_text(name) for name in data["prompted"]]
        data["prompted"] = [name for place, name in enumerate(ids) if name not in ids[:place]]
    trace = item.parse(Trace, texts)
    ids = [passage.id for passage in trace.retrieved]
    if len(set(ids)) < len(ids):
        twice = next(i for i in ids if ids.count(i) > 1)
        raise item.error(
            f"the passage '{twice}' is listed twice for case '{trace.case_id}'; a ranking names a "
            "passage once",
            "retrieved",
            DuplicatePassageError,
        )
    unknown = set(trace.prompted or ()) - set(ids)
    if unknown:
        raise item.error(
            f"'{min(unknown)}' reached the prompt but is not among the retrieved passages; "
            "add it to 'retrieved'",
            "prompted",
        )
    return trace


def _normalize_passage(item: Any) -> Any:
    if isinstance(item, str):  # an id, or a document as `json.dumps(row, default=str)` writes it
        item = parse_printed_document(item)
    if not isinstance(item, dict):
        name = _id_text(item)
        return {"id": name} if isinstance(name, str) else item
    passage = dict(item)
    if "text" not in passage and "page_content" in passage:
        passage["text"] = passage.pop("page_content")  # a dumped LangChain document
    name, text = passage.get("id"), passage.get("text")
    is_named = name is not None and name != ""
    passage["id"] = content_id(text) if not is_named and isinstance(text, str) else _id_text(name)
    return passage


def _id_text(item: Any) -> Any:
    return str(item) if isinstance(item, int) and not isinstance(item, bool) else item
