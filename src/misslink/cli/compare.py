"""Command `misslink compare`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import typer

from misslink.cli.options import HTML_OPTION, JSON_OPTION, option
from misslink.cli.output import is_part_of_run, print_json, print_line, print_table
from misslink.errors import InputError
from misslink.render.table import TextTable

if TYPE_CHECKING:
    from rich.console import Console

    from misslink.compare.pairing import CaseSelection, NamedRun
    from misslink.report.comparison import ComparisonPage, RunComparison


_SHOWN_CHANGES = 5  # changes of the failure mode
_BY_RATES = (
    "Corrected here by the judge's error rates (Rogan and Gladen) in both runs; a run's own report "
    "uses prediction-powered inference where the labels are its own, and may differ."
)
_SHORT = {"within chance": "chance", "the same in the rest": "same"}


def compare(
    runs: list[Path] = typer.Argument(
        ..., metavar="A B [C ...]", help="Run folders; each further one is compared with A."
    ),
    metrics: str | None = option(
        None,
        "--metrics",
        "Metrics, comma-separated, such as recall@5,faithfulness.",
        show_default="all metrics of the three levels",
    ),
    cases: str | None = option(
        None,
        "--cases",
        "Cases if the gold sets differ: common, or a file with one id per line.",
        show_default="all",
    ),
    html: Path | None = HTML_OPTION,
    markdown: Path | None = option(None, "--markdown", "Pull request comment to write."),
    preferences: list[Path] = option(
        [], "--preferences", "Output of  misslink judge pairwise A B --json; repeatable."
    ),
    as_json: bool = JSON_OPTION,
) -> None:
    """Compare runs of the same cases."""
    from misslink.compare.compare_runs import compare_runs
    from misslink.compare.preferences import StoredPreferences
    from misslink.io.atomic import atomic_write
    from misslink.report.comparison import build_comparison_page, render_comparison_page
    from misslink.report.comparison_markdown import comparison_markdown

    named = _read_runs(runs)
    document = compare_runs(
        named,
        metrics=None if metrics is None else [n for n in map(str.strip, metrics.split(",")) if n],
        cases=_case_selection(cases),
        preferences=[StoredPreferences.read(path) for path in preferences],
    )
    by_name = {run.name: run.run for run in named}
    written = {form: path for form, path in (("html", html), ("markdown", markdown)) if path}
    if html and markdown and html.resolve() == markdown.resolve():
        raise InputError("--html and --markdown name one file; give another path", path=html)
    for form, path in written.items():
        if is_part_of_run(path):
            raise InputError("this is a file of a run; give another path", path=path)
        reports = {
            run.name: _relative_url(folder.resolve() / "report.html", path)
            for run, folder in zip(named, runs, strict=True)
            if (folder.resolve() / "report.html").is_file()
        }
        page = build_comparison_page(document, by_name, reports)
        if form == "html":
            text = render_comparison_page(page)
        else:  # linked to the page that is written with it
            text = comparison_markdown(page, page_at=_relative_url(html, path) if html else "")
        atomic_write(text, path)
    if as_json:
        print_json({**document, **{form: str(path) for form, path in written.items()}})
    else:
        _print(build_comparison_page(document, by_name, {}))
        for path in written.values():
            print(path)


def _read_runs(folders: Sequence[Path]) -> list[NamedRun]:
    from misslink.compare.pairing import NamedRun
    from misslink.io import read_complete_run
    from misslink.io.manifest import display_path
    from misslink.io.storage import redact_url

    if len(folders) < 2:
        raise InputError("one run cannot be compared; name two run folders or more")
    seen: dict[Path, Path] = {}
    for folder in folders:
        if (before := seen.setdefault(folder.resolve(), folder)) is not folder:
            problem = f"this is the same run as {redact_url(before)}; name another one"
            raise InputError(problem, path=redact_url(folder))
    names = [display_path(redact_url(folder)) for folder in folders]
    if len(set(names)) < len(names):  # two folders whose ends are the same
        names = [redact_url(folder) for folder in folders]
    return [
        NamedRun(name, read_complete_run(folder, anywhere=True))
        for name, folder in zip(names, folders, strict=True)
    ]


def _case_selection(cases: str | None) -> CaseSelection:
    from misslink.io.jsonl import read_text

    if cases is None:
        return None
    if cases == "common":
        return "common"
    ids = [line.strip() for line in read_text(Path(cases)).split("\n") if line.strip()]
    if not ids:
        raise InputError("this names no case; write one id per line", path=cases)
    return ids


def _relative_url(target: Path, page: Path) -> str:
    """The percent-encoded path of a file as seen from a page."""
    return quote(Path(os.path.relpath(target.resolve(), page.resolve().parent)).as_posix())


def _print(page: ComparisonPage) -> None:
    from rich.console import Console

    console = Console()
    for letter, name, _ in page.runs:
        print_line(console, f"{letter}  {name}")
    for comparison in page.comparisons:
        console.print()
        print_line(console, comparison.finding, "bold")
        for note in comparison.notes:
            print_line(console, note)
        _print_metrics(console, comparison)
        for line in (*_note_lines(comparison), *_change_lines(comparison)):
            print_line(console, line)


def _print_metrics(console: Console, comparison: RunComparison) -> None:
    """The differences, then the tests that Holm does not correct and the effect sizes."""
    rows = [
        (
            *(row.name, row.a.value, row.b.value, row.difference.brief, _p_value(row.p_holm)),
            *(_SHORT.get(row.verdict, row.verdict), f"{row.n:,}"),
        )
        for row in comparison.rows
    ]
    columns = ("metric", "A", comparison.letter, "difference [95%]", "p Holm", "", "n")
    print_table(console, TextTable(columns, rows, ("n",)))
    tests = [
        (
            *(row.name, *map(_p_value, (row.p, row.t_test, row.mcnemar))),
            *(row.d_z, row.detectable or "not known"),
        )
        for row in comparison.rows
        if row.d_z  # some case differs
    ]
    test_columns = ("metric", "p", "t-test", "McNemar", "d_z", "detectable")
    if print_table(console, TextTable(test_columns, tests)):
        print_line(
            console,
            "These tests are uncorrected; d_z is Cohen's, of paired differences. Detectable: seen "
            "in 4 of 5 repetitions.",
        )


def _p_value(text: str) -> str:
    """A p-value without its letter, such as "0.013" and "< 0.001"."""
    return text.removeprefix("p = ").removeprefix("p ")


def _note_lines(comparison: RunComparison) -> Iterator[str]:
    for corrected in comparison.corrected:
        yield corrected.sentence(comparison.letter)
    if comparison.corrected:
        yield _BY_RATES
    left_out: dict[str, list[str]] = {}
    for row in comparison.rows:
        left_out.setdefault(row.left_out, []).append(row.name)
    for reason, names in left_out.items():
        if reason:
            yield f"{', '.join(names)}: {reason}."
    if comparison.alike:
        names = [f"{row.name} ({row.of})" if row.of else row.name for row in comparison.alike]
        yield f"The same in every case: {', '.join(names)}."
    if comparison.unmeasured:
        yield f"Not measured in both: {', '.join(row.name for row in comparison.unmeasured)}."


def _change_lines(comparison: RunComparison) -> Iterator[str]:
    from misslink.render.format import pluralize
    from misslink.report.comparison_markdown import mode_changes

    for row in comparison.rows:
        better, worse = row.better, row.worse
        if better and worse and (better.count or worse.count):
            yield f"{row.name}: {pluralize(better.count, 'case')} better, {worse.count:,} worse."
    if modes := comparison.failures:
        changes = mode_changes(modes)
        moves = [f"{was} to {now} {count:,}" for was, now, count in changes[:_SHOWN_CHANGES]]
        if others := sum(count for _, _, count in changes[_SHOWN_CHANGES:]):
            moves.append(f"others {others:,}")
        total = f"{modes.changed:,} of {pluralize(modes.n, 'case')} have another failure mode"
        yield f"{total}: {', '.join(moves)}." if moves else f"{total}."
    yield from comparison.preferred.sentences if comparison.preferred else ()
