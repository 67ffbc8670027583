r"""How fast cases are judged, and what it costs the machine that asks: misslink and its peers.

    python benchmarks/judge/judge_throughput.py [--peers-python PATH] [--only ours|peers] [--write]

Every tool judges the same made-up cases (4 passages of 150 words, an answer of 5 sentences)
through `loopback_judge.py`, a server in a process of its own that answers every call after 200 ms.
The peers want an environment of their own:

    python -m venv PEERS
    uv pip install --python PEERS/bin/python ragas==0.4.3 "langchain-community<0.4" \
        deepeval==4.3.1 openevals==0.2.2 arize-phoenix-evals==3.9.4

(ragas 0.4.3 imports what langchain-community has dropped since. pip resolves these for minutes.)

With --write the tables go to benchmarks/judge/judge_throughput.md; with --only ours the rows of the other
tools stay there, with the day they were measured on.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import platform
import random
import shlex
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
TARGET = HERE / "judge_throughput.md"
CLIENTS = HERE / "peers" / "clients.py"
LATENCY = 0.2
SEED = 20261122
PEERS = {
    "ragas": "ragas",
    "deepeval": "deepeval",
    "openevals": "openevals",
    "phoenix": "arize-phoenix-evals",
}
SYLLABLES = ["ba", "de", "fi", "go", "lu", "ma", "ne", "pi", "ro", "su", "ta", "ve", "wi", "zo"]
NAMES = {"bare": "openai client alone", "decisions": "misslink, decision model"}
QUIET = {  # nothing phones home, and nothing asks to be talked to
    "DEEPEVAL_TELEMETRY_OPT_OUT": "YES",
    "DEEPEVAL_NO_INSPECT_PROMPT": "1",
    "DEEPEVAL_DISABLE_DOTENV": "1",
    "DEEPEVAL_PER_TASK_TIMEOUT_SECONDS_OVERRIDE": "600",
    "RAGAS_DO_NOT_TRACK": "true",
    "LANGSMITH_TRACING": "false",
    "LANGCHAIN_TRACING_V2": "false",
    "POSTHOG_DISABLED": "1",
    "ANONYMIZED_TELEMETRY": "False",
    "HF_HUB_OFFLINE": "1",
    "OPENAI_API_KEY": "none",
    "CI": "1",
}


@dataclass(frozen=True)
class Row:
    """What one tool took for so many cases."""

    tool: str
    cases: int
    concurrency: int
    calls: int
    embeddings: int
    prompt_tokens: int
    wall: float
    cpu: float
    failures: int
    memory_mb: float
    server_cpu: float
    most_at_once: int

    @property
    def ideal(self) -> float:
        """Seconds, were the latency all there is."""
        return (self.calls + self.embeddings) * LATENCY / self.concurrency

    def cells(self) -> list[str]:
        """The row as it is printed."""
        both = self.calls + self.embeddings
        embeddings = f" + {self.embeddings / self.cases:.1f}" if self.embeddings else ""
        return [
            self.tool,
            f"{self.cases:,}",
            str(self.concurrency),
            f"{self.calls / self.cases:.1f}{embeddings}",
            f"{self.prompt_tokens / self.cases:,.0f}",
            f"{self.wall:.1f}",
            f"{self.ideal:.1f}",
            f"{self.wall / self.ideal:.2f}" if both else "",
            f"{1000 * self.cpu / self.cases:.1f}",
            f"{1000 * self.cpu / both:.2f}" if both else "",
            f"{self.memory_mb:.0f}",
            str(self.failures),
        ]


HEAD = [
    *("tool", "cases", "at once", "calls a case", "prompt tokens a case", "wall s", "ideal s"),
    *("wall / ideal", "client CPU ms a case", "client CPU ms a call", "peak MB", "failures"),
]


def main() -> None:
    """Measure, print, and write where asked to."""
    options = _options()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ours, peers = options.only != "peers", options.only != "ours"
        rows = []
        with _server() as url:
            if ours:
                rows += _ours(url, folder, options)
            if peers and options.peers_python:
                cases = _cases(folder / "peers.jsonl", options.peer_cases)
                for tool in PEERS:
                    rows += _measure(options.peers_python, tool, url, cases, 32)
    text = _text(rows, options) + (_earlier_peers() if options.only == "ours" else "")
    sys.stdout.write(text)
    if options.write:
        TARGET.write_text(text, encoding="utf-8")


def _earlier_peers() -> str:
    """The other tools' rows of the page as it is, under the line that says when they were measured."""
    page = TARGET.read_text(encoding="utf-8").splitlines()
    made = next(line for line in page if line.startswith("Made by") and "ragas" in line)
    rows = [line for line in page if line.startswith(tuple(f"| {tool} |" for tool in PEERS))]
    head = [f"| {' | '.join(HEAD)} |", f"| --- |{' --: |' * (len(HEAD) - 1)}"]
    return "\n" + "\n".join(["## Other tools\n", f"{made}\n", *head, *rows]) + "\n"


