"""The gold set of the Python reference, with the passages that carry each case's evidence."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from misslink.io import read_goldset
from misslink.retrieval.matching import case_needs, satisfies
from misslink.types import Case, Passage

if TYPE_CHECKING:
    from langchain_core.documents import Document

__all__ = ["Gold", "read_gold", "reference"]

EXAMPLE = Path(__file__).parents[3] / "examples" / "python_reference"


@dataclass(frozen=True)
class Gold:
    """A case, and for each of its evidence texts the documents that carry it."""

    case: Case
    carriers: tuple[tuple[Document, ...], ...]

    @property
    def ids(self) -> frozenset[str]:
        """Every passage that carries any of its evidence."""
        return frozenset(str(one.id) for carrying in self.carriers for one in carrying)

    @property
    def listed(self) -> tuple[Document, ...]:
        """One passage for each evidence text, each once."""
        return tuple({str(carrying[0].id): carrying[0] for carrying in self.carriers}.values())


def reference() -> list[Document]:
    """The passages of the Python reference, as the example app cuts them."""
    if str(EXAMPLE.parent) not in sys.path:
        sys.path.append(str(EXAMPLE.parent))
    from python_reference.app import split_reference

    return split_reference()


def read_gold(documents: Sequence[Document]) -> tuple[Gold, ...]:
    """Read the cases of the gold set that have an answer.

    Cases that share a passage are left out but for the first: a passage taken from one of them
    must not be missed by another.
    """
    passages = [
        Passage(id=str(document.id), text=document.page_content, rank=rank)
        for rank, document in enumerate(documents, start=1)
    ]
    by_id = {str(document.id): document for document in documents}
    answerable: list[Gold] = []
    taken: set[str] = set()
    for case in read_goldset(EXAMPLE / "goldset.jsonl").cases:
        if case.expects_answer is False:
            continue
        # Where a chunk boundary already cuts an evidence, it cannot be placed whole.
        whole = {
            need.evidence: carrying
            for need in case_needs(case, passages)[0]
            if need.evidence
            and (carrying := tuple(by_id[p.id] for p in passages if satisfies(need, p)))
        }
        kept = case.model_copy(
            update={
                "evidence": {text: grade for text, grade in case.evidence.items() if text in whole}
            }
        )
        gold = Gold(kept, tuple(whole[text] for text in kept.evidence))
        if gold.carriers and taken.isdisjoint(gold.ids):
            taken |= gold.ids
            answerable.append(gold)
    return tuple(answerable)
