"""One tool judges a file of cases; prints what it took as one line of JSON.

    python benchmarks/judge/peers/clients.py TOOL URL CASES CONCURRENCY

Started by judge_throughput.py, each in a process of its own. TOOL is a function of this file. Each
asks for faithfulness and relevance of every case through the tool's own way to judge many cases.
Imports, and a first case that warms everything up, are not counted.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import resource
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

MODEL = "gpt-4o"  # a name that every tool knows as one with JSON schemas
Row = dict[str, Any]
Judging = Callable[[Path, int | None], Awaitable[int]]  # file, how many of it -> failures


def rows(path: Path, many: int | None) -> Iterator[Row]:
    """The cases, read one by one."""
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, islice(lines, many))


def bare(url: str, concurrency: int) -> Judging:
    """The openai client alone, with the requests that misslink makes of the cases."""
    import openai

    from misslink.judge.backends.request_format import RequestFormat
    from misslink.judge.examination import examine

    client = openai.AsyncOpenAI(api_key="none", base_url=url, max_retries=0)

    async def judge(path: Path, many: int | None) -> int:
        # Worded beforehand: what is measured is the client.
        asks = [
            examine(row["question"], tuple(row["passages"]), row["answer"], (row["reference"],))
            for row in rows(path, many)
        ]
        settings: Row = {"temperature": 0.0, "seed": 0, "max_tokens": 4096}
        bodies = iter([RequestFormat().request(ask, model=MODEL, **settings) for ask in asks])
        started.update(cpu=time.process_time(), wall=time.perf_counter())
        failures = 0

        async def worker() -> None:
            nonlocal failures
            for body in bodies:
                completion = await client.chat.completions.create(**body)
                failures += "claims" not in json.loads(completion.choices[0].message.content or "")

        await asyncio.gather(*(worker() for _ in range(concurrency)))
        return failures

    return judge


def decisions(url: str, concurrency: int) -> Judging:
    """Misslink with a decision model in place of a chat model."""
    return misslink(url, concurrency, "openai-decisions")


def misslink(url: str, concurrency: int, kind: str = "openai") -> Judging:
    """Every default metric of misslink, with its cache on disk, throttle and budget."""
    from misslink.garbage_collection import reduced_gc
    from misslink.judge.config import JudgeConfig
    from misslink.judge.judge_case import judge_case
    from misslink.judge.judged_metric import Subject
    from misslink.judge.session import open_judge
    from misslink.registry import judged_metrics
    from misslink.timeouts import map_concurrently
    from misslink.types import Case, Trace

    metrics = [judged_metrics.get(name) for name in judged_metrics.names()]
    judge = open_judge(
        f"{kind}:{MODEL}",
        cache=Path(os.environ["BENCHMARK_CACHE"]),
        concurrency=concurrency,
        terms=JudgeConfig(base_url=url),
    )
    assert judge is not None

    def subjects(path: Path, many: int | None) -> Iterator[Subject]:
        for row in rows(path, many):
            passages = [
                {"id": f"{row['id']}-{rank}", "text": text, "rank": rank}
                for rank, text in enumerate(row["passages"], 1)
            ]
            case = Case(id=row["id"], question=row["question"], references=(row["reference"],))
            trace = Trace(case_id=row["id"], retrieved=passages, answer=row["answer"])
            yield Subject(case, trace, 5, readings=judge.readings)

    async def work(subject: Subject) -> bool:
        verdicts = await judge_case(subject, metrics, judge)
        wanted = {v.metric: v for v in verdicts}
        return wanted["faithfulness"].status != "scored"

    async def judging(path: Path, many: int | None) -> int:
        total = many or sum(1 for _ in rows(path, None))
        with reduced_gc():
            found = await map_concurrently(
                subjects(path, many), work, concurrency, lambda *_: None, total=total
            )
        return sum(found)

    return judging


def ragas(url: str, concurrency: int) -> Judging:
    """Its faithfulness and response relevancy, through its evaluate()."""
    import openai
    from ragas import EvaluationDataset, RunConfig, aevaluate
    from ragas.embeddings import OpenAIEmbeddings
    from ragas.llms import llm_factory
    from ragas.metrics import Faithfulness, ResponseRelevancy

    client = openai.AsyncOpenAI(api_key="none", base_url=url)
    llm = llm_factory(MODEL, client=client)
    # Its response relevancy asks embeddings without await, and by their older names.
    embeddings = OpenAIEmbeddings(client=openai.OpenAI(api_key="none", base_url=url))
    embeddings.embed_query = embeddings.embed_text
    embeddings.embed_documents = embeddings.embed_texts

    async def judge(path: Path, many: int | None) -> int:
        data = EvaluationDataset.from_list(
            [
                {
                    "user_input": row["question"],
                    "retrieved_contexts": row["passages"],
                    "response": row["answer"],
                }
                for row in rows(path, many)
            ]
        )
        result = await aevaluate(
            data,
            [Faithfulness(llm=llm), ResponseRelevancy(llm=llm, embeddings=embeddings)],
            run_config=RunConfig(max_workers=concurrency),
            show_progress=False,
            raise_exceptions=False,
        )
        return sum(any(math.isnan(value) for value in score.values()) for score in result.scores)

    return judge


def deepeval(url: str, concurrency: int) -> Judging:
    """Its faithfulness and answer relevancy, through its evaluate()."""
    from deepeval import evaluate
    from deepeval.evaluate import AsyncConfig, CacheConfig, DisplayConfig, ErrorConfig
    from deepeval.metrics import AnswerRelevancyMetric, FaithfulnessMetric
    from deepeval.models import GPTModel
    from deepeval.test_case import LLMTestCase

    model = GPTModel(model=MODEL, api_key="none", base_url=url)

    def run(path: Path, many: int | None) -> int:
        cases = [
            LLMTestCase(
                input=row["question"],
                actual_output=row["answer"],
                retrieval_context=row["passages"],
            )
            for row in rows(path, many)
        ]
        result = evaluate(
            cases,
            [
                FaithfulnessMetric(model=model, async_mode=True),
                AnswerRelevancyMetric(model=model, async_mode=True),
            ],
            async_config=AsyncConfig(max_concurrent=concurrency),
            display_config=DisplayConfig(
                show_indicator=False, print_results=False, inspect_after_run=False
            ),
            cache_config=CacheConfig(write_cache=False),
            error_config=ErrorConfig(ignore_errors=True),
        )
        return sum(
            any(metric.score is None for metric in case.metrics_data)
            for case in result.test_results
        )

    async def judge(path: Path, many: int | None) -> int:
        # It starts an event loop of its own.
        return await asyncio.to_thread(run, path, many)

    return judge


def openevals(url: str, concurrency: int) -> Judging:
    """Its groundedness and helpfulness prompts; many cases are left to the user's own gather."""
    import openai
    from openevals.llm import create_async_llm_as_judge
    from openevals.prompts import RAG_GROUNDEDNESS_PROMPT, RAG_HELPFULNESS_PROMPT

    client = openai.AsyncOpenAI(api_key="none", base_url=url)
    grounded, helpful = (
        create_async_llm_as_judge(prompt=prompt, judge=client, model=MODEL)
        for prompt in (RAG_GROUNDEDNESS_PROMPT, RAG_HELPFULNESS_PROMPT)
    )

    async def judge(path: Path, many: int | None) -> int:
        gate = asyncio.Semaphore(concurrency)

        async def put(question: Awaitable[Any]) -> bool:
            async with gate:
                return (await question).get("score") is None

        questions = []
        for row in rows(path, many):
            context = {"documents": row["passages"]}
            questions += [
                grounded(context=context, outputs={"answer": row["answer"]}),
                helpful(inputs={"question": row["question"]}, outputs={"answer": row["answer"]}),
            ]
        return sum(await asyncio.gather(*map(put, questions)))

    return judge


