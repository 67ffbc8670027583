"""What a plant is: one case, what is broken for it, and what is therefore true of it."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from langchain_core.documents import Document

from faults.gold import Gold
from misslink.text.normalization import content_words, fold, sentence_spans
from misslink.types import Case, FailureMode, MissType, Support

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["DEPTH", "PUSHED_TO", "Fault", "K", "Plant", "Said", "Staging", "by_ids"]

K = 5
DEPTH = 100
PUSHED_TO = 30  # the rank of what is pushed down
TELLING = 6  # content words of a sentence that can stand as an answer
_SYLLABLES = ("bra", "del", "fon", "gi", "kor", "lu", "mep", "na", "pos", "qui", "tar", "vel")

Retrieval = Literal["hit", "partial", "miss", "not_needed"]


@dataclass(frozen=True)
class Said:
    """A claim of the planted answer, and what is true of it."""

    text: str
    support: Support
    quote: str | None = None
    reference: Literal["agrees", "contradicts", "silent"] = "silent"


@dataclass(frozen=True)
class Plant:
    """One case, how the app is broken for it, and the truth about the answer it will give.

    Parameters
    ----------
    case : Case
    answer : str
        What the model is told to say.
    retrieval : {'hit', 'partial', 'miss', 'not_needed'}
        What must have reached the prompt, or the staging failed.
    said : sequence of Said
        The answer's claims.
    response : {'answers', 'evades', 'declines'}
    states : {'states', 'contradicts', 'omits'}
        What the answer makes of the reference.
    placed : sequence of (int, Document)
        Rank at which a passage stands among the search results, whatever the search says.
    hidden : frozenset of str
        Passages that the search does not find.
    withheld : frozenset of str
        Passages that are retrieved and kept from the prompt.
    unindexed : frozenset of str
        Passages that are not in the index at all.
    added : sequence of Document
        Passages that are in this index only.
    helps : frozenset of str
        The texts that hold the answer.
    """

    case: Case
    answer: str
    retrieval: Retrieval
    said: tuple[Said, ...] = ()
    response: Literal["answers", "evades", "declines"] = "answers"
    states: Literal["states", "contradicts", "omits"] = "omits"
    placed: tuple[tuple[int, Document], ...] = ()
    hidden: frozenset[str] = frozenset()
    withheld: frozenset[str] = frozenset()
    unindexed: frozenset[str] = frozenset()
    added: tuple[Document, ...] = ()
    helps: frozenset[str] = frozenset()

    def arranged(self, found: Sequence[Document]) -> list[Document]:
        """The search results as this case gets them."""
        elsewhere = self.hidden | {str(document.id) for _, document in self.placed}
        ranked = [document for document in found if document.id not in elsewhere]
        for rank, document in sorted(self.placed, key=lambda pair: pair[0]):
            ranked.insert(rank - 1, document)
        return ranked


@dataclass(frozen=True)
class Fault:
    """A way to break the app, and the failure mode that must then be named.

    ``note`` must be named beside a passed case; ``miss_type`` is the miss type that
    must be given, as the first or among the others that fit.
    """

    name: str
    what: str
    failure: FailureMode
    plant: Callable[[Gold, Staging], Plant | None] = field(repr=False)
    note: FailureMode | None = None
    miss_type: MissType | None = None


class Staging:
    """What faults are planted with: places, sentences of passages, and words that mean nothing.

    Parameters
    ----------
    noise : callable
        Passages that the search finds for a case and that carry none of anybody's evidence.
    rng : random.Random
    """

    def __init__(self, noise: Callable[[Gold], Sequence[Document]], rng: random.Random) -> None:
        self.noise = noise
        self.rng = rng

    def on_top(self, documents: Sequence[Document]) -> tuple[tuple[int, Document], ...]:
        """Places among the first K, drawn."""
        ranks = self.rng.sample(range(1, K + 1), len(documents))
        return tuple(zip(ranks, documents, strict=True))

    def far_down(self, documents: Sequence[Document]) -> tuple[tuple[int, Document], ...]:
        """Places from rank PUSHED_TO on."""
        return tuple(enumerate(documents, start=PUSHED_TO))

    def invention(self) -> str:
        """A sentence that no passage supports, for its words do not exist."""
        one, other, third = ("".join(self.rng.choices(_SYLLABLES, k=3)) for _ in range(3))
        number = self.rng.randint(1901, 2099)
        return self.rng.choice(
            (
                f"The {one} table of release {number} decides it, together with the {other} flag.",
                f"Since {number} every {one} is handed to the {other} queue and sorted by {third}.",
                f"It is settled by {number} rounds of {one} voting among the {other} handlers.",
            )
        )

    def sentence(self, document: Document, without: Sequence[str]) -> str | None:
        """A sentence of the passage that can stand as an answer and holds none of the texts."""
        text = document.page_content
        shunned = [fold(each) for each in without]
        telling = [
            text[start:end]
            for start, end in sentence_spans(text)
            if len(content_words(text[start:end])) >= TELLING
            and text[start].isupper()
            and text[end - 1] == "."
            and "\n\n" not in text[start:end]
            and not any(s in fold(text[start:end]) or fold(text[start:end]) in s for s in shunned)
        ]
        return self.rng.choice(telling) if telling else None


def by_ids(gold: Gold) -> Case:
    """The case with passage ids in place of evidence texts, each way to have them all."""
    ways = itertools.product(*([str(one.id) for one in each] for each in gold.carriers))
    sets = dict.fromkeys(tuple(dict.fromkeys(way)) for way in ways)
    return gold.case.model_copy(update={"evidence": {}, "relevant_any": tuple(sets)})
