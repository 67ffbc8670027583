"""How judging grows with Ray workers, and whether a limit by the minute holds for all of them.

    python benchmarks/engines/ray_workers.py [--calls 400] [--rpm 300] [--write | --smoke]

Workers of a cluster of this machine ask `loopback_judge.py`'s server, in a process of its own,
which answers every call after 200 ms; four calls are out at once for each worker. The clock runs
once all workers are up, from the first question to the last reply. Ideal is calls x latency / how
many are out at once. The processor's time is that of the driver's process, and of all workers'
processes together (the process with cache and limits is one of them), over the same calls. Then four workers ask under ``--rpm`` for two minutes and
more, and it is the server that counts the calls in every 60 seconds.

With --write the tables go to benchmarks/engines/ray_workers.md, and the figures to ray_workers.json.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime as dt
import json
import os
import platform
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

sys.path.append(str(Path(__file__).parents[1] / "builders"))

import loopback_judge
from misslink.engines.ray.cluster import connect_cluster
from misslink.engines.ray.engine import open_ray
from misslink.engines.ray.workers import Workers
from misslink.judge.config import JudgeConfig
from misslink.judge.examination import examine
from misslink.judge.session import JudgeSession, open_judge
from misslink.timeouts import map_concurrently

TARGET = Path(__file__).with_suffix(".md")
FIGURES = Path(__file__).with_suffix(".json")
LATENCY = 0.2
AT_ONCE = 4  # calls of each worker
WORKERS = 1, 2, 4
WANTED = 0.9
MINUTE = 60.0
MINUTES = 2.2  # of asking under a limit: so there are whole windows that do not hold the start


@dataclass(frozen=True)
class Row:
    """What so many workers took for so many calls."""

    workers: int
    calls: int
    wall: float
    driver_cpu_s: float
    worker_cpu_s: float  # of all workers together
    most_at_once: int
    failures: int

    @property
    def ideal(self) -> float:
        """Seconds, were the latency all there is."""
        return self.calls * LATENCY / (self.workers * AT_ONCE)

    @property
    def rate(self) -> float:
        """Calls a second."""
        return self.calls / self.wall

    def document(self) -> dict[str, float]:
        """The figures, as other scripts read them."""
        return {**asdict(self), "ideal": self.ideal}


class Timed(loopback_judge.Connection):
    """A connection that writes down when each call came."""

    came: list[float] = []  # noqa: RUF012 (of all connections)

    def _answer(self, method: str, path: str, content: bytes) -> None:
        if path == "/times":
            self._write({"times": self.came})
            return
        if path == "/reset":
            self.came.clear()
        elif method == "POST":
            self.came.append(time.monotonic())
        super()._answer(method, path, content)


def main() -> None:
    """Measure, print, and write where asked to."""
    global WORKERS, MINUTES
    options = _options()
    if options.smoke:
        WORKERS, MINUTES, options.calls, options.rpm = (1,), 0.05, 8, 100
        connect_cluster(None, 1)  # one for both parts, which are of a cluster each
    if options.serve:
        asyncio.run(_serve())
        return
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    with _server() as url:
        rows = [asyncio.run(_asked(url, workers, options.calls)) for workers in WORKERS]
        limited = asyncio.run(_limited(url, options.rpm))
    text = _text(rows, limited, options)
    sys.stdout.write(text)
    if options.write:
        TARGET.write_text(text, encoding="utf-8")
        figures = {"latency": LATENCY, "rows": [row.document() for row in rows], "limit": limited}
        FIGURES.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


def most_in(times: list[float], seconds: float) -> int:
    """Return how many of the times lie in any window of so many seconds, at most."""
    ordered, first, most = sorted(times), 0, 0
    for last, moment in enumerate(ordered):
        while moment - ordered[first] >= seconds:
            first += 1
        most = max(most, last - first + 1)
    return most


async def _asked(url: str, workers: int, calls: int) -> Row:
    """Ask so many questions once all workers are up, and have been asked before."""
    engine = open_ray(None, workers)
    try:
        at_once = engine.at_once("judge", workers * AT_ONCE)
        terms = JudgeConfig(base_url=f"{url}/v1")
        judge = open_judge(
            "openai:loopback", cache=None, concurrency=at_once, terms=terms, reach=engine.reach
        )
        assert judge is not None
        await _all_up(engine.workers)
        await _put(judge, range(-5 * at_once, 0), at_once)
        _request(url, "/reset")
        here, there = psutil.Process(), _workers()
        assert len(there) == workers + 1
        before, began = (_cpu([here]), _cpu(there)), time.perf_counter()
        answered = await _put(judge, range(workers * calls), at_once)
        wall = time.perf_counter() - began
        driver, busy = _cpu([here]) - before[0], _cpu(there) - before[1]
        stats = _request(url, "/stats")
        await judge.close()
    finally:
        await engine.close()
    assert stats["chat"] == workers * calls
    failures = answered.count(False)
    return Row(workers, stats["chat"], wall, driver, busy, stats["most_at_once"], failures)


async def _limited(url: str, rpm: int) -> dict[str, Any]:
    """Ask as fast as a limit allows, and return what the server counted."""
    engine = open_ray(None, max(WORKERS))
    try:
        at_once = engine.at_once("judge", max(WORKERS) * AT_ONCE)
        terms = JudgeConfig(base_url=f"{url}/v1", rpm=rpm)
        judge = open_judge(
            "openai:loopback", cache=None, concurrency=at_once, terms=terms, reach=engine.reach
        )
        assert judge is not None
        await _all_up(engine.workers)
        _request(url, "/reset")
        await _put(judge, range(int(MINUTES * rpm)), at_once)
        times = _request(url, "/times")["times"]
        await judge.close()
    finally:
        await engine.close()
    return {
        "rpm": rpm,
        "calls": len(times),
        "seconds": max(times) - min(times),
        "minute": most_in(times, MINUTE),
        "second": most_in(times, 1.0),
    }


async def _all_up(workers: Workers) -> None:
    """Wait until every worker has started."""
    await workers.ready()
    await asyncio.gather(*(member.start for member in workers.all if member.start))


def _workers() -> list[psutil.Process]:
    """The processes of the workers, and that of the judge; this cluster's alone."""
    children = psutil.Process().children(recursive=True)
    kinds = "ray::RayWorker", "ray::SharedJudgeActor"
    return [child for child in children if "".join(child.cmdline()).startswith(kinds)]


