"""The first screen: failure modes by owner, failures by exposure, fixes, and one example."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from misslink.failure_modes import FAILURE_MODES, FAILURES, OWNERS
from misslink.linking.findings import LEVELS
from misslink.linking.fixes import Fix, rank_fixes
from misslink.render.format import shorten
from misslink.render.headline import Findings
from misslink.report.cases import FIX_LABELS, rank_cases
from misslink.report.links import case_fragment, number_cases, view_fragment
from misslink.types import ClaimLink, Estimate, Link, RetrievalMiss, Run

_MAX_FIXES = 3
_MAX_MODES = 3
_TEXT_LENGTH = 90
_EXPOSURE_TITLES = {
    "missing_passages": "Fewer answers fail with more relevant passages in the prompt",
    "generator": "Answers fail as often with every relevant passage in the prompt",
    "few_lacked": "Few failed answers lacked a relevant passage",
}
_RELATIONS = {
    "would_contradict": "contradicts it",
    "would_support": "would support it",
}


@dataclass(frozen=True)
class FirstScreen:
    """The parts of the first screen; empty or None where nothing was measured.

    ``modes`` are parts of a bar: label, owner, number of cases, and the view of them. ``exposure``
    has the share of failed answers at each level, with the level and the outcome of retrieval.
    ``fixes`` have a label and the view of their cases. ``example`` is a claim, and what a missed
    passage says of it.
    """

    modes: tuple[tuple[str, str, int, str], ...]
    exposure_title: str
    exposure: tuple[tuple[str, str, Estimate], ...]
    fixes: tuple[tuple[str, Fix, str], ...]
    example: Mapping[str, str] | None


def read_first_screen(run: Run, findings: Findings) -> FirstScreen:
    """Collect the first screen of a run."""
    why = findings.why.code if findings.why else ""
    numbers = number_cases(run.cases)
    exposure = ((level, outcome, findings.exposure[level]) for outcome, level in LEVELS.items())
    return FirstScreen(
        modes=_mode_parts(run),
        exposure_title=_EXPOSURE_TITLES.get(
            why, "Not enough data to tell whether missing passages matter"
        ),
        exposure=tuple(row for row in exposure if findings.judged and row[2].value is not None),
        fixes=tuple(
            (
                FIX_LABELS[fix.name],
                fix,
                view_fragment(ids=sorted(numbers[i] for i in fix.cases if i in numbers)),
            )
            for fix in rank_fixes(run)[:_MAX_FIXES]
        ),
        example=_find_example(run),
    )


def _mode_parts(run: Run) -> tuple[tuple[str, str, int, str], ...]:
    """The most frequent failure modes by owner, other failures, and what is no failure."""
    counts = Counter(link.failure for link in run.links if link.failure)
    failed = [name for name in FAILURE_MODES if counts[name] and name in FAILURES]
    shown = sorted(failed, key=lambda name: -counts[name])[:_MAX_MODES]
    shown.sort(key=lambda name: OWNERS.index(FAILURE_MODES[name].owner))
    others = sum(counts[name] for name in failed if name not in shown)
    passed = counts.total() - sum(counts[name] for name in (*failed, "inconclusive"))
    parts = [
        *(
            (FAILURE_MODES[name].label, FAILURE_MODES[name].owner, counts[name], f"failure={name}")
            for name in shown
        ),
        ("Other failures", "", others, "state=failed"),
        ("Passed", "", passed, "state=passed"),
        ("Inconclusive", "", counts["inconclusive"], "state=inconclusive"),
    ]
    return tuple(part for part in parts if part[2])


def _find_example(run: Run) -> Mapping[str, str] | None:
    """The worst failed case with a claim that a missed passage decides."""
    links = {link.case_id: link for link in run.links if link.failure in FAILURES and link.claims}
    claims = {v.case_id: v.claims for v in run.verdicts if v.metric == "faithfulness"}
    for number in rank_cases(run):
        case = run.cases[number - 1]
        tied = _decisive_tie(links[case.id]) if case.id in links else None
        if tied and tied[0].index < len(claims.get(case.id, ())):
            tie, miss = tied
            return {
                "claim": shorten(claims[case.id][tie.index].text, _TEXT_LENGTH),
                "relation": _RELATIONS[tie.relation],
                "quote": shorten(tie.quote or miss.text or "", _TEXT_LENGTH),
                "rank": f"rank {miss.true_rank:,}" if miss.true_rank else "",
                "fragment": case_fragment(number),
            }
    return None


def _decisive_tie(link: Link) -> tuple[ClaimLink, RetrievalMiss] | None:
    """A contradiction, else a support, by a missed passage with a text."""
    missed = {miss.passage_id: miss for miss in link.missed}
    ties = [
        (tie, missed[tie.passage_id])
        for tie in link.claims
        if tie.relation != "unrelated"
        and tie.passage_id in missed
        and (tie.quote or missed[tie.passage_id].text)
    ]
    return min(ties, key=lambda pair: pair[0].relation != "would_contradict", default=None)
