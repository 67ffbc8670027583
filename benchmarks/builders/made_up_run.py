"""A made-up run as large as wanted, and as full as a real one: what `report.py` measures pages of.

Questions, answers and passages are drawn by a seed from a made-up language; what hangs together in
a real run does so here too. Answers are five sentences, most of them taken from a passage of the
context, so that claims have quotes that are found; one case in three misses what it needs, and
its retriever was asked deeper; links, summary and slices are computed by misslink itself.
"""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path
from typing import Any

from made_up_cases import made_up  # the corpus's language
from misslink.documents import Summary
from misslink.linking.association import summarize_association
from misslink.linking.miss_measurement import measure_misses
from misslink.linking.owners import link_case
from misslink.pipeline.summary import (
    level_estimates,
    lower_is_better,
    slice_estimates,
    verdict_coverage,
)
from misslink.retrieval import score_cases
from misslink.types import (
    Case,
    Claim,
    Evidence,
    Link,
    Passage,
    PromptRef,
    Run,
    Trace,
    Usage,
    Verdict,
)

__all__ = ["made_up_files", "made_up_run"]

SEED = 20261122
K, DEEP, CHUNKS, CLAIMS = 5, 30, 4_000, 5
ON_MAP = 2_000  # of each kind, as many as `evaluate` draws
LEVELS = {
    "faithfulness": 2,
    "answer_relevance": 2,
    "context_relevance": 2,
    "context_utilization": 2,
    "context_sufficiency": 2,
    "abstention": 3,
    "completeness": 3,
    "correctness": 3,
}
JUDGE = "openai:a-model"
PROMPT = PromptRef(name="examination", version=2, sha256="d5" * 32)
BASE: dict[str, Any] = {"status": "scored", "judge": JUDGE, "prompt": PROMPT}
TOPICS = ("rates", "claims", "returns", "travel", "security", "holidays", "contracts", "devices")
KINDS = ("simple_factual", "procedural", "comparative", "complex_factual", "negative")


def made_up_run(cases: int, chunks: int = CHUNKS) -> Run:
    """Draw a run.

    Parameters
    ----------
    cases : int
        How many, 1 or more.
    chunks : int
        Passages of the corpus, each of about 1,000 characters.
    """
    draw = random.Random(SEED)  # noqa: S311
    corpus = made_up(0, chunks).corpus
    asked: list[Case] = []
    traces: list[Trace] = []
    verdicts: list[list[Verdict]] = []
    for number in range(cases):
        case, trace, needed = traced(draw, number, corpus)
        prompt = _prompt(case.question, trace.retrieved)
        trace = trace.model_copy(update={"prompt": prompt})
        asked.append(case)
        traces.append(trace)
        verdicts.append(_judged(draw, trace, needed))
    links = asyncio.run(_linked(asked, traces, verdicts, corpus))
    said = [verdict for each in verdicts for verdict in each]
    return Run(
        manifest=_manifest(cases),
        cases=tuple(asked),
        traces=tuple(traces),
        verdicts=tuple(said),
        links=tuple(links),
        summary=_summary(asked, traces, said, links),
        map=_map(draw, asked, links, corpus),
    )


def made_up_files(folder: Path, cases: int) -> None:
    """Write gold.jsonl and traces.jsonl, case by case."""
    draw = random.Random(SEED)  # noqa: S311
    corpus = made_up(0, CHUNKS).corpus
    gold, traces = folder / "gold.jsonl", folder / "traces.jsonl"
    with gold.open("w", encoding="utf-8") as asked, traces.open("w", encoding="utf-8") as seen:
        for number in range(cases):
            case, trace, _ = traced(draw, number, corpus)
            asked.write(case.model_dump_json(exclude_unset=True) + "\n")
            seen.write(trace.model_dump_json(exclude_unset=True) + "\n")


