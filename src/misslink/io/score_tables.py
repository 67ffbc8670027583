"""Read tables of scores, one value for each case and metric, as runs that can be compared.

A table has the columns ``case``, ``metric`` and ``value``, or one column for each metric. What other
tools write is flattened to that. Sources: ``to_pandas`` of a ragas result; test runs of deepeval;
logs of Inspect (https://inspect.aisi.org.uk/eval-logs.html); results of promptfoo
(https://www.promptfoo.dev/docs/configuration/outputs/); ``EvaluatorResult`` of openevals, and the
frame of a LangSmith experiment.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from misslink.errors import InputError
from misslink.io.jsonl import SourceItem
from misslink.io.labels import parse_id
from misslink.io.numbers import parse_number, shorten_repr
from misslink.io.rows import read_rows
from misslink.io.storage import as_url, redact_url
from misslink.io.trace_formats.tables import COLUMN_NAMES
from misslink.types import Case, Run, Verdict

_CASE = ("case", "case_id", "example_id", "sample_id", "test_case_id", "question_id", "id")
_METRIC = ("metric", "metric_name", "key", "name")
_VALUE = ("value", "score")
_RUN = ("run", "run_name", "experiment", "model")
_CLUSTER = ("cluster", "cluster_id", "group")
_JUDGE = ("judge", "evaluation_model", "evaluationModel")
_LOWER = {"low", "lower"}  # of the column `better`
_COLUMNS = (_CASE, COLUMN_NAMES["question"], _METRIC, _VALUE, _RUN, _CLUSTER, _JUDGE, ("better",))
# Of a table with a column for each metric: what says how an answer came about, and no score.
_NO_SCORES = {
    "epoch",
    "index",
    "order",
    "threshold",
    "weight",
    "tokens",
    "cost",
    "seed",
    "rank",
} | {
    name
    for names in (*COLUMN_NAMES.values(), *_COLUMNS)
    for name in names
    if name not in ("score", "value")
}
_FEEDBACK = "feedback."  # how LangSmith begins the columns of scores
_LISTS = (  # where documents have their cases, the first that is there
    ("samples",),
    ("testRunData",),
    ("testCases", "conversationalTestCases"),
    ("test_results",),
    ("results",),
)
_NESTED = ("metricsData", "metrics_data", "results")  # the scores of one case, as a list
_GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}  # of Inspect: correct, partial, incorrect, none
_WORDS = {"true": 1.0, "pass": 1.0, "passed": 1.0, "yes": 1.0} | dict.fromkeys(
    ("false", "fail", "failed", "no"), 0.0
)
# Metrics of these tools that are good when low, by their names without blanks and capitals.
_LOW_METRICS = {"hallucination", "bias", "toxicity", "noisesensitivity", "misuse", "nonadvice"}
_ABSENT = "the table has no value"


@dataclass(frozen=True)
class _Score:
    """One score as it is written, and the row it is from."""

    item: SourceItem
    case: Any
    question: str | None
    run: Any
    cluster: Any
    judge: Any
    metric: Any = None
    value: Any = None
    better: Any = None


@dataclass
class _RunScores:
    """The scores of one run."""

    of_case: dict[str, dict[str, tuple[float | None, SourceItem]]] = field(default_factory=dict)
    questions: dict[str, str] = field(default_factory=dict)
    clusters: dict[str, str] = field(default_factory=dict)
    judges: set[str] = field(default_factory=set)


def is_score_table(source: object) -> bool:
    """Whether it is a file (``FILE#RUN`` names one of its runs), or rows given in Python.

    Raises
    ------
    InputError
        Nothing is there, which could be a run folder too.
    """
    if isinstance(source, str | Path):
        file = _split_name(source)[0]
        if not file.exists() and as_url(source) is None:
            raise InputError("there is no such run folder or score table", path=source)
        return file.is_file()
    return not isinstance(source, Run) and (
        hasattr(source, "columns") or isinstance(source, list | tuple)
    )


def read_score_table(source: Any) -> dict[str, Run]:
    """Read a table of scores.

    Parameters
    ----------
    source : path, data frame, or list of mappings
        A file as of `misslink.io.rows.read_rows`. ``FILE#RUN`` reads one run of several.

    Returns
    -------
    dict of str to Run
        By the names of the column ``run``; without one a single run is called "".

    Raises
    ------
    InputError
        It cannot be read, has no scores or no cases, a value is no number from 0 to 1, a case has
        two values of a metric, or there is no such run.
    """
    name, wanted = "the score table", ""
    if isinstance(source, str | Path):
        source, wanted = _split_name(source)
        name = redact_url(source)
        if source.suffix == ".eval":
            raise InputError(
                "this log is packed; write it as JSON with  inspect log convert LOG --to json "
                "--output-dir FOLDER",
                path=name,
            )
    runs: dict[str, _RunScores] = {}
    low = set[str]()
    columns: dict[str, None] = {}
    rows = (row for item in read_rows(source, name) for row in _unwrap(item))
    for score in _iter_scores(rows, columns):
        _add(score, runs, low)
    if not any(scores.of_case for scores in runs.values()):
        listed = ", ".join(columns) or "none"
        raise InputError(
            "it has no scores; give the columns case, metric and value, or case and a column for "
            f"each metric (its columns: {listed})",
            path=name,
        )
    if wanted and wanted not in runs:
        known = ", ".join(filter(None, runs)) or "none with a name"
        raise InputError(f"it has no run '{wanted}'; its runs: {known}", path=name)
    chosen = {wanted: runs[wanted]} if wanted else runs
    return {run: _as_run(scores, low) for run, scores in chosen.items()}


def read_scored_run(source: Any) -> Run:
    """Read a table of one run; raise InputError as `read_score_table`, or if it has several."""
    runs = read_score_table(source)
    if len(runs) > 1:
        listed = ", ".join(filter(None, runs))
        name = redact_url(source) if isinstance(source, str | Path) else "the score table"
        raise InputError(
            f"it has several runs ({listed}); name one as  {name}#{next(filter(None, runs))}",
            path=name,
        )
    return next(iter(runs.values()))


def _split_name(source: str | Path) -> tuple[Path, str]:
    """The file, and the run that is named behind ``#``."""
    file, _, run = str(source).partition("#")
    return (Path(source), "") if Path(source).is_file() else (Path(file), run)


def _unwrap(item: SourceItem) -> Iterator[SourceItem]:
    """The cases of a document that holds them all; any other item is a case itself."""
    data = item.data
    groups = () if _first(data, (*_CASE, *COLUMN_NAMES["question"], "vars")) else _LISTS
    for group in groups:
        found = [data[key] for key in group if isinstance(data.get(key), list | dict)]
        for inner in found:
            for row in inner if isinstance(inner, list) else [inner]:
                if isinstance(row, Mapping):
                    yield from _unwrap(item._replace(data=dict(row)))
        if found:
            return
    yield item


def _iter_scores(items: Iterable[SourceItem], columns: dict[str, None]) -> Iterator[_Score]:
    """The scores of cases in any shape; `columns` collects the names that were seen."""
    held = list(items)
    is_long = any(_first(i.data, _METRIC) and _first(i.data, _VALUE) is not None for i in held)
    wide: list[_Score] = []
    for item in held:
        row = item.data
        columns |= dict.fromkeys(row)
        case = _case_of(item)
        nested = next((row[key] for key in _NESTED if isinstance(row.get(key), list)), None)
        if isinstance(row.get("vars"), Mapping):
            yield from _promptfoo_scores(case)
        elif isinstance(row.get("scores"), Mapping):
            yield from _inspect_scores(case)
        elif nested is not None:
            yield from (_score_of(case, part) for part in nested if isinstance(part, Mapping))
        elif is_long:
            yield _score_of(case, row)
        else:
            wide.append(case)
    for name in _metric_columns([case.item.data for case in wide]):
        for case in wide:
            metric = name.removeprefix(_FEEDBACK)
            yield replace(case, metric=metric, value=case.item.data.get(name))


def _case_of(item: SourceItem) -> _Score:
    """What all scores of a row have in common."""
    row, question = item.data, _first(item.data, COLUMN_NAMES["question"])
    case = _first(row, _CASE)
    question = question if isinstance(question, str) else None
    # What deepeval calls its test cases is their place; the input says which one it is.
    if case is None and question is None and any(key in row for key in _NESTED):
        case = row.get("name")
    run, cluster, judge = (_first(row, names) for names in (_RUN, _CLUSTER, _JUDGE))
    return _Score(item, case, question, run, cluster, judge, better=row.get("better"))


def _score_of(case: _Score, row: Mapping[str, Any]) -> _Score:
    return replace(
        case,
        metric=_first(row, _METRIC),
        value=_first(row, _VALUE),
        judge=_first(row, _JUDGE) or case.judge,
    )


def _inspect_scores(case: _Score) -> Iterator[_Score]:
    """The scores of a sample; its epochs are cases of one cluster."""
    sample = case.item.data
    name, epoch = str(sample.get("id")), sample.get("epoch", 1)
    case = replace(case, case=name if epoch == 1 else f"{name} (epoch {epoch})", cluster=name)
    for scorer, score in sample["scores"].items():
        value = score.get("value") if isinstance(score, Mapping) else score
        parts = value.items() if isinstance(value, Mapping) else [("", value)]
        for part, number in parts:
            grade = _GRADES.get(number, number) if isinstance(number, str) else number
            yield replace(case, metric="/".join(filter(None, (scorer, part))), value=grade)


def _promptfoo_scores(case: _Score) -> Iterator[_Score]:
    """The named scores of a result and its own; a provider with a prompt is a run."""
    result = case.item.data
    test, given = result.get("testCase"), result["vars"]
    name = test.get("description") if isinstance(test, Mapping) else None
    texts = [value for value in given.values() if isinstance(value, str)]
    if not name and len(given) == len(texts) == 1:
        name = texts[0]
    name = name or json.dumps(given, ensure_ascii=False, sort_keys=True)
    parts = (result.get("provider"), result.get("prompt"))
    labels = [
        _first(part, ("label", "id")) if isinstance(part, Mapping) else part for part in parts
    ]
    case = replace(case, case=name, run=" ".join(map(str, filter(None, labels))))
    named = result.get("namedScores")
    scores = {"score": result.get("score"), **(named if isinstance(named, Mapping) else {})}
    for metric, value in scores.items():
        yield replace(case, metric=metric, value=value)


def _metric_columns(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The columns of scores: those that LangSmith marks, else those with a number in any row."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    if marked := [name for name in names if name.startswith(_FEEDBACK)]:
        return marked
    return [
        name
        for name in names
        if name.lower() not in _NO_SCORES
        and any(_parse_score(row.get(name)) is not None for row in rows)
    ]


def _first(row: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((row[name] for name in names if row.get(name) not in (None, "")), None)


def _parse_score(value: object) -> float | None:
    """A number, a truth value or a word for one."""
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, str) and value.strip().lower() in _WORDS:
        return _WORDS[value.strip().lower()]
    return parse_number(value)


def _add(score: _Score, runs: dict[str, _RunScores], low: set[str]) -> None:
    """Add one score to its run."""
    item, metric = score.item, score.metric
    case = parse_id(score.question if score.case is None else score.case)
    if case is None:
        raise item.error("no column names the case; call it 'case'", "case")
    if not isinstance(metric, str) or not metric.strip():
        raise item.error("this row names no metric; call its column 'metric'", "metric")
    metric, value = metric.strip(), None
    if score.value is not None:
        value = _parse_score(score.value)
        if value is None or not 0 <= value <= 1:
            problem = "not a number" if value is None else "not between 0 and 1; scale it"
            raise item.error(f"{shorten_repr(score.value)} is {problem}", metric)
    scores = runs.setdefault(str(score.run or ""), _RunScores())
    of_case = scores.of_case.setdefault(case, {})
    if metric in of_case:
        first = of_case[metric][1]
        raise item.error(
            f"the case '{case[:60]}' has a value of '{metric}' in {first.place}, too; keep one, or "
            "give each its own case, and both the same cluster",
            "case",
        )
    of_case[metric] = value, item
    scores.questions.setdefault(case, score.question or case)
    if score.cluster is not None:
        scores.clusters[case] = str(score.cluster)
    if score.judge:
        scores.judges.add(str(score.judge))
    is_low = re.sub(r"\W|_", "", metric).lower() in _LOW_METRICS
    if is_low or str(score.better or "").strip().lower() in _LOWER:
        low.add(metric)


def _as_run(scores: _RunScores, low: set[str]) -> Run:
    """A run whose verdicts are the scores; a case without one of a metric has one that failed."""
    metrics = list(dict.fromkeys(name for values in scores.of_case.values() for name in values))
    shared = any(count > 1 for count in Counter(scores.clusters.values()).values())
    cases = [
        Case(
            id=case,
            question=scores.questions[case],
            group=scores.clusters.get(case) if shared else None,
        )
        for case in scores.of_case
    ]
    judge = ", ".join(sorted(scores.judges))
    verdicts = []
    for case, values in scores.of_case.items():
        for metric in metrics:
            value = values[metric][0] if metric in values else None
            verdicts.append(
                Verdict(
                    case_id=case,
                    metric=metric,
                    status="failed" if value is None else "scored",
                    value=value,
                    reason=_ABSENT if value is None else None,
                    judge=judge,
                )
            )
    summary = {"cases": len(cases), "judge": judge, "lower_is_better": sorted(low & set(metrics))}
    return Run(
        manifest={"judge": judge},
        cases=cases,
        traces=(),
        verdicts=verdicts,
        links=(),
        summary=summary,
    )
