"""What a gate's metric is called: read from its name where it does not say, and what it can be."""

from __future__ import annotations

import re

__all__ = ["bare", "bounds", "cut_of", "readings"]

_AT = re.compile(r"(?:_at_|-at-|@)([0-9]+(?:[_.][0-9]+)?)$")
_CUT = re.compile(r"@([1-9][0-9]*)$")
_LEVELS = ("retrieval_", "generation_", "answer_")
_ROOMS = ("link", "coverage", "trust", "usage", "replay", "whatif", "repeats")
_GROUPS = ("causes", "retrieval", "answers", "adjusted", "wrong", "corrected", "table")
_OUTCOMES = ("link.causes.", "link.retrieval.", "link.answers.")
_BELOW_ZERO = frozenset({"kappa", "gwet_ac1", "risk_difference"})
_RATES = frozenset({"risk_given_miss", "risk_given_hit", "flaky"})
_COUNTS = ("usage.", "link.table.", "link.wrong.table.", "latency")  # seconds are none, but as free
_FREE = (0.0, float("inf"))


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
    ((0.0, 1.0), (-1.0, 1.0), (0.0, inf))
    >>> bounds("retrieval.recall@5"), bounds("slices.category.easy.metrics.mrr")
    ((0.0, 1.0), (0.0, 1.0))
    >>> bounds("coverage.faithfulness"), bounds("coverage.faithfulness.failed"), bounds("cases")
    ((0.0, 1.0), (0.0, inf), (0.0, inf))
    """
    metric = bare(readings(name)[-1])
    room, _, rest = metric.partition(".")
    last = rest.rpartition(".")[2]
    if last in _BELOW_ZERO:
        return -1.0, 1.0
    if last.endswith("attributable_fraction"):
        return float("-inf"), 1.0
    if metric.startswith(_COUNTS) or metric in {"cases", "k"} or last == "risk_ratio":
        return _FREE
    if room == "coverage":
        return _FREE if "." in rest else (0.0, 1.0)
    if room == "trust" or metric.startswith(_OUTCOMES) or last in _RATES:
        return 0.0, 1.0
    return None if "." in metric.partition("@")[0] else (0.0, 1.0)


def bare(metric: str) -> str:
    """A metric without the level, or the slice of the cases, that its path leads through.

    >>> bare("retrieval.recall@5"), bare("slices.category.easy.metrics.ndcg@5"), bare("rbp@0.8")
    ('recall@5', 'ndcg@5', 'rbp@0.8')
    """
    level, _, rest = metric.partition(".")
    if f"{level}_" in _LEVELS:
        return rest
    inner = metric.rpartition(".metrics.")[2]
    return metric if "." in inner.partition("@")[0] or "." in inner.partition("@")[2] else inner


def cut_of(metric: str) -> int | None:
    """How many passages a rank metric looks at; None where it looks at all of them.

    >>> cut_of("recall@5"), cut_of("mrr"), cut_of("rbp@0.8")
    (5, None, None)
    """
    found = _CUT.search(metric)
    return int(found[1]) if found else None