def traced(draw: random.Random, number: int, corpus: list[Passage]) -> tuple[Case, Trace, Passage]:
    """Draw a case, what the app did for it, and the passage it needed."""
    needed, missed = draw.choice(corpus), number % 3 == 0
    others = [one for one in draw.sample(corpus, DEEP) if one.id != needed.id]
    at = draw.randrange(K, DEEP - 1) if missed else draw.randrange(K)
    ranked = [
        one.model_copy(update={"rank": rank, "score": round(1 / (rank + 1), 4)})
        for rank, one in enumerate([*others[:at], needed, *others[at:]], 1)
    ]
    words = draw.choice(_sentences(needed.text)).lower().rstrip(".").split()
    case = Case(
        id=f"case-{number:05d}",
        question=f"What of {' '.join(words[:9])}, and when?",
        relevant={needed.id: draw.choice((1, 2))},
        references=(" ".join(draw.sample(_sentences(needed.text), 2)),),
        answerable=True,
        category=draw.choice(KINDS),
        tags={"topic": draw.choice(TOPICS), "language": draw.choice(("en", "en", "de", "fr"))},
    )
    bad = draw.random() < (0.6 if missed else 0.1)
    answer = " ".join(_answer(draw, ranked[:K], needed if bad else None))
    found = missed and draw.random() < 0.7
    trace = Trace(
        case_id=case.id,
        retrieved=tuple(ranked[:K]),
        prompted=tuple(one.id for one in ranked[:K]),
        answer=answer,
        latency_s=round(draw.lognormvariate(0.5, 0.4), 3),
        usage=Usage(prompt_tokens=draw.randrange(1_100, 1_600), completion_tokens=130),
        deeper=tuple(one for one in ranked[K:] if one.id == needed.id) if found else (),
        depth=DEEP if missed else None,
    )
    return case, trace, needed


def _prompt(question: str, passages: tuple[Passage, ...]) -> str:
    """The messages as an app records them: instructions, the passages, the question."""
    texts = "\n\n".join(f"[{place}] {one.text}" for place, one in enumerate(passages, start=1))
    return f"system: Answer from the passages alone.\n\nhuman: {texts}\n\nQuestion: {question}"


def _answer(draw: random.Random, context: list[Passage], needed: Passage | None) -> list[str]:
    """Five sentences, two of them of a passage that is not in the context where `needed` is."""
    said = [draw.choice(_sentences(draw.choice(context).text)) for _ in range(CLAIMS)]
    if needed is not None:
        for place in draw.sample(range(CLAIMS), 2):
            words = draw.choice(_sentences(needed.text)).split()
            draw.shuffle(words)
            said[place] = " ".join(words).rstrip(".").capitalize() + "."
    return said


def _sentences(text: str) -> list[str]:
    return [f"{one.rstrip('.')}." for one in text.split(". ")]


def _judged(draw: random.Random, trace: Trace, needed: Passage) -> list[Verdict]:
    """The verdicts of eight metrics, as one reply for all of them gives them."""
    claims = _claims(trace)
    share = sum(one.support == "supported" for one in claims) / len(claims)
    good, seen = share == 1, needed.id in (trace.prompted or ())
    about = {one.id: float(one.id == needed.id) for one in trace.retrieved}
    raw = json.dumps({"claims": [one.model_dump(exclude_none=True) for one in claims]})
    right = good or draw.random() < 0.2
    recall = draw.choice((0.5, 1.0)) if right else 0.0
    used = {"passages": {needed.id: float(good)}} if seen else {}
    unused = {"status": "skipped", "reason": "no relevant passage reached the context"}
    words = draw.choice(_sentences(needed.text))
    details: dict[str, dict[str, Any]] = {
        "faithfulness": {"value": share, "label": good, "claims": claims, "raw": raw,
                         "probability": round(draw.betavariate(*((9, 2) if good else (2, 6))), 3),
                         "usage": Usage(prompt_tokens=1_900, completion_tokens=420)},
        "answer_relevance": {"value": 1.0, "label": True, "probability": 0.94,
                             "reason": "the answer answers the question"},
        "context_relevance": {"value": sum(about.values()) / K, "label": seen, "passages": about},
        "context_utilization": {"value": float(good), "label": good, **used} if seen else unused,
        "context_sufficiency": {"value": float(seen), "label": seen,
                                "reason": "" if seen else f"nothing says: {words}"},
        "abstention": {"value": 1.0, "label": True,
                       "parts": {"declined": 0.0, "over_refused": 0.0},
                       "reason": "right: answered, and the question has an answer"},
        "completeness": {"value": recall, "label": right},
        "correctness": {"value": float(right), "label": right,
                        "parts": {"precision": share, "recall": recall}},
    }  # fmt: skip
    return [
        Verdict(**BASE | {"case_id": trace.case_id, "metric": metric} | details[metric])
        for metric in LEVELS
    ]


