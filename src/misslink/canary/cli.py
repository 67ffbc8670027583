"""The `misslink canary` commands."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from misslink.cli import options, output
from misslink.errors import InputError, MisslinkError, known_names
from misslink.event_loops import run_async
from misslink.io.atomic import atomic_write, lock_file

if TYPE_CHECKING:
    from misslink.canary.history import CanaryHistory
    from misslink.canary.results import CanaryObservation, FinishedRun
    from misslink.canary.runner import CanaryRequest
    from misslink.canary.webhook import WebhookTarget

NAME_OPTION: Any = typer.Option("main", "--name", help="Name of the series of runs.")
HISTORY_OPTION: Any = typer.Option(
    Path(".misslink/canary.sqlite"), "--history", help="SQLite file of the runs."
)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_INTERVAL = re.compile(r"(\d+(?:\.\d+)?)\s*([smhd])")


def parse_interval(interval: str) -> float:
    """An interval in seconds.

    Parameters
    ----------
    interval : str
        A number with s, m, h or d, at least one second.

    Raises
    ------
    InputError
        It is none.

    Examples
    --------
    >>> parse_interval("90s"), parse_interval("1.5h")
    (90.0, 5400.0)
    """
    match = _INTERVAL.fullmatch(interval.strip().lower())
    seconds = float(match[1]) * _SECONDS[match[2]] if match else 0.0
    if not 1 <= seconds < math.inf:
        raise InputError(f"'{interval}' is not an interval. Write for example  30m,  1h  or  1d")
    return seconds


def repeat_runs(
    once: Callable[[], None],
    every_s: float,
    *,
    clock: Any,
    announce: Callable[[float], None],
    times: int | None = None,
) -> None:
    """Run at once, and then at every whole interval from the first beginning.

    A run that takes longer than the interval is not made up for: the next one begins at the next
    whole interval.

    Parameters
    ----------
    once : callable
        One run; what it raises ends all of them.
    every_s : float
        Seconds from one beginning to the next, more than 0.
    clock : module or object
        Has `time` and `sleep` of the module `time`.
    announce : callable
        Told when the next run begins, in Unix seconds.
    times : int or None
        How many runs. None: without end.
    """
    began, done = clock.time(), 0
    while True:
        once()
        done += 1
        if times is not None and done >= times:
            return
        passed = math.floor(max(0.0, clock.time() - began) / every_s) + 1
        next_start = began + passed * every_s
        announce(next_start)
        # A machine that slept wakes late, and a clock may be set.
        while (wait_s := next_start - clock.time()) > 0:
            clock.sleep(min(wait_s, every_s))


@contextmanager
def lock_series(history: Path, name: str) -> Iterator[None]:
    """Lock a series until this process ends; raise InputError if another process watches it."""
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    path = history.with_name(f"{history.name}.{digest}.watch")
    problem = f"Another process already watches '{name}'. Stop it, or use another --name."
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = lock_file(path, problem, shown_path=history)
    except OSError as error:
        raise InputError(
            f"Cannot write the file: {error.strerror}. Choose another --history.", path=path
        ) from None
    try:
        yield
    finally:
        lock.release()


_COMMAND = (sys.executable, "-c", "from misslink.cli.main import main; main()")
_FAIL_ON = ("degraded", "alarm", "never")
_BAD_INPUT, _UNREACHABLE, _INTERRUPTED = 2, 3, 130
_GRACE_S = 120.0  # beyond the run's own deadline: to start, to judge, to tell its webhook
_EXIT_WAIT_S = 10.0  # for a run that was interrupted
_EXIT_TEXTS = {
    0: "fine",
    1: "an alarm is open",
    2: "bad input",
    3: "the app or judge is unreachable",
}


def watch(
    context: typer.Context,
    every: str = typer.Option(..., "--every", help="Interval between runs, such as 30m, 1h or 1d."),
    runs: int | None = typer.Option(
        None, "--runs", min=1, help="Number of runs, then stop.", show_default="until interrupted"
    ),
    name: str = NAME_OPTION,
    history: Path = HISTORY_OPTION,
    as_json: bool = options.JSON_OPTION,
) -> None:
    """Run canaries at an interval until interrupted: APP and all options of canary run.

    With --json each run is one JSON document on one line. Ctrl-C between two runs ends it with 0,
    within a run with 130; with --runs it ends as the last run did.
    """
    import time

    arguments = [*context.args, "--name", name, "--history", str(history)]
    seconds = parse_interval(every)
    group: Any = context.parent and context.parent.command
    command = group.commands["run"]  # which checks its options now
    given = command.make_context("misslink canary run", list(arguments)).params
    limit_s = float(given["deadline"] + 3 * given["timeout"] + _GRACE_S)
    series = _RunSeries(arguments, limit_s, as_json=as_json)
    with lock_series(history, name):
        try:
            repeat_runs(series.once, seconds, clock=time, announce=_announce_next, times=runs)
        except KeyboardInterrupt:
            _print_progress("stopped; every finished run is saved")
            raise typer.Exit(_INTERRUPTED if series.is_running else 0) from None
    raise typer.Exit(series.code)


@dataclass
class _RunSeries:
    """Runs in separate processes, and how the last one ended."""

    arguments: list[str]
    limit_s: float
    as_json: bool
    code: int = 0
    done: int = 0
    is_running: bool = False

    def once(self) -> None:
        """Run once; an error ends the series only where the first run finds the input wrong."""
        self.is_running = True
        command = [*_COMMAND, "canary", "run", *self.arguments]
        out = subprocess.PIPE if self.as_json else None
        with subprocess.Popen(  # noqa: S603 (this program itself)
            [*command, "--json"] if self.as_json else command, stdout=out, text=True
        ) as process:
            try:
                printed, _ = process.communicate(timeout=self.limit_s)
            except subprocess.TimeoutExpired:
                process.kill()
                printed, _ = process.communicate()
                _print_progress(f"this run did not end in {self.limit_s:g} seconds and was ended")
            except KeyboardInterrupt:
                try:  # it was interrupted, too
                    process.wait(timeout=_EXIT_WAIT_S)
                except subprocess.TimeoutExpired:
                    process.kill()
                raise
        self.is_running = False
        self.code, self.done = process.returncode, self.done + 1
        if self.code == _INTERRUPTED:
            self.is_running = True
            raise KeyboardInterrupt
        if self.as_json:
            with suppress(ValueError):  # of a run that was cut off: no document, or half of one
                print(json.dumps(json.loads(printed or "")), flush=True)
        if self.code == _BAD_INPUT and self.done == 1:
            raise typer.Exit(_BAD_INPUT)
        if self.code:
            _print_progress(
                f"this run ended with {self.code} ({_EXIT_TEXTS.get(self.code, 'it broke off')})"
            )


def _announce_next(start: float) -> None:
    import datetime as dt

    when = dt.datetime.fromtimestamp(start).astimezone()
    _print_progress(f"the next run begins at {when:%Y-%m-%d %H:%M:%S}; Ctrl-C stops")


def _print_progress(text: str) -> None:
    output.print_line(f"misslink: {text}", stderr=True)


app = typer.Typer(
    help="Watch a live app with canary questions, and raise alarms on change.", no_args_is_help=True
)


@app.command("run")
@options.with_judge_options(*options.CHECK_OPTIONS)
def run(
    target: str = typer.Argument(
        ...,
        metavar="APP",
        help="The app or retriever: package.module:name or path/to/file.py:name.",
        show_default=False,
    ),
    canaries: Path = typer.Option(
        ..., "--canaries", help="Canary set: JSON Lines, a JSON array or YAML."
    ),
    name: str = NAME_OPTION,
    history: Path = HISTORY_OPTION,
    k: int = typer.Option(5, "--k", min=1, help="Cutoff: number of first passages that count."),
    judge: str = typer.Option(
        "none",
        "--judge",
        envvar="MISSLINK_JUDGE",
        help="Judge of the answers: heuristic, openai:MODEL or none.",
    ),
    corpus: str | None = options.field_option(
        "corpus", show_default="what the app's own store lists"
    ),
    embedding: str = typer.Option(
        "app", "--embedding", help="Embedding: app, minilm, PROVIDER:MODEL, FILE.py:NAME, none."
    ),
    timeout: float = typer.Option(
        30.0, "--app-timeout", help="Seconds the app may take for a case."
    ),
    deadline: float = typer.Option(600.0, "--run-timeout", help="Seconds for the whole run."),
    concurrency: int = typer.Option(4, "--concurrency", min=1, help="Cases in flight at once."),
    learn: int = typer.Option(
        20, "--learn", min=10, help="Number of runs that define the normal state."
    ),
    accept_change: bool = typer.Option(
        False, "--accept-change", help="Accept the current state as the new normal."
    ),
    fail_on: str = typer.Option(
        "alarm",
        "--fail-on",
        help="Exit with 1 on: degraded (a canary is unhealthy), alarm, or never.",
    ),
    webhook: str | None = typer.Option(
        None, "--webhook", help="URL that receives alarms and recoveries as JSON."
    ),
    webhook_secret_env: str | None = typer.Option(
        None, "--webhook-secret-env", help="Environment variable with the secret that signs it."
    ),
    markdown: Path | None = options.MARKDOWN_OPTION,
    html: Path | None = options.HTML_OPTION,
    id_key: str | None = options.field_option("id_key"),
    input_key: str | None = options.field_option("input_key"),
    cache: Path | None = options.CACHE_OPTION,
    *,
    given: options.JudgeOptions,
    as_json: bool = options.JSON_OPTION,
) -> None:
    """Run every canary once, record the results, and check whether the app got worse.

    Exit codes: 0 fine, 1 an alarm is open, 2 bad input, 3 the app answered nothing or the judge
    cannot be reached.
    """
    from misslink.canary.canary_set import read_canaries
    from misslink.canary.history import CanaryHistory
    from misslink.canary.report import run_parts
    from misslink.canary.results import FinishedRun
    from misslink.canary.runner import CanaryRequest
    from misslink.canary.webhook import webhook_from_options
    from misslink.capture import load_app
    from misslink.io.corpus import read_corpus
    from misslink.io.manifest import display_path, hash_app_code, hash_content
    from misslink.io.sqlite import SqliteLockedError
    from misslink.io.storage import redact_url
    from misslink.judge.config import DEFAULT_CACHE, JudgeConfig
    from misslink.judge.prompts import Prompts
    from misslink.judge.session import open_judge
    from misslink.pipeline.context import open_named_embedder

    if fail_on not in _FAIL_ON:
        raise InputError(f"--fail-on {fail_on}: {known_names(fail_on, _FAIL_ON)}")
    for option, value in (("--app-timeout", timeout), ("--run-timeout", deadline)):
        if not 0 < value < float("inf"):
            raise InputError(f"{option} is {value:g}; it must be more than 0 seconds")
    if not name.strip():
        raise InputError("--name is empty. Name the series.")
    outputs = {"--markdown": markdown, "--html": html}
    output.check_output_paths(outputs, [canaries, history], as_json=as_json)
    terms = JudgeConfig(**{**given, "deadline": deadline})
    hook = webhook_from_options(webhook, webhook_secret_env)
    canary_set = read_canaries(canaries)
    try:  # before the app is called
        with CanaryHistory(history):
            pass
    except SqliteLockedError:
        _print_progress("another program has locked the history; the run begins")
    with output.interruptible("this run was not saved; the same command starts it again"):
        session = open_judge(
            judge, cache=cache or DEFAULT_CACHE, concurrency=concurrency, terms=terms
        )
        if session is None:
            canary_set.refuse_unjudged()
        with output.redirect_app_stdout(), output.progress_bars() as tick:
            passages = read_corpus(corpus) if corpus else None
            embedder = open_named_embedder(embedding)
            before = frozenset(sys.modules)
            loaded = load_app(target)
            code = hash_app_code(target, before=before)  # of what it loads, not later imports
            request = CanaryRequest(
                app=loaded,
                canaries=canary_set,
                k=k,
                judge=session,
                corpus=passages,
                embedder=embedder,
                app_embedding=embedding == "app",
                timeout_s=timeout,
                deadline_s=deadline,
                concurrency=concurrency,
                id_key=id_key,
                input_key=input_key,
                prompts=Prompts.from_spec(terms.prompts),
            )
            observation = run_async(lambda: _observe(request, tick))
    finished = FinishedRun(
        **vars(observation),
        name=name,
        key=hash_content(
            [
                canary_set.digest,
                k,
                [session.name, dict(session.identity)] if session else None,
                embedding,
            ]
        )[:16],
        settings={
            "app": display_path(target),
            "canary_set": display_path(redact_url(canaries)),
            "k": k,
            "judge": session.name if session else "none",
            "relevance": observation.basis,
        },
        code=code,
        accept=accept_change,
        notify=hook is not None,
        learn=learn,
    )
    try:
        document = _record_and_notify(finished, history, hook, html)
        output.print_report(
            list(run_parts(document, finished.results)),
            {**document, "results": [asdict(result) for result in finished.results]},
            markdown=markdown,
            as_json=as_json,
        )
        exit_code = _exit_code(finished, document, fail_on)
    except MisslinkError as error:
        if not finished.hung:
            raise
        _print_progress(str(error))
        exit_code = error.exit_code
    if finished.hung:  # Python would wait for the call that still hangs
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(exit_code)
    if exit_code:
        raise typer.Exit(exit_code)


async def _observe(
    request: CanaryRequest, tick: Callable[[str, int, int], None]
) -> CanaryObservation:
    """Run the canaries if their judge can be reached, and close judge and embedding."""
    from misslink.canary.runner import run_canaries

    try:
        if request.judge:
            await request.judge.check_reachable()
        return await run_canaries(request, tick)
    finally:
        if request.judge:
            await request.judge.close()
        if request.embedder:
            request.embedder.close()


def _record_and_notify(
    finished: FinishedRun, path: Path, target: WebhookTarget | None, html: Path | None
) -> dict[str, object]:
    """Record the run, notify its webhook and write the page; return the run's document."""
    from misslink.canary.history import CanaryHistory
    from misslink.canary.results import save_pending_run
    from misslink.canary.webhook import notify
    from misslink.io.sqlite import SqliteLockedError

    try:
        with CanaryHistory(path) as history:
            document, entered = history.enter(finished)
            document["delivered"] = notify(history, finished.name, target)
            if html is not None:
                _write_trend_page(history, finished.name, html)
    except SqliteLockedError:
        pending = save_pending_run(finished, path)
        raise InputError(
            f"another program has locked the history; this run is saved in {pending.name} beside "
            "it, and the next run enters it",
            path=path,
        ) from None
    if entered:
        _print_progress(f"{entered} runs saved beside the history were entered")
    return document


