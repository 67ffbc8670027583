"""The first screen: failure modes by owner, failures by exposure, fixes, and one example."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from misslink.failure_modes import FAILURE_MODES, FAILURES, OWNERS
from misslink.linking.findings import LEVELS
from misslink.linking.fixes import rank_fixes
from misslink.render.format import IntervalBar, format_estimate, shorten
from misslink.render.headline import Findings
from misslink.report.cases import FIX_LABELS, rank_cases
from misslink.report.links import case_fragment, number_cases, view_fragment
from misslink.types import ClaimLink, Link, RetrievalMiss, Run

_BAR_WIDTH = 1000
_MIN_PERCENT_CASES = 10  # below it counts are shown
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
class ModePart:
    """A part of the bar of failure modes, in a drawing 1,000 wide; ``fragment`` opens its cases."""

    label: str
    owner: str
    kind: str
    count: int
    x: float
    width: float
    fragment: str


@dataclass(frozen=True)
class ExposureRow:
    """Failed answers at one level of exposure; ``of`` is "" where ``value`` is a count."""

    level: str
    value: str
    of: str
    bar: IntervalBar | None
    fragment: str


@dataclass(frozen=True)
class FixRow:
    """How many missed passages a fix would retrieve; ``width`` of 100."""

    label: str
    retrieves: str
    width: float
    avoided: str
    fragment: str


@dataclass(frozen=True)
class Example:
    """A claim, and what a missed passage says of it."""

    claim: str
    relation: str
    passage_id: str
    quote: str
    rank: str
    fragment: str


@dataclass(frozen=True)
class FirstScreen:
    """The parts of the first screen; empty or None where nothing was measured."""

    modes: tuple[ModePart, ...]
    exposure_title: str
    exposure: tuple[ExposureRow, ...]
    missed: int
    fixes: tuple[FixRow, ...]
    example: Example | None


def read_first_screen(run: Run, findings: Findings) -> FirstScreen:
    """Collect the first screen of a run."""
    why = findings.why.code if findings.why else ""
    fixes = rank_fixes(run)[:_MAX_FIXES]
    numbers = number_cases(run.cases)
    return FirstScreen(
        modes=_mode_parts(run),
        exposure_title=_EXPOSURE_TITLES.get(
            why, "Not enough data to tell whether missing passages matter"
        ),
        exposure=_exposure_rows(findings) if findings.judged else (),
        missed=fixes[0].missed if fixes else 0,
        fixes=tuple(
            FixRow(
                label=FIX_LABELS[fix.name],
                retrieves=f"{'up to ' if fix.basis == 'at_most' else ''}{fix.retrieves:,}",
                width=round(100 * min(fix.retrieves / fix.missed, 1), 1) if fix.missed else 0,
                avoided=format_estimate("failures_avoided", fix.avoided).brief
                if fix.basis == "whatif" and fix.evidence.code == "fix_gains"
                else "",
                fragment=view_fragment(ids=sorted(numbers[i] for i in fix.cases if i in numbers)),
            )
            for fix in fixes
        ),
        example=_find_example(run, numbers),
    )


def _mode_parts(run: Run) -> tuple[ModePart, ...]:
    """The most frequent failure modes by owner, other failures, and what is no failure."""
    counts = Counter(link.failure for link in run.links if link.failure)
    failed = [name for name in FAILURE_MODES if counts[name] and name in FAILURES]
    shown = sorted(failed, key=lambda name: -counts[name])[:_MAX_MODES]
    shown.sort(key=lambda name: OWNERS.index(FAILURE_MODES[name].owner))
    parts = [
        (FAILURE_MODES[name].label, FAILURE_MODES[name].owner, counts[name], {"failure": name})
        for name in shown
    ]
    others = sum(counts[name] for name in failed if name not in shown)
    passed = counts.total() - sum(counts[name] for name in (*failed, "inconclusive"))
    parts += [
        ("Other failures", "", others, {"state": "failed"}),
        ("Passed", "", passed, {"state": "passed"}),
        ("Inconclusive", "", counts["inconclusive"], {"state": "inconclusive"}),
    ]
    drawn, x = [], 0.0
    for label, owner, count, selection in parts:
        width = _BAR_WIDTH * count / max(counts.total(), 1)
        if count:
            kind = owner or label.lower().replace(" ", "_")
            place = round(x, 1), round(width, 1)
            drawn.append(ModePart(label, owner, kind, count, *place, view_fragment(**selection)))
        x += width
    return tuple(drawn)


def _exposure_rows(findings: Findings) -> tuple[ExposureRow, ...]:
    rows = []
    for outcome, level in LEVELS.items():
        share = findings.exposure[level]
        if share.value is None:
            continue
        written = format_estimate("share", share)
        few = share.n < _MIN_PERCENT_CASES
        count = f"{round(share.value * share.n)} of {share.n}"
        rows.append(
            ExposureRow(
                level=level,
                value=count if few else written.value,
                of="" if few else f"of {share.n:,}",
                bar=written.bar,
                fragment=view_fragment(retrieval=outcome),
            )
        )
    return tuple(rows)


def _find_example(run: Run, numbers: Mapping[str, int]) -> Example | None:
    """The worst failed case with a claim that a missed passage decides."""
    links = {link.case_id: link for link in run.links if link.failure in FAILURES and link.claims}
    claims = {v.case_id: v.claims for v in run.verdicts if v.metric == "faithfulness"}
    for number in rank_cases(run):
        case = run.cases[number - 1]
        tied = _decisive_tie(links[case.id]) if case.id in links else None
        if tied and tied[0].index < len(claims.get(case.id, ())):
            tie, miss = tied
            return Example(
                claim=shorten(claims[case.id][tie.index].text, _TEXT_LENGTH),
                relation=_RELATIONS[tie.relation],
                passage_id=shorten(miss.passage_id, 60),
                quote=shorten(tie.quote or miss.text or "", _TEXT_LENGTH),
                rank=f"rank {miss.true_rank:,}" if miss.true_rank else "",
                fragment=case_fragment(numbers[case.id]),
            )
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
