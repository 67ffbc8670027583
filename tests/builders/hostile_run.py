"""A run whose every text is an attack: built from the models themselves, so that no field is left.

A field that is added to types.py is filled here by itself; a kind of field that nobody foresaw
is refused, so that this file is extended.
"""

from __future__ import annotations

import datetime as dt
import types
import typing
import zlib
from collections.abc import Callable
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel, JsonValue

from attacks import ATTACKS
from misslink import types as nouns
from misslink.case_fields import EvidenceSpan
from misslink.types import (
    Case,
    Claim,
    ClaimLink,
    Evidence,
    Link,
    Message,
    Passage,
    RetrievalMiss,
    Run,
    Trace,
    Verdict,
)
from proven_run import proven_run  # of tests/report: conftest.py puts it within reach

BENIGN = ("harmless",)
NAMES = ATTACKS["name"]
VARIANTS = 10  # of the one case, so that every Literal's words and every attack of a kind come up
_ESTIMATE = {"value", "low", "high"}


def _literals(kind: Any) -> set[str]:
    """The words that a field may hold and no app writes."""
    if get_origin(kind) is Literal:
        return set(get_args(kind))
    return {word for one in get_args(kind) for word in _literals(one)}


# Words that the program reads and that no app under test writes.
_WORDS = {"option", "today", "a", "b", "umap", "pca", "category", "none", "some", "all"} | {
    word
    for noun in vars(nouns).values()
    if isinstance(noun, type) and issubclass(noun, BaseModel)
    for field in noun.model_fields.values()
    for word in _literals(field.annotation)
}


class Hostile:
    """Texts that begin with an attack of one kind and end with the name of their place."""

    def __init__(self, kind: tuple[str, ...], variant: int = 0) -> None:
        self.kind, self.variant = kind, variant

    def text(self, where: str) -> str:
        turn = (zlib.crc32(where.encode()) + self.variant) % len(self.kind)
        # Names of JavaScript's own objects do harm only as they are.
        return self.kind[turn] if self.kind is NAMES else f"{self.kind[turn]} [{where}]"

    def model(self, noun: type[BaseModel], **given: Any) -> Any:
        """An instance of `noun` with every field filled; `given` as it is."""
        for name, field in noun.model_fields.items():
            if name not in given:
                given[name] = self.value(field.annotation, f"{noun.__name__}.{name}")
        if noun is EvidenceSpan:  # as long as its quote
            given["end"] = given["start"] + len(given["quote"])
        return noun(**given)

    def value(self, kind: Any, where: str) -> Any:
        """A value of an annotation, with hostile text wherever it holds text."""
        args = get_args(kind)
        compound: dict[Any, Callable[[], Any]] = {
            Annotated: lambda: self.value(args[0], where),
            Literal: lambda: args[self.variant % len(args)],
            typing.Union: lambda: self.value(args[0], where),  # X | None
            types.UnionType: lambda: self.value(args[0], where),
            tuple: lambda: (self.value(args[0], where),),
            dict: lambda: {self.value(args[0], where): self.value(args[1], f"{where}.value")},
        }
        plain: dict[Any, Any] = {
            str: self.text(where),
            bool: self.variant % 2 == 0,
            int: 1,
            float: 0.5,
            dt.datetime: dt.datetime(2026, 11, 22, tzinfo=dt.UTC),
            JsonValue: [self.text(where), {self.text(where): self.text(where)}],
        }
        if get_origin(kind) in compound:
            return compound[get_origin(kind)]()
        if kind in plain:
            return plain[kind]
        return self.model(kind)  # fails for what is no model: then add it above

    def document(self, content: Any, where: str, ids: dict[str, str]) -> Any:
        """A JSON document with hostile texts, and beside every last key a hostile one."""
        if isinstance(content, str):
            words = content in _WORDS
            return content if words else ids.get(content) or self.text(where)
        if isinstance(content, list | tuple):
            return [self.document(one, f"{where}.{i % 3}", ids) for i, one in enumerate(content)]
        if not isinstance(content, dict):
            return content
        found = {
            ids.get(key, key): self.document(one, f"{where}.{key}"[-80:], ids)
            for key, one in content.items()
        }
        if found and not found.keys() >= _ESTIMATE:
            found[self.text(f"{where} key")] = list(found.values())[-1]
        return found


