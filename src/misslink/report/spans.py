"""A text cut into marked pieces, whatever overlaps: claims over an answer, quotes in a passage."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from misslink.text import locate

__all__ = ["Piece", "Span", "pieces", "place"]

# Where spans overlap the first of these gives the piece its colour.
_STRONGEST_FIRST = ("contradicted", "unsupported", "supported", "needed", "quote", "evidence")


class Span(NamedTuple):
    """A stretch of a text that means something.

    Parameters
    ----------
    start, end : int
        Character offsets.
    kind : str
        What it is: a claim's support, 'quote', 'needed' or 'evidence'.
    number : int
        Number of the claim it belongs to, from 1; 0 for none.
    """

    start: int
    end: int
    kind: str
    number: int = 0


class Piece(NamedTuple):
    """Characters from ``start`` to ``end`` under the same spans; ``kind`` is "" where none are.

    ``numbers`` are the claims of those spans, that of the gravest first; ``ends`` the numbers of
    spans that end here.
    """

    start: int
    end: int
    kind: str = ""
    numbers: tuple[int, ...] = ()
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

    Returns nothing where no span fits: then there is nothing to mark.

    Examples
    --------
    >>> [(p.start, p.end, p.kind) for p in pieces("ab cd", [Span(3, 5, "quote", 1)])]
    [(0, 3, ''), (3, 5, 'quote')]
    """
    inside = [span for span in spans if 0 <= span.start < span.end <= len(text)]
    if not inside:
        return ()
    cuts = sorted({0, len(text)}.union(*((span.start, span.end) for span in inside)))
    found = []
    for start, end in pairwise(cuts):
        over = [span for span in inside if span.start <= start and end <= span.end]
        found.append(_piece(start, end, over) if over else Piece(start, end))
    return tuple(found)


def _piece(start: int, end: int, over: list[Span]) -> Piece:
    """What lies under all of `over`, one or more."""
    if len(over) == 1:  # nearly always, and there are hundreds of thousands
        (span,) = over
        numbers = (span.number,) if span.number else ()
        return Piece(start, end, span.kind, numbers, numbers if span.end == end else ())
    over.sort(key=lambda span: _STRONGEST_FIRST.index(span.kind))
    return Piece(
        start,
        end,
        kind=over[0].kind,
        numbers=tuple(dict.fromkeys(span.number for span in over if span.number)),
        ends=tuple(span.number for span in over if span.end == end and span.number),
    )
