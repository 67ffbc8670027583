"""The command line of live experiments: misslink live."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from misslink.cli.options import JSON_OPTION
from misslink.cli.output import STDOUT, check_report_paths, print_json, print_line, print_table
from misslink.errors import InputError
from misslink.render.table import TextTable

if TYPE_CHECKING:
    from rich.console import Console


_LEAST_ALPHA = 1e-9  # from here on levels are near enough to 1 to be rounded to it

app = typer.Typer(
    help="Read what a Router or Interleaved logged of a live app.", no_args_is_help=True
)


@app.callback()
def live() -> None:
    """Read what a Router or Interleaved logged of a live app."""


@app.command("report")
def report(
    log: Path = typer.Argument(
        ..., metavar="LOG", help="The live log, an SQLite file.", show_default=False
    ),
    experiment: str | None = typer.Option(
        None, "--experiment", help="Which one, where the log holds several."
    ),
    control: str | None = typer.Option(
        None,
        "--control",
        help="Variant to compare the others with.",
        show_default="the experiment's",
    ),
    primary: str | None = typer.Option(
        None,
        "--primary",
        help="The user metric that decides.",
        show_default="task_done, else satisfaction, and so on",
    ),
    guardrail: list[str] = typer.Option(
        [],
        "--guardrail",
        help="How much worse than control a metric may be: latency:at_most=0.2 (seconds), "
        "errors:at_most=0.01, cost:at_most=10% (of control's); repeatable.",
    ),
    lower_is_better: list[str] = typer.Option(
        [], "--lower-is-better", help="Custom feedback kind where lower is better; repeatable."
    ),
    pre: Path | None = typer.Option(
        None,
        "--pre",
        help="CSV or JSONL with unit and value from before the experiment, for CUPED.",
        show_default="requests from before the ramp opened",
    ),
    offline: list[str] = typer.Option(
        [], "--offline", help="VARIANT=FOLDER of a run of misslink evaluate; repeatable."
    ),
    alpha: float = typer.Option(0.05, "--alpha", help="Chance of a false alarm, over all looks."),
    tuned_for: float = typer.Option(
        2000,
        "--units",
        min=100,
        help="Units near which the sequential interval is narrowest; choose it before looking.",
    ),
    detect: float | None = typer.Option(
        None,
        "--detect",
        help="The difference of the primary metric worth finding.",
        show_default="5 % of control's value",
    ),
    k: int = typer.Option(5, "--k", min=1, help="Passages of shadow and request compared."),
    html: Path | None = typer.Option(None, "--html", help="Write a page here."),
    markdown: Path | None = typer.Option(
        None, "--markdown", help="Write markdown here; - prints it."
    ),
    as_json: bool = JSON_OPTION,
) -> None:
    """Compare the variants of an experiment; looking early and often is allowed."""
    from misslink.errors import InputError

    if not _LEAST_ALPHA <= alpha < 1:
        raise InputError(
            f"--alpha {alpha} is no chance to work with: it lies between {_LEAST_ALPHA:g} and 1, "
            "such as 0.05"
        )
    if tuned_for == float("inf"):
        raise InputError(f"--units {tuned_for} is no number of units: give one such as 2000")
    if detect is not None and not 0 < detect < float("inf"):
        raise InputError(f"--detect {detect} is no difference worth finding: give one above 0")
    show_report(
        log,
        {
            "experiment": experiment,
            "control": control,
            "primary": primary,
            "guardrails": guardrail,
            "lower_is_better": lower_is_better,
            "pre": pre,
            "offline": offline,
            "alpha": alpha,
            "tuned_for": tuned_for,
            "detect": detect,
            "k": k,
        },
        html=html,
        markdown=markdown,
        as_json=as_json,
    )


def show_report(
    log: Path,
    options: Mapping[str, Any],
    *,
    html: Path | None,
    markdown: Path | None,
    as_json: bool,
) -> None:
    """Print the report of a live log, and write it where that is wanted.

    Parameters
    ----------
    log : Path
    options : mapping
        As `misslink.live.experiment_report.live_report` takes them.
    html, markdown : Path or None
    as_json : bool

    Raises
    ------
    InputError
        The log or an option is wrong, or a place cannot be written.
    """
    from misslink.io.atomic import atomic_write
    from misslink.io.manifest import display_path
    from misslink.live.experiment_report import live_report
    from misslink.live.page import build_live_page, render_live_page
    from misslink.live.page import live_markdown as as_markdown

    check_report_paths(markdown, html, as_json=as_json)
    if {path.resolve() for path in (markdown, html) if path} & {log.resolve()}:
        raise InputError("--markdown or --html names the live log; give another")
    document = {"log": display_path(log), **live_report(log, **options)}
    if html is not None:
        atomic_write(render_live_page(build_live_page(document)), html)
    printed = markdown is not None and str(markdown) == STDOUT
    if markdown is not None:
        text = as_markdown(document)
        print(text, end="") if printed else atomic_write(text, markdown)
    if as_json:
        print_json(document)
    elif not printed:
        _print_report(document)


def _print_report(document: Mapping[str, Any]) -> None:
    from rich.console import Console

    from misslink.live.page import disagreement_sentences

    console = Console()
    for sentence in disagreement_sentences(document):
        print_line(console, sentence, "bold")
    print_line(console, document["verdict"]["sentence"], "bold")
    _print_variants(console, document)
    for comparison in document["comparisons"]:
        _print_comparison(console, comparison, document)
    _print_lists(console, document["interleaving"])
    _print_shadows(console, document["shadows"])
    _print_offline(console, document)
    for note in document["notes"]:
        print_line(console, f"note: {note}")


def _print_variants(console: Console, document: Mapping[str, Any]) -> None:
    from misslink.live.page import VARIANT_HEADS, variant_rows

    _terminal_table(console, VARIANT_HEADS, variant_rows(document), right=(1, 2, 3, 4, 5))
    print_line(console, f"Sample ratio: {document['sample_ratio']['sentence']}.")


def _print_comparison(
    console: Console, comparison: Mapping[str, Any], document: Mapping[str, Any]
) -> None:
    from misslink.live.page import (
        GUARD_HEADS,
        cuped_sentences,
        guard_rows,
        metric_heads,
        metric_rows,
    )

    control, variant = document["control"], comparison["variant"]
    if comparison["metrics"]:
        _terminal_table(console, metric_heads(control, variant), metric_rows(comparison))
        print_line(
            console,
            f"{variant} minus {control}. Any time: valid however often you look, p after Holm. "
            "Fixed: valid for one look, at a sample size planned in advance.",
        )
    for words in cuped_sentences(comparison):
        print_line(console, words)
    if comparison["guardrails"]:
        _terminal_table(console, GUARD_HEADS, guard_rows(comparison))


def _print_lists(console: Console, lists: Mapping[str, Any] | None) -> None:
    from misslink.live.page import list_heads, list_rows

    if lists is not None:
        _terminal_table(console, list_heads(lists), list_rows(lists))


def _print_shadows(console: Console, shadows: list[Mapping[str, Any]]) -> None:
    from misslink.live.page import SHADOW_HEADS, shadow_rows

    for shadow in shadows:
        _terminal_table(console, SHADOW_HEADS, shadow_rows(shadow))


def _print_offline(console: Console, document: Mapping[str, Any]) -> None:
    from misslink.live.page import offline_heads, offline_rows

    rows = offline_rows(document)
    if rows:
        _terminal_table(console, offline_heads(document), rows)


def _terminal_table(
    console: Console,
    heads: tuple[str, ...],
    rows: list[tuple[str, ...]],
    right: tuple[int, ...] = (),
) -> None:
    print_table(console, TextTable(heads, rows, [heads[place] for place in right]))
