"""Find the retrieved passages that reached a model's prompt."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

from misslink.text.normalization import fold

if TYPE_CHECKING:
    from misslink.types import Passage

FULL_SHARE = (
    0.8  # of a passage's word 5-grams: blanks, markup or the cut of a last sentence may differ
)
_PARTIAL_SHARE = 0.2  # below this the passage and the prompt merely share phrases
_GRAM = 5
_LONG = 20  # characters; a shorter output ("yes") is found in any prompt by chance
_WORD = re.compile(r"\w+")
_ESCAPED = re.compile(r"\\(?:n|r|t|\"|')")


@dataclass(eq=False)
class ModelCall:
    """One call of a model: the text it was given, and the text it gave."""

    prompt: str
    output: str = ""


@dataclass(frozen=True)
class PromptMatch:
    """Ids of the passages that reached the model, and shares of those that did in part.

    Parameters
    ----------
    whole : tuple of str or None
        None: the prompt that the answer comes from was not seen.
    part : dict of str to float
        Share in (0, 1) of the word 5-grams found, for passages that were cut short.
    graded : tuple of str
        Passages that only calls other than the answer's were shown.
    text : str or None
        The prompt of the call that made the answer.
    shown : dict of str to str
        Of the passages of several chunks the texts of those that reached the model.
    """

    whole: tuple[str, ...] | None
    part: dict[str, float]
    graded: tuple[str, ...] = ()
    text: str | None = None
    shown: dict[str, str] = field(default_factory=dict)

    def as_read(self, passages: Iterable[Passage]) -> tuple[Passage, ...]:
        """The passages, those of several chunks with the texts that reached the model."""
        return tuple(
            passage.model_copy(update={"text": self.shown.get(passage.id, passage.text)})
            for passage in passages
        )

    @property
    def notes(self) -> list[str]:
        """What people should know of the passages that were cut short."""
        return [
            f"passage '{name}' reached the prompt only in part ({share:.0%} of it) "
            "and counts as missing from the prompt"
            for name, share in self.part.items()
        ]


def chunk_texts(chunks: Iterable[Passage]) -> dict[str, list[str]]:
    """The texts of each id, without those that are part of one before."""
    texts: dict[str, list[str]] = {}
    for chunk in chunks:
        earlier = texts.setdefault(chunk.id, [])
        if not any(chunk.text in text for text in earlier):
            earlier.append(chunk.text)
    return texts


def merge_rankings(lists: Collection[Sequence[Passage]]) -> tuple[Passage, ...]:
    """One ranking out of those of several searches, in which chunks may share an id.

    A passage keeps its best rank; ties go by the order of the searches; ranks are then counted
    again from 1. The different texts of an id are joined, for the app has them all.
    """
    best: dict[str, tuple[int, int, Passage]] = {}
    for order, chunks in enumerate(lists):
        for chunk in chunks:
            earlier = best.get(chunk.id)
            if earlier is None or chunk.rank < earlier[0]:
                best[chunk.id] = chunk.rank, order, chunk
    texts = chunk_texts(chain(*lists))
    ranked = sorted(best.values(), key=lambda entry: entry[:2])
    return tuple(
        passage.model_copy(update={"rank": rank, "text": "\n\n".join(texts[passage.id])})
        for rank, (_, _, passage) in enumerate(ranked, start=1)
    )


def match_prompts(
    chunks: Sequence[Passage], models: Sequence[ModelCall], answer: str | None
) -> PromptMatch:
    """Look each passage up in the prompts of the model calls that the answer comes from.

    A passage reached the model if the folded text of one of its chunks is in a prompt, or 80% of
    its word 5-grams are. The calls that count are those whose output is the answer, is part of it, or went into
    the prompt of a call that counts: an app may also show passages to a grader, or rewrite the
    question. Where no output can be recognised in the answer all calls count; if none of their
    prompts holds anything of any passage, the model that answered was not among them, as when a
    LangChain model rewrites the question and a client of another make answers.
    """
    counted = _answering_calls(models, answer)
    prompts = [_Prompt(model.prompt) for model in counted or models]
    whole: list[str] = []
    part: dict[str, float] = {}
    shown: dict[str, str] = {}
    by_id = chunk_texts(chunks)
    for name, texts in by_id.items():
        shares = [max((prompt.share(text) for prompt in prompts), default=0.0) for text in texts]
        if max(shares) >= FULL_SHARE:
            whole.append(name)
            if min(shares) < FULL_SHARE:
                pairs = zip(texts, shares, strict=True)
                shown[name] = "\n\n".join(text for text, share in pairs if share >= FULL_SHARE)
        elif max(shares) >= _PARTIAL_SHARE:
            part[name] = max(shares)
    others = [model for model in models if counted and all(model is not one for one in counted)]
    other_prompts = [_Prompt(model.prompt) for model in others]
    graded = tuple(
        name
        for name, texts in by_id.items()
        if name not in whole
        and any(prompt.share(text) >= FULL_SHARE for prompt in other_prompts for text in texts)
    )
    if not (counted or whole or part):
        return PromptMatch(None, part, graded)
    prompt = counted[0].prompt if counted else None
    return PromptMatch(tuple(whole), part, graded, prompt, shown)


class _Prompt:
    def __init__(self, text: str) -> None:
        # A tool's result may be shown to the model as JSON or as a repr, with its breaks escaped.
        plain = f"{text}\n{_ESCAPED.sub(' ', text)}" if _ESCAPED.search(text) else text
        self.folded = fold(plain)
        self._grams: set[tuple[str, ...]] | None = None

    def share(self, text: str) -> float:
        """The share of `text` that is in this prompt: 1 whole, else by word 5-grams."""
        folded = fold(text)
        if not folded:
            return 0.0
        if folded in self.folded:
            return 1.0
        passage_grams = _grams(folded)
        if not passage_grams:
            return 0.0
        if self._grams is None:
            self._grams = set(_grams(self.folded))
        return sum(gram in self._grams for gram in passage_grams) / len(passage_grams)


def _answering_calls(models: Sequence[ModelCall], answer: str | None) -> list[ModelCall]:
    """The model calls that the answer comes from; none where that cannot be told."""
    folded_answer = fold(answer or "")
    counted = [model for model in models if _is_same_text(fold(model.output), folded_answer)]
    waiting = list(counted)
    while waiting:
        prompt = fold(waiting.pop().prompt)
        for model in models:
            output = fold(model.output)
            is_counted = any(model is other for other in counted)
            if not is_counted and len(output) >= _LONG and output in prompt:
                counted.append(model)
                waiting.append(model)
    return counted


def _is_same_text(output: str, answer: str) -> bool:
    """Whether one of two folded texts is the other, or a long enough part of it."""
    if not output or not answer:
        return False
    shorter, longer = sorted((output, answer), key=len)
    return shorter == longer or (len(shorter) >= _LONG and shorter in longer)


def _grams(folded: str) -> list[tuple[str, ...]]:
    words = _WORD.findall(folded)
    return [tuple(words[index : index + _GRAM]) for index in range(len(words) - _GRAM + 1)]
