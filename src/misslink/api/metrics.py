"""Register metrics of one's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from misslink.judge.judged_metric import JudgedMetric
from misslink.registry import judged_metrics
from misslink.retrieval.metrics import register_metric as register_rank_metric

MetricT = TypeVar("MetricT")


def register_metric(name: str, **options: Any) -> Callable[[MetricT], MetricT]:
    """Register a metric of your own under a name.

    Parameters
    ----------
    name : str
        Of a rank metric with its cutoff, such as ``complete@{k}``; of a judged metric without.
    options : Any
        Of a rank metric, as of `misslink.retrieval.register_metric`.

    Returns
    -------
    callable
        A decorator for a function that scores `misslink.retrieval.Hits` (a rank metric), or for a
        subclass of `misslink.JudgedMetric` or an instance of one. The fields of a frozen dataclass
        are the settings of a judged metric.

    Raises
    ------
    InputError
        Another metric has this name.

    Examples
    --------
    >>> import misslink
    >>> @misslink.register_metric("all_found@{k}")  # doctest: +SKIP
    ... def all_found(hits, k):
    ...     return (hits.sums(hits.satisfied, k) == hits.needs).astype(float)
    """

    def register(metric: MetricT) -> MetricT:
        made: Any = metric
        if isinstance(metric, type) and issubclass(metric, JudgedMetric):
            made = metric()
        if isinstance(made, JudgedMetric):
            object.__setattr__(made, "name", name)  # it may be frozen
            judged_metrics.register(name)(made)
            return metric
        registered: MetricT = register_rank_metric(name, **options)(metric)  # type: ignore[type-var]
        return registered

    return register
