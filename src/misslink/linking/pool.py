"""The passages that a missed one is measured among: a listed corpus, or what the traces showed."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import cached_property

from misslink.retrieval import Find, Need, find, satisfies
from misslink.text import fold
from misslink.types import Passage, Trace

__all__ = ["Pool"]

_BETWEEN = "\n"  # in no folded text, so nothing is found across two of them
_TELLING = 20  # folded characters of an evidence by which its carriers are looked for


class Pool:
    """Passages by id and by place, and those that carry an evidence.

    Parameters
    ----------
    traces : sequence of Trace
    corpus : sequence of Passage or None
        Every passage there is. None: the pool is what the traces showed, asked deeper or not.
        Of passages with the same id the first counts; those without a text are left out.

    Attributes
    ----------
    passages : tuple of Passage
    place : dict of str to int
        Id to place among `passages`.
    listed : bool
        Whether a corpus was given.
    """

    def __init__(self, traces: Sequence[Trace], corpus: Sequence[Passage] | None) -> None:
        self.listed = corpus is not None
        known: dict[str, Passage] = {}
        for passage in _seen(traces) if corpus is None else corpus:
            if passage.text.strip():
                known.setdefault(passage.id, passage)
        self.passages = tuple(known.values())
        self._ids = frozenset(one.id for one in corpus or ())
        self.place = {name: at for at, name in enumerate(known)}
        self._traces = traces

    @cached_property
    def knows_ids(self) -> bool:
        """Whether the corpus holds by id whatever was retrieved; if not, it is another one."""
        return self.listed and all(passage.id in self._ids for passage in _seen(self._traces))

    @cached_property
    def knows_texts(self) -> bool:
        """Whether the corpus holds the text of whatever was retrieved."""
        if not self.listed:
            return False
        folded = set(self._folded)
        return all(
            passage.id in self._ids or fold(passage.text) in folded
            for passage in _seen(self._traces)
        )

    def locate(self, need: Need) -> Find | None:
        """Where the corpus satisfies the need: whole before split over two passages.

        None where it does not, or where no corpus is listed.
        """
        if not self.listed:
            return None
        if need.evidence is None:
            at = self.place.get(need.id)
            return None if at is None else Find(need, at + 1, (self.passages[at],))
        candidates = self._with_a_part_of(fold(need.evidence))
        whole = next((p for p in candidates if satisfies(need, p)), None)
        if whole is not None:
            return Find(need, self.place[whole.id] + 1, (whole,))
        return next(iter(find([need], candidates)), None)

    def lacks(self, need: Need) -> bool:
        """Whether the corpus is known not to hold what is needed.

        A corpus that does not know what the app retrieved cannot say what the app's index lacks.
        """
        if need.evidence is None:
            return self.knows_ids and need.id not in self._ids
        return self.knows_texts and self.locate(need) is None

    @cached_property
    def _folded(self) -> list[str]:
        return [fold(passage.text) for passage in self.passages]

    @cached_property
    def _starts(self) -> list[int]:
        starts = [0]
        for text in self._folded:
            starts.append(starts[-1] + len(text) + len(_BETWEEN))
        return starts

    @cached_property
    def _all(self) -> str:
        """All folded texts: one search in it is a hundred times as fast as one in each."""
        return _BETWEEN.join(self._folded)

    def _with_a_part_of(self, wanted: str) -> list[Passage]:
        """Those with the start of the evidence or its end, as each carrier of a part has."""
        least = min(_TELLING, -(-len(wanted) // 4))
        places: set[int] = set()
        for part in (wanted[:least], wanted[-least:]):
            at = self._all.find(part) if part else -1
            while at >= 0:
                place = bisect_right(self._starts, at) - 1
                places.add(place)
                at = self._all.find(part, self._starts[place + 1])
        return [self.passages[place] for place in sorted(places)]


def _seen(traces: Sequence[Trace]) -> Iterable[Passage]:
    """Every passage of the traces, those found by asking deeper after those retrieved."""
    for trace in traces:
        yield from trace.retrieved
        yield from trace.deeper
