"""Readings: what the checks make of a reply, kept in the response cache under the rules' version."""

from __future__ import annotations

import contextlib
import hashlib
import json
import sys
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from misslink.errors import InputError
from misslink.judge.claims import CLAIMS, examined_coverage, read_claims
from misslink.judge.examination import Examination
from misslink.judge.middleware.reply_store import ReadingStore
from misslink.judge.protocol import Reply, hash_texts
from misslink.matching import ClaimCoverage, rules_version
from misslink.types import Claim, Passage

_ReadT = TypeVar("_ReadT")
_COVERAGE = TypeAdapter(ClaimCoverage)
_PENDING = 256  # readings that are written together; a process that is killed loses them
_RULES = "judge", "types.py", "link_types.py", "frozen_model.py", "matching/coefficients.json"


@cache
def reading_rules() -> str:
    """SHA-256 (16 digits) of all that decides what is read from a reply: under others it is read again."""
    package = files("misslink")
    rules = hashlib.sha256(f"{rules_version()} {sys.version_info[:2]}".encode())  # Unicode's tables
    for name in _RULES:
        source = package / name
        listed = source.iterdir() if source.is_dir() else [source]
        for file in sorted(listed, key=lambda each: each.name):
            if file.is_file():
                rules.update(file.read_bytes())
    return rules.hexdigest()[:16]


class Readings:
    """Reads replies; with a store each is read once under the same rules.

    A reading is found by the hash of the rules and of everything that it is made from, so one that is
    found is what reading again would give. One that is damaged counts as absent.
    """

    def __init__(self, store: ReadingStore | None = None) -> None:
        self._store = store
        self._pending: dict[str, str] = {}
        # A reply is repaired and then read.
        self._coverage = lru_cache(maxsize=256)(self._read_coverage)

    def coverage(self, examination: Examination, answer: str, question: str) -> ClaimCoverage:
        """Return `misslink.judge.claims.examined_coverage`."""
        return self._coverage(examination, answer, question)

    def claims(
        self,
        reply: Reply,
        answer: str,
        passages: Sequence[Passage],
        question: str,
        history: Sequence[str],
    ) -> tuple[Claim, ...]:
        """Return `misslink.judge.claims.read_claims`."""
        texts = [text for passage in passages for text in (passage.id, passage.text)]
        chances = json.dumps(reply.probabilities) if reply.probabilities else ""
        return self._find_or_read(
            CLAIMS,
            lambda: read_claims(reply, answer, passages, question, history),
            *("claims", _as_json(reply.parsed), chances, answer, question, *texts, "", *history),
        )

    def flush(self) -> None:
        """Write what is not yet written; where the store fails, it is read again another time."""
        pending, self._pending = self._pending, {}
        if self._store is not None and pending:
            with contextlib.suppress(InputError):
                self._store.store_readings(pending, reading_rules())

    def _read_coverage(self, examination: Examination, answer: str, question: str) -> ClaimCoverage:
        return self._find_or_read(
            _COVERAGE,
            lambda: examined_coverage(examination, answer, question),
            *("coverage", _as_json(examination), answer, question),
        )

    def _find_or_read(
        self, adapter: TypeAdapter[_ReadT], read: Callable[[], _ReadT], *made_from: str
    ) -> _ReadT:
        if self._store is None:
            return read()
        key = hash_texts((reading_rules(), *made_from))
        stored = self._pending.get(key) or self._store.reading(key)
        if stored is not None:
            with contextlib.suppress(ValidationError):
                return adapter.validate_json(stored)
        value = read()
        with contextlib.suppress(PydanticSerializationError):  # half a character
            # What is unset stays so: it is written to no file.
            self._pending[key] = adapter.dump_json(value, exclude_unset=True).decode()
        if len(self._pending) >= _PENDING:
            self.flush()
        return value


ALWAYS_READ = Readings()


@lru_cache(maxsize=256)  # for the key of the coverage and that of the claims
def _as_json(parsed: BaseModel | None) -> str:
    try:
        return "" if parsed is None else parsed.model_dump_json()
    except PydanticSerializationError:
        return repr(parsed)
