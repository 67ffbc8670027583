"""A rank metric is a value: its printed name is its key, its column and its command-line syntax."""

from __future__ import annotations

import re
from typing import Protocol

from misslink.errors import InputError, did_you_mean
from misslink.registry import rank_metrics
from misslink.retrieval.hits import Floats, Hits

__all__ = ["RankMetric", "parse"]

_CUT_OFF = re.compile(r"[1-9][0-9]{0,8}")


class RankMetric(Protocol):
    """What is registered in ``misslink.registry.rank_metrics``, under 'NAME' or 'NAME@{k}'.

    The registered thing is called with k, or with nothing under a name without ``{k}``; ``str``
    of what it makes is the name that was parsed.
    """

    def of(self, hits: Hits) -> Floats:
        """Value of each row, in [0, 1]."""
        ...


def parse(name: str) -> RankMetric:
    """The metric that a name means.

    Parameters
    ----------
    name : str
        Such as ``recall@5`` or ``mrr``.

    Returns
    -------
    RankMetric
        Its ``str`` is the name.

    Raises
    ------
    InputError
        No metric has this name, or its cut-off is missing, not wanted or no whole number from 1.

    Examples
    --------
    >>> str(parse("recall@5")), parse("recall@5") == parse("recall@5")
    ('recall@5', True)
    """
    asked = name.strip()
    base, at, cut_off = asked.partition("@")
    known = rank_metrics.names()
    with_k = f"{base}@{{k}}"
    metric: RankMetric
    if not at and base in known:
        metric = rank_metrics.get(base)()
        return metric
    if at and with_k in known:
        if not _CUT_OFF.fullmatch(cut_off):
            raise InputError(
                f"rank metric '{asked}': k counts from 1 and has at most 9 digits; "
                f"write for example {base}@5"
            )
        metric = rank_metrics.get(with_k)(int(cut_off))
        return metric
    if not at and with_k in known:
        raise InputError(f"rank metric '{asked}' needs a cut-off: write for example {base}@5")
    if at and base in known:
        raise InputError(f"rank metric '{asked}' takes no cut-off: write {base}")
    readable = [entry.replace("{k}", "k") for entry in known]

    def written(near: str) -> str:
        takes_k = f"{near}@{{k}}" in known and (at or near not in known)
        return f"{near}@{cut_off if _CUT_OFF.fullmatch(cut_off) else 5}" if takes_k else near

    bases = sorted({entry.partition("@")[0] for entry in known})
    hint = did_you_mean(base.lower(), bases, written=written)
    listed = f"{hint} Known" if hint else "known"
    raise InputError(f"unknown rank metric '{asked}'; {listed}: {', '.join(readable)}")
