"""Canaries: questions whose right passages are known, put to a live app again and again."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from misslink.errors import InputError
from misslink.files.goldset import GoldSet, read_goldset
from misslink.files.jsonl import read_objects
from misslink.files.located import read_located
from misslink.manifest import content_hash
from misslink.text import valid_text
from misslink.types import Case

__all__ = ["Canary", "CanarySet", "canary_set", "read_canaries"]

_OWN = ("min_relevance", "owner")  # what a canary has beyond a case of a gold set
_LONGEST_OWNER = 200  # characters
# In YAML: keys under which everything is text, as it is written.
_TEXTS = frozenset(
    {"id", "question", "query", "evidence", "reference", "references", "owner", "category", "tags"}
    | {"tier", "relevant_any", "asked_at"}
)


@dataclass(frozen=True)
class Canary:
    """A question with what a healthy app brings for it.

    Parameters
    ----------
    case : Case
        Question, expected passages (ids or evidence texts), and expected answers, as in a gold
        set.
    min_relevance : float or None
        What the best expected passage must reach: its cosine to the question where an embedding
        is known, else the retriever's own score. None: any will do.
    owner : str or None
        Who is told when it degrades.
    """

    case: Case
    min_relevance: float | None = None
    owner: str | None = None

    @property
    def id(self) -> str:
        """The id, unique in its set."""
        return self.case.id

    @property
    def expects_passages(self) -> bool:
        """Whether it names passages that must be retrieved."""
        case = self.case
        named = any(case.relevant.values()) or any(case.evidence.values())
        return bool(named or any(case.relevant_any))

    @property
    def expects_answer(self) -> bool:
        """Whether it says what must be answered, or that the app must decline."""
        return bool(self.case.references) or self.case.answerable is False


@dataclass(frozen=True)
class CanarySet:
    """The canaries of a file.

    Parameters
    ----------
    canaries : sequence of Canary
        At least one; no two have one id.
    gold : GoldSet
        The same as cases, with the place of each.
    """

    canaries: tuple[Canary, ...]
    gold: GoldSet

    @property
    def digest(self) -> str:
        """What is asked and expected, as 16 hexadecimal digits; owners and tags do not count."""
        told = [
            {**one.case.model_dump(mode="json", exclude={"tags"}), "least": one.min_relevance}
            for one in sorted(self.canaries, key=lambda one: one.id)
        ]
        return content_hash(told)[:16]

    def refuse_unjudged(self) -> None:
        """Refuse canaries that nothing could be said of without a judge.

        Raises
        ------
        InputError
            Naming the file and the line of the first.
        """
        for one in self.canaries:
            if not one.expects_passages:
                raise self.gold.error(
                    one.id,
                    "relevant",
                    f"canary '{one.id}' expects an answer and no passage, which takes a judge; "
                    "name one with --judge, or give it relevant or evidence",
                )


def read_canaries(path: str | Path) -> CanarySet:
    """Read a canary set: JSON Lines, one JSON array, or YAML by the file's ending.

    Parameters
    ----------
    path : path
        Objects (in YAML a list of them, alone or under ``canaries``) as in a gold set,
        ``{"id", "question", "relevant" or "evidence", "reference"?}``, with ``min_relevance`` and
        ``owner`` where wanted.

    Raises
    ------
    InputError
        As `canary_set`.
    """
    if Path(path).suffix.lower() in {".yaml", ".yml"}:
        return canary_set(_from_yaml(Path(path)), str(path))
    return canary_set(read_objects(Path(path)), str(path))


def canary_set(items: Iterable[tuple[int | None, Any]], name: str) -> CanarySet:
    """Make a canary set of objects and their lines.

    Parameters
    ----------
    items : iterable of (int or None, mapping)
    name : str
        The file, for messages.

    Raises
    ------
    InputError
        Two canaries have one id (both lines are told), one expects nothing, a field is unknown or
        wrong, or there is no canary at all.
    """
    cases: list[Mapping[str, Any]] = []
    lines: list[int | None] = []
    own: list[tuple[float | None, str | None]] = []
    for line, item in items:
        if not isinstance(item, Mapping):
            raise InputError("a canary is an object with fields", path=name, line=line)
        own.append((_least(item, name, line), _owner(item, name, line)))
        cases.append({key: value for key, value in item.items() if key not in _OWN})
        lines.append(line)
    gold = _gold(cases, lines, name)
    canaries = tuple(
        Canary(case, least, owner) for case, (least, owner) in zip(gold.cases, own, strict=True)
    )
    for one in canaries:
        if not (one.expects_passages or one.expects_answer):
            raise gold.error(
                one.id,
                "relevant",
                f"canary '{one.id}' expects nothing; give it relevant, evidence or reference",
            )
    return CanarySet(canaries, gold)


def _from_yaml(path: Path) -> Iterator[tuple[int | None, Any]]:
    """The objects of a YAML file with their lines."""
    found = read_located(path, _TEXTS)
    data: Any = found.data
    spot: tuple[str, ...] = ()
    if isinstance(data, dict) and set(data) == {"canaries"}:
        data, spot = data["canaries"], ("canaries",)
    if not isinstance(data, list) or not data:
        raise InputError(
            "it holds no list of canaries; write for example  - {id: opening, question: ..., "
            "relevant: [doc-7]}",
            path=path,
        )
    return ((found.line((*spot, at)), item) for at, item in enumerate(data))


def _gold(cases: list[Mapping[str, Any]], lines: list[int | None], name: str) -> GoldSet:
    """The cases as a gold set that knows its file and lines."""
    known: dict[str, int | None] = {}
    found: list[Case] = []
    for item, line in zip(cases, lines, strict=True):
        try:
            (case,) = read_goldset([item]).cases
        except InputError as wrong:
            raise InputError(wrong.problem, path=name, line=line, field=wrong.field) from None
        if case.id in known:
            before = known[case.id]
            first = "" if before is None else f" (first on line {before})"
            raise InputError(
                f"the id '{case.id}' is used twice{first}; its history would be mixed, so give "
                "each canary one of its own",
                path=name,
                line=line,
                field="id",
            )
        found.append(case)
        known[case.id] = line
    if not found:
        raise InputError("there is no canary in it", path=name)
    places = {case: line for case, line in known.items() if line is not None}
    return GoldSet(tuple(found), name, places)


def _least(item: Mapping[str, Any], name: str, line: int | None) -> float | None:
    value = item.get("min_relevance")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InputError(
            "this is a number, such as 0.4", path=name, line=line, field="min_relevance"
        )
    return float(value)


def _owner(item: Mapping[str, Any], name: str, line: int | None) -> str | None:
    value = item.get("owner")
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip() or len(value) > _LONGEST_OWNER:
        raise InputError(
            f"this is a name or an address, of at most {_LONGEST_OWNER} characters",
            path=name,
            line=line,
            field="owner",
        )
    return " ".join(valid_text(value).split())
