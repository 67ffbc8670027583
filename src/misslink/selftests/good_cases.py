"""The good cases of a run: an answer, the passages that hold it, and nothing known to be wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from misslink.calibration.labelled_failures import apply_labels
from misslink.matching import declines
from misslink.parts import by_case
from misslink.retrieval import relevant_ids, retrieval_outcome
from misslink.selftests.values import find_values, numbers_of, states
from misslink.text.near_duplicates import passage_words
from misslink.text.normalization import sentence_spans, stems
from misslink.types import Case, Link, Passage, Run, Trace

_HELD = 0.7  # share of a sentence's content words in a passage that holds it
_LACKED = 0.5  # share below which no sentence says it, in other words either
_MIN_WORDS = 3  # content words of an answer in which a fault can be planted
_NOTED = frozenset(
    {"answered_from_memory", "missing_label"}
)  # passed, but not by labelled passages


@dataclass(frozen=True)
class GoodCase:
    """A case whose answer is right, with its trace; ``k`` as of the run."""

    case: Case
    trace: Trace
    k: int

    @property
    def answer(self) -> str:
        """The app's answer, or the reference where the app's was not good."""
        return self.trace.answer or ""

    @cached_property
    def context(self) -> tuple[Passage, ...]:
        """What the model saw."""
        return self.trace.context(self.k)

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        """The sentences of the answer that state something."""
        spans = sentence_spans(self.answer)
        texts = (self.answer[start:end] for start, end in spans)
        return tuple(text for text in texts if len(set(stems(text))) >= _MIN_WORDS)

    @cached_property
    def sources(self) -> tuple[Passage, ...]:
        """The passages of the context that hold a sentence of the answer, and the labelled ones."""
        labelled = relevant_ids(self.case, self.context)
        return tuple(
            passage
            for passage in self.context
            if passage.id in labelled
            or any(contains_sentence(passage.text, s) for s in self.sentences)
        )

    @cached_property
    def context_sentences(self) -> tuple[str, ...]:
        """The sentences of the context."""
        texts = [passage.text for passage in self.context]
        return tuple(text[start:end] for text in texts for start, end in sentence_spans(text))

    @property
    def expects_answer(self) -> bool:
        """Whether labels or a reference say that there is an answer."""
        return bool(self.case.expects_answer or self.stating_references)

    @cached_property
    def stating_references(self) -> tuple[str, ...]:
        """The references that do not decline."""
        return tuple(text for text in self.case.references if not declines(text))


def _word_share(passage: str, sentence: str) -> float:
    words = set(stems(sentence))
    return len(words & passage_words(passage)) / len(words) if words else 0.0


def lacks(passage: str, sentence: str) -> bool:
    """Whether a passage cannot say the same as a sentence, in other words either.

    It lacks a number, date or name of it, or no sentence of it shares half of its words.
    """
    if not all(states(passage, value.text) for value in find_values(sentence)):
        return True
    said = (passage[start:end] for start, end in sentence_spans(passage))
    return all(_word_share(each, sentence) < _LACKED for each in said)


def contains_sentence(passage: str, sentence: str) -> bool:
    """Whether a passage has most content words of a sentence, and its numbers."""
    has_words = _word_share(passage, sentence) >= _HELD
    return has_words and numbers_of(sentence) <= numbers_of(passage)


def find_good_cases(run: Run, corpus: Iterable[Passage] = (), *, k: int) -> list[GoodCase]:
    """Return the run's good cases: what passed, else the reference where its passages are known.

    Where people labelled an answer, they say whether it passed. A case that passed without its
    labelled passages in the prompt is not among them, since where a fault of it came from would not
    be known.
    """
    traces = by_case(run.traces)
    links = by_case(apply_labels(run).links)
    texts = {passage.id: passage for passage in corpus}
    found = (
        _good_case(
            case,
            traces[case.id],
            links[case.id],
            texts,
            k,
            passed=links[case.id].failed is False,
        )
        for case in run.cases
    )
    return [case for case in found if case is not None]


def _good_case(
    case: Case, trace: Trace, link: Link, corpus: Mapping[str, Passage], k: int, *, passed: bool
) -> GoodCase | None:
    if case.expects_answer is False or trace.unmatched or trace.unmeasured:
        return None
    is_known = link.retrieval in {"hit", "unlabelled"} and not _NOTED.intersection(link.notes)
    if passed and is_known and not declines(trace.answer or ""):
        good = GoodCase(case, trace, k)
        if good.sentences and good.sources:
            return good
    return next(_from_references(case, trace, link, corpus, k), None)


def _from_references(
    case: Case, trace: Trace, link: Link, corpus: Mapping[str, Passage], k: int
) -> Iterator[GoodCase]:
    """The reference as the answer, and the labelled passages at the top of the context."""
    known = {passage.id: passage for passage in (*trace.retrieved, *trace.deeper)}
    for miss in link.missed:
        if miss.text:
            known.setdefault(miss.passage_id, Passage(id=miss.passage_id, text=miss.text, rank=1))
    for name in case.relevant:
        if name in corpus:
            known.setdefault(name, corpus[name])
    labelled = relevant_ids(case, tuple(known.values()))
    needed = [passage for name, passage in known.items() if name in labelled]
    others = [passage for passage in trace.context(k) if passage.id not in labelled]
    context = ranked([*needed, *others][: max(k, len(needed))])
    made = trace_of(case.id, context, seen=trace.prompted is not None)
    if case.expects_answer and retrieval_outcome(case, made, k).retrieval != "hit":
        return
    for reference in case.references:
        good = GoodCase(case, made.model_copy(update={"answer": reference}), k)
        if not declines(reference) and good.sentences and _is_held(good):
            yield good


def _is_held(good: GoodCase) -> bool:
    """Whether every sentence is in a passage: a reference that says more would be a fault itself."""
    return all(
        any(contains_sentence(p.text, sentence) for p in good.context)
        for sentence in good.sentences
    )


def trace_of(case_id: str, context: Sequence[Passage], *, seen: bool) -> Trace:
    """Return the trace of an app that put all that it retrieved into its prompt; `seen`: which is known."""
    return Trace(
        case_id=case_id,
        retrieved=tuple(context),
        prompted=tuple(passage.id for passage in context) if seen else None,
    )


def ranked(passages: Iterable[Passage]) -> list[Passage]:
    """Return the passages with ranks from 1, each id once."""
    unique = {passage.id: passage for passage in passages}
    return [
        passage.model_copy(update={"rank": rank})
        for rank, passage in enumerate(unique.values(), start=1)
    ]
