"""The share of good cases that annotators would have found, and its difference between runs."""

from __future__ import annotations

import bisect
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from misslink.calibration.inter_annotator import LabelPair, label_weights
from misslink.calibration.judge_accuracy import judge_confusion, weighted_rates
from misslink.calibration.stored_calibration import judge_error_rates, label_count, verdict_scores
from misslink.calibration_document import (
    CalibrationDocument,
    CorrectedPrevalence,
    LabelForecastDocument,
    LabelsNeeded,
)
from misslink.documents import calibrations_of, manifest_of
from misslink.metrics import GOOD_SHARES
from misslink.stats import paired_difference, proportion
from misslink.stats.classification import ConfusionMatrix, ErrorRates
from misslink.stats.intervals import critical_value, wilson_interval
from misslink.stats.prevalence import (
    MIN_LABELS,
    corrected_difference,
    prediction_powered,
    rogan_gladen,
)
from misslink.types import Estimate, Run

_CURVE_SIZES = (25, 50, 100, 200, 300, 500, 1000, 2000, 5000)
_TARGET_WIDTHS = (0.2, 0.1, 0.05)
_MAX_LABELS = 10_000_000


def correct_prevalence(
    pairs: Sequence[LabelPair],
    scores: Mapping[str, float],
    threshold: float,
    seed: int,
    ties: Sequence[LabelPair] = (),
) -> CorrectedPrevalence:
    """Estimate the share of good cases among all verdicts in several ways.

    Parameters
    ----------
    pairs : sequence of LabelPair
        The labelled cases.
    scores : mapping of str to float
        The score of every case with a verdict, labelled or not.
    threshold : float
    seed : int
    ties : sequence of LabelPair
        Labelled cases with tied labels. They count as half good: otherwise the share would be that
        of the cases that annotators agree on. The judge's error rates, and so Rogan and Gladen's
        correction, leave them out.

    Returns
    -------
    CorrectedPrevalence
        ``judge_only``, ``labelled_only``, ``rogan_gladen`` by the delta method,
        ``rogan_gladen_posterior``, both by the weighted rates if cases were drawn with unequal
        chances, ``prediction_powered``; ``power`` and ``worth`` of the last; ``verdicts`` and
        ``ties``, their numbers. Missing with a reason if the labels do not suffice.
    """
    labelled = [*pairs, *ties]
    everyone = dict(scores) | {label.case_id: label.score for label in labelled}
    ids = {label.case_id for label in labelled}
    n, called = len(everyone), sum(score >= threshold for score in everyone.values())
    powered = prediction_powered(
        [*(float(pair.good) for pair in pairs), *(0.5 for _ in ties)],
        [label.score for label in labelled],
        [score for case_id, score in everyone.items() if case_id not in ids],
        weights=label_weights(labelled),
        seed=seed,
    )
    rates = weighted_rates(pairs, threshold)
    judge: ConfusionMatrix | ErrorRates = judge_confusion(pairs, threshold)
    if rates is not None:
        judge = ErrorRates(rates["sensitivity"], rates["specificity"], len(pairs))
    among = rates is None  # of cases drawn with unequal chances, the rest is no random sample
    return CorrectedPrevalence(
        judge_only=proportion(called, n),
        labelled_only=powered.labelled_only,
        rogan_gladen=rogan_gladen(called, n, judge, among=among),
        rogan_gladen_posterior=rogan_gladen(
            called, n, judge, among=among, interval="posterior", seed=seed
        ),
        prediction_powered=powered.estimate,
        power=powered.power,
        worth=powered.worth,
        verdicts=n,
        ties=len(ties),
    )


