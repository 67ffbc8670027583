"""Open qrels and runs from files, data frames, mappings and traces."""

from __future__ import annotations

import codecs
import contextlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from misslink.errors import InputError
from misslink.io.goldset import GoldSet, read_goldset
from misslink.io.rows import PARQUET_MAGIC
from misslink.io.storage import open_decompressed
from misslink.io.tables import (
    RetrievalTable,
    TablePurpose,
    find_beir_qrels,
    has_header,
    read_csv_table,
    read_frame_table,
    read_parquet_table,
    read_trec_table,
)
from misslink.io.trace_formats.recording import DuplicatePassageError, read_recording
from misslink.retrieval import runs
from misslink.retrieval.outcomes import unmeasured_reason
from misslink.retrieval.qrels import Qrels
from misslink.retrieval.run_mappings import MappingRun
from misslink.types import Trace

_PEEK_BYTES = 1 << 16  # in which the format shows
# Byte order marks of other encodings; that of UTF-32 begins like that of UTF-16.
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)


def open_qrels(source: Any) -> Qrels | GoldSet:
    """Open qrels from a file, a BEIR folder, a frame or a dict.

    Parameters
    ----------
    source : path, pandas frame or arrow table, mapping, GoldSet, iterable of Case, or Qrels
        Files: TREC, CSV or TSV with a header, JSON Lines (a gold set), JSON (a dict), parquet;
        text may be compressed with gzip or zstd.

    Returns
    -------
    Qrels or GoldSet
        A gold set if a case has evidence texts or alternatives, which document ids alone cannot
        decide.

    Raises
    ------
    InputError
        It cannot be read, is empty, or is a run.
    """
    if isinstance(source, Qrels):
        return source
    source = _to_frame(source, "qrels")
    name = "the qrels"
    if isinstance(source, str | Path):
        name, source = str(source), _read_file(Path(source), "qrels")
    elif _is_frame(source):
        source = read_frame_table(source, "qrels")
    elif not isinstance(source, Mapping | GoldSet):
        source = read_goldset(source)
    if isinstance(source, RetrievalTable):
        return Qrels.of_table(source)
    if isinstance(source, GoldSet):
        if any(case.relevant_any or any(case.evidence.values()) for case in source.cases):
            return source
        return Qrels.of_mapping({case.id: case.relevant for case in source.cases}, source.name)
    return Qrels.of_mapping(source, name)


def open_run(source: Any, *, dedupe: runs.Dedupe = None) -> runs.RankedRun:
    """Open a run from a file, a frame, a dict or traces.

    Parameters
    ----------
    source : path, pandas frame or arrow table, mapping, iterable of Trace, or RankedRun
        Files as of `open_qrels`, with traces in JSON Lines. A frame or table has a column of
        scores or of ranks, or lists each query's documents best first.
    dedupe : {'first'} or None
        Whether a document that a ranking repeats counts where it is ranked first, or is an error.

    Raises
    ------
    InputError
        It cannot be read, is empty, or is qrels.
    """
    _check_dedupe(dedupe)
    if isinstance(source, runs.RankedRun):
        return source
    source = _to_frame(source, "run")
    name = "the run"
    if isinstance(source, str | Path):
        name, source = str(source), _read_file(Path(source), "run", dedupe=dedupe)
    elif _is_frame(source):
        source = read_frame_table(source, "run")
    elif not isinstance(source, Mapping):
        source = _read_run_traces(source, dedupe)
    if isinstance(source, RetrievalTable):
        return runs.TableRun(source.name, dedupe, table=source)
    if not isinstance(next(iter(source.values()), None), Trace):
        return MappingRun.of_mapping(source, name, dedupe)
    failed = frozenset(query for query, trace in source.items() if unmeasured_reason(trace))
    rankings = {
        query: [passage.id for passage in trace.retrieved]
        for query, trace in source.items()
        if query not in failed
    }
    return MappingRun.of_mapping(rankings, name, dedupe, failed)


def as_traces(source: Any, *, dedupe: runs.Dedupe = None) -> Mapping[str, Trace]:
    """Return traces by case id, for a gold set with evidence texts.

    Parameters
    ----------
    source : path, or iterable or mapping of traces
    dedupe : {'first'} or None
        As of `open_run`.

    Raises
    ------
    InputError
        The run is no file of traces.
    """
    _check_dedupe(dedupe)
    if isinstance(source, str | Path):
        source = _read_file(Path(source), "run", traces_only=True, dedupe=dedupe)
    source = _to_frame(source, "run")
    if isinstance(source, Mapping):
        source = list(source.values())
    if _is_frame(source) or not all(isinstance(item, Trace | Mapping) for item in source):
        raise _traces_required_error()
    return _read_run_traces(source, dedupe)


def _check_dedupe(dedupe: object) -> None:
    if dedupe is not None and dedupe != "first":
        raise InputError(f"dedupe is {dedupe!r}; it can be 'first'")


def _traces_required_error(path: object = None) -> InputError:
    return InputError(
        "the gold set has evidence texts or alternatives, which ids alone cannot decide; give "
        "traces (JSON Lines with the retrieved passages and their texts) as the run",
        path=path,
    )


def _to_frame(source: Any, purpose: TablePurpose) -> Any:
    """A table of arrow, or of another package that knows pandas, as a frame; else unchanged."""
    if hasattr(source, "columns") and hasattr(source, "to_pandas"):
        return source.to_pandas()
    if hasattr(source, "iloc") and not hasattr(source, "columns"):
        number = "relevance" if purpose == "qrels" else "score"
        raise InputError(
            "this is one column (a Series); give a frame with the columns query_id, doc_id and "
            f"{number}, or a dict",
            path=f"the {purpose}",
        )
    return source


