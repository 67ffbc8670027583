"""GitHub-flavoured markdown from texts that nobody vouches for: in it they are text and no more.

No text under test makes a heading, a link, an image, HTML, a mention, a reference to an issue, or
another cell of a table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby

__all__ = ["code", "in_line", "inline", "table"]

_JOINER = "\u2060"  # seen by no reader, but by everybody who looks for "@name" or "://"
_ENTITIES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;", "$": "&#36;"}  # $ begins mathematics
)
_MARKS = re.compile(r"([\\`*_\[\]~])")
# What would begin a heading, a list or a rule.
_FIRST = re.compile(r"^(?:([#+=-])(?![0-9])|([0-9]{1,9})([.)])(?=\s|$))")
# Platforms make links of these in the rendered text, whatever stood in the source.
_LINKS = re.compile(r"(@)(?=\w)|(#)(?=[0-9])|(gh-)(?=[0-9])|(:)(?=//)|(www)(?=\.)", re.IGNORECASE)


def in_line(text: str) -> str:
    r"""A text on one line, without characters that nobody sees.

    >>> in_line("one\n\ttwo\u202e")
    'one two'
    """
    kept = "".join(c if c.isprintable() else " " * c.isspace() for c in text)
    return " ".join(kept.split())


def inline(text: str) -> str:
    r"""A text as part of a line of prose or a cell of a table.

    Parameters
    ----------
    text : str
        Anything; line breaks become blanks. Of what looks like a mention or an address, an
        invisible character keeps platforms from making a link.

    Examples
    --------
    >>> inline("a|b <i> *c*")
    'a&#124;b &lt;i&gt; \\*c\\*'
    """
    safe = _MARKS.sub(r"\\\1", in_line(text))
    safe = _LINKS.sub(lambda found: found[0] + _JOINER, safe)
    return _FIRST.sub(r"\2\\\1\3", safe).translate(_ENTITIES)


def code(text: str) -> str:
    """A name, an id or a command as code; "" for an empty one.

    Examples
    --------
    >>> code("recall@5"), code("a `tick`")
    ('`recall@5`', '`` a `tick` ``')
    """
    line = in_line(text)
    if not line:
        return ""
    if "|" in line:  # would end a cell, in some renderers even behind a backslash
        return f"<code>{inline(line)}</code>"
    longest = max((len(list(run)) for mark, run in groupby(line) if mark == "`"), default=0)
    fence = "`" * (longest + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def table(header: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> str:
    """A table, ending in a line break; "" where there are no rows.

    Parameters
    ----------
    header, rows : sequence of str
        Of cells that are markdown already: of `inline`, of `code`, or one's own words.
    right : sequence of int
        Columns that are set to the right, from 0.
    """
    lines = [_row(row) for row in rows]
    if not lines:
        return ""
    rule = ["---:" if place in right else "---" for place in range(len(header))]
    return "".join([_row(header), _row(rule), *lines])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |\n"