def labels_needed(
    pairs: Sequence[LabelPair], verdicts: int, corrected: Estimate | None = None
) -> LabelsNeeded:
    """Return the width of the interval of the corrected share with more labels.

    It is planned with the lower end of the interval of the correlation: of a few labels on which
    the judge agrees by luck, the correlation itself would say that one label is enough.

    Parameters
    ----------
    pairs : sequence of LabelPair
    verdicts : int
        Cases with a verdict, labelled or not.
    corrected : Estimate or None
        The corrected share by these labels, whose width a target is compared with.

    Returns
    -------
    LabelsNeeded
        ``share`` and ``correlation`` (of score and label; None if one of them does not vary) on
        these labels, weighted if they are; ``curve`` of {labels, width, labelled_only};
        ``for_width``, the fewest labels by target width, None if not even a label on every verdict
        suffices. ``reason`` without labels.
    """
    if not pairs:
        return LabelsNeeded(
            reason="no case is labelled",
            share=None,
            correlation=None,
            verdicts=verdicts,
            curve=(),
            for_width={},
        )
    weights = label_weights(pairs) or [1.0] * len(pairs)
    good = sum(weight for pair, weight in zip(pairs, weights, strict=True) if pair.good)
    share = min(good / sum(weights), 1.0)
    rho = _weighted_correlation(pairs, weights)
    gain = _certain_correlation(rho, len(pairs))
    sizes = sorted({*(size for size in _CURVE_SIZES if size < verdicts), len(pairs), verdicts})
    powered = width_curve(sizes, share, correlation=gain, judged=verdicts)
    alone = dict(width_curve(sizes, share))
    curve = tuple(
        LabelForecastDocument(labels=n, width=width, labelled_only=alone[n]) for n, width in powered
    )
    measured = math.inf
    if corrected is not None and corrected.low is not None and corrected.high is not None:
        measured = corrected.high - corrected.low
    for_width: dict[str, int | None] = {}
    for width in _TARGET_WIDTHS:
        needed = labels_for_share(share, width, correlation=gain, judged=verdicts)
        if measured <= width:  # these labels are enough
            needed = len(pairs) if needed is None else min(needed, len(pairs))
        elif needed is not None and verdicts > len(pairs):
            needed = max(needed, len(pairs) + 1)
        for_width[str(width)] = needed and max(needed, min(MIN_LABELS, verdicts))
    return LabelsNeeded(
        reason=None,
        share=share,
        correlation=rho,
        verdicts=verdicts,
        curve=curve,
        for_width=for_width,
    )


def _certain_correlation(rho: float | None, labels: int) -> float:
    """The end nearer to 0 of the 95% interval of a correlation (Fisher); 0 if 0 is in it.

    >>> round(_certain_correlation(1.0, 12), 2), round(_certain_correlation(0.6, 200), 2)
    (0.72, 0.5)
    >>> _certain_correlation(1.0, 3)
    0.0
    """
    if rho is None or labels <= 3:
        return 0.0
    seen = min(abs(rho), 1 - 1 / labels)  # so many labels do not show that a judge never errs
    return max(math.tanh(math.atanh(seen) - critical_value() / math.sqrt(labels - 3)), 0.0)


def _weighted_correlation(pairs: Sequence[LabelPair], weights: Sequence[float]) -> float | None:
    """Pearson's weighted correlation of score and label; None if one of them does not vary."""
    import numpy as np

    both = [[float(pair.good), pair.score] for pair in pairs]
    (labels, common), (_, scores) = np.cov(both, rowvar=False, aweights=weights, ddof=0).tolist()
    spread = math.sqrt(labels * scores)
    return min(max(common / spread, -1.0), 1.0) if spread > math.ulp(1.0) else None


@dataclass(frozen=True)
class CorrectedDifference:
    """A share of good answers of two runs, corrected by one calibration over the same cases.

    Parameters
    ----------
    name, metric : str
    a, b, difference : Estimate
        Over the cases that have a verdict in both; b minus a, missing with a reason if the labels
        do not suffice.
    labels : int
        Labelled cases behind the judge's error rates.
    """

    name: str
    metric: str
    a: Estimate
    b: Estimate
    difference: Estimate
    labels: int

    def document(self) -> dict[str, Any]:
        """Return it as JSON values."""
        sides = {name: getattr(self, name).model_dump() for name in ("a", "b", "difference")}
        return {**sides, "labels": self.labels}


