"""misslink goldset pooled: people's grades put into the gold set, and what they say of recall."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from misslink.cli.options import AS_JSON
from misslink.cli.output import cell, print_json, say, shown

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["pooled"]

_SHOWN = 5
_LARGE = 100


def pooled(
    pool: Path = typer.Argument(..., help="A pool that people have graded."),
    out: Path = typer.Option(..., "--out", help="The gold set to write."),
    accept_prelabels: bool = typer.Option(
        False,
        "--accept-prelabels",
        help="Take the judge's grade where no person's is settled; how far they agree is printed.",
    ),
    relevance_level: int = typer.Option(
        1, "--relevance-level", min=1, max=2, help="Grade from which a passage is relevant."
    ),
    seed: int = typer.Option(0, "--seed", min=0, help="Of the intervals."),
    overwrite: bool = typer.Option(False, "--overwrite", help="Replace a file that is there."),
    as_json: bool = AS_JSON,
) -> None:
    """Put the grades of a pool into its gold set: settled ones, 0 as judged not relevant.

    Says how far people agree, who has not graded what, and how much of all that is relevant each
    retriever finds, estimated from the passages that were drawn outside the pool.
    """
    from misslink.errors import InputError
    from misslink.goldset.pooling.finishing import finish
    from misslink.goldset.pooling.folder import is_pool
    from misslink.goldset.writing import write_goldset

    if is_pool(pool) and pool.resolve() in out.resolve().parents:
        raise InputError("this is the folder of the pool itself; name another --out", path=out)
    found = finish(
        pool, accept_prelabels=accept_prelabels, relevance_level=relevance_level, seed=seed
    )
    write_goldset(found.cases, out, overwrite=overwrite)
    document = {"pool": str(pool), "goldset": str(out), **found.document}
    if as_json:
        print_json(document)
    else:
        _print(document)


def _print(found: Mapping[str, Any]) -> None:
    from rich.console import Console

    console = Console()
    grades = ", ".join(f"{count} {name}" for name, count in found["grades"].items())
    say(console, f"{found['merged']} grades in {found['goldset']}: {grades}.")
    if found["changed"]:
        say(console, f"{found['changed']} of them are others than the gold set had.")
    if found["open"]:
        say(console, f"{found['open']} of {found['items']} passages have no settled grade.")
    _print_people(console, found["agreement"], found["queue"])
    if found["prelabels"] is not None:
        _print_judge(console, found["prelabels"], found["accepted_prelabels"])
    _print_recall(console, found["recall"])
    for note in found["notes"]:
        say(console, f"Note: {note}.")


def _print_people(
    console: Console, agreed: Mapping[str, Any], queue: list[Mapping[str, Any]]
) -> None:
    for name, one in agreed["each"].items():
        left = f", {one['missing']} missing" if one["missing"] else ""
        skipped = f", {one['skipped']} skipped" if one["skipped"] else ""
        say(console, f"{name} graded {one['labelled']}{skipped}{left}.")
    _number(console, "People agree, Krippendorff's alpha (ordinal)", agreed["alpha"])
    for pair in agreed["pairs"]:
        _number(console, f"{pair['a']} and {pair['b']}, weighted kappa", pair["kappa"])
    tied = [one for one in queue if not one["settled"]]
    if queue:
        say(
            console,
            f"They differ on {len(queue)} passages, of which {len(tied)} are tied and left out; "
            "misslink annotate POOL --adjudicate  settles them.",
        )
    for one in tied[:_SHOWN]:
        said = ", ".join(f"{name} {grade}" for name, grade in one["grades"].items())
        say(console, f"  {one['case_id']}  '{one['passage_id']}': {said}")


def _print_judge(console: Console, judged: Mapping[str, Any], accepted: int) -> None:
    what = f"{judged['judge']} and people, weighted kappa over {judged['n']} passages"
    _number(console, what, judged["kappa"])
    for name, one in judged["grades"].items():
        if one["recall"]["value"] is not None:
            say(console, f"  {name}: it says so of {shown(one['recall'])} of what people do.")
    if accepted:
        say(console, f"{accepted} of its grades were taken where no person's is settled.")


def _print_recall(console: Console, recall: Mapping[str, Any]) -> None:
    from rich.table import Table

    left = len(recall["left_out"])
    say(
        console,
        f"Recall over {recall['questions']} questions"
        + (f" ({left} are not graded to the end)" if left else "")
        + f": {recall['relevant']} relevant passages are known.",
    )
    for case_id, reason in islice(recall["left_out"].items(), _SHOWN):
        say(console, f"  {case_id} is left out: {reason}")
    _number(console, "Relevant passages that nobody brought", recall["outside"])
    if recall["sample"] is not None:
        _print_sample(console, recall["sample"])
    if not recall["questions"]:
        return
    table = Table(title="Share of all relevant passages found", title_justify="left")
    for column in ("retriever", "metric", "estimated", "of the known ones alone"):
        table.add_column(column)
    for name, metrics in recall["retrievers"].items():
        for metric, found in metrics.items():
            columns = (found["estimated"], found["of_judged"])
            texts = [
                "not known" if one["value"] is None else shown(one, "recall") for one in columns
            ]
            table.add_row(*(cell(console, text) for text in (name, metric, *texts)))
    console.print(table)


def _print_sample(console: Console, sample: Mapping[str, Any]) -> None:
    """On how little it may rest, and what would narrow it."""
    say(
        console,
        f"  That rests on {sample['relevant']:.0f} relevant of {sample['labelled']:,} graded, "
        f"drawn from {sample['passages']:,}; one may stand for {_count(sample['weight'])}.",
    )
    if sample["labelled"] == sample["passages"]:
        return
    more = ", and ".join(
        f"[{_count(one['low'])}, {_count(one['high'])}] of {one['times']} times as many"
        for one in sample["more"]
    )
    say(
        console,
        f"  Of more draws, if the shares stay, its interval would be about {more}; see --random "
        "and --stratified of  misslink goldset pool.",
    )


def _count(value: float) -> str:
    """A number that may be large, without an exponent."""
    return f"{value:,.0f}" if abs(value) >= _LARGE else f"{value:.3g}"


def _number(console: Console, what: str, found: Mapping[str, Any]) -> None:
    if found["value"] is None:
        say(console, f"{what}: not known, {found['reason']}.")
        return
    value, low, high = (_count(found[name]) for name in ("value", "low", "high"))
    say(console, f"{what}: {value} [{low}, {high}].")
