"""Writes a comparison of runs as GitHub-flavored markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from misslink.render.format import pluralize, shorten
from misslink.render.markdown import code_span, escape_markdown, markdown_table
from misslink.report.changed_cases import ChangedCase, ModeTransitions
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
    blocks = [f"## {escape_markdown(page.title)}"]
    runs = (
        f"- {letter}: {_markdown_link(code_span(name), address)}"
        for letter, name, address in page.runs
    )
    blocks.append("\n".join(runs))
    if page_at:
        blocks.append(
            f"Both answers of each case that changed: {_markdown_link('the page', page_at)}."
        )
    for comparison in page.comparisons:
        blocks += _comparison_section(comparison, page, page_at)
    return "\n\n".join(block.rstrip("\n") for block in blocks if block) + "\n"


def mode_changes(moves: ModeTransitions) -> list[tuple[str, str, int]]:
    """Return the failure modes that changed as (failure mode in A, failure mode in B, cases), the most frequent first.

    Parameters
    ----------
    moves : ModeTransitions
    """
    changes = [
        (was, now, cell.count)
        for was, cells, _ in moves.rows
        for now, cell in zip(moves.columns, cells, strict=True)
        if cell and cell.count and now != was
    ]
    return sorted(changes, key=lambda change: -change[2])


def _comparison_section(
    comparison: RunComparison, page: ComparisonPage, page_at: str
) -> Iterator[str]:
    if len(page.comparisons) > 1:
        yield f"### {comparison.letter} against A"
    yield f"**{escape_markdown(comparison.finding)}**"
    yield "\n".join(f"- {escape_markdown(note)}" for note in comparison.notes)
    header = (
        "Metric",
        "A",
        comparison.letter,
        "Difference",
        "p (Holm)",
        "",
        "Better",
        "Worse",
        "Cases",
    )
    rows = [_row_cells(row) for row in comparison.rows]
    yield markdown_table((*header, "Left out"), rows, right=(6, 7, 8))
    yield "\n".join(
        f"- {escape_markdown(row.sentence(comparison.letter))}" for row in comparison.corrected
    )
    yield _test_table(comparison.rows, page)
    if comparison.alike:
        named = (
            code_span(row.name) + (f" ({row.of})" if row.of else "") for row in comparison.alike
        )
        yield f"The same in every case: {', '.join(named)}."
    if comparison.unmeasured:
        yield (
            "Not measured in both: "
            + ", ".join(code_span(row.name) for row in comparison.unmeasured)
            + "."
        )
    if comparison.failures:
        yield f"{comparison.failures.changed:,} of {pluralize(comparison.failures.n, 'case')} have another failure mode."
        yield _transition_table(comparison.failures, comparison.letter)
    if comparison.preferred:
        yield " ".join(escape_markdown(sentence) for sentence in comparison.preferred.sentences)
    if comparison.cases:
        more = len(comparison.cases) - _MAX_CASES + comparison.more
        rows = [_changed_case(case, page_at) for case in comparison.cases[:_MAX_CASES]]
        listed = markdown_table(("Case", "Question", "Better", "Worse", "Failure mode"), rows)
        more_text = f"\n{pluralize(more, 'more case')} changed.\n" if more > 0 else ""
        yield _details_block("Cases that changed", f"{listed}{more_text}")


def _row_cells(row: ComparisonRow) -> list[str]:
    name = code_span(row.name) + (" (lower is better)" if row.lower_is_better else "")
    flips = [str(cell.count) if cell else "" for cell in (row.better, row.worse)]
    if row.verdict in ("better", "worse"):
        verdict = f"**{row.verdict}**"
    else:  # what is not seen means something only beside what would have been
        verdict = row.verdict + (f" (detectable: {row.detectable})" if row.detectable else "")
    numbers = [row.a.brief, row.b.brief, row.difference.brief, row.p_holm]
    left_out = escape_markdown(row.left_out) or "none"
    return [name, *map(escape_markdown, numbers), verdict, *flips, str(row.n), left_out]


def _test_table(rows: Iterable[ComparisonRow], page: ComparisonPage) -> str:
    """Every test of each metric, its effect, and what would have been seen; "" without rows."""
    listed = markdown_table(
        ("Metric", "Sign flips", "Holm", "t-test", "McNemar", "Effect", "Detectable"),
        [
            [
                code_span(row.name),
                *map(escape_markdown, (row.p, row.p_holm, row.t_test, row.mcnemar, row.effect)),
                escape_markdown(row.detectable or "not known"),
            ]
            for row in rows
        ],
    )
    if not listed:
        return ""
    explanation = (
        f"Holm corrects the sign-flip test over the {pluralize(page.tested, 'test')} made; the t-test "
        "and McNemar's exact test, of yes-or-no values, stand uncorrected beside it. Detectable "
        "is the difference that these cases show in 4 of 5 repetitions at the level that Holm "
        f"leaves, 0.05 / {page.left}."
    )
    return _details_block(
        "Tests, effects and what could have been seen", f"{explanation}\n\n{listed}"
    )


def _transition_table(moves: ModeTransitions, letter: str) -> str:
    changes = mode_changes(moves)
    rows = [
        (escape_markdown(was), escape_markdown(now), f"{count:,}")
        for was, now, count in changes[:_MAX_CHANGES]
    ]
    listed = markdown_table(
        ("Failure mode in A", f"Failure mode in {letter}", "Cases"), rows, right=(2,)
    )
    rarer = sum(count for _, _, count in changes[_MAX_CHANGES:])
    return f"{listed}\n{pluralize(rarer, 'more case')} changed in rarer ways." if rarer else listed


def _changed_case(case: ChangedCase, page_at: str) -> list[str]:
    question = escape_markdown(shorten(case.question, _TEXT_LENGTH))
    ways = [", ".join(map(code_span, names)) for names in (case.better, case.worse)]
    name = _markdown_link(code_span(case.id), f"{page_at}#{case.anchor}" if page_at else "")
    return [name, question, *ways, escape_markdown(case.failure)]


def _details_block(summary: str, body: str) -> str:
    return f"<details><summary>{summary}</summary>\n\n{body}\n</details>"


def _markdown_link(label: str, address: str) -> str:
    """Markdown as a link where there is an address, which is percent-encoded already."""
    return f"[{label}]({address})" if label and address else label