def compare_corrected_shares(
    a: Run,
    b: Run,
    ids: AbstractSet[str] | None = None,
    *,
    letters: tuple[str, str] = ("A", "B"),
    seed: int = 0,
) -> tuple[dict[str, CorrectedDifference], str | None]:
    """Correct the shares of two runs that both store a calibration of the same judge and prompts.

    Parameters
    ----------
    a, b : Run
    ids : set of str or None
        The cases compared. None: those that both have.
    letters : pair of str
        Names of the runs in messages.
    seed : int
        Random seed of the draws.

    Returns
    -------
    differences : dict of str to CorrectedDifference
        By the name of the share. Both runs are corrected by the one calibration of the two that
        has more labels.
    reason : str or None
        Why some or all are not corrected, if a run stores a calibration; None if neither does.
    """
    stored = calibrations_of(a), calibrations_of(b)
    if not any(stored):
        return {}, None
    if not all(stored):
        without, other = letters if stored[1] else letters[::-1]
        documents = stored[1] or stored[0]
        mismatches = [judge_mismatch(a, b, metric, each) for metric, each in documents.items()]
        if all(mismatches):  # then it would be refused
            return {}, "; ".join(dict.fromkeys(filter(None, mismatches)))
        return {}, (
            f"{without} has no calibration; evaluate it with  --calibration "
            f"{other}/calibration.json, and both are corrected"
        )
    differences: dict[str, CorrectedDifference] = {}
    reasons: list[str] = []
    for metric in sorted(stored[0].keys() | stored[1].keys()):
        both = [documents[metric] for documents in stored if metric in documents]
        if len(both) < len(stored):
            reasons.append(f"only one run has a calibration of {metric}")
        elif mismatch := judge_mismatch(a, b, metric, *both):
            reasons.append(f"{metric}: {mismatch}")
        else:
            document = max(both, key=label_count)
            difference = corrected_share_difference(a, b, metric, document, ids, seed=seed)
            differences[difference.name] = difference
    return differences, "; ".join(dict.fromkeys(reasons)) or None


def corrected_share_difference(
    a: Run,
    b: Run,
    metric: str,
    document: CalibrationDocument,
    ids: AbstractSet[str] | None = None,
    *,
    seed: int = 0,
    level: float = 0.95,
) -> CorrectedDifference:
    """Correct a share in two runs, and their difference, by the error rates of one calibration.

    Parameters
    ----------
    a, b : Run
        Of one judge and the same prompts, see `judge_mismatch`.
    metric : str
    document : CalibrationDocument
    ids : set of str or None
        The cases compared. None: those that both have.
    seed : int
        Random seed of the draws.
    level : float
        Confidence level of the corrected difference.
    """
    cut, judge = document.threshold, judge_error_rates(document)
    before, after = verdict_scores(a, metric), verdict_scores(b, metric)
    cases = [case for case in before if case in after and (ids is None or case in ids)]
    name, n, labels = GOOD_SHARES.get(metric, metric), len(cases), label_count(document)
    if cut is None or isinstance(judge, str) or not cases:
        reason = judge if isinstance(judge, str) else "its calibration has no threshold"
        reason = reason if cases else f"no case has a {metric} verdict in both"
        missing = Estimate.missing(reason, n=n, method="rogan-gladen")
        return CorrectedDifference(name, metric, missing, missing, missing, labels)
    good = [[float(scores[case] >= cut) for case in cases] for scores in (before, after)]
    first, second = (rogan_gladen(int(sum(side)), n, judge) for side in good)
    raw = paired_difference(*good, seed=seed, level=level).difference
    difference = corrected_difference(raw, judge, level=level)
    return CorrectedDifference(name, metric, first, second, difference, labels)


def judge_mismatch(a: Run, b: Run, metric: str, *documents: CalibrationDocument) -> str | None:
    """Return why the error rates of one judge do not apply to both runs; None if they do.

    Parameters
    ----------
    a, b : Run
    metric : str
        Its prompts are compared.
    *documents : CalibrationDocument
    """
    judges = [manifest_of(run).judge for run in (a, b)]
    if judges[0] != judges[1] or not judges[0]:
        named = [judge or "no judge" for judge in judges]
        return f"one run was judged by {named[0]}, the other by {named[1]}"
    prompts: list[dict[str, set[str]]] = []
    for run in (a, b):
        hashes = defaultdict(set)
        for verdict in run.verdicts:
            if verdict.metric == metric and verdict.prompt:
                hashes[verdict.prompt.name].add(verdict.prompt.sha256)
        prompts.append(hashes)
    for name in sorted(prompts[0].keys() & prompts[1].keys()):
        if prompts[0][name] != prompts[1][name]:
            return f"the prompt '{name}' is not the same in both runs"
    for document in documents:
        if document.judge and document.judge != judges[0]:
            return f"the calibration is of the judge {document.judge}, and the runs of {judges[0]}"
        for name, sha256 in document.prompts.items():
            if any(name in hashes and sha256 not in hashes[name] for hashes in prompts):
                return f"the prompt '{name}' is not the one of the calibration"
    return None


