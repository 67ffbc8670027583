"""Reads canaries: questions whose relevant passages are known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, FiniteFloat, StringConstraints

from misslink.errors import InputError
from misslink.io.config_files import read_yaml
from misslink.io.goldset import GoldSet, read_goldset
from misslink.io.jsonl import SourceItem, read_objects
from misslink.io.manifest import hash_content
from misslink.types import Case

# Names of the same fields in other canary files; a case takes query for question itself.
_FIELD_ALIASES = {"expected_top_chunks": "relevant", "min_relevance_score": "min_relevance"}
# In YAML: keys under which everything is text, as it is written.
_TEXT_FIELDS = frozenset(
    {"id", "question", "query", "evidence", "reference", "references", "owner", "category", "tags"}
    | {"tier", "relevant_any", "asked_at", "expected_top_chunks"}
)


class _CanaryFields(BaseModel):
    """What a canary has beyond a case of a gold set."""

    model_config = ConfigDict(strict=True, extra="ignore")
    min_relevance: FiniteFloat | None = None
    owner: Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"\S")] | None = (
        None
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
                    f"Canary '{canary.id}' expects only an answer, which needs a judge. Name one with "
                    "--judge, or add relevant or evidence.",
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


def build_canary_set(items: Iterable[SourceItem], name: str) -> CanarySet:
    """Build a canary set from objects; raise InputError for invalid ones."""
    cases: list[SourceItem] = []
    own: list[_CanaryFields] = []
    for item in items:
        if not isinstance(item.data, Mapping):
            raise item.error("A canary must be an object with fields.")
        for alias, field in _FIELD_ALIASES.items():
            if alias in item.data and field in item.data:
                message = f"'{alias}' and '{field}' mean the same. Remove one of them."
                raise item.error(message, alias)
        fields = {_FIELD_ALIASES.get(key, str(key)): value for key, value in item.data.items()}
        own.append(item._replace(data=fields).parse(_CanaryFields))
        fields = {k: v for k, v in fields.items() if k not in _CanaryFields.model_fields}
        cases.append(item._replace(data=fields))
    if not cases:
        raise InputError("The file contains no canary.", path=name)
    gold = replace(read_goldset(cases), name=name)
    canaries = tuple(
        Canary(case, fields.min_relevance, fields.owner and " ".join(fields.owner.split()))
        for case, fields in zip(gold.cases, own, strict=True)
    )
    for canary in canaries:
        if not (canary.expects_passages or canary.expects_answer):
            raise gold.error(
                canary.id,
                "relevant",
                f"Canary '{canary.id}' expects nothing. Add relevant, evidence or reference.",
            )
    return CanarySet(canaries, gold)


def _read_yaml(path: Path) -> Iterator[SourceItem]:
    """The objects of a YAML file with their lines."""
    document = read_yaml(path, _TEXT_FIELDS)
    data: Any = document.data
    spot: tuple[str, ...] = ()
    if isinstance(data, dict) and set(data) == {"canaries"}:
        data, spot = data["canaries"], ("canaries",)
    if not isinstance(data, list) or not data:
        raise InputError(
            "The file contains no list of canaries. Write for example  - {id: opening, question: "
            "..., relevant: [doc-7]}",
            path=path,
        )
    return (
        SourceItem(item, str(path), document.line((*spot, index)))
        for index, item in enumerate(data)
    )
