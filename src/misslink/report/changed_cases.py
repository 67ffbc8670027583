"""The cases of compared runs: what became of each answer, its passages and its claims."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from misslink.documents import cutoff_of
from misslink.parts import by_case
from misslink.report.glossary import RETRIEVALS
from misslink.report.links import case_fragment, mode_label, number_cases
from misslink.text.normalization import fold
from misslink.types import Case, Claim, Passage, Run

MAX_CASES = 500  # cases that one page holds
_MAX_WORDS = 400  # of an answer that is compared word by word
_MIN_ALIKE = 0.3  # share of words that two answers have in common, below which none is marked

Piece = tuple[str, bool]  # a part of an answer, and whether the other answer lacks it


@dataclass(frozen=True)
class PassageMove:
    """A passage with its rank in the first run and in this one; None where it is not in the prompt."""

    id: str
    before: int | None
    after: int | None
    relevant: bool
    text: str


@dataclass(frozen=True)
class ClaimChange:
    """A claim whose label changed, and why."""

    text: str
    before: str
    after: str
    why: str


@dataclass(frozen=True)
class RunAnswer:
    """What one run made of a case; the changes are those from the first run.

    ``passed`` is None where the answer was not judged, and ``change`` "" in the first run.
    """

    run: str
    passed: bool | None
    failure: str
    retrieval: str
    pieces: tuple[Piece, ...]
    missing: str
    href: str
    change: str
    same_answer: bool
    passages: tuple[PassageMove, ...] | None
    same_passages: int
    claims: tuple[ClaimChange, ...]
    better: tuple[str, ...]
    worse: tuple[str, ...]


@dataclass(frozen=True)
class ComparedCase:
    """A case with what every run made of it, the first run's answer first."""

    anchor: str
    id: str
    question: str
    change: str
    sides: tuple[RunAnswer, ...]

    @property
    def data(self) -> dict[str, str | list[str]]:
        """What the page's filters choose by."""
        return {
            "change": self.change,
            "failure": [side.failure for side in self.sides],
            "metric": [name for side in self.sides for name in (*side.worse, *side.better)],
        }


# What a case can be, the first that fits, in the order of the page.
CHANGES = {
    "broken": "Broken",
    "mixed": "Fixed in some, broken in others",
    "worse": "Worse in a metric",
    "failure": "Other failure mode",
    "fixed": "Fixed",
    "better": "Better in a metric",
    "answer": "Other answer",
    "passages": "Other passages",
    "same": "No change",
}


def compare_cases(
    document: Mapping[str, Any], runs: Sequence[Run], reports: Sequence[str]
) -> list[ComparedCase]:
    """Return every compared case, regressions first.

    Parameters
    ----------
    document : mapping
        As `misslink.comparison.compare_runs.compare_runs` returns it.
    runs : sequence of Run
        In the order of the document.
    reports : sequence of str
        The address of each run's report, "" where there is none.
    """
    names, comparisons = document["names"], document["comparisons"]
    sides = [_RunIndex(*side) for side in zip(names, runs, reports, strict=True)]
    flips = [_flips_by_case(comparison) for comparison in comparisons]
    ids = set(document["cases"])
    compared = [_compared_case(case, sides, flips) for case in runs[0].cases if case.id in ids]
    order = list(CHANGES)
    compared.sort(key=lambda case: order.index(case.change))
    return compared


def _flips_by_case(comparison: Mapping[str, Any]) -> dict[tuple[str, str], list[str]]:
    """By case and direction, the metrics whose value flipped."""
    flips: dict[tuple[str, str], list[str]] = {}
    for metric, ways in comparison["flipped"].items():
        for way, ids in ways.items():
            for case_id in ids:
                flips.setdefault((case_id, way), []).append(metric)
    return flips


class _RunIndex:
    """A run, looked up case by case."""

    def __init__(self, name: str, run: Run, address: str) -> None:
        self.name, self.address, self.k = name, address, cutoff_of(run)
        self.numbers = number_cases(run.cases)
        self.cases = by_case(run.cases)
        self.traces = by_case(run.traces)
        self.links = by_case(run.links)
        self.faithfulness = by_case(run.verdicts_of("faithfulness"))

    def claims(self, case_id: str) -> tuple[Claim, ...]:
        verdict = self.faithfulness.get(case_id)
        return verdict.claims if verdict else ()

    def passed(self, case_id: str) -> bool | None:
        link = self.links.get(case_id)
        return None if link is None or link.failed is None else not link.failed

    def failure(self, case_id: str) -> str:
        link = self.links.get(case_id)
        return mode_label(link.failure or "inconclusive") if link else "Not judged"

    def answer(self, case_id: str) -> str:
        trace = self.traces.get(case_id)
        return (trace.answer if trace else None) or ""

    def context(self, case_id: str) -> tuple[Passage, ...] | None:
        """The passages in the prompt; None where they are not known."""
        trace = self.traces.get(case_id)
        return None if trace is None or trace.unmeasured else trace.context(self.k)


def _compared_case(
    case: Case, sides: Sequence[_RunIndex], flips: Sequence[Mapping[tuple[str, str], list[str]]]
) -> ComparedCase:
    first = sides[0]
    answers = [_run_answer(case.id, first, first, {}, len(sides) == 2 and sides[1])]
    for side, flipped in zip(sides[1:], flips, strict=True):
        answers.append(_run_answer(case.id, side, first, flipped, first))
    changes = {answer.change for answer in answers[1:]}
    change = next(name for name in CHANGES if name in changes)
    if "fixed" in changes:
        change = "mixed" if "broken" in changes else "fixed"
    anchor = f"case-{first.numbers[case.id]}"
    return ComparedCase(anchor, case.id, case.question, change, tuple(answers))


