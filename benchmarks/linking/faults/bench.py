"""Plant, run the whole line, and hold what it says against what was planted."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import misslink
from faults.app import WordHashes, build, open_store
from faults.faults import FAULTS
from faults.gold import Gold, read_gold, reference
from faults.judge import ExactJudge
from faults.planting import DEPTH, Fault, K, Plant, Staging
from misslink.judge.config import JudgeConfig
from misslink.types import Link, Run

if TYPE_CHECKING:
    from langchain_core.documents import Document

__all__ = ["Bench", "Round", "Told"]

NOISE = 20  # passages that are looked through for a sentence to answer from


@dataclass(frozen=True)
class Told:
    """What was planted for one case, and what misslink said of it."""

    fault: Fault
    link: Link

    @property
    def right(self) -> bool:
        """The primary failure mode is the planted one, and a passed case has its note."""
        note = self.fault.note
        return self.link.failure == self.fault.failure and (not note or note in self.link.notes)

    @property
    def miss_types(self) -> set[str]:
        """Every miss type given to any of the case's missed passages."""
        return {
            name
            for missed in self.link.missed
            for name in (missed.kind, *missed.also)
            if name is not None
        }


@dataclass(frozen=True)
class Round:
    """One app, broken for each of its questions in one way."""

    faults: dict[str, Fault]  # by case id
    plants: dict[str, Plant]  # by question
    store: Any

    def told_without_labels(self, judge: Any, *, corpus: bool) -> list[Told]:
        """As `told`, with the labels hidden; without a corpus of what traces say alone."""
        hidden = {"relevant": {}, "relevant_any": (), "evidence": {}}
        cases = [plant.case.model_copy(update=hidden) for plant in self.plants.values()]
        common: dict[str, Any] = {"judge": judge or ExactJudge(self.plants), "cache": None, "k": K}
        app = build(self.store, self.plants)
        run = misslink.evaluate(app, cases, depth=DEPTH, embedding="none", **common)
        if not corpus:
            unseen = {"prompted": None, "deeper": (), "depth": None, "calls": ()}
            traces = [trace.model_copy(update=unseen) for trace in run.traces]
            run = misslink.evaluate(goldset=cases, traces=traces, **common)
        return [Told(self.faults[link.case_id], link) for link in run.links]

    def told(self, judge: Any = None, terms: JudgeConfig | None = None) -> list[Told]:
        """Evaluate the app, and say of every case what was planted and what was said.

        Parameters
        ----------
        judge : str, Judge or None
            None: the exact judge.
        terms : Terms or None
            On what terms the judge is asked.
        """
        run = misslink.evaluate(
            build(self.store, self.plants),
            [plant.case for plant in self.plants.values()],
            judge=ExactJudge(self.plants) if judge is None else judge,
            cache=None,
            k=K,
            depth=DEPTH,
            judge_config=terms,
        )
        self._check(run)
        return [Told(self.faults[link.case_id], link) for link in run.links]

    def _check(self, run: Run) -> None:
        """Every plant must stand as it was meant to, or its label proves nothing."""
        planted = {plant.case.id: plant for plant in self.plants.values()}
        for trace, link in zip(run.traces, run.links, strict=True):
            plant, fault = planted[link.case_id], self.faults[link.case_id].name
            if (trace.answer, link.retrieval) != (plant.answer, plant.retrieval):
                raise AssertionError(
                    f"{fault} on {link.case_id}: retrieval {link.retrieval}, wanted "
                    f"{plant.retrieval}; the app said {trace.answer!r} ({trace.error})"
                )


class Bench:
    """The Python reference, its gold set, and the faults to be planted in it.

    Parameters
    ----------
    seed : int
    """

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self._documents = reference()
        self.gold = read_gold(self._documents)
        self._noise = _noise(self._documents, self.gold)

    def round(self, number: int, *, cases: slice = slice(None)) -> Round:
        """Break the app for every case in another way; over all rounds each case has every fault.

        Parameters
        ----------
        number : int
            From 0 to ``len(FAULTS) - 1``.
        cases : slice
            Of the gold set.
        """
        rng = random.Random(f"{self._seed}-{number}")  # noqa: S311 (a seeded draw)
        stage = Staging(lambda gold: self._noise[gold.case.id], rng)
        faults, plants = {}, {}
        for place, gold in list(enumerate(self.gold))[cases]:
            fault = FAULTS[(place + number) % len(FAULTS)]
            plant = fault.plant(gold, stage)
            if plant is not None:
                faults[plant.case.id] = fault
                plants[plant.case.question] = plant
        return Round(faults, plants, self._store(list(plants.values()), number))

    def _store(self, plants: Sequence[Plant], number: int) -> Any:
        gone = frozenset[str]().union(*(plant.unindexed for plant in plants))
        kept = [document for document in self._documents if document.id not in gone]
        added = [document for plant in plants for document in plant.added]
        return open_store([*kept, *added], f"faults-{self._seed}-{number}")


def _noise(documents: Sequence[Document], golds: Sequence[Gold]) -> dict[str, tuple[Document, ...]]:
    """For each case the passages nearest to its question that carry nobody's evidence."""
    import numpy as np

    taken = frozenset[str]().union(*(gold.ids for gold in golds))
    free = [document for document in documents if document.id not in taken]
    hashes = WordHashes()
    passages = np.array(hashes.embed_documents([document.page_content for document in free]))
    questions = np.array(hashes.embed_documents([gold.case.question for gold in golds]))
    nearest = np.argsort(-(questions @ passages.T), axis=1, kind="stable")[:, :NOISE]
    return {
        gold.case.id: tuple(free[at] for at in row)
        for gold, row in zip(golds, nearest, strict=True)
    }
