"""Write gold sets and traces as JSON Lines, and a generated gold set with its provenance."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from misslink import __version__
from misslink.errors import InputError
from misslink.io.atomic import atomic_write
from misslink.io.jsonl import read_text
from misslink.types import Case


def to_jsonl(items: Iterable[BaseModel]) -> str:
    r"""Return cases or traces as JSON Lines, without default values.

    >>> to_jsonl([Case(id="a", question="Why?", relevant={"p": 2})])
    '{"id":"a","question":"Why?","relevant":{"p":2}}\n'
    """
    return "".join(item.model_dump_json(exclude_defaults=True) + "\n" for item in items)


def objects_to_jsonl(items: Iterable[Mapping[str, Any]]) -> str:
    """Return objects as JSON Lines."""
    return "".join(
        json.dumps(dict(item), ensure_ascii=False, allow_nan=False) + "\n" for item in items
    )


def write_goldset(cases: Iterable[Case], path: Path, *, overwrite: bool = False) -> Path:
    """Write a gold set, which `read_goldset` reads without loss.

    Parameters
    ----------
    cases : iterable of Case
        At least one.
    path : Path
        Its folder is created.
    overwrite : bool
        Whether a file with other content may be replaced.

    Returns
    -------
    Path
        `path`.

    Raises
    ------
    InputError
        There is no case, the file has other content, or it cannot be written.
    """
    text = to_jsonl(cases)
    if not text:
        raise InputError("The gold set has no cases. Write at least one.", path=path)
    if not overwrite:
        refuse_existing(text, path)
    return atomic_write(text, path)


def refuse_existing(text: str, path: Path) -> None:
    """Raise InputError for a file with other content than a text."""
    if not path.is_file():
        return
    try:
        content = path.read_bytes()
    except OSError as problem:
        raise InputError(f"Cannot read the file: {problem.strerror}.", path=path) from None
    if content.strip() and content != text.encode():
        raise InputError("The file exists. Name another one, or add --overwrite.", path=path)


def refuse_changed_file(gold: Path) -> None:
    """Raise InputError for a file that was not generated, or was changed since."""
    if not gold.exists():
        return
    about, hashes = provenance_path(gold), set()
    if about.is_file() and gold.is_file():
        try:
            stored = json.loads(read_text(about))
        except (ValueError, RecursionError):
            stored = None
        if isinstance(stored, dict):
            hashes = {stored.get("sha256"), stored.get("before")}
    if not hashes or _hash_file(gold) not in hashes:
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
        more = {"answerable": case.answerable, "category": case.category, "tags": dict(case.tags)}
        lines.append(filled | more)
    text = objects_to_jsonl(lines)
    content = {
        "misslink": __version__,
        "sha256": hashlib.sha256(text.encode()).hexdigest(),
        **provenance,
    }
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
