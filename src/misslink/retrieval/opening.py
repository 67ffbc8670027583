"""Qrels and runs from whatever they come in: files by content or ending, frames, dicts, lists."""

from __future__ import annotations

import codecs
import gzip
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from misslink.errors import InputError
from misslink.files.beir import beir_qrels
from misslink.files.frames import frame_table, parquet_table
from misslink.files.goldset import GoldSet, read_goldset
from misslink.files.separated import separated_table
from misslink.files.tables import Purpose, Table, has_header
from misslink.files.trec import trec_table
from misslink.retrieval.columns import Rankings
from misslink.retrieval.given_runs import Dedupe, GivenRankings
from misslink.retrieval.outcomes import why_unmeasured
from misslink.retrieval.qrels import Judgements
from misslink.retrieval.repeated import Pairs, once_each, traces_of, whole_number
from misslink.retrieval.table_runs import TableRankings
from misslink.types import Trace

__all__ = ["as_traces", "open_qrels", "open_run"]

_LOOKED_AT = 1 << 16  # bytes of a file by which its format is told
# What stands at the beginning of a file in another encoding; that of UTF-32 begins as UTF-16's.
_MARKS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)


def open_qrels(source: Any) -> Judgements | GoldSet:
    """Qrels from a file, a BEIR folder, a frame or a dict.

    Parameters
    ----------
    source : path, pandas frame or arrow table, mapping, GoldSet, iterable of Case, or Judgements
        Files: TREC, CSV or TSV with a header, JSON Lines (a gold set), JSON (a dict), parquet;
        text may be gzipped.

    Returns
    -------
    Judgements or GoldSet
        A gold set where a case needs evidence texts or has alternatives: no document's id tells
        by itself whether these are met.

    Raises
    ------
    InputError
        It cannot be read, is empty, or is a run.
    """
    if isinstance(source, Judgements):
        return source
    source = _frame_of(source, "qrels")
    if isinstance(source, str | Path):
        source = _of_file(Path(source), "qrels")
    elif _is_frame(source):
        source = frame_table(source, "qrels")
    elif not isinstance(source, Mapping | GoldSet):
        source = read_goldset(source)
    if isinstance(source, Table):
        return Judgements.of_table(source)
    if isinstance(source, GoldSet):
        if any(case.relevant_any or any(case.evidence.values()) for case in source.cases):
            return source
        return Judgements.of_mapping({case.id: case.relevant for case in source.cases}, source.name)
    name, given = source if isinstance(source, tuple) else ("the qrels", source)
    return Judgements.of_mapping(given, name)


def open_run(source: Any, *, dedupe: Dedupe = None) -> Rankings:
    """A run from a file, a frame, a dict or traces.

    Parameters
    ----------
    source : path, pandas frame or arrow table, mapping, iterable of Trace, or Rankings
        Files as of `open_qrels`, with traces in JSON Lines. A frame or table has a column of
        scores, or of ranks, or lists each query's documents best first.
    dedupe : {'first'} or None
        Whether a document that stands twice in a ranking counts where it is ranked first, or is
        an error.

    Raises
    ------
    InputError
        It cannot be read, is empty, or is qrels.
    """
    _check(dedupe)
    if isinstance(source, GivenRankings | TableRankings):
        return source
    source = _frame_of(source, "run")
    if isinstance(source, str | Path):
        source = _of_file(Path(source), "run", dedupe=dedupe)
    elif _is_frame(source):
        source = frame_table(source, "run")
    elif not isinstance(source, Mapping):
        source = traces_of(source, dedupe)
    if isinstance(source, Table):
        return TableRankings(source, dedupe)
    name, given = source if isinstance(source, tuple) else ("the run", source)
    if isinstance(next(iter(given.values()), None), Trace):
        unseen = frozenset(query for query, trace in given.items() if why_unmeasured(trace))
        lists = {
            query: [passage.id for passage in trace.retrieved]
            for query, trace in given.items()
            if query not in unseen
        }
        return GivenRankings(lists, name, dedupe, unseen)
    return GivenRankings(given, name, dedupe)