def _ours(url: str, folder: Path, options: argparse.Namespace) -> list[Row]:
    cases = _cases(folder / "cases.jsonl", options.cases)
    many = _cases(folder / "many.jsonl", options.many_cases)
    rows = []
    for tool, file, concurrency in (
        ("bare", cases, 32),
        ("misslink", cases, 32),
        ("decisions", cases, 32),
        ("bare", cases, 128),
        ("misslink", cases, 128),
        ("decisions", cases, 128),
        ("misslink", many, 128),
        ("misslink", many, 128),  # again: now the cache is full
    ):
        rows += _measure(sys.executable, tool, url, file, concurrency)
    return rows


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers-python", help="the Python of the peers' environment")
    parser.add_argument("--only", choices=["ours", "peers"])
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--many-cases", type=int, default=10_000, help="for the peak memory")
    parser.add_argument("--peer-cases", type=int, default=200)
    parser.add_argument("--write", action="store_true", help=f"into {TARGET.name}")
    options = parser.parse_args()
    if options.only == "peers" and not options.peers_python:
        parser.error("the peers need --peers-python, the Python of their environment")
    return options


@contextmanager
def _server() -> Iterator[str]:
    command = [
        sys.executable,
        HERE.parent / "builders" / "loopback_judge.py",
        "--latency",
        str(LATENCY),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def _measure(python: str, tool: str, url: str, cases: Path, concurrency: int) -> list[Row]:
    """Run one tool in a process of its own; one that fails is told and left out."""
    command = [python, CLIENTS, tool, f"{url}/v1", cases, str(concurrency)]
    done = subprocess.run(  # noqa: S603
        list(map(str, command)),
        env={
            **os.environ,
            **QUIET,
            "OPENAI_BASE_URL": f"{url}/v1",
            "BENCHMARK_CACHE": str(cases.with_name(f"{cases.stem}-{tool}-{concurrency}.sqlite")),
        },
        cwd=cases.parent,  # some leave files where they run
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.stderr.write(f"{tool} failed:\n{done.stderr[-3000:]}\n")
        return []
    measured = json.loads(done.stdout.strip().splitlines()[-1])
    with urllib.request.urlopen(f"{url}/stats") as answer:  # noqa: S310
        stats = json.load(answer)
    row = Row(
        tool=NAMES.get(tool, tool) if stats["chat"] else f"{tool}, cache full",
        cases=sum(1 for _ in cases.open(encoding="utf-8")),
        concurrency=concurrency,
        calls=stats["chat"],
        embeddings=stats["embeddings"],
        prompt_tokens=stats["prompt_tokens"],
        server_cpu=stats["cpu_s"],
        most_at_once=stats["most_at_once"],
        **measured,
    )
    sys.stderr.write(f"{' | '.join(row.cells())}\n")
    return [row]


def _cases(path: Path, count: int) -> Path:
    """Write made-up cases, and one more beside them to warm up with."""
    chance = random.Random(SEED)  # noqa: S311 (made-up texts)
    for target, many in ((path, count), (path.with_name("warm.jsonl"), 1)):
        with target.open("w", encoding="utf-8") as file:
            for number in range(many):
                file.write(json.dumps(_case(chance, f"{target.stem}-{number}")) + "\n")
    return path


def _case(chance: random.Random, name: str) -> dict[str, Any]:
    """Four passages of 150 words, and an answer of which four sentences of five are the first's."""

    def sentence(words: int = 15) -> str:
        said = ["".join(chance.choices(SYLLABLES, k=chance.randint(1, 4))) for _ in range(words)]
        return " ".join(said).capitalize() + "."

    passages = [[sentence() for _ in range(10)] for _ in range(4)]
    return {
        "id": name,
        "question": f"What of {sentence(9).rstrip('.')}?",
        "passages": [" ".join(each) for each in passages],
        "answer": " ".join([*passages[0][:4], sentence()]),
        "reference": passages[0][0],
    }


def _text(rows: list[Row], options: argparse.Namespace) -> str:
    lines = [HEAD, ["---"] + ["--:"] * (len(HEAD) - 1), *(row.cells() for row in rows)]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    asked = [row for row in rows if row.calls + row.embeddings]
    server = max((1000 * row.server_cpu / (row.calls + row.embeddings) for row in asked), default=0)
    given = ["PEERS/bin/python" if part == options.peers_python else part for part in sys.argv[1:]]
    command = shlex.join(["benchmarks/judge/judge_throughput.py", *given])
    machine = (
        f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}, "
        f"{_versions(options)}"
    )
    about = (
        "Faithfulness and relevance (misslink: all its metrics) of made-up cases of 4 passages of "
        "150 words and 5 sentences of answer, by a server on the same machine that answers after "
        f"{1000 * LATENCY:.0f} ms and takes at most {server:.2f} ms of CPU a call. Ideal is calls "
        "x latency / how many are under way at once. Prompt tokens are characters / 4 of messages "
        "and schema. A failure is a case with a missing score. Embedding calls stand after a +."
    )
    parts = [
        "# Judging many cases: wall time and what it costs the client\n",
        f"Made by `python {command}` on {dt.datetime.now(dt.UTC):%Y-%m-%d}: {machine}.\n",
        f"{about}\n",
        table,
    ]
    return "\n".join(parts) + "\n" + _against_targets(rows)


def _against_targets(rows: list[Row]) -> str:
    """Hold misslink against what it is to reach."""
    found = {(row.tool, row.concurrency, row.cases): row for row in rows}
    few = min((row.cases for row in rows if row.tool == "misslink"), default=0)
    many = max((row.cases for row in rows if row.tool == "misslink"), default=0)
    ours, alone = found.get(("misslink", 32, few)), found.get(("openai client alone", 32, few))
    if ours is None or alone is None:
        return ""
    cpu = (ours.cpu / ours.calls) / (alone.cpu / alone.calls)
    said = [
        f"At 32 at once misslink takes {ours.wall / ours.ideal:.2f} x the ideal wall time",
        f"(target: at most 1.25) and {cpu:.2f} x the client CPU a call of the openai client",
        "alone (target: at most 1.5).",
    ]
    wide = found.get(("misslink", 128, few))
    if wide is not None:
        busy = wide.cpu / wide.wall
        said.append(
            f"At 128 at once {wide.calls / wide.wall:.0f} calls a second are made with one core "
            f"{busy:.0%} busy; the latency alone would allow {128 / LATENCY:.0f}."
        )
    full = [row for row in rows if row.tool == "misslink, cache full"]
    said += [
        f"With a full cache {row.cases:,} cases take {row.wall:.1f} s, {row.cpu:.1f} s of CPU "
        "(target: under 5 s)."
        for row in full
    ]
    large = found.get(("misslink", 128, many))
    if wide is not None and large is not None and many > few:
        said.append(
            f"Peak memory is {wide.memory_mb:.0f} MB with {few:,} cases and "
            f"{large.memory_mb:.0f} MB with {many:,}."
        )
    return "\n" + "\n".join(said) + "\n"


def _versions(options: argparse.Namespace) -> str:
    code = (
        "import sys, importlib.metadata as m;"
        "print(', '.join(f'{p} {m.version(p)}' for p in sys.argv[1:]))"
    )
    asked = [(sys.executable, ["openai"])]
    if options.peers_python and options.only != "ours":
        asked.append((options.peers_python, list(PEERS.values())))
    said = [
        subprocess.run(  # noqa: S603
            [python, "-c", code, *packages], capture_output=True, text=True, check=True
        ).stdout.strip()
        for python, packages in asked
    ]
    return ", ".join(said)


if __name__ == "__main__":
    main()
