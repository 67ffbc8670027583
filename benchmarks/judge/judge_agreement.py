"""Compare judges with people, on label sets that other people published.

    python benchmarks/judge/judge_agreement.py [--data ../shared/data | FOLDER ...] [--judge SPEC ...]
        [--prompts v2,v3,v3+reference] [--sets NAME] [--cases N] [--deadline SECONDS] [--price-in X --price-out Y]
        [--base-url URL] [--cache FILE] [--dry-run] [--write]

``--data`` names the folder of reduced sets, or folders that  misslink import  wrote. Each judge is
asked through the same code as in  misslink evaluate  (pairs of answers as in  misslink judge
pairwise), so the cache saves its replies and a run that was stopped continues. Without ``--judge``
it is ``heuristic``, which needs no key. The cut of each judge is its own, never fitted on these labels.

``--prompts`` names versions of the prompts: v3 is misslink's own as they are today, v2 the ones before
version 3, with their own answer schema (`prompts_v2/`). Where cases have references, v3 is asked without
them too. v3+reference tells what a reference in the prompt does to verdicts on faithfulness: cases
without one get an answer to the same question that people found faithful, of another model, and the
others are not asked about. Compare it with v3 on the same cases, by both names at once. The forecast of calls, tokens and cost is printed first; with ``--dry-run`` nothing is asked. Model judges
are asked about sets whose name contains that of ``--sets``, and about a random sample of ``--cases``
of each; ``--deadline`` ends the judging of a set.

The heuristic judge was fitted on RAGTruth's dev answers, so it is not measured on them. With
--write the table goes to benchmarks/judge/judge_agreement.md.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime as dt
import os
import platform
import random
import shlex
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

from pydantic import BaseModel, create_model

sys.path.append(str(Path(__file__).parents[1] / "builders"))

from labelled_sets import BAD, DATA, Labelled, read
from misslink.calibration import JudgedCase, MetricVerdicts, read_verdicts, verdicts_from_run
from misslink.calibration.inter_annotator import annotator_agreement as among_people
from misslink.calibration.inter_annotator import pair_answers, settle_labels
from misslink.calibration.judge_accuracy import agreement_measures, detection_measures
from misslink.errors import MisslinkError
from misslink.judge.checks.dry_run import forecast_judging
from misslink.judge.checks.pairwise import AnswerPair, PairOutcome, judge_pairs
from misslink.judge.config import JudgeConfig
from misslink.judge.examination import Examination
from misslink.judge.judge_case import judge_case
from misslink.judge.judged_metric import Subject
from misslink.judge.prompts import BUILT_IN, Prompts
from misslink.judge.protocol import Ask, Judge, Reply
from misslink.judge.session import JudgeSession, create_judge, open_judge
from misslink.registry import judged_metrics
from misslink.types import Estimate, Run, Support

TARGET = Path(__file__).with_suffix(".md")
EARLIER = Path(__file__).with_name("prompts_v2")
OWN = ("heuristic",)
NO_PROMPT = "openai-decisions:", "systemone:", "langchain-decisions:"  # judges that read none
K = 100  # passages of a case that are shown: all of them
SEED = 20261124  # of the sample of cases
NOT_MEASURED = "not measured here"
WITH_REFERENCE = "v3+reference"
VERSIONS = {"v2", "v3", WITH_REFERENCE}
ABOUT = """
# Judges compared with human labels

Made by `{command}` on {day}: {cores} cores ({machine}), Python {python}, misslink {misslink};
{seconds:.0f} s.

Positive is the bad case, which a judge has to find: F1 is of finding it. AUROC, balanced
accuracy and Cohen's kappa do not depend on which side is called positive. Intervals are 95%. Every
judge has its own cut. The heuristic judge is not measured on answers that it was fitted on. "People"
are two annotators of the same items, one compared with the other.

A case on which people are tied has no truth and is left out, as is a case without a verdict of the
judge (n counts the rest). CLAPNQ asks whether the one passage holds an answer; no system answers.
In RAGChecker's pairs a judge that sees no difference is counted as preferring B, and people are
compared with each other only where both see one.

