"""A text cut into marked pieces, whatever overlaps: claims over an answer, quotes in a passage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from misslink.text import locate

__all__ = ["Piece", "Span", "pieces", "place"]

# Where spans overlap the first of these gives the piece its colour.
_STRONGEST_FIRST = ("contradicted", "unsupported", "supported", "needed", "quote", "evidence")


@dataclass(frozen=True)
class Span:
    """A stretch of a text that means something.

    Parameters
    ----------
    start, end : int
        Character offsets.
    kind : str
        What it is: a claim's support, 'quote', 'needed' or 'evidence'.
    anchor : str
        Id that the page gives to its first piece; "" for none.
    href : str
        Id of what a click on it shows; "" for nothing.
    number : int
        Number of the claim it belongs to, from 1.
    """

    start: int
    end: int
    kind: str
    anchor: str = ""
    href: str = ""
    number: int = 0


@dataclass(frozen=True)
class Piece:
    """Some characters under the same spans; ``kind`` is "" where there are none.

    ``anchors`` are the ids of spans that start here, ``ends`` the numbers of those that end here.
    """

    text: str
    kind: str = ""
    href: str = ""
    anchors: tuple[str, ...] = ()
    ends: tuple[int, ...] = ()


def place(text: str, start: int | None, end: int | None, quote: str) -> tuple[int, int] | None:
    """Where a quote stands in `text`: by its offsets if they fit, else by looking it up.

    Returns None where it is not there.
    """
    if start is not None and end is not None and 0 <= start < end <= len(text):
        return start, end
    return locate(quote, text)


def pieces(text: str, spans: Sequence[Span]) -> tuple[Piece, ...]:
    """Cut `text` so that every piece lies wholly inside or outside of every span.

    Examples
    --------
    >>> [(p.text, p.kind) for p in pieces("ab cd", [Span(3, 5, "quote", "q1")])]
    [('ab ', ''), ('cd', 'quote')]
    """
    inside = [span for span in spans if 0 <= span.start < span.end <= len(text)]
    cuts = sorted({0, len(text)}.union(*((span.start, span.end) for span in inside)))
    found = []
    for start, end in pairwise(cuts):
        over = [span for span in inside if span.start <= start and end <= span.end]
        top = min(over, key=lambda span: _STRONGEST_FIRST.index(span.kind), default=None)
        found.append(
            Piece(
                text=text[start:end],
                kind=top.kind if top else "",
                href=top.href if top else "",
                anchors=tuple(s.anchor for s in over if s.start == start and s.anchor),
                ends=tuple(span.number for span in over if span.end == end and span.number),
            )
        )
    return tuple(found)
