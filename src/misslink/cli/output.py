"""Print JSON, tables and progress, and check output paths."""

from __future__ import annotations

import glob
import json
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from misslink.errors import InputError
from misslink.io.storage import require_local_path
from misslink.timeouts import awaits_paid_replies

if TYPE_CHECKING:
    from rich.console import Console

    from misslink.judge.checks.dry_run import JudgingForecast
    from misslink.pipeline.config import Progress
    from misslink.render.table import Part, TextTable
    from misslink.types import Estimate


DocumentT = TypeVar("DocumentT", bound=Mapping[str, Any])
ResultT = TypeVar("ResultT")
STDOUT = "-"
_RESUME_HINT = "the same command resumes"
_GRACE_S = 3.0  # until a process that hangs is ended
_POLL_S = 0.1
_WAITING = "misslink: waiting for judge calls in flight; Ctrl-C again ends the run without them"
_INTERRUPTED = 130  # what shells report for Ctrl-C
_SIGNALS = [getattr(signal, n) for n in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, n)]
_STAGES = {
    "reading": "Reading the run",
    "app": "Calling the app",
    "level 1": "Computing rank metrics",
    "judge": "Judging",
    "link": "Linking",
    "replaying": "Replaying",
    "options": "Trying options",
}
_WIDEST = 100  # columns; longer lines are hard to read
_TIED = "\N{NO-BREAK SPACE}"
_INTERVAL = re.compile(r"\[[^][]{1,40}\]")
_COMMAND = re.compile(r"(?<=  )(?:misslink |pip |--).*?(?=  |$)")  # set off by two blanks
_UNIT = r"points|times"
# Blanks inside of "62% [51, 72], n = 87" and "p < 0.001".
_WITHIN = re.compile(
    rf"(?<=\d) (?={_UNIT})|(?<=[\d%]) (?=\[)|(?<=points) (?=\[)|(?<=point) (?=\[)|(?<=times) (?=\[)"
    r"|(?<=\b[np]) (?=[=<])|(?<=[=<]) (?=\d)"
)
_TELLING_S = 2.0  # a rate and a clock say nothing about a stage that takes less
# Of misslink's own words, what old encodings lack.
_PLAINER = str.maketrans(
    {"\u2212": "-", "\u2026": "...", "\u201c": '"', "\u201d": '"', "\u2019": "'", "\xa0": " "}
)


def strip_control(text: str) -> str:
    r"""Return a text without control characters, which an app or a gold set may contain.

    Line breaks become blanks.

    >>> strip_control("red \x1b[31m and\nnext")
    'red [31m and next'
    """
    return "".join(c if c.isprintable() else " " * c.isspace() for c in text)


def print_line(
    text: str, style: str | None = None, *, indent: str = "", stderr: bool = False
) -> None:
    """Print a text without markup and escape sequences, on a terminal wrapped at words.

    `indent` starts every further line. On stderr it goes above a progress bar.
    """
    from rich.console import Console

    console = Console(stderr=stderr)
    safe = encodable(strip_control(text), console.encoding)
    wrapped = "\n".join(wrap_text(safe, text_width(console), indent))
    if stderr:  # at once, to what a progress bar takes over; a console would write into the bar
        sys.stderr.write(f"{wrapped}\n")
    else:
        console.print(wrapped, style=style, markup=False, highlight=False, soft_wrap=True)


def print_lines(lines: Iterable[str]) -> None:
    """Print each line as `print_line` does."""
    for line in lines:
        print_line(line)


def text_width(console: Console) -> int:
    """Columns that texts are wrapped at: of the terminal, else of COLUMNS, else all; logs by line."""
    shown = console.is_terminal or ("COLUMNS" in os.environ and not console.stderr)
    return min(console.width, _WIDEST) if shown else sys.maxsize


