"""Suites: failed cases of a run, frozen as gold set and traces in one file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from misslink.case_fields import read_tags
from misslink.failure_modes import FAILURE_MODES
from misslink.io.jsonl import SourceItem
from misslink.types import Trace

# What a row expects, and its values.
EXPECTED = {
    "expected_owner": {mode.owner for mode in FAILURE_MODES.values()} - {"none"},
    "expected_failure": {name for name, mode in FAILURE_MODES.items() if mode.failed},
}
_OF_THE_RUN = {"needs"}  # what the failed run knew; a new run finds it out itself
_OF_THE_TRACE = {*Trace.model_fields} - {"history"}


def is_suite_row(data: object) -> bool:
    return isinstance(data, Mapping) and not EXPECTED.keys().isdisjoint(data)


def suite_case(item: SourceItem) -> SourceItem:
    """The row as a case of a gold set; what is expected of it is a tag, so that it is a slice."""
    return _without(item, _OF_THE_RUN | _OF_THE_TRACE)


def suite_trace(item: SourceItem) -> SourceItem:
    """The row as a trace with the fields of its case."""
    return _without(item, _OF_THE_RUN)


def _without(item: SourceItem, names: set[str]) -> SourceItem:
    row: Mapping[str, Any] = item.data
    expected = {name: row[name] for name in EXPECTED if row.get(name)}
    for name, value in expected.items():
        if str(value) not in EXPECTED[name]:
            known = ", ".join(sorted(EXPECTED[name]))
            raise item.error(f"{value!r} is not known. Known: {known}.", name)
    kept = {name: value for name, value in row.items() if name not in {*names, *EXPECTED}}
    tags = read_tags(kept.get("tags"))
    if isinstance(tags, Mapping):  # else its parser says so
        tags = {**tags, **expected}
    return item._replace(data={**kept, "tags": tags})