def _is_frame(source: object) -> bool:
    return hasattr(source, "columns") and hasattr(source, "iloc")


def _read_file(
    path: Path, purpose: TablePurpose, *, traces_only: bool = False, dedupe: runs.Dedupe = None
) -> Any:
    """A table, a gold set, a dict, or traces by case id."""
    if path.is_dir():
        if purpose == "run":
            raise InputError("this is a folder; name the file of the run", path=path)
        path = find_beir_qrels(path)
    with open_decompressed(path) as content:
        head = content.read(_PEEK_BYTES)
        is_parquet = head.startswith(PARQUET_MAGIC)
        first = next((line.strip() for line in head.splitlines() if line.strip()), b"")
        is_json = first.lstrip(codecs.BOM_UTF8)[:1] in {b"{", b"["}
        names_columns = has_header(first.decode("utf-8-sig", "replace"))
        # TREC's format is read in blocks later, from what can be opened again.
        whole = is_json or names_columns or b"\n" not in head or not path.is_file()
        raw = b"" if is_parquet else head + (content.read() if whole else b"")
    if encoding := next((name for mark, name in _BYTE_ORDER_MARKS if raw.startswith(mark)), None):
        raise InputError(
            f"this is {encoding}; save it as UTF-8, for example with  iconv -f {encoding} -t UTF-8",
            path=path,
        )
    if traces_only and not is_json:
        raise _traces_required_error(path)
    if is_parquet or path.suffix.lower() in {".parquet", ".pq"}:
        return read_parquet_table(path, purpose)
    if b"\0" in head:
        raise InputError(
            "this is a binary file; give TREC, TSV, CSV, JSON Lines or parquet", path=path
        )
    if not first:
        raise InputError("the file is empty", path=path)
    if whole and b"\r" in head and b"\n" not in raw:
        raw = raw.replace(b"\r", b"\n")  # line ends of classic Mac OS
    if is_json:
        return _read_json(path, raw, first, purpose, dedupe)
    if names_columns:
        return read_csv_table(raw, path, purpose)
    return read_trec_table(raw if whole else path, path, purpose)


def _read_json(
    path: Path, raw: bytes, first: bytes, purpose: TablePurpose, dedupe: runs.Dedupe
) -> Any:
    """A gold set or traces by the fields of the first object, else one dict of dicts or lists."""
    try:
        fields = json.loads(first)
    except (ValueError, RecursionError):
        fields = None
    keys = set(fields) if isinstance(fields, dict) else set()
    document: Any = None
    if not keys & {"question", "query", "case_id", "retrieved"}:
        with contextlib.suppress(ValueError, RecursionError):
            document = json.loads(
                raw.decode("utf-8-sig"),
                object_pairs_hook=_object_of_pairs,
                # Python refuses thousands of digits; they are reported as too large later.
                parse_int=lambda digits: int(digits) if len(digits) < 400 else float(digits),
            )
    if _is_pairs(document):
        twice = runs.first_duplicate(query for query, _ in document)
        raise InputError(f"the query '{twice}' occurs twice; keep one", path=path)
    if isinstance(document, dict) and all(isinstance(v, dict | list) for v in document.values()):
        for query, pairs in document.items():
            if _is_pairs(pairs):
                document[query] = _merge_repeated(pairs, query, purpose, path, dedupe)
        return document
    if isinstance(document, list) and document and isinstance(document[0], dict):
        keys = set(document[0])
    if purpose == "qrels" and "retrieved" in keys:
        raise InputError(
            "these are traces, not qrels; give them as the run, and here the gold set", path=path
        )
    if purpose == "run" and keys & {"question", "query"} and "retrieved" not in keys:
        raise InputError(
            "this is a gold set, not a run; give it as qrels, and here the traces", path=path
        )
    return read_goldset(path) if purpose == "qrels" else _read_run_traces(path, dedupe)


def _object_of_pairs(pairs: list[tuple[str, Any]]) -> Any:
    """A JSON object as a dict; one that repeats a field as the list of its fields."""
    plain = dict(pairs)
    return plain if len(plain) == len(pairs) else pairs


def _is_pairs(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], tuple)


def _merge_repeated(
    pairs: list[tuple[str, Any]], query: str, purpose: TablePurpose, path: Path, dedupe: runs.Dedupe
) -> dict[str, object]:
    """The documents of a query, each with its highest score; an error without `dedupe`."""
    names = [name for name, _ in pairs]
    if purpose == "qrels":
        twice = runs.first_duplicate(names)
        raise InputError(
            f"the document '{twice}' is judged twice for query '{query}'; keep one", path=path
        )
    if dedupe is None:
        raise InputError(runs.duplicate_message(query, runs.first_duplicate(names)), path=path)
    # What is no number comes last, stays, and is reported later.
    return dict(sorted(pairs, key=lambda p: p[1] if isinstance(p[1], int | float) else math.inf))


def _read_run_traces(source: Any, dedupe: runs.Dedupe) -> Mapping[str, Trace]:
    """Read traces; the error about a repeated passage names the option that allows it."""
    try:
        return read_recording(source, dedupe=dedupe).traces
    except DuplicatePassageError as error:
        raise InputError(
            f"{error.problem} (--dedupe first keeps the first)",
            path=error.path,
            line=error.line,
            field=error.field,
        ) from None