def hostile_run(kind: tuple[str, ...]) -> Run:
    """Ten cases of nothing but attacks, and every document of a run beside them."""
    cases, traces, verdicts, links = [], [], [], []
    for variant in range(VARIANTS):
        case, trace, said, link = _one(Hostile(kind, variant), variant)
        cases.append(case)
        traces.append(trace)
        verdicts += said
        links.append(link)
    base, hostile = proven_run(), Hostile(kind)
    # Documents that speak of cases and passages speak of these.
    ids = {old.id: new.id for old, new in zip(base.cases, cases, strict=False)}
    ids |= {"with#1": links[0].missed[0].passage_id, "pass#0": traces[0].retrieved[0].id}
    documents = {
        name: hostile.document(getattr(base, name), name, ids)
        for name, field in Run.model_fields.items()
        if isinstance(getattr(base, name), dict)
    }
    documents["manifest"] |= {"k": 2}
    return Run(cases=cases, traces=traces, verdicts=verdicts, links=links, **documents)


def _one(hostile: Hostile, variant: int) -> tuple[Case, Trace, list[Verdict], Link]:
    # These two refuse half a surrogate pair where they are read.
    name = _whole(f"{hostile.text('Case.id')} [Case.id] {variant}")
    question = _whole(hostile.text("Case.question"))
    seen, lost = hostile.text("Passage.id"), hostile.text("RetrievalMiss.passage_id")
    answer = hostile.text("Trace.answer") + " and some more words."
    roles = ("user", "assistant")  # they alternate, and the question follows
    history = tuple(hostile.model(Message, role=role) for role in roles)
    case = hostile.model(
        Case,
        id=name,
        question=question,
        relevant={lost: 2, seen: 1},
        history=history,
        group=f"{hostile.text('Case.group')} {variant}",  # cases of one group have no interval
    )
    trace = hostile.model(
        Trace,
        history=history,
        case_id=name,
        retrieved=(hostile.model(Passage, id=seen),),
        prompted=(seen,),
        deeper=(hostile.model(Passage, id=lost, rank=7),),
        answer=None if variant == 1 else answer,
        error=hostile.text("Trace.error") if variant == 1 else None,
        unmeasured=hostile.text("Trace.unmeasured") if variant == 2 else None,
    )
    quote = hostile.model(Evidence, passage_id=seen, start=2, end=9)
    nowhere = hostile.model(Evidence, passage_id=seen, start=None, end=None)
    claims = (
        hostile.model(Claim, start=0, end=4, evidence=(quote, nowhere)),
        hostile.model(Claim, start=2, end=7, evidence=(quote,), support="contradicted"),
        hostile.model(Claim, start=None, end=None, support="unsupported"),
    )
    failed = variant == 3
    said = [
        hostile.model(
            Verdict,
            case_id=name,
            metric=metric,
            status="failed" if failed else "scored",
            value=None if failed else 0.25 * (variant % 5),
            passages={seen: 1.0, lost: None},
            claims=claims if metric == "faithfulness" else claims[:1],
        )
        for metric in ("faithfulness", "correctness", hostile.text("Verdict.metric"))
    ]
    link = hostile.model(
        Link,
        case_id=name,
        failure=get_args(nouns.FailureMode)[variant],
        unexplained=False,  # only an inconclusive case may be
        missed=(hostile.model(RetrievalMiss, passage_id=lost),),
        claims=tuple(
            hostile.model(ClaimLink, index=index, passage_id=lost) for index in range(len(claims))
        ),
    )
    return case, trace, said, link


def _whole(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
