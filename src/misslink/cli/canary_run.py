"""One run of canaries for the command line: read, ask, keep, tell, print."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from misslink.cli.canary_input import STDOUT, check_places
from misslink.cli.output import interruptible, own_stdout, plain, print_json, progress_bars
from misslink.errors import InputError, MisslinkError, known_names

if TYPE_CHECKING:
    from misslink.judging.terms import Terms
    from misslink.watching.canaries.canary_set import CanarySet
    from misslink.watching.canaries.finished import Finished
    from misslink.watching.canaries.request import Request, Seen
    from misslink.watching.canaries.telling import Webhook

__all__ = ["Wanted", "run_and_print"]

_FAIL_ON = ("degraded", "alarm", "never")
_BAD_INPUT, _UNREACHABLE = 2, 3


@dataclass(frozen=True)
class Wanted:
    """What a run is asked for on the command line; see ``misslink canary run --help``."""

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
    ledger: Path | None
    terms: Terms


def run_and_print(wanted: Wanted, *, as_json: bool) -> None:
    """Run the canaries; raise typer.Exit with the command's code.

    Raises
    ------
    InputError
        Something given is wrong, or the history cannot take the run, which is then kept beside it.
    JudgeUnreachableError
        Before the app was asked anything.
    """
    from misslink.watching.canaries.canary_set import read_canaries
    from misslink.watching.canaries.telling import webhook

    _check(wanted, as_json=as_json)
    to = webhook(wanted.webhook, wanted.webhook_secret_env)
    canaries = read_canaries(wanted.canaries)
    _check_history(wanted.history)
    with interruptible("nothing of this run was; the same command begins anew"):
        seen, finished = _seen(wanted, canaries, tell=to is not None)
    try:
        code = _kept_and_told(wanted, seen, finished, to, as_json=as_json)
    except MisslinkError as error:
        if not seen.hung:
            raise
        print(plain(f"misslink: {error}"), file=sys.stderr)
        code = error.exit_code
    if seen.hung:
        _leave(code)
    if code:
        raise typer.Exit(code)


def _check(wanted: Wanted, *, as_json: bool) -> None:
    if wanted.fail_on not in _FAIL_ON:
        raise InputError(f"--fail-on {wanted.fail_on}: {known_names(wanted.fail_on, _FAIL_ON)}")
    for option, value in (("--timeout", wanted.timeout_s), ("--deadline", wanted.deadline_s)):
        if not 0 < value < float("inf"):
            raise InputError(f"{option} is {value:g}; it must be more than 0 seconds")
    if not wanted.name.strip():
        raise InputError("--name is empty; call the series something")
    check_places(wanted.markdown, wanted.html, as_json=as_json)
    written = [place for place in (wanted.markdown, wanted.html) if place is not None]
    if {one.resolve() for one in written} & {wanted.canaries.resolve(), wanted.history.resolve()}:
        raise InputError("--markdown or --html names the canary set or the history; give another")


def _check_history(path: Path) -> None:
    """Find out before the app is asked whether the history could take a run."""
    from misslink.watching.canaries.history import History
    from misslink.watching.canaries.history_file import HeldError

    try:
        with History(path):
            pass
    except HeldError:
        print("misslink: the history is held by another program; the run begins", file=sys.stderr)


def _seen(wanted: Wanted, canaries: CanarySet, *, tell: bool) -> tuple[Seen, Finished]:
    """Open everything and ask the app; nothing has been kept yet."""
    import asyncio

    from misslink.capture import load_app
    from misslink.files.corpus import read_corpus
    from misslink.judging.opening import open_judge
    from misslink.judging.wrappers.ledger_file import DEFAULT_LEDGER
    from misslink.manifest import code_hash
    from misslink.pipeline.measuring import named_embedder
    from misslink.prompting import Prompts
    from misslink.watching.canaries.request import Request

    judge = open_judge(
        wanted.judge,
        ledger=wanted.ledger or DEFAULT_LEDGER,
        concurrency=wanted.concurrency,
        terms=wanted.terms,
    )
    if judge is None:
        canaries.refuse_unjudged()
    with own_stdout(), progress_bars() as tick:
        corpus = read_corpus(wanted.corpus) if wanted.corpus else None
        embedder = named_embedder(wanted.embedding)
        before = frozenset(sys.modules)
        app = load_app(wanted.app)
        code = code_hash(wanted.app, before=before)  # of what it loads, not of what came later
        request = Request(
            app=app,
            canaries=canaries,
            k=wanted.k,
            judge=judge,
            corpus=corpus,
            embedder=embedder,
            own_embedding=wanted.embedding == "app",
            timeout_s=wanted.timeout_s,
            deadline_s=wanted.deadline_s,
            concurrency=wanted.concurrency,
            id_key=wanted.id_key,
            input_key=wanted.input_key,
            prompts=Prompts.of(wanted.terms.prompts),
        )
        try:
            seen = asyncio.run(_asked(request, tick))
        finally:
            if embedder is not None:
                embedder.close()
        return seen, _finished(wanted, request, seen, code, tell=tell)


async def _asked(request: Request, tick: Any) -> Seen:
    from misslink.watching.canaries.asking import ask_canaries

    try:
        if request.judge:
            await request.judge.reachable()
        return await ask_canaries(request, tick)
    finally:
        if request.judge:
            await request.judge.close()


def _finished(wanted: Wanted, request: Request, seen: Seen, code: str, *, tell: bool) -> Finished:
    from misslink.files.addresses import shown
    from misslink.manifest import content_hash, shown_path
    from misslink.watching.canaries.finished import Finished

    judge = request.judge
    judged = [judge.name, dict(judge.identity)] if judge else None
    key = [request.canaries.digest, wanted.k, judged, wanted.embedding]
    return Finished(
        name=wanted.name,
        at=seen.at,
        key=content_hash(key)[:16],
        settings={
            "app": shown_path(wanted.app),
            "canary_set": shown_path(shown(wanted.canaries)),
            "k": wanted.k,
            "judge": judge.name if judge else "none",
            "relevance": seen.basis,
        },
        results=seen.results,
        fingerprint=seen.fingerprint,
        corpus_known=seen.corpus_known,
        code=code,
        accept=wanted.accept_change,
        tell=tell,
        learn=wanted.learn,
        notes=seen.notes,
    )


def _kept_and_told(
    wanted: Wanted, seen: Seen, finished: Finished, to: Webhook | None, *, as_json: bool
) -> int:
    """Keep the run, tell its webhook, write and print; return the exit code."""
    from misslink.cli.canary_table import print_run
    from misslink.watching.canaries.finished import keep_beside
    from misslink.watching.canaries.history import History
    from misslink.watching.canaries.history_file import HeldError
    from misslink.watching.canaries.results import plain_result
    from misslink.watching.canaries.telling import tell

    try:
        with History(wanted.history) as history:
            entered = history.enter(finished)
            document = {**entered.document, "delivered": tell(history, wanted.name, to)}
            _write(wanted, history, document)
    except HeldError:
        place = keep_beside(finished, wanted.history)
        raise InputError(
            f"the history is held by another program; this run lies in {place.name} beside it, "
            "and the next run enters it",
            path=wanted.history,
        ) from None
    if entered.taken_in:
        print(f"misslink: {entered.taken_in} runs kept beside were entered", file=sys.stderr)
    if as_json:
        print_json({**document, "results": [plain_result(one) for one in seen.results]})
    elif str(wanted.markdown) != STDOUT:
        print_run(document, seen.results)
    return _code(wanted, seen, document)


def _write(wanted: Wanted, history: Any, document: dict[str, Any]) -> None:
    from misslink.cli.canary_history import write_page
    from misslink.files.whole import put
    from misslink.report.trend_markdown import run_markdown

    if wanted.markdown is not None:
        text = run_markdown(document)
        if str(wanted.markdown) == STDOUT:
            print(text, end="")
        else:
            put(text, wanted.markdown)
    if wanted.html is not None:
        write_page(history, wanted.name, None, wanted.html)


def _code(wanted: Wanted, seen: Seen, document: dict[str, Any]) -> int:
    told = document["delivered"]
    if told is not None and not told["ok"]:
        print(plain(f"misslink: {_untold(told)}"), file=sys.stderr)
    if not any(one.answered for one in seen.results):
        said = plain(seen.results[0].said)
        print(f"misslink: the app answered no canary; of the first: {said}", file=sys.stderr)
        return _UNREACHABLE
    if document["health"]["value"] is None:
        print(plain(f"misslink: {document['health']['reason']}"), file=sys.stderr)
        return _BAD_INPUT
    bad = document["status"] == "alarm" or (wanted.fail_on == "degraded" and document["degraded"])
    if bad and wanted.fail_on != "never":
        return 1
    if seen.judge_problem:
        print(plain(f"misslink: {seen.judge_problem}"), file=sys.stderr)
        return _UNREACHABLE
    return 0


def _untold(told: dict[str, Any]) -> str:
    """What became of the news that did not arrive."""
    parts = []
    if told["refused"]:
        count = told["refused"]
        parts.append(f"{count} {'is' if count == 1 else 'are'} refused for good and kept as failed")
    if told["waiting"]:
        parts.append(f"the next run tries {told['waiting']} again")
    return f"not all news arrived ({told['error']}): {'; '.join(parts)}"


def _leave(code: int) -> NoReturn:
    """End the process although a call of the app still hangs, which Python would wait for."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)
