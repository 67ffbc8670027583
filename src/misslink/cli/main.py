"""Entry point of the command line: all commands and the handling of errors."""

from __future__ import annotations

import logging
import os
import sys
from importlib import import_module
from itertools import chain
from typing import Any

import typer

from misslink import __version__
from misslink.cli.config import read_defaults
from misslink.cli.help import COMMAND_PANELS, SHOW_ALL, arrange_help
from misslink.cli.options import option
from misslink.cli.output import end_despite_hung_threads, strip_control
from misslink.errors import MisslinkError
from misslink.io.storage import redact_secrets

# What a shell gives a program that SIGPIPE ends (128 + 13); 1 would say that a gate failed.
_READER_LEFT = 141

app = typer.Typer(
    name="misslink",
    help="Find out why your RAG app fails: retrieval, generation or data.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
# Modules of commands that are not called like them. Those of the self-contained packages are
# imported by name, because the core imports nothing of these packages.
_MODULES = {
    "init": "misslink.cli.config",
    "export": "misslink.cli.report",
    "goldset": "misslink.goldset.cli",
    "canary": "misslink.canary.cli",
    "live": "misslink.live.cli",
}
for name in chain.from_iterable(COMMAND_PANELS.values()):
    module = import_module(_MODULES.get(name, f"misslink.cli.{name}"))
    if hasattr(module, "app"):
        app.add_typer(module.app, name=name)
    else:
        app.command(name)(getattr(module, name))


def _version(wanted: bool) -> None:
    if wanted:
        print(__version__)
        raise typer.Exit


@app.callback()
def options(
    version: bool = option(
        False, "--version", "Print the version.", callback=_version, is_eager=True
    ),
) -> None:
    """Find out why your RAG app fails: retrieval, generation or data."""


class _Plain(logging.Formatter):
    """Warnings quote what is under test, which may hold escape sequences."""

    def format(self, record: logging.LogRecord) -> str:
        return "\n".join(map(strip_control, super().format(record).split("\n")))


def main() -> None:
    """Run the program; a person's mistake is one sentence on stderr and an exit code."""
    # The handler has a level of its own: a logger that some package set to DEBUG (bm25s does) goes
    # by the root's handlers, not by the root's level.
    warnings = logging.StreamHandler(sys.stderr)
    warnings.setLevel(logging.WARNING)
    warnings.setFormatter(_Plain("misslink: %(message)s"))
    logging.basicConfig(handlers=[warnings], level=logging.WARNING)
    try:
        try:
            _run()
        finally:
            if sys.stdout is not None:  # as it is where a shell closed it
                sys.stdout.flush()  # here a reader that left can be told; later Python complains
    except (BrokenPipeError, SystemExit) as end:
        # typer and rich end with 1 where a pipe breaks.
        if not any(isinstance(one, BrokenPipeError) for one in (end, end.__context__)):
            end_despite_hung_threads(int(getattr(end, "code", None) or 0))
            raise
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in filter(None, (sys.stdout, sys.stderr)):  # for what is still to be flushed
            os.dup2(nowhere, stream.fileno())
        sys.exit(_READER_LEFT)


def build_command(*, all_options: bool = False) -> Any:
    """Return the whole command line as a click command, with its help pages arranged."""
    command = typer.main.get_command(app)
    arrange_help(command, all_options=all_options)
    return command


def _run() -> None:
    arguments = ["--help" if word == SHOW_ALL else word for word in sys.argv[1:]]
    try:
        command = build_command(all_options=SHOW_ALL in sys.argv)
        # A mistake in the settings must not hide the help, or keep init from replacing them.
        without = {"init", "-h", "--help", "--version"} & {*arguments[:1], *arguments[-1:]}
        command(arguments, default_map={} if without else read_defaults(command))
    except MisslinkError as error:
        message = redact_secrets(f"misslink: {error}")  # of a URL that stood where a path belongs
        print(*map(strip_control, message.split("\n")), sep="\n", file=sys.stderr)
        sys.exit(error.exit_code)
