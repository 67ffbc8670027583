"""Logs read by what they hold: spans of traces, or rows with columns."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from pathlib import Path

from misslink.errors import InputError
from misslink.goldset.logs.columns import of_rows
from misslink.goldset.logs.conventions import of_spans
from misslink.goldset.logs.request import Log, joined
from misslink.goldset.logs.source import rows_of
from misslink.goldset.logs.spans import Span, holds_spans, spans_of

__all__ = ["read_logs"]


def read_logs(paths: Iterable[Path], columns: Mapping[str, str] | None = None) -> Log:
    """Read logs of a live app.

    Parameters
    ----------
    paths : iterable of Path
        CSV, JSON Lines, a JSON array, parquet, or OpenTelemetry spans (OTLP's JSON, the SDKs'
        console output, Phoenix's tables) with OpenInference's or gen_ai's attributes; also
        gzipped. Spans of one trace may lie in several files.
    columns : mapping of str to str, optional
        Field to column of tables; see `misslink.goldset.logs.own_columns`.

    Returns
    -------
    Log
        As they stand: nothing is masked yet.

    Raises
    ------
    InputError
        A file cannot be read, a line is malformed, or there is no question in any of them.
    """
    logs: list[Log] = []
    spans: list[Span] = []
    for path in paths:
        rows = rows_of(path)
        first = next(rows, None)
        if first is None:
            raise InputError("there is nothing in it", path=path)
        together = itertools.chain([first], rows)
        if holds_spans(first[1]):
            spans += spans_of(path, together)
        else:
            logs.append(of_rows(path, together, columns or {}))
    if spans:
        logs.append(of_spans(spans))
    log = joined(logs)
    if not log.requests:
        told = ", ".join(f"{count:,} {why}" for why, count in log.left_out.items())
        raise InputError(f"there is no question in the logs{told and f' ({told})'}")
    return log
