"""What a request through the Router costs beside the bare variant.

    python benchmarks/live/router_overhead.py [--requests 1000] [--hundreds 30] [--write]

A real LangChain chain (retriever, prompt, a chat model that answers at once, parser), asked bare
and through a Router that logs to a file, in turns, so that a machine that slows down slows both;
who is first changes from turn to turn. Of each request the wall time is taken, the overhead being
the difference of the two medians; the 99th percentile, which on a busy machine is the machine's
own; and the CPU time of all threads, by the median. Once more with 100 requests at once, their
time divided by 100. Every row has to be under the target. With --write the table goes to
benchmarks/live/router_overhead.md.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime as dt
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnablePassthrough

from misslink.live import Experiment, RequestOptions, Router, read_live

TARGET = Path(__file__).with_suffix(".md")
QUESTION = "How do I give a function a default value that is a list, and what goes wrong then?"
LIMIT_MS = 1.0
UNITS = 500
Spent = tuple[float, float]  # milliseconds by the clock, and of CPU in all threads
Timed = tuple[list[Spent], list[Spent]]


def now() -> Spent:
    """Both clocks."""
    return time.perf_counter(), time.process_time()


def since(began: Spent, requests: int = 1) -> Spent:
    """Milliseconds a request since then."""
    wall, cpu = now()
    return (wall - began[0]) * 1000 / requests, (cpu - began[1]) * 1000 / requests


class Five(BaseRetriever):
    """Always the same five passages, and no time lost."""

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        del query, run_manager
        return [Document(page_content=f"passage {n} " * 80, id=f"d{n}") for n in range(5)]


def app() -> Runnable[Any, Any]:
    """A chain as people build them; built anew for each variant."""
    prompt = ChatPromptTemplate.from_template("Answer from {context}: {question}")
    model = FakeListChatModel(responses=["A default is made once, when the function is."])
    parts: Any = {"context": Five(), "question": RunnablePassthrough()}
    chain: Runnable[Any, Any] = parts | prompt | model | StrOutputParser()
    return chain


def configs(requests: int) -> Iterator[Any]:
    """A config for each request."""
    for number in range(requests):
        yield {"configurable": {"user_id": f"user-{number % UNITS}"}}


def in_turn(turn: int, asks: tuple[Any, Any], times: Timed) -> list[tuple[Any, list[Spent]]]:
    """Both ways and where their times go, the other one first each turn."""
    both = list(zip(asks, times, strict=True))
    return both[:: -1 if turn % 2 else 1]


def one_by_one(bare: Any, routed: Any, requests: int) -> Timed:
    """What each request took, bare and routed, sync."""
    times: Timed = ([], [])
    for turn, config in enumerate(configs(requests)):
        for ask, kept in in_turn(turn, (bare.invoke, routed.invoke), times):
            began = now()
            ask(QUESTION, config)
            kept.append(since(began))
    return times


async def awaited_one_by_one(bare: Any, routed: Any, requests: int) -> Timed:
    """What each request took, bare and routed, async."""
    times: Timed = ([], [])
    for turn, config in enumerate(configs(requests)):
        for ask, kept in in_turn(turn, (bare.ainvoke, routed.ainvoke), times):
            began = now()
            await ask(QUESTION, config)
            kept.append(since(began))
    return times


def at_once(bare: Any, routed: Any, hundreds: int) -> Timed:
    """What a request took in batches of 100 through a thread pool, one number a batch."""
    times: Timed = ([], [])
    part = list(configs(100))
    for turn in range(hundreds):
        for ask, kept in in_turn(turn, (bare.batch, routed.batch), times):
            began = now()
            ask([QUESTION] * len(part), part)
            kept.append(since(began, len(part)))
    return times


async def awaited_at_once(bare: Any, routed: Any, hundreds: int) -> Timed:
    """What a request took when 100 are awaited together, one number a hundred."""
    times: Timed = ([], [])
    part = list(configs(100))

    async def all_of(ask: Callable[..., Awaitable[Any]]) -> Spent:
        began = now()
        await asyncio.gather(*(ask(QUESTION, config) for config in part))
        return since(began, len(part))

    for turn in range(hundreds):
        for ask, kept in in_turn(turn, (bare.ainvoke, routed.ainvoke), times):
            kept.append(await all_of(ask))
    return times


def measured(
    split: dict[str, float], requests: int, hundreds: int, timeout_s: float | None
) -> dict[str, Timed]:
    """All four ways for one experiment, its log checked afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "live.sqlite"
        experiment = Experiment("overhead", split)
        router = Router(
            {"A": app(), "B": app()},
            experiment,
            log=path,
            timeout_s=timeout_s,
            requests=RequestOptions(salt="benchmark", reformulation_min=5),
        )
        bare = app()
        one_by_one(bare, router, 100)  # warm
        found = {
            "sync, one by one": one_by_one(bare, router, requests),
            "async, one by one": asyncio.run(awaited_one_by_one(bare, router, requests)),
            "sync, batches of 100": at_once(bare, router, hundreds),
            "async, 100 at once": asyncio.run(awaited_at_once(bare, router, hundreds)),
        }
        router.close()
        exposures = read_live(path).exposures
        assert len(exposures) == 100 + 2 * requests + 200 * hundreds, "a request is not in the log"
        assert {one.outcome for one in exposures} == {"ok"}
        assert all(len(one.retrieved or ()) == 5 for one in exposures)
    return found


