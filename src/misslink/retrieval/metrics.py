"""A rank metric is a value: its printed name is its key, its column and its command-line syntax."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from misslink.errors import InputError, MisslinkError, did_you_mean
from misslink.registry import rank_metrics
from misslink.retrieval.hits import Floats, Hits

__all__ = ["RankMetric", "parse", "spelled", "told_by_name", "values", "without_relevant"]

# After the @, by what stands between the braces: what is accepted, an example, and the rule.
_AFTER = {
    "k": (re.compile(r"[1-9][0-9]{0,8}"), "5", "k counts from 1 and has at most 9 digits"),
    "p": (
        re.compile(r"0\.[0-9]{0,3}[1-9]"),
        "0.8",
        "p lies between 0 and 1, has at most 4 decimal places and does not end in 0",
    ),
}


# What trec_eval, ir-measures and ranx call them.
_ELSEWHERE = {
    "p": "precision",
    "r": "recall",
    "success": "hit",
    "hit_rate": "hit",
    "hits": "hit",
    "ndcg_cut": "ndcg",
    "map_cut": "map",
    "ap": "map",
    "recip_rank": "mrr",
    "rr": "mrr",
    "rprec": "r-precision",
    "r_precision": "r-precision",
    "judged_cut": "judged",
}
_CUT = re.compile(r"(.+?)[_@.]([1-9][0-9]{0,8})")


class RankMetric(Protocol):
    """What is registered in ``misslink.registry.rank_metrics``, under 'NAME' or 'NAME@{k}'.

    The registered thing is called with k, with p as a float under 'NAME@{p}', or with nothing
    under a name without braces; ``str`` of what it makes is the name that was parsed. A metric
    with a cut-off keeps it as ``k``: `misslink.retrieval.bounds` looks no deeper.

    Three facts are told by class attributes where they hold, and are False where nothing is said:
    ``without_relevant``, a query without relevant passages has a value too; ``about_judgements``,
    it tells how much was judged, not how good the ranking is; ``rises``, it never falls when one
    more of the passages that it reads is called relevant. ``better = "low"`` says that less is
    better.

    One with a cut-off may also have ``at_cutoffs(hits, ks)``: values of shape (cut-offs, rows), to
    the last bit those that each cut-off has by itself. Then a curve over all of them takes one
    pass; see `misslink.retrieval.recall`. ``hits.sums`` takes one cut-off or many.
    """

    def of(self, hits: Hits) -> Floats:
        """Value of each row, in [0, 1]; NaN where it has none.

        Whatever it gives a row that needs nothing is dropped, unless ``without_relevant``.
        """
        ...


def without_relevant(metric: RankMetric) -> bool:
    """Whether a query without relevant passages has a value."""
    return bool(getattr(metric, "without_relevant", False))


def values(metric: RankMetric, hits: Hits) -> list[float | None]:
    """Value of each case, of alternatives the best; None where it has none."""
    return hits.best(metric.of(hits), without_relevant=without_relevant(metric))


def parse(name: str) -> RankMetric:
    """The metric that a name means.

    Parameters
    ----------
    name : str
        Such as ``recall@5``, ``rbp@0.8`` or ``mrr``.

    Returns
    -------
    RankMetric
        Its ``str`` is the name.

    Raises
    ------
    InputError
        No metric has this name, or what follows the @ is missing, not wanted or not as it should
        be: a whole number from 1, or for ``rbp`` a fraction; or a metric of another package
        cannot be made, or calls itself something else.

    Examples
    --------
    >>> str(parse("recall@5")), parse("recall@5") == parse("recall@5")
    ('recall@5', True)
    """
    if not isinstance(name, str):
        raise InputError(f"{name!r} is no rank metric; write a name such as ndcg@10")
    asked = name.strip()
    several = asked.split()
    if len(several) > 1 and all(any(map(str.isalpha, part)) for part in several):
        raise InputError(f"'{asked}' are several names; separate by commas: {','.join(several)}")
    base, at, given = asked.partition("@")
    known = rank_metrics.names()
    if not at and base in known:
        return _made(base, asked)
    kind = next((each for each in _AFTER if f"{base}@{{{each}}}" in known), None)
    if kind is None:
        if at and base in known:
            raise InputError(f"rank metric '{asked}' takes no cut-off: write {base}")
        raise InputError(f"unknown rank metric '{asked}'; {_known(base, at, given, known)}")
    accepted, example, rule = _AFTER[kind]
    if not at:
        wanted = "a cut-off" if kind == "k" else kind
        raise InputError(
            f"rank metric '{asked}' needs {wanted}: write for example {base}@{example}"
        )
    if not accepted.fullmatch(given):
        if own := _canonical(kind, given):
            raise InputError(f"rank metric '{asked}' is written {base}@{own}; write it so")
        raise InputError(f"rank metric '{asked}': {rule}; write for example {base}@{example}")
    return _made(f"{base}@{{{kind}}}", asked, int(given) if kind == "k" else float(given))


@contextmanager
def told_by_name(name: object) -> Iterator[None]:
    """Tell what a metric of another package raises in a sentence with its name.

    Parameters
    ----------
    name : object
        The metric, or its name.

    Raises
    ------
    InputError
        Something else than misslink's own errors was raised; that is the cause.
    """
    try:
        yield
    except MisslinkError:
        raise
    except Exception as problem:
        told = " ".join(f"{type(problem).__name__}: {problem}".split())
        raise InputError(
            f"the rank metric '{name}' failed ({told}); mend it or leave it out"
        ) from problem


def spelled(entry: str, k: int | str = "k", p: float | str = "p") -> str:
    """A registered name as people read or write it.

    Examples
    --------
    >>> spelled("recall@{k}"), spelled("rbp@{p}", 5, 0.8), spelled("mrr", 5)
    ('recall@k', 'rbp@0.8', 'mrr')
    """
    return entry.replace("{k}", str(k)).replace("{p}", str(p))


def _made(entry: str, name: str, *given: float) -> RankMetric:
    with told_by_name(name):
        metric: RankMetric = rank_metrics.get(entry)(*given)
        own = str(metric)
    if own != name:
        raise InputError(
            f"the rank metric '{name}' calls itself '{own}'; its __str__ has to give the name that "
            "it was asked for by"
        )
    return metric


def _canonical(kind: str, given: str) -> str | None:
    """What follows the @ in the one way in which it is written; None where it means nothing.

    Examples
    --------
    >>> _canonical("k", "05"), _canonical("p", ".80"), _canonical("p", "1.5")
    ('5', '0.8', None)
    """
    if not re.fullmatch(r"[0-9]*\.?[0-9]*", given) or not given.strip("."):
        return None
    own = (given.lstrip("0") if kind == "k" else f"{float(given):.9f}".rstrip("0")) or "0"
    return own if _AFTER[kind][0].fullmatch(own) else None


def _known(base: str, at: str, given: str, known: list[str]) -> str:
    """What was perhaps meant, and all names."""
    listed = ", ".join(map(spelled, known))
    asked = base + at + given
    if other := _other_name(asked, known):
        return f"did you mean '{other}'? Known: {listed}"

    def written(near: str) -> str:
        if near in known and not at:
            return near
        for kind, (accepted, example, _) in _AFTER.items():
            if f"{near}@{{{kind}}}" in known:
                return f"{near}@{given if accepted.fullmatch(given) else example}"
        return near

    bases = sorted({entry.partition("@")[0] for entry in known})
    hint = did_you_mean(base.lower(), bases, written=written)
    return f"{f'{hint} Known' if hint else 'known'}: {listed}"


def _other_name(asked: str, known: list[str]) -> str | None:
    """What a metric is called here that has another name in trec_eval and its kin."""
    cut = _CUT.fullmatch(asked.lower())
    base, k = (cut[1], cut[2]) if cut else (asked.lower(), "")
    own = _ELSEWHERE.get(base, base)
    if k and f"{own}@{{k}}" in known:
        return f"{own}@{k}"
    return own if not k and own in known and own != asked else None
