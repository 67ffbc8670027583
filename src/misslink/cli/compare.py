"""misslink compare: is one run better than another, case by case and beyond chance."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import typer

from misslink.cli.options import AS_JSON
from misslink.cli.output import cell, print_json, say
from misslink.cli.writing import is_part_of_run
from misslink.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from misslink.deciding.pairing import Named, Wanted
    from misslink.report.comparison import Comparison, ComparisonPage

__all__ = ["compare"]

_CHANGES = 5  # ways from one cause to another that are told
_BY_RATES = (
    "Corrected here by the judge's error rates (Rogan and Gladen) in both runs; a run's own report "
    "takes prediction-powered inference where the labels are its own, and may say otherwise."
)
_SHORT = {"within chance": "chance", "the same in the rest": "same"}


def compare(
    runs: list[Path] = typer.Argument(
        ..., metavar="A B [C ...]", help="Run folders; each further one is held against A."
    ),
    metrics: str | None = typer.Option(
        None,
        "--metrics",
        help="Metrics to compare by, between commas, such as recall@5,faithful.",
        show_default="every metric of the three levels",
    ),
    cases: str | None = typer.Option(
        None,
        "--cases",
        help="Which cases to take where the gold sets differ: common, or a file with an id on "
        "each line.",
        show_default="all, and the gold sets must be the same",
    ),
    html: Path | None = typer.Option(None, "--html", help="Write a page here."),
    markdown: Path | None = typer.Option(
        None, "--markdown", help="Write markdown for a pull request here."
    ),
    preferences: list[Path] = typer.Option(
        [], "--preferences", help="What  misslink judge prefer A B --json  printed; repeatable."
    ),
    as_json: bool = AS_JSON,
) -> None:
    """Compare runs over the same cases; it asks no model."""
    from misslink.deciding.compare import compare as compare_runs
    from misslink.deciding.preferences import Preferences

    named = _read(runs)
    document = compare_runs(
        named,
        metrics=None if metrics is None else [n for n in map(str.strip, metrics.split(",")) if n],
        cases=_cases(cases),
        preferences=[Preferences.read(path) for path in preferences],
    )
    written = {
        form: path for form, path in (("html", html), ("markdown", markdown)) if path is not None
    }
    if html and markdown and html.resolve() == markdown.resolve():
        raise InputError("--html and --markdown name one file; give another path", path=html)
    for form, path in written.items():
        _refuse_run_file(path)
        page = _page(document, named, _reports(path, named, runs))
        _write(form, path, page, html)
    if as_json:
        print_json({**document, **{form: str(path) for form, path in written.items()}})
    else:
        _print(_page(document, named, {}))
        for path in written.values():
            print(path)


def _read(folders: Sequence[Path]) -> list[Named]:
    from misslink.deciding.pairing import Named
    from misslink.files import read_whole
    from misslink.files.addresses import shown
    from misslink.manifest import shown_path

    if len(folders) < 2:  # noqa: PLR2004 -- a comparison takes two
        raise InputError("one run cannot be compared; name two run folders or more")
    seen: dict[Path, Path] = {}
    for folder in folders:
        if (before := seen.setdefault(folder.resolve(), folder)) is not folder:
            problem = f"this is the same run as {shown(before)}; name another one"
            raise InputError(problem, path=shown(folder))
    names = [shown_path(shown(folder)) for folder in folders]
    if len(set(names)) < len(names):  # two folders whose ends are the same
        names = [shown(folder) for folder in folders]
    return [
        Named(name, read_whole(folder, anywhere=True))
        for name, folder in zip(names, folders, strict=True)
    ]


def _cases(given: str | None) -> Wanted:
    """Which cases to take: what was said on the command line, a file read."""
    from misslink.files.jsonl import read_text

    if given is None:
        return None
    if given == "common":
        return "common"
    ids = [line.strip() for line in read_text(Path(given)).split("\n")]
    wanted = [line for line in ids if line]
    if not wanted:
        raise InputError("this names no case; write an id on each line", path=given)
    return wanted


def _refuse_run_file(path: Path) -> None:
    """Raise InputError where a file of a run would be written over."""
    if is_part_of_run(path):
        raise InputError("this is a file of a run; give another path", path=path)


def _write(form: str, path: Path, page: ComparisonPage, html: Path | None) -> None:
    """Write one form; markdown is linked to the page that is written with it."""
    from misslink.files.whole import put
    from misslink.report.compared_markdown import markdown
    from misslink.report.comparison import render

    if form == "html":
        put(render(page), path)
    else:
        put(markdown(page, page_at=_address(html, path) if html else ""), path)


def _reports(path: Path, named: Sequence[Named], runs: Sequence[Path]) -> dict[str, str]:
    """The address of each run's report as seen from the page, where there is one."""
    found = {}
    for one, folder in zip(named, runs, strict=True):
        report = folder.resolve() / "report.html"
        if report.is_file():
            found[one.name] = _address(report, path)
    return found


