"""Reads canaries: questions whose relevant passages are known."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from misslink.errors import InputError
from misslink.io.goldset import GoldSet, read_goldset
from misslink.io.jsonl import read_objects
from misslink.io.manifest import hash_content
from misslink.io.yaml_with_lines import read_yaml
from misslink.text.normalization import valid_text
from misslink.types import Case

_CANARY_FIELDS = ("min_relevance", "owner")  # what a canary has beyond a case of a gold set
# Names of the same in other canary files; a case takes query for question itself.
_FIELD_ALIASES = {"expected_top_chunks": "relevant", "min_relevance_score": "min_relevance"}
_MAX_OWNER_LENGTH = 200  # characters
# In YAML: keys under which everything is text, as it is written.
_TEXT_FIELDS = frozenset(
    {"id", "question", "query", "evidence", "reference", "references", "owner", "category", "tags"}
    | {"tier", "relevant_any", "asked_at", "expected_top_chunks"}
)


@dataclass(frozen=True)
class Canary:
    """A question with the passages and answer that a healthy app returns."""

    case: Case
    min_relevance: float | None = None  # of the best expected passage: cosine, else retriever score
    owner: str | None = None  # shown if the canary degrades

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
        """Hash of questions and expectations, as 16 hex digits; owners and tags do not count."""
        content = [
            {**canary.case.model_dump(mode="json", exclude={"tags"}), "least": canary.min_relevance}
            for canary in sorted(self.canaries, key=lambda canary: canary.id)
        ]
        return hash_content(content)[:16]

    def refuse_unjudged(self) -> None:
        """Refuse canaries that nothing is known of without a judge.

        Raises
        ------
        InputError
            Naming the file and the line of the first.
        """
        for canary in self.canaries:
            if not canary.expects_passages:
                raise self.gold.error(
                    canary.id,
                    "relevant",
                    f"canary '{canary.id}' expects an answer and no passage, which takes a judge; "
                    "name one with --judge, or give it relevant or evidence",
                )


def read_canaries(path: str | Path) -> CanarySet:
    """Read a canary set: JSON Lines, one JSON array, or YAML by the file's ending.

    Parameters
    ----------
    path : path
        Objects (in YAML a list of them, alone or under ``canaries``) as in a gold set,
        ``{"id", "question", "relevant" or "evidence", "reference"?}``, with ``min_relevance`` and
        ``owner`` where wanted. ``query``, ``expected_top_chunks`` and ``min_relevance_score`` are
        read as ``question``, ``relevant`` and ``min_relevance``.

    Raises
    ------
    InputError
        As `canary_set`.
    """
    if Path(path).suffix.lower() in {".yaml", ".yml"}:
        return build_canary_set(_read_yaml(Path(path)), str(path))
    return build_canary_set(read_objects(Path(path)), str(path))


def build_canary_set(items: Iterable[tuple[int | None, Any]], name: str) -> CanarySet:
    """Build a canary set from objects and their line numbers; raise InputError for invalid ones."""
    cases: list[Mapping[str, Any]] = []
    lines: list[int | None] = []
    own: list[tuple[float | None, str | None]] = []
    for line, item in items:
        if not isinstance(item, Mapping):
            raise InputError("a canary is an object with fields", path=name, line=line)
        fields = _rename_fields(item, name, line)
        own.append((_min_relevance(fields, name, line), _owner(fields, name, line)))
        cases.append({key: value for key, value in fields.items() if key not in _CANARY_FIELDS})
        lines.append(line)
    gold = _as_gold_set(cases, lines, name)
    canaries = tuple(
        Canary(case, least, owner) for case, (least, owner) in zip(gold.cases, own, strict=True)
    )
    for canary in canaries:
        if not (canary.expects_passages or canary.expects_answer):
            raise gold.error(
                canary.id,
                "relevant",
                f"canary '{canary.id}' expects nothing; give it relevant, evidence or reference",
            )
    return CanarySet(canaries, gold)


def _rename_fields(item: Mapping[str, Any], name: str, line: int | None) -> dict[str, Any]:
    for alias, field in _FIELD_ALIASES.items():
        if alias in item and field in item:
            raise InputError(
                f"'{alias}' and '{field}' are the same; give one", path=name, line=line, field=alias
            )
    return {_FIELD_ALIASES.get(key, key): value for key, value in item.items()}


def _read_yaml(path: Path) -> Iterator[tuple[int | None, Any]]:
    """The objects of a YAML file with their lines."""
    document = read_yaml(path, _TEXT_FIELDS)
    data: Any = document.data
    spot: tuple[str, ...] = ()
    if isinstance(data, dict) and set(data) == {"canaries"}:
        data, spot = data["canaries"], ("canaries",)
    if not isinstance(data, list) or not data:
        raise InputError(
            "it holds no list of canaries; write for example  - {id: opening, question: ..., "
            "relevant: [doc-7]}",
            path=path,
        )
    return ((document.line((*spot, index)), item) for index, item in enumerate(data))


def _as_gold_set(cases: list[Mapping[str, Any]], lines: list[int | None], name: str) -> GoldSet:
    """The cases as a gold set that knows its file and lines."""
    line_by_id: dict[str, int | None] = {}
    checked: list[Case] = []
    for item, line in zip(cases, lines, strict=True):
        try:
            (case,) = read_goldset([item]).cases
        except InputError as wrong:
            raise InputError(wrong.problem, path=name, line=line, field=wrong.field) from None
        if case.id in line_by_id:
            before = line_by_id[case.id]
            first = "" if before is None else f" (first on line {before})"
            raise InputError(
                f"the id '{case.id}' is used twice{first}; its history would be mixed, so give "
                "each canary a unique id",
                path=name,
                line=line,
                field="id",
            )
        checked.append(case)
        line_by_id[case.id] = line
    if not checked:
        raise InputError("there is no canary in it", path=name)
    places = {case: line for case, line in line_by_id.items() if line is not None}
    return GoldSet(tuple(checked), name, places)


def _min_relevance(item: Mapping[str, Any], name: str, line: int | None) -> float | None:
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
    if not isinstance(value, str) or not value.strip() or len(value) > _MAX_OWNER_LENGTH:
        raise InputError(
            f"this is a name or an address, of at most {_MAX_OWNER_LENGTH} characters",
            path=name,
            line=line,
            field="owner",
        )
    return " ".join(valid_text(value).split())
