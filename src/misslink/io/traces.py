"""Read recorded traces."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from misslink.errors import InputError
from misslink.io.goldset import GoldSet
from misslink.io.jsonl import SourceItem, as_list
from misslink.io.shards import ItemLocations, read_items
from misslink.io.storage import redact_url
from misslink.text.normalization import content_id
from misslink.types import Trace

_log = logging.getLogger(__name__)


class DuplicatePassageError(InputError):
    """A ranking names a passage twice."""


def read_traces(
    source: str | Path | Iterable[Trace | Mapping[str, Any]],
    *,
    dedupe: Literal["first"] | None = None,
) -> dict[str, Trace]:
    """Read traces.

    Parameters
    ----------
    source : path, URL, or iterable of Trace or mapping
        In a file, one JSON object a line, or parquet; several files are named by their folder or
        a pattern (`misslink.io.shards.list_shards` says which). ``retrieved`` lists passages
        best first, as objects ``{"id", "text", "score"}`` (``page_content`` is understood as
        text) or as bare ids; a passage without an id is named by its text.
    dedupe : {'first'} or None
        Of a passage that is listed twice keep the first; None: it is an error.

    Returns
    -------
    dict of str to Trace
        By case id, in the file's order.

    Raises
    ------
    ListedTwiceError
        A passage is listed twice.
    InputError
        A line is malformed, a case has two traces, or ``prompted`` names a passage that was not
        retrieved.
    """
    if isinstance(source, str | Path):
        name = redact_url(source)
        items: Iterable[SourceItem] = read_items(source, Trace)
    else:
        name = "the traces"
        items = (SourceItem(item, name) for item in as_list(source, name))
    traces: dict[str, Trace] = {}
    places, texts = ItemLocations(), dict[str, str]()
    for item in items:
        trace = item.data if isinstance(item.data, Trace) else parse_trace(item, dedupe, texts)
        if trace.case_id in traces:
            where = places.first(trace.case_id, item)
            first = where and f" (the first {where})"
            raise item.error(
                f"the case '{trace.case_id}' has two traces{first}; keep one", "case_id"
            )
        traces[trace.case_id] = trace
        places.add(trace.case_id, item)
    if not traces:
        raise InputError("there is no trace in it", path=name)
    return traces


def match_traces(traces: Mapping[str, Trace], gold: GoldSet) -> dict[str, Trace]:
    """Return the traces of the gold set's cases, and log what does not fit.

    Raises
    ------
    InputError
        No trace belongs to any case.
    """
    ids = {case.id for case in gold.cases}
    strangers = [case_id for case_id in traces if case_id not in ids]
    if len(strangers) == len(traces):
        raise InputError(
            f"no trace belongs to a case of {gold.name} (the first is of case '{strangers[0]}'); "
            "the ids of both files must agree"
        )
    if strangers:
        _log.warning(
            "%d traces belong to no case of %s and are left out, such as that of '%s'",
            len(strangers),
            gold.name,
            strangers[0],
        )
    absent = [case.id for case in gold.cases if case.id not in traces]
    if absent:
        _log.warning(
            "%d cases have no trace and are not measured, such as '%s'", len(absent), absent[0]
        )
    return {case_id: trace for case_id, trace in traces.items() if case_id in ids}


def add_histories(gold: GoldSet, traces: Mapping[str, Trace]) -> GoldSet:
    """Return the gold set with the histories that only its traces have."""
    cases = [
        case.model_copy(update={"history": trace.history})
        if (trace := traces.get(case.id)) and trace.history and not case.history
        else case
        for case in gold.cases
    ]
    return replace(gold, cases=tuple(cases))


def parse_trace(item: SourceItem, dedupe: str | None, texts: dict[str, str]) -> Trace:
    data = dict(item.data) if isinstance(item.data, Mapping) else item.data
    if isinstance(data, dict):
        if isinstance(data.get("retrieved"), list | tuple):
            passages = [_normalize_passage(passage) for passage in data["retrieved"]]
            data["retrieved"] = _assign_ranks(passages, once=dedupe == "first")
        if isinstance(data.get("prompted"), list | tuple):
            data["prompted"] = [_id_text(named) for named in data["prompted"]]
    trace = item._replace(data=data).parse(Trace, texts)
    ids = [passage.id for passage in trace.retrieved]
    if len(set(ids)) < len(ids):
        twice = next(i for i in ids if ids.count(i) > 1)
        raise DuplicatePassageError(
            f"the passage '{twice}' is listed twice for case '{trace.case_id}'; a ranking names a "
            "passage once",
            path=item.path,
            line=item.line,
            field="retrieved",
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
    if isinstance(item, str | int) and not isinstance(item, bool):
        return {"id": str(item)}
    if not isinstance(item, dict):
        return item
    passage = dict(item)
    if "text" not in passage and "page_content" in passage:
        passage["text"] = passage.pop("page_content")  # a dumped LangChain document
    name = passage.get("id")
    is_named = name is not None and name != ""
    text = passage.get("text")
    passage["id"] = content_id(text) if not is_named and isinstance(text, str) else _id_text(name)
    return passage


def _assign_ranks(passages: list[Any], *, once: bool) -> list[Any]:
    """Give every passage its rank: its place in the list, or the file's own order of ranks."""
    if all(isinstance(p, dict) and isinstance(p.get("rank"), int) for p in passages):
        passages = sorted(passages, key=lambda passage: passage["rank"])
    if once:
        first: dict[str, Any] = {}
        for index, passage in enumerate(passages):
            name = passage.get("id") if isinstance(passage, dict) else None
            # Malformed passages are reported where the trace is parsed.
            first.setdefault(name if isinstance(name, str) else f"\0{index}", passage)
        passages = list(first.values())
    return [
        {**passage, "rank": rank} if isinstance(passage, dict) else passage
        for rank, passage in enumerate(passages, start=1)
    ]


def _id_text(item: Any) -> Any:
    return str(item) if isinstance(item, int) and not isinstance(item, bool) else item
