"""The gold set as it is written: its lines, what it was made by, and what was rejected."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from misslink import __version__
from misslink.errors import InputError
from misslink.files.jsonl import read_text
from misslink.files.whole import put
from misslink.goldset.generating.candidates import REASONS, Accepted, Rejected
from misslink.goldset.generating.rounds import Outcome
from misslink.goldset.generating.sources import Sources
from misslink.goldset.writing import objects_as_lines
from misslink.text import fold
from misslink.types import Case

__all__ = [
    "case_of",
    "line_of",
    "refuse_foreign",
    "reject_of",
    "rejects_of",
    "write_gold",
    "write_rejects",
]

_FULL, _PART = 2, 1  # grades
_SHORT, _MEDIUM = 8, 16  # words of a question
_ID = 12  # digits of a hash


@dataclass(frozen=True)
class _Place:
    """Where a gold set lies, and what it was made by beside it."""

    gold: Path

    @property
    def about(self) -> Path:
        return self.gold.with_name(f"{self.gold.name}.json")


def case_of(accepted: Accepted, sources: Sources, seed: int) -> Case:
    """Return an accepted question as a case.

    Its id is made of the question. The passage that answers alone has grade 2; of several that
    answer together, and of others that state a part, each has grade 1. Evidence stands in the
    passages' own characters.
    """
    draft, passages = accepted.draft, sources.passages
    alone = len(draft.evidence) == 1
    relevant: dict[str, int] = {}
    evidence: dict[str, int] = {}
    for place, quotes in draft.evidence.items():
        grade = _FULL if alone else _PART
        relevant[passages[place].id] = grade
        evidence |= {quote: max(grade, evidence.get(quote, 0)) for quote in quotes}
    for place, (grade, quote) in accepted.others.items():
        relevant[passages[place].id] = grade
        evidence[quote] = max(grade, evidence.get(quote, 0))
    slot = draft.slot
    tags = {
        "persona": slot.persona,
        "length": _length(draft.question),
        "source": sources.documents[slot.passages[0]],
        "seed": str(seed),
        "passages": str(len(draft.evidence)),
        "rewritten": "yes" if draft.rewritten else "no",
    }
    return Case(
        id=f"gen-{hashlib.sha256(fold(draft.question).encode()).hexdigest()[:_ID]}",
        question=draft.question,
        relevant=relevant,
        evidence=evidence,
        references=(draft.reference,) if draft.reference else (),
        answerable=draft.reference is not None,
        category=slot.category,
        tags=tags,
    )


def line_of(case: Case) -> dict[str, Any]:
    """Return a case as the JSON object of its line; reading it gives the same case."""
    told: dict[str, Any] = {"id": case.id, "question": case.question}
    if case.relevant:
        told["relevant"] = dict(case.relevant)
    if case.evidence:
        told["evidence"] = dict(case.evidence)
    if case.references:
        told["reference"] = case.references[0]
    return {
        **told, "answerable": case.answerable, "category": case.category, "tags": dict(case.tags),
    }  # fmt: skip


def reject_of(one: Rejected, sources: Sources) -> dict[str, Any]:
    """Return a rejected candidate as a JSON object."""
    slot = one.slot
    return {
        "reason": one.reason,
        "sentence": one.sentence,
        "question": one.question,
        "category": slot.category,
        "number": slot.number,
        "persona": slot.persona,
        "length": slot.length,
        "passages": [sources.passages[place].id for place in slot.passages],
        **one.more,
    }


def rejects_of(found: Outcome) -> dict[str, Any]:
    """Return the reject table: counts by reason, the most frequent first, with an example each."""
    counts = Counter(one.reason for one in found.rejected)
    order = list(REASONS)
    reasons = sorted(counts, key=lambda why: (-counts[why], order.index(why)))
    examples: dict[str, Any] = {}
    for one in found.rejected:
        if one.reason not in examples or examples[one.reason]["question"] is None:
            examples[one.reason] = {"question": one.question, "sentence": one.sentence}
    return {
        "rejected": {why: counts[why] for why in reasons},
        "reject_table": [
            {"reason": why, "count": counts[why], "meaning": REASONS[why], **examples[why]}
            for why in reasons
        ],
    }


def refuse_foreign(gold: Path, *, overwrite: bool) -> None:
    """Refuse a place where something lies that is not this program's own, unchanged work.

    Raises
    ------
    InputError
        A gold set lies there that was made otherwise, or changed by hand since.
    """
    place = _Place(gold)
    if overwrite or not gold.exists():
        return
    if not _is_ours(place):
        raise InputError(
            "something lies here that was not generated, or was changed since; name another file "
            "with --out, or replace it with --overwrite",
            path=gold,
        )


def write_gold(cases: Sequence[Case], about: Mapping[str, Any], gold: Path) -> None:
    """Write a gold set and, beside it in NAME.json, what it was made by; each whole or not at all.

    Raises
    ------
    InputError
        It cannot be written.
    """
    text = objects_as_lines(line_of(case) for case in cases)
    told = {"misslink": __version__, "sha256": _hash(text), **about}
    # First what vouches for the file: killed in between, the old file is vouched for by `before`.
    place = _Place(gold)
    before = _hash(_bytes(gold)) if gold.exists() else None
    put(_document({**told, "before": before}), place.about)
    put(text, gold)
    put(_document(told), place.about)


def write_rejects(rejected: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write the rejected candidates, one JSON object a line."""
    put(objects_as_lines(rejected), path)


def _is_ours(place: _Place) -> bool:
    if not place.about.is_file() or not place.gold.is_file():
        return False
    try:
        told = json.loads(read_text(place.about))
    except (ValueError, RecursionError):
        return False
    known = {told.get("sha256"), told.get("before")} if isinstance(told, dict) else set()
    return _hash(_bytes(place.gold)) in known


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as problem:
        raise InputError(f"it cannot be read: {problem.strerror}", path=path) from None


def _hash(content: str | bytes) -> str:
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def _document(content: Mapping[str, Any]) -> str:
    return json.dumps(dict(content), ensure_ascii=False, indent=2) + "\n"


def _length(question: str) -> str:
    words = len(question.split())
    return "short" if words <= _SHORT else "medium" if words <= _MEDIUM else "long"
