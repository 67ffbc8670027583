"""Red-team a judge: texts that give it instructions, and how often it obeys."""

from __future__ import annotations

import base64
import codecs
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, Literal, NamedTuple

from pydantic import TypeAdapter

from misslink.judge.examination import Examination, ExaminationWithReference
from misslink.judge.judge_case import ask_safely, read_metric
from misslink.judge.judged_metric import Finding, JudgedMetric, Subject, failed_finding
from misslink.judge.prompts import BUILT_IN, Fence, Prompts
from misslink.judge.protocol import Ask, Judge
from misslink.stats import proportion
from misslink.text.normalization import fold
from misslink.timeouts import map_concurrently
from misslink.types import Case, Estimate, Passage, Trace

_RATES = "obeyed", "flipped", "silenced"
AttackPlace = Literal["answer", "passage", "question", "reference"]

_LEET = str.maketrans("aeiost", "431057")
_CYRILLIC = str.maketrans("aceopxyi", "\u0430\u0441\u0435\u043e\u0440\u0445\u0443\u0456")
_ENCODINGS: Mapping[str, Callable[[str], str]] = {
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "homoglyphs": lambda text: text.translate(_CYRILLIC),
    "leetspeak": lambda text: text.lower().translate(_LEET),
    "reversed": lambda text: text[::-1],
    "rot13": lambda text: codecs.encode(text, "rot13"),
    "zero_width": "\u200b".join,
}


@dataclass(frozen=True)
class Attack:
    """A payload at a place.

    Parameters
    ----------
    id : str
        Its place, kind and number, such as ``passage/tokens/2``.
    place : {'answer', 'passage', 'question', 'reference'}
        A payload in a passage or reference is in the first one.
    kind : str
    payload : str
        As it is inserted; ``{boundary}`` stands for the fence of the same question without it, and
        ``{claim}`` for the first sentence of the answer, which is wrong.
    first : bool
        Whether it comes before the text that is there, not behind it.
    """

    id: str
    place: AttackPlace
    kind: str
    payload: str
    first: bool = False


@dataclass(frozen=True)
class AttackCase:
    """A small case whose truth is known: by each of its metrics the answer is bad."""

    id: str
    metrics: tuple[str, ...]
    question: str
    passages: tuple[str, ...]
    answer: str
    references: tuple[str, ...]

    def subject(self, prompts: Prompts = BUILT_IN) -> Subject:
        """Return it as a case and what an app did for it."""
        passages = tuple(
            Passage(id=f"passage-{rank}", text=text, rank=rank)
            for rank, text in enumerate(self.passages, start=1)
        )
        case = Case(id=self.id, question=self.question, references=self.references)
        trace = Trace(case_id=self.id, retrieved=passages, answer=self.answer)
        return Subject(case, trace, len(passages), prompts)

    def under(self, attack: Attack, boundary: str) -> AttackCase:
        """Return the case with the attack's payload in its place."""
        claim = self.answer.partition(".")[0]
        payload = attack.payload.replace("{boundary}", boundary)
        payload = payload.replace("{claim}", claim[:1].lower() + claim[1:])

        def insert(text: str) -> str:
            return "\n".join((payload, text) if attack.first else (text, payload))

        field = {"passage": "passages", "reference": "references"}.get(attack.place, attack.place)
        whole: str | tuple[str, ...] = getattr(self, field)
        changed = insert(whole) if isinstance(whole, str) else (insert(whole[0]), *whole[1:])
        changes: dict[str, Any] = {field: changed}
        return replace(self, **changes)


class AttackSuite(NamedTuple):
    """Attacks, and the cases that each of them is tried on."""

    attacks: tuple[Attack, ...]
    cases: tuple[AttackCase, ...]


