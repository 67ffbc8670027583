"""Commands `misslink report` and `misslink export`."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from misslink.cli.options import JSON_OPTION, RUN_ARGUMENT, VERBOSE_OPTION, option
from misslink.cli.output import STDOUT, check_output_paths, is_part_of_run, print_json
from misslink.errors import InputError

if TYPE_CHECKING:
    from misslink.types import Run


def report(
    run: Path = RUN_ARGUMENT,
    form: str = option(
        "html", "--format", "Format: html, markdown, json, csv, parquet, github-issues."
    ),
    out: Path | None = option(
        None,
        "--out",
        "File to write; - is stdout.",
        show_default="the format's file in RUN",
    ),
    verbose: bool = VERBOSE_OPTION,
    as_json: bool = option(False, "--json", "Print the path as JSON."),
) -> None:
    """Write the report of a run and print its summary."""
    from misslink.io import read_complete_run
    from misslink.io.run_folder import report_file
    from misslink.io.storage import as_url, redact_url
    from misslink.registry import exporters

    write, to_stdout = exporters.get(form), str(out) == STDOUT
    if to_stdout and as_json:
        raise InputError("--json and --out - both print to stdout; write one into a file")
    if out is None and as_url(run):
        raise InputError(
            "The run is in remote storage. Name a local file for the report with --out."
        )
    read = read_complete_run(run, anywhere=True)
    if to_stdout:
        _refuse_two_files(read, form)
        _to_stdout(write, read)
        return
    path = out or run / report_file(form)
    _refuse_part_of_run(path)
    try:
        path = write(read, path)
    except InputError as refused:
        if refused.path is None:
            raise
        # The exporter does not know the options.
        raise InputError(f"{refused.problem} with --out", path=refused.path) from None
    if as_json:
        print_json({"run": redact_url(run), "report": str(path), "format": form})
        return
    from misslink.cli.run_summary import print_run_summary

    print_run_summary(read, str(path), verbose=verbose)


def _refuse_two_files(run: Run, form: str) -> None:
    """Raise where a page has a table beside it, for which stdout has no place."""
    from misslink.report.cases import page_size

    if form == "html" and page_size(len(run.cases)) < len(run.cases):
        raise InputError(
            f"The page of {len(run.cases):,} cases has a second file with all cases. Name a file "
            "with --out."
        )


def _to_stdout(write: Callable[[Run, Path], Path], run: Run) -> None:
    """Print what an exporter writes, which may be bytes of any kind."""
    with TemporaryDirectory(prefix="misslink-") as folder:
        content = write(run, Path(folder) / "report").read_bytes()
    sys.stdout.flush()
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def _refuse_part_of_run(path: Path) -> None:
    """Raise where the file is, or would be, one that a run folder is made of and no report."""
    from misslink.io.run_folder import report_file
    from misslink.registry import exporters

    name = path.name.casefold()
    reports = set(map(report_file, exporters.names()))
    if is_part_of_run(path) and name not in reports and not name.startswith("report."):
        raise InputError("This is a part of a run. Name another file with --out.", path=path)


_log = logging.getLogger(__name__)


def export(
    run: Path = RUN_ARGUMENT,
    to: str = option(..., "--to", "Tool: otel, langfuse, langsmith, phoenix, mlflow, or csv."),
    out: Path | None = option(
        None, "--out", "File to write.", show_default="RUN/scores.TO.jsonl, or RUN/scores.csv"
    ),
    send: str | None = option(
        None, "--send", "Address of the tool's server; also sends the scores.", show_default=False
    ),
    uri: str | None = option(
        None, "--uri", "MLflow tracking store.", show_default="MLFLOW_TRACKING_URI"
    ),
    experiment: str | None = option(
        None, "--mlflow-experiment", "MLflow experiment.", show_default="misslink"
    ),
    as_json: bool = JSON_OPTION,
) -> None:
    """Export the scores of a run to the tool that its traces come from, or the run to MLflow."""
    from misslink.io import read_complete_run
    from misslink.report.scores import send_scores, write_scores

    if to == "mlflow":
        _export_to_mlflow(run, uri, experiment, {"--out": out, "--send": send}, as_json=as_json)
        return
    if uri or experiment:
        raise InputError(
            "--uri and --mlflow-experiment are for --to mlflow; other tools have --send."
        )
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


def _export_to_mlflow(
    run: Path,
    uri: str | None,
    experiment: str | None,
    others: Mapping[str, object],
    *,
    as_json: bool,
) -> None:
    from misslink.io import read_complete_run
    from misslink.report.mlflow_run import EXPERIMENT, log_run

    if named := [flag for flag, value in others.items() if value is not None]:
        raise InputError(f"{named[0]} is not for MLflow. Name the store with --uri.")
    logged = log_run(read_complete_run(run, anywhere=True), uri, experiment or EXPERIMENT)
    if as_json:
        print_json({"to": "mlflow", **logged._asdict()})
        return
    print(
        f"{logged.metrics:,} numbers and the report: MLflow run {logged.run_id} of the experiment "
        f"'{logged.experiment}'"
    )
