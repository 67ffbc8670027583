"""Writes a comparison of runs as GitHub-flavored markdown."""

from __future__ import annotations

from collections.abc import Iterator

from misslink.render.format import pluralize, shorten
from misslink.render.markdown import code_span, escape_markdown, markdown_table
from misslink.report.changed_cases import CHANGES, ComparedCase
from misslink.report.comparison import ComparisonPage, ComparisonRow, RunComparison

_MAX_CASES = 20  # cases that are listed
_TEXT_LENGTH = 160  # characters of a question
_MAX_CHANGES = 10  # ways from one failure mode to another that are listed


def comparison_markdown(page: ComparisonPage, *, page_at: str = "") -> str:
    """Write the comparison as markdown; every text under test is text in it and no more.

    Parameters
    ----------
    page : ComparisonPage
    page_at : str
        The address of the same comparison as HTML, seen from the markdown. "": nothing is linked
        to it.
    """
    runs = ", ".join(_markdown_link(code_span(name), address) for name, address in page.runs)
    blocks = [f"## {escape_markdown(page.headline)}", f"Runs: {runs}."]
    if page_at:
        blocks.append(
            f"Answers, passages and claims of each case: {_markdown_link('the page', page_at)}."
        )
    for comparison in page.comparisons:
        blocks += _comparison_section(comparison, page)
    listed = [case for case in page.cases if case.change != "same"]
    if listed:
        rows = [_case_cells(case, page_at) for case in listed[:_MAX_CASES]]
        names = [escape_markdown(name) for name, _ in page.runs]
        table = markdown_table(("Case", "Question", "Change", *names), rows)
        more = sum(page.counts.values()) - page.counts.get("same", 0) - len(rows)
        more_text = f"\n{pluralize(more, 'more case')} changed.\n" if more > 0 else ""
        blocks.append(_details_block("Cases that changed, regressions first", table + more_text))
    return "\n\n".join(block.rstrip("\n") for block in blocks if block) + "\n"


def _comparison_section(comparison: RunComparison, page: ComparisonPage) -> Iterator[str]:
    if len(page.comparisons) > 1:
        yield f"### {escape_markdown(comparison.headline)}"
    yield "\n".join(
        f"- {escape_markdown(note)}" for note in (*comparison.faults, *comparison.notes)
    )
    names = [escape_markdown(name) for name in (page.runs[0][0], comparison.name)]
    rows = [_row_cells(row) for row in comparison.rows]
    yield markdown_table(("Metric", *names, "Difference", ""), rows)
    yield "\n".join(
        f"- {name}, corrected for the judge's errors by {pluralize(labels, 'label')}: "
        + escape_markdown(f"{a.brief}, {b.brief}, difference {difference.brief}.")
        for name, a, b, difference, labels in comparison.corrected
    )
    yield _test_table(comparison, page)
    if comparison.alike:
        named = (
            code_span(row.name) + (f" ({row.of})" if row.of else "") for row in comparison.alike
        )
        yield f"The same in every case: {', '.join(named)}."
    if comparison.unmeasured:
        names = [code_span(row.name) for row in comparison.unmeasured]
        yield f"Not measured in both: {', '.join(names)}."
    if moves := comparison.mode_moves:
        cells = [(escape_markdown(was), escape_markdown(now), f"{n:,}") for was, now, n in moves]
        head = (page.runs[0][0], comparison.name, "Cases")
        table = markdown_table(
            [escape_markdown(name) for name in head], cells[:_MAX_CHANGES], right=(2,)
        )
        rarer = sum(count for _, _, count in moves[_MAX_CHANGES:])
        more = f"\n{pluralize(rarer, 'more case')} changed in rarer ways." if rarer else ""
        counts = comparison.failures
        title = (
            f"Failure modes that changed: {counts['changed']:,} of {pluralize(counts['n'], 'case')}"
        )
        yield _details_block(title, table + more)
    yield " ".join(escape_markdown(sentence) for sentence in comparison.preferences)


def _row_cells(row: ComparisonRow) -> list[str]:
    name = code_span(row.name) + (" (lower is better)" if row.lower_is_better else "")
    verdict = f"**{row.verdict}**" if row.verdict in ("better", "worse") else row.verdict
    return [name, *map(escape_markdown, (row.a.value, row.b.value, row.difference.brief)), verdict]


def _test_table(comparison: RunComparison, page: ComparisonPage) -> str:
    """Every test of each metric, its effect, and what is left out; "" without rows."""
    if not comparison.rows:
        return ""
    head = (
        *("Metric", "Holm", "Sign flips", "t-test", "McNemar", "Effect", "Detectable"),
        *("Better", "Worse", "Cases", "Left out"),
    )
    rows = [
        [
            code_span(row.name),
            *map(escape_markdown, (row.p_holm, row.p, row.t_test, row.mcnemar, row.effect)),
            escape_markdown(row.detectable or "not known"),
            *("" if count is None else f"{count:,}" for count in (row.better, row.worse)),
            f"{row.n:,}",
            escape_markdown(row.left_out) or "none",
        ]
        for row in comparison.rows
    ]
    explanation = (
        f"Holm corrects the sign-flip test over the {pluralize(page.tested, 'test')} made; the t-test "
        "and McNemar's exact test of yes-or-no values are uncorrected. Detectable is the "
        "difference that these cases show in 4 of 5 repetitions at the level that Holm leaves, "
        f"0.05 / {page.left}."
    )
    table = markdown_table(head, rows, right=(7, 8, 9))
    return _details_block("Tests, effects and left-out cases", f"{explanation}\n\n{table}")


def _case_cells(case: ComparedCase, page_at: str) -> list[str]:
    question = escape_markdown(shorten(case.question, _TEXT_LENGTH))
    name = _markdown_link(code_span(case.id), f"{page_at}#{case.anchor}" if page_at else "")
    sides = [escape_markdown(side.failure) for side in case.sides]
    return [name, question, CHANGES[case.change], *sides]


def _details_block(summary: str, body: str) -> str:
    return f"<details><summary>{summary}</summary>\n\n{body}\n</details>"


def _markdown_link(label: str, address: str) -> str:
    """Markdown as a link where there is an address, which is percent-encoded already."""
    return f"[{label}]({address})" if label and address else label
