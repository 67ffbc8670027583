"""What replay concludes about simulated apps whose truth is known.

    python benchmarks/replay.py            # prints the table
    python benchmarks/replay.py --write    # and writes it to replay.md

The apps answer at temperature 0: one prompt has one answer, and any change of the prompt draws it
again. In apps without an effect a case is answered rightly with its own probability, whatever the
passages say. In apps with one a relevant passage in the prompt raises it to 0.9. Planning, arms,
records and statistics are those of `misslink replay`; only the app and the judge are replaced.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import platform
import random
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from misslink.linking.replay.rerun import NotCachedError, add_evidence
from misslink.linking.replay.results import replay_figures
from misslink.linking.replay.runner import replay_cases
from misslink.types import Case, Claim, Link, Passage, RetrievalMiss, Run, Trace, Verdict

PAGE = Path(__file__).with_suffix(".md")
ROUNDS = 300
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
        claim = Claim(
            text="A.", support="supported" if supported else "unsupported", correct=correct
        )
        verdict = {"case_id": case.id, "status": "scored", "judge": "truth"}
        return {
            name: Verdict(**verdict, metric=name, value=float(good), label=good, claims=claims)
            for name, good, claims in (
                ("faithfulness", supported, (claim,)),
                ("correctness", correct, ()),
            )
        }

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

    ``confirmed`` is the share of replayed failures that are called confirmed, ``any`` that of replays
    with one; ``net`` and ``causal`` are the coverage of the truth by the intervals.
    """
    truth = true_fraction(scenario)
    confirmed, replayed, some, net, causal, widths, values = 0, 0, 0, [], [], [], []
    for seed in range(rounds):
        document = simulate(scenario, seed)
        mode, fraction = document["failures"]["retrieval_miss"], document["causal_fraction"]
        count = sum(case["confirmed"] or False for case in document["cases"])
        confirmed, replayed, some = (
            confirmed + count,
            replayed + mode["replayed"],
            some + (count > 0),
        )
        if mode["net_fixed"]["value"] is not None:
            net.append(mode["net_fixed"]["low"] <= 0 <= mode["net_fixed"]["high"])
        if fraction["value"] is not None:
            causal.append(fraction["low"] <= truth <= fraction["high"])
            widths.append(fraction["high"] - fraction["low"])
            values.append(fraction["value"])
    return SimpleNamespace(
        truth=truth,
        confirmed=confirmed / replayed,
        any=some / rounds,
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
            "| net effect's interval holds 0 | confirmed cases | replays with any |"
        ),
        "| --- | --: | --: | --: | --: | --: | --: | --: |",
    ]
    for scenario in scenarios:
        row = conclude(scenario, rounds)
        lines.append(
            f"| {scenario.name} | {row.truth:.3f} | {row.value:.3f} | {row.causal:.3f} | "
            f"{row.width:.2f} | {row.net_holds_zero:.3f} | {row.confirmed:.1%} | {row.any:.1%} |"
        )
        print(lines[-1], flush=True)
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> None:
    """Print the tables, and write them if asked to."""
    nothing, something = table(NULL, ROUNDS), table(EFFECT, ROUNDS)
    if "--write" in arguments:
        made = f"Python {platform.python_version()}, NumPy {np.__version__}"
        PAGE.write_text(
            _TEXT.format(rounds=ROUNDS, date=f"{dt.datetime.now(dt.UTC).date()}", made=made, k=K,
                         nothing=nothing, something=something),
            encoding="utf-8",
        )  # fmt: skip


_TEXT = """# What replay concludes where the truth is known

Made by `python benchmarks/replay.py --write` on {date}: {made}.

{rounds} simulated runs for each row, each with an app of its own, {k} passages for a question, 100
cases with half of them misses, and at most 40 replayed for a failure mode, unless the row says
otherwise. The apps answer at temperature 0: an unchanged rerun never differs, and any change of the
prompt draws the answer again. The simulated judge knows the truth; it calls a true answer unfaithful
where its evidence is not among the passages that it sees.

Confirmed cases are a share of the replayed failures of retrieval_miss. The net effect is that of
retrieval_miss. The truth of the causal fraction follows from the app, not from its run.

## Passages have no effect

Each case has its own probability of a right answer, whatever its passages say. Every confirmed case is
an error.

{nothing}

## Passages have an effect

A relevant passage in the prompt makes the answer right with probability 0.9.

{something}
"""


if __name__ == "__main__":
    main(sys.argv[1:])
