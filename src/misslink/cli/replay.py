"""misslink replay: does the answer turn good once the app is handed what it missed?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from misslink.cli.options import (
    AS_JSON,
    ASKING,
    BASE_URL,
    CONCURRENCY,
    DEADLINE,
    LEDGER,
    MAX_CALLS,
    MAX_COST,
    MAX_TOKENS,
    PRICE_IN,
    PRICE_OUT,
    PROMPTS,
    RETRIES,
    RPM,
    TEMPERATURE,
    TIMEOUT,
    TPM,
    asking,
)
from misslink.cli.output import interruptible, own_stdout, print_json, progress_bars, shown
from misslink.errors import InputError

if TYPE_CHECKING:
    from misslink.judging.terms import Terms
    from misslink.pipeline import Progress
    from misslink.types import Run

__all__ = ["replay"]

_SHOWN_REASONS = 5
_WORDS = {
    "first": "the passage first",
    "last": "the passage last",
    "alone": "the relevant passages alone",
    "without_noise": "without irrelevant passages",
}


@dataclass(frozen=True)
class _Request:
    """What is asked of a replay on the command line."""

    folder: Path
    app: str | None
    judge: str | None
    sample: int
    seed: int
    concurrency: int
    ledger: Path | None


def replay(
    run: Path = typer.Argument(..., help="A run folder."),
    app: str | None = typer.Option(
        None,
        "--app",
        help="The app, or a function that builds it from a retriever: package.module:name or "
        "path/to/file.py:name.",
        show_default="the run's",
    ),
    sample: int = typer.Option(40, "--sample", min=1, help="Cases of each cause, at most."),
    judge: str | None = typer.Option(
        None, "--judge", help="Such as openai:MODEL.", show_default="the run's"
    ),
    concurrency: int = CONCURRENCY,
    ledger: Path | None = LEDGER,
    seed: int = typer.Option(0, "--seed", help="Of the draw and the intervals."),
    base_url: str | None = BASE_URL,
    temperature: float | None = TEMPERATURE,
    max_tokens: int | None = MAX_TOKENS,
    context_length: int | None = asking(
        "--context-length", "Tokens of prompt and reply.", show_default="what the server says"
    ),
    prompts: str | None = PROMPTS,
    repeats: int | None = typer.Option(
        None,
        "--repeats",
        min=1,
        help="How often each question is put.",
        show_default="the run's",
        rich_help_panel=ASKING,
    ),
    timeout: float = TIMEOUT,
    retries: int = RETRIES,
    deadline: float | None = DEADLINE,
    rpm: int | None = RPM,
    tpm: int | None = TPM,
    price_in: float | None = PRICE_IN,
    price_out: float | None = PRICE_OUT,
    max_calls: int | None = MAX_CALLS,
    max_cost: float | None = MAX_COST,
    as_json: bool = AS_JSON,
) -> None:
    """Hand the app what it missed, let it answer and be judged again: is the miss the cause?

    First each case is rerun with the passages that it had: an answer that turns out otherwise by
    itself is flaky and confirms nothing.
    """
    from misslink.files import read_run
    from misslink.judging.terms import Terms
    from misslink.pipeline import in_a_loop

    before = read_run(run)
    judged = before.manifest.get("judging")
    of_run: Mapping[str, Any] = judged if isinstance(judged, dict) else {}
    terms = Terms(
        base_url=base_url,
        temperature=temperature,
        max_tokens=max_tokens,
        context_length=context_length,
        prompts=prompts or of_run.get("prompts"),
        repeats=repeats or of_run.get("repeats") or 1,
        timeout=timeout,
        retries=retries,
        deadline=deadline,
        rpm=rpm,
        tpm=tpm,
        price_in=price_in,
        price_out=price_out,
        max_calls=max_calls,
        max_cost=max_cost,
    )
    request = _Request(run, app, judge, sample, seed, concurrency, ledger)
    with interruptible("the same command goes on"), own_stdout(), progress_bars() as progress:
        document = in_a_loop(lambda: _replayed(before, request, terms, progress), concurrency)
    if as_json:
        print_json(document)
    else:
        _print(document)


async def _replayed(
    run: Run, request: _Request, terms: Terms, progress: Progress
) -> dict[str, Any]:
    from misslink.files import add_to_run
    from misslink.judging.opening import ready_judge
    from misslink.linking.replay import replay as replay_run
    from misslink.manifest import shown_path
    from misslink.prompting import Prompts

    app = request.app or _app_of(run)
    opened = ready_judge(
        request.judge or _judge_of(run),
        ledger=request.ledger,
        concurrency=request.concurrency,
        terms=terms,
    )
    async with opened as judge:
        found = await replay_run(
            run,
            app,
            judge=judge,
            sample=request.sample,
            seed=request.seed,
            concurrency=request.concurrency,
            folder=request.folder,
            prompts=Prompts.of(terms.prompts),
            repeats=terms.repeats,
            tick=lambda done, total: progress("replaying", done, total),
        )
    document = {**found.document, "run": shown_path(request.folder)}
    add_to_run(
        request.folder,
        run.model_copy(update={"links": found.links}),
        "replay",
        document,
        lambda fresh, path: fresh.html(path),
    )
    return document


def _app_of(run: Run) -> str:
    """Where the run's app is imported from."""
    app = run.manifest.get("app")
    if run.manifest.get("traces") is not None or not app:
        raise InputError(
            "this run was made from traces; name the app that wrote them with --app, such as "
            "--app app.py:chain"
        )
    if ":" not in str(app):
        raise InputError(
            f"this run was made in Python with an object ({app}); name where the app is imported "
            "from with --app, such as --app app.py:chain"
        )
    return str(app)


