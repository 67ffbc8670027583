"""The cases as data for the page's script: compact JSON in blocks that no browser executes.

The list of the cases stands in one block, what a case holds in chunks that are parsed when the
first case of theirs is opened. Of a run of many cases the worst are here, with the counts of all by
which the filters say how many are elsewhere. What many cases say alike (texts of passages, rows of
verdicts, words beside a passage) is held once, and a case holds its place in a table; a claim that
its answer says word for word has no text of its own. ``search.js`` puts all of it back.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from misslink.report.case_list import CaseList
from misslink.report.cases import CaseEntry
from misslink.report.claims import ClaimRow, PassageRow
from misslink.report.command import quoted
from misslink.report.glossary import ANSWERS, CAUSES, FAILURES, PEOPLE, RETRIEVALS, SUBTYPES
from misslink.report.spans import Piece

if TYPE_CHECKING:
    from markupsafe import Markup

__all__ = ["Block", "blocks"]

_BODIES = 200  # cases in one block, and texts in one block: a few hundred kB to parse at a time
_TEXTS = 400
_VALUES = 300  # of one filter that no case here has; as many as filters.js offers
_RAW = 6_000_000  # characters of raw replies in one page; the run folder holds them all
_NUL = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")


@dataclass(frozen=True)
class Block:
    """The id of a script element and its text, in which nothing ends the element."""

    id: str
    text: Markup


def blocks(cases: CaseList) -> Iterator[Block]:
    """Write `cases` as blocks: the list, what cases share, their bodies in the gold set's order.

    Yields
    ------
    Block
        ``case-list``, ``case-parts``, ``case-texts-0`` and on, ``case-bodies-0`` and on; ids count
        from 0. A body comes after all that it refers to, for a page is read while it loads.
    """
    yield Block("case-list", _json(_listed(cases)))
    in_order = sorted(cases.entries, key=lambda entry: entry.number)
    shared = _Shared(in_order)
    yield Block("case-parts", _json(shared.parts))
    for place, some in enumerate(_chunks(shared.texts, _TEXTS)):
        yield Block(f"case-texts-{place}", _json(some))
    kept = _raws_kept(cases.entries)
    for place, chunk in enumerate(_chunks(in_order, _BODIES)):
        bodies = [_body(entry, shared, raws=entry.number in kept) for entry in chunk]
        yield Block(f"case-bodies-{place}", _json(bodies))


class _Shared:
    """What bodies refer to by its place: parts that occur more than once, and all texts.

    Attributes
    ----------
    parts : tuple
        The most frequent first, for they have the shortest places.
    texts : dict
        Text of a passage to its place.
    """

    def __init__(self, entries: Sequence[CaseEntry]) -> None:
        counts = Counter(part for entry in entries for part in _parts(entry) if part)
        self.parts = tuple(part for part, count in counts.most_common() if count > 1)
        self._places = {part: place for place, part in enumerate(self.parts)}
        texts = (row.text for one in entries for row in (*one.retrieved, *one.missed))
        self.texts = {text: place for place, text in enumerate(dict.fromkeys(filter(None, texts)))}

    def part(self, part: Hashable) -> Any:
        """The place of a part, or the part itself where it occurs once."""
        return self._places.get(part, part)


def _parts(entry: CaseEntry) -> Iterator[Hashable]:
    """What other cases may have as well."""
    yield from entry.verdicts
    yield from entry.evidence
    yield entry.judges
    for claim in entry.claims:
        yield claim.quotes
        yield claim.needed
    for row in (*entry.retrieved, *entry.missed):
        yield row.flags


def _listed(cases: CaseList) -> dict[str, Any]:
    entries = cases.entries
    names = dict.fromkeys(name for one in entries for name in (*one.values, *one.bad))
    metrics = {name: place for place, name in enumerate(names)}
    return {
        "chunk": _BODIES,
        "texts": _TEXTS,
        "causes": {key: words.label for key, words in CAUSES.items()},
        "failures": sorted(FAILURES),
        "retrievals": RETRIEVALS,
        "answers": ANSWERS,
        "subtypes": SUBTYPES,
        "people": PEOPLE,
        "metrics": list(metrics),
        "lower": [name for name in metrics if name in cases.lower_is_better],
        "command": cases.command,
        **(_elsewhere(cases) if cases.partial else {}),
        "rows": [_row(entry, metrics) for entry in entries],
    }


def _elsewhere(cases: CaseList) -> dict[str, Any]:
    """Of how many cases these are the worst, where all are, and how many each filter has of all.

    Values in pairs, for a category may be called as any part of an object is; of a tag with as many
    values as cases the most frequent.
    """
    here = {
        "category": {entry.category for entry in cases.entries},
        "tier": {entry.tier for entry in cases.entries},
        "tag": {tag for entry in cases.entries for tag in entry.tags},
    }
    return {
        "total": cases.total,
        "table": cases.table,
        "all": {
            key: [
                (value, count)
                for place, (value, count) in enumerate(counts.items())
                if place < _VALUES or value in here.get(key, ())
            ]
            for key, counts in cases.counts.items()
        },
    }


def _row(entry: CaseEntry, metrics: Mapping[str, int]) -> dict[str, Any]:
    return _filled(
        number=entry.number,
        id=entry.id,
        question=entry.question,
        cause=entry.cause,
        retrieval=entry.retrieval,
        answer=entry.answered,
        correct=entry.correct,
        subtypes=entry.subtypes,
        category=entry.category,
        tier=entry.tier,
        tags=entry.tags,
        values=[_short(entry.values.get(name)) for name in metrics] if entry.values else None,
        bad=[metrics[name] for name in entry.bad],
        people=entry.people,
        latency=_short(entry.latency_s),
    )


def _body(entry: CaseEntry, shared: _Shared, *, raws: bool) -> dict[str, Any]:
    shell = quoted(entry.id)
    return _filled(
        contributing=entry.contributing,
        reason=entry.reason if entry.contributing or not entry.evidence else "",
        evidence=[shared.part(one) for one in entry.evidence],
        basis=entry.basis,
        replays=entry.replays,
        answer=entry.answer,
        marks=_marks(entry.answer, entry.pieces),
        answer_note=entry.answer_note,
        claims=_claims(entry, shared),
        retrieved=[_passage(row, shared, place) for place, row in enumerate(entry.retrieved, 1)],
        missed=[_passage(row, shared) for row in entry.missed],
        references=entry.references,
        verdicts=[shared.part(one) for one in entry.verdicts],
        judges=shared.part(entry.judges),
        notes=entry.notes,
        error=entry.error,
        raws=entry.raws if raws else None,
        raws_left_out=bool(entry.raws) and not raws,
        shell="" if shell == entry.id else shell,
        unsafe=shell is None,
    )


def _claims(entry: CaseEntry, shared: _Shared) -> list[dict[str, Any]]:
    """Claims, of which one that is marked in the answer in its own words has no text."""
    spans: dict[int, tuple[int, int]] = {}
    for piece in entry.pieces:
        for number in piece.numbers:
            spans[number] = spans.get(number, (piece.start, 0))[0], piece.end
    return [_claim(claim, entry.answer, spans.get(claim.number), shared) for claim in entry.claims]


def _claim(
    claim: ClaimRow, answer: str, span: tuple[int, int] | None, shared: _Shared
) -> dict[str, Any]:
    said = span is not None and answer[span[0] : span[1]] == claim.text
    return _filled(
        text="" if said else claim.text,
        support=claim.support,
        probability=claim.probability,
        unlocated=not claim.located,
        correct=claim.correct,
        note=claim.note,
        quotes=shared.part(claim.quotes),
        needed=shared.part(claim.needed),
    )


def _passage(row: PassageRow, shared: _Shared, place: int = 0) -> dict[str, Any]:
    return _filled(
        id=row.id,
        rank="" if row.rank == str(place) else row.rank,
        score=row.score,
        relevant=row.relevant,
        flags=shared.part(row.flags),
        text=shared.texts[row.text] if row.text else None,
        marks=_marks(row.text, row.pieces),
        details=row.details,
    )


def _marks(text: str, pieces: Sequence[Piece]) -> list[list[Any]]:
    """Pieces as [end, kind, claims, claims that end here], in the units that JavaScript counts.

    Each begins where the one before it ends; what is empty at the end of a list is left out.
    """
    wide = bool(pieces) and not text.isascii() and max(text) > "\uffff"

    def units(end: int) -> int:
        return len(text[:end].encode("utf-16-le", "surrogatepass")) // 2 if wide else end

    found: list[list[Any]] = []
    for piece in pieces:
        end = units(piece.end)
        if piece.ends:
            found.append([end, piece.kind, piece.numbers, piece.ends])
        elif piece.numbers:
            found.append([end, piece.kind, piece.numbers])
        else:
            found.append([end, piece.kind] if piece.kind else [end])
    return found


def _raws_kept(entries: Iterable[CaseEntry]) -> set[int]:
    """The numbers of the cases, the worst first, whose raw replies the page has room for."""
    room, kept = _RAW, set()
    for entry in entries:
        room -= sum(len(raw) for _, raw in entry.raws)
        if room < 0:
            break
        kept.add(entry.number)
    return kept


def _chunks(items: Iterable[Any], size: int) -> Iterator[tuple[Any, ...]]:
    rest = iter(items)
    while chunk := tuple(islice(rest, size)):
        yield chunk


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _filled(**parts: Any) -> dict[str, Any]:
    """Without what is empty; 0 is not."""
    return {name: part for name, part in parts.items() if part or (part == 0 and part is not False)}


def _json(content: Any) -> Markup:
    """JSON that ends no script element and holds nothing a file cannot."""
    from markupsafe import Markup  # comes with jinja2

    text = json.dumps(
        content,
        ensure_ascii=False,
        allow_nan=False,
        separators=(",", ":"),
        default=lambda one: _filled(**vars(one)),
    )
    if "\\u0000" in text:  # rare; as html.py does it elsewhere on the page
        text = _NUL.sub("\\1\N{REPLACEMENT CHARACTER}", text)
    for sign in "<\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)  # noqa: S704 -- no "<" is left in it
