"""Whether failure modes and owners are right, in worlds where the truth about every text is known.

    python benchmarks/owners.py [--rounds N] [--write | --check]

Two data sets of invented facts (`faults/facts.py`) and three apps: a LangChain chain over a Chroma
index, a Python function that calls a LangChain retriever, and recorded traces with their corpus. The
kinds of failure are in `faults/kinds.py`. In each round every subject gets another kind. A judge that
knows the facts shows the errors of the rules alone; the noisy one errs about single claims
(sensitivity 0.8, specificity 0.9); the heuristic one is the judge without a model.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("ANONYMIZED_TELEMETRY", "False")

from langchain_core.documents import Document

import misslink
from faults.app import BrokenRetriever, ScriptedModel, build, open_store
from faults.facts import CASES, FERRIES, PUMPS, Domain, World
from faults.kinds import CONTEXT, KINDS, Kind, Scene, Staged
from faults.oracle import OracleJudge
from misslink.stats import proportion
from misslink.types import Link, Passage, Trace

TARGET = Path(__file__).with_suffix(".md")
DEPTH = 60
WANTED = {"oracle": (0.97, 0.95, 0.85), "noisy oracle": (0.85, 0.0, 0.0)}
APPS = ("chain", "function", "traces")
JUDGES = ("oracle", "noisy oracle", "heuristic")


@dataclass(frozen=True)
class Result:
    """What was planted in one case, and what misslink said of it."""

    kind: Kind
    app: str
    domain: str
    link: Link
    owner: str | None

    @property
    def right(self) -> bool:
        """The failure mode is the planted one, with its note."""
        notes = getattr(self.link, "notes", ())
        return self.link.failure == self.kind.failure and (
            self.kind.note is None or self.kind.note in notes
        )


def stage_round(domain: Domain, number: int) -> tuple[World, dict[str, Kind], dict[str, Staged]]:
    """Break every subject's case in one way; by case id, and by question."""
    world = World(domain, number)
    kinds: dict[str, Kind] = {}
    staged: dict[str, Staged] = {}
    for place, subject in enumerate(world.subjects[:CASES]):
        kind = KINDS[(place + number * CASES) % len(KINDS)]
        case_id = f"{subject}-{kind.name}".lower()
        scene = kind.stage(Scene(world, subject, case_id))
        kinds[case_id], staged[scene.case.question] = kind, scene
    return world, kinds, staged


def corpus_of(world: World, staged: Mapping[str, Staged]) -> list[Document]:
    """The passages of this round's index."""
    gone = frozenset[str]().union(*(one.unindexed for one in staged.values()))
    documents = {}
    for subject in world.subjects:
        for attribute in world.domain.attributes:
            fact = world.fact(subject, attribute)
            document = Document(
                id=f"{subject}-{attribute}".lower(),
                page_content=world.passage(fact),
                metadata={"subject": subject},
            )
            documents[str(document.id)] = document
    for one in staged.values():
        documents |= {str(document.id): document for document in one.added}
    return [document for id_, document in documents.items() if id_ not in gone]


def corpus_passages(corpus: Sequence[Document]) -> list[Passage]:
    """The passages of the index, as a user gives them."""
    return [
        Passage(id=str(document.id), text=document.page_content, rank=rank)
        for rank, document in enumerate(corpus, start=1)
    ]


def recorded_traces(staged: Mapping[str, Staged], corpus: Sequence[Document]) -> list[Trace]:
    """The same cases as an app would have recorded them."""
    traces = []
    for one in staged.values():
        ranked = one.arranged(corpus)[:CONTEXT]
        traces.append(
            Trace(
                case_id=one.case.id,
                retrieved=tuple(
                    Passage(id=str(document.id), text=document.page_content, rank=rank)
                    for rank, document in enumerate(ranked, start=1)
                ),
                prompted=tuple(str(d.id) for d in ranked if d.id not in one.withheld),
                answer=one.answer,
            )
        )
    return traces


def function_app(store: Any, staged: Mapping[str, Staged]) -> Any:
    """A Python function that asks a LangChain retriever, then a model with a prompt of its own."""
    retriever = BrokenRetriever(store=store, plants=staged, k=CONTEXT)
    model = ScriptedModel(plants=staged)

    def answer(question: str) -> str:
        withheld = staged[question].withheld
        kept = [d.page_content for d in retriever.invoke(question) if d.id not in withheld]
        return str(model.invoke(f"{' '.join(kept)} Question: {question}").content)

    return answer


def run_round(domain: Domain, number: int, app: str, judge_name: str) -> list[Result]:
    """Evaluate one app in one round."""
    world, kinds, staged = stage_round(domain, number)
    corpus = corpus_of(world, staged)
    judge: Any = judge_name
    if judge_name != "heuristic":
        rates = {} if judge_name == "oracle" else {"sensitivity": 0.8, "specificity": 0.9}
        judge = OracleJudge(world, staged, **rates)
    cases = [one.case for one in staged.values()]
    common: dict[str, Any] = {"judge": judge, "cache": None, "k": CONTEXT}
    if app == "traces":
        traces = recorded_traces(staged, corpus)
        passages = corpus_passages(corpus)
        run = misslink.evaluate(goldset=cases, traces=traces, corpus=passages, **common)
    else:
        store = open_store(corpus, f"owners-{domain.name}-{number}-{app}-{time.monotonic_ns()}")
        made = build(store, staged) if app == "chain" else function_app(store, staged)
        passages = None if app == "chain" else corpus_passages(corpus)
        run = misslink.evaluate(made, cases, depth=DEPTH, corpus=passages, **common)
    for trace in run.traces:
        if trace.error is not None:
            raise AssertionError(f"{trace.case_id}: {trace.error}")
    return [
        Result(kinds[link.case_id], app, domain.name, link, getattr(link, "owner", None))
        for link in run.links
    ]


def main() -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--judges", default="oracle")
    parser.add_argument("--apps", default=",".join(APPS))
    given = parser.parse_args()
    for judge in given.judges.split(","):
        results = [
            result
            for domain in (FERRIES, PUMPS)
            for app in given.apps.split(",")
            for number in range(given.rounds)
            for result in run_round(domain, number, app, judge)
        ]
        print(judge, "mode", proportion(sum(r.right for r in results), len(results)))
        print(
            judge,
            "owner",
            proportion(sum(r.owner == r.kind.owner for r in results), len(results)),
        )
        for kind in KINDS:
            mine = [r for r in results if r.kind is kind]
            wrong = Counter(
                f"{r.app}:{r.link.failure}" for r in mine if not r.right or r.owner != r.kind.owner
            )
            print(
                f"{kind.name:36} {kind.failure:20} {sum(r.right for r in mine)}/{len(mine)} {dict(wrong)}"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
