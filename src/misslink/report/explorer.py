"""The list of cases on the page and its data as JSON blocks."""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, unquote

from pydantic_core import PydanticSerializationError, to_json

from misslink.comparison.run_metrics import LINK_STATES
from misslink.documents import cutoff_of, manifest_of, summary_of
from misslink.failure_modes import FAILURE_MODES, FAILURES, OWNERS
from misslink.parts import case_ids, select_items
from misslink.render.miss_sentences import MISS_LABELS
from misslink.render.need_sentences import ARRIVED, STAGE_OWNERS
from misslink.report.cases import (
    ORDER_RULE,
    CaseBody,
    CaseEntry,
    CaseRow,
    build_case_entries,
    cases_per_mode,
    page_size,
)
from misslink.report.claims import PassageRow, TextPiece
from misslink.report.glossary import ANSWERS, PEOPLE, RETRIEVALS
from misslink.report.human_labels import read_human_labels
from misslink.report.links import CORRECT_VALUES, CaseCommand, build_case_command, quote_case_id
from misslink.types import Run

if TYPE_CHECKING:
    from markupsafe import Markup


def count_facets(run: Run) -> dict[str, dict[str, int]]:
    """Count the cases of `run` by filter and value.

    Parameters
    ----------
    run : Run
        Any; of one without cases every filter has no value.

    Returns
    -------
    dict of str to dict of str to int
        By filter (as `misslink.report.links.FILTERS` calls those that choose a value), the most
        frequent value first; a case counts once for each of its values, and for none where it has
        none.
    """
    ids = set(case_ids(run.cases))
    links = [link for link in run.outcomes if link.case_id in ids]
    bad = {(row.case_id, row.metric) for row in run.scores if row.label is False}
    failed = {link.case_id for link in links if link.failed}
    stages, kinds, categories, tiers, tags = (Counter[str | None]() for _ in range(5))
    for link in select_items(run.links, ids):
        stages.update({need.lost_at or ARRIVED for need in link.needs})
        kinds.update({row.kind for row in link.missed})
    for case in run.cases:
        categories[case.category] += 1
        tiers[case.tier] += 1
        tags.update(f"{name}:{tag}" for name, tag in case.tags.items())
    return {
        "state": _sorted_counts(LINK_STATES[link.failed] for link in links if link.failure),
        "owner": _sorted_counts(link.owner for link in links if link.case_id in failed),
        "failure": _sorted_counts(link.failure for link in links),
        "retrieval": _sorted_counts(link.retrieval for link in links),
        "answer": _sorted_counts(link.answer for link in links),
        "correct": _sorted_counts(CORRECT_VALUES[link.correct] for link in links),
        "lost_at": _sorted_counts(stages),
        "miss_type": _sorted_counts(kinds),
        "category": _sorted_counts(categories),
        "tier": _sorted_counts(tiers),
        "tag": _sorted_counts(tags),
        "metric": _sorted_counts(metric for case_id, metric in sorted(bad) if case_id in ids),
        "people": _sorted_counts(_label_agreement(run, ids)),
    }


def _label_agreement(run: Run, ids: set[str]) -> Iterator[str]:
    """How the judge's calls stand to those of people, each once a case."""
    for case_id, labels in read_human_labels(run).items():
        if case_id in ids:
            yield from {label.stands for label in labels.values()}


def _sorted_counts(values: Iterable[str | None]) -> dict[str, int]:
    """The most frequent first, of equals in the order of the alphabet."""
    counts = [(value, count) for value, count in Counter(values).items() if value]
    return dict(sorted(counts, key=lambda item: (-item[1], item[0])))


@dataclass(frozen=True)
class CaseList:
    """The worst cases in full, and what the page needs to know about the other cases.

    ``total``, ``failed`` and ``ids`` cover all cases. On a partial list ``counts`` has the number
    of cases by filter and value, and ``table`` the relative address of the file with all cases, or
    "".
    """

    entries: tuple[CaseEntry, ...]
    total: int
    failed: int
    ids: tuple[str, ...]
    k: int
    counts: Mapping[str, Mapping[str, int]]
    table: str
    lower_is_better: tuple[str, ...]
    command: CaseCommand

    @property
    def partial(self) -> bool:
        """Whether the run has more cases than are here."""
        return len(self.entries) < self.total

    @property
    def rule(self) -> str:
        """What the worst are, in words."""
        per_mode = cases_per_mode(len(self.entries))
        return (
            f"{ORDER_RULE}. At least the worst {per_mode:,} of each failure mode are here"
            if per_mode
            else ORDER_RULE
        )

    @property
    def table_name(self) -> str:
        """What the file is called."""
        return unquote(self.table, errors="replace")


