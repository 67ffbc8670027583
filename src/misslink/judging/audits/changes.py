"""Cases changed in ways that must not matter to a judge, and what is expected of each metric."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from misslink.judging.embedded.abstention import claim_spans, says_absent
from misslink.judging.metric import Subject
from misslink.text import content_words, fold, sentences
from misslink.types import Passage

__all__ = ["AUDITED", "CHANGES", "Padding", "padded", "reordered"]

CHANGES = ("padding", "passage_order", "passage_shuffle", "again")
_FEWEST_WORDS = 4  # of a sentence that can stand alone; fewer are headings and crumbs
_LONGEST = 400  # characters of a filler: what is longer is a table or a text without full stops
_ORDERS = 2  # of two passages, all there are: as they stand and reversed


@dataclass(frozen=True)
class Padding:
    """What padding an answer may do to a metric.

    Parameters
    ----------
    filler : {'passages', 'answer'}
        What the answer is padded with: sentences of its passages, or its own, said again.
    why : str
        Why nothing else is to be expected.
    may_lower : bool
        Whether a padded answer may rightly be called bad: then only a verdict that turns good
        stands against the judge.
    """

    filler: Literal["passages", "answer"]
    why: str
    may_lower: bool = False


_TRUE = "every added sentence stands word for word in a passage, so it adds nothing unfaithful"
_APART = "what the answer says is not what is asked here"
_SAME = "what is said twice is as right, and as complete, as what is said once"
_DULL = "to say the same again helps nobody, though it may rightly count against an answer"

# Passages are no filler for what is measured against the question or a reference: a sentence of
# theirs may hold the very answer, and then a better verdict is right.
AUDITED: Mapping[str, Padding] = MappingProxyType(
    {
        "faithfulness": Padding("passages", _TRUE),
        "context_relevance": Padding("passages", _APART),
        "context_sufficiency": Padding("passages", _APART),
        "correctness": Padding("answer", _SAME),
        "completeness": Padding("answer", _SAME),
        "abstention": Padding("answer", "a refusal said twice is a refusal"),
        "answer_relevance": Padding("answer", _DULL, may_lower=True),
        "helpfulness": Padding("answer", _DULL, may_lower=True),
    }
)


def padded(subject: Subject, filler: Literal["passages", "answer"], seed: int) -> Subject | str:
    """Return the case with an answer about twice as long that says nothing new, or why not.

    Parameters
    ----------
    subject : Subject
        With an answer.
    filler : {'passages', 'answer'}
        'passages': sentences of its passages, verbatim and in an order that is drawn, until the
        answer is twice as long or there are no more. A faithful answer stays faithful, since each
        stands in a passage; an unfaithful one keeps what made it so. (Passages that contradict
        each other can spoil that.) Not taken are questions, fragments, what says that something is
        not known, and what the answer says already. 'answer': its own sentences once more.
    seed : int

    Returns
    -------
    Subject or str
    """
    if filler == "answer":
        return _with_answer(subject, f"{subject.answer.rstrip()} {subject.answer.lstrip()}")
    found = _true_sentences(subject)
    if not found:
        return "its passages hold no sentence that could be added"
    _drawn(subject, seed, filler).shuffle(found)
    text, wanted = subject.answer.rstrip(), 2 * len(subject.answer)
    for sentence in found:
        if len(text) >= wanted:
            break
        text = f"{text} {sentence}"
    return _with_answer(subject, text)


def reordered(subject: Subject, change: str, seed: int) -> Subject | str:
    """Return the case with its passages in another order, or why there is none.

    Parameters
    ----------
    subject : Subject
    change : {'passage_order', 'passage_shuffle'}
        The last first; or an order that is drawn, neither that nor the one they stand in.
    seed : int
    """
    passages = list(subject.context)
    if len(passages) < _ORDERS:
        return "it has fewer than two passages"
    if change == "passage_order":
        return _with_passages(subject, passages[::-1])
    if len(passages) == _ORDERS:
        return "two passages have no third order"
    places = list(range(len(passages)))
    taken = [places[:], places[::-1]]
    drawn = _drawn(subject, seed, change)
    while places in taken:
        drawn.shuffle(places)
    return _with_passages(subject, [passages[place] for place in places])


def _true_sentences(subject: Subject) -> list[str]:
    """Sentences of the passages that state something and are new to the answer, each once."""
    said = fold(subject.answer)
    found: dict[str, str] = {}
    for passage in subject.context:
        text = passage.text
        for start, end in sentences(text):
            sentence = " ".join(text[start:end].split())
            folded = fold(sentence)
            if (
                len(sentence) <= _LONGEST
                and sentence.endswith((".", "!", "\u3002"))
                and len(content_words(sentence)) >= _FEWEST_WORDS
                and claim_spans(sentence)
                and not says_absent(sentence)
                and folded.rstrip(".!") not in said
            ):
                found.setdefault(folded, sentence)
    return list(found.values())


def _with_answer(subject: Subject, answer: str) -> Subject:
    trace = subject.trace.model_copy(update={"answer": answer})
    return Subject(subject.case, trace, subject.k, subject.prompts)


def _with_passages(subject: Subject, passages: Sequence[Passage]) -> Subject:
    ranked = tuple(
        passage.model_copy(update={"rank": rank}) for rank, passage in enumerate(passages, start=1)
    )
    shown = {"retrieved": ranked, "prompted": tuple(passage.id for passage in ranked)}
    trace = subject.trace.model_copy(update=shown)
    return Subject(subject.case, trace, subject.k, subject.prompts)


def _drawn(subject: Subject, seed: int, what: str) -> random.Random:
    """A draw that depends on the case and not on which others are audited."""
    name = f"{seed}:{what}:{subject.case.id}".encode("utf-8", "surrogatepass")
    return random.Random(hashlib.sha256(name).digest())  # noqa: S311 (no secret)
