"""A table as text: one view for the terminal and for markdown."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from misslink.render.markdown import escape_markdown, markdown_table


@dataclass(frozen=True)
class TextTable:
    """Column heads and rows of text, unescaped.

    Parameters
    ----------
    columns : sequence of str
        Each head once.
    rows : sequence of sequence of str
        Of the width of `columns`.
    numbers : collection of str
        Columns that are set to the right and not broken.
    title : str
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Collection[str] = ()
    title: str = ""

    def markdown(self) -> str:
        """Return the table in markdown, without its title; "" without rows.

        >>> print(TextTable(("metric", "n"), [("a|b", "3")], numbers=("n",)).markdown(), end="")
        | metric | n |
        | --- | ---: |
        | a&#124;b | 3 |
        """
        heads, *rows = (list(map(escape_markdown, row)) for row in (self.columns, *self.rows))
        right = [place for place, name in enumerate(self.columns) if name in self.numbers]
        return markdown_table(heads, rows, right)


# A part of a report that is only text and tables; a title is shown in markdown alone.
Part = tuple[Literal["title", "heading", "strong", "text", "note", "table"], "str | TextTable"]
_MARKDOWN_FORMS = {"title": "## {}", "heading": "### {}", "strong": "**{}**", "note": "- {}"}


def parts_markdown(parts: Iterable[Part]) -> str:
    r"""Return parts as markdown: every text escaped, ending in a line break.

    >>> parts_markdown([("title", "Runs"), ("note", "a*b"), ("note", "c")])
    '## Runs\n\n- a\\*b\n- c\n'
    """
    blocks: list[str] = []
    was_note = False
    for kind, part in parts:
        if isinstance(part, TextTable):
            block = part.markdown().strip("\n")
        else:
            block = _MARKDOWN_FORMS.get(kind, "{}").format(escape_markdown(part))
        if kind == "note" and was_note:
            blocks[-1] += f"\n{block}"
        elif block:
            blocks.append(block)
        was_note = kind == "note"
    return "\n\n".join(blocks) + "\n"
