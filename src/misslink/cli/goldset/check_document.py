"""What  misslink goldset check  found, as one document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from misslink.files.goldset import GoldSet
    from misslink.goldset.checking import Finding, Grounds

__all__ = ["document_of"]

# What each check needs, any one of it, and the options that give it.
_NEEDS = {
    "unreachable": (("corpus",), "--corpus"),
    "evidence": (("corpus",), "--corpus"),
    "stale": (("before", "baseline"), "--before or --baseline"),
    "changed": (("before",), "--before"),
    "balance": (("log",), "--logs"),
    "unjudged": (("run",), "--run"),
    "power": (("demands",), "--criteria"),
}
_CHECKS = ("duplicates", "leakage", *_NEEDS)


def document_of(
    gold: GoldSet, grounds: Grounds, found: Sequence[Finding], left_out: Mapping[str, str]
) -> dict[str, Any]:
    """The document that is printed with --json, the findings the gravest first."""
    from misslink.goldset.checking import SEVERITIES, power_of

    not_checked = {
        name: f"no {option} was given"
        for name, (needed, option) in _NEEDS.items()
        if not (any(getattr(grounds, one) for one in needed) or (name == "power" and left_out))
    }
    return {
        "goldset": gold.name,
        "cases": len(gold.cases),
        "by": "words" if grounds.vectors is None else grounds.vectors.model,
        "counts": {name: sum(one.severity == name for one in found) for name in SEVERITIES},
        "checked": [name for name in _CHECKS if name not in not_checked],
        "not_checked": not_checked,
        "findings": [
            {
                "severity": one.severity,
                "check": one.check,
                "message": one.message,
                "way_out": one.way_out,
                "cases": list(one.cases),
                "lines": list(one.lines(gold)),
                "numbers": dict(one.numbers),
                "proposals": [asdict(proposal) for proposal in one.proposals],
            }
            for one in found
        ],
        "power": [
            asdict(one) for demand in grounds.demands for one in power_of(demand, grounds.effect)
        ],
        "gates_left_out": dict(left_out),
    }
