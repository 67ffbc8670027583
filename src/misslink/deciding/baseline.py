"""What a run is held against: an earlier run, or the numbers alone of one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from misslink.deciding.documents import NotThere, number_at
from misslink.deciding.numbers import UNKNOWN
from misslink.errors import InputError
from misslink.files import read_whole
from misslink.files.addresses import shown, url_of
from misslink.files.jsonl import read_text
from misslink.manifest import shown_path
from misslink.stats import proportion
from misslink.types import Estimate, Run

__all__ = ["Baseline", "of_summary", "read_baseline", "refuse_itself", "settings", "sizes"]

_LEVELS = ("retrieval", "generation", "answer")
_COUNTED = ("causes", "retrieval", "answers")  # of the link, each outcome with how many cases
_SUMMARY = "summary.json"


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


def read_baseline(path: str | Path) -> Baseline:
    """Read a run folder, or the ``summary.json`` of one.

    Raises
    ------
    InputError
        It is neither, or cannot be read.
    """
    path = Path(path)
    if path.is_dir() or url_of(path):
        run = read_whole(path, anywhere=True)
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
        if outcome not in UNKNOWN:
            counts = {name: count for name, count in counts.items() if name not in UNKNOWN}
        return _share(counts.get(outcome, 0), sum(counts.values()), name)
    if room == "coverage" and "." not in rest:
        coverage = summary.get("coverage")
        counts = _counts(coverage.get(rest) if isinstance(coverage, dict) else None)
        return _share(
            counts.get("scored", 0), counts.get("scored", 0) + counts.get("failed", 0), name
        )
    return number_at(summary, name, n=n)


def refuse_itself(run: Run, folder: str | Path | None, baseline: Baseline) -> None:
    """Refuse a baseline that is the run: nothing ever got worse than itself.

    Raises
    ------
    InputError
        It is the run's own folder, its own summary.json, or a copy of the run.
    """
    own = set() if folder is None else {Path(folder).resolve(), (Path(folder) / _SUMMARY).resolve()}
    if baseline.path.resolve() in own or (baseline.run is not None and baseline.run == run):
        raise InputError(
            "the baseline is the run itself, and so nothing could have got worse; name an earlier "
            "run",
            path=shown_path(shown(baseline.path)),
        )


def sizes(cases: int, baseline: Mapping[str, Any]) -> list[str]:
    """In words, that a summary is of another number of cases than the run; else nothing."""
    before = baseline.get("cases")
    if before == cases:
        return []
    said = f"{before:,}" if isinstance(before, int) else "a number of questions it does not tell"
    return [f"The baseline is of other cases: of {said}, and the run of {cases:,}."]


def settings(run: Mapping[str, Any], baseline: Mapping[str, Any]) -> list[str]:
    """In words, which settings two summaries do not share."""
    return [
        f"{name} was {_short(baseline.get(name))} in the baseline and is "
        f"{_short(run.get(name))} now."
        for name in ("judge", "k")
        if baseline.get(name) != run.get(name)
    ]


def _short(value: Any) -> str:
    return "not given" if value is None else str(value)[:80]


def _counts(found: Any) -> dict[str, int]:
    if not isinstance(found, dict) or any(
        not isinstance(count, int) or isinstance(count, bool) or count < 0
        for count in found.values()
    ):
        raise NotThere
    return found


def _share(part: int, of: int, name: str) -> Estimate:
    return proportion(part, of) if of else Estimate.missing(f"nothing was counted for {name}")
