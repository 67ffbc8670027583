"""Errors of a run, and the fixes of its missed passages."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal, TypeVar

from misslink.documents import (
    ErrorCounts,
    OptionMetric,
    WhatIfOption,
    manifest_of,
    summary_of,
    whatif_of,
)
from misslink.failure_modes import FAILURE_MODES, MISS_MODES
from misslink.parts import light_items
from misslink.types import (
    Estimate,
    Link,
    Missed,
    MissStatus,
    MissType,
    Need,
    NeedState,
    Outcome,
    Reason,
    Run,
    Scored,
    Trace,
)

MissedT = TypeVar("MissedT", bound=Missed)
_DECIDING_METRICS = ("faithfulness", "correctness")


def count_errors(
    traces: Sequence[Trace], verdicts: Sequence[Scored]
) -> tuple[ErrorCounts, tuple[str, int] | None]:
    """Count the cases that the app failed on, that the judge failed on, and without an answer.

    And the reason of most errors of app and judge, with how many cases it has; None without one.
    """
    app, answered, silent = dict[str, str](), False, 0
    for trace in light_items(traces):
        answered |= trace.answered
        if trace.error is not None:
            app[trace.case_id] = trace.error
        else:
            silent += not trace.answered
    judge = {
        verdict.case_id: verdict.reason
        for verdict in verdicts
        if verdict.status == "failed"
        and verdict.metric in _DECIDING_METRICS
        and verdict.case_id not in app
    }
    reasons = Counter(filter(None, chain(app.values(), judge.values())))
    # Of a retriever no answer is expected.
    counts = ErrorCounts(app=len(app), judge=len(judge), no_answer=silent if answered else 0)
    return counts, next(iter(reasons.most_common(1)), None)


RERANK_POOL = 50  # candidates that a reranker gets
# Modes of the heuristic judge whose owner is right in under half of the cases of
# benchmarks/linking/attribution_kinds.py: they count half where owners are compared.
WEAK_MODES = frozenset({"distracted", "off_the_point"})


@dataclass(frozen=True)
class Fix:
    """A change of the retriever, the index or the prompt.

    Parameters
    ----------
    name : str
        Such as 'larger_k'; of `FIXES`.
    kind : str
        The miss type or status that it fixes; `miss_type_advice` has its sentence.
    owner : str
    retrieves, missed : int
        How many failed cases it would give all that they lost, of how many that lost something.
    basis : {'measured_rank', 'at_most', 'whatif'}
        Whether that follows from measured ranks, is an upper bound, or was tried by what-if.
    cases : tuple of str
        Ids of these cases.
    avoided : Estimate
        Failures that it would avoid, as what-if forecast; missing with a reason code without one.
    evidence : Reason
        ``fix_gains`` (the whole interval is above 0), ``not_enough_data``, or why there is no
        forecast.
    k : int or None
        The number of passages with which the measured ranks are reached.
    option : str or None
        The what-if option that was tried.
    """

    name: str
    kind: MissType | MissStatus
    owner: str
    retrieves: int
    missed: int
    basis: Literal["measured_rank", "at_most", "whatif"]
    cases: tuple[str, ...]
    avoided: Estimate
    evidence: Reason
    k: int | None = None
    option: str | None = None

    @property
    def weight(self) -> float:
        """How much a case of the fix counts: half if it is an upper bound."""
        return 0.5 if self.basis == "at_most" else 1.0


@dataclass(frozen=True)
class _FixRule:
    kind: MissType | MissStatus
    owner: str = "retriever"
    measured: bool = False  # measured ranks say that the fix would move the passage into the prompt
    options: tuple[str, ...] = ()  # how what-if calls it, up to '='

    def applies(self, miss: Missed) -> bool:
        if "filtered_out" in (miss.kind, self.kind):  # what a filter hides no ranking returns
            return miss.kind == self.kind
        if self.kind == "ranked_low":
            return miss.status == "not_retrieved" and (miss.true_rank or math.inf) <= RERANK_POOL
        return self.kind in (miss.kind, *miss.also)


# Of two that reach as many cases the earlier one goes first: the smaller change, but for what a miss
# type names.
FIXES: dict[str, _FixRule] = {
    "index_documents": _FixRule("not_indexed", "index"),
    "keep_in_prompt": _FixRule("dropped_from_prompt", "prompt", measured=True),
    "check_filter": _FixRule("filtered_out", measured=True),
    "remove_duplicates": _FixRule("duplicate_crowding", measured=True),
    "larger_k": _FixRule("below_cutoff", measured=True, options=("k",)),
    "hybrid_search": _FixRule("keyword_match", measured=True, options=("hybrid", "bm25")),
    "rechunk": _FixRule("split_evidence", options=("chunk",)),
    "expand_queries": _FixRule("vocabulary_mismatch"),
    "rerank": _FixRule("ranked_low", options=("rerank",)),
    "fine_tune_embedding": _FixRule("domain_mismatch", options=("embedding",)),
}
# What a filter hides or the index lacks no other search of the app finds.
UNSEARCHABLE = frozenset({"filtered_out", "not_indexed"})


def can_search_fix(link: Outcome) -> bool:
    """Whether a better search can retrieve what the case missed: not where its query lost what it needs."""
    mode = FAILURE_MODES.get(link.failure or "passed")
    return mode is None or mode.owner != "prompt" or link.failure == "dropped_from_prompt"


def lost_passages(
    needs: Sequence[Need | NeedState], missed: Sequence[MissedT]
) -> tuple[MissedT, ...]:
    """The missed passages of the needs that a case lost; empty where one of these is not located.

    Of a link without needs, all that it missed.
    """
    lost = [need for need in needs if need.lost_at not in {None, "answer", "data"}]
    if not needs:
        return tuple(missed)
    known = {miss.passage_id: miss for miss in missed}
    misses = {need.passage_id: known.get(need.passage_id or "") for need in lost}
    return tuple(miss for miss in misses.values() if miss) if all(misses.values()) else ()


def fixable_losses(links: Sequence[Link]) -> Iterator[tuple[str, tuple[Missed, ...]]]:
    """By case, the passages that failed cases lost and a fix can give them; without a judge, of all."""
    outcomes = light_items(links)
    judged = any(link.failure for link in outcomes)
    for link in outcomes:
        is_counted = (link.failure in MISS_MODES or not judged) and can_search_fix(link)
        if is_counted and (misses := lost_passages(link.needs, link.missed)):
            yield link.case_id, misses


def rank_fixes(run: Run) -> tuple[Fix, ...]:
    """Return the fixes of failed cases that lost a need, best first.

    A fix counts the failed cases of which it would move every lost need into the prompt; without a
    judge, all cases. What was measured (by ranks or a what-if) comes before upper bounds; within each
    by the number of cases, then as in `FIXES`. Nothing is counted for cases whose failure mode is no
    miss, nor for a fix that what-if tried without raising recall.
    """
    lost = {  # by case: its deepest rank, and the fixes for all that it lost
        case_id: (
            max(miss.true_rank or 0 for miss in misses),
            tuple(name for name, rule in FIXES.items() if all(map(rule.applies, misses))),
        )
        for case_id, misses in fixable_losses(run.links)
    }
    whatif, summary = whatif_of(run), summary_of(run)
    known = [o for o in whatif.options if o.newly_retrieved is not None] if whatif else []
    fixes = []
    for name, rule in FIXES.items():
        completed = {id_: rank for id_, (rank, fixed_by) in lost.items() if name in fixed_by}
        # Among the passages of the traces alone, a rank by words is only a lower bound.
        measured = rule.measured and (bool(summary.diagnosis.corpus) or name != "hybrid_search")
        basis: Literal["measured_rank", "at_most", "whatif"]
        basis = "measured_rank" if measured else "at_most"
        code = "longer_context_unchecked" if name == "larger_k" else "needs_whatif"
        avoided, recall = Estimate.missing(Reason(code=code)), None
        tried = [option for option in known if option.name.partition("=")[0] in rule.options]
        if name == "larger_k":  # the ranks may know of a k that reaches more than those tried
            enough = len(completed)
            tried = [o for o in tried if o.reached is None or len(o.reached) >= enough]
        option = _best_option(tried)
        if tried and option is None:
            continue
        if option is not None:
            basis, avoided, recall = "whatif", option.failures_avoided, _recall(option)
            if option.reached is not None:
                completed = {i: completed.get(i, 0) for i in option.reached if i in lost}
        evidence = _evidence(avoided)
        if recall and recall.winner is None:  # what-if saw no detectable difference in recall
            evidence = Reason(code="not_enough_data")
        if completed:
            reached = len(completed), len(lost), basis, tuple(completed)
            k = max(completed.values()) if name == "larger_k" else None
            tried_as = option.name if option else None
            fixes.append(Fix(name, rule.kind, rule.owner, *reached, avoided, evidence, k, tried_as))
    return tuple(sorted(fixes, key=lambda fix: (fix.basis == "at_most", -fix.retrieves)))


def _best_option(tried: Sequence[WhatIfOption]) -> WhatIfOption | None:
    """The option that reaches most failed cases, of several that of fewest passages.

    None where every one avoids fewer failures than it adds, or finds no more than it loses.
    """
    gaining = (option for option in tried if _gains(option))
    return min(gaining, key=lambda o: (-len(o.reached or ()), o.passages), default=None)


def _gains(option: WhatIfOption) -> bool:
    recall, high = _recall(option), option.failures_avoided.high
    rise = recall.difference.value if recall else None
    return (rise is None or rise > 0) and (high is None or high >= 0)


def _recall(option: WhatIfOption) -> OptionMetric | None:
    return next((metric for name, metric in option.metrics.items() if "recall" in name), None)


def _evidence(avoided: Estimate) -> Reason:
    """What the run says of the failures that a fix avoids."""
    if avoided.low is None or avoided.high is None:
        return avoided.reason_code or Reason(code="not_enough_data")
    return Reason(code="fix_gains" if avoided.low > 0 else "not_enough_data")


def weak_modes(run: Run) -> frozenset[str]:
    """The modes that the judge of a run often confuses."""
    return WEAK_MODES if manifest_of(run).judge.startswith("heuristic") else frozenset()


def leading_owners(run: Run) -> tuple[str, ...]:
    """Return the owners with most failed cases; several where these are equally many.

    A case whose mode the judge often confuses counts half; 'unknown' is returned only alone.
    """
    weak, counts = weak_modes(run), Counter[str]()
    for link in run.outcomes:
        if link.failed:
            counts[link.owner or "unknown"] += 1 if link.failure in weak else 2
    known = {owner: count for owner, count in counts.items() if owner != "unknown"} or counts
    most = max(known.values(), default=0)
    return tuple(owner for owner, count in known.items() if count == most)
