"""Find the parts of the retrieved passages that a model's prompt shows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from misslink.text.normalization import fold, valid_text
from misslink.text.shown_text import Piece, find_shown

if TYPE_CHECKING:
    from misslink.types import Passage

_LONG = 20  # characters; a shorter output ("yes") is found in any prompt by chance
_ELISION = "\n\n\u2026\n\n"  # between two shown parts of a passage


@dataclass(eq=False)
class ModelCall:
    """One call of a model: the text it was given, and the text it gave."""

    prompt: str
    output: str = ""


@dataclass(frozen=True)
class PromptMatch:
    """The passages that the model was shown.

    Parameters
    ----------
    shown : dict of str to str or None
        By id the part in the prompt, the whole text of a passage that was not cut. None: the prompt
        that the answer comes from was not seen.
    graded : tuple of str
        Passages that only calls other than the answer's were shown.
    text : str or None
        The prompt of the call that made the answer.
    """

    shown: dict[str, str] | None
    graded: tuple[str, ...] = ()
    text: str | None = None

    def trace_fields(self, retrieved: Sequence[Passage]) -> dict[str, object]:
        """What a trace says of it: ``prompted``, ``shown``, ``prompt`` and ``graded``."""
        shown = self.shown
        cut = {
            passage.id: part
            for passage in retrieved
            if shown and (part := shown.get(passage.id, passage.text)) != passage.text
        }
        return {
            "prompted": None if shown is None else tuple(p.id for p in retrieved if p.id in shown),
            "shown": {name: valid_text(part) for name, part in cut.items()},
            "prompt": None if self.text is None else valid_text(self.text),
            "graded": self.graded,
        }


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
    chunks: Sequence[Passage],
    models: Sequence[ModelCall],
    answer: str | None,
    questions: Sequence[str] = (),
) -> PromptMatch:
    """Find the parts of the passages in the prompts of the model calls that the answer comes from.

    The calls that count are those whose output is the answer, is part of it, or went into
    the prompt of a call that counts: an app may also show passages to a grader, or rewrite the
    question. Where no output can be recognised in the answer all calls count; if none of their
    prompts holds anything of any passage, the model that answered was not among them, as when a
    LangChain model rewrites the question and a client of another make answers. Words that a prompt
    has from one of the `questions` are no part of a passage.
    """
    counted = _answering_calls(models, answer)
    others = [model for model in models if counted and all(model is not one for one in counted)]
    shown = _shown_parts(chunks, counted or models, questions)
    graded = _shown_parts(chunks, others, questions) if others else {}
    return PromptMatch(
        shown if counted or shown else None,
        tuple(name for name in graded if name not in shown),
        counted[0].prompt if counted else None,
    )


def _shown_parts(
    chunks: Sequence[Passage], models: Sequence[ModelCall], questions: Sequence[str]
) -> dict[str, str]:
    """By id what the prompts show of its texts, joined as `merge_rankings` joins them."""
    prompts = list(dict.fromkeys(model.prompt for model in models))
    # A later call of an agent repeats the prompts of those before.
    prompts = [one for one in prompts if not any(one in other != one for other in prompts)]
    by_id = chunk_texts(chunks)
    found = iter(find_shown([*chain(*by_id.values())], prompts, questions))
    parts = {
        name: _join_pieces(texts, [next(found) for _ in texts]) for name, texts in by_id.items()
    }
    return {name: part for name, part in parts.items() if part is not None}


def _join_pieces(texts: Sequence[str], pieces: Sequence[Sequence[Piece]]) -> str | None:
    """The shown pieces of the texts of one passage, with an ellipsis where something is hidden."""
    whole, joined, end = "\n\n".join(texts), "", 0
    offset = 0
    for text, shown in zip(texts, pieces, strict=True):
        for piece in shown:
            between = whole[end : offset + piece.start]
            if joined:
                joined += _ELISION if between.strip() else between
            joined += piece.text
            end = offset + piece.end
        offset += len(text) + len("\n\n")
    return joined or None


def hidden_spans(text: str, shown: str) -> tuple[tuple[int, int], ...]:
    """Character offsets of what the shown part of a text lacks; none where its words were changed."""
    spans, end = [], 0
    for piece in shown.split(_ELISION):
        start = text.find(piece, end)
        if start < 0:
            return ()
        spans.append((end, start))
        end = start + len(piece)
    return tuple(
        (start, end) for start, end in (*spans, (end, len(text))) if text[start:end].strip()
    )


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
