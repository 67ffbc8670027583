"""Implementation of `misslink canary run`."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from misslink.cli.output import (
    check_output_paths,
    interruptible,
    progress_bars,
    redirect_app_stdout,
    strip_control,
)
from misslink.errors import InputError, MisslinkError, known_names

if TYPE_CHECKING:
    from misslink.canary.canary_set import CanarySet
    from misslink.canary.history import CanaryHistory
    from misslink.canary.results import FinishedRun
    from misslink.canary.runner import CanaryObservation
    from misslink.canary.webhook import WebhookTarget
    from misslink.judge.config import JudgeConfig
    from misslink.render.table import Part


def write_trend_page(history: CanaryHistory, name: str, path: Path) -> None:
    """Write the trend page of a series."""
    from misslink.canary.alarms import detect_alarms
    from misslink.canary.trend_page import build_trend_page, render_trend_page
    from misslink.io.atomic import atomic_write

    runs, readings = history.runs(name), history.comparable(name)
    status = detect_alarms(readings, learn=runs[-1]["learn"])
    atomic_write(render_trend_page(build_trend_page(name, runs, readings, status)), path)


def print_report(
    parts: Sequence[Part], document: Mapping[str, Any], *, markdown: Path | None, as_json: bool
) -> None:
    """Write the markdown file if one is named, and print JSON, markdown or tables."""
    from misslink.cli.output import STDOUT, print_json, print_parts
    from misslink.io.atomic import atomic_write
    from misslink.render.table import parts_markdown

    to_stdout = str(markdown) == STDOUT
    if markdown is not None:
        text = parts_markdown(parts)
        print(text, end="") if to_stdout else atomic_write(text, markdown)
    if as_json:
        print_json(document)
    elif not to_stdout:
        print_parts(parts)


_FAIL_ON = ("degraded", "alarm", "never")
_BAD_INPUT, _UNREACHABLE = 2, 3


@dataclass(frozen=True)
class CanaryOptions:
    """The options of ``misslink canary run``; see its ``--help``."""

    app: str
    canaries: Path
    name: str
    history: Path
    k: int
    judge: str
    corpus: str | None
    embedding: str
    timeout_s: float
    deadline_s: float
    concurrency: int
    learn: int
    accept_change: bool
    fail_on: str
    webhook: str | None
    webhook_secret_env: str | None
    markdown: Path | None
    html: Path | None
    id_key: str | None
    input_key: str | None
    cache: Path | None
    terms: JudgeConfig


def execute_run(options: CanaryOptions, *, as_json: bool) -> None:
    """Run the canaries; raise typer.Exit with the command's exit code.

    Raises
    ------
    InputError
        An option is wrong, or the history cannot take the run, which is then saved beside it.
    JudgeUnreachableError
        Before any canary was sent.
    """
    from misslink.canary.canary_set import read_canaries
    from misslink.canary.history import CanaryHistory
    from misslink.canary.webhook import webhook_from_options
    from misslink.io.sqlite import SqliteLockedError

    _check_options(options, as_json=as_json)
    target = webhook_from_options(options.webhook, options.webhook_secret_env)
    canaries = read_canaries(options.canaries)
    try:  # before the app is called
        with CanaryHistory(options.history):
            pass
    except SqliteLockedError:
        print("misslink: another program has locked the history; the run begins", file=sys.stderr)
    with interruptible("this run was not saved; the same command starts it again"):
        observation, finished = _observe(options, canaries, notify=target is not None)
    try:
        code = _record_and_notify(options, observation, finished, target, as_json=as_json)
    except MisslinkError as error:
        if not observation.hung:
            raise
        _print_error(str(error))
        code = error.exit_code
    if observation.hung:  # Python would wait for the call that still hangs
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)
    if code:
        raise typer.Exit(code)


def _check_options(options: CanaryOptions, *, as_json: bool) -> None:
    if options.fail_on not in _FAIL_ON:
        raise InputError(f"--fail-on {options.fail_on}: {known_names(options.fail_on, _FAIL_ON)}")
    for option, value in (
        ("--app-timeout", options.timeout_s),
        ("--run-timeout", options.deadline_s),
    ):
        if not 0 < value < float("inf"):
            raise InputError(f"{option} is {value:g}; it must be more than 0 seconds")
    if not options.name.strip():
        raise InputError("--name is empty. Name the series.")
    check_output_paths({"--markdown": options.markdown, "--html": options.html}, as_json=as_json)
    outputs = {path.resolve() for path in (options.markdown, options.html) if path is not None}
    if outputs & {options.canaries.resolve(), options.history.resolve()}:
        raise InputError(
            "--markdown or --html names the canary set or the history. Name another file."
        )


def _observe(
    options: CanaryOptions, canaries: CanarySet, *, notify: bool
) -> tuple[CanaryObservation, FinishedRun]:
    """Open judge, corpus, embedding and app, and run the canaries."""
    import asyncio

    from misslink.canary.results import FinishedRun
    from misslink.canary.runner import CanaryRequest, run_canaries
    from misslink.capture import load_app
    from misslink.io.corpus import read_corpus
    from misslink.io.manifest import display_path, hash_app_code, hash_content
    from misslink.io.storage import redact_url
    from misslink.judge.middleware.cache import DEFAULT_CACHE
    from misslink.judge.prompts import Prompts
    from misslink.judge.session import open_judge
    from misslink.pipeline.diagnosis import open_named_embedder

    judge = open_judge(
        options.judge,
        cache=options.cache or DEFAULT_CACHE,
        concurrency=options.concurrency,
        terms=options.terms,
    )
    if judge is None:
        canaries.refuse_unjudged()

    async def observe() -> CanaryObservation:
        try:
            if judge:
                await judge.check_reachable()
            return await run_canaries(request, tick)
        finally:
            if judge:
                await judge.close()

    with redirect_app_stdout(), progress_bars() as tick:
        corpus = read_corpus(options.corpus) if options.corpus else None
        embedder = open_named_embedder(options.embedding)
        before = frozenset(sys.modules)
        app = load_app(options.app)
        code = hash_app_code(options.app, before=before)  # of what it loads, not of later imports
        request = CanaryRequest(
            app=app,
            canaries=canaries,
            k=options.k,
            judge=judge,
            corpus=corpus,
            embedder=embedder,
            app_embedding=options.embedding == "app",
            timeout_s=options.timeout_s,
            deadline_s=options.deadline_s,
            concurrency=options.concurrency,
            id_key=options.id_key,
            input_key=options.input_key,
            prompts=Prompts.from_spec(options.terms.prompts),
        )
        try:
            observation = asyncio.run(observe())
        finally:
            if embedder is not None:
                embedder.close()
    judged = [judge.name, dict(judge.identity)] if judge else None
    key = [canaries.digest, options.k, judged, options.embedding]
    return observation, FinishedRun(
        name=options.name,
        at=observation.at,
        key=hash_content(key)[:16],
        settings={
            "app": display_path(options.app),
            "canary_set": display_path(redact_url(options.canaries)),
            "k": options.k,
            "judge": judge.name if judge else "none",
            "relevance": observation.basis,
        },
        results=observation.results,
        fingerprint=observation.fingerprint,
        corpus_known=observation.corpus_known,
        code=code,
        accept=options.accept_change,
        notify=notify,
        learn=options.learn,
        notes=observation.notes,
    )


def _record_and_notify(
    options: CanaryOptions,
    observation: CanaryObservation,
    finished: FinishedRun,
    target: WebhookTarget | None,
    *,
    as_json: bool,
) -> int:
    """Record the run, notify its webhook, write and print; return the exit code."""
    from misslink.canary.history import CanaryHistory
    from misslink.canary.results import save_pending_run
    from misslink.canary.summary import run_parts
    from misslink.canary.webhook import notify
    from misslink.io.sqlite import SqliteLockedError

    try:
        with CanaryHistory(options.history) as history:
            recorded = history.enter(finished)
            document = {**recorded.document, "delivered": notify(history, options.name, target)}
            if options.html is not None:
                write_trend_page(history, options.name, options.html)
    except SqliteLockedError:
        pending = save_pending_run(finished, options.history)
        raise InputError(
            f"another program has locked the history; this run is saved in {pending.name} beside "
            "it, and the next run enters it",
            path=options.history,
        ) from None
    if recorded.taken_in:
        _print_error(f"{recorded.taken_in} runs saved beside the history were entered")
    results = [asdict(result) for result in observation.results]
    print_report(
        list(run_parts(document, observation.results)),
        {**document, "results": results},
        markdown=options.markdown,
        as_json=as_json,
    )
    return _exit_code(options, observation, document)


def _exit_code(
    options: CanaryOptions, observation: CanaryObservation, document: dict[str, Any]
) -> int:
    delivered = document["delivered"]
    if delivered is not None and not delivered["ok"]:
        parts = []
        if refused := delivered["refused"]:
            verb = "is" if refused == 1 else "are"
            parts.append(f"{refused} {verb} refused for good and saved as failed")
        if delivered["waiting"]:
            parts.append(f"the next run tries {delivered['waiting']} again")
        _print_error(f"not all news arrived ({delivered['error']}): {'; '.join(parts)}")
    if not any(result.answered for result in observation.results):
        reason = observation.results[0].reason
        _print_error(f"the app answered no canary; of the first: {reason}")
        return _UNREACHABLE
    if document["health"]["value"] is None:
        _print_error(document["health"]["reason"])
        return _BAD_INPUT
    failed = document["status"] == "alarm" or (
        options.fail_on == "degraded" and document["degraded"]
    )
    if failed and options.fail_on != "never":
        return 1
    if observation.judge_problem:
        _print_error(observation.judge_problem)
        return _UNREACHABLE
    return 0


def _print_error(text: str) -> None:
    print(strip_control(f"misslink: {text}"), file=sys.stderr)
