"""Command `misslink compare`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from misslink.cli.options import HTML_OPTION, JSON_OPTION, option
from misslink.cli.output import is_part_of_run, print_json, print_line, print_table
from misslink.errors import InputError
from misslink.render.format import pluralize, shorten
from misslink.render.table import TextTable

if TYPE_CHECKING:
    from misslink.comparison.pairing import CaseSelection
    from misslink.report.comparison import ComparisonPage, RunComparison


_SHOWN_CASES = 5  # of those broken
_BY_RATES = (
    "Corrected here by the judge's error rates (Rogan and Gladen) in both runs; a run's own report "
    "uses prediction-powered inference where the labels are its own, and may differ."
)


def compare(
    runs: list[Path] = typer.Argument(
        ..., metavar="A B [C ...]", help="Run folders or score tables; each is compared with A."
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
    import misslink

    written = {form: path for form, path in (("html", html), ("markdown", markdown)) if path}
    compared = misslink.compare(
        *runs,
        names=name,
        metrics=None if metrics is None else [n for n in map(str.strip, metrics.split(",")) if n],
        cases=_case_selection(cases),
        preferences=preferences,
    )
    if html and markdown and html.resolve() == markdown.resolve():
        raise InputError("--html and --markdown name the same file. Name two files.", path=html)
    for form, path in written.items():
        if is_part_of_run(path):
            raise InputError(
                f"This is a part of a run. Name another file with --{form}.", path=path
            )
    if html:
        compared.html(html)
    if markdown:
        compared.markdown(markdown, page=html)
    if as_json:
        print_json({**compared.document(), **{form: str(path) for form, path in written.items()}})
    else:
        print_comparison(compared.page())
        for path in written.values():
            print(path)


def _case_selection(cases: Path | None) -> CaseSelection:
    from misslink.io.jsonl import read_text

    if cases is None:
        return None
    ids = [line.strip() for line in read_text(cases).split("\n") if line.strip()]
    if not ids:
        raise InputError("the file names no case; write one id per line", path=cases)
    return ids


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
        changed, n = comparison.failures["changed"], comparison.failures["n"]
        total = f"{changed:,} of {pluralize(n, 'case')} {'has' if changed == 1 else 'have'}"
        listed = ", ".join(f"{was} to {now} {n:,}" for was, now, n in moves[:_SHOWN_CASES])
        others = sum(n for _, _, n in moves[_SHOWN_CASES:])
        more = f", others {others:,}" if others else ""
        yield f"{total} another failure mode: {listed}{more}."
    yield from comparison.preferences
