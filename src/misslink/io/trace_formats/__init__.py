"""Read what an app did from the files of other tools: tables, spans and exports."""

from __future__ import annotations

from misslink.io.trace_formats.recording import Recording, read_recording
from misslink.io.trace_formats.requests import LogRequest, RequestLog
from misslink.io.trace_formats.tables import parse_columns, read_logs

__all__ = ["LogRequest", "Recording", "RequestLog", "parse_columns", "read_logs", "read_recording"]
