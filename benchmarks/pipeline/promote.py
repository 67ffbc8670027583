"""A suite of failures: is it stable, is it quick, and who does it name for a planted regression?

    python benchmarks/pipeline/promote.py [--write | --smoke]    # a minute

A made-up ferry office fails on 50 questions; `misslink promote` freezes them, and the app is fixed.
Then one thing at a time is broken, and the suite is run as a gold set over the broken app. Judge:
heuristic. The corpus is given.
"""

from __future__ import annotations

import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import misslink
from misslink.types import Run

PAGE = Path(__file__).with_suffix(".md")
CASES, RERUNS = 50, 100
SYLLABLES = ("Ar", "Bro", "Dal", "Ek", "Fur", "Grin", "Hus", "Ing", "Kym", "Lan")
ENDINGS = ("holma", "vik", "sund", "so", "ort")
PLACES = [start + end for start in SYLLABLES for end in ENDINGS]
TEXTS = {
    place: f"The boat to {place} is run by the harbour office and carries up to sixty people. "
    f"The fare to {place} is {11 + n} crowns. "
    f"The last boat to {place} leaves at {13 + n % 9}:{10 + n % 50}."
    for n, place in enumerate(PLACES)
}
CORPUS = [{"id": place, "text": text} for place, text in TEXTS.items()]
WHOLE = 1_000


INTRO = """\
# A suite of failures

`misslink promote` froze {frozen} failed cases of a made-up app (`python benchmarks/pipeline/promote.py --write`; heuristic judge). The app was fixed,
and then one thing at a time was broken.

- With the fixed app {fixed} of {frozen} cases fail.
- {caught} regressions are caught: most of the failed cases name the owner of what was broken.
- {flaky} reruns of the suite without the app, its rows in another order each time, give another owner or failure mode to any case.
- `misslink evaluate --traces suite.jsonl` takes {wall} s for {frozen} cases and {cpu} s of CPU (medians of {times}, {low} to {high} s and {low_cpu} to
  {high_cpu} s of CPU; a new process without a cache, on 2 cores shared with others).

| what is broken | owner | failed cases | that name the owner |
|---|---|---:|---:|
{rows}
"""


@dataclass(frozen=True)
class App:
    """A made-up app by its settings; a fault is a setting."""

    k: int = 8
    shown: int = WHOLE  # characters of each passage in the prompt
    first: int = WHOLE  # passages in the prompt
    index: Mapping[str, str] | None = None  # instead of TEXTS
    hidden: str = ""  # a filter: passages of such places are not returned
    answer: Callable[[str, str], str] = lambda answer, _place: answer

    def trace(self, case: Mapping[str, Any]) -> dict[str, Any]:
        """Answer a question."""
        place = next(place for place in PLACES if f"to {place}" in case["question"])
        texts = self.index if self.index is not None else TEXTS
        order = [other for other in texts if other != place]
        if place in texts:
            order.insert(PLACES.index(place) % 8, place)
        order = [other for other in order if not self.hidden or self.hidden not in other]
        found = [{"id": other, "text": texts[other]} for other in order[: self.k]]
        shown = [passage["text"][: self.shown] for passage in found][: self.first]
        said = re.findall(rf"The (?:fare|last boat) to {place} [^.]*\.", "\n".join(shown))
        answer = " ".join(said) or f"The fare to {place} is {900 + PLACES.index(place)} crowns."
        return {
            "case_id": case["id"],
            "retrieved": found,
            "prompt": "\n\n".join(shown),
            "answer": self.answer(answer, place),
        }


def _stale(text: str) -> str:
    return re.sub(r"is (\d+) crowns", lambda found: f"is {int(found[1]) + 7} crowns", text)


GOOD = App()
BROKEN = App(k=1, shown=60)  # what the suite is promoted from
INVENTED = "Dogs sleep in a heated cabin below deck."
EVEN = {place: text for n, (place, text) in enumerate(TEXTS.items()) if n % 2}
REGRESSIONS: tuple[tuple[str, str, App], ...] = (
    ("one passage is retrieved", "retriever", replace(GOOD, k=1)),
    ("two passages are retrieved", "retriever", replace(GOOD, k=2)),
    ("four passages are retrieved", "retriever", replace(GOOD, k=4)),
    ("a filter hides some places", "retriever", replace(GOOD, hidden="vik")),
    ("another filter hides more", "retriever", replace(GOOD, hidden="s")),
    ("half of the documents are not indexed", "index", replace(GOOD, index=EVEN)),
    ("nothing of one place is indexed", "index", replace(GOOD, index={p: t for p, t in TEXTS.items() if "Dal" not in p})),
    ("the index holds old fares", "index", replace(GOOD, index={p: _stale(t) for p, t in TEXTS.items()})),
    ("passages are cut at 60 characters", "prompt", replace(GOOD, shown=60)),
    ("passages are cut at 125 characters", "prompt", replace(GOOD, shown=125)),
    ("one passage is in the prompt", "prompt", replace(GOOD, first=1)),
    ("three passages are in the prompt", "prompt", replace(GOOD, first=3)),
    ("the prompt is empty", "prompt", replace(GOOD, first=0)),
    ("a sentence is invented", "generator", replace(GOOD, answer=lambda a, _: f"{a} {INVENTED}")),
    ("fares are wrong", "generator", replace(GOOD, answer=lambda a, _: _stale(a))),
    ("times are wrong", "generator", replace(GOOD, answer=lambda a, _: a.replace("at 1", "at 2"))),
    ("the second part is left out", "generator", replace(GOOD, answer=lambda a, _: a.split(". ")[0] + ".")),
    ("every question is declined", "generator", replace(GOOD, answer=lambda _, __: "I do not know.")),
    ("it answers beside the point", "generator", replace(GOOD, answer=lambda _, p: f"The boat to {p} is run by the harbour office.")),
    ("the answer is negated", "generator", replace(GOOD, answer=lambda a, _: a.replace(" is ", " is not ").replace(" leaves ", " does not leave "))),
)  # fmt: skip


