"""misslink replay: does the answer turn good once the app is handed what it missed?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from misslink.cli.again import judge_as_in_run, put_into_run, terms_as_in_run
from misslink.cli.options import AS_JSON, CONCURRENCY, ID_KEY_OF_RUN, INPUT_KEY_OF_RUN, LEDGER
from misslink.cli.output import (
    cell,
    interruptible,
    own_stdout,
    print_json,
    progress_bars,
    say,
    shown,
)
from misslink.cli.terms import (
    AUDIT_OF_RUN,
    CAPS,
    CASES,
    PACE,
    PRICES,
    REPEATS_OF_RUN,
    Given,
    asks_judge,
)
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
    id_key: str | None
    input_key: str | None
    sample: int
    seed: int
    concurrency: int
    ledger: Path | None


@asks_judge(*CASES, *PACE, *PRICES, *CAPS, repeats=REPEATS_OF_RUN, audit=AUDIT_OF_RUN)
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
    id_key: str | None = ID_KEY_OF_RUN,
    input_key: str | None = INPUT_KEY_OF_RUN,
    *,
    given: Given,
    as_json: bool = AS_JSON,
) -> None:
    """Hand the app what it missed, let it answer and be judged again: is the miss the cause?

    First each case is rerun with the passages that it had, and what may confirm the cause is
    generated twice: an answer that turns out otherwise by itself is flaky and confirms nothing. A
    case costs 4 answers of the app for retrieval_miss, 5 for ignored_context, 3 for distracted and
    2 for a miss that was answered well, each judged; answers of before are used again.
    """
    from misslink.files import read_whole
    from misslink.pipeline import in_a_loop

    before = read_whole(run)
    terms = terms_as_in_run(before, judge, **given)
    request = _Request(run, app, judge, id_key, input_key, sample, seed, concurrency, ledger)
    with interruptible("the same command goes on"), own_stdout(), progress_bars() as progress:
        document = in_a_loop(lambda: _replayed(before, request, terms, progress), concurrency)
    if as_json:
        print_json(document)
    else:
        _print(document)


async def _replayed(
    run: Run, request: _Request, terms: Terms, progress: Progress
) -> dict[str, Any]:
    from misslink.linking.replay import replay as replay_run
    from misslink.manifest import shown_path
    from misslink.prompting import Prompts

    app = request.app or _app_of(run)
    async with judge_as_in_run(
        run, request.judge, terms, ledger=request.ledger, concurrency=request.concurrency
    ) as judge:
        found = await replay_run(
            run,
            app,
            judge=judge,
            id_key=request.id_key,
            input_key=request.input_key,
            sample=request.sample,
            seed=request.seed,
            concurrency=request.concurrency,
            folder=request.folder,
            prompts=Prompts.of(terms.prompts),
            repeats=terms.repeats,
            tick=lambda done, total: progress("replaying", done, total),
        )
    document = {**found.document, "run": shown_path(request.folder)}
    put_into_run(request.folder, run, "replay", document, found.links)
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


def _print(document: Mapping[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    title = f"Replay of {document['run']}, judge {document['judge']}"
    table = Table(title=cell(console, title), title_justify="left")
    counts = ("cases", "replayed", "flaky", "same answer")
    for column in ("cause", *counts, "confirmed [95 %]", "turned good with"):
        table.add_column(column, justify="right" if column in counts else "left")
    for cause, told in document["causes"].items():
        if not told["cases"] and not told["replayed"]:
            continue
        turned = "\n".join(
            f"{_WORDS[name]}: {shown(estimate)}" for name, estimate in told["interventions"].items()
        )
        numbers = [str(told[name]) for name in ("cases", "replayed", "flaky", "same_answer")]
        if told["contributing"]:
            numbers[1] += f" ({told['contributing']} contributing)"
        table.add_row(cause, *numbers, shown(told["confirmed"]), turned)
    if table.row_count:
        console.print(table)
    else:
        say(console, "No case of this run has a cause that can be replayed.")
    usage = document["usage"]
    kept = f"{usage['generations_kept']} kept from before"
    if document["cases_kept"]:
        kept += f" (also {document['cases_kept']} cases beyond this sample)"
    say(console, f"Answers of the app: {usage['generations']} new, {kept}.")
    say(console, _sentence(document))
    reasons: dict[str, int] = {}
    for skipped in document["skipped"]:
        reasons[skipped["reason"]] = reasons.get(skipped["reason"], 0) + 1
    for reason, count in sorted(reasons.items(), key=lambda item: -item[1])[:_SHOWN_REASONS]:
        say(console, f"Not replayed: {count} x {reason}.")
    if len(reasons) > _SHOWN_REASONS:
        say(console, f"And {len(reasons) - _SHOWN_REASONS} other reasons; --json lists them all.")


def _sentence(document: Mapping[str, Any]) -> str:
    from misslink.report.replayed import BAD

    causal = document["causal_attributable_fraction"]
    flaky = document["flaky"]
    share = f" Flaky: {shown(flaky)}."
    if causal["value"] is None:
        said = f"Which share of the {BAD} a hit would have avoided: {shown(causal)}."
        return said + share if flaky["value"] is not None else said
    more = causal["value"] < 0
    return (
        f"With every miss turned into a hit there would be {shown(_turned(causal, more))} "
        f"{'more' if more else 'fewer'} {BAD}{_doubt(causal)} (replayed, n = {causal['n']}); "
        f"by association alone {_associated(document['observed_attributable_fraction'])}.{share}"
    )


def _associated(observed: Mapping[str, Any]) -> str:
    if observed["value"] is not None and observed["value"] <= 0:
        return f"they are no more frequent after a miss ({shown(observed)})"
    return f"it is {shown(observed)}{_doubt(observed)}"


def _doubt(estimate: Mapping[str, Any]) -> str:
    from misslink.report.replayed import UNPROVEN

    low, high = estimate["low"], estimate["high"]
    holds = low is not None and high is not None and low <= 0 <= high
    return f"; {UNPROVEN}" if holds else ""


def _turned(estimate: Mapping[str, Any], more: bool) -> Mapping[str, Any]:
    """How much more of it, where the estimate says how much fewer."""
    if not more:
        return estimate
    low, high = (None if estimate[end] is None else -estimate[end] for end in ("high", "low"))
    return {**estimate, "value": -estimate["value"], "low": low, "high": high}