def _exit_code(finished: FinishedRun, document: Mapping[str, Any], fail_on: str) -> int:
    delivered = document["delivered"]
    if delivered is not None and not delivered["ok"]:
        parts = []
        if refused := delivered["refused"]:
            verb = "is" if refused == 1 else "are"
            parts.append(f"{refused} {verb} refused for good and saved as failed")
        if delivered["waiting"]:
            parts.append(f"the next run tries {delivered['waiting']} again")
        _print_progress(f"not all news arrived ({delivered['error']}): {'; '.join(parts)}")
    if not any(result.answered for result in finished.results):
        reason = finished.results[0].reason
        _print_progress(f"the app answered no canary; of the first: {reason}")
        return _UNREACHABLE
    if document["health"]["value"] is None:
        _print_progress(document["health"]["reason"])
        return _BAD_INPUT
    failed = document["status"] == "alarm" or (fail_on == "degraded" and document["degraded"])
    if failed and fail_on != "never":
        return 1
    if finished.judge_problem:
        _print_progress(finished.judge_problem)
        return _UNREACHABLE
    return 0


def _write_trend_page(history: CanaryHistory, name: str, path: Path) -> None:
    """Write the trend page of a series."""
    from misslink.canary.alarms import detect_alarms
    from misslink.canary.report import build_trend_page, render_trend_page

    runs, readings = history.runs(name), history.comparable(name)
    status = detect_alarms(readings, learn=runs[-1]["learn"])
    atomic_write(render_trend_page(build_trend_page(name, runs, readings, status)), path)


