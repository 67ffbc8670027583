"""Verdicts from a file of their own: what a run has, or three fields that anybody can write."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from misslink.calibration.judged import SUPPORTED, Judged, Verdicts, no_metric
from misslink.errors import InputError
from misslink.files.labels import as_id
from misslink.files.rows import read_rows
from misslink.text import fold

__all__ = ["read_verdicts"]

_OUTSIDE = "its {} of {} is not between 0 and 1"
_TRUTHS = {"true": True, "false": False, "1": True, "0": False}


def read_verdicts(source: str | Path | Iterable[Mapping[str, Any]] | Any, metric: str) -> Verdicts:
    """Read verdicts from a file: those of a run folder, or any with three fields.

    Parameters
    ----------
    source : path, pandas frame, or iterable of mappings
        ``case_id, metric, value`` and where there is one ``probability``; ``status,
        label, reason, claims, judge, prompt`` as a run has them; ``answer``, ``passages`` (how
        many), ``category``, ``model``, ``evidence_position`` and ``tags`` for the bias audit,
        and ``group``, else ``question``, which answers to the same question share.
        Others are passed over.
    metric : str

    Raises
    ------
    InputError
        The file cannot be read, lacks a field or the metric, or a case stands twice.
    """
    name = str(source) if isinstance(source, str | Path) else "verdicts"
    found: dict[str, Judged] = {}
    lines: dict[str, int | None] = {}
    cases: set[str] = set()
    metrics: set[str] = set()
    for line, row in read_rows(source, name):
        for needed in ("case_id", "metric"):
            if needed not in row:
                raise InputError("this field is required", path=name, line=line, field=needed)
        case_id = as_id(row["case_id"])
        if case_id is None:
            raise InputError("an id is text", path=name, line=line, field="case_id")
        cases.add(case_id)
        metrics.add(str(row["metric"]).strip())
        if str(row["metric"]).strip() != metric:
            continue
        if case_id in found:
            first = "" if lines[case_id] is None else f" (first on line {lines[case_id]})"
            raise InputError(
                f"the case '{case_id}' has two verdicts of {metric}{first}; keep one",
                path=name,
                line=line,
                field="case_id",
            )
        found[case_id], lines[case_id] = _of_row(case_id, row), line
    if not found:
        raise no_metric(metric, metrics, name)
    judges = {one.judge for one in found.values() if one.judge}
    judge = judges.pop() if len(judges) == 1 else None
    return Verdicts(found, metric, name, frozenset(cases), judge)


def _of_row(case_id: str, row: Mapping[str, Any]) -> Judged:
    """One line; a number that cannot be believed makes its verdict a failed one."""
    status, reason = str(row.get("status", "scored")), _text(row.get("reason"))
    numbers: dict[str, float | None] = {}
    for name in ("value", "probability"):
        numbers[name], problem = _share(name, row.get(name))
        if problem:
            status, reason = "failed", problem
    if status == "scored" and all(number is None for number in numbers.values()):
        status, reason = "failed", reason or "it has no value"
    if status != "scored":
        numbers = dict.fromkeys(numbers)
    claims = [claim for claim in _list(row.get("claims")) if isinstance(claim, Mapping)]
    answer = _text(row.get("answer"))
    said = (
        answer if answer is not None else " ".join(str(claim.get("text", "")) for claim in claims)
    )
    prompt = row.get("prompt")
    known = isinstance(prompt, Mapping) and prompt.get("name") and prompt.get("sha256")
    return Judged(
        case_id=case_id,
        **numbers,
        label=_truth(row.get("label")),
        status=status,
        reason=reason,
        claims=tuple(_of_claim(claim) for claim in claims),
        judge=_text(row.get("judge")),
        prompt=(str(prompt["name"]), str(prompt["sha256"])) if known and prompt else None,
        length=len(said) if said else None,
        about=_told(row),
        group=_group(row),
    )


def _share(name: str, given: object) -> tuple[float | None, str | None]:
    if given is None:
        return None, None
    try:
        number = float(given)  # type: ignore[arg-type]  # what is no number says so
    except (TypeError, ValueError, OverflowError):
        return None, f"its {name} is no number"
    if not 0 <= number <= 1:
        return None, _OUTSIDE.format(name, f"{number:.4g}")
    return number, None


def _of_claim(claim: Mapping[str, Any]) -> float | None:
    number, problem = _share("probability", claim.get("probability"))
    if number is None and not problem:
        return SUPPORTED.get(str(claim.get("support")))
    return number


def _group(row: Mapping[str, Any]) -> str | None:
    """What answers to the same question share: what the file says, else the question."""
    given = row.get("group")
    if given is not None and (told := as_id(given)) is not None:
        return f"group {told}"
    question = _text(row.get("question"))
    return fold(question) or None if question else None


def _told(row: Mapping[str, Any]) -> dict[str, float | str]:
    """The same as a file tells it."""
    found: dict[str, float | str] = {}
    passages = row.get("passages")
    for name, given in (
        ("passages", len(passages) if isinstance(passages, Mapping | list) else passages),
        ("evidence_position", row.get("evidence_position")),
    ):
        number = _count(given)
        if number is not None:
            found[name] = number
    for name in ("category", "model"):
        word = _text(row.get(name))
        if word:
            found[name] = word
    tags = row.get("tags")
    if isinstance(tags, Mapping):
        found |= {f"tag {tag}": str(word) for tag, word in tags.items()}
    return found


def _count(given: object) -> float | None:
    try:
        number = float(given)  # type: ignore[arg-type]  # what is no number is passed over
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _truth(given: object) -> bool | None:
    return given if isinstance(given, bool) else _TRUTHS.get(str(given).strip().casefold())


def _text(given: object) -> str | None:
    return given if isinstance(given, str) and given else None


def _list(given: object) -> Sequence[Any]:
    return given if isinstance(given, list) else ()
