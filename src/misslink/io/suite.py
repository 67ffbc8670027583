"""Suites: failed cases of a run, frozen as gold set and traces in one file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from misslink.io.jsonl import SourceItem
from misslink.types import Trace

EXPECTED = ("expected_owner", "expected_failure")
_OF_THE_RUN = {"needs", "epoch"}  # what the failed run knew; a new run finds it out itself
_OF_THE_TRACE = {*Trace.model_fields} - {"history"}


def is_suite_row(data: object) -> bool:
    return isinstance(data, Mapping) and EXPECTED[0] in data


def suite_case(item: SourceItem) -> SourceItem:
    """The row as a case of a gold set; what is expected of it is a tag, so that it is a slice."""
    return item._replace(data=_without(item.data, _OF_THE_RUN | _OF_THE_TRACE))


def suite_trace(item: SourceItem) -> SourceItem:
    """The row as a trace with the fields of its case."""
    return item._replace(data=_without(item.data, _OF_THE_RUN))


def _without(row: Mapping[str, Any], names: set[str]) -> dict[str, object]:
    kept = {name: value for name, value in row.items() if name not in {*names, *EXPECTED}}
    expected = {name: row[name] for name in EXPECTED if row.get(name)}
    return {**kept, "tags": {**(kept.get("tags") or {}), **expected}}
