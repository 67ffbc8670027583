"""The fixes of retrieval, counted in failed cases: one number for one fix in every view."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from misslink.documents import cutoff_of
from misslink.linking.findings import FIXES, Fix, can_search_fix, rank_fixes
from misslink.render.format import pluralize
from misslink.report.links import number_cases, view_fragment
from misslink.types import Link, Run

_LABELS = {
    "index_documents": "Index missing documents",
    "keep_in_prompt": "Keep retrieved passages in the prompt",
    "rechunk": "Change the chunking",
    "remove_duplicates": "Remove near-duplicates",
    "hybrid_search": "Add keyword search",
    "larger_k": "Retrieve {wider} passages, not {k}",
    "expand_queries": "Expand queries",
    "fine_tune_embedding": "Fine-tune the embedding",
    "rerank": "Rerank the first 50",
}
_OWNERS = {"index_documents": "index", "keep_in_prompt": "prompt"}  # others: the retriever


@dataclass(frozen=True)
class CountedFix:
    """A fix with the failed cases of its owner that it would reach, by number from 1.

    ``unsure``: what-if tried it and saw no detectable gain.
    """

    fix: Fix
    label: str
    owner: str
    cases: tuple[int, ...]

    @property
    def fragment(self) -> str:
        """Where the page shows the cases."""
        return view_fragment(ids=self.cases)

    @property
    def bound(self) -> bool:
        """Whether it reaches at most these cases."""
        return self.fix.basis == "at_most"

    @property
    def unsure(self) -> bool:
        return self.fix.basis == "whatif" and self.fix.evidence.code == "not_enough_data"

    @property
    def reach(self) -> str:
        """How many failed cases it reaches, and how that is known."""
        many = pluralize(len(self.cases), "failed case")
        if self.fix.basis == "whatif":
            missed = pluralize(self.fix.missed, "missed passage")
            return f"What-if: it retrieves {self.fix.retrieves:,} of {missed}, in {many}."
        if self.bound:
            return f"It reaches at most {many}."
        return f"Measured: all missed passages of {many} enter the prompt."


def count_fixes(run: Run) -> tuple[CountedFix, ...]:
    """Return the fixes of failed cases, measured ones before bounds, then by cases.

    Without a judge every case that missed a passage counts. An owner without failures has no fix.
    """
    fixes = (fix for fix in _counted(run) if fix.cases)
    return tuple(sorted(fixes, key=lambda fix: (fix.unsure, fix.bound, -len(fix.cases))))


def _counted(run: Run) -> Iterator[CountedFix]:
    numbers, k = number_cases(run.cases), cutoff_of(run)
    judged = any(link.failure for link in run.links)
    for fix in rank_fixes(run):
        owner = _OWNERS.get(fix.name, "retriever")
        # A bound may reach a case that lacks more than it fixes; what is measured completes it.
        enough = all if fix.basis == "measured_rank" else any
        reached = [
            link
            for link in run.links
            if link.missed
            and link.case_id in numbers
            and (not judged or (link.failed and link.owner == owner))
            and can_search_fix(link)
            and enough(map(FIXES[fix.name].applies, link.missed))
        ]
        if fix.name == "larger_k" and fix.basis != "whatif":
            reached = [link for link in reached if _widest(link) <= 2 * k]
        if fix.basis == "whatif" and not reached:
            reached = [link for link in run.links if link.failed and link.case_id in fix.cases]
        label = _LABELS[fix.name].format(k=k, wider=2 * k)
        if fix.option and fix.option.startswith("k="):
            label = _LABELS[fix.name].format(k=k, wider=fix.option.removeprefix("k="))
        cases = tuple(sorted(numbers[link.case_id] for link in reached if link.case_id in numbers))
        yield CountedFix(fix, label, owner, cases)


def _widest(link: Link) -> float:
    """The lowest rank of what a case missed; infinite where one has no rank."""
    return max((miss.true_rank or float("inf") for miss in link.missed), default=float("inf"))
