"""Entry point of the command line: all commands and the handling of errors."""

from __future__ import annotations

import errno
import logging
import os
import sys
import traceback
from contextlib import suppress
from copy import copy
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

import typer

from misslink import __version__
from misslink.cli.config import read_defaults
from misslink.cli.help import COMMAND_PANELS, SHOW_ALL, arrange_help
from misslink.cli.options import option
from misslink.cli.output import end_despite_hung_threads, print_line
from misslink.errors import InputError, MisslinkError
from misslink.garbage_collection import reduced_gc
from misslink.io.secrets import redact_addresses

# What a shell gives a program that SIGPIPE ends (128 + 13); 1 would say that a gate failed.
_READER_LEFT = 141
_INTERRUPTED = 130
_OUTPUT_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)

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


class Warnings(logging.Handler):
    """Print warnings as every line: above a progress bar, and without escape sequences."""

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(OSError):
            for line in self.format(record).split("\n"):
                print_line(line, stderr=True)


def main() -> None:
    """Run the program; every error is one sentence on stderr and an exit code that is not 1."""
    # The handler has a level of its own: a logger that some package set to DEBUG (bm25s does) goes
    # by the root's handlers, not by the root's level.
    warnings = Warnings()
    warnings.setLevel(logging.WARNING)
    warnings.setFormatter(logging.Formatter("misslink: %(message)s"))
    logging.basicConfig(handlers=[warnings], level=logging.WARNING)
    if sys.stderr is None:  # as where a shell closed it; print would take stdout instead
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115
    code = _guarded()
    end_despite_hung_threads(code)
    sys.exit(code)


def _guarded() -> int:
    """Run the program and return its exit code: whatever happens, 1 is a decision of a command."""
    try:
        try:
            _check_surroundings()
            with reduced_gc():  # what a command imports and reads is kept to its end
                _run()
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()  # here its disk can be full; later Python complains
    except (BrokenPipeError, KeyboardInterrupt, SystemExit) as end:
        causes = (end, end.__context__, getattr(end.__context__, "__cause__", None))
        # click ends with 1 where a pipe breaks, and at Ctrl-C.
        if any(isinstance(cause, BrokenPipeError) for cause in causes):
            return _without_output(_READER_LEFT)
        if any(isinstance(cause, KeyboardInterrupt) for cause in causes):
            return _INTERRUPTED
        return end.code if isinstance(end, SystemExit) and isinstance(end.code, int) else 0
    except Exception as error:  # noqa: BLE001 - nothing else may look like a gate that failed
        return _report(error)
    return 0


def _check_surroundings() -> None:
    """Refuse, before anything is paid for, what would be lost at the end."""
    if sys.stdout is None:
        raise InputError("standard output is closed; send it to a file, such as /dev/null")
    try:
        words = [*sys.argv, str(Path.cwd())]
    except OSError:
        raise InputError("the working folder is gone; change to another one") from None
    for word in words:
        if word.encode("utf-8", "replace") != word.encode("utf-8", "surrogatepass"):
            raise InputError(f"the name {word!a} is not UTF-8; rename it")


def _report(error: Exception) -> int:
    """Print an error as one sentence and return the exit code; a bug also has its traceback."""
    code, message = InputError.exit_code, ""
    if isinstance(error, MisslinkError):
        code, message = error.exit_code, str(error)
    elif isinstance(error, RecursionError):
        message = "an input is nested too deeply; write it flat"
    elif isinstance(error, MemoryError):
        message = "an input needs more memory than there is; give a smaller one"
    elif isinstance(error, UnicodeError):
        message = "a name or text cannot be written as UTF-8; rename or correct it"
    elif isinstance(error, OSError):
        is_output = error.errno in _OUTPUT_ERRORS  # of a file, the errors are read where it is
        place = error.filename or ("standard output" if is_output else type(error).__name__)
        message = f"{place}: {error.strerror or error}"
    if not message:
        traceback.print_exception(error)
        message = "this is a bug; please report it with the lines above"
    message = redact_addresses(f"misslink: {message}")  # of a URL that stood where a path belongs
    with suppress(OSError):
        for line in message.split("\n"):
            print_line(line, stderr=True)
    return _without_output(code)


def _without_output(code: int) -> int:
    """Drop what cannot be written, about which Python would complain at its end; return `code`."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except OSError:
            os.dup2(nowhere, stream.fileno())
    return code


def build_command(*, all_options: bool = False, only: str = "") -> Any:
    """Return the command line as a click command, with its help pages arranged.

    With the name of a command as `only` it lacks the others, which take time to build.
    """
    program = copy(app)
    if only in chain.from_iterable(COMMAND_PANELS.values()):
        program.registered_commands = [c for c in app.registered_commands if c.name == only]
        program.registered_groups = [group for group in app.registered_groups if group.name == only]
    command = typer.main.get_command(program)
    arrange_help(command, all_options=all_options)
    return command


def _run() -> None:
    arguments = ["--help" if word == SHOW_ALL else word for word in sys.argv[1:]]
    first = arguments[0] if arguments else ""
    command = build_command(all_options=SHOW_ALL in sys.argv, only=first)
    # A mistake in the settings must not hide the help, or keep init from replacing them.
    without = {"init", "-h", "--help", "--version"} & {*arguments[:1], *arguments[-1:]}
    command(arguments, default_map={} if without else read_defaults(command))