def _claims(trace: Trace) -> tuple[Claim, ...]:
    """Each sentence of the answer, with the quote of a passage where one says it."""
    answer, at, claims = trace.answer or "", 0, []
    for text in _sentences(answer):
        start = answer.index(text, at)
        at = start + len(text)
        bearer = next((one for one in trace.retrieved if text in one.text), None)
        spot = bearer.text.index(text) if bearer else 0
        evidence = bearer and Evidence(
            passage_id=bearer.id, quote=text, start=spot, end=spot + len(text)
        )
        claims.append(
            Claim(
                text=text,
                start=start,
                end=at,
                support="supported" if bearer else "unsupported",
                evidence=(evidence,) if evidence else (),
                probability=0.93 if bearer else 0.12,
            )
        )
    return tuple(claims)


async def _linked(
    cases: list[Case], traces: list[Trace], verdicts: list[list[Verdict]], corpus: list[Passage]
) -> list[Link]:
    measured = await measure_misses(cases, traces, K, embedder=None, corpus=corpus)
    return [
        await link_case(
            case,
            trace,
            {one.metric: one for one in said},
            K,
            measured=measured,
        )
        for case, trace, said in zip(cases, traces, verdicts, strict=True)
    ]


def _summary(
    cases: list[Case], traces: list[Trace], verdicts: list[Verdict], links: list[Link]
) -> dict[str, Any]:
    cutoffs = [f"{metric}@{K}" for metric in ("hit", "recall", "precision", "ndcg")]
    scores = score_cases(cases, traces, ["mrr", *cutoffs])
    unlinked = Run(manifest={}, cases=cases, traces=traces, verdicts=verdicts, links=(), summary={})
    summary = {
        "run": None,
        "cases": len(cases),
        "judge": JUDGE,
        "judge_note": None,
        "k": K,
        **level_estimates(scores, verdicts, LEVELS, seed=0),
        **summarize_association(unlinked, links),
        "lower_is_better": lower_is_better([]),
        "coverage": verdict_coverage(verdicts, LEVELS),
        "usage": {"calls": len(cases), "from_cache": 0, "not_asked": 0,
                  "prompt_tokens": 1_900 * len(cases), "completion_tokens": 420 * len(cases),
                  "cost": None},
        "slices": slice_estimates(cases, scores, verdicts, k=K, seed=0),
    }  # fmt: skip
    return Summary.read(summary).document()


def _map(
    draw: random.Random, cases: list[Case], links: list[Link], corpus: list[Passage]
) -> dict[str, Any]:
    """Points anywhere: a page takes as long for these as for those of an embedding."""

    def point(name: str, text: str) -> dict[str, Any]:
        return {"id": name, "x": round(draw.random(), 4), "y": round(draw.random(), 4),
                "text": text[:300]}  # fmt: skip

    shown = {case.id for case in cases[:ON_MAP]}
    on_map = {one.id for one in corpus[:ON_MAP]}
    return {
        "method": "pca",
        "embedding": "a-model",
        "queries": [
            {**point(case.id, case.question), "failure": link.failure}
            for case, link in zip(cases[:ON_MAP], links, strict=False)
        ],
        "passages": [point(one.id, one.text) for one in corpus[:ON_MAP]],
        "lines": [
            {"case_id": link.case_id, "passage_id": lost.passage_id, "failure": link.failure}
            for link in links
            for lost in link.missed
            if link.case_id in shown and lost.passage_id in on_map
        ],
        "left_out": max(0, len(corpus) - ON_MAP),
        "queries_left_out": max(0, len(cases) - ON_MAP),
    }


def _manifest(cases: int) -> dict[str, Any]:
    return {
        "misslink": "0.0.1",
        "created": "2026-11-22T08:00:00+00:00",
        "goldset": "made_up.jsonl",
        "app": "made_up.py:chain",
        "judge": JUDGE,
        "k": K,
        "depth": DEEP,
        "seed": SEED,
        "prompts": [PROMPT.model_dump()],
        "command": f"misslink evaluate made_up.py:chain --goldset made_up-{cases}.jsonl",
        "versions": {},
        "inputs": {},
    }
