"""What a gate's metric is called: read from its name where it does not say, and what it can be."""

from __future__ import annotations

import re

__all__ = ["bounds", "readings"]

_AT = re.compile(r"(?:_at_|-at-|@)([0-9]+(?:[_.][0-9]+)?)$")
_LEVELS = ("retrieval_", "generation_", "answer_")
_ROOMS = ("link", "coverage", "trust", "usage", "replay", "whatif", "repeats")
_GROUPS = ("causes", "retrieval", "answers", "adjusted", "wrong", "corrected", "table")
_SHARES = ("coverage.", "link.causes.", "link.retrieval.", "link.answers.", "link.risk_given_")
_SIGNED = ("risk_difference", "attributable_fraction")


def readings(name: str) -> list[str]:
    """The metrics that the name of a gate may mean, the likeliest first.

    Examples
    --------
    >>> readings("retrieval_recall_at_5")[-1]
    'recall@5'
    >>> readings("link_attributable_fraction")[-1]
    'link.attributable_fraction'
    >>> readings("link_causes_retrieval_miss")[-1]
    'link.causes.retrieval_miss'
    """
    asked = name.strip()
    cut = _AT.sub(lambda at: "@" + at.group(1).replace("_", "."), asked)
    found = [asked, cut]
    found += [cut.removeprefix(level) for level in _LEVELS if cut.startswith(level)]
    found += [each.replace("r_precision", "r-precision") for each in found]
    room, _, rest = asked.partition("_")
    if room in _ROOMS and rest:
        found.append(f"{room}.{rest}")
        group, _, last = rest.partition("_")
        if group in _GROUPS and last:
            found.append(f"{room}.{group}.{last}")
    return list(dict.fromkeys(found))


def bounds(name: str) -> tuple[float, float] | None:
    """What the values of a metric lie between; None where its name does not say so.

    Examples
    --------
    >>> bounds("recall@5"), bounds("link_risk_difference"), bounds("usage.calls")
    ((0.0, 1.0), (-1.0, 1.0), None)
    """
    metric = readings(name)[-1]
    if metric.startswith("trust.") or metric.endswith(_SIGNED[0]):
        return -1.0, 1.0
    if metric.endswith(_SIGNED[1]):
        return float("-inf"), 1.0
    if metric.startswith(_SHARES):
        return 0.0, 1.0
    return None if "." in metric.partition("@")[0] or metric.startswith("latency") else (0.0, 1.0)