def _cpu(processes: list[psutil.Process]) -> float:
    """Seconds of processor that they have taken."""
    times = [process.cpu_times() for process in processes]
    return sum(one.user + one.system for one in times)


async def _put(judge: JudgeSession, numbers: range, at_once: int) -> list[bool]:
    async def one(number: int) -> bool:
        passage = f"By day the sky over town {number} is blue. Clouds are white there. " * 20
        ask = examine(
            f"What colour is the sky over town {number}?",
            (passage, "Grass is green.", passage[::-1]),
            f"The sky over town {number} is blue. Grass is red.",
        )
        return (await judge.ask(ask)).parsed is not None

    return await map_concurrently(numbers, one, at_once, lambda *_: None)


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    made = partial(Timed, loopback_judge.Stats(), LATENCY)
    server = await loop.create_server(made, "127.0.0.1", 0, backlog=1024)
    sys.stdout.write(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


@contextmanager
def _server() -> Iterator[str]:
    command = [sys.executable, __file__, "--serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def _request(url: str, path: str) -> dict[str, Any]:
    data = b"" if path == "/reset" else None
    with urllib.request.urlopen(url + path, data) as answer:  # noqa: S310 (our own server)
        found: dict[str, Any] = json.load(answer)
    return found


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=400, help="of each worker")
    parser.add_argument("--rpm", type=int, default=300, help="of all workers together")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--smoke", action="store_true", help="few calls, to see that it runs")
    parser.add_argument("--write", action="store_true", help=f"write {TARGET.name}")
    return parser.parse_args()


def _text(rows: list[Row], limited: dict[str, Any], options: argparse.Namespace) -> str:
    one = rows[0].rate
    head = (
        "workers | calls at once | calls | wall s | ideal s | efficiency against ideal | "
        "calls a second | against one worker | driver's CPU, ms a call | "
        "workers' CPU, ms a call | most at once, as the server saw | failures"
    )
    lines = [f"| {head} |", f"|{' --: |' * 12}"]
    lines += [
        f"| {row.workers} | {row.workers * AT_ONCE} | {row.calls:,} | {row.wall:.1f} | "
        f"{row.ideal:.1f} | {row.ideal / row.wall:.2f} | {row.rate:.1f} | "
        f"{row.rate / (row.workers * one):.2f} | {1000 * row.driver_cpu_s / row.calls:.1f} | "
        f"{1000 * row.worker_cpu_s / row.calls:.1f} | {row.most_at_once} | {row.failures} |"
        for row in rows
    ]
    worst = min(row.ideal / row.wall for row in rows)
    kept = limited["minute"] <= limited["rpm"]
    command = (
        f"benchmarks/engines/ray_workers.py --calls {options.calls} --rpm {options.rpm} --write"
    )
    made = (
        f"Made by `python {command}` on {dt.datetime.now(dt.UTC):%Y-%m-%d}: "
        f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}, "
        f"ray {version('ray')}, openai {version('openai')}."
    )
    about = (
        f"Workers of a Ray cluster of one machine, {AT_ONCE} calls at once for each, ask a server "
        f"on the same machine that answers after {1000 * LATENCY:.0f} ms; ideal is calls x latency "
        "/ calls at once. The cache, the throttle and the budget are in one process, which is counted as a worker; "
        "starting the cluster is not counted."
    )
    counted = (
        f"Under `--rpm {limited['rpm']}` {max(WORKERS)} workers made {limited['calls']:,} "
        f"calls in {limited['seconds']:.0f} s. By the server's clock there were never more "
        f"than {limited['minute']} in 60 seconds ({'kept' if kept else 'NOT KEPT'}), and "
        f"{limited['second']} in one second.\n"
    )
    title = "# Judging on Ray workers: how it grows, and the limit that all of them keep"
    target = f"The lowest efficiency is {worst:.2f} (target: at least {WANTED})."
    return "\n\n".join([title, made, about, "\n".join(lines), target, counted])


if __name__ == "__main__":
    main()
