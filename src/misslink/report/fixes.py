"""The fixes of retrieval, counted in failed cases: one number for one fix in every view."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from misslink.documents import cutoff_of, replay_of
from misslink.linking.findings import Fix, rank_fixes
from misslink.parts import light_items
from misslink.render.format import pluralize
from misslink.report.links import number_cases, view_fragment
from misslink.types import Run

_LABELS = {
    "index_documents": "Index missing documents",
    "keep_in_prompt": "Keep retrieved passages in the prompt",
    "rechunk": "Change the chunking",
    "remove_duplicates": "Remove near-duplicates",
    "hybrid_search": "Add keyword search",
    "check_filter": "Check the filter of the search",
    "larger_k": "Retrieve {wider} passages, not {k}",
    "expand_queries": "Expand queries",
    "fine_tune_embedding": "Fine-tune the embedding",
    "rerank": "Rerank the first 50",
}
_WHOLE = "Show retrieved passages whole"  # where most are in the prompt, cut or altered


@dataclass(frozen=True)
class CountedFix:
    """A fix with the failed cases of its owner that it would reach, by number from 1."""

    fix: Fix
    label: str
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
    def reach(self) -> str:
        """How many failed cases it reaches, and how that is known."""
        many = pluralize(len(self.cases), "failed case")
        if self.fix.basis == "whatif":
            return f"What-if: it reaches {many}."
        if self.bound:
            return f"It reaches at most {many}."
        return f"Measured: it reaches {many}."


def confirmed_owners(run: Run) -> dict[str, str]:
    """Return the owners that a replay confirms, by case: they overrule those of the links."""
    replay = replay_of(run)
    cases = replay.cases if replay else ()
    return {case.case_id: case.owner for case in cases if case.confirmed and case.owner}


def count_fixes(run: Run) -> tuple[CountedFix, ...]:
    """Return the fixes of `rank_fixes`, with the numbers of their cases.

    A case of which a replay confirms another owner is not among them.
    """
    return tuple(fix for fix in _counted(run) if fix.cases)


def fix_records(run: Run) -> list[dict[str, object]]:
    """Return the fixes as JSON documents have them, best first."""
    return [
        {
            "fix": counted.fix.name,
            "action": f"{counted.label}.",
            "owner": counted.fix.owner,
            "cases": len(counted.cases),
            "basis": counted.fix.basis,
            "miss_type": counted.fix.kind,
        }
        for counted in count_fixes(run)
    ]


def _counted(run: Run) -> Iterator[CountedFix]:
    numbers, k, confirmed = number_cases(run.cases), cutoff_of(run), confirmed_owners(run)
    # The default cutoff may be more than the app ever retrieves.
    most = max((len(trace.retrieved) for trace in light_items(run.traces)), default=0)
    for fix in rank_fixes(run):
        wider = fix.k or 2 * k
        if fix.option and fix.option.startswith("k="):
            wider = int(fix.option.removeprefix("k="))
        label = _LABELS[fix.name].format(k=min(k, most or k), wider=wider)
        if fix.name == "keep_in_prompt":
            losses = {link.case_id: link.loss for link in run.outcomes}
            cut = sum(losses[name] in {"passage_cut", "passage_altered"} for name in fix.cases)
            label = _WHOLE if 2 * cut > len(fix.cases) else label
        own = {name for name in fix.cases if confirmed.get(name, fix.owner) == fix.owner}
        cases = tuple(sorted(numbers[case_id] for case_id in own if case_id in numbers))
        yield CountedFix(fix, label, cases)
