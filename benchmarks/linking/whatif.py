"""Whether the failures that a what-if says an option avoids are those that it avoids.

    python benchmarks/linking/whatif.py            # 40 rounds a row, about six minutes
    python benchmarks/linking/whatif.py --write    # the table replaces whatif.md

Each round is a made-up app over a corpus whose needed sentences are known. An answer fails by a coin:
its risk depends on whether the sentence is in the context and, in the app that is distracted, on the
length of the context. The answers that the option would get are drawn beforehand, so the failures
that it avoids are known; a rerun of a case returns its drawn answer.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from misslink.linking.whatif import Chunking, ForecastCheck, SearchTools, evaluate_options
from misslink.linking.whatif.options import RetrievalBaseline, SearchContext, make_options
from misslink.types import Case, Claim, Estimate, Link, Passage, Run, Trace, Verdict

PAGE = Path(__file__).with_suffix(".md")
CASES, K, ROUNDS, SAMPLE = 100, 5, 40, 40
RISK_OF_MISS, RISK_OF_HIT = 0.75, 0.15
DISTRACTION = 0.5  # more risk of a hit for each time that the context is as long again
FILLERS = 8  # passages a case that hold nothing it needs


@dataclass(frozen=True)
class Scenario:
    """An option, by the name of `--options`, in an app that longer context distracts or not."""

    option: str
    distracts: bool
    chunking: Chunking | None = None

    @property
    def name(self) -> str:
        """Such as 'chunk 600/0'."""
        return f"{self.option} {self.chunking}" if self.chunking else self.option


SCENARIOS = [
    Scenario(option, distracts, chunking)
    for distracts in (True, False)
    for option, chunking in (
        ("k", None),
        ("rerank", None),
        ("chunk", Chunking(600, 0)),
        ("chunk", Chunking(70, 0)),
    )
]


@dataclass(frozen=True)
class Outcome:
    """What one round printed, and what came."""

    forecast: Estimate
    checked: Estimate
    avoided: int


class HalfReranker:
    """Puts the sentence that a question needs first for every other question, else last."""

    name = "half"

    async def order(self, question: str, texts: Sequence[str]) -> list[int]:
        """Places of the texts, best first."""
        number = question.rsplit(maxsplit=1)[-1].rstrip("?")
        needed = [place for place, text in enumerate(texts) if f"gate {number} opens" in text]
        others = [place for place in range(len(texts)) if place not in needed]
        return [*needed, *others] if int(number) % 2 else [*others, *needed]


def evidence(number: int) -> str:
    """The sentence that a case needs."""
    return f"The keeper says that gate {number} opens at {number % 12 + 1} in the morning."


def corpus() -> list[Passage]:
    """For each case a document: the needed sentence between passages about something else."""
    passages: list[Passage] = []
    for number in range(CASES):
        texts = [
            f"Notice {number}.{at} is about boats, ropes and sails of pier {number * 31 % 97}. "
            for at in range(FILLERS)
        ]
        texts[FILLERS // 2] = f"{evidence(number)} Ask there. "
        start = 0
        for at, text in enumerate(texts):
            metadata = {"source": f"d{number}", "start_index": start}
            passages.append(
                Passage(id=f"d{number}-{at}", text=text, rank=len(passages) + 1, metadata=metadata)
            )
            start += len(text)
    return passages


def planted_run(passages: Sequence[Passage], coins: Mapping[str, float], seed: int) -> Run:
    """A run whose retriever has the needed passage at a drawn rank; a low coin fails an answer."""
    generator = random.Random(seed)  # noqa: S311
    cases, traces, links = [], [], []
    by_case = {n: passages[n * FILLERS + FILLERS // 2] for n in range(CASES)}
    for number in range(CASES):
        case = Case(
            id=f"c{number}", question=f"When does the keeper open gate {number}?",
            evidence=[evidence(number)],
        )  # fmt: skip
        rank = generator.choice([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 14, 18])
        others = generator.sample([p for p in passages if p.id != by_case[number].id], 2 * K)
        listed = [*others[: rank - 1], by_case[number], *others[rank - 1 :]]
        ranked = [p.model_copy(update={"rank": at}) for at, p in enumerate(listed[: 2 * K], 1)]
        deeper = ranked[K:]
        if rank > 2 * K:
            deeper.append(by_case[number].model_copy(update={"rank": rank}))
        hit = rank <= K
        failed = coins[case.id] < (RISK_OF_HIT if hit else RISK_OF_MISS)
        cases.append(case)
        traces.append(
            Trace(
                case_id=case.id, retrieved=ranked[:K], deeper=deeper, depth=20, answer="It opens."
            )
        )
        links.append(
            Link(
                case_id=case.id, retrieval="hit" if hit else "miss", answer="unfaithful",
                failure="fabricated" if failed else "passed", reason="planted",
            )
        )  # fmt: skip
    return Run(
        manifest={"misslink": "0"}, cases=cases, traces=traces, verdicts=(), links=links,
        summary={"k": K},
    )  # fmt: skip


def simulate(scenario: Scenario, seed: int) -> Outcome:
    """One app, evaluated once and tried with the option, without and with a check."""
    generator = random.Random(seed)  # noqa: S311
    passages = corpus()
    # The same coin before and after: an answer changes only with its context.
    coins = {f"c{number}": generator.random() for number in range(CASES)}
    run = planted_run(passages, coins, seed)
    usual = sum(len(p.text) for trace in run.traces for p in trace.retrieved) / CASES

    def fails(case: Case, context: Sequence[Passage]) -> bool:
        text = " ".join(passage.text for passage in context)
        if next(iter(case.evidence)) not in text:
            return coins[case.id] < RISK_OF_MISS
        longer = max(0.0, len(text) / usual - 1.2) if scenario.distracts else 0.0
        return coins[case.id] < RISK_OF_HIT + DISTRACTION * longer

    async def rerun(case: Case, context: Sequence[Passage]) -> tuple[Trace, dict[str, Verdict]]:
        label = not fails(case, context)
        support = "supported" if label else "unsupported"
        verdict = Verdict(
            case_id=case.id, metric="faithfulness", status="scored", value=float(label),
            label=label, judge="exact", claims=(Claim(text="It opens.", support=support),),
        )  # fmt: skip
        trace = Trace(case_id=case.id, retrieved=tuple(context), answer="It opens.")
        return trace, {"faithfulness": verdict}

    tools = SearchTools(reranker=HalfReranker(), chunking=scenario.chunking, widths=(2 * K,))

    def tried(sample: int) -> Estimate:
        check = ForecastCheck(rerun, sample) if sample else None
        document = asyncio.run(
            evaluate_options(
                run, passages, tools, options=[scenario.option], check=check, seed=seed
            )
        )
        return document.options[0].failures_avoided

    forecast, checked = tried(0), tried(SAMPLE)
    baseline = RetrievalBaseline.from_run(run)
    ((option,), _) = make_options(
        SearchContext(baseline, tuple(passages), tools), [scenario.option]
    )
    result = asyncio.run(option.retrieve(baseline))
    contexts = {trace.case_id: trace.retrieved[: result.width] for trace in result.traces}
    before = sum(link.failure != "passed" for link in run.links)
    after = sum(fails(case, contexts[case.id]) for case in run.cases)
    return Outcome(forecast, checked, before - after)


def summarize(scenario: Scenario, outcomes: Sequence[Outcome]) -> list[str]:
    """A row of the table."""
    cells = [scenario.name, "yes" if scenario.distracts else "no"]
    cells.append(f"{sum(each.avoided for each in outcomes) / len(outcomes):.1f}")
    for name in ("forecast", "checked"):
        figures = [(getattr(each, name), each.avoided) for each in outcomes]
        printed = [(figure, came) for figure, came in figures if figure.value is not None]
        if not printed:
            cells += ["none", "", ""]
            continue
        positive = sum(figure.value > 0 for figure, _ in printed)
        covered = sum(figure.low <= came <= figure.high for figure, came in printed)
        width = sum(figure.high - figure.low for figure, _ in printed) / len(printed)
        cells += [
            f"{positive / len(outcomes):.0%}", f"{covered / len(printed):.1%}", f"{width:.1f}"
        ]  # fmt: skip
    return cells


COLUMNS = (
    "option", "longer context distracts", "avoided in truth", "forecast above 0",
    "forecast covers", "width", "with --check above 0", "--check covers", "width",
)  # fmt: skip


def table(rounds: int) -> str:
    """The table in markdown."""
    rows = [
        summarize(scenario, [simulate(scenario, seed) for seed in range(rounds)])
        for scenario in SCENARIOS
    ]
    lines = [COLUMNS, ["---"] * len(COLUMNS), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main(arguments: Sequence[str]) -> None:
    """Run the benchmark; write its page if asked to."""
    found = table(ROUNDS)
    print(found)
    if "--write" in arguments:
        PAGE.write_text(
            f"# What-if: failures avoided\n\n`python benchmarks/linking/whatif.py --write`: {ROUNDS} rounds a "
            f"row, {CASES} cases a run, a cutoff of {K}, `--check {SAMPLE}`. *Covers*: how often the "
            "95% interval holds the failures that the option avoids in that round. *None*: no figure "
            f"is printed without `--check`.\n\n{found}\n",
            encoding="utf-8",
        )


if __name__ == "__main__":
    main(sys.argv[1:])
