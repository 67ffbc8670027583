"""GitHub-flavored markdown from untrusted text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby

from misslink.text.normalization import drop_invisible

_WORD_JOINER = "\u2060"  # seen by no reader, but by everybody who looks for "@name" or "://"
_ENTITIES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;", "$": "&#36;"}  # $ begins mathematics
)
_MARKS = re.compile(r"([\\`*_\[\]~])")
# What would begin a heading, a list or a rule.
_LINE_START = re.compile(r"^(?:([#+=-])(?![0-9])|([0-9]{1,9})([.)])(?=\s|$))")
_CODE = re.compile(r"`([^`]+)`")
# Platforms make links of these in the rendered text, whatever stood in the source.
_LINKS = re.compile(r"(@)(?=\w)|(#)(?=[0-9])|(gh-)(?=[0-9])|(:)(?=//)|(www)(?=\.)", re.IGNORECASE)


def single_line(text: str) -> str:
    r"""Return a text on one line, without invisible characters.

    >>> single_line("one\n\ttwo\u202e")
    'one two'
    """
    seen = drop_invisible(text)
    kept = "".join(c if c.isprintable() else " " * c.isspace() for c in seen)
    return " ".join(kept.split())


def escape_markdown(text: str) -> str:
    r"""Return a text as part of a line of prose or a cell of a table.

    Parameters
    ----------
    text : str
        Anything; line breaks become blanks. Of what looks like a mention or an address, an
        invisible character keeps platforms from making a link.

    Examples
    --------
    >>> escape_markdown("a|b <i> *c*")
    'a&#124;b &lt;i&gt; \\*c\\*'
    """
    safe = _MARKS.sub(r"\\\1", single_line(text))
    safe = _LINKS.sub(lambda found: found[0] + _WORD_JOINER, safe)
    return _LINE_START.sub(r"\2\\\1\3", safe).translate(_ENTITIES)


def code_span(text: str) -> str:
    """Return a name, an id or a command as code; "" for an empty one.

    Examples
    --------
    >>> code_span("recall@5"), code_span("a `tick`")
    ('`recall@5`', '`` a `tick` ``')
    """
    line = single_line(text)
    if not line:
        return ""
    if "|" in line:  # would end a cell, in some renderers even behind a backslash
        return f"<code>{escape_markdown(line)}</code>"
    longest = max((len(list(run)) for mark, run in groupby(line) if mark == "`"), default=0)
    fence = "`" * (longest + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def escape_with_commands(text: str) -> str:
    r"""Return a sentence of ours, in which commands stand between backticks.

    Examples
    --------
    >>> escape_with_commands("*Run* `a b`, then c.")
    '\\*Run\\* `a b`, then c.'
    """
    parts = _CODE.split(f" {single_line(text)} ")  # every other one is code
    for place, part in enumerate(parts):
        blanks = " " * part.startswith(" "), " " * part.endswith(" ")
        parts[place] = code_span(part) if place % 2 else escape_markdown(part).join(blanks)
    return single_line("".join(parts))


def markdown_table(
    header: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()
) -> str:
    """Return a table, ending in a line break; "" without rows.

    Parameters
    ----------
    header, rows : sequence of str
        Of cells that are markdown already: of `inline`, of `code`, or one's own words.
    right : sequence of int
        Columns that are set to the right, from 0.
    """
    lines = [_table_row(row) for row in rows]
    if not lines:
        return ""
    rule = ["---:" if place in right else "---" for place in range(len(header))]
    return "".join([_table_row(header), _table_row(rule), *lines])


def _table_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |\n"
