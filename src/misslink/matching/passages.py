"""Passages read once for whatever is compared with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from misslink.matching.derived_numbers import new_numbers, quantities_of, values_of
from misslink.matching.frames import kinds_around
from misslink.matching.marks import strip_marks
from misslink.matching.quantities import Quantity
from misslink.text.languages import is_known_language
from misslink.text.normalization import sentence_spans, stems


@dataclass(frozen=True, slots=True)
class PassageSentence:
    """A sentence of a passage: its place (passage from 0, offsets), its text without marks, its stems."""

    passage: int
    start: int
    end: int
    text: str
    stems: tuple[str, ...]


class PassageTexts:
    """Passages with what they say.

    Parameters
    ----------
    texts : sequence of str
        May be empty.
    question : str
        No evidence; but its numbers are known to everybody.
    """

    def __init__(self, texts: Sequence[str], question: str = "") -> None:
        self.texts, self.question = texts, question

    @cached_property
    def sentences(self) -> list[PassageSentence]:
        """Every sentence."""
        return [
            PassageSentence(index, *plain.original(start, end), piece, stems(piece))
            for index, plain in enumerate(map(strip_marks, self.texts))
            for start, end in sentence_spans(plain.text)
            for piece in (plain.text[start:end],)
        ]

    @cached_property
    def numbers(self) -> frozenset[float]:
        """The values of all numbers that were shown or asked."""
        return values_of((*self.texts, self.question))

    def new_numbers(self, claim: str) -> list[str]:
        """Return the numbers of a claim, above 10 or with decimals, that were neither shown nor asked."""
        return new_numbers(claim, self.numbers)

    @cached_property
    def quantities(self) -> tuple[Quantity, ...]:
        """All quantities that were shown or asked."""
        return quantities_of((*self.texts, self.question))

    @cached_property
    def is_known(self) -> bool:
        """Whether the passages are in English or German."""
        return is_known_language(" ".join(self.texts))

    def asserts(self, passage: int, start: int, end: int) -> bool:
        """Whether any of the sentences at a place asserts something."""
        kinds = kinds_around(self.texts[passage], start, end)
        return not kinds or None in kinds