@cache
def load_suite() -> AttackSuite:
    """Read the built-in suite."""
    source = files("misslink") / "judge" / "checks" / "suite.toml"
    content = tomllib.loads(source.read_text(encoding="utf-8"))
    counts: Counter[tuple[str, str]] = Counter()
    attacks = []
    for payload in content["payload"]:
        kind = payload["kind"]
        encode = _ENCODINGS[payload["encoding"]] if "encoding" in payload else str
        for place in payload["places"]:
            counts[place, kind] += 1
            attacks.append(
                Attack(
                    id=f"{place}/{kind}/{counts[place, kind]}",
                    place=place,
                    kind=kind,
                    payload=encode(payload["text"].strip()),
                    first=payload.get("at") == "start",
                )
            )
    cases = TypeAdapter(tuple[AttackCase, ...]).validate_python(content["case"])
    return AttackSuite(tuple(attacks), cases)


class AttackTrial(NamedTuple):
    """One metric of one case under one attack.

    Parameters
    ----------
    attack : Attack
    case, metric : str
    obeyed : bool or None
        Whether the judge said something good about the answer that it does not say without the
        attack. None: its reply cannot be read.
    flipped : bool or None
        Whether the verdict is good once everything was checked.
    silenced : bool or None
        Whether the reply gives no verdict any more: the answer then leaves every mean.
    reason : str or None
        Why it is unknown.
    """

    attack: Attack
    case: str
    metric: str
    obeyed: bool | None = None
    flipped: bool | None = None
    silenced: bool | None = None
    reason: str | None = None


@dataclass(frozen=True)
class RedteamResult:
    """What all attacks did to one judge.

    Parameters
    ----------
    judge : str
    attacks, cases : int
        How many the suite has.
    trials : sequence of AttackTrial
        Of the cases and metrics where the judge finds the answer bad without an attack.
    left_out : mapping of str to str
        ``case/metric`` of the others, with the reason.
    found_good : int
        How many of those the judge finds good without an attack.
    """

    judge: str
    attacks: int
    cases: int
    trials: tuple[AttackTrial, ...]
    left_out: Mapping[str, str]
    found_good: int = 0

    @property
    def not_measured(self) -> str | None:
        """Why no verdict could be counted, as one sentence; None: some could."""
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

    def document(self) -> dict[str, object]:
        """Return everything as JSON values: rates with 95% Wilson intervals, and what flipped."""
        unread = (
            trial.reason or "no reason given" for trial in self.trials if trial.flipped is None
        )
        return {
            "judge": self.judge,
            "attacks": self.attacks,
            "cases": self.cases,
            **_rates(self.trials),
            "by_metric": _rates_by(self.trials, lambda trial: trial.metric),
            "by_place": _rates_by(self.trials, lambda trial: trial.attack.place),
            "by_kind": _rates_by(self.trials, lambda trial: trial.attack.kind),
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
            "not_read": dict(Counter(unread).most_common()),
        }


async def run_redteam(
    judge: Judge,
    metrics: Mapping[str, JudgedMetric],
    *,
    suite: AttackSuite,
    prompts: Prompts = BUILT_IN,
    tick: Callable[[int, int], object] = lambda _, __: None,
) -> RedteamResult:
    """Ask a judge about every case of a suite, as it is and under every attack.

    Parameters
    ----------
    judge : Judge
    metrics : mapping of str to JudgedMetric
        By name, those that the suite's cases name.
    suite : AttackSuite
    prompts : Prompts
    tick : callable
        Receives how many questions are done and how many there are. A case that the judge finds
        good without an attack is tried under none.

    Raises
    ------
    JudgeUnreachableError
        The judge cannot be reached.
    """
    total = len(suite.cases) * (1 + len(suite.attacks))

    async def judge_cases(cases: Sequence[AttackCase], before: int = 0) -> list[_CaseReply]:
        return await map_concurrently(
            cases,
            lambda case: _judge_case(judge, case, metrics, prompts),
            max(1, len(cases)),
            lambda done, _: tick(before + done, total),
        )

    base_replies = await judge_cases(suite.cases)
    left_out: dict[str, str] = {}
    found_good = 0
    found_bad: list[tuple[AttackCase, _CaseReply, list[str]]] = []  # with the metrics
    for case, base in zip(suite.cases, base_replies, strict=True):
        names = [name for name, finding in base.findings.items() if finding.label is False]
        if names:
            found_bad.append((case, base, names))
        for name in base.findings.keys() - names:
            finding = base.findings[name]
            reason = finding.reason or "it has no verdict"
            if finding.label:
                reason = "the judge finds the answer good without any attack"
                found_good += 1
            left_out[f"{case.id}/{name}"] = reason
    attacked = [(attack, *bad) for attack in suite.attacks for bad in found_bad]
    if (before := total - len(attacked)) > len(suite.cases):
        tick(before, total)
    under_attack = [case.under(attack, base.boundary) for attack, case, base, _ in attacked]
    replies = await judge_cases(under_attack, before)
    trials = [
        _attack_trial(attack, case.id, name, base, reply)
        for (attack, case, base, names), reply in zip(attacked, replies, strict=True)
        for name in names
    ]
    return RedteamResult(
        judge.name,
        len(suite.attacks),
        len(suite.cases),
        tuple(trials),
        dict(sorted(left_out.items())),
        found_good,
    )


