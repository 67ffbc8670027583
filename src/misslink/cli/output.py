"""What commands print: one JSON document, or tables for people; progress goes to stderr."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from misslink.judging.forecast import Forecast
    from misslink.pipeline import Progress

__all__ = [
    "cell",
    "encodable",
    "interruptible",
    "own_stdout",
    "plain",
    "print_forecast",
    "print_json",
    "progress_bars",
    "say",
    "shown",
]

_INTERRUPTED = 130  # what shells report for Ctrl-C
_STAGES = {
    "app": "asking the app",
    "level 1": "scoring ranks",
    "judge": "asking the judge",
    "link": "linking",
    "replaying": "replaying the app",
    "options": "trying options",
}
# Of misslink's own words, what old encodings lack.
_PLAINER = str.maketrans(
    {"\u2212": "-", "\u2026": "...", "\u201c": '"', "\u201d": '"', "\u2019": "'", "\xa0": " "}
)


def plain(text: str) -> str:
    r"""Return a text without what would move the cursor, as an app or a gold set may have put in.

    Line breaks become blanks; so a text stays on its line.

    >>> plain("red \x1b[31m and\nnext")
    'red [31m and next'
    """
    return "".join(c if c.isprintable() else " " * c.isspace() for c in text)


def say(console: Console, text: str, style: str | None = None) -> None:
    """Print a line as it is: no markup, no escape sequence, wrapped by the terminal alone."""
    safe = encodable(plain(text), console.encoding)
    console.print(safe, style=style, markup=False, highlight=False, soft_wrap=True)


def cell(console: Console, text: str) -> Text:
    """A text in a table, or one that is wrapped between words: safe as `say` makes it."""
    from rich.text import Text

    return Text(encodable(plain(text), console.encoding))


def encodable(text: str, encoding: str) -> str:
    r"""Return a text as a terminal of this encoding can show it.

    >>> encodable("\u22125 points \u2026", "ascii"), encodable("\u22125 points", "utf-8")
    ('-5 points ...', '\u22125 points')
    """
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_PLAINER).encode(encoding, "replace").decode(encoding)
    return text


def print_json(document: Mapping[str, Any]) -> None:
    """Print one JSON document to stdout."""
    plain = not (sys.stdout.encoding or "").lower().startswith("utf")
    print(json.dumps(document, indent=2, ensure_ascii=plain, allow_nan=False))


@contextmanager
def own_stdout() -> Iterator[None]:
    """Send to stderr what the app under test prints, by whatever way, so that stdout is ours."""
    sys.stdout.flush()
    saved = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        sys.stdout.flush()
        os.dup2(saved, 1)
        os.close(saved)


@contextmanager
def interruptible(way_on: str) -> Iterator[None]:
    """Say on Ctrl-C that nothing is lost, and how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        print(f"misslink: interrupted; what was done is kept, and {way_on}", file=sys.stderr)
        raise typer.Exit(_INTERRUPTED) from None


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
            bars.update(tasks[stage], completed=done, total=total)

        yield tick


def print_forecast(found: Forecast) -> None:
    """Print what a run would ask and cost."""
    cost = "" if found.cost is None else f", which cost about {found.cost:.4g}"
    print(
        f"The judge would be asked {found.calls} questions ({found.from_ledger} more are answered "
        f"by the ledger): about {found.prompt_tokens} prompt tokens and "
        f"{found.completion_tokens} completion tokens{cost}{_live(found)}.\n{found.basis}\n"
        f"{_in_batches(found)}Nothing has been asked."
    )


def _live(found: Forecast) -> str:
    return " live" if found.batch is not None and found.cost is not None else ""


def _in_batches(found: Forecast) -> str:
    """What asking in batches would save, as sentences."""
    batch = found.batch
    if batch is None:
        return ""
    if not batch.questions:
        live = "; the one question is put live, to see what the server takes" if found.calls else ""
        return f"In batches: no questions{live}.\n"
    out = f"; {batch.submitted} of them are out already" if batch.submitted else ""
    price = f"{100 * batch.price:.4g} % of the price"
    if batch.cost is None or batch.saving is None:
        money = f"a token costs {price} there; --price-in and --price-out say what that saves"
    else:
        money = f"at {price} all cost about {batch.cost:.4g}, which saves {batch.saving:.4g}"
    batches = f"{batch.batches} batch{'' if batch.batches == 1 else 'es'} or more"
    return (
        f"In batches: {batch.questions} questions{out}, in {batches}, files of about "
        f"{batch.bytes / 1e6:.3g} MB; {money}.\n"
    )


def shown(estimate: Mapping[str, Any], name: str = "share", *, as_decimal: bool = False) -> str:
    """An estimate as the page writes it, in the unit of the metric `name`.

    Without an interval it is its n that says how much the value is worth. `as_decimal` is for
    coefficients such as kappa, whatever their name.

    >>> found = {"value": 0.62, "low": 0.51, "high": 0.72, "n": 87, "method": "wilson"}
    >>> shown(found), shown(found, "mrr")
    ('62 % [51, 72]', '0.62 [0.51, 0.72]')
    >>> shown({**found, "value": 0.0, "low": None, "high": None, "n": 5, "reason": "too few"})
    '0 %, n = 5'
    """
    from misslink.report.wording import shown as written
    from misslink.report.wording import shown_decimal
    from misslink.types import Estimate

    write = shown_decimal if as_decimal else written
    found = write(name, Estimate.model_validate(dict(estimate)))
    return found.brief if found.interval or not found.measured else found.text