def as_traces(source: Any, *, dedupe: Dedupe = None) -> dict[str, Trace]:
    """Traces by case id, for a gold set whose needs are looked for in texts.

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
    _check(dedupe)
    if isinstance(source, str | Path):
        _, source = _of_file(Path(source), "run", only="traces", dedupe=dedupe)
    source = _frame_of(source, "run")
    if isinstance(source, Mapping):
        source = list(source.values())
    if _is_frame(source) or not all(isinstance(each, Trace | Mapping) for each in source):
        raise _no_traces()
    return traces_of(source, dedupe)


def _check(dedupe: object) -> None:
    if dedupe is not None and dedupe != "first":
        raise InputError(f"dedupe is {dedupe!r}; it can be 'first'")


def _no_traces(path: object = None) -> InputError:
    return InputError(
        "the gold set asks for evidence texts or alternatives, which ids alone do not tell; give "
        "traces (JSON Lines with the retrieved passages and their texts) as the run",
        path=path,
    )


def _frame_of(source: Any, purpose: Purpose) -> Any:
    """A table of arrow, or of another package that knows pandas, as a frame; else as it is."""
    if hasattr(source, "columns") and hasattr(source, "to_pandas"):
        return source.to_pandas()
    if hasattr(source, "iloc") and not hasattr(source, "columns"):
        number = "relevance" if purpose == "qrels" else "score"
        raise InputError(
            "this is one column (a Series); give a frame with the columns query_id, doc_id and "
            f"{number}, or a dict",
            path=f"the {'qrels' if purpose == 'qrels' else 'run'}",
        )
    return source


def _is_frame(source: object) -> bool:
    return hasattr(source, "columns") and hasattr(source, "iloc")


def _of_file(
    path: Path, purpose: Purpose, *, only: str | None = None, dedupe: Dedupe = None
) -> Any:
    """A table, a gold set, or a pair of name and dict."""
    if path.is_dir():
        if purpose == "run":
            raise InputError("this is a folder; name the file of the run", path=path)
        path = beir_qrels(path)
    raw = _content(path)
    _refuse_wide(raw, path)
    if b"\r" in raw[:_LOOKED_AT] and b"\n" not in raw:
        raw = raw.replace(b"\r", b"\n")  # lines as an old Macintosh ended them
    first = next((line.strip() for line in raw[:_LOOKED_AT].split(b"\n") if line.strip()), b"")
    is_json = first.lstrip(b"\xef\xbb\xbf")[:1] in {b"{", b"["}
    if only == "traces" and not is_json:
        raise _no_traces(path)
    if raw[:4] == b"PAR1" or path.suffix.lower() in {".parquet", ".pq"}:
        return parquet_table(path, purpose)
    if b"\0" in raw[:_LOOKED_AT]:
        raise InputError(
            "this is a binary file; give TREC, TSV, CSV, JSON Lines or parquet", path=path
        )
    if not first:
        raise InputError("there is nothing in it", path=path)
    if is_json:
        return _of_json(path, raw, first, purpose, dedupe)
    if has_header(first.decode("utf-8-sig", "replace")):
        return separated_table(raw, path, purpose)
    return trec_table(raw, path, purpose)


def _refuse_wide(raw: bytes, path: Path) -> None:
    """Refuse text whose mark at the beginning says that it is not UTF-8."""
    encoding = next((name for mark, name in _MARKS if raw.startswith(mark)), None)
    if encoding:
        raise InputError(
            f"this is {encoding}; save it as UTF-8, for example with  iconv -f {encoding} -t UTF-8",
            path=path,
        )


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            head = file.read(4)
            if head == b"PAR1":
                return head
            raw = head + file.read()
        return gzip.decompress(raw) if head[:2] == b"\x1f\x8b" else raw
    except FileNotFoundError:
        raise InputError("there is no such file", path=path) from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as problem:
        raise InputError(
            f"this gzip file is damaged ({problem}); make it again", path=path
        ) from None
    except OSError as problem:
        raise InputError(f"it cannot be read: {problem.strerror}", path=path) from None


def _of_json(path: Path, raw: bytes, first: bytes, purpose: Purpose, dedupe: Dedupe) -> Any:
    """A gold set or traces by the fields of the first object, else one dict of dicts or lists."""
    try:
        fields = json.loads(first)
    except (ValueError, RecursionError):
        fields = None
    keys = set(fields) if isinstance(fields, dict) else set()
    whole = None
    if not keys & {"question", "query", "case_id", "retrieved"}:
        try:
            whole = json.loads(
                raw.decode("utf-8-sig"), object_pairs_hook=Pairs.of, parse_int=whole_number
            )
        except (ValueError, RecursionError):
            whole = None
    if isinstance(whole, dict) and all(isinstance(each, dict | list) for each in whole.values()):
        return str(path), once_each(whole, purpose, path, dedupe)
    if isinstance(whole, list) and whole and isinstance(whole[0], dict):
        keys = set(whole[0])
    if purpose == "qrels" and "retrieved" in keys:
        raise InputError(
            "these are traces, not qrels; give them as the run, and here the gold set", path=path
        )
    if purpose == "run" and keys & {"question", "query"} and "retrieved" not in keys:
        raise InputError(
            "this is a gold set, not a run; give it as qrels, and here the traces", path=path
        )
    if purpose == "qrels":
        return read_goldset(path)
    return str(path), traces_of(path, dedupe)
