"""Three stages in one table, and what follows from it in a sentence."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from retrievers import NAMES
from stages import CONTROL, JUDGED, PRIMARY, RANK

SIZE = 0.05  # of the p-values, which are corrected over the metrics of their stage
Stage = Mapping[str, Mapping[str, Any]]  # variant -> metric -> the comparison with control


def sides(stage: Stage, metric: str, names: tuple[str, str, str, str]) -> dict[str, Any]:
    """One metric of every retriever, and each one's difference from control.

    Parameters
    ----------
    stage : mapping
    metric : str
    names : tuple of str
        The keys under which a comparison has control's value, the variant's, the difference and
        its p-value.
    """
    of_control, of_variant, difference, p = names
    first = next(iter(stage.values()))[metric]
    return {
        "values": {CONTROL: first[of_control]}
        | {name: stage[name][metric][of_variant] for name in NAMES if name != CONTROL},
        "differences": {name: stage[name][metric][difference] for name in stage},
        "p": {name: stage[name][metric][p] for name in stage},
    }


def columns(rank: Stage, judged: Stage, split: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The table's columns: heading -> what `sides` gives."""
    offline = ("a", "b", "difference", "p_holm")
    on = {
        one["variant"]: {
            name: {**found, "difference": found["always_valid"]["difference"]}
            for name, found in one["metrics"].items()
        }
        | {guard["metric"]: {**guard, "p_holm": None} for guard in one["guardrails"]}
        for one in split["comparisons"]
    }
    online = ("control", "variant", "difference", "p_holm")
    return {
        f"rank: {RANK[0]}": sides(rank, RANK[0], offline),
        f"judge: {JUDGED[0]}": sides(judged, JUDGED[0], offline),
        f"live: {PRIMARY}": sides(on, PRIMARY, online),
        "live: seconds": sides(on, "latency", online),
    }


def table(found: Mapping[str, Mapping[str, Any]]) -> str:
    """The table as markdown: the retrievers, and beneath them their differences from control."""
    rows = [["", *found], ["---"] * (len(found) + 1)]
    rows += [[name, *(shown(one["values"][name]) for one in found.values())] for name in NAMES]
    rows += [
        [
            f"{name} minus {CONTROL}",
            *(
                shown(one["differences"][name], signed=True) + p_value(one["p"][name])
                for one in found.values()
            ),
        ]
        for name in NAMES
        if name != CONTROL
    ]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def shown(estimate: Mapping[str, Any], *, signed: bool = False) -> str:
    """An estimate with its interval and n, or why there is none.

    >>> shown({"value": 0.5, "low": 0.25, "high": 0.75, "n": 9})
    '0.50 [0.25, 0.75], n = 9'
    """
    if estimate["value"] is None:
        return f"none: {estimate['reason']}"
    sign = "+" if signed else ""
    text = f"{_rounded(estimate['value']):{sign}.2f}"
    if estimate["low"] is not None and estimate["high"] is not None:
        low, high = _rounded(estimate["low"]), _rounded(estimate["high"])
        text += f" [{low:{sign}.2f}, {high:{sign}.2f}]"
    elif estimate.get("reason"):
        text += f" (no interval: {estimate['reason']})"
    return f"{text}, n = {estimate['n']:,}"


def p_value(p: float | None) -> str:
    """A p-value as it stands behind a difference; nothing where there was no test."""
    if p is None:
        return ""
    return ", p < 0.001" if p < 0.001 else f", p = {p:.3f}"


def recommendation(found: Mapping[str, Mapping[str, Any]], verdict: Mapping[str, Any]) -> str:
    """What to do, and by which numbers; the users decide, and the stages before are told.

    Parameters
    ----------
    found : mapping
        As `columns` gives it.
    verdict : mapping
        That of ``misslink live report``: sample ratio, guardrails and all user metrics heeded.
    """
    rank, judged, done, _ = found.values()
    decision = verdict["decision"]
    if decision == "stop":
        return str(verdict["sentence"])
    told = verdict["variant"] if decision in ("ship", "keep") else None
    held = told if told not in (None, CONTROL) else _best(done, of=done["differences"])
    evidence = f"{held} against {CONTROL}: users are done {points(done['differences'][held])}"
    before = ", ".join(
        f"{what} {points(one['differences'][held])}"
        for what, one in ((RANK[0], rank), (f"judged {JUDGED[0]}", judged))
    )
    act = {"ship": f"Ship {told}", "keep": f"Keep {told}"}.get(decision, f"Keep {CONTROL} for now")
    stages = {"rank metrics": rank, "the judge": judged, "users": done}
    words = ", ".join(f"{who} put {_best(one)} first{_chance(one)}" for who, one in stages.items())
    return f"{act} ({evidence}; {before}); {words}."


def points(estimate: Mapping[str, Any]) -> str:
    """A difference of shares in points, with its interval.

    >>> points({"value": 0.051, "low": 0.02, "high": 0.08})
    '+5.1 points [+2.0, +8.0]'
    """
    if estimate["value"] is None:
        return f"not measured ({estimate['reason']})"
    text = f"{_rounded(100 * estimate['value']):+.1f} points"
    if estimate["low"] is None or estimate["high"] is None:
        return text
    return (
        f"{text} [{_rounded(100 * estimate['low']):+.1f}, {_rounded(100 * estimate['high']):+.1f}]"
    )


def _best(one: Mapping[str, Any], *, of: Mapping[str, Any] | None = None) -> str:
    """The retriever with the highest value, or all of those that share it."""
    known = {
        name: estimate["value"]
        for name, estimate in one["values"].items()
        if estimate["value"] is not None and (of is None or name in of)
    }
    if not known:
        return "nobody"
    top = max(known.values())
    best = [name for name, value in known.items() if math.isclose(value, top, abs_tol=1e-9)]
    return best[0] if of is not None else " and ".join(best)


def _chance(one: Mapping[str, Any]) -> str:
    """What to add where the best is not beyond chance better than control, or control than all."""
    best = _best(one)
    tested = one["p"].values() if best == CONTROL else [one["p"].get(best)]
    is_beyond = all(p is not None and p <= SIZE for p in tested)
    return "" if is_beyond else " (within chance)"


def _rounded(value: float) -> float:
    """Without the minus sign of a zero."""
    return round(value, 4) + 0.0
