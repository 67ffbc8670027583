"""misslink judge prefer: which of two runs answers better, case by case, in both orders."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from misslink.cli.options import AS_JSON, CONCURRENCY, JUDGE, LEDGER
from misslink.cli.output import cell, interruptible, print_json, progress_bars, say, shown
from misslink.cli.terms import CAPS, MODEL, PACE, PRICES, Given, asks_judge

if TYPE_CHECKING:
    from misslink.judging.terms import Terms

__all__ = ["prefer"]


@asks_judge(*MODEL, *PACE, *PRICES, *CAPS)
def prefer(
    run_a: Path = typer.Argument(..., help="A run folder."),
    run_b: Path = typer.Argument(..., help="Another one, over the same gold set."),
    judge: str = JUDGE,
    ledger: Path | None = LEDGER,
    concurrency: int = CONCURRENCY,
    *,
    given: Given,
    as_json: bool = AS_JSON,
) -> None:
    """Ask a judge which of two runs' answers would satisfy the asker, in both orders."""
    import asyncio

    from misslink.judging.terms import Terms

    terms = Terms(**given)
    with interruptible("the same command goes on"):
        found = asyncio.run(_prefer(run_a, run_b, judge, ledger, concurrency, terms))
    if as_json:
        print_json(found)
    else:
        _print(found)


async def _prefer(
    run_a: Path, run_b: Path, spec: str, ledger: Path | None, concurrency: int, terms: Terms
) -> dict[str, Any]:
    from misslink.answer.preference import pair_up, preference
    from misslink.answer.preference import prefer as judge_pairs
    from misslink.deciding.preferences import answers_hash
    from misslink.files import read_whole
    from misslink.judging.opening import ready_judge
    from misslink.manifest import shown_path
    from misslink.prompting import Prompts

    names = shown_path(run_a), shown_path(run_b)
    a, b = read_whole(run_a), read_whole(run_b)
    pairs = pair_up(a, b, names=names)
    prompts = Prompts.of(terms.prompts)
    opened = ready_judge(spec, ledger=ledger, concurrency=concurrency, terms=terms)
    async with opened as judge:
        with progress_bars() as progress:
            outcomes = await judge_pairs(
                pairs,
                judge,
                concurrency=concurrency,
                prompts=prompts,
                done=lambda count, total: progress("judge", count, total),
            )
        return {
            "a": names[0],
            "b": names[1],
            "judge": judge.name,
            "answers": {"a": answers_hash(a), "b": answers_hash(b)},
            **preference(outcomes),
            "usage": judge.usage(),
        }


def _print(found: Mapping[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table(title=cell(console, f"judge {found['judge']}"), title_justify="left")
    table.add_column("better")
    table.add_column("cases", justify="right")
    wins = found["wins"]
    table.add_row(cell(console, f"A  {found['a']}"), str(wins["a"]))
    table.add_row(cell(console, f"B  {found['b']}"), str(wins["b"]))
    table.add_row("tie", str(wins["tie"]))
    console.print(table)
    lines = [_sentence(found), *_of_order(found)]
    if same := found["identical"]:
        ties = "1 tie is" if same == 1 else f"{same} ties are"
        lines.append(f"{ties} between identical answers.")
    for reason, count in found["left_out"].items():
        lines.append(f"Left out: {count} of {found['cases']} cases: {reason}.")
    for line in lines:
        say(console, line)


def _of_order(found: Mapping[str, Any]) -> list[str]:
    """How far the order in which the answers were shown, and nothing else, decided."""
    flips, places = found["position_flips"], found["positions"]
    if flips["value"] is None:
        return []
    number = flips["n"]
    pairs = "1 pair was" if number == 1 else f"{number} pairs were"
    judged = f"{pairs} judged twice, each answer shown first once;"
    if not flips["value"]:
        return [f"{judged} the verdict was the same both times in all of them."]
    changed = f"{judged} in {shown(flips)} of them the verdict changed with the order"
    lines = [f"{changed}, and these count as ties."]
    if any(places.values()):
        lines.append(
            f"Of them, {places['first']} went both times to the answer shown first,"
            f" {places['second']} both times to the one shown second."
        )
    return lines


def _sentence(found: Mapping[str, Any]) -> str:
    share = found["preference"]
    if share["value"] is None:
        return f"Which run answers better is not measured: {share['reason']}."
    return (
        f"B is better in {shown(share)} of the {share['n']} decided cases"
        f" (exact sign test, p = {found['p']:.2g})."
    )
