"""Writes one issue text for each group of failures that share something."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from misslink.calibration.labelled_failures import apply_labels
from misslink.io.atomic import atomic_write
from misslink.parts import by_case
from misslink.registry import exporters
from misslink.render.markdown import code_span, escape_markdown
from misslink.report.failure_threads import FALSE_SHARE, FailureThread, fix_of, read_threads
from misslink.types import Run

_SHOWN_CASES = 5


@exporters.register("github-issues", file="issues.md")
def write_issues(run: Run, path: Path) -> Path:
    """Write an issue text for each group of failures, with owner, evidence and one fix."""
    run = apply_labels(run)
    issues = ["\n".join(_issue_lines(run, thread)) for thread in read_threads(run)]
    text = "\n---\n\n".join(issues)
    if not issues:
        text = "No group of failures stands out from the passed cases.\n"
    return atomic_write(text.encode("utf-8", "replace").decode(), path)


def _issue_lines(run: Run, thread: FailureThread) -> Iterator[str]:
    links = by_case(run.links)
    title = f"{thread.failed:,} of {thread.n:,} cases fail with {thread.label}"
    yield f"# {escape_markdown(title)}"
    yield ""
    yield f"**Owner:** {thread.owner.replace('_', ' ')}"
    yield ""
    yield f"**Fix:** {fix_of(thread)}"
    yield ""
    yield (
        f"**Evidence:** {thread.failed:,} of {thread.n:,} cases in this group fail, and "
        f"{thread.failed_elsewhere:,} of {thread.n_elsewhere:,} elsewhere (Fisher's exact test, "
        f"p = {thread.p:.2g}; at most {FALSE_SHARE:.0%} of such groups are expected to be false)."
    )
    if thread.also:
        yield ""
        yield f"The same cases share: {escape_markdown('; '.join(thread.also))}."
    yield ""
    for number in thread.cases[:_SHOWN_CASES]:
        case = run.cases[number - 1]
        reason = links[case.id].reason
        yield f"- {code_span(case.id)}: {escape_markdown(case.question)} {escape_markdown(reason)}"
    if (more := len(thread.cases) - _SHOWN_CASES) > 0:
        yield f"- and {more:,} more"
    yield ""
