"""What replay concludes about simulated apps whose truth is known.

    python benchmarks/linking/replay.py            # prints the table
    python benchmarks/linking/replay.py --write    # and writes it to replay.md

Apps with planted causes answer rightly where a case's cause is taken away, but for the noise of their
sampling. The other apps answer at temperature 0: one prompt has one answer, and any change of the
prompt draws it again. In apps without an effect a case is answered rightly with its own probability,
whatever the passages say. In apps with one a relevant passage in the prompt raises it to 0.9. Planning,
arms, records and statistics are those of `misslink replay`; only app and judge are replaced.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import platform
import random
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from misslink.linking.replay.rerun import NotCachedError, add_evidence
from misslink.linking.replay.results import replay_figures
from misslink.linking.replay.runner import JudgingTerms, replay_cases
from misslink.types import (
    Case,
    Claim,
    FailureEvidence,
    Link,
    Passage,
    RetrievalMiss,
    Run,
    Trace,
    Verdict,
)

PAGE = Path(__file__).with_suffix(".md")
ROUNDS = 100
PLANTED_ROUNDS = 30
K = 5
WITH_PASSAGE = 0.9  # probability of a right answer with the passage, in an app with an effect


@dataclass(frozen=True)
class Scenario:
    """An app and its run.

    ``luck`` are the parameters of the beta distribution of each case's probability of a right answer
    without its passage. A judge that is ``strict`` calls a true answer unfaithful without its evidence.
    ``judge_error`` is the probability that it calls an answer's label the other way round. An app
    that does not ``react`` to its prompt draws once for a question, whatever the passages.
    """

    name: str
    effect: bool
    luck: tuple[float, float]
    cases: int = 100
    missed: float = 0.5
    sample: int = 40
    strict: bool = True
    judge_error: float = 0.0
    reacts: bool = True


NULL = [
    Scenario("a coin for each prompt", effect=False, luck=(50, 50)),
    Scenario("easy and hard cases", effect=False, luck=(0.5, 0.5)),
    Scenario("mostly wrong", effect=False, luck=(2, 8)),
    Scenario("mostly right", effect=False, luck=(8, 2)),
    Scenario("a judge that needs no evidence", effect=False, luck=(1, 1), strict=False),
    Scenario("a judge that errs in 15%", effect=False, luck=(1, 1), judge_error=0.15),
    Scenario("300 cases, 10 replayed", effect=False, luck=(1, 1), cases=300, sample=10),
    Scenario("30 cases", effect=False, luck=(1, 1), cases=30),
]
EFFECT = [
    Scenario("the passage decides", effect=True, luck=(1, 19)),
    Scenario("easy and hard cases", effect=True, luck=(0.5, 0.5)),
    Scenario("good by luck in half of the prompts", effect=True, luck=(50, 50), strict=False),
    Scenario("one draw for a question", effect=True, luck=(1, 3), strict=False, reacts=False),
    Scenario("a small effect", effect=True, luck=(8, 2)),
    Scenario("a judge that needs no evidence", effect=True, luck=(1, 3), strict=False),
    Scenario("300 cases, 10 replayed", effect=True, luck=(1, 3), cases=300, sample=10),
    Scenario("30 cases", effect=True, luck=(1, 3), cases=30),
    Scenario("few misses", effect=True, luck=(1, 3), cases=200, missed=0.15),
]


class SimulatedApp:
    """An app with its judge, in the place of `misslink.linking.replay.Rerunner`."""

    k = K
    calibration = None

    def __init__(self, scenario: Scenario, seed: int) -> None:
        self.scenario = scenario
        self.seed = seed
        draw = np.random.default_rng([seed, 1])
        self.luck = draw.beta(*scenario.luck, scenario.cases)
        self.is_missed = draw.random(scenario.cases) < scenario.missed

    def answer(self, case: Case, passages: Sequence[Passage]) -> str:
        """The answer to one prompt, always the same."""
        number = int(case.id)
        texts = [passage.text for passage in passages] if self.scenario.reacts else []
        prompt = "\n".join((case.question, *texts))
        probability = self.luck[number]
        if self.scenario.effect and f"gold-{number}" in {passage.id for passage in passages}:
            probability = WITH_PASSAGE
        return "right" if self.chance(prompt) < probability else "wrong"

    def chance(self, text: str) -> float:
        """A number in [0, 1) that is as good as random, and always the same for a text."""
        return random.Random(f"{self.seed} {text}").random()  # noqa: S311 (no secret)

    def verdicts(self, case: Case, trace: Trace) -> dict[str, Verdict]:
        """What the judge says: it knows the truth, and may see no evidence of it."""
        context = {passage.id for passage in trace.context(K)}
        correct = trace.answer == "right"
        key = f"judge {case.id} {trace.answer} {sorted(context)}"
        if self.chance(key) < self.scenario.judge_error:
            correct = not correct
        supported = correct and (not self.scenario.strict or f"gold-{case.id}" in context)
        return _verdicts(case, correct, supported=supported)

    async def judged(
        self, case: Case, trace: Trace, *, only_kept: bool = False
    ) -> dict[str, Verdict]:
        """As `Rerunner.judged`, without a cache."""
        if only_kept:
            raise NotCachedError
        return self.verdicts(case, trace)

    async def __call__(
        self,
        case: Case,
        passages: Sequence[Passage],
        *,
        evidence: Sequence[Passage] = (),
        only_kept: bool = False,
        **_: Any,
    ) -> tuple[Trace, Mapping[str, Verdict]]:
        """As `Rerunner`, without a cache."""
        if only_kept:
            raise NotCachedError
        answer = self.answer(case, passages)
        trace = Trace(case_id=case.id, retrieved=tuple(passages), answer=answer)
        trace = add_evidence(trace, evidence, K)
        return trace, self.verdicts(case, trace)

    def run(self) -> Run:
        """The evaluation of the app."""
        cases, traces, links = [], [], []
        for number in range(self.scenario.cases):
            missed = bool(self.is_missed[number])
            case = Case(id=str(number), question=f"Question {number}?", relevant=[f"gold-{number}"])
            gold = _passage(f"gold-{number}", K)
            others = [_passage(f"noise-{number}-{place}", place) for place in range(1, K)]
            found = (*others, _passage(f"noise-{number}-{K}", K) if missed else gold)
            trace = Trace(case_id=case.id, retrieved=found, answer=self.answer(case, found))
            verdicts = self.verdicts(case, trace)
            good = all(verdict.label for verdict in verdicts.values())
            miss = RetrievalMiss(passage_id=gold.id, text=gold.text)
            failure = "retrieval_miss" if missed else "fabricated"
            cases.append(case)
            traces.append(trace)
            links.append(
                Link(
                    case_id=case.id,
                    retrieval="miss" if missed else "hit",
                    answer="faithful" if verdicts["faithfulness"].label else "unfaithful",
                    failure="passed" if good else failure,
                    reason="simulated",
                    missed=(miss,) if missed else (),
                )
            )
        return Run(
            manifest={"k": K}, cases=tuple(cases), traces=tuple(traces), verdicts=(),
            links=tuple(links), summary={},
        )  # fmt: skip


def _verdicts(case: Case, correct: bool, *, supported: bool) -> dict[str, Verdict]:
    support = "supported" if supported else "unsupported"
    claim = Claim(text="A.", support=support, correct=correct)
    verdict = {"case_id": case.id, "status": "scored", "judge": "truth"}
    return {
        name: Verdict(**verdict, metric=name, value=float(good), label=good, claims=claims)
        for name, good, claims in (
            ("faithfulness", supported, (claim,)),
            ("correctness", correct, ()),
        )
    }


@cache  # the same in every round
def _passage(name: str, rank: int) -> Passage:
    words = random.Random(name).choices(_WORDS, k=8)  # noqa: S311 (no secret)
    return Passage(id=name, text=f"{name}: {' '.join(words)}.", rank=rank)


_WORDS = [
    "harbour",
    "ferry",
    "timber",
    "quarry",
    "orchard",
    "bridge",
    "lantern",
    "river",
    "meadow",
    "tower",
    "signal",
    "mill",
]


ALL_CAUSES = {
    "missed_passage": 6,
    "generator": 6,
    "distractor": 3,
    "cut_passage": 2,
    "query": 2,
    "judge": 2,
    "missed_passage+distractor": 2,
}


@dataclass(frozen=True)
class PlantedScenario:
    """An app whose failures have known causes.

    ``noise`` is the probability that an answer turns out the other way round, ``judge_error`` that of
    a verdict, ``chance`` the share of cases without any cause, which fail by noise alone.
    """

    name: str
    noise: float = 0.0
    failures: int = 40
    chance: float = 0.5
    judge_error: float = 0.0
    other_judge: bool = True
    causes: Mapping[str, int] = field(default_factory=lambda: ALL_CAUSES)


PLANTED = [
    *(PlantedScenario(f"noise {noise:.2f}", noise) for noise in (0, 0.05, 0.1, 0.2, 0.35)),
    PlantedScenario("12 failures", failures=12),
    PlantedScenario("12 failures, noise 0.05", 0.05, failures=12),
    PlantedScenario("the judge errs in 5%", judge_error=0.05),
    PlantedScenario("the same judge again, which errs in 5%", judge_error=0.05, other_judge=False),
    PlantedScenario("misses alone", causes={"missed_passage": 1}),
    PlantedScenario("generator alone", causes={"generator": 1}),
    PlantedScenario("two causes in each case", causes={"missed_passage+distractor": 1}),
    *(
        PlantedScenario(f"nothing is causal, noise {noise:.2f}", noise, chance=1.0)
        for noise in (0.05, 0.1, 0.2, 0.35)
    ),
]
OWNERS = {
    "missed_passage": "retriever",
    "cut_passage": "prompt",
    "query": "prompt",
    "missed_passage+distractor": "retriever",
    "distractor": "generator",
}
HISTORY = ({"role": "user", "content": "Before."}, {"role": "assistant", "content": "Yes."})
MODES = {
    "missed_passage": "retrieval_miss",
    "cut_passage": "dropped_from_prompt",
    "query": "lost_context",
    "distractor": "distracted",
}


class PlantedApp(SimulatedApp):
    """An app with a cause for each failure, its judge, and the rules' guess at each."""

    def __init__(self, scenario: PlantedScenario, seed: int) -> None:
        self.scenario, self.seed = scenario, seed  # type: ignore[assignment]
        self.planted = scenario
        self.draw = random.Random(f"{seed} planted")  # noqa: S311 (no secret)
        self.cause: dict[str, str] = {}
        self.links: dict[str, Link] = {}
        self.run_of_failures = self._fail()
        self.terms = JudgingTerms(same=not scenario.other_judge)

    def _fail(self) -> Run:
        """Ask until as many answers as wanted have failed."""
        planted, draw, number = self.planted, self.draw, 0
        cases, traces, links = [], [], []
        names = list(planted.causes)
        while len(cases) < planted.failures:
            number += 1
            (cause,) = draw.choices(names, list(planted.causes.values()))
            if planted.noise and draw.random() < planted.chance:
                cause = "chance"
            self.cause[str(number)] = cause
            case, trace, link = self._case(number, cause)
            good = self._is_good(case, trace.retrieved, f"run {number}")
            wrong = cause == "judge" or self.chance(f"verdict {number}") < planted.judge_error
            if good is not wrong:
                continue
            cases.append(case)
            traces.append(trace.model_copy(update={"answer": "right" if good else "wrong"}))
            links.append(link)
            if good:
                self.cause[case.id] = "judge"
        return Run(manifest={"k": K}, cases=tuple(cases), traces=tuple(traces), verdicts=(),
                   links=tuple(links), summary={})  # fmt: skip

    def _case(self, number: int, cause: str) -> tuple[Case, Trace, Link]:
        """A case with its cause, and what the rules of linking say of it: not always rightly."""
        draw, own = self.draw, [c for c in cause.split("+") if c not in {"judge", "chance"}]
        seen = set(own) - {"generator"}
        if not seen or draw.random() < 0.3:  # what is wrong in the prompt, and not the cause
            seen |= {draw.choice(["missed_passage", "cut_passage", "distractor", "none"])}
        lost = bool(seen & {"missed_passage", "query"})
        gold = _passage(f"gold-{number}", K)
        others = [_passage(f"noise-{number}-{place}", place) for place in range(1, K)]
        last = _passage(f"noise-{number}-{K}", K) if lost else gold
        cut = "cut_passage" in seen and not lost
        standalone = f"Question {number} alone?" if "query" in seen else None
        case = Case(
            id=str(number), question=f"Question {number}?", relevant=[gold.id],
            standalone_question=standalone, history=HISTORY if standalone else (),
        )  # fmt: skip
        shown = {"shown": {gold.id: gold.text[: len(gold.text) // 2]}} if cut else {}
        found = (*others, last)
        trace = Trace(
            case_id=case.id,
            retrieved=found,
            prompted=tuple(p.id for p in found),
            answer="",
            **shown,
        )
        guess = next(
            (c for c in ("query", "missed_passage", "cut_passage", "distractor") if c in seen), ""
        )
        status = "dropped_from_prompt" if cut else "not_retrieved"
        miss = RetrievalMiss(passage_id=gold.id, text=gold.text, status=status)
        named = [
            FailureEvidence(
                failure="distracted", passage_id=others[0].id, reason_code="irrelevant_passage"
            )
        ]
        link = Link(
            case_id=case.id, retrieval="miss" if lost else "partial" if cut else "hit",
            answer="unfaithful", failure=MODES.get(guess, "fabricated"), reason="simulated",
            missed=(miss,) if lost or cut else (), evidence=named if "distractor" in seen else (),
        )  # fmt: skip
        return case, trace, link

    def _is_good(
        self, case: Case, passages: Sequence[Passage], call: str, *, query: bool = False
    ) -> bool:
        """Whether an answer is right: where no cause of the case is left, but for the noise."""
        ids = {passage.id for passage in passages}
        gone = {
            "query": query or f"gold-{case.id}" in ids,
            "missed_passage": f"gold-{case.id}" in ids,
            "cut_passage": any(name.startswith(f"gold-{case.id}-part") for name in ids),
            "distractor": f"noise-{case.id}-1" not in ids,
            "generator": False,
        }
        right = all(gone.get(cause, True) for cause in self.cause[case.id].split("+"))
        return right is not (self.chance(f"noise {case.id} {call}") < self.planted.noise)

    def verdicts(self, case: Case, trace: Trace) -> dict[str, Verdict]:
        """What the judge says; the run's own errs on some answers, and not on each reading."""
        correct = trace.answer == "right"
        key = f"{case.id} {trace.answer} {[passage.id for passage in trace.retrieved]}"
        if self.chance(f"judge {key}") < self.planted.judge_error:
            correct = not correct
        return _verdicts(case, correct, supported=correct)

    async def __call__(
        self,
        case: Case,
        passages: Sequence[Passage] | None,
        *,
        intervention: str = "",
        evidence: Sequence[Passage] = (),
        asked: Case | None = None,
        **_: Any,
    ) -> tuple[Trace, Mapping[str, Verdict]]:
        """As `Rerunner`, without a cache."""
        query = asked is not None and not asked.history
        gold = [_passage(f"gold-{case.id}", 1)] if query else []
        own = self.found[case.id] if passages is None else passages
        good = self._is_good(case, [*gold, *own], intervention, query=query)
        given = tuple(p.model_copy(update={"rank": n}) for n, p in enumerate([*gold, *own], 1))
        ids = tuple(passage.id for passage in given)
        trace = Trace(
            case_id=case.id, retrieved=given, prompted=ids, answer="right" if good else "wrong"
        )
        return add_evidence(trace, evidence, K), self.verdicts(
            case, add_evidence(trace, evidence, K)
        )

    @property
    def found(self) -> dict[str, tuple[Passage, ...]]:
        """What the app's own retriever finds."""
        return {trace.case_id: trace.retrieved for trace in self.run_of_failures.traces}


def settle(scenario: PlantedScenario, rounds: int) -> SimpleNamespace:
    """What many replays of an app with planted causes conclude."""
    count: Counter[str] = Counter()
    for seed in range(rounds):
        app = PlantedApp(scenario, seed)
        run = app.run_of_failures
        records, _ = asyncio.run(replay_cases(run, app, terms=app.terms, sample=200, seed=seed))
        figures = replay_figures(run, records, seed=seed, difference="planted").document()
        rows = {row["case_id"]: row for row in figures["cases"]}
        for link in run.links:
            cause, row = app.cause[link.case_id], rows[link.case_id]
            owner = OWNERS.get(cause, cause)
            calls = sum(row["tried"].values())
            count.update(n=1, calls=calls, most=calls >= 12, ruled=link.owner == owner)
            if cause == "chance":
                count.update(nothing=1, false=row["confirmed"])
            elif row["confirmed"]:
                count["named"] += 1
                count["right"] += row["owner"] == owner
                count["cause"] += row["cause"] == cause
    causal = count["n"] - count["nothing"]
    return SimpleNamespace(
        calls=count["calls"] / count["n"],
        most=count["most"] / count["n"],
        confirmed=count["named"] / causal if causal else None,
        right=count["right"] / count["named"] if count["named"] else None,
        cause=count["cause"] / count["named"] if count["named"] else None,
        ruled=count["ruled"] / causal if causal else None,
        false=count["false"] / count["nothing"] if count["nothing"] else None,
    )


def planted_table(scenarios: Sequence[PlantedScenario], rounds: int) -> str:
    """The table of apps with planted causes, as markdown."""
    lines = [
        (
            "| app | confirmed | owner right | cause right | rules alone | false, where nothing is causal "
            "| calls a failure | with 12 |"
        ),
        "| --- | --: | --: | --: | --: | --: | --: | --: |",
    ]
    for scenario in scenarios:
        row = settle(scenario, rounds)
        shares = [row.confirmed, row.right, row.cause, row.ruled, row.false]
        told = " | ".join("-" if share is None else f"{share:.1%}" for share in shares)
        lines.append(f"| {scenario.name} | {told} | {row.calls:.1f} | {row.most:.0%} |")
        print(lines[-1], flush=True)
    return "\n".join(lines)


def true_fraction(scenario: Scenario) -> float:
    """The causal fraction of all answers that such an app gives."""
    luck = np.random.default_rng(0).beta(*scenario.luck, 400_000)
    with_passage = WITH_PASSAGE if scenario.effect else luck
    wrong = 1 - luck
    failed = np.ones_like(luck) if scenario.strict else wrong  # of answers after a miss
    caused = scenario.missed * np.mean(with_passage - luck)
    other = (1 - scenario.missed) * np.mean(1 - with_passage)
    return float(caused / (scenario.missed * np.mean(failed) + other))


def simulate(scenario: Scenario, seed: int) -> dict[str, Any]:
    """The document of one replay."""
    app = SimulatedApp(scenario, seed)
    run = app.run()
    records, _ = asyncio.run(replay_cases(run, app, sample=scenario.sample, seed=seed))
    return replay_figures(run, records, seed=seed, difference=None).document()


def conclude(scenario: Scenario, rounds: int) -> SimpleNamespace:
    """What many replays of an app conclude.

    ``confirmed`` is the share of replayed failures in which replay confirms passages as the cause,
    ``generator`` the generator, ``any`` the share of replays that confirm passages; ``net`` and
    ``causal`` are the coverage of the truth by the intervals.
    """
    truth, counts = true_fraction(scenario), Counter[str]()
    net, causal, widths, values = [], [], [], []
    for seed in range(rounds):
        document = simulate(scenario, seed)
        mode, fraction = document["failures"]["retrieval_miss"], document["causal_fraction"]
        named = Counter(case["cause"] for case in document["cases"] if case["confirmed"])
        passages = sum(named.values()) - named["generator"] - named["judge"]
        counts.update(passages=passages, generator=named["generator"], any=passages > 0)
        counts["replayed"] += sum(case["failure"] != "passed" for case in document["cases"])
        if mode["net_fixed"]["value"] is not None:
            net.append(mode["net_fixed"]["low"] <= 0 <= mode["net_fixed"]["high"])
        if fraction["value"] is not None:
            causal.append(fraction["low"] <= truth <= fraction["high"])
            widths.append(fraction["high"] - fraction["low"])
            values.append(fraction["value"])
    return SimpleNamespace(
        truth=truth,
        confirmed=counts["passages"] / counts["replayed"],
        generator=counts["generator"] / counts["replayed"],
        any=counts["any"] / rounds,
        net_holds_zero=float(np.mean(net)),
        causal=float(np.mean(causal)),
        value=float(np.mean(values)),
        width=float(np.mean(widths)),
        replays=len(causal),
    )


def table(scenarios: Sequence[Scenario], rounds: int) -> str:
    """The table of some scenarios, as markdown."""
    lines = [
        (
            "| app | causal fraction, truth | its mean | its interval holds the truth | mean width "
            "| net effect's interval holds 0 | confirmed cases | replays with any | generator |"
        ),
        "| --- | --: | --: | --: | --: | --: | --: | --: | --: |",
    ]
    for scenario in scenarios:
        row = conclude(scenario, rounds)
        lines.append(
            f"| {scenario.name} | {row.truth:.3f} | {row.value:.3f} | {row.causal:.3f} | "
            f"{row.width:.2f} | {row.net_holds_zero:.3f} | {row.confirmed:.1%} | {row.any:.1%} | "
            f"{row.generator:.1%} |"
        )
        print(lines[-1], flush=True)
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> None:
    """Print the tables, and write them if asked to."""
    planted = planted_table(PLANTED, PLANTED_ROUNDS)
    nothing, something = table(NULL, ROUNDS), table(EFFECT, ROUNDS)
    if "--write" in arguments:
        made = f"Python {platform.python_version()}, NumPy {np.__version__}"
        PAGE.write_text(
            _TEXT.format(rounds=ROUNDS, date=f"{dt.datetime.now(dt.UTC).date()}", made=made, k=K,
                         planted_rounds=PLANTED_ROUNDS, planted=planted, nothing=nothing,
                         something=something),
            encoding="utf-8",
        )  # fmt: skip


_TEXT = """# What replay concludes where the truth is known

Made by `python benchmarks/linking/replay.py --write` on {date}: {made}.

## Each failure has a planted cause

{planted_rounds} simulated runs for each row, each with an app of its own and 40 failures, unless the row says
otherwise. The causes are mixed: missed passages, the generator, a distractor, a cut passage, a query that lost
the context, a wrong verdict, and a missed passage together with a distractor. Beside its cause, a prompt often
has a fault that is none. With noise the app answers the other way round so often, and half of the cases have no
cause at all and fail by noise. A second judge judges the replay, unless the row says otherwise.

Confirmed is a share of the failures with a cause; owner right and cause right of those confirmed. "Rules alone" is
the share of right owners before the replay. Calls are answers of the app; a failure ends after 12, or where no
further answer could settle it.

{planted}

## Passages have no effect

{rounds} simulated runs for each row, each with an app of its own, {k} passages for a question, 100
cases with half of them misses, and at most 40 replayed for a failure mode, unless the row says
otherwise. The apps answer at temperature 0: an unchanged rerun never differs, and any change of the
prompt draws the answer again. The simulated judge knows the truth; it calls a true answer unfaithful
where its evidence is not among the passages that it sees.

Confirmed cases are the share of the replayed failures in which replay says that passages are the cause. The net
effect is that of retrieval_miss. The truth of the causal fraction follows from the app, not from its run; good
answers after a miss are included.

Each case has its own probability of a right answer, whatever its passages say. Every confirmed case is an error;
the generator is no error where the app is mostly wrong.

{nothing}

## Passages have an effect

A relevant passage in the prompt makes the answer right with probability 0.9.

{something}
"""


if __name__ == "__main__":
    main(sys.argv[1:])
