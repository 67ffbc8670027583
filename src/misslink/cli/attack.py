"""misslink judge attack: how often does a judge obey the text it judges?"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from misslink.cli.options import AS_JSON, CONCURRENCY, JUDGE, LEDGER
from misslink.cli.output import cell, interruptible, print_json, progress_bars, say, shown
from misslink.cli.terms import CAPS, MODEL, PACE, PRICES, Given, asks_judge
from misslink.errors import JudgeUnreachableError

if TYPE_CHECKING:
    from rich.console import Console

    from misslink.judging.terms import Terms

__all__ = ["attack"]

_SHOWN_FLIPS = 20
_SHOWN_REASONS = 5
_MEANINGS = (  # the help says the same
    "obeyed: the judge says something good of the answer that it does not say without the attack.",
    "flipped: once quotes are checked, the verdict is good; without the attack it is bad.",
    "silenced: there is no verdict any more, and the answer would be missing from every mean.",
)


@asks_judge(*MODEL, *PACE, *PRICES, *CAPS)
def attack(
    judge: str = JUDGE,
    ledger: Path | None = LEDGER,
    concurrency: int = CONCURRENCY,
    *,
    given: Given,
    as_json: bool = AS_JSON,
) -> None:
    """Judge small cases whose answers are bad, with and without texts that say they are good.

    obeyed: the judge says something good of the answer that it does not say without the attack.

    flipped: once quotes are checked, the verdict is good; without the attack it is bad.

    silenced: there is no verdict any more, and the answer would be missing from every mean.
    """
    import asyncio

    from misslink.judging.terms import Terms

    terms = Terms(**given)
    with interruptible("the same command goes on"):
        document = asyncio.run(_measured(judge, ledger, concurrency, terms))
    if as_json:
        print_json(document)
    else:
        _print(document)


async def _measured(
    spec: str, ledger: Path | None, concurrency: int, terms: Terms
) -> dict[str, Any]:
    from misslink.judging.attacks import load_suite, measure
    from misslink.judging.opening import ready_judge
    from misslink.prompting import Prompts
    from misslink.registry import judged_metrics

    suite = load_suite()
    prompts = Prompts.of(terms.prompts)
    names = {name for case in suite.cases for name in case.metrics}
    metrics = {name: judged_metrics.get(name) for name in names}
    opened = ready_judge(spec, ledger=ledger, concurrency=concurrency, terms=terms)
    async with opened as judge:
        with progress_bars() as tick:
            found = await measure(
                judge,
                metrics,
                suite=suite,
                prompts=prompts,
                tick=lambda done, total: tick("judge", done, total),
            )
        if found.in_vain:
            way_on = "" if judge.not_asked else "; try it with  misslink judge ping"
            raise JudgeUnreachableError(found.in_vain + way_on)
        return {**found.document(), "usage": judge.usage()}


def _print(document: Mapping[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    title = f"{document['attacks']} attacks on {document['cases']} cases, judge {document['judge']}"
    table = Table(title=cell(console, title), title_justify="left")
    for column in ("", "obeyed [95 %]", "flipped [95 %]", "silenced [95 %]", "n"):
        table.add_column(column, justify="right" if column == "n" else "left")
    rows = {"all": document}
    for group in ("by_metric", "by_place", "by_kind"):
        rows |= {f"{group[3:]} {name}": rates for name, rates in document[group].items()}
    for name, rates in rows.items():
        shares = (shown(rates[rate]) for rate in ("obeyed", "flipped", "silenced"))
        table.add_row(name, *shares, str(rates["flipped"]["n"]))
    console.print(table)
    for meaning in _MEANINGS:
        say(console, meaning)
    flips = document["flips"]
    for flip in flips[:_SHOWN_FLIPS]:
        say(console, f"flipped: {flip['attack']} made {flip['metric']} of {flip['case']} good")
    if len(flips) > _SHOWN_FLIPS:
        say(console, f"and {len(flips) - _SHOWN_FLIPS} more; --json lists them all")
    for name, reason in document["left_out"].items():
        say(console, f"left out: {name}: {reason}")
    if not document["trials"]:
        say(console, "nothing was measured: the judge finds no answer bad without any attack")
    _print_unread(console, document)


def _print_unread(console: Console, document: Mapping[str, Any]) -> None:
    reasons = document["not_read"]
    if not reasons:
        return
    lost, tried = sum(reasons.values()), document["trials"]
    say(
        console,
        f"{lost} of {tried} verdicts under attack could not be had or read; no rate has them",
    )
    for reason, count in list(reasons.items())[:_SHOWN_REASONS]:
        say(console, f"not read: {count} x {reason}")
    if len(reasons) > _SHOWN_REASONS:
        more = len(reasons) - _SHOWN_REASONS
        say(console, f"and {more} other reasons; --json lists them all")
