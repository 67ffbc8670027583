"""A comparison of runs as GitHub-flavoured markdown, for a pull request."""

from __future__ import annotations

from collections.abc import Iterator

from misslink.files.markdown import code, inline, table
from misslink.report.compared_rows import Row
from misslink.report.comparison import Comparison, ComparisonPage
from misslink.report.flips import FlippedCase
from misslink.report.wording import in_short

__all__ = ["markdown"]

_MOST = 20  # cases that are listed
_TEXT = 160  # characters of a question


def markdown(page: ComparisonPage) -> str:
    """Write the comparison as markdown; every text under test is text in it and no more.

    Parameters
    ----------
    page : ComparisonPage
    """
    blocks = [f"## {inline(page.title)}"]
    blocks.append("\n".join(f"- {letter}: {code(name)}" for letter, name, _ in page.runs))
    for one in page.comparisons:
        blocks += _comparison(one, headed=len(page.comparisons) > 1)
    return "\n\n".join(block.rstrip("\n") for block in blocks if block) + "\n"


def _comparison(one: Comparison, *, headed: bool) -> Iterator[str]:
    if headed:
        yield f"### {one.letter} against A"
    yield f"**{inline(one.finding)}**"
    yield "\n".join(f"- {inline(note)}" for note in one.notes)
    header = ("Metric", "A", one.letter, "Difference", "p (Holm)", "", "Better", "Worse", "Cases")
    rows = [_cells(row) for row in one.rows]
    yield table((*header, "Left out"), rows, right=(6, 7, 8))
    if one.alike:
        named = (code(row.name) + (f" ({row.of})" if row.of else "") for row in one.alike)
        yield f"The same in every case: {', '.join(named)}."
    if one.unmeasured:
        yield "Not measured in both: " + ", ".join(code(row.name) for row in one.unmeasured) + "."
    if one.causes:
        yield f"{one.causes.changed} of {one.causes.n} cases have another cause."
    if one.preferred:
        yield " ".join(inline(sentence) for sentence in one.preferred.sentences)
    if one.cases:
        more = len(one.cases) - _MOST + one.more
        rows = [_case(case) for case in one.cases[:_MOST]]
        listed = table(("Case", "Question", "Better", "Worse", "Cause"), rows)
        said = f"\n{more} more cases changed.\n" if more > 0 else ""
        yield f"<details><summary>Cases that changed</summary>\n\n{listed}{said}\n</details>"


def _cells(row: Row) -> list[str]:
    name = code(row.name) + (" (lower is better)" if row.lower_is_better else "")
    flips = [str(cell.count) if cell else "" for cell in (row.better, row.worse)]
    verdict = f"**{row.verdict}**" if row.verdict in ("better", "worse") else row.verdict
    numbers = [row.a.brief, row.b.brief, row.difference.brief, row.p_holm]
    left_out = inline(row.left_out) or "none"
    return [name, *map(inline, numbers), verdict, *flips, str(row.n), left_out]


def _case(case: FlippedCase) -> list[str]:
    question = inline(in_short(case.question, _TEXT))
    ways = [", ".join(map(code, names)) for names in (case.better, case.worse)]
    return [code(case.id), question, *ways, inline(case.cause)]
