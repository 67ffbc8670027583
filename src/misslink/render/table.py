"""A table as text: one view for the terminal and for markdown."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

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
