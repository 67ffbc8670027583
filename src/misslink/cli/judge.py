"""Commands `misslink judge ping`, `audit`, `redteam` and `pairwise`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from misslink.cli import options as shared
from misslink.cli import output
from misslink.cli.audit import audit
from misslink.cli.options import JudgeOptions
from misslink.errors import JudgeUnreachableError
from misslink.render.table import TextTable

if TYPE_CHECKING:
    from misslink.judge.config import JudgeConfig
    from misslink.judge.session import JudgeSession

app = typer.Typer(help="Test a judge before a run.", no_args_is_help=True)
_SHOWN_FLIPS = 20
_SHOWN_REASONS = 5
_MEANINGS = (  # the help says the same
    "obeyed: the attack makes the judge report something in the answer's favor.",
    "flipped: the verdict is good even after the quote checks, and bad without the attack.",
    "silenced: there is no verdict, so every mean would lack this answer.",
)


_Work = Callable[["JudgeSession", Callable[[int, int], None]], Awaitable[dict[str, Any]]]


@app.callback()
def judge_group() -> None:
    """Test a judge before a run."""


@app.command("ping")
@shared.with_judge_options("base_url", "timeout")
def ping(
    judge: str = shared.JUDGE_OPTION, *, given: JudgeOptions, as_json: bool = shared.JSON_OPTION
) -> None:
    """Ask a judge one short question and show what it supports."""
    from misslink.judge.checks.ping import ping_judge_spec
    from misslink.judge.config import JudgeConfig

    abilities = asyncio.run(ping_judge_spec(judge, JudgeConfig(**given)))
    if as_json:
        output.print_json(abilities)
    else:
        for name, value in abilities.items():
            print(f"{name:>18}  {_display_value(value)}")
    if not abilities["ok"]:
        raise typer.Exit(JudgeUnreachableError.exit_code)


def _display_value(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        unit = "{} for a million {} tokens" if "prompt" in value else "{} {}"
        return ", ".join(unit.format(f"{amount:g}", name) for name, amount in value.items())
    return str(value)


@app.command("redteam")
@shared.with_judge_options(*shared.CHECK_OPTIONS)
def redteam(
    judge: str = shared.JUDGE_OPTION,
    cache: Path | None = shared.CACHE_OPTION,
    concurrency: int = shared.CONCURRENCY_OPTION,
    *,
    given: JudgeOptions,
    as_json: bool = shared.JSON_OPTION,
) -> None:
    """Test whether prompt injections in the judged text change the judge's verdicts.

    obeyed: the attack makes the judge report something in the answer's favor.

    flipped: the verdict is good even after the quote checks, and bad without the attack.

    silenced: there is no verdict, so every mean would lack this answer.
    """
    from misslink.judge.checks.redteam import load_suite, run_redteam
    from misslink.judge.config import JudgeConfig
    from misslink.judge.prompts import Prompts
    from misslink.registry import judged_metrics

    config, suite = JudgeConfig(**given), load_suite()
    prompts = Prompts.from_spec(config.prompts)
    metrics = {name: judged_metrics.get(name) for case in suite.cases for name in case.metrics}

    async def work(session: JudgeSession, tick: Callable[[int, int], None]) -> dict[str, Any]:
        result = await run_redteam(session, metrics, suite=suite, prompts=prompts, tick=tick)
        if result.not_measured:
            hint = "" if session.not_asked else "; try it with  misslink judge ping"
            raise JudgeUnreachableError(result.not_measured + hint)
        return {**result.document(), "usage": session.usage()}

    document = _run_with_judge(work, judge, config, cache=cache, concurrency=concurrency)
    output.print_result(document, _print_redteam, as_json=as_json)


def _print_redteam(document: Mapping[str, Any]) -> None:
    groups = {"all": document}
    for group in ("by_metric", "by_place", "by_kind"):
        groups |= {f"{group[3:]} {name}": rates for name, rates in document[group].items()}
    rates = ("obeyed", "flipped", "silenced")
    rows = [
        (name, *(output.format_estimate(row[rate]) for rate in rates), str(row["flipped"]["n"]))
        for name, row in groups.items()
    ]
    columns = ("", *(f"{rate} [95%]" for rate in rates), "n")
    counts = f"{document['attacks']} attacks on {document['cases']} cases"
    title = f"{counts}, judge {document['judge']}"
    output.print_table(TextTable(columns, rows, ("n",), title))
    output.print_lines(_MEANINGS)
    flips, reasons = document["flips"], document["not_read"]
    flipped = [f"flipped: {f['attack']} made {f['metric']} of {f['case']} good" for f in flips]
    output.print_lines(
        output.first_few(flipped, _SHOWN_FLIPS, "and {} more; --json lists them all")
    )
    output.print_lines(f"left out: {name}: {why}" for name, why in document["left_out"].items())
    if not document["trials"]:
        output.print_line("Not measured: without an attack, the judge calls no answer bad.")
    if reasons:
        missing = f"{sum(reasons.values())} of {document['trials']} verdicts under attack"
        output.print_line(f"{missing} are missing from every rate")
        not_read = [f"not read: {count} x {reason}" for reason, count in reasons.items()]
        rest = "and {} other reasons; --json lists them all"
        output.print_lines(output.first_few(not_read, _SHOWN_REASONS, rest))


app.command("audit")(audit)


@app.command("pairwise")
@shared.with_judge_options(*shared.CHECK_OPTIONS)
def pairwise(
    run_a: Path = shared.RUN_ARGUMENT,
    run_b: Path = typer.Argument(..., help="Another run of the same gold set."),
    judge: str = shared.JUDGE_OPTION,
    cache: Path | None = shared.CACHE_OPTION,
    concurrency: int = shared.CONCURRENCY_OPTION,
    *,
    given: JudgeOptions,
    as_json: bool = shared.JSON_OPTION,
) -> None:
    """Compare the answers of two runs pair by pair with a judge, in both orders."""
    from misslink.compare.preferences import answers_hash
    from misslink.io import read_complete_run
    from misslink.io.manifest import display_path
    from misslink.judge.checks.pairwise import judge_pairs, pair_answers, summarize_preferences
    from misslink.judge.config import JudgeConfig
    from misslink.judge.prompts import Prompts

    config = JudgeConfig(**given)
    names = display_path(run_a), display_path(run_b)
    a, b = read_complete_run(run_a), read_complete_run(run_b)
    pairs, prompts = pair_answers(a, b, names=names), Prompts.from_spec(config.prompts)

    async def work(session: JudgeSession, tick: Callable[[int, int], None]) -> dict[str, Any]:
        outcomes = await judge_pairs(
            pairs, session, concurrency=concurrency, prompts=prompts, done=tick
        )
        return {
            "a": names[0],
            "b": names[1],
            "judge": session.name,
            "answers": {"a": answers_hash(a), "b": answers_hash(b)},
            **summarize_preferences(outcomes),
            "usage": session.usage(),
        }

    document = _run_with_judge(work, judge, config, cache=cache, concurrency=concurrency)
    output.print_result(document, _print_pairwise, as_json=as_json)


def _run_with_judge(
    work: _Work, judge: str, config: JudgeConfig, *, cache: Path | None, concurrency: int
) -> dict[str, Any]:
    """Open a judge, and run `work` with it and a progress bar."""
    from misslink.judge.session import open_reachable_judge

    async def run() -> dict[str, Any]:
        opened = open_reachable_judge(judge, cache=cache, concurrency=concurrency, terms=config)
        async with opened as session:
            with output.progress_bars() as progress:
                return await work(session, partial(progress, "judge"))

    with output.interruptible():
        return asyncio.run(run())


def _print_pairwise(document: Mapping[str, Any]) -> None:
    names = {"a": f"A  {document['a']}", "b": f"B  {document['b']}", "tie": "tie"}
    rows = [(name, str(document["wins"][side])) for side, name in names.items()]
    title = f"judge {document['judge']}"
    output.print_table(TextTable(("better", "cases"), rows, ("cases",), title))
    output.print_lines(_pairwise_lines(document))


def _pairwise_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """The preferred run, the effect of the order in which answers are shown, and what is missing."""
    share = document["preference"]
    if share["value"] is None:
        yield f"Which run answers better is not measured: {share['reason']}."
    else:
        yield (
            f"B is better in {output.format_estimate(share)} of the {share['n']} decided cases"
            f" (exact sign test, p = {document['p']:.2g})."
        )
    flips, places = document["position_flips"], document["positions"]
    if flips["value"] is not None:
        pairs = "1 pair was" if flips["n"] == 1 else f"{flips['n']} pairs were"
        judged = f"{pairs} judged twice, each answer shown first once;"
        if not flips["value"]:
            yield f"{judged} the verdict was the same both times in all of them."
        else:
            yield (
                f"{judged} in {output.format_estimate(flips)} of them the verdict changed with the "
                "order, and these count as ties."
            )
            if any(places.values()):
                yield (
                    f"Of them, {places['first']} went both times to the answer shown first,"
                    f" {places['second']} both times to the one shown second."
                )
    if same := document["identical"]:
        yield f"{'1 tie is' if same == 1 else f'{same} ties are'} between identical answers."
    for reason, count in document["left_out"].items():
        yield f"Left out: {count} of {document['cases']} cases: {reason}."
