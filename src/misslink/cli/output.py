"""What commands print: one JSON document, or tables for people; progress goes to stderr."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from misslink.pipeline import Progress

__all__ = ["print_json", "print_summary", "progress_bars", "shown"]

_STAGES = {"app": "asking the app", "judge": "asking the judge"}


def print_json(document: Mapping[str, Any]) -> None:
    """Print one JSON document to stdout."""
    print(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False))


@contextmanager
def progress_bars() -> Iterator[Progress]:
    """Show a bar a stage on stderr."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bars:
        tasks: dict[str, Any] = {}

        def tick(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(_STAGES.get(stage, stage), total=total)
            bars.update(tasks[stage], completed=done)

        yield tick


def print_summary(summary: Mapping[str, Any], folder: str | None) -> None:
    """Print the estimates of a run as tables, the sentence of the link last."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table(title=f"{summary['cases']} cases, judge {summary['judge']}", title_justify="left")
    for column in ("level", "metric", "value [95 %]", "n"):
        table.add_column(column, justify="right" if column == "n" else "left")
    for level in ("retrieval", "generation", "answer"):
        for metric, estimate in summary[level].items():
            table.add_row(level, metric, shown(estimate), str(estimate["n"]))
    console.print(table)
    link = summary["link"]
    causes = Table(title="why cases failed", title_justify="left")
    causes.add_column("cause")
    causes.add_column("cases", justify="right")
    for cause, count in link["causes"].items():
        causes.add_row(cause, str(count))
    console.print(causes)
    fraction = link["attributable_fraction"]
    console.print(
        f"Unfaithful answers that go with a retrieval miss: {shown(fraction)}"
        f" (unfaithful given a miss {shown(link['risk_given_miss'])},"
        f" given a hit {shown(link['risk_given_hit'])})."
        " This is association, not proof of cause.",
        highlight=False,
    )
    if folder:
        console.print(f"report: {folder}/report.html", highlight=False, soft_wrap=True)


def shown(estimate: Mapping[str, Any]) -> str:
    """An estimate of a share as people read it, such as '62 % [51, 72]'."""
    if estimate["value"] is None:
        return f"not measured: {estimate['reason']}"
    ends = ", ".join(
        "?" if estimate[end] is None else f"{100 * estimate[end]:.0f}" for end in ("low", "high")
    )
    return f"{100 * estimate['value']:.0f} % [{ends}]"
