"""misslink gate: may it ship? Exit code 1 where a gate of severity error failed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from misslink.cli.options import AS_JSON
from misslink.cli.output import cell, print_json, say
from misslink.cli.writing import check_place, is_part_of_run

if TYPE_CHECKING:
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
    from misslink.deciding.baseline import read_baseline
    from misslink.deciding.criteria import read_criteria
    from misslink.deciding.gate import decide
    from misslink.errors import InputError
    from misslink.files import read_whole

    if run is None or criteria is None:
        lacks = "a run folder: misslink gate RUN --criteria FILE" if run is None else "--criteria"
        raise InputError(f"misslink gate needs {lacks}")
    printed = markdown is not None and str(markdown) == _STDOUT
    if printed and as_json:
        raise InputError("--json and --markdown - both print to stdout; write one into a file")
    if markdown is not None and not printed:
        _check_place("--markdown", markdown, (criteria, baseline))
    if junit is not None:
        _check_place("--junit", junit, (criteria, baseline, None if printed else markdown))
    wanted = read_criteria(criteria)
    decision = decide(
        read_whole(run, anywhere=True),
        wanted,
        read_baseline(baseline) if baseline else None,
        folder=run,
    )
    _write(decision, markdown, junit)
    if as_json:
        print_json(decision.document())
    elif not printed:
        _print(decision)
    if not decision.passed:
        raise typer.Exit(1)


def _check_place(option: str, place: Path, others: tuple[Path | None, ...]) -> None:
    """Refuse a place where no file can be made, or where another one is, or will be."""
    from misslink.errors import InputError

    check_place(place, option)
    if place.resolve() in {other.resolve() for other in others if other is not None}:
        problem = "this file is read or written for the gate already and would be lost"
    elif is_part_of_run(place):
        problem = "this file is part of a run and would be lost"
    else:
        return
    raise InputError(f"{problem}; name another file with {option}", path=place)


def _write(decision: Decision, markdown: Path | None, junit: Path | None) -> None:
    from misslink.deciding.comment import comment
    from misslink.deciding.junit import junit as as_junit
    from misslink.files.whole import put

    if markdown is not None and str(markdown) == _STDOUT:
        print(comment(decision), end="")
    elif markdown is not None:
        put(comment(decision), markdown)
    if junit is not None:
        put(as_junit(decision), junit)


def _print(decision: Decision) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table(show_lines=True)
    for column in ("", "gate", "why"):
        table.add_column(column, overflow="fold", no_wrap=not column)
    for outcome in decision.outcomes:
        said = (_mark(outcome), outcome.gate.name, _why(decision, outcome))
        table.add_row(*(cell(console, text) for text in said))
    console.print(table)
    for note in decision.notes:
        console.print(cell(console, note))  # wrapped between words
    say(console, decision.counted(), "bold")


def _mark(outcome: Outcome) -> str:
    if not outcome.passed and outcome.gate.severity == "warning":
        return "warn"
    return _MARKS[outcome.passed]


def _why(decision: Decision, outcome: Outcome) -> str:
    notes = [f"({note})" for note in outcome.notes if note not in decision.notes]  # told below
    return " ".join([outcome.reason, *notes])