def p99(values: list[float]) -> float:
    """The 99th percentile."""
    return statistics.quantiles(values, n=100)[98]


def rows(name: str, found: dict[str, Timed]) -> Iterator[tuple[str, float]]:
    """Lines of the table, each with the overhead of its median in ms."""
    for way, (bare, routed) in found.items():
        middle, cpu, high = (
            [of([spent[at] for spent in times]) for times in (bare, routed)]
            for at, of in ((0, statistics.median), (1, statistics.median), (0, p99))
        )
        tail = f"{high[0]:.2f} | {high[1]:.2f}" if way.endswith("one by one") else "|"
        line = (
            f"| {name} | {way} | {len(bare):,} | {middle[0]:.3f} | {middle[1]:.3f} | "
            f"{middle[1] - middle[0]:+.3f} | {cpu[1] - cpu[0]:+.3f} | {tail} |"
        )
        yield line, middle[1] - middle[0]


def main() -> int:
    """Measure, print and, on request, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--hundreds", type=int, default=30)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    lines, worst, before = [], 0.0, os.getloadavg()[0]
    sizes = options.requests, options.hundreds
    for name, split, timeout_s in (
        ("control", {"A": 1.0, "B": 0.0}, 30.0),
        ("B, bounded to 30 s", {"A": 0.0, "B": 1.0}, 30.0),
        ("B, not bounded", {"A": 0.0, "B": 1.0}, None),
    ):
        for line, overhead in rows(name, measured(split, *sizes, timeout_s)):
            print(line, flush=True)
            lines.append(line)
            worst = max(worst, overhead)
    text = page(lines, worst, before)
    print(text.rsplit("\n\n", 1)[-1], end="")
    if options.write:
        TARGET.write_text(text, encoding="utf-8")
    return 0 if worst < LIMIT_MS else 1


def page(lines: list[str], worst: float, load: float) -> str:
    """The page that is committed."""
    today = dt.datetime.now(dt.UTC).date()
    said = (__doc__ or "").split("\n\n")[2].replace("\n", " ").strip()
    head = (
        "| served by | asked | timed | bare ms | routed ms | overhead ms | CPU overhead ms "
        "| p99 bare | p99 routed |"
    )
    where = f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}"
    by = "Made by `python benchmarks/live/router_overhead.py --write`"
    return "\n".join(
        [
            "# A request through the Router",
            "",
            f"{by} on {today}: {where}, load average {load:.1f} before.",
            "",
            said,
            "",
            head,
            "| --- | --- | --: | --: | --: | --: | --: | --: | --: |",
            *lines,
            "",
            f"Target: under {LIMIT_MS:g} ms in every row; at most {worst:.2f} ms.",
            "",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
