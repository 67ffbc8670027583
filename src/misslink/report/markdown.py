"""Writes a run as GitHub-flavored markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from misslink.failure_modes import FAILURE_MODES
from misslink.io.atomic import atomic_write
from misslink.registry import exporters
from misslink.render.format import NOT_MEASURED, pluralize, shorten
from misslink.render.markdown import code_span, escape_markdown, markdown_table, single_line
from misslink.report import links as places
from misslink.report.cases import CaseEntry
from misslink.report.explorer import CaseList
from misslink.report.glossary import ANSWERS, RETRIEVALS
from misslink.report.judge_trust import JudgeTrust
from misslink.report.next_steps import NextStep
from misslink.report.page import ReportPage, build_page
from misslink.report.whatif import OptionEffect
from misslink.types import Run

_METRIC_LENGTH = 60
_REASON_LENGTH = 240
_MAX_REASONS = 3  # reasons of a verdict
_MAX_AUDIT_ROWS = 10  # of the audits


def corrected_shares_markdown(page: ReportPage) -> str:
    """Return each share before and after correction by human labels; "" without labels."""
    measured = [metric.truth for level in page.levels for metric in level.metrics]
    shares = {share.name: share for share in measured if share}
    rows = [
        (
            escape_markdown(shorten(share.of, _METRIC_LENGTH)),
            escape_markdown(share.judged.text),
            escape_markdown(share.corrected.text),
            escape_markdown(" ".join(filter(None, (share.how, share.hint)))),
        )
        for share in shares.values()
    ]
    if not rows:
        return ""
    return markdown_table(("Share of", "By the judge", "By annotators", "How"), rows)


def trust_markdown(page: ReportPage) -> str:
    """Return how the judge agrees with labels, and what moved it; "" where nothing is known.

    Parameters
    ----------
    page : ReportPage
    """
    lines = "\n".join(line for trust in page.trusts for line in _trust_lines(trust))
    parts = [part for part in (lines, _audit_table(page)) if part]
    return "\n\n".join(["## Can the judge be trusted?", *parts]) if parts else ""


def _trust_lines(trust: JudgeTrust) -> Iterator[str]:
    """The verdict on one metric with its reasons, and what annotators disagree on."""
    if not trust.measured:
        return
    metric = escape_markdown(trust.metric or "the judge")
    verdict = f"**{escape_markdown(trust.verdict)}**. " if trust.verdict else ""
    text = " ".join(
        escape_markdown(shorten(reason, _REASON_LENGTH))
        for reason in (trust.facts, *trust.reasons[:_MAX_REASONS])
    )
    yield f"- {metric}: {verdict}{text}"
    if trust.settling:
        parts = trust.settling.says.split("`")  # every other one is a command
        yield f"- {metric}: {''.join(code_span(p) if i % 2 else p for i, p in enumerate(parts))}"


def _audit_table(page: ReportPage) -> str:
    if page.audits is None or not page.audits.rows:
        return ""
    rows = [
        (
            escape_markdown(row.change),
            code_span(row.metric),
            escape_markdown(row.flipped.text),
            escape_markdown(row.shift.brief if row.shift else ""),
            escape_markdown(shorten(row.finding, 240)),
        )
        for row in page.audits.rows[:_MAX_AUDIT_ROWS]
    ]
    header = ("Changed", "Metric", "Verdicts that turned", "Score moved by", "Finding")
    omitted = len(page.audits.rows) - len(rows)
    more = f"\nLeft out: {pluralize(omitted, 'more row')}.\n" if omitted else ""
    return f"{escape_markdown(page.audits.facts)}\n\n{markdown_table(header, rows)}{more}"


_PAGE_FILE = "report.html"
_MAX_CASES = 10  # worst ones that are shown
_MAX_IDS = 5  # cases that are named behind a step
_MAX_GROUPS = 5  # of one category or tag
_MAX_DIMENSIONS = 8
_NAME_LENGTH = 60  # characters of an id or of a group
_QUESTION_LENGTH = 160
_REASON_LIMIT = 240
_CODE_SPAN = re.compile(r"`([^`]+)`")
_NOT_FAILED = frozenset({"", "passed"})  # failure modes that ask for nothing


@exporters.register("markdown", file="report.md")
def write_markdown(run: Run, path: Path) -> Path:
    """Write the report of `run` as markdown, whole or not at all, and return the path.

    Raises
    ------
    InputError
        The file cannot be written.
    """
    page = _PAGE_FILE if (path.parent / _PAGE_FILE).is_file() else ""
    return atomic_write(render_markdown(build_page(run, cases=_MAX_CASES), page_at=page), path)


def render_markdown(page: ReportPage, *, page_at: str = "") -> str:
    """Turn `page` into markdown.

    Parameters
    ----------
    page : ReportPage
    page_at : str
        Where the HTML page stands, seen from the markdown. "": nothing is linked.

    Returns
    -------
    str
        Every text escaped, ending in a line break.
    """
    parts = [
        f"# {escape_markdown(shorten(page.title, _QUESTION_LENGTH))}",
        " · ".join(
            f"{escape_markdown(label)}: **{escape_markdown(text)}**" for label, text in page.facts
        ),
        f"> Judge: {_inline_with_code(' '.join(page.judge))}",
        *_headline_text(page),
        _numbers_table(page),
        corrected_shares_markdown(page),
        _steps_list(page, page_at),
        _failure_mode_table(page, page_at),
        _whatif_table(page),
        _miss_type_table(page),
        *_group_tables(page),
        _worst_table(page.cases, page_at),
        trust_markdown(page),
        _rerun_section(page, page_at),
    ]
    return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"


def _headline_text(page: ReportPage) -> Iterator[str]:
    if page.errors:
        yield f"⚠️ {escape_markdown(page.errors)}"
    yield f"**{escape_markdown(page.verdict)}**"
    if page.evidence:
        yield escape_markdown(page.evidence)
    if page.replay:
        yield escape_markdown(" ".join(page.replay.sentences))
    yield "\n".join(f"- {escape_markdown(text)}" for text in page.warnings)


def _numbers_table(page: ReportPage) -> str:
    rows = [
        (level.title, code_span(metric.shown.name), escape_markdown(metric.shown.text))
        for level in page.levels
        for metric in level.metrics
    ]
    warnings = [f"\n{escape_markdown(level.warning)}\n" for level in page.levels if level.warning]
    return "".join([markdown_table(("Level", "Metric", "Value [95%]"), rows), *warnings])


def _steps_list(page: ReportPage, page_at: str) -> str:
    ids = page.cases.ids
    lines = [
        f"{place}. **{_inline_with_code(step.action)}** {_inline_with_code(step.why)}{_step_cases(step, ids, page_at)}"
        for place, step in enumerate(page.steps, 1)
    ]
    return "\n".join(["## What to do next", "", *(lines or [escape_markdown(page.no_steps)])])


def _step_cases(step: NextStep, ids: Sequence[str], page: str) -> str:
    """The cases of a step: as a link where there is a page, else by name."""
    if not step.cases:
        return ""
    if page:
        return f" {_page_link(pluralize(len(step.cases), 'case'), page, step.fragment)}"
    named = [code_span(shorten(ids[number - 1], _NAME_LENGTH)) for number in step.cases[:_MAX_IDS]]
    omitted = len(step.cases) - len(named)
    more = f" and {omitted:,} more" if omitted else ""
    return f" Cases: {', '.join(named)}{more}."


def _failure_mode_table(page: ReportPage, page_at: str) -> str:
    rows = [
        (
            _page_link(row.label, page_at, row.fragment),
            row.owner,
            str(row.count),
            escape_markdown(row.share.text),
            _inline_with_code(row.action if row.failure else row.meaning),
        )
        for row in page.failures
    ]
    return _section(
        "Failure modes",
        markdown_table(("Failure mode", "Owner", "Cases", "Share [95%]", "What to do"), rows, (2,)),
    )


def _whatif_table(page: ReportPage) -> str:
    table = page.whatif
    if table is None:
        return ""
    rows = [
        (
            escape_markdown(shorten(option.name, _NAME_LENGTH)),
            escape_markdown(option.main.option.text) if option.main else NOT_MEASURED,
            escape_markdown(option.main.difference.text) if option.main else "",
            escape_markdown(_change_verdict(option.main)) if option.main else "",
            escape_markdown(option.avoided.text),
        )
        for option in table.options
    ]
    today = next((option.main.today.text for option in table.options if option.main), NOT_MEASURED)
    header = (
        "Retrieval",
        code_span(table.metric),
        "Against today",
        "Verdict",
        "Unfaithful avoided",
    )
    intro = f"{escape_markdown(table.facts)} Today {code_span(table.metric)} is {escape_markdown(today)}."
    return _section(
        "What other retrieval settings would change", f"{intro}\n\n{markdown_table(header, rows)}"
    )


def _change_verdict(change: OptionEffect) -> str:
    return ", ".join(filter(None, (change.verdict, change.p, change.at)))


def _miss_type_table(page: ReportPage) -> str:
    rows = [
        (
            escape_markdown(row.label),
            str(row.count),
            escape_markdown(row.share.text),
            _inline_with_code(row.advice),
        )
        for row in page.misses
    ]
    header = ("The passage is", "Missed", "Share [95%]", "What to do")
    return _section("Why passages were missed", markdown_table(header, rows, (1,)))


def _group_tables(page: ReportPage) -> Iterator[str]:
    """The worst groups of each category and tag."""
    for place, table in enumerate(page.slices[:_MAX_DIMENSIONS]):
        rows = [
            (
                escape_markdown(shorten(group.name, _NAME_LENGTH)),
                f"{group.n}{' (few)' if group.small else ''}",
                *(escape_markdown(estimate.text) for estimate in group.metrics),
            )
            for group in table.groups[:_MAX_GROUPS]
        ]
        header = (
            escape_markdown(shorten(table.dimension, _NAME_LENGTH)),
            "Cases",
            *(code_span(name) for name in table.metrics),
        )
        omitted = len(table.groups) - len(rows)
        more = (
            f"\nLeft out, better or of few cases: {pluralize(omitted, 'group')}.\n"
            if omitted
            else ""
        )
        body = f"{markdown_table(header, rows, (1,))}{more}"
        yield body if place else _section("Groups of cases, the worst first", body)
    if (omitted := len(page.slices) - _MAX_DIMENSIONS) > 0:
        yield f"Left out: {pluralize(omitted, 'more tag')}."


def _worst_table(cases: CaseList, page: str) -> str:
    # The worst stand first, so that no other is among them while there are more of these.
    failed = [entry for entry in cases.entries if entry.failure not in _NOT_FAILED]
    rows = [
        (
            _page_link(str(entry.number), page, places.case_fragment(entry.number)),
            _case_name(entry),
            escape_markdown(shorten(entry.question, _QUESTION_LENGTH)),
            escape_markdown(FAILURE_MODES[entry.failure].label),
            escape_markdown(_case_outcome(entry)),
            escape_markdown(shorten(entry.reason, _REASON_LIMIT)),
        )
        for entry in failed[:_MAX_CASES]
    ]
    header = ("No.", "Case", "Question", "Failure mode", "Outcome", "Why")
    omitted = cases.failed - len(rows)
    more = f"\nLeft out: {pluralize(omitted, 'more case')} to look at.\n" if omitted else ""
    return _section(
        "The worst cases", f"{markdown_table(header, rows, (0,))}{more}" if rows else ""
    )


def _case_name(entry: CaseEntry) -> str:
    tier = f" tier {escape_markdown(shorten(entry.tier, _NAME_LENGTH))}" if entry.tier else ""
    return f"{code_span(shorten(entry.id, _NAME_LENGTH))}{tier}"


def _case_outcome(entry: CaseEntry) -> str:
    """The outcomes in one line, such as "miss, unfaithful, wrong"."""
    words = [RETRIEVALS.get(entry.retrieval, ""), ANSWERS.get(entry.answered, "")]
    words.append({"yes": "correct", "no": "wrong"}.get(entry.correct, ""))
    return ", ".join(filter(None, words)).lower()


def _rerun_section(page: ReportPage, page_at: str) -> str:
    whole = f"Everything is in the {_page_link('whole report', page_at, '')}. " if page_at else ""
    command = f"Repeat it: {code_span(page.command)}" if page.command else ""
    return f"---\n\n{whole}{command}" if whole or command else ""


def _section(title: str, body: str) -> str:
    return f"## {title}\n\n{body}" if body else ""


def _page_link(text: str, page: str, fragment: str) -> str:
    """A text of this package, linked into the page where there is one."""
    if not page:
        return escape_markdown(text)
    return f"[{escape_markdown(text)}]({page}{'#' if fragment else ''}{fragment})"


def _inline_with_code(text: str) -> str:
    """A sentence whose commands stand between backticks."""
    parts = _CODE_SPAN.split(single_line(text))  # every other one is code
    written = (
        code_span(part) if place % 2 else _inline_with_blanks(part)
        for place, part in enumerate(parts)
    )
    return "".join(written)


def _inline_with_blanks(part: str) -> str:
    """A part of a line, with the blanks at its ends."""
    before = " " * (part[:1] == " ")
    after = " " * (part[-1:] == " " and bool(part.strip()))
    return f"{before}{escape_markdown(part)}{after}"
