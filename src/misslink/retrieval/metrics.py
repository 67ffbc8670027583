"""Rank metrics: parsing of names, and every built-in metric."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any, Literal, TypeVar

import numpy as np

from misslink.errors import InputError, MisslinkError, did_you_mean
from misslink.registry import rank_metrics
from misslink.retrieval.arrays import FloatArray, IntArray, segment_offsets
from misslink.retrieval.hits import Cutoffs, Hits, as_column

F = TypeVar("F", bound=Callable[..., FloatArray])

# By the parameter after the @: accepted values, an example, and the rule.
_PARAMETER_RULES = {
    "k": (re.compile(r"[1-9][0-9]{0,8}"), "5", "k counts from 1 and has at most 9 digits"),
    "p": (
        re.compile(r"0\.[0-9]{0,3}[1-9]"),
        "0.8",
        "p lies between 0 and 1, has at most 4 decimal places and does not end in 0",
    ),
}
# What trec_eval, ir-measures and ranx call them.
_ALIASES = {
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
_CUTOFF_SUFFIX = re.compile(r"(.+?)[_@.]([1-9][0-9]{0,8})")


@dataclass(frozen=True)
class RankMetric:
    """A rank metric with its cutoff or parameter; ``str`` is its name.

    Parameters
    ----------
    name : str
        Such as ``recall@5``.
    function : callable
        Takes `Hits` and the parameter, if the name has one; returns an array with a value in
        [0, 1] for each row, NaN where it has none. See `register_metric`.
    k : int or None
        The cutoff.
    p : float or None
        The persistence of ``rbp@p``.
    without_relevant : bool
        Whether a query without relevant passages has a value too.
    about_judgements : bool
        Whether it measures how much was judged, not how good the ranking is.
    rises : bool
        Whether it never falls if one more of the passages that it reads is relevant.
    better : {'high', 'low'}
        Whether more or less is better.
    """

    name: str
    function: Callable[..., FloatArray]
    k: int | None = None
    p: float | None = None
    without_relevant: bool = False
    about_judgements: bool = False
    rises: bool = False
    better: Literal["high", "low"] = "high"

    def __str__(self) -> str:
        """Return the name."""
        return self.name

    def score(self, hits: Hits) -> FloatArray:
        """Return the value of each row; that of a row without needs is to be ignored."""
        parameters = [value for value in (self.k, self.p) if value is not None]
        return self.function(hits, *parameters)


def register_metric(
    name: str, *, unit: Literal["share", "decimal"] = "share", **traits: Any
) -> Callable[[F], F]:
    """Register the decorated function as a rank metric.

    Parameters
    ----------
    name : str
        'NAME', 'NAME@{k}' for a cutoff, or 'NAME@{p}' for a fraction. The function takes `Hits`
        and the parameter. A cutoff may also be an array, as `Hits.sums` takes it: the result has
        the shape (cutoffs, rows), to the last bit the values of each cutoff by itself.
    unit : {'share', 'decimal'}
        How its mean is written: "62%" or "0.62".
    **traits
        ``without_relevant``, ``about_judgements``, ``rises`` and ``better`` of `RankMetric`.

    Raises
    ------
    InputError
        Another metric has this name.
    """

    def register(function: F) -> F:
        @wraps(function)
        def create(text: str, parameter: float | None = None) -> RankMetric:
            named: dict[str, Any] = {} if parameter is None else {name[-2]: parameter}
            return RankMetric(text, function, **named, **traits)

        rank_metrics.register(name, unit=unit)(create)
        return function

    return register


def parse_metric(name: str) -> RankMetric:
    """Return the metric with this name.

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
        No metric has this name; the parameter after the @ is missing, not accepted or not valid (a
        whole number from 1, for ``rbp`` a fraction).

    Examples
    --------
    >>> str(parse_metric("recall@5")), parse_metric("recall@5") == parse_metric("recall@5")
    ('recall@5', True)
    """
    if not isinstance(name, str):
        raise InputError(f"{name!r} is not a rank metric; write a name such as ndcg@10")
    text = name.strip()
    parts = text.split()
    if len(parts) > 1 and all(any(map(str.isalpha, part)) for part in parts):
        raise InputError(f"'{text}' are several names; separate by commas: {','.join(parts)}")
    base, mark, parameter = text.partition("@")
    names = rank_metrics.names()
    if not mark and base in names:
        return _create_metric(base, text)
    kind = next((kind for kind in _PARAMETER_RULES if f"{base}@{{{kind}}}" in names), None)
    if kind is None:
        if mark and base in names:
            raise InputError(f"rank metric '{text}' takes no cutoff: write {base}")
        raise InputError(
            f"unknown rank metric '{text}'; {_suggest_names(base, mark, parameter, names)}"
        )
    accepted, example, rule = _PARAMETER_RULES[kind]
    if not mark:
        required = "a cutoff" if kind == "k" else kind
        raise InputError(
            f"rank metric '{text}' needs {required}: write for example {base}@{example}"
        )
    if not accepted.fullmatch(parameter):
        if canonical := _canonical_parameter(kind, parameter):
            raise InputError(f"rank metric '{text}' is written {base}@{canonical}; write it so")
        raise InputError(f"rank metric '{text}': {rule}; write for example {base}@{example}")
    number = int(parameter) if kind == "k" else float(parameter)
    return _create_metric(f"{base}@{{{kind}}}", text, number)


def _create_metric(entry: str, name: str, *parameter: float) -> RankMetric:
    metric: RankMetric = rank_metrics.get(entry)(name, *parameter)
    return metric


@contextmanager
def metric_errors(name: object) -> Iterator[None]:
    """Raise an InputError with the metric's name in place of any error of its code."""
    try:
        yield
    except MisslinkError:
        raise
    except Exception as problem:
        reason = " ".join(f"{type(problem).__name__}: {problem}".split())
        raise InputError(
            f"the rank metric '{name}' failed ({reason}); fix it or leave it out"
        ) from problem


