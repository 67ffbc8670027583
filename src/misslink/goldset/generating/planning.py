"""Which question is tried next: its kind, its passages, who asks it and at what length."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from misslink.goldset.generating.index import Index
from misslink.goldset.generating.settings import Category, Length, Persona, Settings
from misslink.goldset.generating.sources import Sources
from misslink.goldset.weights import shared_out

__all__ = ["Plan", "Slot"]

_AROUND = 6  # neighbours that a partner is drawn from
_SHOWN = 3  # passages that a question which nothing may answer is written from
_PASSES = 3  # times that a passage may be written from for one kind
_PREFERRED = {
    "dates": re.compile(
        r"\b(?:1[5-9]|20)\d\d\b|\b\d{1,2}:\d\d\b|\b\d+\s*(?:minutes?|hours?|days?|weeks?|months?"
        r"|years?|Minuten?|Stunden?|Tagen?|Wochen?|Monaten?|Jahren?)\b"
        r"|\b(?:before|after|until|since|during|bevor|nachdem|bis|seit)\b",
        re.IGNORECASE,
    ),
    "steps": re.compile(
        r"^\s*(?:\d+[.)]|[-*+])\s+\S|\b(?:first|then|next|finally|must|step|to do so|run|click"
        r"|zuerst|dann|danach|schlie(?:\u00df|ss)lich|muss|Schritt)\b",
        re.IGNORECASE | re.MULTILINE,
    ),
    "names": re.compile(r"(?<=[a-z,;] )[A-Z][\w-]{2,}"),
}
_LEAST_PREFERRED = 2  # hits that make a passage one that is preferred


@dataclass(frozen=True)
class Slot:
    """One candidate before it is written.

    Parameters
    ----------
    category : str
    number : int
        Which of its kind, from 0.
    passages : sequence of int
        The places of the passages that the writer is shown, the one it set out from first.
    persona, length : str
        By name.
    """

    category: str
    number: int
    passages: tuple[int, ...]
    persona: str
    length: str


class Plan:
    """All candidates that may be tried, in an order that depends on seed and corpus alone.

    Parameters
    ----------
    sources : Sources
    index : Index
    settings : Settings
    n : int
        Questions wanted, at least 1.
    seed : int

    Attributes
    ----------
    wanted : mapping of str to int
        Questions by kind; their sum is `n`.
    """

    def __init__(
        self, sources: Sources, index: Index, settings: Settings, n: int, seed: int
    ) -> None:
        self._sources, self._index, self._settings = sources, index, settings
        self._seed = seed
        self._usable = frozenset(sources.usable)
        shares = {name: one.share for name, one in settings.categories.items()}
        self.wanted: Mapping[str, int] = shared_out(n, shares)
        self._orders: dict[str, list[int]] = {}

    def slots(self, category: str, start: int, count: int) -> list[Slot]:
        """Return up to `count` candidates of a kind, from number `start` on.

        Fewer, and in the end none, where as many as `attempts` allows were tried.
        """
        order = self._order(category)
        most = math.ceil(self._settings.attempts * self.wanted[category])
        end = min(start + count, most, _PASSES * len(order))
        return [self._slot(category, number, order) for number in range(start, end)]

    def _slot(self, category: str, number: int, order: Sequence[int]) -> Slot:
        kind = self._settings.categories[category]
        drawn = random.Random(f"{self._seed}/{category}/{number}")  # noqa: S311 (no secret)
        persona = _drawn(drawn, self._settings.personas)
        length = _drawn(drawn, self._settings.lengths)
        place = order[number % len(order)]
        shown = _SHOWN if kind.negative else drawn.randint(*kind.passages)
        partners = self._partners(place, shown - 1, drawn)
        return Slot(category, number, (place, *partners), persona, length)

    def _partners(self, place: int, count: int, drawn: random.Random) -> list[int]:
        if count < 1:
            return []
        around = self._index.neighbours(place, max(_AROUND, count), self._usable)
        chosen = drawn.sample(range(len(around)), min(count, len(around)))
        return [around[at] for at in sorted(chosen)]

    def _order(self, category: str) -> list[int]:
        """The passages a kind is written from: the documents in turn, what suits it first."""
        if category in self._orders:
            return self._orders[category]
        drawn = random.Random(f"{self._seed}/{category}")  # noqa: S311
        by_document: dict[str, list[int]] = {}
        for at in self._sources.usable:
            by_document.setdefault(self._sources.documents[at], []).append(at)
        piles = list(by_document.values())
        drawn.shuffle(piles)
        for pile in piles:
            drawn.shuffle(pile)
        deepest = max(map(len, piles))
        turns = [pile[turn] for turn in range(deepest) for pile in piles if turn < len(pile)]
        kind = self._settings.categories[category]
        self._orders[category] = sorted(turns, key=lambda at: not self._suits(kind, at))
        return self._orders[category]

    def _suits(self, kind: Category, at: int) -> bool:
        if kind.prefers is None:
            return True
        found = _PREFERRED[kind.prefers].findall(self._sources.passages[at].text)
        return len(found) >= _LEAST_PREFERRED


def _drawn(drawn: random.Random, among: Mapping[str, Persona] | Mapping[str, Length]) -> str:
    names = list(among)
    return drawn.choices(names, weights=[among[name].share for name in names])[0]
