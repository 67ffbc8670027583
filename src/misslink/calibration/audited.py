"""What an audit of the judge adds to its calibration: only where it is of the same judge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from misslink.calibration.judged import Verdicts
from misslink.files.numbers import finite

__all__ = ["audit_findings", "audit_numbers", "audit_of"]

_KEPT = ("judge", "created", "seed", "cases", "run")
_ORDERS = ("passage_order", "passage_shuffle")


def audit_of(audit: Mapping[str, Any] | None, verdicts: Verdicts) -> dict[str, Any]:
    """Return what a calibration keeps of an audit, under the keys of its document.

    Parameters
    ----------
    audit : mapping or None
        As a run's ``audit.json`` has it. None: there was none, and nothing is kept.
    verdicts : Verdicts
        That are calibrated.

    Returns
    -------
    dict
        ``audit``: when it was made and on how many cases, and its ``changes``, those of the
        calibrated metric by name, with ``answer_order`` where answers were compared. Where it is of
        another judge or of other prompts, or does not say anything of the metric, None, and
        ``audit_reason`` says so.
    """
    if audit is None:
        return {}
    why_not = _why_not(audit, verdicts)
    changes = _mapping(_mapping(audit.get("metrics")).get(verdicts.metric))
    if why_not is None and not changes:
        why_not = f"it says nothing of {verdicts.metric}"
    if why_not is not None:
        return {"audit": None, "audit_reason": why_not}
    compared = {**changes, **_mapping(audit.get("preferences"))}
    entries = {name: dict(entry) for name, entry in compared.items() if isinstance(entry, Mapping)}
    return {"audit": {name: audit.get(name) for name in _KEPT} | {"changes": entries}}


def audit_numbers(document: Mapping[str, Any]) -> dict[str, float | None]:
    """The numbers of the audit that advice goes by, by the rules' names.

    Each is the low end of the interval of the share of verdicts that flip, so that it stands
    against the judge only as far as it is beyond doubt. Where padding may rightly lower a verdict,
    those that turn good count alone.

    Parameters
    ----------
    document : mapping
        The calibration, with what `audit_of` returned. Without an audit all are None.
    """
    changes = _mapping(_mapping(document.get("audit")).get("changes"))
    padding = _mapping(changes.get("padding"))
    counted = "to_good" if padding.get("may_lower") else "flipped"
    orders = [_low(_mapping(changes.get(name)), "flipped") for name in _ORDERS]
    return {
        "padding_flips_low": _low(padding, counted),
        "order_flips_low": max((low for low in orders if low is not None), default=None),
        "again_flips_low": _low(_mapping(changes.get("again")), "flipped"),
    }


def audit_findings(document: Mapping[str, Any]) -> list[str]:
    """What the audit found beyond chance, one sentence each.

    Parameters
    ----------
    document : mapping
        As of `audit_numbers`.
    """
    changes = _mapping(_mapping(document.get("audit")).get("changes"))
    found = (_mapping(entry).get("finding") for entry in changes.values())
    return [finding for finding in found if isinstance(finding, str) and finding]


def _why_not(audit: Mapping[str, Any], verdicts: Verdicts) -> str | None:
    """What tells the audited judge from the one that is calibrated; None: nothing known."""
    judge = audit.get("judge")
    if not verdicts.judge or judge != verdicts.judge:
        return f"it is of {judge}, the verdicts of {verdicts.judge or 'no certain judge'}"
    asked = _mapping(audit.get("prompts"))
    for name, digest in verdicts.prompts.items():
        if name in asked and asked[name] != digest:
            return f"the prompt '{name}' was another one"
    before, now = dict(verdicts.identity), _mapping(audit.get("judge_identity"))
    if before and now:
        for name in sorted({*before, *now}):
            if before.get(name) != now.get(name):
                return f"{name.removeprefix('judge_identity.')} of the judge was another one"
    return None


def _low(entry: Mapping[str, Any], name: str) -> float | None:
    return finite(_mapping(entry.get(name)).get("low"))


def _mapping(found: Any) -> Mapping[str, Any]:
    """A part of a document that is read from a file: empty where it is none."""
    return found if isinstance(found, Mapping) else {}
