"""The program: its commands, and what a mistake looks like."""

from __future__ import annotations

import logging
import sys

import typer

from misslink import __version__
from misslink.cli import (
    calibrate,
    compare,
    demo,
    diagnose,
    evaluate,
    gate,
    judge,
    ledger,
    prompts,
    replay,
    report,
    whatif,
)
from misslink.errors import MisslinkError

__all__ = ["main"]

app = typer.Typer(
    name="misslink",
    help="Find which retrieval misses of a RAG app go with which unfaithful answers.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("evaluate")(evaluate.evaluate)
app.command("diagnose")(diagnose.diagnose)
app.command("replay")(replay.replay)
app.command("whatif")(whatif.whatif)
app.command("compare")(compare.compare)
app.command("calibrate")(calibrate.calibrate)
app.command("gate")(gate.gate)
app.command("report")(report.report)
app.command("demo")(demo.demo)
app.add_typer(judge.app, name="judge")
app.add_typer(ledger.app, name="ledger")
app.add_typer(prompts.app, name="prompts")


def _version(wanted: bool) -> None:
    if wanted:
        print(__version__)
        raise typer.Exit


@app.callback()
def options(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """Find which retrieval misses of a RAG app go with which unfaithful answers."""


def main() -> None:
    """Run the program; a person's mistake is one sentence on stderr and an exit code."""
    # The handler has a level of its own: a logger that some package set to DEBUG (bm25s does) goes
    # by the root's handlers, not by the root's level.
    warnings = logging.StreamHandler(sys.stderr)
    warnings.setLevel(logging.WARNING)
    logging.basicConfig(format="misslink: %(message)s", handlers=[warnings], level=logging.WARNING)
    try:
        app()
    except MisslinkError as error:
        print(f"misslink: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
