"""How often a judge obeys the text it judges, and how often its verdict flips for that."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from misslink.judging.asking import put
from misslink.judging.attacks.suite import Attack, BaseCase, Suite, load_suite
from misslink.judging.examination import Examination, ExaminationWithReference
from misslink.judging.metric import Finding, JudgedMetric
from misslink.judging.protocol import Ask, Judge
from misslink.prompting import BUILT_IN, Fence, Prompts
from misslink.stats import proportion
from misslink.text import fold
from misslink.types import Estimate

__all__ = ["Findings", "Trial", "measure"]


@dataclass(frozen=True)
class Trial:
    """One metric of one case under one attack.

    Parameters
    ----------
    attack : Attack
    case, metric : str
    obeyed : bool or None
        Whether the judge said something good of the answer that it does not say without the
        attack, whatever became of it. None: it gave nothing that can be read.
    flipped : bool or None
        Whether the verdict, once everything was checked, is good.
    silenced : bool or None
        Whether the reply has no verdict any more: the answer then leaves every mean.
    reason : str or None
        Why it is not known.
    """

    attack: Attack
    case: str
    metric: str
    obeyed: bool | None
    flipped: bool | None
    silenced: bool | None
    reason: str | None = None


@dataclass(frozen=True)
class Findings:
    """What all attacks did to one judge.

    Parameters
    ----------
    judge : str
    attacks, cases : int
        How many there are, whether or not they could be counted.
    trials : sequence of Trial
        Of the cases and metrics where the judge finds the answer bad without an attack.
    left_out : mapping of str to str
        ``case/metric`` of the others, and what the judge said of them.
    found_good : int
        How many of those the judge finds good without an attack; of the rest there is no verdict.
    """

    judge: str
    attacks: int
    cases: int
    trials: tuple[Trial, ...]
    left_out: Mapping[str, str]
    found_good: int = 0

    @property
    def in_vain(self) -> str | None:
        """Why the judge gave nothing to count, as one sentence; None: it gave some verdicts."""
        if any(trial.flipped is not None for trial in self.trials):
            return None
        if self.trials:
            when, reasons = "under an attack", [trial.reason for trial in self.trials]
        elif not self.found_good:
            when, reasons = "even without an attack", list(self.left_out.values())
        else:
            return None
        ((reason, count),) = Counter(reasons).most_common(1)
        return (
            f"nothing was measured: {self.judge} gave no verdict {when}, in {count} of"
            f" {len(reasons)} because {reason}"
        )

    def document(self) -> dict[str, Any]:
        """Return everything as JSON values: rates with 95 % Wilson intervals, and what flipped."""
        return {
            "judge": self.judge,
            "attacks": self.attacks,
            "cases": self.cases,
            **_rates(self.trials),
            "by_metric": _grouped(self.trials, lambda trial: trial.metric),
            "by_place": _grouped(self.trials, lambda trial: trial.attack.place),
            "by_kind": _grouped(self.trials, lambda trial: trial.attack.kind),
            "flips": [
                {
                    "attack": trial.attack.id,
                    "case": trial.case,
                    "metric": trial.metric,
                    "payload": trial.attack.payload,
                }
                for trial in self.trials
                if trial.flipped
            ],
            "left_out": dict(self.left_out),
            "found_good": self.found_good,
            "trials": len(self.trials),
            "not_read": _reasons(self.trials),
        }


async def measure(
    judge: Judge,
    metrics: Mapping[str, JudgedMetric],
    *,
    suite: Suite | None = None,
    prompts: Prompts = BUILT_IN,
    tick: Callable[[int, int], None] | None = None,
) -> Findings:
    """Put every case of a suite to a judge, as it is and under every attack.

    Parameters
    ----------
    judge : Judge
    metrics : mapping of str to JudgedMetric
        By name, those that the suite's cases name.
    suite : Suite or None
        None: the one that comes with misslink.
    prompts : Prompts
    tick : callable or None
        Told how many of all questions are answered, or need not be put: a case that the judge
        finds good without an attack is tried under none.

    Raises
    ------
    JudgeUnreachableError
        Asking on is pointless.
    """
    suite = suite or load_suite()
    total = len(suite.cases) * (1 + len(suite.attacks))
    done = 0

    async def look(case: BaseCase) -> _Look:
        nonlocal done
        found = await _look(judge, case, metrics, prompts)
        done += 1
        if tick:
            tick(done, total)
        return found

    plain = await asyncio.gather(*map(look, suite.cases))
    left_out: dict[str, str] = {}
    good = 0
    bad: dict[str, list[str]] = {}
    for case, base in zip(suite.cases, plain, strict=True):
        for name in case.metrics:
            trouble = base.not_bad(name)
            if trouble is None:
                bad.setdefault(case.id, []).append(name)
            else:
                left_out[f"{case.id}/{name}"] = trouble
                good += base.finds_good(name)
    pairs = [
        (attack, case, base)
        for attack in suite.attacks
        for case, base in zip(suite.cases, plain, strict=True)
        if case.id in bad
    ]
    spared = total - len(suite.cases) - len(pairs)
    if spared and tick:
        done += spared
        tick(done, total)
    attacked = await asyncio.gather(
        *(look(case.under(attack, base.boundary)) for attack, case, base in pairs)
    )
    trials = [
        _trial(attack, case.id, name, base, found)
        for (attack, case, base), found in zip(pairs, attacked, strict=True)
        for name in bad[case.id]
    ]
    return Findings(
        judge.name,
        len(suite.attacks),
        len(suite.cases),
        tuple(trials),
        dict(sorted(left_out.items())),
        good,
    )


@dataclass(frozen=True)
class _Look:
    """What a judge said of a case, and what was made of it."""

    boundary: str
    said: Examination | None
    findings: Mapping[str, Finding]
    problem: str | None

    def finds_good(self, metric: str) -> bool:
        """Whether the verdict is there, and good."""
        return metric in self.findings and self.findings[metric].label is True

    def not_bad(self, metric: str) -> str | None:
        """Why the answer is not found bad; None: it is."""
        finding = self.findings.get(metric)
        if finding is None:
            return self.problem or "the judge said nothing that can be read"
        if finding.label is None:
            return finding.reason or "it has no verdict"
        return "the judge finds the answer good without any attack" if finding.label else None


async def _look(
    judge: Judge, case: BaseCase, metrics: Mapping[str, JudgedMetric], prompts: Prompts
) -> _Look:
    subject = case.subject(prompts)
    ask = subject.examination
    if not isinstance(ask, Ask):  # a case of the suite lacks an answer
        return _Look("", None, {}, ask)
    boundary = Fence(ask.inputs).boundary
    reply = await put(judge, ask)
    if not isinstance(reply.parsed, Examination):
        problem = reply.problem or "the judge gave one word, and claims are wanted"
        return _Look(boundary, None, {}, problem)
    findings = {name: metrics[name].read(subject, reply) for name in case.metrics}
    return _Look(boundary, reply.parsed, findings, None)


def _trial(attack: Attack, case: str, metric: str, base: _Look, found: _Look) -> Trial:
    if found.said is None or base.said is None:
        return Trial(attack, case, metric, None, None, None, found.problem)
    finding = found.findings[metric]
    return Trial(
        attack,
        case,
        metric,
        obeyed=bool(_good(metric, found.said) - _good(metric, base.said)),
        flipped=finding.label is True,
        silenced=finding.label is None,
        reason=finding.reason if finding.label is None else None,
    )


def _good(metric: str, said: Examination) -> set[str]:
    """What a judge itself says in favour of an answer, before anything is checked."""
    if metric == "faithfulness":
        return {fold(claim.text) for claim in said.claims if claim.support == "supported"}
    if metric == "answer_relevance":
        return {"answers"} if said.response == "answers" else set()
    if not isinstance(said, ExaminationWithReference):
        return set()
    agreed = {fold(claim.text) for claim in said.claims if claim.reference == "agrees"}
    return agreed | {fold(part.text) for part in said.reference_claims if part.answer == "states"}


def _rates(trials: Iterable[Trial]) -> dict[str, Any]:
    known = [trial for trial in trials if trial.flipped is not None]

    def rate(holds: Callable[[Trial], bool | None]) -> dict[str, Any]:
        if not known:
            return Estimate.missing("no verdict to flip", method="wilson").model_dump()
        return proportion(sum(bool(holds(trial)) for trial in known), len(known)).model_dump()

    return {
        "obeyed": rate(lambda trial: trial.obeyed),
        "flipped": rate(lambda trial: trial.flipped),
        "silenced": rate(lambda trial: trial.silenced),
    }


def _grouped(trials: Iterable[Trial], by: Callable[[Trial], str]) -> dict[str, Any]:
    groups: dict[str, list[Trial]] = {}
    for trial in trials:
        groups.setdefault(by(trial), []).append(trial)
    return {name: _rates(group) for name, group in sorted(groups.items())}


def _reasons(trials: Iterable[Trial]) -> dict[str, int]:
    """How many trials brought nothing to read, by reason."""
    lost = (trial.reason or "no reason given" for trial in trials if trial.flipped is None)
    return dict(Counter(lost).most_common())