v2 and v3 are versions of the prompts; v3 is misslink's own, today's version {own}. "{not_measured}": no larger model, and no more time for a small
one, was at hand where this was made. With a key, one command measures it, after a forecast of its cost:
`python benchmarks/judge/judge_agreement.py --judge openai:MODEL --prompts v2,v3 --price-in X --price-out Y`.

"""


@cache
def earlier_schema(schema: type[BaseModel]) -> type[BaseModel]:
    """Return the answer schema of version 2: a claim's text, its support, then the quote."""
    claim = schema.model_fields["claims"].annotation.__args__[0]  # type: ignore[union-attr]
    fields: dict[str, Any] = {"text": (str, ...), "support": (Support, ...)}
    fields["quote"] = (str | None, None)
    if "reference" in claim.model_fields:
        fields["reference"] = (claim.model_fields["reference"].annotation, ...)
    others: dict[str, Any] = {
        name: (about.annotation, about) for name, about in schema.model_fields.items()
    }
    claims = tuple[create_model("Claim", **fields), ...]  # type: ignore[misc]
    return create_model("Examination", **{**others, "claims": (claims, ...)})


class EarlierExamination:
    """A judge that answers by the schema of version 2; its replies are read as those of version 3."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self.name = judge.name
        self.identity = {**judge.identity, "schema": "v2"}

    async def ask(self, ask: Ask) -> Reply:
        """Ask for an examination as version 2 did, and for anything else as it is."""
        if not issubclass(ask.schema, Examination):
            return await self.judge.ask(ask)
        reply = await self.judge.ask(replace(ask, schema=earlier_schema(ask.schema)))
        if reply.parsed is None:
            return reply
        fields = reply.parsed.model_dump()
        for claim in fields["claims"]:
            claim["span"] = claim["claim"] = claim.pop("text")
        return replace(reply, parsed=ask.schema.model_validate(fields))

    async def close(self) -> None:
        """Close the judge."""
        await self.judge.close()


@dataclass(frozen=True)
class Variant:
    """How a judge is asked."""

    spec: str
    version: str = ""  # empty: the judge reads no prompt
    references: bool | None = None  # None: as the cases have them; True: borrowed; False: none
    compared: bool = False  # only the cases that can have a reference

    @property
    def name(self) -> str:
        """What the table calls it."""
        shown = {None: "", True: "a reference", False: "no references"}[self.references]
        return ", ".join(filter(None, (self.spec, self.version, shown)))

    def choose(self, data: Labelled, cases: int | None) -> Labelled:
        """Return the set as this variant is asked about it."""
        borrowed = faithful_answers(data) if self.compared else {}
        chosen = [case for case in data.cases if not self.compared or case.id in borrowed]
        if cases is not None and self.spec not in OWN:
            random.Random(SEED).shuffle(chosen)  # noqa: S311 (a sample is no secret)
            chosen = chosen[:cases]
        if self.references is not None:
            shown = borrowed if self.references else {}
            chosen = [
                case.model_copy(update={"references": shown.get(case.id, ())}) for case in chosen
            ]
        return replace(data, cases=chosen)

    def terms(self, given: argparse.Namespace) -> JudgeConfig:
        """Return the judge's settings."""
        if self.spec in OWN:
            return JudgeConfig()
        return JudgeConfig(
            base_url=given.base_url,
            max_tokens=given.max_tokens,
            deadline=given.deadline,
            price_in=given.price_in,
            price_out=given.price_out,
            prompts=EARLIER if self.version == "v2" else None,
        )

    @asynccontextmanager
    async def opened(self, given: argparse.Namespace) -> AsyncIterator[JudgeSession]:
        """Open the judge, and close it at the end."""
        terms = self.terms(given)
        judge: Judge = create_judge(self.spec, terms)
        if self.version == "v2":
            judge = EarlierExamination(judge)
        session = open_judge(judge, cache=given.cache, concurrency=given.concurrency, terms=terms)
        assert session is not None
        try:
            yield session
        finally:
            await session.close()


