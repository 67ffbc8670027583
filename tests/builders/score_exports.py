"""Files of scores, in the shapes that tools export: the same scores in each."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

Scores = dict[str, dict[str, float]]  # metric to question to value
METRICS = ("answer_relevancy", "faithfulness")
BEFORE: Scores = {
    "answer_relevancy": {f"What is fare {n}?": (n % 4) / 4 for n in range(12)},
    "faithfulness": {f"What is fare {n}?": float(n % 3 == 0) for n in range(12)},
}
AFTER: Scores = {
    "answer_relevancy": {f"What is fare {n}?": (n % 4) / 4 + 0.25 for n in range(12)},
    "faithfulness": {f"What is fare {n}?": float(n % 3 != 1) for n in range(12)},
}


def _questions(scores: Scores) -> list[str]:
    return list(scores[METRICS[0]])


def _long(scores: Scores) -> list[dict]:
    return [
        {"case": case, "metric": metric, "value": value}
        for metric, values in scores.items()
        for case, value in values.items()
    ]


def _wide(scores: Scores, **more: str) -> list[dict]:
    """As `EvaluationResult.to_pandas` of ragas; a number that is no score is in no column of it."""
    return [
        {
            "user_input": question,
            "retrieved_contexts": "['The fare is 12.']",
            "response": "It is 12.",
            "reference": "12",
            **more,
            **{metric: values[question] for metric, values in scores.items()},
        }
        for question in _questions(scores)
    ]


def _write_csv(rows: list[dict], path: Path) -> None:
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)


def _long_csv(scores: Scores, path: Path) -> None:
    _write_csv(_long(scores), path)


def _ragas(scores: Scores, path: Path) -> None:
    _write_csv(_wide(scores), path)


def _parquet(scores: Scores, path: Path) -> None:
    pq.write_table(pa.Table.from_pylist(_long(scores)), path)


def _deepeval(scores: Scores, path: Path) -> None:
    """As the file of a test run, which has a place for a name and camel case."""
    cases = [
        {
            "name": f"test_case_{place}",
            "input": question,
            "actualOutput": "It is 12.",
            "retrievalContext": ["The fare is 12."],
            "success": True,
            "metricsData": [
                {
                    "name": metric,
                    "threshold": 0.5,
                    "success": values[question] >= 0.5,
                    "score": values[question],
                    "reason": "As the passage says.",
                    "strictMode": False,
                    "evaluationModel": "gpt-4.1",
                    "evaluationCost": 0.001,
                }
                for metric, values in scores.items()
            ],
            "runDuration": 1.5,
            "order": place,
        }
        for place, question in enumerate(_questions(scores))
    ]
    run = {"testCases": cases, "conversationalTestCases": [], "testPassed": 12, "runDuration": 9.1}
    path.write_text(json.dumps(run, indent=2))


def _inspect(scores: Scores, path: Path) -> None:
    """As a log in JSON, where a match is C or I."""
    letters = {1.0: "C", 0.0: "I", 0.5: "P"}
    samples = [
        {
            "id": question,
            "epoch": 1,
            "input": question,
            "target": "12",
            "scores": {
                metric: {"value": letters.get(values[question], values[question]), "answer": "12"}
                for metric, values in scores.items()
            },
        }
        for question in _questions(scores)
    ]
    log = {
        "version": 2,
        "status": "success",
        "eval": {"task": "fares", "model": "mockllm/model"},
        "results": {"total_samples": 12, "scores": [{"name": "faithfulness", "metrics": {}}]},
        "samples": samples,
    }
    path.write_text(json.dumps(log, indent=2))


def promptfoo(runs: dict[str, Scores], path: Path) -> None:
    """As ``promptfoo eval -o results.json``: every provider in one file."""
    results = [
        {
            "id": f"{provider}-{place}",
            "promptIdx": index,
            "testIdx": place,
            "testCase": {"vars": {"question": question}, "assert": []},
            "vars": {"question": question},
            "provider": {"id": f"file://{provider}.py", "label": provider},
            "prompt": {"raw": question, "label": "{{question}}"},
            "response": {"output": "It is 12."},
            "success": True,
            "score": 1,
            "latencyMs": 12,
            "gradingResult": {"pass": True, "score": 1, "reason": "All assertions passed"},
            "namedScores": {metric: values[question] for metric, values in scores.items()},
        }
        for index, (provider, scores) in enumerate(runs.items())
        for place, question in enumerate(_questions(scores))
    ]
    inner = {"version": 3, "prompts": [], "results": results, "stats": {"successes": 24}}
    path.write_text(json.dumps({"evalId": "eval-1", "results": inner, "config": {}}, indent=2))


def _promptfoo(scores: Scores, path: Path) -> None:
    promptfoo({"app": scores}, path)


def _openevals(scores: Scores, path: Path) -> None:
    """One line for each `EvaluatorResult`, beside the inputs; a share of 1 is true."""
    lines = [
        {
            "inputs": question,
            "key": metric,
            "score": values[question] == 1 if values[question] in (0, 1) else values[question],
            "comment": "As the passage says.",
        }
        for metric, values in scores.items()
        for question in _questions(scores)
    ]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def _langsmith(scores: Scores, path: Path) -> None:
    """As the frame of an experiment, whose runs have other ids each time."""
    rows = [
        {
            "id": f"{path.stem}-{place}",
            "example_id": question,
            "inputs.question": question,
            "execution_time": 1.5 + place,
            **{f"feedback.{metric}": values[question] for metric, values in scores.items()},
        }
        for place, question in enumerate(_questions(scores))
    ]
    _write_csv(rows, path)


FORMATS: dict[str, tuple[str, Callable[[Scores, Path], None]]] = {  # ending and writer
    "csv": ("csv", _long_csv),
    "parquet": ("parquet", _parquet),
    "ragas": ("csv", _ragas),
    "deepeval": ("json", _deepeval),
    "inspect": ("json", _inspect),
    "promptfoo": ("json", _promptfoo),
    "openevals": ("jsonl", _openevals),
    "langsmith": ("csv", _langsmith),
}


def write_scores(form: str, folder: Path) -> tuple[Path, Path]:
    """Write the scores before and after a change."""
    ending, write = FORMATS[form]
    paths = folder / f"before.{ending}", folder / f"after.{ending}"
    for scores, path in zip((BEFORE, AFTER), paths, strict=True):
        write(scores, path)
    return paths
