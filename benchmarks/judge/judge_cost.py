"""How many judge calls and tokens each step of a run takes.

    python benchmarks/judge/judge_cost.py [--write]

All figures are what `--dry-run` forecasts for a language model before any call: no judge is asked.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime as dt
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judge_throughput import _cases
from misslink.io import read_goldset
from misslink.judge.checks.dry_run import JudgingForecast, forecast_judging
from misslink.pipeline.config import EvaluationConfig
from misslink.pipeline.context import open_context
from misslink.pipeline.evaluate import forecast_async
from misslink.pipeline.traces import capture_traces

TARGET = Path(__file__).with_suffix(".md")
JUDGE = "openai:a-model"
PRICE_IN, PRICE_OUT = 0.4, 1.6  # USD per million tokens: an example
LONG_CASES = 100
HEAD = ["step", "cases", "calls", "tokens in", "tokens out", "USD of the example"]


@dataclass(frozen=True)
class Step:
    """What one step asks of the judge."""

    name: str
    cases: int
    calls: int
    prompt: int
    completion: int

    def cells(self) -> list[str]:
        """The row of the table."""
        cost = (self.prompt * PRICE_IN + self.completion * PRICE_OUT) / 1e6
        counts = (self.cases, self.calls, self.prompt, self.completion)
        return [self.name, *(f"{count:,}" for count in counts), f"{cost:.3f}"]


def step(name: str, cases: int, forecast: JudgingForecast | dict[str, Any]) -> Step:
    """A step from its forecast."""
    found = forecast if isinstance(forecast, dict) else vars(forecast)
    tokens = (found["prompt_tokens"], found["completion_tokens"])
    return Step(name, cases, found["calls"], *tokens)


async def evaluation(about: str, **inputs: Any) -> list[Step]:
    """What judging takes, and what linking asks after it."""
    options: dict[str, Any] = {**inputs, "judge": JUDGE, "cache": None}
    async with open_context(EvaluationConfig(**options)) as context:
        captured = await capture_traces(context)
        subjects = context.subjects(captured.traces)
        judging = await forecast_judging(subjects, context.metrics, context.judge)
        cases = len(captured.traces)
    both = await forecast_async(**options)
    linking = Step(
        f"evaluate, {about}: do missed passages hold the claim?",
        cases,
        both.calls - judging.calls,
        both.prompt_tokens - judging.prompt_tokens,
        both.completion_tokens - judging.completion_tokens,
    )
    return [step(f"evaluate, {about}: judging", cases, judging), *[linking] * (linking.calls > 0)]


def long_cases(folder: Path) -> dict[str, Path]:
    """Gold set and traces of cases with 4 passages of 150 words and 5 sentences of answer."""
    lines = _cases(folder / "cases.jsonl", LONG_CASES).read_text(encoding="utf-8").splitlines()
    made = [json.loads(line) for line in lines]
    gold = [{"id": one["id"], "question": one["question"], "reference": one["reference"],
             "relevant": ["p0"]} for one in made]  # fmt: skip
    traces = [
        {
            "case_id": one["id"],
            "answer": one["answer"],
            "retrieved": [{"id": f"p{n}", "text": text} for n, text in enumerate(one["passages"])],
        }
        for one in made
    ]
    files = {"goldset": folder / "long_gold.jsonl", "traces": folder / "long_traces.jsonl"}
    for name, rows in (("goldset", gold), ("traces", traces)):
        files[name].write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return files


def command(*arguments: str) -> dict[str, Any]:
    """What a dry run of a command prints."""
    dry = ("--judge", JUDGE, "--dry-run", "--json")
    environment = {name: value for name, value in os.environ.items() if "OPENAI" not in name}
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "misslink", *arguments, *dry],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def measure() -> list[Step]:
    """Forecast every step in a folder of its own."""
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        subprocess.run([sys.executable, "-m", "misslink.examples", "ferry"], check=True, stdout=-3)
        gold, k = ("--goldset", "ferry/goldset.jsonl"), ("--k", "2")
        run = [sys.executable, "-m", "misslink", "evaluate", "ferry/app.py:chain", *gold, *k]
        subprocess.run([*run, "--out", "run"], check=True, capture_output=True)  # noqa: S603
        cases = len(read_goldset("ferry/goldset.jsonl").cases)
        return [
            *asyncio.run(evaluation("short", app="ferry/app.py:chain", goldset=gold[1], k=2)),
            *asyncio.run(evaluation("long", **long_cases(Path(place)), k=4)),
            step("selftest --n 10", cases, command("selftest", "run", "--n", "10")),
            step("judge audit --sample 10", 10, command("judge", "audit", "run", "--sample", "10")),
            step("replay --sample 10, at most", cases,
                 command("replay", "run", "--app", "ferry/app.py:chain", "--sample", "10")),
        ]  # fmt: skip


def page(steps: list[Step]) -> str:
    """The page of the steps."""
    lines = [HEAD, ["---"] + ["--:"] * (len(HEAD) - 1), *(one.cells() for one in steps)]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"""# Judge calls and tokens of each step

Made by `python benchmarks/judge/judge_cost.py --write` on {dt.datetime.now(dt.UTC):%Y-%m-%d}. All figures are forecasts of `--dry-run`: characters / 4, and no judge was asked.
"Short" is the bundled example, two passages of about 30 words a case. "Long" are made-up cases of 4 passages of 150 words and 5
sentences of answer. The example's prices are {PRICE_IN:.2f} USD for a million tokens in and {PRICE_OUT:.2f} USD for a million tokens out.

{table}
"""


def main() -> None:
    """Print the page, or write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    text = page(measure())
    if parser.parse_args().write:
        TARGET.write_text(text, encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
