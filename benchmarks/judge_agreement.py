"""How far judges agree with people, on label sets that other people published.

    python benchmarks/judge_agreement.py [--data ../shared/data | FOLDER ...] [--judge SPEC ...]
                                         [--base-url URL] [--cache FILE] [--write]

``--data`` names the folder of reduced sets, or folders that  misslink import  wrote. Each judge is
asked by the same line as in  misslink evaluate  (pairs of answers as in  misslink judge pairwise), so
that the cache keeps its replies and a run that was stopped goes on; without ``--judge`` it is
``heuristic``, which needs no key. The cut of each judge is its own, never fitted on these labels.

The heuristic judge was fitted on RAGTruth's dev answers, so it is not measured on them. With
--write the table goes to benchmarks/judge_agreement.md.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime as dt
import os
import platform
import shlex
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import misslink
from labelled_sets import BAD, DATA, Labelled, read
from misslink.calibration import JudgedCase, MetricVerdicts, read_verdicts, verdicts_from_run
from misslink.calibration.inter_annotator import annotator_agreement as among_people
from misslink.calibration.inter_annotator import pair_answers, settle_labels
from misslink.calibration.judge_accuracy import agreement_measures, detection_measures
from misslink.errors import MisslinkError
from misslink.judge.checks.pairwise import AnswerPair, judge_pairs
from misslink.judge.config import JudgeConfig
from misslink.judge.session import open_reachable_judge
from misslink.types import Estimate

TARGET = Path(__file__).with_suffix(".md")
OWN = ("heuristic",)
ABOUT = """
# Judges against people's labels

Made by `{command}` on {day}: {cores} cores ({machine}), Python {python}, misslink {misslink};
{seconds:.0f} s.

Positive is the bad case, which a judge is there to find: F1 is of finding it. AUROC, balanced
accuracy and Cohen's kappa do not depend on which side is called positive. Intervals are 95%. Every
judge has its own cut. The heuristic judge is not measured on answers that it was fitted on. "People"
are two annotators of the same items, one compared with the other.
A case on which people are tied has no truth and is left out, as is one of which the judge has no
verdict (n counts the rest). CLAPNQ asks whether the one passage holds an answer; no system answers.
In RAGChecker's pairs a judge that sees no difference is counted as preferring B, and people are
held against each other only where both see one.