def format_metric_name(entry: str, k: int | str = "k", p: float | str = "p") -> str:
    """Return a registered name as users write it.

    Examples
    --------
    >>> format_metric_name("recall@{k}"), format_metric_name("rbp@{p}", 5, 0.8)
    ('recall@k', 'rbp@0.8')
    """
    return entry.replace("{k}", str(k)).replace("{p}", str(p))


def _canonical_parameter(kind: str, text: str) -> str | None:
    """Return the canonical form, such as 5 for 05 and 0.8 for .80; None if it is not valid."""
    if not re.fullmatch(r"[0-9]*\.?[0-9]*", text) or not text.strip("."):
        return None
    canonical = (text.lstrip("0") if kind == "k" else f"{float(text):.9f}".rstrip("0")) or "0"
    return canonical if _PARAMETER_RULES[kind][0].fullmatch(canonical) else None


def _suggest_names(base: str, mark: str, parameter: str, names: list[str]) -> str:
    """The nearest name, and all names."""
    listed = ", ".join(map(format_metric_name, names))
    text = base + mark + parameter
    if other := _alias_name(text, names):
        return f"did you mean '{other}'? Known: {listed}"

    def written(near: str) -> str:
        if near in names and not mark:
            return near
        for kind, (accepted, example, _) in _PARAMETER_RULES.items():
            if f"{near}@{{{kind}}}" in names:
                return f"{near}@{parameter if accepted.fullmatch(parameter) else example}"
        return near

    bases = sorted({entry.partition("@")[0] for entry in names})
    hint = did_you_mean(base.lower(), bases, written=written)
    return f"{f'{hint} Known' if hint else 'known'}: {listed}"


def _alias_name(text: str, names: list[str]) -> str | None:
    """The name here of a metric of trec_eval, ir-measures or ranx."""
    match = _CUTOFF_SUFFIX.fullmatch(text.lower())
    base, k = (match[1], match[2]) if match else (text.lower(), "")
    name = _ALIASES.get(base, base)
    if k and f"{name}@{{k}}" in names:
        return f"{name}@{k}"
    return name if not k and name in names and name != text else None


@register_metric("hit@{k}", rises=True)
def hit_rate(hits: Hits, k: Cutoffs) -> FloatArray:
    """Whether a relevant passage is among the first k; the mean is the share of such questions.

    Formula: 1 if one of the first k passages is relevant, else 0.

    Range: 0 or 1; the mean is the share of queries with a hit.

    trec_eval: ``success_k``.

    Use it: where one good passage is enough for an answer. It ignores everything after the first
    relevant passage, and any retriever reaches 1 with a large k.
    """
    return np.minimum(hits.sums(hits.satisfied, k), 1.0)


