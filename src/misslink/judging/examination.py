"""The one question that serves every default metric of levels 2 and 3."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from misslink.judging.protocol import Ask
from misslink.prompting import load_prompt
from misslink.types import Support

__all__ = ["Examination", "ExaminationWithReference", "examine"]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


class ClaimSaid(_Part):
    """A claim of the answer: its words, its support, and the words of a passage that decide it."""

    text: str
    support: Support
    quote: str | None = None


class ClaimSaidWithReference(ClaimSaid):
    """The same, held against the reference answers too."""

    reference: Literal["agrees", "contradicts", "silent"]


class PassageSaid(_Part):
    """Whether a passage (from 1) helps to answer the question."""

    passage: int
    relevant: bool


class ReferenceSaid(_Part):
    """A claim of a reference answer (from 1), and whether the answer makes it."""

    reference: int
    text: str
    answer: Literal["states", "contradicts", "omits"]


class Examination(_Part):
    """What is said of a case that has no reference answer."""

    claims: tuple[ClaimSaid, ...]
    passages: tuple[PassageSaid, ...]
    response: Literal["answers", "partly", "evades", "declines"]


class ExaminationWithReference(Examination):
    """What is said of a case that has reference answers."""

    claims: tuple[ClaimSaidWithReference, ...]
    reference_claims: tuple[ReferenceSaid, ...]


def examine(
    question: str, passages: tuple[str, ...], answer: str, references: tuple[str, ...] = ()
) -> Ask:
    """Ask for claims with support and quotes, passage relevance, and the response as a whole.

    Parameters
    ----------
    question, answer : str
    passages : sequence of str
        What the answer was written from, best first; the reply names them from 1.
    references : sequence of str
        Acceptable answers; without any the reply says nothing of correctness.
    """
    prompt = load_prompt("examination")
    inputs = {
        "question": question,
        "passages": passages,
        "answer": answer,
        "references": references,
    }
    system, user = prompt.render(inputs)
    return Ask(
        name=prompt.ref.name,
        inputs=inputs,
        messages=({"role": "system", "content": system}, {"role": "user", "content": user}),
        schema=ExaminationWithReference if references else Examination,
        prompt=prompt.ref,
    )