def wrap_text(text: str, width: int, indent: str = "") -> Iterator[str]:
    """Break a text into lines of `width` columns, but not inside numbers, intervals and commands.

    Further lines start as the text does, with `indent` added.

    >>> list(wrap_text("a miss: 62% [51, 72] of 9", 14))
    ['a miss:', '62% [51, 72]', 'of 9']
    >>> list(wrap_text("  Next:  misslink demo --out here", 14))
    ['  Next:', '  misslink demo --out here']
    """
    from rich.cells import cell_len

    def tie(found: re.Match[str]) -> str:
        return found[0].replace(" ", _TIED)

    tied = _WITHIN.sub(_TIED, _COMMAND.sub(tie, _INTERVAL.sub(tie, text)))
    indent = " " * (len(text) - len(text.lstrip(" "))) + indent
    line = ""
    for gap, word in re.findall(r"( *)([^ ]+)", tied):
        if line.strip() and cell_len(line) + len(gap) + cell_len(word) > width:
            yield line.replace(_TIED, " ")
            line = indent + word
        else:
            line += gap + word
    yield line.replace(_TIED, " ")


def first_few(lines: Sequence[str], most: int, rest: str) -> list[str]:
    """The first lines, and how many are left out.

    >>> first_few(["a", "b", "c"], 1, "and {} more")
    ['a', 'and 2 more']
    """
    left = len(lines) - most
    return [*lines[:most], *([rest.format(left)] if left > 0 else [])]


def print_table(table: TextTable, *, spaced: bool = False) -> bool:
    """Print a table unless it has no rows; return whether it has. `spaced`: rows of several lines.

    Text is wrapped between words, numbers never.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    if not table.rows:
        return False
    console = Console()

    def cell(text: str) -> Text:
        return Text(encodable(strip_control(text), console.encoding))

    shown = Table(
        title=cell(table.title) if table.title else None,
        title_justify="left",
        header_style="bold",
        box=None,  # narrow, and the same in every encoding
        pad_edge=False,
        padding=(0, 2, 0, 0),
    )
    for name in table.columns:
        right = name in table.numbers
        shown.add_column(
            cell(name), overflow="fold", justify="right" if right else "left", no_wrap=right
        )
    for row in table.rows:
        shown.add_row(*map(cell, row))
        if spaced:
            shown.add_row()
    console.print(shown)
    return True


def print_report(
    parts: Sequence[Part], document: Mapping[str, Any], *, markdown: Path | None, as_json: bool
) -> None:
    """Print a report as JSON or text; with a path also write it as markdown, ``-`` prints that."""
    from misslink.io.atomic import atomic_write
    from misslink.render.table import TextTable, parts_markdown

    to_stdout = str(markdown) == STDOUT
    if markdown is not None:
        text = parts_markdown(parts)
        print(text, end="") if to_stdout else atomic_write(text, markdown)
    if as_json:
        print_json(document)
    for kind, part in () if as_json or to_stdout else parts:
        if isinstance(part, TextTable):
            print_table(part)
        elif kind not in ("title", "heading"):  # headings are left to the titles of tables
            text = f"note: {part}" if kind == "note" else part
            print_line(text, "bold" if kind == "strong" else None)


def encodable(text: str, encoding: str) -> str:
    r"""Return a text as a terminal of this encoding can show it.

    >>> encodable("\u22125 points \u2026", "ascii"), encodable("\u22125 points", "utf-8")
    ('-5 points ...', '\u22125 points')
    """
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_PLAINER).encode(encoding, "replace").decode(encoding)
    return text


def print_json(document: Mapping[str, Any]) -> None:
    """Print one JSON document to stdout."""
    plain = not (sys.stdout.encoding or "").lower().startswith("utf")
    print(json.dumps(document, indent=2, ensure_ascii=plain, allow_nan=False))


def print_result(
    document: DocumentT, print_text: Callable[[DocumentT], object], *, as_json: bool
) -> None:
    """Print a command's result: as one JSON document, else by `print_text`."""
    print_json(document) if as_json else print_text(document)


@contextmanager
def redirect_app_stdout() -> Iterator[None]:
    """Send everything that the app under test prints to stderr."""
    sys.stdout.flush()
    saved = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        sys.stdout.flush()
        os.dup2(saved, 1)
        os.close(saved)