@register_metric("recall@{k}", rises=True)
def recall(hits: Hits, k: Cutoffs) -> FloatArray:
    """Share of the relevant passages that are among the first k.

    Formula: number of relevant passages among the first k, divided by the number of relevant
    passages.

    Range: 0 to 1; at most k divided by the number of relevant passages.

    trec_eval: ``recall_k``.

    Use it: where a miss is costly, as it is whenever an answer must be complete. Retrieving more
    passages never lowers it, so read precision too.
    """
    return hits.per_need(hits.sums(hits.satisfied, k))


@register_metric("precision@{k}", rises=True)
def precision(hits: Hits, k: Cutoffs) -> FloatArray:
    """Share of the first k places that have a relevant passage.

    Divided by k, even if fewer passages were retrieved. A passage that only repeats evidence of an
    earlier one takes a place and does not count.

    Formula: number of relevant passages among the first k, divided by k.

    Range: 0 to 1; at most the number of relevant passages divided by k.

    trec_eval: ``P_k``.

    Use it: where noise costs, because an irrelevant passage takes room in the prompt and may
    distract the model. A retriever that returns one sure passage looks perfect at k = 1 and may
    miss all others, so read recall too.
    """
    return hits.sums(hits.relevant, k) / as_column(k)


@register_metric("set-precision@{k}", rises=True)
def set_precision(hits: Hits, k: Cutoffs) -> FloatArray:
    """Share of the retrieved passages, at most the first k, that are relevant; 0 if there are none.

    Formula: number of relevant passages among the first k, divided by k or the number of retrieved
    passages, whichever is less.

    Range: 0 to 1.

    trec_eval: ``set_P`` of a run that is cut at k.

    Use it: where the retriever decides how many passages it returns, by a threshold of score or a
    reranker. Precision counts the places that such a retriever leaves empty as noise.
    """
    returned = np.minimum(as_column(k), hits.retrieved)
    found = hits.sums(hits.relevant, k)
    shares: FloatArray = np.where(returned > 0, found / np.maximum(returned, 1), 0.0)
    return shares


@register_metric("f1@{k}", rises=True)
def f1(hits: Hits, k: Cutoffs) -> FloatArray:
    """Harmonic mean of precision and recall among the first k; 0 if both are 0.

    Formula: 2 * precision@k * recall@k / (precision@k + recall@k).

    Range: 0 to 1.

    trec_eval: ``set_F`` of a run that is cut at k.

    Use it: as one number, if a missed passage and an irrelevant one cost the same. Precision and
    recall at the same k show which of the two fails.
    """
    both = precision(hits, k), recall(hits, k)
    total = both[0] + both[1]
    return np.divide(
        2 * both[0] * both[1], total, out=np.where(total == 0, 0.0, total), where=total > 0
    )


@register_metric("mrr", unit="decimal", rises=True)
@register_metric("mrr@{k}", unit="decimal", rises=True)
def reciprocal_rank(hits: Hits, k: Cutoffs = None) -> FloatArray:
    """1 / rank of the first relevant passage; 0 if there is none.

    Its mean over the queries is the mean reciprocal rank. ``mrr`` uses the whole ranking, ``mrr@k``
    the first k.

    Formula: 1 divided by the rank of the first relevant passage; 0 without one.

    Range: 0 to 1, and only the values 1, 1/2, 1/3 and so on between them.

    trec_eval: ``recip_rank`` for ``mrr``. It has no cutoff; ``-M k`` cuts the run instead.

    Use it: where only the first result counts, such as one link, one fact or one passage in the
    prompt. It ignores all further relevant passages.

    References
    ----------
    Voorhees (1999), The TREC-8 question answering track report.
    """
    first = hits.relevant & (hits.place == 1)
    return hits.sums(first / hits.rank, k)