def variants(data: Labelled, given: argparse.Namespace) -> Iterator[tuple[Variant, Labelled]]:
    """Yield how each judge is asked about a set, and about which of its cases."""
    pairs = len(data.sides) > 1
    for spec in given.judge if data.sides else ():
        if spec not in OWN and given.sets not in data.name:
            continue
        names = given.prompts.split(",")
        compares = WITH_REFERENCE in names and "faithfulness" in data.metrics
        if compares:
            versions = [Variant(spec, "v3", shown, compared=True) for shown in (False, True)]
        else:
            versions = [Variant(spec, name) for name in names if name != WITH_REFERENCE]
            if any(case.references for case in data.cases):
                versions.append(Variant(spec, "v3", references=False))
        if spec in OWN:
            versions = [] if pairs else [Variant(spec)]
        elif spec.startswith(NO_PROMPT):
            versions = [Variant(spec)]
        for variant in versions:
            yield variant, variant.choose(data, given.cases)


@dataclass(frozen=True)
class Row:
    """One line of the table; a text where there is no number."""

    data: str
    metric: str
    judge: str
    n: int | None  # None: not measured
    bad: int | None  # None: people are not of one mind
    numbers: Mapping[str, Estimate | str] = field(default_factory=dict)


def faithful_answers(data: Labelled) -> dict[str, tuple[str, ...]]:
    """Return a reference by case: its own, else another faithful answer to its question."""
    (traces,) = data.sides
    gold = settle_labels(data.labels.select_metric("faithfulness").items).gold
    good = {case_id for (case_id, _), label in gold.items() if label.good}
    answers: dict[str, dict[str, str]] = {}
    for case in data.cases:
        if case.id in good and (answer := traces[case.id].answer):
            answers.setdefault(case.question, {})[case.id] = answer
    found = {}
    for case in data.cases:
        others = [a for id_, a in answers.get(case.question, {}).items() if id_ != case.id]
        if case.references or others:
            found[case.id] = case.references or (others[0],)
    return found


def subjects(data: Labelled, prompts: Prompts) -> list[Subject]:
    """Return the cases of a set with their answers."""
    (traces,) = data.sides
    return [Subject(case, traces[case.id], K, prompts) for case in data.cases if case.id in traces]


def answer_pairs(data: Labelled) -> list[AnswerPair]:
    """Return the two answers of each case."""
    a, b = data.sides
    return [
        AnswerPair(
            case.id,
            case.question,
            a[case.id].answer or "",
            b[case.id].answer or "",
            references=case.references,
        )
        for case in data.cases
    ]


async def ask(
    data: Labelled, variant: Variant, given: argparse.Namespace
) -> dict[str, MetricVerdicts]:
    """Return a judge's verdicts on a set by metric."""
    prompts = Prompts.from_spec(variant.terms(given).prompts)
    async with variant.opened(given) as judge:
        if len(data.sides) > 1:
            outcomes = await judge_pairs(
                answer_pairs(data), judge, concurrency=given.concurrency, prompts=prompts
            )
            return {"preference": preferences(outcomes, data.name, variant.name)}
        metrics = [judged_metrics.get(name) for name in data.metrics]
        cases = [judge_case(subject, metrics, judge) for subject in subjects(data, prompts)]
        verdicts = [verdict for case in await asyncio.gather(*cases) for verdict in case]
    run = Run(
        manifest={},
        cases=tuple(data.cases),
        traces=tuple(data.sides[0].values()),
        verdicts=tuple(verdicts),
        links=(),
        summary={},
    )
    there = {verdict.metric for verdict in verdicts if verdict.status != "skipped"}
    labelled = {case.id for case in run.cases}
    return {metric: verdicts_from_run(run, metric, data.name, labelled) for metric in there}


def preferences(outcomes: Iterable[PairOutcome], source: str, judge: str) -> MetricVerdicts:
    """Return which answer of each pair a judge prefers, as verdicts: 1 is B."""
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
    return MetricVerdicts(items, "preference", source, frozenset(items), judge)


async def forecast(data: Labelled, variant: Variant, given: argparse.Namespace) -> str:
    """Return one line: the calls, tokens and cost of asking a judge about a set."""
    prompts = Prompts.from_spec(variant.terms(given).prompts)
    async with variant.opened(given) as judge:
        if len(data.sides) > 1:
            asks = [one for pair in answer_pairs(data) for one in pair.asks(prompts)]
            found = await forecast_judging((), (), judge, asks)
        else:
            metrics = [judged_metrics.get(name) for name in data.metrics]
            found = await forecast_judging(subjects(data, prompts), metrics, judge)
    cost = "unknown without prices" if found.cost is None else f"{found.cost:.2f}"
    return (
        f"{data.name}, {variant.name}: {found.calls:,} calls, {found.from_cache:,} from the cache,"
        f" {found.prompt_tokens:,} prompt tokens, {found.completion_tokens:,} completion tokens,"
        f" cost {cost}"
    )


