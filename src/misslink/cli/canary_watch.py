"""misslink canary watch: the same run again and again, each in a process of its own.

A fresh process sees the app's index and code as they are now, as cron would, and what hangs in
one run ends with it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from misslink.cli.canary_input import HISTORY, NAME
from misslink.cli.options import AS_JSON

__all__ = ["watch"]

_PROGRAM = (sys.executable, "-c", "from misslink.cli import main; main()")
_BAD_INPUT, _INTERRUPTED = 2, 130
_GRACE_S = 120.0  # beyond the run's own deadline: to start, to judge, to tell its webhook
_LEAVING_S = 10.0  # for a run that was interrupted
_ENDED = {0: "fine", 1: "an alarm is open", 2: "bad input", 3: "the app or judge is unreachable"}


def watch(
    context: typer.Context,
    every: str = typer.Option(..., "--every", help="Such as 30m, 1h or 1d."),
    runs: int | None = typer.Option(
        None, "--runs", min=1, help="Stop after so many.", show_default="until interrupted"
    ),
    name: str = NAME,
    history: Path = HISTORY,
    as_json: bool = AS_JSON,
) -> None:
    """Run canaries at an interval until interrupted: APP and all options of canary run.

    With --json each run is one JSON document on one line. Ctrl-C between two runs ends it with 0,
    within a run with 130; with --runs it ends as the last run did.
    """
    import time

    from misslink.watching.canaries.repeating import only_one, repeat, seconds_of

    arguments = [*context.args, "--name", name, "--history", str(history)]
    seconds = seconds_of(every)
    group: Any = context.parent and context.parent.command
    series = _Series(arguments, _limit(group.commands["run"], arguments), as_json=as_json)
    with only_one(history, name):
        try:
            repeat(
                series.once,
                seconds,
                clock=time.time,
                sleep=time.sleep,
                announce=_announce,
                times=runs,
            )
        except KeyboardInterrupt:
            _say("stopped; every finished run is kept")
            raise typer.Exit(_INTERRUPTED if series.is_running else 0) from None
    raise typer.Exit(series.code)


@dataclass
class _Series:
    """Runs in processes of their own, and how the last one ended."""

    arguments: list[str]
    limit_s: float
    as_json: bool
    code: int = 0
    done: int = 0
    is_running: bool = False

    def once(self) -> None:
        """Run once; an error ends the series only where the first run finds the input wrong."""
        self.is_running = True
        command = [*_PROGRAM, "canary", "run", *self.arguments]
        out = subprocess.PIPE if self.as_json else None
        with subprocess.Popen(  # noqa: S603 (this program itself)
            [*command, "--json"] if self.as_json else command, stdout=out, text=True
        ) as process:
            try:
                printed, _ = process.communicate(timeout=self.limit_s)
            except subprocess.TimeoutExpired:
                process.kill()
                printed, _ = process.communicate()
                _say(f"this run did not end in {self.limit_s:g} seconds and was ended")
            except KeyboardInterrupt:
                _ended(process)
                raise
        self.is_running = False
        self.code, self.done = process.returncode, self.done + 1
        if self.code == _INTERRUPTED:
            self.is_running = True
            raise KeyboardInterrupt
        if self.as_json:
            _print_line(printed or "")
        if self.code == _BAD_INPUT and self.done == 1:
            raise typer.Exit(_BAD_INPUT)
        if self.code:
            _say(f"this run ended with {self.code} ({_ENDED.get(self.code, 'it broke off')})")


def _print_line(printed: str) -> None:
    """One document on one line; of a run that was cut off there may be none, or half of one."""
    try:
        document = json.loads(printed)
    except ValueError:
        return
    print(json.dumps(document), flush=True)


def _ended(process: subprocess.Popen[str]) -> None:
    """Let a run that was interrupted, too, come to its end; end it where it does not."""
    try:
        process.wait(timeout=_LEAVING_S)
    except subprocess.TimeoutExpired:
        process.kill()


def _limit(run: Any, arguments: list[str]) -> float:
    """Check the options of the command `run` as it would, and say how long it may take.

    Raises
    ------
    click.UsageError
        One of them is wrong.
    """
    given = run.make_context("misslink canary run", list(arguments)).params
    return float(given["deadline"] + 3 * given["timeout"] + _GRACE_S)


def _announce(at: float) -> None:
    import datetime as dt

    when = dt.datetime.fromtimestamp(at).astimezone()
    _say(f"the next run begins at {when:%Y-%m-%d %H:%M:%S}; Ctrl-C stops")


def _say(text: str) -> None:
    print(f"misslink: {text}", file=sys.stderr, flush=True)
