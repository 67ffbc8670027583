"""What the writer of a gold set is asked, and how its replies look."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from misslink.judging.protocol import Ask
from misslink.prompting import Prompts

__all__ = [
    "PROMPTS",
    "Compared",
    "Elsewhere",
    "FromEvidence",
    "Negative",
    "Order",
    "Quote",
    "Recalled",
    "Rewritten",
    "Written",
    "answer",
    "compare",
    "elsewhere",
    "recall",
    "rewrite",
    "write",
    "write_negative",
]

PROMPTS = (
    "goldset_write",
    "goldset_write_negative",
    "goldset_rewrite",
    "goldset_answer",
    "goldset_recall",
    "goldset_compare",
    "goldset_elsewhere",
)


class _Said(BaseModel):
    model_config = ConfigDict(frozen=True)


class Order(_Said):
    """What kind of question is wanted, who asks it, and how long it is, in words."""

    kind: str
    asker: str
    length: str


class Quote(_Said):
    """Words of a passage, which is named by number from 1."""

    passage: int
    quote: str


class Written(_Said):
    """A question with its answer and what carries it."""

    question: str | None
    reference: str | None
    quotes: tuple[Quote, ...]


class Negative(_Said):
    """A question that nothing answers."""

    question: str | None


class Rewritten(_Said):
    """A question in other words."""

    question: str | None


class FromEvidence(_Said):
    """What evidence alone answers."""

    answer: str | None


class Recalled(_Said):
    """What is known by heart."""

    answer: str | None


class Agreement(_Said):
    """Whether an answer, by number from 1, says what the reference says."""

    answer: int
    agrees: Literal["yes", "no"]


class Compared(_Said):
    """Answers held against the reference."""

    answers: tuple[Agreement, ...]


class Answering(_Said):
    """Whether a passage, by number from 1, answers, and with which words."""

    passage: int
    answers: Literal["yes", "partly", "no"]
    quote: str | None


class Elsewhere(_Said):
    """Which passages answer."""

    passages: tuple[Answering, ...]


def write(order: Order, passages: Sequence[str], prompts: Prompts) -> Ask:
    """Ask for a question that these passages answer."""
    inputs = {**order.model_dump(), "passages": list(passages)}
    return Ask.rendered(prompts.load("goldset_write"), inputs, Written)


def write_negative(order: Order, passages: Sequence[str], prompts: Prompts) -> Ask:
    """Ask for a question on the subject of these passages that nothing answers."""
    inputs = {**order.model_dump(), "passages": list(passages)}
    return Ask.rendered(prompts.load("goldset_write_negative"), inputs, Negative)


def rewrite(question: str, words: Sequence[str], passages: Sequence[str], prompts: Prompts) -> Ask:
    """Ask for the same question in other words than `words`, which it copied."""
    inputs = {"question": question, "copied": list(words), "passages": list(passages)}
    return Ask.rendered(prompts.load("goldset_rewrite"), inputs, Rewritten)


def answer(question: str, evidence: Sequence[str], prompts: Prompts) -> Ask:
    """Ask for the answer that the evidence alone gives."""
    inputs = {"question": question, "evidence": list(evidence)}
    return Ask.rendered(prompts.load("goldset_answer"), inputs, FromEvidence)


def recall(question: str, prompts: Prompts) -> Ask:
    """Ask for the answer with nothing to look it up in."""
    return Ask.rendered(prompts.load("goldset_recall"), {"question": question}, Recalled)


def compare(question: str, reference: str, answers: Sequence[str], prompts: Prompts) -> Ask:
    """Ask which answers say what the reference says."""
    inputs = {"question": question, "reference": reference, "answers": list(answers)}
    return Ask.rendered(prompts.load("goldset_compare"), inputs, Compared)


def elsewhere(
    question: str, references: Sequence[str], passages: Sequence[str], prompts: Prompts
) -> Ask:
    """Ask which passages answer a question."""
    inputs = {"question": question, "references": list(references), "passages": list(passages)}
    return Ask.rendered(prompts.load("goldset_elsewhere"), inputs, Elsewhere)
