"""Command `misslink gate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from misslink.cli.options import CRITERIA_OPTION, JSON_OPTION, option
from misslink.cli.output import STDOUT, check_output_paths, print_json, print_line, print_table
from misslink.errors import InputError
from misslink.render.table import TextTable

if TYPE_CHECKING:
    from misslink.gates.outcome import GateDecision


def gate(
    run: Path | None = typer.Argument(None, help="Run folder or score table.", show_default=False),
    criteria: Path | None = CRITERIA_OPTION,
    baseline: Path | None = option(
        None, "--baseline", "Run folder, summary.json or score table to compare with."
    ),
    allow_missing_baseline: bool = option(
        False, "--allow-missing-baseline", "Without a baseline, do not check regressions."
    ),
    markdown: Path | None = option(
        None, "--markdown", "Pull request comment to write; - prints it."
    ),
    report_url: str | None = option(
        None, "--report-url", "Address of the report, which the comment links to."
    ),
    junit: Path | None = option(None, "--junit", "JUnit XML file to write."),
    schema: bool = option(False, "--schema", "Print the JSON schema of a criteria file."),
    as_json: bool = JSON_OPTION,
) -> None:
    """Check a run against ship criteria, for CI."""
    import misslink
    from misslink.gates.criteria import criteria_schema
    from misslink.io.atomic import atomic_write
    from misslink.io.storage import as_url
    from misslink.report.gate_reports import junit_xml, pull_request_comment

    if schema:
        print_json(criteria_schema())
        return
    if run is None or criteria is None:
        missing = "a run folder" if run is None else "criteria"
        raise InputError(f"The gate needs {missing}. Write: misslink gate RUN --criteria FILE")
    outputs = {"--markdown": markdown, "--junit": junit}
    check_output_paths(outputs, (criteria, baseline), as_json=as_json)
    if allow_missing_baseline and baseline and not as_url(baseline) and not baseline.exists():
        baseline = None
    decision = misslink.gate(run, criteria, baseline, allow_missing_baseline=allow_missing_baseline)
    to_stdout = str(markdown) == STDOUT
    if markdown is not None and not to_stdout:
        atomic_write(pull_request_comment(decision, report_url), markdown)
    if junit is not None:
        atomic_write(junit_xml(decision), junit)
    if as_json:
        print_json(decision.document())
    elif to_stdout:
        print(pull_request_comment(decision, report_url), end="")
    else:
        _print(decision)
    if not decision.passed:
        raise typer.Exit(1)


def _print(decision: GateDecision) -> None:
    for line in decision.scope:
        print_line(line)
    rows = []
    for outcome in decision.outcomes:
        failed = "warn" if outcome.gate.severity == "warning" else "FAIL"
        notes = [f"({note})" for note in outcome.notes if note not in decision.notes]
        why = " ".join([outcome.reason, *notes])
        rows.append(("pass" if outcome.passed else failed, outcome.gate.name, why))
    print_table(TextTable(("", "gate", "why"), rows), spaced=True)
    for note in decision.notes:
        print_line(note)
    print_line(decision.counted(), "bold")
