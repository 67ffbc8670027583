"""How much a judge's word changes when it is asked again: by verdict, and for the whole run."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from misslink.stats import mean, proportion
from misslink.types import Estimate, Repeats, Verdict

__all__ = ["repetition"]

T = TypeVar("T")

_PAIR = 2  # fewer samples cannot differ
_LARGEST_SD = math.sqrt(0.5)  # of two or more values in [0, 1]: that of 0 and 1


def repetition(
    verdicts: Sequence[Verdict], metrics: Iterable[str], *, seed: int = 0
) -> dict[str, Any]:
    """Return how much verdicts and means move between samples of the same questions.

    Parameters
    ----------
    verdicts : sequence of Verdict
    metrics : iterable of str
        The judged metrics; each appears, even where none of its verdicts was sampled twice.
    seed : int
        Of the bootstrap.

    Returns
    -------
    dict
        Empty where no verdict was sampled more than once. Else ``samples``, how often each question
        was put, and by metric:

        ``metrics``
            ``n``: verdicts with two or more samples that have a value. ``incomplete``: verdicts of
            which some samples have a value and others none. ``flip_rate``: Estimate, the share of
            verdicts whose labels are not unanimous; it grows with the number of samples.
            ``disagreement``: Estimate, the mean over verdicts of 2 k (m - k) / (m (m - 1)) for k
            good labels among m: how often two samples of the same question give different labels,
            whatever their number. ``spread``: Estimate, the mean of the verdicts' standard
            deviations (m - 1).
        ``run``
            ``values``: the metric's mean over the cases for each sample, as if it had been the
            only one; ``mean`` and ``sd`` (m - 1) of these; ``n``: the cases, only those of which
            every sample has a value, so that the values differ by nothing but the judge;
            ``reason``: why they are None.

    References
    ----------
    The disagreement of two ratings is one minus the observed agreement of Fleiss (1971), Measuring
    nominal scale agreement among many raters.
    """
    sampled = [v for v in verdicts if v.repeats is not None and len(v.repeats.values) >= _PAIR]
    if not sampled:
        return {}
    of_metric = {
        metric: [v.repeats for v in sampled if v.metric == metric and v.repeats is not None]
        for metric in metrics
    }
    return {
        "samples": max(len(v.repeats.values) for v in sampled if v.repeats is not None),
        "metrics": {metric: _by_verdict(mine, seed) for metric, mine in of_metric.items()},
        "run": {metric: _by_sample(mine) for metric, mine in of_metric.items()},
    }


def _by_verdict(repeats: Sequence[Repeats], seed: int) -> dict[str, Any]:
    values = [_known(each.values) for each in repeats]
    labels = [said for each in repeats if len(said := _known(each.labels)) >= _PAIR]
    spreads = [each.spread for each in repeats if each.spread is not None]
    flip_rate = disagreement = Estimate.missing("no verdict has two samples with a label")
    if labels:
        flip_rate = proportion(sum(len(set(said)) > 1 for said in labels), len(labels))
        disagreement = mean([_disagreement(said) for said in labels], seed=seed)
    spread = Estimate.missing("no verdict has two samples with a value")
    if spreads:
        spread = mean(spreads, seed=seed, bounds=(0.0, _LARGEST_SD))
    return {
        "n": sum(len(known) >= _PAIR for known in values),
        "incomplete": sum(
            0 < len(known) < len(each.values) for known, each in zip(values, repeats, strict=True)
        ),
        "flip_rate": flip_rate.model_dump(),
        "disagreement": disagreement.model_dump(),
        "spread": spread.model_dump(),
    }


def _by_sample(repeats: Sequence[Repeats]) -> dict[str, Any]:
    """The metric's mean over the cases, sample by sample, over the cases that have them all."""
    samples = max((len(each.values) for each in repeats), default=0)
    whole = [known for each in repeats if len(known := _known(each.values)) == samples]
    if not whole:
        reason = "no case has a value in every sample"
        return {"n": 0, "mean": None, "sd": None, "values": [], "reason": reason}
    values = [statistics.mean(of_sample) for of_sample in zip(*whole, strict=True)]
    return {
        "n": len(whole),
        "mean": statistics.mean(values),
        "sd": statistics.stdev(values),
        "values": values,
        "reason": None,
    }


def _disagreement(labels: Sequence[bool]) -> float:
    """How often two of these labels, drawn at random, differ."""
    m, good = len(labels), sum(labels)
    return 2 * good * (m - good) / (m * (m - 1))


def _known(values: Iterable[T | None]) -> list[T]:
    return [value for value in values if value is not None]
