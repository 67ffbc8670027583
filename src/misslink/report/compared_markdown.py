"""A comparison of runs as GitHub-flavoured markdown, for a pull request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from misslink.files.markdown import code, inline, table
from misslink.report.compared_rows import Row
from misslink.report.comparison import Comparison, ComparisonPage
from misslink.report.flips import FlippedCase, Moves
from misslink.report.wording import in_short, plural

__all__ = ["cause_changes", "markdown"]

_MOST = 20  # cases that are listed
_TEXT = 160  # characters of a question
_CHANGES = 10  # ways from one cause to another that are listed


def markdown(page: ComparisonPage, *, page_at: str = "") -> str:
    """Write the comparison as markdown; every text under test is text in it and no more.

    Parameters
    ----------
    page : ComparisonPage
    page_at : str
        The address of the same comparison as HTML, seen from the markdown. "": nothing is linked
        to it.
    """
    blocks = [f"## {inline(page.title)}"]
    runs = (f"- {letter}: {_link(code(name), address)}" for letter, name, address in page.runs)
    blocks.append("\n".join(runs))
    if page_at:
        blocks.append(f"Both answers of each case that changed: {_link('the page', page_at)}.")
    for one in page.comparisons:
        blocks += _comparison(one, page, page_at)
    return "\n\n".join(block.rstrip("\n") for block in blocks if block) + "\n"


def cause_changes(moves: Moves) -> list[tuple[str, str, int]]:
    """Return the causes that changed as (cause in A, cause in B, cases), the most frequent first.

    Parameters
    ----------
    moves : Moves
    """
    changes = [
        (was, now, cell.count)
        for was, cells, _ in moves.rows
        for now, cell in zip(moves.columns, cells, strict=True)
        if cell and cell.count and now != was
    ]
    return sorted(changes, key=lambda change: -change[2])


def _comparison(one: Comparison, page: ComparisonPage, page_at: str) -> Iterator[str]:
    if len(page.comparisons) > 1:
        yield f"### {one.letter} against A"
    yield f"**{inline(one.finding)}**"
    yield "\n".join(f"- {inline(note)}" for note in one.notes)
    header = ("Metric", "A", one.letter, "Difference", "p (Holm)", "", "Better", "Worse", "Cases")
    rows = [_cells(row) for row in one.rows]
    yield table((*header, "Left out"), rows, right=(6, 7, 8))
    yield "\n".join(f"- {inline(row.sentence(one.letter))}" for row in one.corrected)
    yield _tests(one.rows, page)
    if one.alike:
        named = (code(row.name) + (f" ({row.of})" if row.of else "") for row in one.alike)
        yield f"The same in every case: {', '.join(named)}."
    if one.unmeasured:
        yield "Not measured in both: " + ", ".join(code(row.name) for row in one.unmeasured) + "."
    if one.causes:
        yield f"{one.causes.changed:,} of {plural(one.causes.n, 'case')} have another cause."
        yield _causes(one.causes, one.letter)
    if one.preferred:
        yield " ".join(inline(sentence) for sentence in one.preferred.sentences)
    if one.cases:
        more = len(one.cases) - _MOST + one.more
        rows = [_case(case, page_at) for case in one.cases[:_MOST]]
        listed = table(("Case", "Question", "Better", "Worse", "Cause"), rows)
        said = f"\n{plural(more, 'more case')} changed.\n" if more > 0 else ""
        yield _folded("Cases that changed", f"{listed}{said}")


def _cells(row: Row) -> list[str]:
    name = code(row.name) + (" (lower is better)" if row.lower_is_better else "")
    flips = [str(cell.count) if cell else "" for cell in (row.better, row.worse)]
    if row.verdict in ("better", "worse"):
        verdict = f"**{row.verdict}**"
    else:  # what is not seen means something only beside what would have been
        verdict = row.verdict + (f" (detectable: {row.detectable})" if row.detectable else "")
    numbers = [row.a.brief, row.b.brief, row.difference.brief, row.p_holm]
    left_out = inline(row.left_out) or "none"
    return [name, *map(inline, numbers), verdict, *flips, str(row.n), left_out]


def _tests(rows: Iterable[Row], page: ComparisonPage) -> str:
    """Every test of each metric, its effect, and what would have been seen; "" without rows."""
    listed = table(
        ("Metric", "Sign flips", "Holm", "t-test", "McNemar", "Effect", "Detectable"),
        [
            [
                code(row.name),
                *map(inline, (row.p, row.p_holm, row.t_test, row.mcnemar, row.effect)),
                inline(row.detectable or "not known"),
            ]
            for row in rows
        ],
    )
    if not listed:
        return ""
    said = (
        f"Holm corrects the sign-flip test over the {plural(page.tested, 'test')} made; the t-test "
        "and McNemar's exact test, of yes-or-no values, stand uncorrected beside it. Detectable "
        "is the difference that these cases show in 4 of 5 repetitions at the level that Holm "
        f"leaves, 0.05 / {page.left}."
    )
    return _folded("Tests, effects and what could have been seen", f"{said}\n\n{listed}")


def _causes(moves: Moves, letter: str) -> str:
    changes = cause_changes(moves)
    rows = [(inline(was), inline(now), f"{count:,}") for was, now, count in changes[:_CHANGES]]
    listed = table(("Cause in A", f"Cause in {letter}", "Cases"), rows, right=(2,))
    left = sum(count for _, _, count in changes[_CHANGES:])
    return f"{listed}\n{plural(left, 'more case')} changed in rarer ways." if left else listed


def _case(case: FlippedCase, page_at: str) -> list[str]:
    question = inline(in_short(case.question, _TEXT))
    ways = [", ".join(map(code, names)) for names in (case.better, case.worse)]
    name = _link(code(case.id), f"{page_at}#{case.anchor}" if page_at else "")
    return [name, question, *ways, inline(case.cause)]


def _folded(summary: str, body: str) -> str:
    return f"<details><summary>{summary}</summary>\n\n{body}\n</details>"


def _link(label: str, address: str) -> str:
    """Markdown as a link where there is an address, which is percent-encoded already."""
    return f"[{label}]({address})" if label and address else label