def build_case_list(run: Run, *, most: int | None = None, table: str = "") -> CaseList:
    """Collect the cases of `run`; one without cases has none.

    Parameters
    ----------
    run : Run
    most : int or None
        How many of them, the worst, 0 or more. None: as `misslink.report.cases` has it.
    table : str
        The name of the file with all cases beside the page; "" where there is none.
    """
    total = len(run.cases)
    most = page_size(total) if most is None else most
    return CaseList(
        entries=build_case_entries(run, cutoff_of(run), most),
        total=total,
        failed=_count_failed(run),
        ids=tuple(case_ids(run.cases)),
        k=cutoff_of(run),
        counts=count_facets(run) if most < total else {},
        table=quote(os.fsencode(table), safe=""),
        lower_is_better=summary_of(run).lower_is_better,
        command=build_case_command(manifest_of(run), summary_of(run).run or ""),
    )


def _count_failed(run: Run) -> int:
    """How many cases are to be looked at: those that a link speaks of, and does not call fine."""
    ids = set(case_ids(run.cases))
    failures = {link.case_id: link.failure for link in run.outcomes if link.case_id in ids}
    return sum(failure != "passed" for failure in failures.values())


_BODIES_PER_BLOCK = (
    200  # cases in one block, and texts in one block: a few hundred kB to parse at a time
)
_TEXTS_PER_BLOCK = 400
_MIN_COMPRESSED = 100_000  # characters; smaller blocks can be read in the file
_VALUES_PER_BLOCK = 300  # of one filter that no case here has; as many as filters.js offers
_MAX_RAW_CHARACTERS = (
    6_000_000  # characters of raw replies in one page; the run folder holds them all
)
_UNSHARED = ("also", "needs", "calls", "history", "standalone")  # views that no other case has
_ROW_NAMES = tuple(field.name for field in fields(CaseRow))
_BODY_NAMES = tuple(field.name for field in fields(CaseBody))
_NUL = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")


class DataBlock(NamedTuple):
    """The id and type of a script element and its text, in which nothing ends the element."""

    id: str
    type: str
    text: Markup


def build_blocks(cases: CaseList) -> Iterator[DataBlock]:
    """Yield `cases` as blocks: the list, what cases share, their bodies in the gold set's order.

    These are ``case-list``, ``case-parts``, ``case-texts-0`` and on, ``case-bodies-0`` and on; ids
    count from 0. Large blocks after the list are compressed.
    """
    yield DataBlock("case-list", "application/json", _safe_json(_list_data(cases)))
    in_order = sorted(cases.entries, key=lambda entry: entry.number)
    shared = _SharedValues(in_order)
    yield _block("case-parts", shared.parts)
    for place, some in enumerate(_chunks(shared.texts, _TEXTS_PER_BLOCK)):
        yield _block(f"case-texts-{place}", some)
    with_raw = _cases_with_raw(cases.entries)
    for place, chunk in enumerate(_chunks(in_order, _BODIES_PER_BLOCK)):
        bodies = [_case_body(entry, shared, raws=entry.number in with_raw) for entry in chunk]
        yield _block(f"case-bodies-{place}", bodies)


def _block(name: str, content: Any) -> DataBlock:
    from markupsafe import Markup  # comes with jinja2

    text = _safe_json(content)
    if len(text) < _MIN_COMPRESSED:
        return DataBlock(name, "application/json", text)
    packed = base64.b64encode(gzip.compress(text.encode("utf-8", "replace"), 6, mtime=0)).decode()
    return DataBlock(name, "application/gzip", Markup(packed))  # noqa: S704 -- base64


