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
from misslink.render.format import pluralize, shorten
from misslink.render.table import TextTable

if TYPE_CHECKING:
    from misslink.comparison.pairing import CaseSelection, NamedRun
    from misslink.report.comparison import ComparisonPage, RunComparison


_SHOWN_CASES = 5  # of those broken
_BY_RATES = (
    "Corrected here by the judge's error rates (Rogan and Gladen) in both runs; a run's own report "
    "uses prediction-powered inference where the labels are its own, and may differ."
)


def compare(
    runs: list[Path] = typer.Argument(
        ..., metavar="A B [C ...]", help="Run folders; each further one is compared with A."
    ),
    name: list[str] = option(
        [],
        "--name",
        "Name of a run, in the order of the runs; repeatable.",
        show_default="the folders",
    ),
    metrics: str | None = option(
        None,
        "--metrics",
        "Metrics, comma-separated, such as recall@5,faithfulness.",
        show_default="all metrics of the three levels",
    ),
    cases: Path | None = option(
        None,
        "--cases",
        "File with the ids of the cases to compare, one per line.",
        show_default="all that ask the same",
    ),
    html: Path | None = HTML_OPTION,
    markdown: Path | None = option(None, "--markdown", "Pull request comment to write."),
    preferences: list[Path] = option(
        [], "--preferences", "Output of  misslink judge pairwise A B --json; repeatable."
    ),
    as_json: bool = JSON_OPTION,
) -> None:
    """Compare runs of the same cases."""
    from misslink.comparison.compare_runs import compare_runs
    from misslink.comparison.preferences import StoredPreferences
    from misslink.io.atomic import atomic_write
    from misslink.report import comparison as pages

    named = _read_runs(runs, name)
    document = compare_runs(
        named,
        metrics=None if metrics is None else [n for n in map(str.strip, metrics.split(",")) if n],
        cases=_case_selection(cases),
        preferences=[StoredPreferences.read(path) for path in preferences],
    )
    by_name = {run.name: run.run for run in named}
    written = {form: path for form, path in (("html", html), ("markdown", markdown)) if path}
    if html and markdown and html.resolve() == markdown.resolve():
        raise InputError("--html and --markdown name the same file. Name two files.", path=html)
    for form, path in written.items():
        if is_part_of_run(path):
            raise InputError(
                f"This is a part of a run. Name another file with --{form}.", path=path
            )
        reports = {
            run.name: _relative_url(folder.resolve() / "report.html", path)
            for run, folder in zip(named, runs, strict=True)
            if (folder.resolve() / "report.html").is_file()
        }
        page = pages.build_comparison_page(document, by_name, reports)
        if form == "html":
            text = pages.render_comparison_page(page)
        else:  # linked to the page that is written with it
            text = pages.comparison_markdown(
                page, page_at=_relative_url(html, path) if html else ""
            )
        atomic_write(text, path)
    if as_json:
        print_json({**document, **{form: str(path) for form, path in written.items()}})
    else:
        print_comparison(pages.build_comparison_page(document, by_name, {}))
        for path in written.values():
            print(path)


def _read_runs(folders: Sequence[Path], titles: Sequence[str]) -> list[NamedRun]:
    from misslink.comparison.pairing import NamedRun
    from misslink.io import read_complete_run
    from misslink.io.manifest import display_path
    from misslink.io.storage import redact_url

    if titles and (len(titles) != len(folders) or len(set(titles)) < len(titles)):
        raise InputError(
            f"{len(folders)} runs need {len(folders)} different names, in the same order",
            field="--name",
        )
    seen: dict[Path, Path] = {}
    for folder in folders:
        if (before := seen.setdefault(folder.resolve(), folder)) is not folder:
            problem = f"this is the same run as {redact_url(before)}; name another one"
            raise InputError(problem, path=redact_url(folder))
    names = [display_path(redact_url(folder)) for folder in folders]
    if len(set(names)) < len(names):  # two folders whose ends are the same
        names = [redact_url(folder) for folder in folders]
    return [
        NamedRun(name, read_complete_run(folder, anywhere=True), title)
        for name, folder, title in zip(names, folders, titles or _short_names(names), strict=True)
    ]


def _short_names(names: Sequence[str]) -> list[str]:
    """The last parts of the paths, as many as tell all of them apart."""
    parts = [name.rstrip("/").split("/") for name in names]
    for count in range(1, max(map(len, parts)) + 1):
        short = ["/".join(path[-count:]) for path in parts]
        if len(set(short)) == len(short):
            return short
    return list(names)


def _case_selection(cases: Path | None) -> CaseSelection:
    from misslink.io.jsonl import read_text

    if cases is None:
        return None
    ids = [line.strip() for line in read_text(cases).split("\n") if line.strip()]
    if not ids:
        raise InputError("the file names no case; write one id per line", path=cases)
    return ids


def _relative_url(target: Path, page: Path) -> str:
    """The percent-encoded path of a file as seen from a page."""
    return quote(Path(os.path.relpath(target.resolve(), page.resolve().parent)).as_posix())


def print_comparison(page: ComparisonPage) -> None:
    print_line(page.headline, "bold")
    for comparison in page.comparisons:
        print()
        if len(page.comparisons) > 1:
            print_line(comparison.headline, "bold")
        for line in (*comparison.faults, *comparison.notes):
            print_line(line)
        rows = [
            (row.name, row.a.value, row.b.value, row.difference.brief, row.verdict, f"{row.n:,}")
            for row in comparison.rows
        ]
        columns = ("metric", page.runs[0][0], comparison.name, "difference [95%]", "", "n")
        if print_table(TextTable(columns, rows, ("n",))):
            print_line("Tests and effect sizes: --html, --markdown or --json.")
        for line in _note_lines(comparison):
            print_line(line)
    changed = [case for case in page.cases if case.change in ("broken", "mixed")]
    if changed:
        print()
        broken = page.counts.get("broken", 0) + page.counts.get("mixed", 0)
        print_line(f"Broken answers: {broken:,}", "bold")
        listed = [
            (case.id, shorten(case.question, 60), *(side.failure for side in case.sides))
            for case in changed[:_SHOWN_CASES]
        ]
        names = [name for name, _ in page.runs]
        print_table(TextTable(("case", "question", *names), listed))


def _note_lines(comparison: RunComparison) -> Iterator[str]:
    for name, a, b, difference, labels in comparison.corrected:
        by = f"{name}, corrected for the judge's errors by {pluralize(labels, 'label')}"
        if difference.measured:
            yield f"{by}: {a.brief}, {b.brief}, difference {difference.brief}."
        else:
            yield f"{by}: {difference.brief}."
    if comparison.corrected:
        yield _BY_RATES
    if comparison.alike:
        names = [f"{row.name} ({row.of})" if row.of else row.name for row in comparison.alike]
        yield f"The same in every case: {', '.join(names)}."
    if comparison.unmeasured:
        yield f"Not measured in both: {', '.join(row.name for row in comparison.unmeasured)}."
    moves = comparison.mode_moves
    if moves:
        total = (
            f"{comparison.failures['changed']:,} of {pluralize(comparison.failures['n'], 'case')}"
        )
        listed = ", ".join(f"{was} to {now} {n:,}" for was, now, n in moves[:_SHOWN_CASES])
        others = sum(n for _, _, n in moves[_SHOWN_CASES:])
        more = f", others {others:,}" if others else ""
        yield f"{total} have another failure mode: {listed}{more}."
    yield from comparison.preferences