def _run_answer(
    case_id: str,
    side: _RunIndex,
    first: _RunIndex,
    flipped: Mapping[tuple[str, str], list[str]],
    other: _RunIndex | bool,
) -> RunAnswer:
    """One run's answer; `other` is the run whose answer it is compared with, if one."""
    answer, link, trace = side.answer(case_id), side.links.get(case_id), side.traces.get(case_id)
    before = other.answer(case_id) if isinstance(other, _RunIndex) else answer
    passages, same_passages = (None, 0) if side is first else _passage_changes(case_id, first, side)
    claims = () if side is first else _claim_changes(case_id, first, side)
    better, worse = (tuple(flipped.get((case_id, way), ())) for way in ("better", "worse"))
    passed, was = side.passed(case_id), first.passed(case_id)
    why = f"no answer: {trace.error}" if trace and trace.error else "no answer"
    tests = (
        ("broken", was is True and passed is False),
        ("fixed", was is False and passed is True),
        ("worse", worse),
        ("failure", side.failure(case_id) != first.failure(case_id)),
        ("better", better),
        ("answer", answer != before),
        ("passages", passages),
        ("same", True),
    )
    return RunAnswer(
        run=side.name,
        passed=passed,
        failure=side.failure(case_id),
        retrieval=RETRIEVALS.get(link.retrieval, link.retrieval) if link else "",
        pieces=mark_difference(before, answer),
        missing="" if answer else why,
        href=f"{side.address}#{case_fragment(side.numbers[case_id])}" if side.address else "",
        change="" if side is first else next(name for name, fits in tests if fits),
        same_answer=side is not first and answer == before,
        passages=passages,
        same_passages=same_passages,
        claims=claims,
        better=better,
        worse=worse,
    )


def mark_difference(before: str, after: str) -> tuple[Piece, ...]:
    """Cut `after` into pieces, and mark the words that `before` lacks.

    Nothing is marked where the texts are long or have little in common.

    Examples
    --------
    >>> mark_difference("It costs 9 crowns.", "It costs 12 crowns.")
    (('It costs', False), (' 12', True), (' crowns.', False))
    """
    words: list[list[str]] = [
        re.findall(r"\s*(?:\w+|[^\w\s])|\s+", text) for text in (before, after)
    ]
    plain = ((after, False),) if after else ()
    if before == after or max(map(len, words)) > _MAX_WORDS:
        return plain
    matcher = SequenceMatcher(a=words[0], b=words[1], autojunk=False)
    if matcher.ratio() < _MIN_ALIKE:
        return plain
    pieces = [
        ("".join(words[1][start:end]), kind != "equal")
        for kind, _, _, start, end in matcher.get_opcodes()
    ]
    return tuple(piece for piece in pieces if piece[0])


def _passage_changes(
    case_id: str, first: _RunIndex, side: _RunIndex
) -> tuple[tuple[PassageMove, ...] | None, int]:
    """The passages that came in, went out or moved, and how many stayed; None where unknown."""
    from misslink.retrieval import relevant_ids  # imports numpy

    contexts = first.context(case_id), side.context(case_id)
    if contexts[0] is None or contexts[1] is None:
        return None, 0
    before, after = (
        {passage.id: rank for rank, passage in enumerate(context, 1)}
        for context in (contexts[0], contexts[1])
    )
    passages = {passage.id: passage for passage in (*contexts[1], *contexts[0])}
    relevant = relevant_ids(side.cases[case_id], tuple(passages.values()))
    changes = [
        PassageMove(name, before.get(name), after.get(name), name in relevant, passage.text or "")
        for name, passage in passages.items()
        if before.get(name) != after.get(name)
    ]
    changes.sort(key=lambda change: (change.after is None, change.before is not None))
    return tuple(changes), len(passages) - len(changes)


def _claim_changes(case_id: str, first: _RunIndex, side: _RunIndex) -> tuple[ClaimChange, ...]:
    """The claims of both answers whose label changed, and why."""
    before = {fold(claim.text): claim for claim in first.claims(case_id)}
    pairs = [
        (before[key], claim)
        for claim in side.claims(case_id)
        if (key := fold(claim.text)) in before and before[key].support != claim.support
    ]
    if not pairs:
        return ()
    prompts = [[passage.id for passage in run.context(case_id) or ()] for run in (first, side)]
    names = first.name, side.name
    return tuple(
        ClaimChange(
            claim.text, was.support, claim.support, _claim_reason(was, claim, prompts, names)
        )
        for was, claim in pairs
    )


def _claim_reason(
    before: Claim, after: Claim, prompts: Sequence[Sequence[str]], names: tuple[str, str]
) -> str:
    """Why a label changed: a passage that decides it is in one prompt only, or the judge."""
    for claim, here, there in ((after, 1, 0), (before, 0, 1)):
        for quote in claim.evidence:
            if quote.passage_id not in prompts[there] and quote.passage_id in prompts[here]:
                verb = "contradicts" if claim.support == "contradicted" else "supports"
                return (
                    f"passage '{quote.passage_id}' {verb} it and is only in the prompt of "
                    f"{names[here]}"
                )
    if prompts[0] == prompts[1]:
        return "the same passages were in both prompts; the judge's label differs"
    return "no passage that decides it is in one prompt only; the judge's label differs"


def mode_changes(transitions: Mapping[str, Any]) -> list[tuple[str, str, int]]:
    """Return the changes of the failure mode (before, after, cases), most frequent first."""
    moves: Iterable[Mapping[str, Any]] = transitions["changes"]
    changes = [
        (mode_label(move["from"]), mode_label(move["to"]), move["n"])
        for move in moves
        if move["from"] != move["to"]
    ]
    return sorted(changes, key=lambda change: -change[2])
