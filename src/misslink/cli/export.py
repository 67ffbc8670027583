"""Command `misslink export`."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from misslink.cli.options import JSON_OPTION, RUN_ARGUMENT, option
from misslink.cli.output import check_output_paths, print_json
from misslink.errors import InputError

_log = logging.getLogger(__name__)


def export(
    run: Path = RUN_ARGUMENT,
    to: str = option(..., "--to", "Tool: otel, langfuse, langsmith, phoenix, or csv."),
    out: Path | None = option(
        None, "--out", "File to write.", show_default="RUN/scores.TO.jsonl, or RUN/scores.csv"
    ),
    send: str | None = option(
        None, "--send", "Address of the tool's server; also sends the scores.", show_default=False
    ),
    as_json: bool = JSON_OPTION,
) -> None:
    """Export the scores of a run to the tool that its traces come from."""
    from misslink.io import read_complete_run
    from misslink.report.scores import send_scores, write_scores

    if send is not None and to == "csv":
        raise InputError("A CSV file cannot be sent. Leave out --send, or name a tool with --to.")
    path = out or run / ("scores.csv" if to == "csv" else f"scores.{to}.jsonl")
    check_output_paths({"--out": path})
    written, left_out = write_scores(read_complete_run(run, anywhere=True), to, path)
    if left_out:
        _log.warning("%d cases are left out, because their traces have no id of %s", left_out, to)
    requests = None if send is None else send_scores(path, to, send, os.environ)
    if as_json:
        document = {"file": str(path), "to": to, "scores": written, "cases_left_out": left_out}
        print_json({**document, "requests_sent": requests})
        return
    sent = "" if requests is None else f", sent in {requests:,} requests"
    print(f"{written:,} scores: {path}{sent}")
