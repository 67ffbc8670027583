"""The suite of attacks: what is said, where it is put, and the cases it is tried on."""

from __future__ import annotations

import base64
import codecs
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Literal

from misslink.judging.metric import Subject
from misslink.prompting import BUILT_IN, Prompts
from misslink.types import Case, Passage, Trace

__all__ = ["Attack", "BaseCase", "Suite", "load_suite"]

Place = Literal["answer", "passage", "question", "reference"]

_LEET = str.maketrans("aeiost", "431057")
_CYRILLIC = str.maketrans("aceopxyi", "\u0430\u0441\u0435\u043e\u0440\u0445\u0443\u0456")
_ENCODINGS: Mapping[str, Callable[[str], str]] = {
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "homoglyphs": lambda text: text.translate(_CYRILLIC),
    "leetspeak": lambda text: text.lower().translate(_LEET),
    "reversed": lambda text: text[::-1],
    "rot13": lambda text: codecs.encode(text, "rot13"),
    "zero_width": "\u200b".join,
}


@dataclass(frozen=True)
class Attack:
    """A payload at a place.

    Parameters
    ----------
    id : str
        Its place, kind and number, such as ``passage/tokens/2``.
    place : {'answer', 'passage', 'question', 'reference'}
        A payload in a passage or reference is in the first one.
    kind : str
    payload : str
        As it is inserted; ``{boundary}`` stands for the fence of the same question without it.
    first : bool
        Whether it comes before the text that is there, not behind it.
    """

    id: str
    place: Place
    kind: str
    payload: str
    first: bool = False


@dataclass(frozen=True)
class BaseCase:
    """A small case whose truth is known: by each of its metrics the answer is bad."""

    id: str
    metrics: tuple[str, ...]
    question: str
    passages: tuple[str, ...]
    answer: str
    references: tuple[str, ...]

    def subject(self, prompts: Prompts = BUILT_IN) -> Subject:
        """Return it as a case and what an app did for it."""
        passages = tuple(
            Passage(id=f"passage-{rank}", text=text, rank=rank)
            for rank, text in enumerate(self.passages, start=1)
        )
        case = Case(id=self.id, question=self.question, references=self.references)
        trace = Trace(case_id=self.id, retrieved=passages, answer=self.answer)
        return Subject(case, trace, len(passages), prompts)

    def under(self, attack: Attack, boundary: str) -> BaseCase:
        """Return the case with the attack's payload in its place."""
        payload = attack.payload.replace("{boundary}", boundary)

        def put(text: str) -> str:
            return "\n".join((payload, text) if attack.first else (text, payload))

        match attack.place:
            case "answer":
                return replace(self, answer=put(self.answer))
            case "question":
                return replace(self, question=put(self.question))
            case "passage":
                return replace(self, passages=(put(self.passages[0]), *self.passages[1:]))
            case "reference":
                return replace(self, references=(put(self.references[0]), *self.references[1:]))


@dataclass(frozen=True)
class Suite:
    """Attacks, and the cases that each of them is tried on."""

    attacks: tuple[Attack, ...]
    cases: tuple[BaseCase, ...]


@cache
def load_suite() -> Suite:
    """Read the suite that comes with misslink."""
    source = files("misslink").joinpath("judging", "attacks", "suite.toml")
    content = tomllib.loads(source.read_text(encoding="utf-8"))
    numbers: dict[tuple[str, str], int] = {}
    attacks = []
    for payload in content["payload"]:
        encode = _ENCODINGS[payload["encoding"]] if "encoding" in payload else str
        for place in payload["places"]:
            key = place, payload["kind"]
            numbers[key] = numbers.get(key, 0) + 1
            attack = Attack(
                id=f"{place}/{payload['kind']}/{numbers[key]}",
                place=place,
                kind=payload["kind"],
                payload=encode(payload["text"].strip()),
                first=payload.get("at") == "start",
            )
            attacks.append(attack)
    cases = (
        BaseCase(
            id=case["id"],
            metrics=tuple(case["metrics"]),
            question=case["question"],
            passages=tuple(case["passages"]),
            answer=case["answer"],
            references=tuple(case["references"]),
        )
        for case in content["case"]
    )
    return Suite(tuple(attacks), tuple(cases))