def _judge_of(run: Run) -> str:
    judge = run.manifest.get("judge")
    if not judge or judge == "none":
        raise InputError("this run was not judged; evaluate it with a judge before it is replayed")
    return str(judge)


def _print(document: Mapping[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    title = f"Replay of {document['run']}, judge {document['judge']}"
    table = Table(title=Text(title), title_justify="left")
    for column in ("cause", "cases", "replayed", "flaky", "confirmed [95 %]", "turned good with"):
        table.add_column(column, justify="right" if column in ("cases", "replayed") else "left")
    for cause, told in document["causes"].items():
        if not told["cases"]:
            continue
        turned = "\n".join(
            f"{_WORDS[name]}: {shown(estimate)}" for name, estimate in told["interventions"].items()
        )
        numbers = [str(told[name]) for name in ("cases", "replayed", "flaky")]
        table.add_row(cause, *numbers, shown(told["confirmed"]), turned)
    if table.row_count:
        console.print(table)
    else:
        _say(console, "No case of this run has a cause that can be replayed.")
    _say(console, _sentence(document))
    reasons: dict[str, int] = {}
    for skipped in document["skipped"]:
        reasons[skipped["reason"]] = reasons.get(skipped["reason"], 0) + 1
    for reason, count in sorted(reasons.items(), key=lambda item: -item[1])[:_SHOWN_REASONS]:
        _say(console, f"Not replayed: {count} x {reason}.")
    if len(reasons) > _SHOWN_REASONS:
        _say(console, f"And {len(reasons) - _SHOWN_REASONS} other reasons; --json lists them all.")


def _sentence(document: Mapping[str, Any]) -> str:
    causal = document["causal_attributable_fraction"]
    observed = document["observed_attributable_fraction"]
    if causal["value"] is None:
        return f"Which share of the bad answers a hit would have avoided: {shown(causal)}."
    said = (
        f"With every miss turned into a hit there would be {shown(causal)} fewer bad answers"
        if causal["value"] >= 0
        else f"Turning every miss into a hit avoids no bad answers: {shown(causal)}"
    )
    return (
        f"{said} (replayed, n = {causal['n']}); by association alone it is {shown(observed)}. "
        f"Of unchanged reruns {shown(document['flaky'])} turned out otherwise."
    )


def _say(console: Any, line: str) -> None:
    console.print(line, markup=False, highlight=False, soft_wrap=True)
