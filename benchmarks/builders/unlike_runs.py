"""Runs of other questions, labels or judges, and labels of other answers; parts of robustness.py.

What a gate decides and what a calibration counts is compared with a few lines that count it anew.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from gated_run import gated_run, write
from labelled_runs import put, run_of
from misslink.io.manifest import answer_hash

Run = Callable[..., tuple[int, str, str]]  # a command: exit code, stdout and stderr
_SHARED, _MARGIN = 40, 0.05
_GATES = "gates: [{{metric: recall@1, regression_max: {0}}}, {{metric: fully_faithful, regression_max: {0}}}]"


def find_wrong_gates(folder: Path, rounds: int, run: Run) -> Iterator[str | None]:
    """Gate a run against an unlike baseline; yield what was decided wrongly, or None."""
    folder.mkdir(parents=True)
    criteria = folder / "criteria.yaml"
    criteria.write_text(_GATES.format(_MARGIN), encoding="utf-8")
    draw = random.Random(rounds)  # noqa: S311 (no secret)
    for number in range(rounds):
        more = draw.choice((0, 10, 60))
        found, faithful = (
            [_marks(draw, _SHARED, draw.uniform(0.5, 1)) for _ in range(2)] for _ in range(2)
        )
        new = _marks(draw, more, draw.choice((0.05, 1.0)))
        ids = [f"c{at}" if at < _SHARED else f"new{at}" for at in range(_SHARED + more)]
        today = gated_run(found[1] + new, faithful[1] + new, ids=ids)
        other_labels = {f"c{at}" for at in range(_SHARED) if draw.random() < draw.choice((0, 0.5))}
        judge = draw.choice(("heuristic", "heuristic", "openai:other"))
        before = gated_run(found[0], faithful[0], manifest={"judge": judge})
        cases = (
            case.model_copy(update={"relevant": {"noise": 1}}) if case.id in other_labels else case
            for case in before.cases
        )
        before = before.model_copy(update={"cases": tuple(cases)})
        paths = [folder / f"{number}-{name}" for name in ("today", "main")]
        for path, each in zip(paths, (today, before), strict=True):
            write(path, each)
        code, out, err = run(
            "gate", paths[0], "--criteria", criteria, "--baseline", paths[1], "--json"
        )
        if code < 0:
            yield f"traceback: {err}"
            continue
        passed = [gate["passed"] for gate in json.loads(out)["gates"]]
        expected = [_drop(found) <= _MARGIN + 1e-9, _drop(faithful) <= _MARGIN + 1e-9]
        expected[1] = expected[1] and judge == "heuristic"
        yield None if passed == expected else f"{passed}, not {expected}: {out}"


def find_wrong_calibrations(folder: Path, rounds: int, run: Run) -> Iterator[str | None]:
    """Calibrate with labels of which some are of other answers; yield what was counted wrongly."""
    draw = random.Random(rounds)  # noqa: S311 (no secret)
    for number in range(rounds):
        size = draw.randrange(12, 40)
        scores = [draw.choice((0.1, 0.9)) for _ in range(size)]
        of_run = run_of(scores)
        path = put(folder / str(number), of_run)
        share, own, rows = draw.choice((0.0, 0.3, 1.0)), 0, list[dict[str, Any]]()
        for trace in of_run.traces:
            is_other = draw.random() < share
            own += not is_other
            answer = f"{trace.answer} An earlier one." if is_other else str(trace.answer)
            label = {"case_id": trace.case_id, "metric": "faithfulness", "annotator": "ada"}
            rows.append({**label, "label": draw.randrange(2), "answer_hash": answer_hash(answer)})
        labels = folder / f"{number}.jsonl"
        labels.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        code, out, err = run("calibrate", path, "--labels", labels, "--json")
        if code < 0:
            yield f"traceback: {err}"
        elif not own:
            yield None if code == 2 else f"{size} labels of other answers: exit code {code}"
        else:
            counted = json.loads(out)["n"] if code == 0 else None
            yield None if counted == own else f"{counted} of {own} labels: {err}"


def _marks(draw: random.Random, size: int, share: float) -> str:
    return "".join("1" if draw.random() < share else "0" for _ in range(size))


def _drop(pair: list[str]) -> float:
    """How far the share of 1 fell over the shared questions."""
    before, now = (marks[:_SHARED].count("1") / _SHARED for marks in pair)
    return before - now