def questions() -> list[dict[str, Any]]:
    """Each place's two-part question."""
    return [
        {
            "id": f"q{n}",
            "question": f"What is the fare to {place}, and when does its last boat leave?",
            "reference": TEXTS[place].partition(". ")[2],
            "relevant": [place],
        }
        for n, place in enumerate(PLACES[:CASES])
    ]


def evaluate(app: App, goldset: Any, cases: list[dict[str, Any]], **options: Any) -> Run:
    """Return the run of an app."""
    texts = app.index if app.index is not None else TEXTS
    corpus = [{"id": place, "text": text} for place, text in texts.items()]
    traces = [app.trace(case) for case in cases]
    given = {"corpus": corpus, "embedding": "none", "cache": None, "k": app.k, **options}
    return misslink.evaluate(goldset=goldset, traces=traces, **given)


def outcomes(run: Run) -> dict[str, tuple[str, str]]:
    """Owner and failure of each case."""
    return {link.case_id: (link.owner, link.failure) for link in run.links}


def regression(owner: str, app: App, suite: Path, cases: list[dict[str, Any]]) -> tuple[int, int]:
    """How many cases fail, and how many of them name the owner."""
    owners = Counter(link.owner for link in evaluate(app, suite, cases).links if link.failed)
    return owners.total(), owners[owner]


def stability(suite: Path, reruns: int) -> int:
    """In how many reruns over shuffled rows some case has another owner or failure."""
    rows = suite.read_text(encoding="utf-8").splitlines()
    first = None
    flaky = 0
    for seed in range(reruns):
        random.Random(seed).shuffle(rows)  # noqa: S311
        again = suite.with_name("shuffled.jsonl")
        again.write_text("\n".join(rows), encoding="utf-8")
        now = outcomes(misslink.evaluate(traces=again, corpus=CORPUS, embedding="none", cache=None))
        first = first or now
        flaky += now != first
    return flaky


def seconds_of_command(suite: Path) -> tuple[float, float]:
    """Seconds and CPU seconds of the command, from an empty folder and without a cache."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "misslink", "evaluate", "--traces", str(suite)]
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run([*command, "--out", "run"], cwd=folder, check=True, capture_output=True)  # noqa: S603
        seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        return seconds, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    """Print the page."""
    smoke = "--smoke" in sys.argv
    cases = questions()[: 8 if smoke else CASES]
    with tempfile.TemporaryDirectory() as folder:
        run, suite = Path(folder) / "run", Path(folder) / "suite.jsonl"
        evaluate(BROKEN, cases, cases, out=run)
        promote = [sys.executable, "-m", "misslink", "promote", str(run), "--out", str(suite)]
        subprocess.run(promote, check=True, capture_output=True)  # noqa: S603
        frozen = len(suite.read_text(encoding="utf-8").splitlines())
        fixed = regression("none", GOOD, suite, cases)[0]
        rows, caught = [], 0
        for name, owner, app in REGRESSIONS[:: 7 if smoke else 1]:
            failed, right = regression(owner, app, suite, cases)
            caught += bool(failed) and right > failed / 2
            rows.append(f"| {name} | {owner} | {failed} | {right} |")
        reruns = 2 if smoke else RERUNS
        flaky = stability(suite, reruns)
        taken = [seconds_of_command(suite) for _ in range(1 if smoke else 5)]
    walls, cpus = (sorted(each) for each in zip(*taken, strict=True))
    text = INTRO.format(
        frozen=frozen,
        fixed=fixed,
        caught=f"{caught} of {len(rows)}",
        flaky=f"{flaky} of {reruns}",
        times=len(taken),
        wall=f"{walls[len(walls) // 2]:.1f}",
        low=f"{walls[0]:.1f}",
        high=f"{walls[-1]:.1f}",
        cpu=f"{cpus[len(cpus) // 2]:.1f}",
        low_cpu=f"{cpus[0]:.1f}",
        high_cpu=f"{cpus[-1]:.1f}",
        rows="\n".join(rows),
    )
    sys.stdout.write(text)
    if "--write" in sys.argv:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