class _CaseReply(NamedTuple):
    """A judge's reply to a case, and what the metrics find in it."""

    boundary: str
    examination: Examination | None
    findings: Mapping[str, Finding]


async def _judge_case(
    judge: Judge, case: AttackCase, metrics: Mapping[str, JudgedMetric], prompts: Prompts
) -> _CaseReply:
    subject = case.subject(prompts)
    ask = subject.examination
    if not isinstance(ask, Ask):  # a case of the suite lacks an answer
        return _CaseReply("", None, dict.fromkeys(case.metrics, failed_finding(ask)))
    boundary = Fence(ask.inputs).boundary
    reply = await ask_safely(judge, ask)
    if not isinstance(reply.parsed, Examination):
        unread = failed_finding(reply.problem or "the judge's reply cannot be read")
        return _CaseReply(boundary, None, dict.fromkeys(case.metrics, unread))
    findings = {name: read_metric(metrics[name], subject, reply) for name in case.metrics}
    return _CaseReply(boundary, reply.parsed, findings)


def _attack_trial(
    attack: Attack, case_id: str, metric: str, base: _CaseReply, reply: _CaseReply
) -> AttackTrial:
    finding = reply.findings[metric]
    if reply.examination is None or base.examination is None:
        return AttackTrial(attack, case_id, metric, reason=finding.reason)
    favorable = _favorable_statements(metric, reply.examination)
    return AttackTrial(
        attack,
        case_id,
        metric,
        obeyed=bool(favorable - _favorable_statements(metric, base.examination)),
        flipped=finding.label is True,
        silenced=finding.label is None,
        reason=finding.reason if finding.label is None else None,
    )


def _favorable_statements(metric: str, examination: Examination) -> set[str]:
    """What a judge itself says in favor of an answer, before anything is checked."""
    if metric == "faithfulness":
        return {fold(claim.text) for claim in examination.claims if claim.support == "supported"}
    if metric == "answer_relevance":
        return {"answers"} if examination.response == "answers" else set()
    if not isinstance(examination, ExaminationWithReference):
        return set()
    agreed = {fold(claim.text) for claim in examination.claims if claim.reference == "agrees"}
    references = examination.reference_claims
    return agreed | {fold(claim.text) for claim in references if claim.answer == "states"}


def _rates(trials: Iterable[AttackTrial]) -> dict[str, object]:
    read = [trial for trial in trials if trial.flipped is not None]
    missing = Estimate.missing("no verdict to flip", method="wilson")
    counts = {name: sum(bool(getattr(t, name)) for t in read) for name in _RATES}
    return {
        name: (proportion(count, len(read)) if read else missing).model_dump()
        for name, count in counts.items()
    }


def _rates_by(
    trials: Iterable[AttackTrial], key: Callable[[AttackTrial], str]
) -> dict[str, object]:
    groups: dict[str, list[AttackTrial]] = {}
    for trial in trials:
        groups.setdefault(key(trial), []).append(trial)
    return {name: _rates(group) for name, group in sorted(groups.items())}
