"""Write a generated gold set, its provenance and its rejected candidates."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from misslink import __version__
from misslink.errors import InputError
from misslink.goldset.generation.candidates import (
    REJECT_REASONS,
    CandidateRejectedError,
    CandidateSlot,
    QuestionDraft,
)
from misslink.goldset.generation.corpus import SourceCorpus
from misslink.goldset.writer import objects_to_jsonl
from misslink.io.atomic import atomic_write
from misslink.io.jsonl import read_text
from misslink.text.normalization import fold
from misslink.types import Case

_FULL, _PART = 2, 1  # grades
_SHORT_WORDS, _MEDIUM_WORDS = 8, 16
_ID_DIGITS = 12


def to_case(draft: QuestionDraft, corpus: SourceCorpus, seed: int) -> Case:
    """Return an accepted question as a case.

    The id is a hash of the question. A passage that answers alone has grade 2; of several that
    answer together, and of others that state a part, each has grade 1.
    """
    relevant: dict[str, int] = {}
    evidence: dict[str, int] = {}
    grade = _FULL if len(draft.evidence) == 1 else _PART
    graded = [(place, grade, quotes) for place, quotes in draft.evidence.items()]
    graded += [(place, grade, (quote,)) for place, (grade, quote) in draft.others.items()]
    for place, grade, quotes in graded:
        relevant[corpus.passages[place].id] = grade
        evidence |= {quote: max(grade, evidence.get(quote, 0)) for quote in quotes}
    slot, words = draft.slot, len(draft.question.split())
    length = "short" if words <= _SHORT_WORDS else "medium" if words <= _MEDIUM_WORDS else "long"
    return Case(
        id=f"gen-{_hash(fold(draft.question))[:_ID_DIGITS]}",
        question=draft.question,
        relevant=relevant,
        evidence=evidence,
        references=(draft.reference,) if draft.reference else (),
        answerable=draft.reference is not None,
        category=slot.category,
        tags={
            "persona": slot.persona,
            "length": length,
            "source": corpus.documents[slot.passages[0]],
            "seed": str(seed),
            "passages": str(len(draft.evidence)),
            "rewritten": "yes" if draft.rewritten else "no",
        },
    )


def rejection_record(
    slot: CandidateSlot, rejected: CandidateRejectedError, corpus: SourceCorpus
) -> dict[str, Any]:
    """Return a rejected candidate as a JSON object."""
    return {
        "reason": rejected.reason,
        "sentence": str(rejected),
        "question": rejected.question,
        "category": slot.category,
        "number": slot.number,
        "persona": slot.persona,
        "length": slot.length,
        "passages": [corpus.passages[place].id for place in slot.passages],
        **rejected.more,
    }


def rejection_table(rejected: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return counts by reason, the most frequent first, with an example each."""
    by_reason = {
        reason: [record for record in rejected if record["reason"] == reason]
        for reason in REJECT_REASONS
    }
    reasons = sorted(filter(by_reason.get, by_reason), key=lambda reason: -len(by_reason[reason]))
    table = []
    for reason in reasons:
        records = by_reason[reason]
        example = next((record for record in records if record["question"]), records[-1])
        table.append(
            {
                "reason": reason,
                "count": len(records),
                "meaning": REJECT_REASONS[reason],
                "question": example["question"],
                "sentence": example["sentence"],
            }
        )
    return {"rejected": {row["reason"]: row["count"] for row in table}, "reject_table": table}


def refuse_changed_file(gold: Path) -> None:
    """Raise InputError for a file that was not generated, or was changed since."""
    if not gold.exists():
        return
    about, known = provenance_path(gold), set()
    if about.is_file() and gold.is_file():
        try:
            stored = json.loads(read_text(about))
        except (ValueError, RecursionError):
            stored = None
        if isinstance(stored, dict):
            known = {stored.get("sha256"), stored.get("before")}
    if not known or _hash_file(gold) not in known:
        raise InputError(
            "The file was not generated, or was changed since. Name another file with --out, or "
            "add --overwrite.",
            path=gold,
        )


def provenance_path(gold: Path) -> Path:
    """Return the path of the file that says how a gold set was generated."""
    return gold.with_name(f"{gold.name}.json")


def write_generated_goldset(
    cases: Sequence[Case], provenance: Mapping[str, Any], gold: Path
) -> None:
    """Write a gold set, and its provenance into NAME.json; each atomically.

    Raises
    ------
    InputError
        It cannot be written.
    """
    lines = []
    for case in cases:  # with the reference in the singular, and without empty fields
        fields: dict[str, Any] = {
            "id": case.id,
            "question": case.question,
            "relevant": dict(case.relevant),
            "evidence": dict(case.evidence),
            "reference": next(iter(case.references), None),
        }
        filled = {name: value for name, value in fields.items() if value}
        rest = {"answerable": case.answerable, "category": case.category, "tags": dict(case.tags)}
        lines.append(filled | rest)
    text = objects_to_jsonl(lines)
    content = {"misslink": __version__, "sha256": _hash(text), **provenance}
    # First the provenance: if interrupted, `before` still identifies the old file.
    before = _hash_file(gold) if gold.exists() else None
    about = provenance_path(gold)
    _write_json({**content, "before": before}, about)
    atomic_write(text, gold)
    _write_json(content, about)


def _write_json(content: Mapping[str, Any], path: Path) -> None:
    atomic_write(json.dumps(content, ensure_ascii=False, indent=2) + "\n", path)


def _hash_file(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as problem:
        raise InputError(f"Cannot read the file: {problem.strerror}.", path=path) from None


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