@register_metric("map", unit="decimal")
@register_metric("map@{k}", unit="decimal")
def average_precision(hits: Hits, k: Cutoffs = None) -> FloatArray:
    """Mean over the relevant passages of the precision at their ranks.

    A relevant passage that was not retrieved (within the first k) counts 0. The mean over the
    queries is the mean average precision. ``map`` uses the whole ranking, ``map@k`` the first k. Both
    divide by the number of all relevant passages, even if there are more than k.

    Formula: the sum of precision@rank over the retrieved relevant passages, divided by the number
    of relevant passages.

    Range: 0 to 1; ``map@k`` at most k divided by the number of relevant passages.

    trec_eval: ``map`` and ``map_cut_k``.

    Use it: to compare whole rankings if many passages are relevant. It rewards finding all of them
    early. With one relevant passage it equals the reciprocal rank.

    References
    ----------
    Buckley and Voorhees (2005), Retrieval system evaluation, in TREC: Experiment and evaluation in
    information retrieval.
    """
    return hits.per_need(hits.sums(hits.satisfied * (hits.place / hits.rank), k))


@register_metric("r-precision")
def r_precision(hits: Hits) -> FloatArray:
    """Recall at rank R, where R is the number of relevant passages.

    At this cutoff precision and recall are the same number.

    Formula: number of relevant passages among the first R, divided by R.

    Range: 0 to 1; 1 if all relevant passages come before all others.

    trec_eval: ``Rprec``.

    Use it: where the number of relevant passages differs much between queries, so that no single k
    suits all of them.

    References
    ----------
    Buckley and Voorhees (2005), Retrieval system evaluation, in TREC: Experiment and evaluation in
    information retrieval.
    """
    satisfied = np.where(hits.rank <= hits.needs[hits.row], hits.satisfied, 0)
    return hits.per_need(hits.sums(satisfied, None))


@register_metric("ndcg@{k}", unit="decimal")
def ndcg(hits: Hits, k: Cutoffs) -> FloatArray:
    """How near the first k are to the ideal ranking; highly relevant passages weigh more.

    The gain of a passage is its grade (linear gain), even below the relevance level.

    Formula: the sum over the first k of grade / log2(rank + 1), divided by the same sum over the
    ideal ranking, which has the highest grades first.

    Range: 0 to 1; 1 for a ranking in the best order.

    trec_eval: ``ndcg_cut_k``.

    Use it: where grades and order matter, as they do if the model reads the first passages most.
    Only nDCG distinguishes highly relevant passages from relevant ones. A medium value does not
    show whether a passage was missed or came late.

    References
    ----------
    Järvelin and Kekäläinen (2002), Cumulated gain-based evaluation of IR techniques.
    """
    return _normalized_gain(hits, hits.gain.astype(float), hits.ideal_gain.astype(float), k)


@register_metric("ndcg_exp@{k}", unit="decimal")
def ndcg_exp(hits: Hits, k: Cutoffs) -> FloatArray:
    """Like nDCG, with exponential gain: each grade counts more than twice the one below it.

    Formula: as ndcg@k, with the gain 2^grade - 1 instead of the grade.

    Range: 0 to 1; 1 for a ranking in the best order.

    trec_eval: none; ``ndcg_cut_k`` gives it on qrels with the grades 1, 3, 7 instead of 1, 2, 3.

    Use it: to compare with work on learning to rank and web search, where this gain is usual, or
    where one highly relevant passage is worth several relevant ones. With the grades 0 and 1 it
    equals ndcg@k.

    References
    ----------
    Burges et al. (2005), Learning to rank using gradient descent.
    """
    top = np.zeros(hits.rows)
    np.maximum.at(top, hits.ideal_row, hits.ideal_gain)

    def gains(row: IntArray, grade: IntArray) -> FloatArray:
        # Over the row's highest power of two, which cancels: a large grade does not overflow.
        return np.asarray(np.exp2(grade - top[row]) - np.exp2(-top[row]), dtype=np.float64)

    own, ideal = gains(hits.row, hits.gain), gains(hits.ideal_row, hits.ideal_gain)
    return _normalized_gain(hits, own, ideal, k)


