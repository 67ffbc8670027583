"""The summary: the parts of the first screen, and what to do next."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TypeAlias

from misslink.documents import calibrations_of, manifest_of, summary_of
from misslink.failure_modes import FAILURE_MODES, FAILURES, OWNERS, FailureModeInfo
from misslink.linking.findings import LEVELS, count_owners, rank_fixes
from misslink.linking.miss_types import miss_type_advice
from misslink.render.format import format_estimate, pluralize, shorten
from misslink.render.headline import Findings
from misslink.render.reasons import describe_reason
from misslink.report.cases import FIX_LABELS, rank_cases
from misslink.report.links import case_fragment, number_cases, view_fragment
from misslink.types import Case, Claim, ClaimLink, Link, RetrievalMiss, Run

_MAX_FIXES, _MIN_FIX = 3, 0.1  # of the missed passages; the view of retrieval has all
_MAX_MODES = 3
_TEXT_LENGTH = 100  # of a claim and its quote in the example
_LIST_MARK = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+")
_EXPOSURE_TITLES = {
    "missing_passages": "More relevant passages, fewer failures",
    "generator": "As many failures with every relevant passage",
    "few_associated": "Few failures are associated with missing passages",
}
_RELATIONS = {
    "would_contradict": "Missed passage contradicts it",
    "would_support": "Missed passage supports it",
}
_MISSED = "Missed passage"
_UNSUPPORTED = "No passage in the prompt supports it"
_FRAGMENTS = {
    "unexplained": view_fragment(state="failed", failure="inconclusive"),
    "inconclusive": view_fragment(state="inconclusive"),
}
_UNEXPLAINED = FailureModeInfo(
    "unknown",
    "Unexplained",
    "The answer failed, and no label or passage tells why.",
    action="",
    shape="",
)

# An owner in words, "" without one; the color's name; label, number of cases and view of each part.
ModeGroup: TypeAlias = tuple[str, str, tuple[tuple[str, int, str], ...]]


def read_first_screen(run: Run, findings: Findings) -> SimpleNamespace:
    """Collect the first screen of a run."""
    why = findings.by_exposure.code if findings.by_exposure else ""
    numbers = number_cases(run.cases)
    exposure = ((level, outcome, findings.exposure[level]) for outcome, level in LEVELS.items())
    return SimpleNamespace(
        modes=tuple(_mode_groups(run) if findings.judged else _retrieval_groups(run)),
        exposure_title=_EXPOSURE_TITLES.get(why, "Too few answers to tell whether passages help"),
        exposure=tuple(row for row in exposure if findings.judged and row[2].value is not None),
        fixes=tuple(
            (
                FIX_LABELS[fix.name],
                fix,
                view_fragment(ids=sorted(numbers[i] for i in fix.cases if i in numbers)),
            )
            for fix in rank_fixes(run)[:_MAX_FIXES]
            if fix.retrieves >= _MIN_FIX * fix.missed
        ),
        example=_find_example(run),
    )


def _mode_groups(run: Run) -> Iterator[ModeGroup]:
    """The failure modes by owner, rare ones of an owner together, then what is no failure."""
    numbers = number_cases(run.cases)
    modes: dict[str, list[int]] = {}
    for link in run.links:
        if link.case_id in numbers:
            name = "unexplained" if link.unexplained else link.failure or ""
            modes.setdefault(name, []).append(numbers[link.case_id])
    failed = sorted(FAILURES & modes.keys(), key=lambda name: (-len(modes[name]), name))
    for owner in OWNERS:
        own = [name for name in failed if FAILURE_MODES[name].owner == owner]
        rare = [name for name in own if name not in failed[:_MAX_MODES] or len(modes[name]) == 1]
        single = own if len(rare) == 1 else [name for name in own if name not in rare]
        parts = [
            (FAILURE_MODES[name].label.lower(), len(modes[name]), view_fragment(failure=name))
            for name in single
        ]
        if rest := sorted(number for name in own if name not in single for number in modes[name]):
            fragment = view_fragment(ids=rest) if single else view_fragment(owner=owner)
            parts.append(("others" if single else "failures", len(rest), fragment))
        if parts:
            yield owner.replace("_", " "), owner, tuple(parts)
    known = {*failed, "unexplained", "inconclusive", ""}
    passed = sum(len(cases) for name, cases in modes.items() if name not in known)
    counts = {name: len(modes.get(name, ())) for name in _FRAGMENTS} | {"passed": passed}
    for name in ("unexplained", "passed", "inconclusive"):
        if counts[name]:
            yield "", name, ((name, counts[name], _FRAGMENTS.get(name, "state=passed")),)


def _retrieval_groups(run: Run) -> Iterator[ModeGroup]:
    """Without a judge: how many of their relevant passages the questions got."""
    counts = Counter[str](link.retrieval for link in run.links)
    for outcome, level in LEVELS.items():
        if counts[outcome]:
            label = f"with {level} of their relevant passages"
            yield "", outcome, ((label, counts[outcome], view_fragment(retrieval=outcome)),)


def _find_example(run: Run) -> Mapping[str, str] | None:
    """A claim (or question) of the most frequent failure mode that has one, and what decides it.

    The worst case in which a text decides the claim, and both can be shown whole.
    """
    links = {link.case_id: link for link in run.links if link.failure in FAILURES}
    counts = Counter(link.failure for link in links.values())
    claims = {v.case_id: v.claims for v in run.verdicts if v.metric == "faithfulness"}
    ranked = [number for number in rank_cases(run) if run.cases[number - 1].id in links]
    examples: dict[tuple[bool, bool], dict[str, str]] = {}
    mode = None
    for number in sorted(ranked, key=lambda n: -counts[links[run.cases[n - 1].id].failure]):
        case = run.cases[number - 1]
        link = links[case.id]
        if (True, True) in examples or (examples and link.failure != mode):
            break
        evidence = next(_decisive_evidence(case, link, claims.get(case.id, ())), None)
        if evidence is None:
            continue
        mode = link.failure
        claim, relation, quote, ranks = evidence
        claim, quote = (_LIST_MARK.sub("", text) for text in (claim, quote))
        decided = relation not in (_MISSED, _UNSUPPORTED)
        example = {
            "claim": shorten(claim, _TEXT_LENGTH),
            "subject": "question" if evidence[0] == case.question else "claim",
            "relation": relation,
            "quote": shorten(quote, _TEXT_LENGTH),
            "rank": ranks,
            "fragment": case_fragment(number),
        }
        examples.setdefault((decided, max(len(claim), len(quote)) <= _TEXT_LENGTH), example)
    return examples[max(examples)] if examples else None


def _decisive_evidence(
    case: Case, link: Link, claims: Sequence[Claim]
) -> Iterator[tuple[str, str, str, str]]:
    """A claim, what decides it, its words and ranks: a missed passage, else prompt or reference.

    Of a case that missed a passage and has no bad claim, its question in place of a claim.
    """
    tied = _decisive_tie(link)
    if tied and tied[0].index < len(claims):
        tie, miss = tied
        quote = tie.quote or miss.text or ""
        yield claims[tie.index].text, _RELATIONS[tie.relation], quote, _describe_ranks(miss)
    bad = [claim for claim in claims if claim.support != "supported" or claim.correct is False]
    if link.missed:
        texts = [(miss, miss.evidence or miss.text) for miss in link.missed]
        for miss, text in texts:
            if text and claims:
                needed_by = bad[0].text if bad else case.question
                yield needed_by, _MISSED, text, _describe_ranks(miss)
        return
    for claim in claims:
        if claim.support == "contradicted" and claim.evidence:
            yield claim.text, "Prompt contradicts it", claim.evidence[0].quote, ""
    for claim in bad:
        if case.references and (claim.correct is False or claim.support == "unsupported"):
            yield claim.text, "The reference answer", case.references[0], ""
        elif claim.support == "unsupported":
            yield claim.text, _UNSUPPORTED, "", ""


def _describe_ranks(miss: RetrievalMiss) -> str:
    """Such as "rank 8, keywords 1": where the search and keywords put a missed passage."""
    ranks = [f"rank {miss.true_rank:,}"] if miss.true_rank else []
    if miss.bm25_rank and miss.bm25_rank < (miss.true_rank or math.inf):
        ranks.append(f"{'keywords' if ranks else 'keyword rank'} {miss.bm25_rank:,}")
    return ", ".join(ranks)


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


_MAX_STEPS = 3


@dataclass(frozen=True)
class NextStep:
    """One thing to do: plain text, so escape it; commands are in backticks.

    ``cases`` are those that it would help, by their place in the gold set from 1, empty where it is
    about the measurement; ``fragment`` is where the page shows them; ``brief`` is a shorter action.
    """

    action: str
    why: str
    cases: tuple[int, ...]
    fragment: str
    brief: str = ""


def mode_advice(run: Run, mode: str) -> str:
    """Return what to do about a failure mode of `run`.

    A smaller k is advised only where no relevant passage is missing, so that no advice contradicts
    another.
    """
    if mode == "missing_label":
        return "Add the missing labels to the gold set (`misslink diagnose RUN --missing-labels FILE`)."
    if mode == "distracted" and any(link.missed for link in run.links):
        return "Ask for quotes, try a stronger model; rerank, drop near-duplicates."
    action = FAILURE_MODES[mode].action
    missed = [miss for link in run.links if link.failure == mode for miss in link.missed]
    known = any(miss.true_rank or miss.bm25_rank or miss.text for miss in missed)
    if mode == "retrieval_miss" and missed and not known:
        return f"{action} No rank is known: give the corpus (--corpus FILE)."
    return action


def failure_mode_rows(run: Run) -> tuple[SimpleNamespace, ...]:
    """Return every outcome that occurs, failures first, the most frequent first, with its share."""
    from misslink.stats import proportion  # may import scipy

    counts = Counter(
        "unexplained" if link.unexplained else link.failure for link in run.links if link.failure
    )
    inferred = Counter[str | None](
        link.failure for link in run.links if link.basis == "inferred" and not link.unexplained
    )
    modes = {**FAILURE_MODES, "unexplained": _UNEXPLAINED}
    return tuple(
        SimpleNamespace(
            key=key,
            mode=mode,
            owner=mode.owner.replace("_", " ") if mode.failed else "",
            count=counts[key],
            inferred=inferred[key],
            share=format_estimate("share", proportion(counts[key], counts.total())),
            fragment=_FRAGMENTS.get(key) or view_fragment(failure=key),
            advice=mode_advice(run, key) if key in FAILURES else "",
        )
        for key, mode in sorted(
            modes.items(), key=lambda item: (not item[1].failed, -counts[item[0]])
        )
        if counts[key]
    )


def inferred_note(run: Run) -> str:
    """How often what a search found without labels is right; empty without such failures."""
    notes = (one["message"] for one in summary_of(run).warnings if one["code"] == "inferred")
    return next(notes, "")


def next_steps(run: Run) -> tuple[NextStep, ...]:
    """Return up to three steps: each the one that helps most cases that no earlier step helps.

    The first is for the owner of most failures, where there is such a step. A case counts half
    where a fix of retrieval is an upper bound, and half where the run has not enough data to tell
    what the fix avoids. What-if options without a detectable gain come after all others, and labels
    for the judge last.
    """
    blamed = [*count_owners(run)][:1]
    fixes = list(_fix_steps(run))
    waiting = [*fixes, *((owner, 1.0, step) for owner, step in _mode_steps(run))]
    waiting += [("unknown", 1.0, step) for step in _corpus_steps(run)]
    chosen, done = list[NextStep](), set[int]()
    while waiting and len(chosen) < _MAX_STEPS:
        new = [len(set(step.cases) - done) for *_, step in waiting]
        ranked = [(new[n] * weight, new[n], n) for n, (_, weight, _) in enumerate(waiting)]
        if not chosen:
            ranked = [row for row in ranked if waiting[row[2]][0] in blamed] or ranked
        *_, most, best = max(ranked, key=lambda row: row[:2])
        if not most:
            break
        chosen.append(waiting.pop(best)[2])
        done.update(chosen[-1].cases)
    return (*chosen, *_label_steps(run))[:_MAX_STEPS]


def no_steps_reason(run: Run) -> str:
    """Return why there is nothing to do, for a run without `next_steps`."""
    if not run.cases:
        return "Nothing can be advised: this run has no cases."
    if all(link.failure is None for link in run.links):
        return "Nothing can be advised about answers: no judge was used."
    if all(link.failed is None for link in run.links):
        return "Nothing can be advised: all cases are inconclusive."
    return f"Nothing: none of {pluralize(len(run.cases), 'case')} failed."


def _fix_steps(run: Run) -> Iterator[tuple[str, float, NextStep]]:
    """Fixes of failed cases that lost a need, with their owner and the weight of a case, 0 without a gain.

    Without a judge, of all that were missed.
    """
    numbers = number_cases(run.cases)
    judged = any(link.failure for link in run.links)
    failed = {link.case_id for link in run.links if link.failed or not judged}
    for fix in rank_fixes(run):
        cases = tuple(sorted(numbers[i] for i in failed.intersection(fix.cases) if i in numbers))
        if not cases:
            continue
        action, _, reason = miss_type_advice(fix.kind).partition(": ")
        forecast, sure = describe_reason(fix.evidence), fix.evidence.code != "not_enough_data"
        if fix.avoided.value is not None:
            avoided = format_estimate("failures_avoided", fix.avoided).brief
            forecast = f"{avoided} failures avoided{'' if sure else ': not enough data to tell'}"
        bound = "up to " if fix.basis == "at_most" else ""
        with_k = f" (k = {fix.k})" if fix.k else ""
        why = (
            f"It would give {bound}{fix.retrieves:,} of {pluralize(fix.missed, 'failed case')} all "
            f"that they lost{with_k}. Forecast: {forecast}. {reason[:1].upper()}{reason[1:]}"
        )
        step = NextStep(
            f"{action.rstrip('.')}.",
            why.strip(),
            cases,
            view_fragment(ids=cases),
            f"{FIX_LABELS[fix.name]}.",
        )
        unsure = 0.0 if fix.basis == "whatif" else 0.5
        yield fix.owner, fix.weight * (1.0 if sure else unsure), step


def _mode_steps(run: Run) -> Iterator[tuple[str, NextStep]]:
    """Owner and advice by failure mode; that of a miss only where no miss type says more."""
    numbers = number_cases(run.cases)
    explained = any(
        miss.kind for link in run.links if link.failure in FAILURES for miss in link.missed
    )
    missing = {row.case_id for row in summary_of(run).diagnosis.missing_labels.holes}
    for name, mode in FAILURE_MODES.items():
        ids = {link.case_id for link in run.links if link.failure == name}
        fragment = view_fragment(failure=name)
        if name == "missing_label":
            ids |= missing
        elif name not in FAILURES or (explained and name == "retrieval_miss"):
            continue
        cases = tuple(sorted(numbers[case_id] for case_id in ids if case_id in numbers))
        if cases:
            if name == "missing_label":
                fragment = view_fragment(ids=cases)
            why = f"{mode.label}: {len(cases):,} of {pluralize(len(run.cases), 'case')}."
            action = mode_advice(run, name)
            brief = f"{re.split(r';| [(]', action, maxsplit=1)[0].rstrip('.')}."
            yield mode.owner, NextStep(action, why, cases, fragment, brief)


def _corpus_steps(run: Run) -> Iterator[NextStep]:
    """The corpus, where no label and no search says what was missed."""
    numbers = number_cases(run.cases)
    cases = tuple(
        sorted(
            numbers[link.case_id]
            for link in run.links
            if link.retrieval == "unlabelled"
            and (link.unexplained or (link.failure == "retrieval_miss" and not link.missed))
        )
    )
    if cases and not summary_of(run).diagnosis.corpus:
        yield NextStep(
            "Give the corpus (`--corpus FILE`), in which a search finds what retrieval missed.",
            f"Without labels it is not known what {pluralize(len(cases), 'failure')} missed, if anything.",
            cases,
            view_fragment(ids=cases),
        )


def _label_steps(run: Run) -> Iterator[NextStep]:
    """Labels for a judge that was not compared with any."""
    judged = len({verdict.case_id for verdict in run.verdicts if verdict.status == "scored"})
    manifest = manifest_of(run)
    known = calibrations_of(run) or run.calibration or manifest.calibration
    if judged and not known and manifest.judge not in ("", "none"):
        yield NextStep(
            f"Label {'about 100' if judged > 100 else 'these'} answers (`misslink annotate RUN`) and "
            "compare the judge with them (`misslink calibrate RUN`).",
            f"The judge of {pluralize(judged, 'case')} was not compared with labels of this app's "
            "answers.",
            (),
            "trust",
        )