def share_width(
    n: int, share: float, *, correlation: float = 0.0, judged: int | None = None
) -> float:
    """Return the width of the interval of a share with `n` labels.

    Parameters
    ----------
    n : int
        Labels, at least 1.
    share : float
        Expected, in [0, 1]: the rate to be estimated, or the judge's accuracy, or its
        sensitivity (`n` then counts the positive cases alone). 0.5 is the worst.
    correlation : float
        Correlation of the judge's verdicts with human labels, in [-1, 1]; it makes
        prediction-powered inference narrower. 0: the labels alone.
    judged : int or None
        All cases with a verdict, labelled or not, at least `n`; required if `correlation` is
        not 0.

    Returns
    -------
    float
        high - low of Wilson's interval; with a correlation rho of the one with
        1 / ((1 - n / judged) (1 - rho^2) / n + 1 / judged) labels.

    Raises
    ------
    ValueError
        A number is outside its range.

    Examples
    --------
    >>> round(share_width(100, 0.5), 2)
    0.19
    >>> round(share_width(100, 0.5, correlation=0.8, judged=2000), 2)
    0.12
    """
    z = critical_value()
    if not 0 <= share <= 1 or not -1 <= correlation <= 1 or n < 1:
        raise ValueError(f"{n} labels, share {share} or correlation {correlation} is out of range")
    effective = float(n)
    if correlation:
        if judged is None or judged < n:
            raise ValueError(f"{judged} judged cases are fewer than {n} labelled ones")
        unexplained = (1 - n / judged) * (1 - correlation**2) / n
        effective = 1 / (unexplained + 1 / judged)
    low, high = wilson_interval(share, effective, z)
    return high - low


def labels_for_share(
    share: float, width: float, *, correlation: float = 0.0, judged: int | None = None
) -> int | None:
    """Return the fewest labels with which the interval of a share has at most a given width.

    Parameters
    ----------
    share, correlation, judged
        As for `share_width`.
    width : float
        Largest high - low, in (0, 1).

    Returns
    -------
    int or None
        None: not even a label on every judged case suffices.

    Raises
    ------
    ValueError
        A number is outside its range.

    References
    ----------
    Piegorsch (2004), Sample sizes for improved binomial confidence intervals.

    Examples
    --------
    >>> labels_for_share(0.5, 0.1), labels_for_share(0.5, 0.1, correlation=0.8, judged=5000)
    (381, 144)
    """
    if not 0 < width < 1:
        raise ValueError(f"a width is between 0 and 1, not {width}")

    def is_narrow(n: int) -> bool:
        return share_width(n, share, correlation=correlation, judged=judged) <= width

    most = judged if judged is not None else _MAX_LABELS
    fewest = 1 + bisect.bisect_left(range(1, most + 1), x=True, key=is_narrow)
    return fewest if fewest <= most else None


def width_curve(
    labels: Sequence[int], share: float, *, correlation: float = 0.0, judged: int | None = None
) -> list[tuple[int, float]]:
    """Return the width of the interval for each number of labels.

    Parameters
    ----------
    labels : sequence of int
        Numbers of labels, each at least 1; those above `judged` are left out.
    share, correlation, judged
        As for `share_width`.

    Returns
    -------
    list of (int, float)
        Labels and width.

    Raises
    ------
    ValueError
        A number is outside its range.

    Examples
    --------
    >>> [(n, round(width, 2)) for n, width in width_curve([50, 200], 0.8)]
    [(50, 0.22), (200, 0.11)]
    """
    return [
        (n, share_width(n, share, correlation=correlation, judged=judged))
        for n in labels
        if judged is None or n <= judged
    ]