def _normalized_gain(
    hits: Hits, gains: FloatArray, ideal_gains: FloatArray, k: Cutoffs
) -> FloatArray:
    """Discounted gain of the first k over the ideal one; 0 where nothing could be gained."""
    gained = hits.sums(gains / np.log2(hits.rank + 1), k)
    ideal = hits.ideal_sums.sums(ideal_gains / np.log2(hits.ideal_rank + 1), k)
    share = np.divide(gained, ideal, out=np.zeros(gained.shape), where=ideal > 0)
    # The same gains in another order of addition may differ in the last digit.
    return np.minimum(share, 1.0)


@register_metric("rbp@{p}", unit="decimal", rises=True)
def rbp(hits: Hits, p: float) -> FloatArray:
    """Expected relevance for a reader who continues to the next passage with probability p.

    Relevance is yes or no, by the relevance level. Passages after the end of the ranking are
    unknown, so a ranking of finite length never reaches 1.

    Formula: (1 - p) times the sum of p^(rank - 1) over the retrieved relevant passages.

    Range: 0 to 1, never exactly 1; the reader looks at 1 / (1 - p) passages on average.

    trec_eval: ``rbp`` (p = 0.9 by default) if all relevant passages have grade 1. With more grades
    it scales them instead of cutting them at a level.

    Use it: where later passages matter less and less, and where judgements are incomplete. A reader
    of 2 passages has p = 0.5, of 5 passages 0.8, of 20 passages 0.95.

    References
    ----------
    Moffat and Zobel (2008), Rank-biased precision for measurement of retrieval effectiveness.
    """
    weight = (1 - p) * np.power(p, hits.rank - 1)
    return hits.sums(hits.relevant * weight, None)


@register_metric("bpref", unit="decimal")
def bpref(hits: Hits) -> FloatArray:
    """Binary preference: how rarely a passage judged not relevant ranks above a relevant one.

    Unjudged passages are skipped, as if they had not been retrieved.

    Formula: the sum of 1 - min(n, R) / min(N, R) over the retrieved relevant passages, divided by R.
    n is the number of passages judged not relevant above the passage, N the number of all passages
    judged not relevant, retrieved or not, and R the number of relevant passages. With n = 0 the
    summand is 1.

    Range: 0 to 1; 1 if all relevant passages were retrieved and no passage judged not relevant
    ranks above them.

    trec_eval: ``bpref``.

    Use it: where many retrieved passages are unjudged, together with judged@k. It needs passages
    that were judged not relevant: with a gold set of relevant ones alone it equals the recall of
    the whole ranking.

    References
    ----------
    Buckley and Voorhees (2004), Retrieval evaluation with incomplete information.
    """
    against = np.flatnonzero(hits.judged_against)
    rows = hits.judged_row[against]
    # Rows and ranks as one ascending number, so that one search counts for all rows at once.
    width = int(max(hits.rank.max(initial=0), hits.judged_rank.max(initial=0))) + 1
    ladder = rows * width + hits.judged_rank[against]
    above = np.searchsorted(ladder, hits.row * width + hits.rank)
    above -= segment_offsets(np.bincount(rows, minlength=hits.rows))[hits.row]
    needs = hits.needs[hits.row]
    most = np.minimum(hits.nonrelevant[hits.row], needs)
    worse = np.minimum(above, needs) / np.maximum(most, 1)
    return hits.per_need(hits.sums(hits.satisfied * (1 - worse), None))


@register_metric("judged@{k}", without_relevant=True, about_judgements=True)
def judged(hits: Hits, k: Cutoffs) -> FloatArray:
    """Share of the first k passages that were judged, relevant or not.

    It measures the judgements, not the ranking. If fewer than k were retrieved it is the share of
    these.

    Formula: number of judged passages among the first k, divided by k or by the number of passages
    retrieved, whichever is smaller.

    Range: 0 to 1.

    No value: if nothing was retrieved, or no passage was judged for the query. A query without
    relevant passages has a value.

    trec_eval: 1 minus ``unj_k``, if at least k were retrieved; it counts the places after a shorter
    ranking as judged.

    Use it: beside every other metric. All but bpref count an unjudged passage as irrelevant, so
    below 90% they depend on the judgements as much as on the retriever.
    """
    known = hits.judged_sums
    judged = known.sums(np.ones(len(known.row)), k)
    places = np.minimum(hits.retrieved, as_column(k))
    share = np.full(places.shape, np.nan)
    np.divide(judged, places, out=share, where=places > 0)
    return share
