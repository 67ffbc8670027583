"""Which passages satisfy what a case needs: by id, or by carrying the evidence text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from misslink.retrieval.neighbours import may_adjoin
from misslink.text import fold
from misslink.types import Case, Passage

__all__ = [
    "Find",
    "Need",
    "find",
    "needs",
    "relevant_ids",
    "satisfies",
    "split_over",
    "telling_part",
]

_TELLING = 20  # folded characters of an evidence that no other text ends with by chance
_DIVISIBLE = 40  # folded characters under which halves are words that any two texts may share
# Letters and digits of scripts that set blanks between words; the others know no word boundary.
_LETTER = re.compile(
    r"[^\W\u0e00-\u0eff\u1000-\u11ff\u1780-\u17ff\u2e80-\u9fff\uac00-\ud7ff"
    r"\U00020000-\U0003ffff]"
)
_DECIMAL = re.compile(r"\d[.,]\d")


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
    graded above 0, its texts are the needs, of those that fold to the same text the first with the
    best of their grades. Otherwise each set of ``relevant_any`` is an
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
    evidence = _evidence(case)
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

    Evidence is looked for in the passage's text, both folded as ``misslink.text.fold`` does, and
    neither of its ends may lie within a word or a number: 'ten' is not in 'often'.
    """
    if need.evidence is None:
        return passage.id == need.id
    return _has(fold(passage.text), fold(need.evidence))


def split_over(need: Need, passages: Sequence[Passage]) -> tuple[Passage, Passage] | None:
    """The two passages that carry the evidence together, where a chunk boundary cuts it.

    The first ends with the start of the evidence, the second begins with all the rest; they may
    overlap. Each part has 20 folded characters or a quarter of the evidence, so that no chance
    ending counts, and an evidence under 40 is not looked for in parts. Two passages whose ids or
    metadata tell that they do not adjoin in one document are no pair.

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

    What is too short for `split_over` does not tell.
    """
    if need.evidence is None:
        return False
    wanted, text = fold(need.evidence), fold(passage.text)
    return len(wanted) >= _DIVISIBLE and bool(_head(wanted, text) or _tail(wanted, text))


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


def relevant_ids(case: Case, passages: Sequence[Passage]) -> set[str]:
    """Ids of those of the passages that satisfy a need of any alternative.

    Every passage that carries an evidence counts, and both of two that carry it together where
    none carries it whole.
    """
    ids: set[str] = set()
    given = {passage.id for passage in passages}
    for need in (need for alternative in needs(case, passages) for need in alternative):
        if need.evidence is None:
            ids |= given & {need.id}
            continue
        whole = {passage.id for passage in passages if satisfies(need, passage)}
        ids |= whole or {passage.id for passage in split_over(need, passages) or ()}
    return ids


def _evidence(case: Case) -> tuple[Need, ...]:
    found: dict[str, Need] = {}
    for number, (text, grade) in enumerate(case.evidence.items(), start=1):
        folded = fold(text)
        if not folded or grade <= 0:
            continue
        known = found.setdefault(folded, Need(f"evidence-{number}", grade, text))
        if grade > known.grade:
            found[folded] = Need(known.id, grade, known.evidence)
    return tuple(found.values())


def _has(text: str, wanted: str) -> bool:
    """Whether `wanted` is in `text` so that neither end of it cuts a word or a number in two."""
    at = text.find(wanted) if wanted else -1
    while at >= 0:
        if not (_cuts(text, at) or _cuts(text, at + len(wanted))):
            return True
        at = text.find(wanted, at + 1)
    return False


def _cuts(text: str, at: int) -> bool:
    """Whether the place before character `at` lies within a word or a number."""
    before, after = text[max(0, at - 2) : at], text[at : at + 2]
    if _LETTER.match(before[-1:]) and _LETTER.match(after[:1]):
        return True
    around = (before + after[:1], before[-1:] + after)
    return any(_DECIMAL.fullmatch(number) for number in around)


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
    if len(wanted) < _DIVISIBLE:
        return None
    texts = [(at, fold(passage.text)) for at, passage in enumerate(passages, 1)]
    # A passage that has it whole is no half.
    texts = [(at, text) for at, text in texts if not _has(text, wanted)]
    heads = [(at, length) for at, text in texts if (length := _head(wanted, text))]
    if not heads:
        return None
    tails = [(at, length) for at, text in texts if (length := _tail(wanted, text))]
    pairs = [
        (first, second)
        for first, head in heads
        for second, tail in tails
        # Folding trims a blank at the cut away; every other character must be there.
        if first != second
        and head + tail + (wanted[head : head + 1] == " ") >= len(wanted)
        and may_adjoin(passages[first - 1], passages[second - 1])
    ]
    return min(pairs, key=lambda pair: (max(pair), pair), default=None)


def _head(wanted: str, text: str) -> int:
    """Length of the longest telling start of `wanted` that `text` ends with; 0 for none."""
    least = _least(wanted)
    at = text.find(wanted[:least], max(0, len(text) - len(wanted)))
    while at >= 0:
        if wanted.startswith(text[at:]) and not _cuts(text, at):
            return len(text) - at
        at = text.find(wanted[:least], at + 1)
    return 0


def _least(wanted: str) -> int:
    return min(_TELLING, -(-len(wanted) // 4))


def _tail(wanted: str, text: str) -> int:
    """Length of the longest telling end of `wanted` that `text` begins with; 0 for none."""
    lengths = range(min(len(wanted), len(text)), _least(wanted) - 1, -1)
    return next((n for n in lengths if wanted.endswith(text[:n]) and not _cuts(text, n)), 0)
