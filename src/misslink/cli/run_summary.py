"""Print the summary of a run in the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from misslink.cli.output import print_line, print_lines, print_table, text_width, wrap_text
from misslink.render.table import TextTable

if TYPE_CHECKING:
    from misslink.types import Run


_MAX_LINES = 25  # without --verbose
_BY = {"rogan-gladen": "Rogan and Gladen"}  # the other way is called as it is in a sentence


def print_run_summary(run: Run, report: str, *, verbose: bool = False, selftest: str = "") -> None:
    """Print a run: verdict, three levels, failure modes, next steps, judge, selftest, report path.

    At 80 columns these are at most 25 lines; `verbose` adds the metrics, warnings and all notes.
    """
    from misslink.calibration.labelled_failures import apply_labels
    from misslink.documents import summary_of
    from misslink.render.format import pluralize
    from misslink.render.headline import describe_association, describe_errors, describe_verdict
    from misslink.report.findings import find
    from misslink.report.judge_trust import judging_notes

    width = _width()
    findings, run = find(run), apply_labels(run)
    errors = describe_errors(findings)
    verdict = f"{describe_verdict(findings)} {describe_association(findings)}".strip()
    headline = list(wrap_text(verdict, width))
    steps = list(_step_lines(run, width, verbose=verbose))
    warnings = summary_of(run).warnings
    about_judge = [note.message for note in warnings if note.code == "judge"]
    others = [note.message for note in warnings if note.code not in {"judge", "inferred"}]
    judging = judging_notes(run)
    first_note = next(judging, "")
    judge = summary_of(run).judge or "not recorded"
    if first_note and (not about_judge or judge.startswith("cascade:")):
        about_judge = [f"Judge: {judge}. {first_note}", *about_judge]
    if errors:  # before any number
        print_line(errors, "bold")
    if verbose:
        at = "" if (k := run.summary.get("k")) is None else f", k = {k}"
        print_line(f"{pluralize(len(run.cases), 'case')}, judge {judge}{at}", "bold")
        _print_numbers(run)
        for line in (*others, *filter(None, [first_note]), *judging):
            print_line(line)
        print_line("")
    closing = [line for note in about_judge for line in wrap_text(note, width)]
    closing += [selftest] if selftest else []
    if others and not verbose:
        counted = pluralize(len(others), "warning")
        closing.append(f"{counted} in the report; --verbose prints all.")
    closing.append(f"report: {report}")
    levels = list(_level_lines(run, width))
    for line in headline:
        print_line(line, style="bold")
    print_lines(levels)
    taken = [*(wrap_text(errors, width) if errors else ()), *headline, *levels, *steps, *closing]
    room = _MAX_LINES - len(taken) - 6  # blank lines, titles, and a count of what is left out
    _print_link(run, None if verbose else max(room, 1))
    print_line("")
    print_line("What to do next", style="bold")
    print_lines([*steps, "", *closing])


def _width() -> int:
    from rich.console import Console

    return text_width(Console())


def _level_lines(run: Run, width: int) -> Iterator[str]:
    from misslink.report.overview import level_lines

    for line in level_lines(run):
        yield from wrap_text(f"{line.level.lower():<11}{line.text}", width, " " * 11)


def _print_numbers(run: Run) -> None:
    """One row per measured metric; one line per reason for the others."""
    from misslink.report.overview import metric_levels

    rows = []
    unmeasured: dict[str, list[str]] = {}
    low = []
    for level in metric_levels(run):
        name = level.title.rpartition(" ")[2].lower()
        for metric in level.metrics:
            if not metric.shown.measured:
                unmeasured.setdefault(metric.shown.reason, []).append(metric.shown.name)
                continue
            shown = metric.shown
            rows.append(
                (name, shown.name, f"{shown.value} {shown.interval}".rstrip(), f"{shown.n:,}")
            )
            name = ""  # once for all of its metrics
            low += [metric.shown.name] if metric.low_is_good else []
    value = "value [95%]"
    print_table(TextTable(("level", "metric", value, "n"), rows, (value, "n")))
    if low:
        print_line(f"Lower is better: {', '.join(low)}.")
    for line in _corrected(run):
        print_line(line)
    for reason, names in unmeasured.items():
        print_line(f"Not measured: {', '.join(names)}: {reason}.")


def _corrected(run: Run) -> Iterator[str]:
    """By how many labels the shares are corrected, or why they are not."""
    from misslink.calibration.stored_calibration import corrected_shares
    from misslink.render.format import pluralize

    for name, one in corrected_shares(run).items():
        labels = pluralize(one.labels, "label")
        if one.estimate.value is None:
            yield f"{name} is not corrected ({labels}): {one.estimate.reason}."
        else:
            yield f"{name} is corrected by {labels} ({_BY.get(one.by, one.by)})."


def _print_link(run: Run, most: int | None) -> None:
    """The failure modes, the first `most` of them; all of them with the attributable fraction."""
    from misslink.render.format import MIN_PERCENT
    from misslink.report.association import correct_association
    from misslink.report.summary import failure_mode_rows, inferred_note

    corrected = correct_association(run)
    if most is None and corrected:
        print_line(corrected.brief)
    rows = failure_mode_rows(run)
    if not rows:
        return
    shown = sorted(rows, key=lambda row: -row.count)[:most]
    note = inferred_note(run)
    numbers = ("cases", "inferred") if note else ("cases",)  # what no label says stands apart
    cells = [
        (r.key, r.owner, *(f"{n:,}" for n in (r.count, r.inferred)[: len(numbers)]))
        for r in rows
        if r in shown
    ]
    if len(run.cases) >= MIN_PERCENT:
        shares = [row.share.brief for row in rows if row in shown]
        cells = [(*cell, share) for cell, share in zip(cells, shares, strict=True)]
        numbers = (*numbers, "share [95%]")
    print_line("")
    print_table(TextTable(("failure", "owner", *numbers), cells, numbers))
    if note:
        print_line(note)
    if left := len(rows) - len(shown):
        print_line(f"and {left} more; --verbose prints all.")


def _step_lines(run: Run, width: int, *, verbose: bool) -> Iterator[str]:
    from misslink.report.summary import next_steps, no_steps_reason

    steps = next_steps(run)
    for place, step in enumerate(steps, 1):
        why = step.why if verbose else f"{step.why.partition('. ')[0].rstrip('.')}."
        yield from wrap_text(f"{place}. {step.action} {why}", width, "   ")
    if not steps:
        yield from wrap_text(no_steps_reason(run), width)