class _SharedValues:
    """What bodies refer to by its place: parts that occur more than once, and all texts.

    Attributes
    ----------
    parts : list
        The most frequent first, for they have the shortest places.
    texts : dict
        Text of a passage to its place.
    """

    def __init__(self, entries: Sequence[CaseEntry]) -> None:
        counts = Counter(part for entry in entries for part in _shareable_parts(entry) if part)
        parts = [part for part, count in counts.most_common() if count > 1]
        self._places = {part: place for place, part in enumerate(parts)}
        self.parts = _plain(parts)
        texts = (row.text for entry in entries for row in (*entry.retrieved, *entry.missed))
        self.texts = {text: place for place, text in enumerate(dict.fromkeys(filter(None, texts)))}

    def part(self, part: Hashable) -> Any:
        """The place of a part, or the part itself where it occurs once."""
        return _plain(part) if (place := self._places.get(part)) is None else place


def _shareable_parts(entry: CaseEntry) -> Iterator[Hashable]:
    """What other cases may have as well."""
    yield from entry.verdicts
    yield entry.judges
    yield entry.fix
    for claim in entry.claims:
        yield claim.quotes
        yield claim.needed
    for row in (*entry.retrieved, *entry.missed):
        yield row.flags


def _list_data(cases: CaseList) -> dict[str, object]:
    entries = cases.entries
    names = dict.fromkeys(name for entry in entries for name in (*entry.values, *entry.bad))
    metrics = {name: place for place, name in enumerate(names)}
    return {
        "chunk": _BODIES_PER_BLOCK,
        "texts": _TEXTS_PER_BLOCK,
        "failure_modes": {key: words.label for key, words in FAILURE_MODES.items()},
        "failures": sorted(FAILURES),
        "owners": {key: words.owner for key, words in FAILURE_MODES.items()},
        "owner_names": {owner: owner.replace("_", " ") for owner in OWNERS},
        "k": cases.k,
        "retrievals": RETRIEVALS,
        "answers": ANSWERS,
        "stages": {stage: stage for stage in (*STAGE_OWNERS, ARRIVED)},
        "stage_owners": STAGE_OWNERS,
        "miss_types": MISS_LABELS,
        "people": PEOPLE,
        "metrics": list(metrics),
        "lower": [name for name in metrics if name in cases.lower_is_better],
        "command": _plain(cases.command),
        **(_partial_list_data(cases) if cases.partial else {}),
        "rows": [_list_row(entry, metrics) for entry in entries],
    }


def _partial_list_data(cases: CaseList) -> dict[str, object]:
    """Of how many cases these are the worst, where all are, and how many each filter has of all.

    Values in pairs, for a category may be called as any part of an object is; of a tag with as many
    values as cases the most frequent.
    """
    present = {
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
                if place < _VALUES_PER_BLOCK or value in present.get(key, ())
            ]
            for key, counts in cases.counts.items()
        },
    }


def _list_row(entry: CaseEntry, metrics: Mapping[str, int]) -> dict[str, object]:
    """The names of `CaseRow`; a metric is named by its place."""
    values = [_round_value(entry.values.get(name)) for name in metrics] if entry.values else None
    bad, latency = [metrics[name] for name in entry.bad], _round_value(entry.latency_s)
    own = {"values": values, "bad": bad, "latency_s": latency}
    parts = vars(entry)
    return _without_empty({**{name: parts[name] for name in _ROW_NAMES}, **own})


def _prompt_data(entry: CaseEntry, shared: _SharedValues) -> list[str | int]:
    """The prompt in pieces; the text of a passage is its place among the shared texts."""
    pieces: list[str | int] = [entry.prompt]
    texts = {row.text for row in entry.retrieved if row.text and row.text in entry.prompt}
    for text in sorted(texts, key=len, reverse=True):  # a pattern of all takes longer to compile
        rests = pieces
        pieces = []
        for rest in rests:
            parts = rest.split(text) if isinstance(rest, str) else [rest]
            for part in parts[:-1]:
                pieces += [part, shared.texts.get(text, text)]
            pieces.append(parts[-1])
    return [piece for piece in pieces if piece != ""]


