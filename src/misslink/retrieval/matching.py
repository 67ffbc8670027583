"""Match passages to what a case needs, by id or by evidence text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from misslink.text.normalization import fold
from misslink.types import Case, Passage

_DOCUMENT_FIELDS = ("source", "document_id", "file_path", "file_name", "filename")
_START_FIELD = "start_index"  # a character offset, where LangChain's splitters are asked for it
_NUMBER_FIELDS = ("chunk", "chunk_index", "chunk_id", "chunk_number", "chunk_no", "seq_num")
# 'compound#12', 'guide.pdf:6:2'; more digits than these are a hash or a part of a UUID.
_NUMBERED_ID = re.compile(r"(.*?)((?:[#:_/|-]\d{1,6})+)", re.DOTALL)
_MAX_CHUNK_DISTANCE = 2  # chunks that overlap by half share text with the next but one
_MAX_TRIMMED_CHARACTERS = (
    40  # characters of blank that a splitter may have dropped between two chunks
)


def can_be_adjacent(first: Passage, second: Passage) -> bool:
    """Return whether the text of `second` can continue or overlap the end of `first`.

    Examples
    --------
    >>> one, next_, other = (Passage(id=i, rank=1) for i in ("a#12", "a#13", "b#13"))
    >>> can_be_adjacent(one, next_), can_be_adjacent(next_, one), can_be_adjacent(one, other)
    (True, False, False)
    """
    documents = ((first.metadata.get(key), second.metadata.get(key)) for key in _DOCUMENT_FIELDS)
    known = next((pair for pair in documents if None not in pair), None)
    if known is not None and known[0] != known[1]:
        return False
    first_id, second_id = _split_id(first.id), _split_id(second.id)
    if first_id is not None and second_id is not None:
        if first_id[0] == second_id[0]:
            if first_id[1][:-1] == second_id[1][:-1] and not _is_near(
                first_id[1][-1], second_id[1][-1]
            ):
                return False
        elif known is None:
            return False
    return _positions_fit(first, second)


def _split_id(name: str) -> tuple[str, list[int]] | None:
    """What an id begins with, and the numbers it ends with; None for an id of another kind."""
    match = _NUMBERED_ID.fullmatch(name)
    if match is None or not match[1]:
        return None
    return match[1], [int(number) for number in re.findall(r"\d+", match[2])]


def _positions_fit(first: Passage, second: Passage) -> bool:
    keys = first.metadata.keys() | second.metadata.keys()
    other_keys = keys - {_START_FIELD, *_NUMBER_FIELDS}
    if any(first.metadata.get(key) != second.metadata.get(key) for key in other_keys):
        return True
    start, end = _integer_field(first, _START_FIELD), _integer_field(second, _START_FIELD)
    if start is not None and end is not None:
        return start < end <= start + len(first.text) + _MAX_TRIMMED_CHARACTERS
    for key in _NUMBER_FIELDS:
        start, end = _integer_field(first, key), _integer_field(second, key)
        if start is not None and end is not None:
            return _is_near(start, end)
    return True


def _integer_field(passage: Passage, key: str) -> int | None:
    value = passage.metadata.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _is_near(first: int, second: int) -> bool:
    return 0 < second - first <= _MAX_CHUNK_DISTANCE


_MIN_PART_CHARACTERS = 20  # folded characters of an evidence that no other text ends with by chance
_MIN_SPLIT_CHARACTERS = (
    40  # folded characters under which halves are words that any two texts may share
)
# Letters and digits of scripts that set blanks between words; the others know no word boundary.
_WORD_CHARACTER = re.compile(
    r"[^\W\u0e00-\u0eff\u1000-\u11ff\u1780-\u17ff\u2e80-\u9fff\uac00-\ud7ff"
    r"\U00020000-\U0003ffff]"
)
_DECIMAL_NUMBER = re.compile(r"\d[.,]\d")


@dataclass(frozen=True)
class LabelledNeed:
    """One unit of relevance: a passage by its id, or any passage that carries a text.

    Parameters
    ----------
    id : str
        The passage's id, or 'evidence-N', N counting the case's evidence texts from 1.
    grade : int
        1 relevant, 2 highly relevant, and so on.
    evidence : str or None
        The verbatim text to look for. None: the id decides.
    document : str or None
        The document that has the text as a span. Its chunks are joined wherever they are cut.
    """

    id: str
    grade: int
    evidence: str | None = None
    document: str | None = None


@dataclass(frozen=True)
class NeedMatch:
    """Where a need is first satisfied.

    Parameters
    ----------
    need : LabelledNeed
    rank : int
        Position in the list, from 1; of evidence split over several passages the worst of them.
    passages : sequence of Passage
        The passage, or those that carry the evidence together, its start first.
    """

    need: LabelledNeed
    rank: int
    passages: tuple[Passage, ...]

    @property
    def split(self) -> bool:
        """Whether it took several passages."""
        return len(self.passages) > 1


def case_needs(case: Case, passages: Sequence[Passage]) -> tuple[tuple[LabelledNeed, ...], ...]:
    """Return the needs of a case as alternatives; each is sufficient.

    Evidence counts before ids, because it survives re-chunking: where the case gives evidence
    graded above 0, its texts are the needs, of those that fold to the same text the first with the
    best of their grades; spans of each ``alternative`` are an alternative. Otherwise each set of ``relevant_any`` is an
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
    tuple of tuples of LabelledNeed
        Empty where the case needs nothing that could be looked for; no alternative is empty.
    """
    evidence = _span_needs(case) or _evidence_needs(case)
    if evidence and (not passages or any(passage.text for passage in passages)):
        return evidence
    alternatives = tuple(
        tuple(LabelledNeed(id_, case.relevant.get(id_) or 1) for id_ in dict.fromkeys(any_of))
        for any_of in case.relevant_any
        if any_of
    )
    if alternatives:
        return alternatives
    listed = tuple(LabelledNeed(id_, grade) for id_, grade in case.relevant.items() if grade > 0)
    return (listed,) if listed else ()


def satisfies(need: LabelledNeed, passage: Passage) -> bool:
    """Whether the passage alone satisfies the need.

    Evidence is looked for in the passage's text, both folded as ``misslink.text.normalization.fold`` does, and
    neither of its ends may lie within a word or a number: 'ten' is not in 'often'. A span under 40
    folded characters is not looked for in a passage that names another document.
    """
    if need.evidence is None:
        return passage.id == need.id
    return _contains(fold(passage.text), fold(need.evidence)) and not (
        is_short(need) and is_of_document(passage, need.document) is False
    )


def is_short(need: LabelledNeed) -> bool:
    """Return whether texts of other documents may have the same words by chance."""
    return len(fold(need.evidence or "")) < _MIN_SPLIT_CHARACTERS


def passage_need(passage: Passage) -> LabelledNeed:
    """Return the need for the text of a passage, wherever its document has it."""
    return LabelledNeed(passage.id, 1, passage.text, document_of(passage))


def document_of(passage: Passage) -> str | None:
    """Return the document that a passage names in its metadata or its id."""
    named = next(
        (passage.metadata[key] for key in _DOCUMENT_FIELDS if key in passage.metadata), None
    )
    parts = _split_id(passage.id)
    return named if isinstance(named, str) else parts and parts[0]


def is_of_document(passage: Passage, document: str | None) -> bool | None:
    """Return whether a passage names this document as its own; None if it names none.

    >>> is_of_document(Passage(id="c1", rank=1, metadata={"source": "docs/a.md"}), "a.md")
    True
    """
    if document is None:
        return None
    named = next(
        (passage.metadata[key] for key in _DOCUMENT_FIELDS if key in passage.metadata), None
    )
    if isinstance(named, str):
        return f"/{named}".endswith(f"/{document}") or f"/{document}".endswith(f"/{named}")
    return True if document in (passage.id, document_of(passage)) else None


def find_split(
    need: LabelledNeed, passages: Sequence[Passage], *, ordered: bool = False
) -> tuple[Passage, ...] | None:
    """The passages that carry the evidence together, where chunk boundaries cut it.

    The first ends with the start of the evidence, the last begins with its end, and those between
    are parts of it; they may overlap. Each part has 20 folded characters or a quarter of the
    evidence, so that no chance ending counts, and an evidence under 40 is not looked for in parts;
    in passages that name the document of a span, a part of any length counts. Passages whose ids
    or metadata tell that they do not adjoin in one document are no neighbors.

    Parameters
    ----------
    need : LabelledNeed
    passages : sequence of Passage
        Best first: those whose worst position is best are returned, the start first.
    ordered : bool
        Whether they are in an index's order: then those nearest to each other are returned.

    Returns
    -------
    tuple of Passage or None
        None where none do, and for a need by id.
    """
    chain = _find_chain(need, passages, _distance if ordered else _worst_first)
    return tuple(passages[rank - 1] for rank in chain) if chain else None


def has_evidence_part(need: LabelledNeed, passage: Passage) -> bool:
    """Whether the passage ends with the start of the evidence, or begins with its end.

    What is too short for `split_over` does not tell.
    """
    if need.evidence is None:
        return False
    evidence, text = fold(need.evidence), fold(passage.text)
    least = _min_part_length(evidence)
    return len(evidence) >= _MIN_SPLIT_CHARACTERS and bool(
        _start_length(evidence, text, least) or _end_length(evidence, text, least)
    )


def match_needs(
    needs: Sequence[LabelledNeed], passages: Sequence[Passage]
) -> tuple[NeedMatch, ...]:
    """Where each need is first satisfied; a need that is nowhere is left out.

    Parameters
    ----------
    needs : sequence of LabelledNeed
        One alternative of a case.
    passages : sequence of Passage
        Best first; of passages with the same id the first counts.

    Returns
    -------
    tuple of NeedMatch
        In the order of the needs.
    """
    by_id: dict[str, int] = {}
    for rank, passage in enumerate(passages, start=1):
        by_id.setdefault(passage.id, rank)
    matches = []
    for need in needs:
        chain = None
        if need.evidence is None:
            place = by_id.get(need.id)
        else:
            ranked = enumerate(passages, start=1)
            place = next((rank for rank, passage in ranked if satisfies(need, passage)), None)
            # Parts further up make the evidence readable before the passage that has it whole.
            chain = _find_chain(need, passages if place is None else passages[: place - 1])
        if chain:
            parts = tuple(passages[rank - 1] for rank in chain)
            matches.append(NeedMatch(need, max(chain), parts))
        elif place is not None:
            matches.append(NeedMatch(need, place, (passages[place - 1],)))
    return tuple(matches)


def relevant_ids(case: Case, passages: Sequence[Passage]) -> set[str]:
    """Ids of those of the passages that satisfy a need of any alternative.

    Every passage that carries an evidence counts, and all that carry it together where none
    carries it whole.
    """
    ids: set[str] = set()
    given = {passage.id for passage in passages}
    for need in (need for alternative in case_needs(case, passages) for need in alternative):
        if need.evidence is None:
            ids |= given & {need.id}
            continue
        whole = {passage.id for passage in passages if satisfies(need, passage)}
        ids |= whole or {passage.id for passage in find_split(need, passages) or ()}
    return ids


def _span_needs(case: Case) -> tuple[tuple[LabelledNeed, ...], ...]:
    """One alternative for each number of ``alternative``."""
    sets: dict[int, list[LabelledNeed]] = {}
    for number, span in enumerate(case.spans, start=1):
        if span.grade > 0 and fold(span.quote):
            need = LabelledNeed(f"evidence-{number}", span.grade, span.quote, span.id)
            sets.setdefault(span.alternative, []).append(need)
    return tuple(map(tuple, sets.values()))


def _evidence_needs(case: Case) -> tuple[tuple[LabelledNeed, ...], ...]:
    needs: dict[str, LabelledNeed] = {}
    for number, (text, grade) in enumerate(case.evidence.items(), start=1):
        folded = fold(text)
        if not folded or grade <= 0:
            continue
        first = needs.setdefault(folded, LabelledNeed(f"evidence-{number}", grade, text))
        if grade > first.grade:
            needs[folded] = LabelledNeed(first.id, grade, first.evidence)
    return (tuple(needs.values()),) if needs else ()


def _contains(text: str, part: str) -> bool:
    """Whether `wanted` is in `text` so that neither end of it cuts a word or a number in two."""
    index = text.find(part) if part else -1
    while index >= 0:
        if not (_splits_word(text, index) or _splits_word(text, index + len(part))):
            return True
        index = text.find(part, index + 1)
    return False


def _splits_word(text: str, index: int) -> bool:
    """Whether the place before character `at` lies within a word or a number."""
    before, after = text[max(0, index - 2) : index], text[index : index + 2]
    if _WORD_CHARACTER.match(before[-1:]) and _WORD_CHARACTER.match(after[:1]):
        return True
    around = (before + after[:1], before[-1:] + after)
    return any(_DECIMAL_NUMBER.fullmatch(number) for number in around)


def _find_chain(
    need: LabelledNeed,
    passages: Sequence[Passage],
    cost: Callable[[tuple[int, ...]], tuple[int, tuple[int, ...]]] | None = None,
) -> tuple[int, ...] | None:
    """Positions, from 1, of the passages whose parts make up the evidence, in its order."""
    if need.evidence is None:
        return None
    cost = cost or _worst_first
    evidence = fold(need.evidence)
    parts = sorted(
        (start, end, rank)
        for rank, passage in enumerate(passages, start=1)
        for start, end in _evidence_parts(need, evidence, passage)
    )
    ways: list[tuple[int, ...] | None] = []
    for number, (start, _, rank) in enumerate(parts):
        before = [
            (*way, rank)
            for (_, end, other), way in zip(parts[:number], ways, strict=True)
            if way is not None
            and rank not in way
            # Folding trims a blank at the cut away; every other character must be there.
            and start <= end + (evidence[end : end + 1] == " ")
            and can_be_adjacent(passages[other - 1], passages[rank - 1])
        ]
        ways.append(min(before, key=cost, default=None) if start else (rank,))
    ends = (way for (_, end, _), way in zip(parts, ways, strict=True) if end == len(evidence))
    return min((way for way in ends if way is not None), key=cost, default=None)


def _worst_first(ranks: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    return max(ranks), ranks


def _distance(ranks: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    return sum(abs(after - before) for before, after in pairwise(ranks)), ranks


def _evidence_parts(
    need: LabelledNeed, evidence: str, passage: Passage
) -> Iterator[tuple[int, int]]:
    """The stretches of the evidence that a passage without all of it has at an end, or is."""
    own = is_of_document(passage, need.document)
    if (len(evidence) < _MIN_SPLIT_CHARACTERS and not own) or _contains(
        text := fold(passage.text), evidence
    ):
        return
    least = 1 if own else _min_part_length(evidence)
    if head := _start_length(evidence, text, least):
        yield 0, head
    if tail := _end_length(evidence, text, least):
        yield len(evidence) - tail, len(evidence)
    start = evidence.find(text, 1) if len(text) >= least else -1
    while 0 < start < len(evidence) - len(text):
        yield start, start + len(text)
        start = evidence.find(text, start + 1)


def _start_length(evidence: str, text: str, least: int) -> int:
    """Length of the longest start of the evidence, of `least` or more, that `text` ends with."""
    index = text.find(evidence[:least], max(0, len(text) - len(evidence)))
    while index >= 0:
        if evidence.startswith(text[index:]) and not _splits_word(text, index):
            return len(text) - index
        index = text.find(evidence[:least], index + 1)
    return 0


def _min_part_length(evidence: str) -> int:
    return min(_MIN_PART_CHARACTERS, -(-len(evidence) // 4))


def _end_length(evidence: str, text: str, least: int) -> int:
    """Length of the longest end of the evidence, of `least` or more, that `text` begins with."""
    if len(text) < least:
        return 0
    index = evidence.find(text[:least], max(0, len(evidence) - len(text)))
    while index >= 0:
        length = len(evidence) - index
        if text.startswith(evidence[index:]) and not _splits_word(text, length):
            return length
        index = evidence.find(text[:least], index + 1)
    return 0