@app.command("history")
def history_command(
    history: Path = HISTORY_OPTION,
    name: str = NAME_OPTION,
    last: int = typer.Option(20, "--last", min=1, help="Number of latest runs."),
    markdown: Path | None = options.MARKDOWN_OPTION,
    html: Path | None = options.HTML_OPTION,
    as_json: bool = options.JSON_OPTION,
) -> None:
    """Show the runs of a series with their health and alarms, without calling the app."""
    from misslink.canary.alarms import detect_alarms
    from misslink.canary.history import CanaryHistory, alarm_to_json
    from misslink.canary.report import history_parts
    from misslink.io.manifest import display_path

    output.check_output_paths({"--markdown": markdown, "--html": html}, [history], as_json=as_json)
    with CanaryHistory(history, must_exist=True) as file:
        runs = file.runs(name, last)
        if not runs:
            names = file.names()
            hint = known_names(name, names, " series") if names else "it has no runs yet"
            raise InputError(f"There is no series '{name}'; {hint}", path=history)
        status = detect_alarms(file.comparable(name), learn=runs[-1]["learn"])
        document = {
            "name": name,
            "history": display_path(history),
            "status": status.status,
            "reason": status.reason,
            "alarms": [alarm_to_json(alarm) for alarm in status.episodes],
            "waiting": len(file.letters(name)),
            "refused": file.refused(name),
            "runs": list(runs),
        }
        if html is not None:
            _write_trend_page(file, name, html)
    output.print_report(list(history_parts(document)), document, markdown=markdown, as_json=as_json)


app.command(
    "watch",
    options_metavar="APP --canaries FILE --every INTERVAL [OPTIONS OF canary run]",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)(watch)