@contextmanager
def interruptible(hint: str = _RESUME_HINT) -> Iterator[None]:
    """On Ctrl-C, SIGTERM and SIGHUP report that finished work is saved, and how to resume.

    The process ends in a few seconds, also if the app hangs where nothing interrupts it. Only a judge
    that waits for replies in flight, which are paid for, takes longer.
    """
    message = f"misslink: interrupted; finished work is saved, and {hint}"
    code = _INTERRUPTED

    def interrupt(number: int, _: object) -> None:
        nonlocal code
        code = 128 + number  # as shells report it

        def give_up() -> None:
            start, announced = time.monotonic(), False
            while time.monotonic() - start < _GRACE_S:
                if awaits_paid_replies():
                    start = time.monotonic()  # anew, so that the last reply is saved, too
                    if not announced:
                        print(_WAITING, file=sys.stderr, flush=True)
                    announced = True
                time.sleep(_POLL_S)
            print(message, file=sys.stderr, flush=True)
            os._exit(code)

        for one in before:
            signal.signal(one, signal.default_int_handler)
        threading.Thread(target=give_up, daemon=True).start()
        raise KeyboardInterrupt  # run_async cancels its work, so that replies in flight are saved

    in_main = threading.current_thread() is threading.main_thread()
    # nohup has SIGHUP ignored. A shell ignores SIGINT for what it starts in the background.
    caught = [
        one
        for one in _SIGNALS
        if one is signal.SIGINT or signal.getsignal(one) is not signal.SIG_IGN
    ]
    before = {one: signal.signal(one, interrupt) for one in caught if in_main}
    try:
        yield
    except KeyboardInterrupt:
        print(message, file=sys.stderr)
        raise typer.Exit(code) from None
    finally:
        for one, handler in before.items():
            signal.signal(one, handler or signal.SIG_DFL)


def end_despite_hung_threads(code: int) -> None:
    """End the process if Python still waits for threads in a few seconds: an app may hang in one."""

    def end() -> None:
        if getattr(threading, "_SHUTTING_DOWN", False):
            os._exit(code)

    if threading.active_count() > 1:
        timer = threading.Timer(_GRACE_S, end)
        timer.daemon = True
        timer.start()