def _address(target: Path, path: Path) -> str:
    """Where a file is as seen from the file `path`, percent-encoded."""
    return quote(Path(os.path.relpath(target.resolve(), path.resolve().parent)).as_posix())


def _page(
    document: Mapping[str, Any], named: Sequence[Named], reports: Mapping[str, str]
) -> ComparisonPage:
    from misslink.report.comparison import build

    return build(document, {one.name: one.run for one in named}, reports)


def _print(page: ComparisonPage) -> None:
    from rich.console import Console

    console = Console()
    for letter, name, _ in page.runs:
        say(console, f"{letter}  {name}")
    for one in page.comparisons:
        console.print()
        say(console, one.finding, "bold")
        for note in one.notes:
            say(console, note)
        _print_metrics(console, one)
        _print_changes(console, one)


def _print_metrics(console: Console, one: Comparison) -> None:
    from rich.table import Table

    table = Table()
    for column in ("metric", "A", one.letter, "difference [95 %]", "p Holm", "", "n"):
        table.add_column(column, overflow="fold", justify="right" if column == "n" else "left")
    for row in one.rows:
        cells = (
            row.name,
            row.a.value,
            row.b.value,
            row.difference.brief,
            _bare(row.p_holm),
            _SHORT.get(row.verdict, row.verdict),
            f"{row.n:,}",
        )
        table.add_row(*(cell(console, text) for text in cells))
    if table.row_count:
        console.print(table)
        _print_tests(console, one)
    _print_corrected(console, one)
    omitted: dict[str, list[str]] = {}
    for row in one.rows:
        omitted.setdefault(row.left_out, []).append(row.name)
    for why, names in omitted.items():
        if why:
            say(console, f"{', '.join(names)}: {why}.")
    if one.alike:
        named = (f"{row.name} ({row.of})" if row.of else row.name for row in one.alike)
        say(console, f"The same in every case: {', '.join(named)}.")
    if one.unmeasured:
        say(console, f"Not measured in both: {', '.join(row.name for row in one.unmeasured)}.")


def _print_corrected(console: Console, one: Comparison) -> None:
    for corrected in one.corrected:
        say(console, corrected.sentence(one.letter))
    if one.corrected:
        say(console, _BY_RATES)


def _print_tests(console: Console, one: Comparison) -> None:
    """The tests that Holm does not correct, the effects, and what would have been seen."""
    from rich.table import Table

    table = Table()
    for column in ("metric", "p", "t-test", "McNemar", "d_z", "detectable"):
        table.add_column(column, overflow="fold")
    for row in one.rows:
        if not row.d_z:  # no case differs
            continue
        tests = map(_bare, (row.p, row.t_test, row.mcnemar))
        cells = (row.name, *tests, row.d_z, row.detectable or "not known")
        table.add_row(*(cell(console, text) for text in cells))
    if table.row_count:
        console.print(table)
        say(
            console,
            "These tests are uncorrected; d_z is Cohen's, of paired differences. Detectable: seen "
            "in 4 of 5 repetitions.",
        )


def _bare(p: str) -> str:
    """A p-value without its letter, such as "0.013" and "< 0.001"."""
    return p.removeprefix("p = ").removeprefix("p ")


def _print_changes(console: Console, one: Comparison) -> None:
    from misslink.report.compared_markdown import cause_changes
    from misslink.report.wording import plural

    for row in one.rows:
        better, worse = row.better, row.worse
        if better and worse and (better.count or worse.count):
            gained = plural(better.count, "case")
            say(console, f"{row.name}: {gained} better, {worse.count:,} worse.")
    if one.causes:
        told = f"{one.causes.changed:,} of {plural(one.causes.n, 'case')} have another cause"
        changes = cause_changes(one.causes)
        ways = [f"{was} to {now} {count:,}" for was, now, count in changes[:_CHANGES]]
        if left := sum(count for _, _, count in changes[_CHANGES:]):
            ways.append(f"others {left:,}")
        say(console, f"{told}: {', '.join(ways)}." if ways else f"{told}.")
    for sentence in one.preferred.sentences if one.preferred else ():
        say(console, sentence)