def phoenix(url: str, concurrency: int) -> Judging:
    """Its faithfulness and document relevance, through its evaluate_dataframe()."""
    import pandas as pd
    from phoenix.evals import LLM, async_evaluate_dataframe
    from phoenix.evals.metrics import DocumentRelevanceEvaluator, FaithfulnessEvaluator

    llm = LLM(
        provider="openai",
        model=MODEL,
        initial_per_second_request_rate=10_000,
        sync_client_kwargs={"api_key": "none", "base_url": url},
        async_client_kwargs={"api_key": "none", "base_url": url},
    )

    async def judge(path: Path, many: int | None) -> int:
        frame = pd.DataFrame(
            [
                {
                    "input": row["question"],
                    "output": row["answer"],
                    "context": "\n\n".join(row["passages"]),
                    "document_text": "\n\n".join(row["passages"]),
                }
                for row in rows(path, many)
            ]
        )
        judged = await async_evaluate_dataframe(
            frame,
            [FaithfulnessEvaluator(llm=llm), DocumentRelevanceEvaluator(llm=llm)],
            concurrency=concurrency,
            hide_tqdm_bar=True,
        )
        scores = judged[[name for name in judged.columns if name.endswith("_score")]]
        return int(scores.isna().any(axis=1).sum())

    return judge


TOOLS = {
    tool.__name__: tool for tool in (bare, misslink, decisions, ragas, deepeval, openevals, phoenix)
}
started: dict[str, float] = {}


def _reset(url: str) -> None:
    import urllib.request

    address = url.removesuffix("/v1") + "/reset"
    urllib.request.urlopen(urllib.request.Request(address, method="POST")).read()  # noqa: S310


async def main() -> None:
    """Warm up, measure, print."""
    tool, url, cases, concurrency = sys.argv[1:]
    path = Path(cases)
    judge = TOOLS[tool](url, int(concurrency))
    await judge(path.with_name("warm.jsonl"), None)
    _reset(url)
    started.update(cpu=time.process_time(), wall=time.perf_counter())
    failures = await judge(path, None)
    measured = {
        "wall": time.perf_counter() - started["wall"],
        "cpu": time.process_time() - started["cpu"],
        "failures": failures,
        "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    # The line that counts is the last one: tools print too, and some leave threads behind.
    sys.stdout.write("\n" + json.dumps(measured) + "\n")
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(main())