"""


@dataclass(frozen=True)
class Row:
    """One line of the table; a text stands where there is no number to be had."""

    data: str
    metric: str
    judge: str
    n: int
    bad: int | None  # None: people are not of one mind
    numbers: Mapping[str, Estimate | str] = field(default_factory=dict)


def ask(data: Labelled, spec: str, given: argparse.Namespace) -> dict[str, MetricVerdicts]:
    """Ask a judge about a set; its verdicts by metric, none of what it cannot be asked."""
    if not data.sides:
        return {}
    if len(data.sides) > 1:
        return {} if spec in OWN else {"preference": asyncio.run(compare(data, spec, given))}
    run = misslink.evaluate(
        goldset=data.cases,
        traces=list(data.sides[0].values()),
        judge=spec,
        cache=given.cache,
        embedding="none",
        concurrency=given.concurrency,
        terms=JudgeConfig(base_url=given.base_url),
    )
    there = {verdict.metric for verdict in run.verdicts if verdict.status != "skipped"}
    return {
        metric: verdicts_from_run(run, metric, data.name)
        for metric in data.metrics
        if metric in there
    }


async def compare(data: Labelled, spec: str, given: argparse.Namespace) -> MetricVerdicts:
    """Ask a judge which answer of each pair is better, in both orders."""
    a, b = data.sides
    pairs = [
        AnswerPair(case.id, case.question, a[case.id].answer or "", b[case.id].answer or "")
        for case in data.cases
    ]
    asked = open_reachable_judge(
        spec,
        cache=given.cache,
        concurrency=given.concurrency,
        terms=JudgeConfig(base_url=given.base_url),
    )
    async with asked as judge:
        outcomes = await judge_pairs(pairs, judge, concurrency=given.concurrency)
    value = {"a": 0.0, "tie": 0.5, "b": 1.0}
    items = {
        each.case_id: JudgedCase(
            each.case_id,
            value=value[each.winner] if each.winner else None,
            probability=each.probability,
            status="scored" if each.winner else "failed",
        )
        for each in outcomes
    }
    return MetricVerdicts(items, "preference", data.name, frozenset(items), spec)


def row(data: Labelled, verdicts: MetricVerdicts, judge: str) -> Row:
    """Hold verdicts against people."""
    gold = settle_labels(data.labels.select_metric(verdicts.metric).items).gold
    pairs, _ = pair_answers(gold, verdicts)
    cut, _ = verdicts.decision_threshold()
    found = agreement_measures(pairs, cut)
    numbers: dict[str, Estimate | str] = {
        "f1": detection_measures(pairs, cut)["f1"],
        **{name: found[name] for name in ("auroc", "balanced_accuracy", "kappa")},
    }
    bad = sum(not pair.good for pair in pairs)
    return Row(data.name, verdicts.metric, judge, len(pairs), bad, numbers)


def baselines(data: Labelled, metric: str) -> Iterator[Row]:
    """Judges that do not read: the same word for all, and the length of the answer."""
    gold = settle_labels(data.labels.select_metric(metric).items).gold
    good = sum(truth.good for truth in gold.values())
    word = float(2 * good >= len(gold))
    same = {case_id: JudgedCase(case_id, value=word) for case_id, _ in gold}
    yield row(data, MetricVerdicts(same, metric, "", frozenset(same), None), "always the majority")
    if metric == "faithfulness" and len(data.sides) == 1:
        long = {
            case_id: JudgedCase(case_id, value=1 / (1 + len(trace.answer or "")))
            for case_id, trace in data.sides[0].items()
        }
        found = row(data, MetricVerdicts(long, metric, "", frozenset(long), None), "length alone")
        no_cut = dict.fromkeys(("f1", "balanced_accuracy", "kappa"), "no cut")
        yield Row(data.name, metric, found.judge, found.n, found.bad, {**found.numbers, **no_cut})


def people(data: Labelled, metric: str) -> Iterator[Row]:
    """People among themselves, where there are two."""
    labels = data.labels.select_metric(metric).items
    found = among_people(labels, {}, seed=0)
    kappa = found["kappa"]
    if kappa.value is not None:
        none = dict.fromkeys(("f1", "auroc", "balanced_accuracy"), "")
        said = Counter(label.case_id for label in labels)
        n = sum(count > 1 for count in said.values())
        yield Row(data.name, metric, "people", n, None, {**none, "kappa": kappa})


def measure(sets: Iterable[Labelled], given: argparse.Namespace) -> list[Row]:
    """Ask every judge about every set."""
    rows = []
    for data in sets:
        asked = {spec: ask(data, spec, given) for spec in given.judge}
        for metric in data.metrics:
            if not data.own and not any(metric in said for said in asked.values()):
                continue  # no judge says anything of it
            own = {str(one["judge"]) for one in data.own if one["metric"] == metric}
            rows += [row(data, read_verdicts(data.own, metric), name) for name in sorted(own)]
            for spec, said in asked.items():
                if metric not in said:
                    continue
                if not (spec in OWN and metric == "faithfulness" and data.fitted):
                    rows.append(row(data, said[metric], spec))
            rows += [*baselines(data, metric), *people(data, metric)]
        print(f"{data.name}: done", file=sys.stderr)
    return rows


def written(number: Estimate | str) -> str:
    """A number with its interval; nothing where it could not be computed."""
    if isinstance(number, str):
        return number
    if number.value is None:
        return ""
    if number.low is None or number.high is None:
        return f"{number.value:.2f}"
    return f"{number.value:.2f} [{number.low:.2f}, {number.high:.2f}]"


def table(rows: Iterable[Row], columns: Mapping[str, str]) -> str:
    """The table in Markdown."""
    lines = [
        f"| data | to be found | judge | n | of them | {' | '.join(columns.values())} |",
        f"| --- | --- | --- | --: | --: |{' --: |' * len(columns)}",
    ]
    for one in rows:
        cells = [written(one.numbers.get(name, "")) for name in columns]
        bad = "" if one.bad is None else f"{one.bad:,}"
        words = [one.data, BAD[one.metric], one.judge, f"{one.n:,}", bad, *cells]
        lines.append(f"| {' | '.join(words)} |")
    return "\n".join(lines)


def main() -> None:
    """Ask, print, and write."""
    parser = argparse.ArgumentParser(description="Judges against people's labels.")
    parser.add_argument("--data", type=Path, nargs="+", default=[DATA])
    parser.add_argument("--judge", action="append", metavar="SPEC")
    parser.add_argument("--base-url")
    parser.add_argument("--cache", type=Path, default=Path(".misslink", "cache.sqlite"))
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    given.judge = given.judge or list(OWN)
    since = time.perf_counter()
    try:
        rows = measure(read(given.data), given)
    except MisslinkError as error:
        sys.exit(f"judge_agreement: {error}")
    asked = ["python", "benchmarks/judge_agreement.py"]
    asked += [word for spec in given.judge for word in ("--judge", spec)] + ["--write"]
    day = dt.datetime.now(tz=dt.UTC).date()
    about = ABOUT.format(
        command=shlex.join(asked),
        day=day,
        cores=os.cpu_count(),
        machine=platform.machine(),
        python=platform.python_version(),
        misslink=version("misslink"),
        seconds=time.perf_counter() - since,
    )
    names = {"f1": "F1", "auroc": "AUROC", "balanced_accuracy": "balanced accuracy"}
    page = f"{about.lstrip()}{table(rows, names | {'kappa': 'kappa'})}\n"
    print(page)
    if given.write:
        TARGET.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