@contextmanager
def progress_bars() -> Iterator[Progress]:
    """Show the count of each stage on stderr, and its pace if it takes long; needs a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn
    from rich.text import Text

    class Pace(ProgressColumn):
        """Pace and time left, at the end the time taken; nothing before they say something."""

        def render(self, task: Any) -> Text:
            return Text(_format_pace(task.completed, task.total, task.finished, task.elapsed or 0))

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        Pace(),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not console.is_terminal) as bars:
        tasks: dict[str, Any] = {}

        def tick(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(_STAGES.get(stage, stage), total=total)
            bars.update(tasks[stage], completed=done, total=total)

        yield tick


def _format_pace(done: float, total: float, finished: bool, elapsed: float) -> str:
    """The pace of a stage and its time left, or the time that it took.

    >>> _format_pace(3, 10, False, 0.5), _format_pace(3, 10, False, 30), _format_pace(9, 9, True, 75)
    ('', '6/min, 1:10 left', 'took 1:15')
    """
    if elapsed < _TELLING_S or not done:
        return ""
    if finished:
        return f"took {_format_clock(elapsed)}"
    pace = done / elapsed
    rate = f"{pace:,.0f}/s" if pace >= 1 else f"{60 * pace:.0f}/min"
    return f"{rate}, {_format_clock((total - done) / pace)} left"


def _format_clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def run_with_progress(work: Callable[..., ResultT], hint: str = _RESUME_HINT) -> ResultT:
    """Run ``work(progress=...)`` with progress on stderr; after Ctrl-C print how to resume."""
    with interruptible(hint), redirect_app_stdout(), progress_bars() as progress:
        return work(progress=progress)


def print_forecast(forecast: JudgingForecast) -> None:
    """Print the judge calls and the cost of a run, without making any call."""
    from misslink.render.format import as_sentence, format_cost, pluralize

    batch, known_cost = forecast.batch, forecast.cost is not None
    live = " live" if batch is not None and known_cost else ""
    cost = ""
    if forecast.cost is not None:
        cost = f", at a cost of about {format_cost(forecast.cost)}{live}"
    elif forecast.prompt_tokens:
        cost = " (price-in and price-out show the cost)"
    print_line(
        f"The judge would be asked {pluralize(forecast.calls, 'question')} (the cache answers "
        f"{forecast.from_cache:,} more): about {forecast.prompt_tokens:,} prompt tokens and "
        f"{forecast.completion_tokens:,} completion tokens{cost}.",
    )
    print_line(as_sentence(forecast.basis))
    if batch is not None and not batch.questions:
        live = (
            "; the only question is sent live, as a probe of the server" if forecast.calls else ""
        )
        print_line(f"In batches: no questions{live}.")
    elif batch is not None:
        pending = f"; {batch.submitted} of them are already submitted" if batch.submitted else ""
        price = f"{100 * batch.price:.4g}% of the price"
        if batch.cost is None or batch.saving is None:
            money = f"a token costs {price}; price_in and price_out show the saving"
        else:
            money = f"at {price} all cost about {format_cost(batch.cost)}, which saves {format_cost(batch.saving)}"
        print_line(
            f"In batches: {pluralize(batch.questions, 'question')}{pending}, in "
            f"{pluralize(batch.batches, 'batch', 'batches')} or more, files of about "
            f"{batch.bytes / 1e6:.3g} MB; {money}.",
        )
    print_line("No judge call was made.")


def format_estimate(
    estimate: Estimate | Mapping[str, Any],
    name: str = "share",
    *,
    as_decimal: bool = False,
) -> str:
    """An estimate in the unit of the metric `name`; `as_decimal` for coefficients such as kappa.

    >>> found = {"value": 0.62, "low": 0.51, "high": 0.72, "n": 87, "method": "wilson"}
    >>> format_estimate(found), format_estimate(found, "mrr")
    ('62% [51, 72]', '0.62 [0.51, 0.72]')
    >>> format_estimate({**found, "value": 0.0, "low": None, "high": None, "reason": "few"})
    '0%, n = 87'
    """
    from misslink.render.format import format_decimal_estimate
    from misslink.render.format import format_estimate as format_metric_estimate
    from misslink.types import Estimate

    formatter = format_decimal_estimate if as_decimal else format_metric_estimate
    text = formatter(name, Estimate.model_validate(estimate))
    return text.brief if text.interval or not text.measured else text.text


def check_output_paths(
    outputs: Mapping[str, Path | None], inputs: Iterable[Path | None] = (), *, as_json: bool = False
) -> None:
    """Raise InputError for outputs that cannot be written, or that would replace another file.

    Parameters
    ----------
    outputs : mapping of str to Path or None
        By flag, such as ``--out``; the path ``-`` is stdout.
    inputs : iterable of Path or None
        Files, folders (with their content) and patterns; --overwrite does not apply to these.
    as_json : bool
        Whether the JSON document is printed to stdout.
    """
    read = {file.resolve() for path in inputs if path is not None for file in matching_paths(path)}
    options: dict[Path, str] = {}
    for flag, path in outputs.items():
        if path is None or str(path) == STDOUT:
            if path is not None and as_json:
                raise InputError(f"--json and {flag} - both print to stdout; write one into a file")
            continue
        _check_writable(path, flag)
        target = path.resolve()
        problem = ""
        if target in read or (target.exists() and read.intersection(target.parents)):
            problem = "This is an input"
        elif is_part_of_run(path):
            problem = "This is a part of a run"
        if problem:
            raise InputError(f"{problem}. Name another file with {flag}.", path=path)
        if target in options:
            message = f"{options[target]} and {flag} name the same file. Name two files."
            raise InputError(message, path=path)
        options[target] = flag


def _check_writable(path: Path, option: str) -> None:
    require_local_path(path)
    folder = path.resolve().parent
    if path.is_dir():
        problem = "this is a folder"
    elif not folder.is_dir():
        problem = "its folder does not exist"
    elif not os.access(folder, os.W_OK | os.X_OK):
        problem = "its folder cannot be written"
    elif path.exists() and not os.access(path, os.W_OK):
        problem = "it cannot be written"
    else:
        return
    raise InputError(f"{problem}; name another file with {option}", path=path)


def matching_paths(path: Path) -> Iterable[Path]:
    """The files and folders of a path, which may be a pattern."""
    matches = [] if path.exists() else glob.glob(str(path), recursive=True)  # noqa: PTH207
    return [path, *map(Path, matches)]


def is_part_of_run(path: Path) -> bool:
    """Whether a file is, or would be, one of the files of a run folder, reports included."""
    from misslink.io.run_folder import run_files

    resolved = path.resolve()
    # Some disks ignore case. Replayed generations are paid for, though no run needs them.
    named = resolved.name.casefold() in run_files() | {"replays.jsonl"}
    return named and (resolved.parent / "manifest.json").is_file()
