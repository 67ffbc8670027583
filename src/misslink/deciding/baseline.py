"""What a run is held against: an earlier run, or the numbers alone of one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from misslink.deciding.documents import NotThere, number_at
from misslink.errors import InputError
from misslink.files import read_run
from misslink.files.jsonl import read_text
from misslink.stats import proportion
from misslink.types import Estimate, Run

__all__ = ["Baseline", "of_summary", "read_baseline", "read_whole", "settings"]

_LEVELS = ("retrieval", "generation", "answer")
_COUNTED = ("causes", "retrieval", "answers")  # of the link, each outcome with how many cases


@dataclass(frozen=True)
class Baseline:
    """An earlier run, or its summary alone.

    Parameters
    ----------
    path : Path
    run : Run or None
        None: only numbers are known, no cases.
    summary : mapping
    """

    path: Path
    run: Run | None
    summary: Mapping[str, Any]


def read_whole(folder: str | Path) -> Run:
    """Read a run folder of which nothing may be missing, since a decision rests on it.

    Raises
    ------
    InputError
        It is no run folder, is of a newer misslink, or holds fewer cases, traces, verdicts or
        links than it says it has.
    """
    run = read_run(folder)
    held = {
        "cases.jsonl": (len(run.cases), run.summary.get("cases")),
        "traces.jsonl": (len({trace.case_id for trace in run.traces}), len(run.cases)),
        "links.jsonl": (len({link.case_id for link in run.links}), len(run.cases)),
    }
    counted = run.summary.get("coverage")
    for metric, counts in counted.items() if isinstance(counted, dict) else ():
        numbers = counts.values() if isinstance(counts, dict) else ()
        said = sum(n for n in numbers if isinstance(n, int))
        there = sum(verdict.metric == metric for verdict in run.verdicts)
        if there != said:
            held["verdicts.jsonl"] = (there, said)
    for name, (there, should) in held.items():
        if isinstance(should, int) and there != should:
            raise InputError(
                f"this run folder is not whole ({name} has {there} entries where there should be "
                f"{should}); copy it again, or run  misslink evaluate  again",
                path=folder,
            )
    return run


def read_baseline(path: str | Path) -> Baseline:
    """Read a run folder, or the ``summary.json`` of one.

    Raises
    ------
    InputError
        It is neither, or cannot be read.
    """
    path = Path(path)
    if path.is_dir():
        run = read_whole(path)
        return Baseline(path, run, run.summary)
    text = read_text(path)
    try:
        summary = json.loads(text)
    except (ValueError, RecursionError):
        summary = None
    if not isinstance(summary, dict) or not all(
        isinstance(summary.get(level), dict) for level in (*_LEVELS, "link")
    ):
        raise InputError(
            "this is no baseline; name a run folder, or the summary.json of one", path=path
        )
    return Baseline(path, None, summary)


def of_summary(summary: Mapping[str, Any], name: str) -> Estimate:
    """Return the number that `misslink.deciding.value_of` calls `name`, from a summary alone.

    Raises
    ------
    NotThere
        The summary does not hold it.
    """
    cases = summary.get("cases")
    n = cases if isinstance(cases, int) and not isinstance(cases, bool) and cases >= 0 else 0
    for level in _LEVELS:
        if name in summary[level]:
            return number_at(summary[level], name, n=n)
    room, _, rest = name.partition(".")
    group, _, outcome = rest.partition(".")
    if room == "link" and group in _COUNTED and outcome:
        counts = _counts(summary["link"].get(group))
        return _share(counts.get(outcome, 0), sum(counts.values()), name)
    if room == "coverage":
        coverage = summary.get("coverage")
        counts = _counts(coverage.get(rest) if isinstance(coverage, dict) else None)
        return _share(
            counts.get("scored", 0), counts.get("scored", 0) + counts.get("failed", 0), name
        )
    return number_at(summary, name, n=n)


def settings(run: Mapping[str, Any], baseline: Mapping[str, Any]) -> list[str]:
    """In words, which settings two summaries do not share."""
    return [
        f"{name.capitalize()} was {_short(baseline.get(name))} in the baseline and is "
        f"{_short(run.get(name))} now."
        for name in ("judge", "k")
        if baseline.get(name) != run.get(name)
    ]


def _short(value: Any) -> str:
    return "not given" if value is None else str(value)[:80]


def _counts(found: Any) -> dict[str, int]:
    if not isinstance(found, dict):
        raise NotThere
    return {
        name: count
        for name, count in found.items()
        if isinstance(count, int) and not isinstance(count, bool) and count >= 0
    }


def _share(part: int, of: int, name: str) -> Estimate:
    return proportion(part, of) if of else Estimate.missing(f"nothing was counted for {name}")
