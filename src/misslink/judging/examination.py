"""The one question that serves every default metric of levels 2 and 3."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from misslink.judging.protocol import Ask
from misslink.prompting import BUILT_IN, Prompts
from misslink.types import Support

__all__ = [
    "ClaimSaid",
    "ClaimSaidWithReference",
    "Examination",
    "ExaminationWithReference",
    "LabelAlone",
    "PassageSaid",
    "ReferenceSaid",
    "examine",
]


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
    """What is said of a case that has no reference answer.

    ``sufficient`` and ``helpful`` are null where a judge cannot tell, as the embedded one.
    """

    claims: tuple[ClaimSaid, ...]
    passages: tuple[PassageSaid, ...]
    sufficient: Literal["yes", "partly", "no"] | None = None
    response: Literal["answers", "partly", "evades", "declines"]
    helpful: Literal[1, 2, 3, 4, 5] | None = None


class ExaminationWithReference(Examination):
    """What is said of a case that has reference answers."""

    claims: tuple[ClaimSaidWithReference, ...]
    reference_claims: tuple[ReferenceSaid, ...]


class LabelAlone(_Part):
    """What a judge says that can give one word only: does everything in the answer stand there?"""

    supported: Literal["yes", "no"]


def examine(
    question: str,
    passages: tuple[str, ...],
    answer: str,
    references: tuple[str, ...] = (),
    *,
    prompts: Prompts = BUILT_IN,
) -> Ask:
    """Ask for claims with support and quotes, passage relevance, and the response as a whole.

    Parameters
    ----------
    question, answer : str
    passages : sequence of str
        What the answer was written from, best first; the reply names them from 1.
    references : sequence of str
        Acceptable answers; without any the reply says nothing of correctness.
    prompts : Prompts
        Where ``examination`` and ``label_alone`` are read from.
    """
    inputs = {
        "question": question,
        "passages": passages,
        "answer": answer,
        "references": references,
    }

    def alone() -> Ask:
        return Ask.rendered(prompts.load("label_alone"), inputs, LabelAlone, structured=False)

    schema = ExaminationWithReference if references else Examination
    return Ask.rendered(prompts.load("examination"), inputs, schema, alone=alone)
