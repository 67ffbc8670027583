"""Which passages satisfy what a case needs: by id, or by carrying the evidence text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from misslink.text import fold
from misslink.types import Case, Passage

__all__ = [
    "Find",
    "Need",
    "find",
    "found_at",
    "needs",
    "relevant_ids",
    "satisfies",
    "split_over",
    "telling_part",
]

_TELLING = 20  # folded characters of an evidence that no other text ends with by chance


@dataclass(frozen=True)
class Need:
    """One unit of relevance: a passage by its id, or any passage that carries a text.

    Parameters
    ----------
    id : str
        The passage's id, or 'evidence-N', N counting the case's evidence texts from 1.
    grade : int
        1 relevant, 2 highly relevant, and so on.
    evidence : str or None
        The verbatim text to look for. None: the id decides.
    """

    id: str
    grade: int
    evidence: str | None = None


@dataclass(frozen=True)
class Find:
    """Where a need is first satisfied.

    Parameters
    ----------
    need : Need
    rank : int
        Position in the list, from 1; of evidence split over two passages the worse of the two.
    passages : sequence of Passage
        The passage, or the two that carry the evidence together, its start first.
    """

    need: Need
    rank: int
    passages: tuple[Passage, ...]

    @property
    def split(self) -> bool:
        """Whether it took two passages."""
        return len(self.passages) > 1


def needs(case: Case, passages: Sequence[Passage]) -> tuple[tuple[Need, ...], ...]:
    """What the case needs, as alternatives of which each suffices.

    Evidence counts before ids, because it survives re-chunking: where the case gives evidence
    graded above 0, its texts are the needs. Otherwise each set of ``relevant_any`` is an
    alternative (an id without a grade above 0 in ``relevant`` has grade 1), and otherwise the ids
    graded above 0 are.

    Parameters
    ----------
    case : Case
    passages : sequence of Passage
        What was retrieved. Where passages were, but none with a text, evidence cannot be looked
        for, and only ids count.

    Returns
    -------
    tuple of tuples of Need
        Empty where the case needs nothing that could be looked for; no alternative is empty.
    """
    evidence = tuple(
        Need(f"evidence-{number}", grade, text)
        for number, (text, grade) in enumerate(case.evidence.items(), start=1)
        if grade > 0 and fold(text)
    )
    textless = bool(passages) and not any(passage.text for passage in passages)
    if evidence and not textless:
        return (evidence,)
    alternatives = tuple(
        tuple(Need(id_, case.relevant.get(id_) or 1) for id_ in dict.fromkeys(any_of))
        for any_of in case.relevant_any
        if any_of
    )
    if alternatives:
        return alternatives
    listed = tuple(Need(id_, grade) for id_, grade in case.relevant.items() if grade > 0)
    return (listed,) if listed else ()


def satisfies(need: Need, passage: Passage) -> bool:
    """Whether the passage alone satisfies the need.

    Evidence is looked for in the passage's text, both folded as ``misslink.text.fold`` does.
    """
    if need.evidence is None:
        return passage.id == need.id
    wanted = fold(need.evidence)
    return bool(wanted) and wanted in fold(passage.text)


def split_over(need: Need, passages: Sequence[Passage]) -> tuple[Passage, Passage] | None:
    """The two passages that carry the evidence together, where a chunk boundary cuts it.

    The first ends with the start of the evidence (20 folded characters or a quarter of it, so
    that no chance ending counts), the second begins with all the rest; they may overlap.

    Parameters
    ----------
    need : Need
    passages : sequence of Passage
        In any order; the pair whose worse position is best is returned, its start first.

    Returns
    -------
    pair of Passage or None
        None where no two do, and for a need by id.
    """
    pair = _pair(need, passages)
    return (passages[pair[0] - 1], passages[pair[1] - 1]) if pair else None


def telling_part(need: Need, passage: Passage) -> bool:
    """Whether the passage ends with the start of the evidence, or begins with its end.

    Parts under 20 folded characters (or a quarter of a shorter evidence) do not tell.
    """
    if need.evidence is None:
        return False
    wanted, text = fold(need.evidence), fold(passage.text)
    return bool(_head(wanted, text)) or _tail(wanted, text) >= _least(wanted)


def find(wanted: Sequence[Need], passages: Sequence[Passage]) -> tuple[Find, ...]:
    """Where each need is first satisfied; a need that is nowhere is left out.

    Parameters
    ----------
    wanted : sequence of Need
        One alternative of `needs`.
    passages : sequence of Passage
        Best first; of passages with the same id the first counts.

    Returns
    -------
    tuple of Find
        In the order of the needs.
    """
    by_id: dict[str, int] = {}
    for at, passage in enumerate(passages, start=1):
        by_id.setdefault(passage.id, at)
    finds = (_find(need, passages, by_id) for need in wanted)
    return tuple(found for found in finds if found)


def found_at(case: Case, passages: Sequence[Passage]) -> tuple[dict[str, int], ...]:
    """For each alternative of the case, the rank at which each need is first satisfied.

    Parameters
    ----------
    case : Case
    passages : sequence of Passage
        Best first.

    Returns
    -------
    tuple of dict
        Need id to position from 1; needs that are not satisfied are left out. Empty where the
        case needs nothing.
    """
    return tuple(
        {found.need.id: found.rank for found in find(alternative, passages)}
        for alternative in needs(case, passages)
    )


def relevant_ids(case: Case, passages: Sequence[Passage]) -> set[str]:
    """Ids of those of the passages that satisfy a need of any alternative.

    Every passage that carries an evidence counts, and both of two that carry it together where
    none carries it whole.
    """
    ids: set[str] = set()
    for need in (need for alternative in needs(case, passages) for need in alternative):
        whole = {passage.id for passage in passages if satisfies(need, passage)}
        ids |= whole or {passage.id for passage in split_over(need, passages) or ()}
    return ids


def _find(need: Need, passages: Sequence[Passage], by_id: dict[str, int]) -> Find | None:
    if need.evidence is None:
        at = by_id.get(need.id)
        return None if at is None else Find(need, at, (passages[at - 1],))
    whole = next((at for at, p in enumerate(passages, start=1) if satisfies(need, p)), None)
    # Two halves further up make the evidence readable before the passage that has it whole.
    pair = _pair(need, passages if whole is None else passages[: whole - 1])
    if pair:
        return Find(need, max(pair), (passages[pair[0] - 1], passages[pair[1] - 1]))
    return None if whole is None else Find(need, whole, (passages[whole - 1],))


def _pair(need: Need, passages: Sequence[Passage]) -> tuple[int, int] | None:
    """Positions, from 1, of the passage with the start of the evidence and of that with the end."""
    if need.evidence is None:
        return None
    wanted = fold(need.evidence)
    texts = [fold(passage.text) for passage in passages]
    # A passage that has it whole is no half.
    heads = [(at, _head(wanted, text)) for at, text in enumerate(texts, 1) if wanted not in text]
    heads = [(at, length) for at, length in heads if length]
    if not heads:
        return None
    tails = [(at, _tail(wanted, text)) for at, text in enumerate(texts, 1) if wanted not in text]
    pairs = [
        (first, second)
        for first, head in heads
        for second, tail in tails
        # Folding trims a blank at the cut away; every other character must be there.
        if first != second and tail and head + tail + (wanted[head] == " ") >= len(wanted)
    ]
    return min(pairs, key=lambda pair: (max(pair), pair), default=None)


def _head(wanted: str, text: str) -> int:
    """Length of the longest telling start of `wanted` that `text` ends with; 0 for none."""
    least = _least(wanted)
    at = text.find(wanted[:least], max(0, len(text) - len(wanted)))
    while at >= 0:
        if wanted.startswith(text[at:]):
            return len(text) - at
        at = text.find(wanted[:least], at + 1)
    return 0


def _least(wanted: str) -> int:
    return min(_TELLING, -(-len(wanted) // 4))


def _tail(wanted: str, text: str) -> int:
    """Length of the longest end of `wanted` that `text` begins with; 0 for none."""
    longest = min(len(wanted), len(text))
    return next((n for n in range(longest, 0, -1) if wanted.endswith(text[:n])), 0)
