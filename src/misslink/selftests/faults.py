"""Faults with a known owner, each a function of a good case; None where its text has no place for one."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple

from misslink.selftests.good_cases import GoodCase, contains_sentence, lacks, ranked
from misslink.selftests.values import (
    Value,
    ValueKind,
    deny,
    exchange,
    exchange_roles,
    exchange_unit,
    far_value,
    find_values,
    language_of,
    near_value,
    other_values,
    states,
)
from misslink.text.normalization import sentence_spans, stems
from misslink.types import Case, Passage, Trace

_REFUSALS = {
    "en": (
        "I don't know.",
        "The provided documents do not contain this information.",
        "I'm sorry, but I cannot answer that question from the given context.",
        "There is no information about this in the sources.",
    ),
    "de": (
        "Das weiß ich nicht.",
        "Dazu enthalten die Dokumente keine Angaben.",
        "Leider kann ich diese Frage anhand der Quellen nicht beantworten.",
    ),
}
_VALUE_KINDS: tuple[ValueKind, ...] = ("number", "date", "name")
_JUST_BELOW, _FAR_BELOW = 1, 40  # ranks below the last retrieved passage
_MOST_POOLED = 40  # values and sentences of other cases that are tried


class Change(NamedTuple):
    """A changed case and trace; ``case`` and ``trace`` keep their ids."""

    case: Case
    trace: Trace


@dataclass(frozen=True)
class Draw:
    """What a mutation draws from: other good cases in random order, and whether it stays near."""

    others: Sequence[GoodCase]
    near: bool
    rng: random.Random


Mutation = Callable[[GoodCase, Draw], Change | None]


@dataclass(frozen=True)
class MutantKind:
    """A kind of mutants: who owns its fault (None: harmless), and whether there are near and far ones."""

    name: str
    owner: str | None
    mutate: Mutation
    graded: bool = False


FAULTS: dict[str, MutantKind] = {}


def _fault(owner: str, *, graded: bool = False) -> Callable[[Mutation], Mutation]:
    def register(mutate: Mutation) -> Mutation:
        FAULTS[mutate.__name__] = MutantKind(mutate.__name__, owner, mutate, graded)
        return mutate

    return register


# Faults of retriever, prompt and index: the fact is gone, and the answer suffers.


@_fault("retriever", graded=True)
def passage_removed(good: GoodCase, draw: Draw) -> Change | None:
    """The passages of the answer rank below the cutoff; others take their places."""
    if good.trace.depth is None:  # no deeper search was seen, so none is made up
        return _without_sources(good, draw, [])
    start = len(good.trace.retrieved) + (_JUST_BELOW if draw.near else _FAR_BELOW)
    deeper = [p.model_copy(update={"rank": start + n}) for n, p in enumerate(good.sources)]
    return _without_sources(good, draw, deeper)


@_fault("retriever")
def passage_filtered(good: GoodCase, draw: Draw) -> Change | None:
    """The retriever returns the passages of the answer at no depth."""
    return _without_sources(good, draw, [])


@_fault("retriever")
def part_removed(good: GoodCase, draw: Draw) -> Change | None:
    """The passage of one part of the answer is not retrieved; the answer lacks or distorts that part."""
    for source in good.sources:
        others = [passage for passage in good.context if passage.id != source.id]
        parts = [
            sentence
            for sentence in good.sentences
            if contains_sentence(source.text, sentence)
            and all(lacks(p.text, sentence) for p in others)
        ]
        if len(parts) != 1 or len(good.sentences) <= 1:
            continue
        part = replace(good, trace=good.trace.model_copy(update={"answer": parts[0]}))
        wrong = next(_exchanged(part, draw, _VALUE_KINDS), None)
        told = good.stating_references and all(
            contains_sentence(text, parts[0]) for text in good.stating_references
        )
        answer = good.answer.replace(parts[0], wrong or "").strip()
        if wrong or (told and stems(answer)):
            trace = _swap_passages(good, {source.id: None})
            return Change(good.case, trace.model_copy(update={"answer": answer}))
    return None


def _without_sources(good: GoodCase, draw: Draw, deeper: list[Passage]) -> Change | None:
    swaps: dict[str, Passage | None] = {passage.id: None for passage in good.sources}
    known = {passage.id for passage in (*good.trace.retrieved, *good.trace.deeper)}
    spare = (
        passage
        for other in draw.others
        for passage in other.sources
        if passage.id not in known
        and not any(contains_sentence(passage.text, s) for s in good.sentences)
    )
    swaps |= dict(zip(swaps, spare, strict=False))
    trace = _swap_passages(good, swaps)
    deeper = deeper + [p for p in good.trace.deeper if p.id not in swaps]
    unique = {passage.id: passage for passage in sorted(deeper, key=lambda p: p.rank)}
    trace = trace.model_copy(update={"deeper": tuple(unique.values()), "deeper_calls": {}})
    return _worse_answer(good, trace, draw)


@_fault("prompt")
def dropped_from_prompt(good: GoodCase, draw: Draw) -> Change | None:
    """The passages of the answer are retrieved, and not in the prompt."""
    if good.trace.prompted is None:  # what the run cannot see, it cannot find
        return None
    gone = {passage.id for passage in good.sources}
    kept = tuple(passage.id for passage in good.context if passage.id not in gone)
    prompt = _edit_prompt(good.trace.prompt, [(passage.text, "") for passage in good.sources])
    shown = {name: text for name, text in good.trace.shown.items() if name in kept}
    update = {"prompted": kept, "prompt": prompt, "shown": shown}
    return _worse_answer(good, good.trace.model_copy(update=update), draw)


@_fault("prompt")
def cut_in_prompt(good: GoodCase, draw: Draw) -> Change | None:
    """The prompt shows the passages of the answer without the sentences that hold it."""
    shown: dict[str, str] = {}
    if good.trace.prompted is None:
        return None
    for passage in good.sources:
        part = _cut(passage.text, good.sentences)
        if not part:
            return None
        shown[passage.id] = part
    if not shown:
        return None
    edits = [(passage.text, shown[passage.id]) for passage in good.sources]
    update = {
        "prompted": tuple(passage.id for passage in good.context),
        "shown": {**good.trace.shown, **shown},
        "prompt": _edit_prompt(good.trace.prompt, edits),
    }
    return _worse_answer(good, good.trace.model_copy(update=update), draw)


def _cut(text: str, answer: Sequence[str]) -> str:
    """The longer part of a passage before or after the sentences that share most with the answer."""
    spans = sentence_spans(text)
    wanted = {stem for sentence in answer for stem in stems(sentence)}
    shares = [
        len(wanted & set(stems(text[start:end]))) / max(1, len(wanted)) for start, end in spans
    ]
    top = max(shares, default=0)
    telling = [span for span, share in zip(spans, shares, strict=True) if share >= top / 2]
    if not telling or not top:
        return ""
    before, after = text[: telling[0][0]].rstrip(), text[telling[-1][1] :].lstrip()
    part = max(before, after, key=len)
    return part if stems(part) else ""


def _worse_answer(good: GoodCase, trace: Trace, draw: Draw) -> Change | None:
    """An answer of an app that lacks the fact: it declines, or states another value.

    None where what is left of the context may still hold the answer. To decline is a failure only
    where an answer is expected.
    """
    texts = [passage.text for passage in trace.context(good.k)]
    if not all(lacks(text, sentence) for text in texts for sentence in good.sentences):
        return None
    wrong = next(_exchanged(good, draw, _VALUE_KINDS), None)
    refusal = _refusal(good, draw) if good.expects_answer else None
    answers = [wrong, refusal] if draw.rng.random() < 1 / 2 else [refusal, wrong]
    answer = next(filter(None, answers), None)
    return Change(good.case, trace.model_copy(update={"answer": answer})) if answer else None


@_fault("index", graded=True)
def stale_copy(good: GoodCase, draw: Draw) -> Change | None:
    """An older copy of a passage is retrieved in its place, and the answer follows it."""
    if (old := _copied(good, draw)) is None:
        return None
    source, copy, answer = old
    trace = _swap_passages(good, {source.id: copy})
    deeper = trace.deeper
    if trace.depth is not None:
        below = source.model_copy(update={"rank": len(trace.retrieved) + _JUST_BELOW})
        deeper = (*deeper, below)
    return Change(good.case, trace.model_copy(update={"answer": answer, "deeper": deeper}))


@_fault("index", graded=True)
def passages_disagree(good: GoodCase, draw: Draw) -> Change | None:
    """A copy with another value stands above the passage, and the answer follows the copy."""
    if (old := _copied(good, draw)) is None:
        return None
    source, copy, answer = old
    retrieved: list[Passage] = []
    for passage in good.trace.retrieved:
        retrieved += [copy, passage] if passage.id == source.id else [passage]
    seen = good.trace.prompted
    if seen is not None:
        seen = tuple(
            n for name in seen for n in ((copy.id, name) if name == source.id else (name,))
        )
    edits = [(source.text, f"{copy.text}\n\n{source.text}")]
    update = {
        "retrieved": tuple(ranked(retrieved)),
        "prompted": seen,
        "prompt": _edit_prompt(good.trace.prompt, edits),
        "answer": answer,
    }
    return Change(good.case, good.trace.model_copy(update=update))


def _copied(good: GoodCase, draw: Draw) -> tuple[Passage, Passage, str] | None:
    """A passage, its copy with another value, and the answer with that value.

    A reference has to state the value, since nothing else says which of both copies is right.
    """
    for source in good.sources:
        for value, new in _other_values(good, draw, _VALUE_KINDS, [source]):
            if not all(states(text, value.text) for text in good.stating_references or ("",)):
                continue
            if source.id in good.trace.shown:
                continue
            copy = source.model_copy(
                update={"id": f"{source.id}-copy", "text": exchange(source.text, value.text, new)}
            )
            return source, copy, exchange(good.answer, value.text, new)
    return None


# Faults of the gold set: the answer stays right.


@_fault("gold_set", graded=True)
def wrong_reference(good: GoodCase, draw: Draw) -> Change | None:
    """Every reference states another value than answer and passages."""
    for value, new in _other_values(good, draw, _VALUE_KINDS, good.sources):
        if good.stating_references and all(
            states(text, value.text) for text in good.stating_references
        ):
            wrong = tuple(exchange(text, value.text, new) for text in good.stating_references)
            return Change(good.case.model_copy(update={"references": wrong}), good.trace)
    return None


@_fault("gold_set")
def unanswerable_flag(good: GoodCase, draw: Draw) -> Change | None:  # noqa: ARG001
    """The gold set says that there is no answer."""
    nothing: dict[str, Any] = {"relevant": {}, "relevant_any": (), "evidence": {}, "references": ()}
    return Change(good.case.model_copy(update={"answerable": False, **nothing}), good.trace)


# Faults of the generator: the passages stay as they are.


@_fault("generator", graded=True)
def number_changed(good: GoodCase, draw: Draw) -> Change | None:
    """A number of the answer is another one."""
    return _answered(good, next(_exchanged(good, draw, ("number",)), None))


@_fault("generator", graded=True)
def date_changed(good: GoodCase, draw: Draw) -> Change | None:
    """A date of the answer is another one."""
    return _answered(good, next(_exchanged(good, draw, ("date",)), None))


@_fault("generator", graded=True)
def name_changed(good: GoodCase, draw: Draw) -> Change | None:
    """A name of the answer is another one."""
    return _answered(good, next(_exchanged(good, draw, ("name",)), None))


@_fault("generator")
def unit_changed(good: GoodCase, draw: Draw) -> Change | None:  # noqa: ARG001
    """A measure of the answer has another unit."""
    return _answered(good, next(_edited(good, exchange_unit), None))


@_fault("generator")
def negated(good: GoodCase, draw: Draw) -> Change | None:  # noqa: ARG001
    """A sentence of the answer denies what it said."""
    return _answered(good, next(_edited(good, deny), None))


@_fault("generator")
def roles_exchanged(good: GoodCase, draw: Draw) -> Change | None:  # noqa: ARG001
    """Two names of a sentence change places."""
    return _answered(good, next(_edited(good, exchange_roles), None))


@_fault("generator", graded=True)
def sentence_invented(good: GoodCase, draw: Draw) -> Change | None:
    """The answer ends with a sentence that no passage holds: on its subject, or of another case."""
    if draw.near:
        wrong = next(_exchanged(good, draw, _VALUE_KINDS, alone=True), None)
        return _answered(good, wrong and f"{good.answer.rstrip()} {wrong}")
    texts = [passage.text for passage in good.context]
    for sentence in (s for other in draw.others[:_MOST_POOLED] for s in other.sentences):
        if not any(contains_sentence(text, sentence) for text in texts):
            return _answered(good, f"{good.answer.rstrip()} {sentence}")
    return None


@_fault("generator")
def part_left_out(good: GoodCase, draw: Draw) -> Change | None:
    """The answer lacks a sentence that every reference states."""
    spans = sentence_spans(good.answer)
    if len(spans) <= 1 or not good.stating_references:
        return None
    places = list(range(len(spans)))
    draw.rng.shuffle(places)
    for place in places:
        start, end = spans[place]
        sentence = good.answer[start:end]
        rest = f"{good.answer[:start].rstrip()} {good.answer[end:].lstrip()}".strip()
        told = all(contains_sentence(text, sentence) for text in good.stating_references)
        if (
            sentence in good.sentences
            and told
            and not contains_sentence(rest, sentence)
            and stems(rest)
        ):
            return _answered(good, rest)
    return None


@_fault("generator")
def refusal(good: GoodCase, draw: Draw) -> Change | None:
    """The answer declines, although the passages hold it."""
    return _answered(good, _refusal(good, draw)) if good.expects_answer else None


@_fault("generator", graded=True)
def other_answer(good: GoodCase, draw: Draw) -> Change | None:
    """The answer to another question: to the most similar one, or to any."""
    asked = set(stems(good.case.question))
    others = [other for other in draw.others if other.answer != good.answer]
    if draw.near:
        others.sort(key=lambda other: -len(asked & set(stems(other.case.question))))
    texts = [*(passage.text for passage in good.context), *good.case.references]
    for other in others:
        if not any(
            contains_sentence(text, sentence) for text in texts for sentence in other.sentences
        ):
            return _answered(good, other.answer)
    return None


def _answered(good: GoodCase, answer: str | None) -> Change | None:
    if not answer or answer == good.answer:
        return None
    return Change(good.case, good.trace.model_copy(update={"answer": answer}))


def _refusal(good: GoodCase, draw: Draw) -> str | None:
    refusals = _REFUSALS.get(language_of(f"{good.case.question} {good.answer}") or "", ())
    return draw.rng.choice(refusals) if refusals else None


def _edited(good: GoodCase, edit: Callable[[str], str | None]) -> Iterator[str]:
    """The answer with one sentence edited, where the passages do not hold what it then says."""
    for sentence in good.sentences:
        edited = edit(sentence)
        if edited and not any(edited in passage.text for passage in good.context):
            yield good.answer.replace(sentence, edited)


def _exchanged(
    good: GoodCase, draw: Draw, kinds: Sequence[ValueKind], *, alone: bool = False
) -> Iterator[str]:
    """The answer with another value of a kind; `alone`: only the sentence of it.

    What the context says with the other value is no fault, and left out.
    """
    for value, new in _other_values(good, draw, kinds, good.sources):
        stating = [sentence for sentence in good.sentences if states(sentence, value.text)]
        wrong = [exchange(sentence, value.text, new) for sentence in stating]
        if wrong and not any(
            states(said, new) and contains_sentence(said, sentence)
            for said in good.context_sentences
            for sentence in wrong
        ):
            yield wrong[0] if alone else exchange(good.answer, value.text, new)


def _other_values(
    good: GoodCase, draw: Draw, kinds: Sequence[ValueKind], sources: Sequence[Passage]
) -> Iterator[tuple[Value, str]]:
    """Values of the answer that a source states, each with another value of its kind.

    Near: a value of the same passage, else the next number; far: of other cases, or a distant number.
    """
    asked = good.case.question
    values = [value for value in find_values(good.answer) if value.kind in kinds]
    # What the question names is its subject: with another one the answer is to another question.
    values.sort(key=lambda value: (kinds.index(value.kind), states(asked, value.text)))
    for value in values:
        holding = [passage.text for passage in sources if states(passage.text, value.text)]
        if not holding:
            continue
        said = f"{good.answer}\n{asked}"
        pooled = (p.text for other in draw.others[:_MOST_POOLED] for p in other.sources)
        near = chain(other_values(value, holding), filter(None, [near_value(value)]))
        far = chain(filter(None, [far_value(value)]), other_values(value, pooled))
        for new in near if draw.near else far:
            if not states(said, new) and (draw.near or not any(states(t, new) for t in holding)):
                yield value, new
                break


def _swap_passages(good: GoodCase, swaps: dict[str, Passage | None]) -> Trace:
    """The trace with passages replaced, or without them, in ranking, prompt and searches."""
    trace, texts = good.trace, {passage.id: passage.text for passage in good.context}

    def names(ids: Sequence[str]) -> tuple[str, ...]:
        found = (passage.id if (passage := swaps.get(n)) else n for n in ids if swaps.get(n, n))
        return tuple(dict.fromkeys(found))

    kept = (swaps.get(passage.id, passage) for passage in trace.retrieved)
    edits = [
        (texts[name], passage.text if passage else "")
        for name, passage in swaps.items()
        if name in texts
    ]
    return trace.model_copy(
        update={
            "retrieved": tuple(ranked(passage for passage in kept if passage is not None)),
            "prompted": None if trace.prompted is None else names(trace.prompted),
            "prompt": _edit_prompt(trace.prompt, edits),
            "shown": {name: text for name, text in trace.shown.items() if name not in swaps},
            "graded": names(trace.graded),
            "calls": tuple(
                call.model_copy(update={"passages": names(call.passages)}) for call in trace.calls
            ),
        }
    )


def _edit_prompt(prompt: str | None, edits: Sequence[tuple[str, str]]) -> str | None:
    """The prompt with other passages; None where one of them is not in it as it stands."""
    for old, new in edits:
        if prompt is None or not old or old not in prompt:
            return None
        prompt = prompt.replace(old, new)
    return prompt