def _case_body(entry: CaseEntry, shared: _SharedValues, *, raws: bool) -> dict[str, object]:
    """The names of `CaseBody`, and what is shared by its place."""
    shell = quote_case_id(entry.id)
    own = {
        "fix": shared.part(entry.fix) if entry.fix else None,
        "marks": _mark_offsets(entry.answer, entry.marks),
        "claims": _claim_data(entry, shared),
        "retrieved": [_passage_data(row, shared, n) for n, row in enumerate(entry.retrieved, 1)],
        "missed": [_passage_data(row, shared) for row in entry.missed],
        "prompt": _prompt_data(entry, shared),
        "verdicts": [shared.part(part) for part in entry.verdicts],
        "judges": shared.part(entry.judges),
        "raws": _plain(entry.raws) if raws else None,
        **{name: _plain(getattr(entry, name)) for name in _UNSHARED},
        "raws_left_out": bool(entry.raws) and not raws,
        "shell": "" if shell == entry.id else shell,
        "unsafe": shell is None,
    }
    parts = vars(entry)
    return _without_empty({**{name: parts[name] for name in _BODY_NAMES}, **own})


def _claim_data(entry: CaseEntry, shared: _SharedValues) -> list[dict[str, Any]]:
    """Return the claims; a claim that is marked verbatim in the answer has no text."""
    spans: dict[int, tuple[int, int]] = {}
    for piece in entry.marks:
        for number in piece.claims:
            spans[number] = spans.get(number, (piece.start, 0))[0], piece.end
    claims = []
    for claim in entry.claims:
        span = spans.get(claim.number)
        is_quoted = span is not None and entry.answer[span[0] : span[1]] == claim.text
        own = {"number": None, "text": "" if is_quoted else claim.text}
        own |= {"quotes": shared.part(claim.quotes), "needed": shared.part(claim.needed)}
        claims.append(_without_empty({**vars(claim), **own}))
    return claims


def _passage_data(row: PassageRow, shared: _SharedValues, place: int = 0) -> dict[str, object]:
    own = {
        "rank": "" if row.rank == str(place) else row.rank,
        "flags": shared.part(row.flags),
        "text": shared.texts[row.text] if row.text else None,
        "marks": _mark_offsets(row.text, row.marks),
        "ranks": {search: rank for search, rank in row.ranks.items() if rank},
    }
    return _without_empty({**vars(row), **own})


def _mark_offsets(text: str, pieces: Sequence[TextPiece]) -> list[dict[str, Any]]:
    """Where each piece ends, in the units that JavaScript counts; it begins where the last one ends."""
    wide = bool(pieces) and not text.isascii() and max(text) > "\uffff"

    def units(end: int) -> int:
        return len(text[:end].encode("utf-16-le", "surrogatepass")) // 2 if wide else end

    return [
        _without_empty({"end": units(end), "kind": kind, "claims": claims, "ends": ends})
        if kind
        else {"end": units(end)}
        for _, end, kind, claims, ends in pieces
    ]


def _cases_with_raw(entries: Iterable[CaseEntry]) -> set[int]:
    """The numbers of the cases, the worst first, whose raw replies the page has room for."""
    room, numbers = _MAX_RAW_CHARACTERS, set()
    for entry in entries:
        room -= sum(len(raw.text) for raw in entry.raws)
        if room < 0:
            break
        numbers.add(entry.number)
    return numbers


def _chunks(items: Iterable[Any], size: int) -> Iterator[tuple[Any, ...]]:
    remaining = iter(items)
    while chunk := tuple(islice(remaining, size)):
        yield chunk


def _round_value(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _without_empty(parts: Mapping[str, Any]) -> dict[str, object]:
    """Without what is empty; 0 is not."""
    return {name: part for name, part in parts.items() if part or type(part) in (int, float)}


def _plain(view: Any) -> Any:
    """A view, or several, by the names of its fields without what is empty."""
    if hasattr(view, "_asdict"):  # a named tuple
        return _without_empty(view._asdict())
    if isinstance(view, tuple | list):
        return [_plain(each) for each in view]
    return _without_empty(vars(view)) if is_dataclass(view) else view


def _safe_json(content: Any) -> Markup:
    """JSON that ends no script element and holds nothing a file cannot."""
    from markupsafe import Markup  # comes with jinja2

    try:
        text = to_json(content).decode()  # a third of the time of json
    except PydanticSerializationError:  # half a surrogate pair
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    if "\\u0000" in text:  # rare; as html.py does it elsewhere on the page
        text = _NUL.sub("\\1\N{REPLACEMENT CHARACTER}", text)
    for sign in "<\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)  # noqa: S704 -- no "<" is left in it
