"""How long texts are for a model, and passages cut and packed into parts that fit."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from misslink.judging.protocol import Ask
from misslink.judging.schema import schema_json
from misslink.text import sentences

__all__ = ["Piece", "cut", "fill", "size_of", "tokens"]

_BYTES_A_TOKEN = 4
_MARGIN = 1.25  # code, numbers and other scripts have shorter tokens than English prose
_FENCE = 24  # tokens: both delimiters of a passage, its number and the boundary
_QUARTERS = 4  # text without sentences is cut in quarters of a piece, so that one can overlap
_BLANK = re.compile(r"\s")


@dataclass(frozen=True)
class Piece:
    """A passage or a part of one.

    Parameters
    ----------
    passage : int
        The number of the passage, from 1.
    text : str
    """

    passage: int
    text: str

    @property
    def size(self) -> int:
        """Its tokens in a prompt, with the fence around it; an estimate from above."""
        return tokens(self.text) + _FENCE


def tokens(text: str) -> int:
    """How many tokens a text has at most, as a rule: a quarter of its bytes and a margin.

    Bytes, for a character of a script other than the Latin one is about a token itself.
    """
    return math.ceil(len(text.encode("utf-8", "replace")) / _BYTES_A_TOKEN * _MARGIN)


def size_of(ask: Ask) -> int:
    """How many tokens an ask has at most, as a rule: its messages and its JSON schema."""
    texts = [message["content"] for message in ask.messages]
    if ask.structured:
        texts.append(schema_json(ask.schema))
    return sum(map(tokens, texts))


def cut(piece: Piece, room: int) -> list[Piece]:
    """Cut a piece into pieces of at most `room` tokens, at the ends of sentences.

    Neighbours share a sentence, so that what spans a cut is whole in one of them. A sentence
    longer than the room is cut between words, or between characters where it has no blank.

    Parameters
    ----------
    piece : Piece
    room : int
        Tokens, fence included; more than a fence takes.

    Returns
    -------
    list of Piece
        The piece itself where it fits. Every character but blanks is in one of them.
    """
    if piece.size <= room:
        return [piece]
    space = max(room - _FENCE, 1)
    units = _units(piece.text, space)
    found: list[Piece] = []
    first = 0
    while True:
        last = first
        start = units[first][0]
        while last + 1 < len(units) and tokens(piece.text[start : units[last + 1][1]]) <= space:
            last += 1
        found.append(Piece(piece.passage, piece.text[start : units[last][1]]))
        if last + 1 == len(units):
            return found
        following = piece.text[units[last][0] : units[last + 1][1]]
        overlaps = last > first and tokens(following) <= space
        first = last if overlaps else last + 1


def fill(pieces: Sequence[Piece], room: int) -> tuple[list[Piece], list[Piece]]:
    """Take pieces, in order, while they fit into `room` tokens; cut those that never would.

    Returns
    -------
    taken, rest : list of Piece
        `taken` is empty only where `pieces` is.
    """
    queue = [part for piece in pieces for part in cut(piece, room)]
    used = 0
    for place, piece in enumerate(queue):
        used += piece.size
        if used > room and place:
            return queue[:place], queue[place:]
    return queue, []


def _units(text: str, space: int) -> list[tuple[int, int]]:
    """What is never cut again: sentences, or stretches of words where a sentence is too long."""
    units: list[tuple[int, int]] = []
    for start, end in sentences(text):
        if tokens(text[start:end]) <= space:
            units.append((start, end))
        else:
            units += _stretches(text, start, end, space)
    return units


def _stretches(text: str, start: int, end: int, space: int) -> list[tuple[int, int]]:
    longest = max(int(space * _BYTES_A_TOKEN / _MARGIN) // _QUARTERS, 1)
    found = []
    while start < end:
        stop = min(start + longest, end)
        while stop - start > 1 and tokens(text[start:stop]) > space:  # wide characters
            stop = start + (stop - start) // 2
        if stop < end:
            blanks = [blank.end() for blank in _BLANK.finditer(text, start, stop)]
            stop = blanks[-1] if blanks else stop
        found.append((start, stop))
        start = stop
    return found