def row(data: Labelled, verdicts: MetricVerdicts, judge: str) -> Row:
    """Compare verdicts with people."""
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
    kappa = found.kappa
    if kappa.value is not None:
        none = dict.fromkeys(("f1", "auroc", "balanced_accuracy"), "")
        said = Counter(label.case_id for label in labels)
        n = sum(count > 1 for count in said.values())
        yield Row(data.name, metric, "people", n, None, {**none, "kappa": kappa})


def measure(sets: Iterable[Labelled], given: argparse.Namespace) -> list[Row]:
    """Ask every judge about every set."""
    rows = []
    for data in sets:
        asked = {
            variant: asyncio.run(ask(chosen, variant, given))
            for variant, chosen in variants(data, given)
        }
        for metric in data.metrics:
            if not data.own and not any(metric in verdicts for verdicts in asked.values()):
                continue  # no judge is asked about it
            own = {str(one["judge"]) for one in data.own if one["metric"] == metric}
            rows += [row(data, read_verdicts(data.own, metric), name) for name in sorted(own)]
            for variant, verdicts in asked.items():
                fitted = variant.spec in OWN and metric == "faithfulness" and data.fitted
                if metric in verdicts and not fitted:
                    rows.append(row(data, verdicts[metric], variant.name))
            if data.cases and not any(variant.spec not in OWN for variant in asked):
                rows.append(Row(data.name, metric, "a model, v2 or v3", None, None))
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
        if not one.n:
            cells = [NOT_MEASURED, *cells[1:]]
        n, bad = ("" if count is None else f"{count:,}" for count in (one.n, one.bad))
        words = [one.data, BAD[one.metric], one.judge, n, bad, *cells]
        lines.append(f"| {' | '.join(words)} |")
    return "\n".join(lines)


def main() -> None:
    """Ask, print, and write."""
    parser = argparse.ArgumentParser(description="Judges against people's labels.")
    parser.add_argument("--data", type=Path, nargs="+", default=[DATA])
    parser.add_argument("--judge", action="append", metavar="SPEC")
    parser.add_argument("--prompts", default="v3", help="Of v2, v3 and v3+reference.")
    parser.add_argument("--cases", type=int)
    parser.add_argument("--sets", default="", help="Ask model judges about sets of this name.")
    parser.add_argument("--base-url")
    parser.add_argument("--max-tokens", type=int)
    parser.add_argument("--deadline", type=float)
    parser.add_argument("--price-in", type=float)
    parser.add_argument("--price-out", type=float)
    parser.add_argument("--cache", type=Path, default=Path(".misslink", "cache.sqlite"))
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    given.judge = given.judge or list(OWN)
    if unknown := set(given.prompts.split(",")) - VERSIONS:
        parser.error(
            f"--prompts has no {min(unknown)!r}; name some of {', '.join(sorted(VERSIONS))}"
        )
    since = time.perf_counter()
    try:
        sets = list(read(given.data))
        for data in sets:
            for variant, chosen in variants(data, given):
                print(asyncio.run(forecast(chosen, variant, given)), file=sys.stderr)
        if given.dry_run:
            return
        rows = measure(sets, given)
    except MisslinkError as error:
        sys.exit(f"judge_agreement: {error}")
    asked = ["python", "benchmarks/judge/judge_agreement.py"]
    asked += sys.argv[1:]
    day = dt.datetime.now(tz=dt.UTC).date()
    about = ABOUT.format(
        command=shlex.join(asked),
        day=day,
        cores=os.cpu_count(),
        machine=platform.machine(),
        python=platform.python_version(),
        misslink=version("misslink"),
        seconds=time.perf_counter() - since,
        not_measured=NOT_MEASURED,
        own=BUILT_IN.load("examination").ref.version,
    )
    names = {"f1": "F1", "auroc": "AUROC", "balanced_accuracy": "balanced accuracy"}
    page = f"{about.lstrip()}{table(rows, names | {'kappa': 'kappa'})}\n"
    print(page)
    if given.write:
        TARGET.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
