"""misslink gate: may it ship? Exit code 1 where a gate of severity error failed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from misslink.cli.options import AS_JSON
from misslink.cli.output import plain, print_json, say

if TYPE_CHECKING:
    from rich.console import Console

    from misslink.deciding.outcome import Decision, Outcome

__all__ = ["gate"]

_STDOUT = "-"
_MARKS = {True: "pass", False: "FAIL"}


def gate(
    run: Path | None = typer.Argument(None, help="A run folder.", show_default=False),
    criteria: Path | None = typer.Option(
        None, "--criteria", help="What is demanded, such as ship-criteria.yaml."
    ),
    baseline: Path | None = typer.Option(
        None, "--baseline", help="A run folder or a summary.json to hold the run against."
    ),
    markdown: Path | None = typer.Option(
        None, "--markdown", help="Write a pull request comment here; - prints it."
    ),
    junit: Path | None = typer.Option(None, "--junit", help="Write JUnit XML here."),
    schema: bool = typer.Option(
        False, "--schema", help="Print the JSON schema of a criteria file, for editors."
    ),
    as_json: bool = AS_JSON,
) -> None:
    """Hold a run against ship criteria, from its folder alone: no model is called."""
    if schema:
        from misslink.deciding.gates import criteria_schema

        print_json(criteria_schema())
        return
    from misslink.deciding.baseline import read_baseline, read_whole
    from misslink.deciding.criteria import read_criteria
    from misslink.deciding.gate import decide
    from misslink.errors import InputError

    if run is None or criteria is None:
        lacks = "a run folder: misslink gate RUN --criteria FILE" if run is None else "--criteria"
        raise InputError(f"misslink gate needs {lacks}")
    printed = markdown is not None and str(markdown) == _STDOUT
    if printed and as_json:
        raise InputError("--json and --markdown - both print to stdout; write one into a file")
    for option, place in (("--markdown", markdown), ("--junit", junit)):
        if place is not None and not (option == "--markdown" and printed):
            _check_place(option, place, run, (criteria, baseline))
    wanted = read_criteria(criteria)
    decision = decide(
        read_whole(run), wanted, read_baseline(baseline) if baseline else None, folder=run
    )
    _write(decision, markdown, junit)
    if as_json:
        print_json(decision.document())
    elif not printed:
        _print(decision)
    if not decision.passed:
        raise typer.Exit(1)


def _check_place(option: str, place: Path, run: Path, others: tuple[Path | None, ...]) -> None:
    """Refuse a place where no file can be made, or where another one is."""
    from misslink.errors import InputError
    from misslink.files.runfolder import OURS

    folder = place.parent
    taken = {other.resolve() for other in others if other is not None}
    if place.is_dir():
        problem = "this is a folder"
    elif place.resolve() in taken or (folder.resolve() == run.resolve() and place.name in OURS):
        problem = "this file is read for the gate and would be lost"
    elif not folder.is_dir():
        problem = "its folder does not exist"
    elif not os.access(place if place.exists() else folder, os.W_OK):
        problem = "it cannot be written"
    else:
        return
    raise InputError(f"{problem}; name another file with {option}", path=place)


def _write(decision: Decision, markdown: Path | None, junit: Path | None) -> None:
    from misslink.deciding.comment import comment
    from misslink.deciding.junit import junit as as_junit

    if markdown is not None and str(markdown) == _STDOUT:
        print(comment(decision), end="")
    elif markdown is not None:
        markdown.write_text(comment(decision), encoding="utf-8")
    if junit is not None:
        junit.write_text(as_junit(decision), encoding="utf-8")


def _print(decision: Decision) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    table = Table(show_lines=True)
    for column in ("", "gate", "why"):
        table.add_column(column, overflow="fold", no_wrap=not column)
    for outcome in decision.outcomes:
        name = Text(plain(outcome.gate.name))
        table.add_row(Text(_mark(outcome)), name, Text(_why(decision, outcome)))
    console.print(table)
    for note in decision.notes:
        say(console, note)
    _print_end(console, decision)


def _print_end(console: Console, decision: Decision) -> None:
    failed = len(decision.failed)
    errors = sum(one.gate.severity == "error" for one in decision.failed)
    warned = f", {failed - errors} warned" if failed > errors else ""
    count = len(decision.outcomes)
    of = f"{count} {'gate' if count == 1 else 'gates'}"
    end = f"{errors} of {of} failed{warned}." if errors else f"Of {of} none failed{warned}."
    say(console, end, "bold")


def _mark(outcome: Outcome) -> str:
    if not outcome.passed and outcome.gate.severity == "warning":
        return "warn"
    return _MARKS[outcome.passed]


def _why(decision: Decision, outcome: Outcome) -> str:
    notes = [f"({note})" for note in outcome.notes if note not in decision.notes]  # told below
    return plain(" ".join([outcome.reason, *notes]))
