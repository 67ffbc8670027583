"""The share of good cases that annotators would have found, and its difference between runs."""

from __future__ import annotations

import bisect
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from misslink.calibration.inter_annotator import (
    LabelPair,
    LabelSample,
    label_weights,
)
from misslink.calibration.judge_accuracy import judge_confusion
from misslink.calibration.stored_calibration import judge_error_rates, label_count, verdict_scores
from misslink.calibration_document import (
    CalibrationDocument,
    CorrectedPrevalence,
    LabelForecastDocument,
    LabelsNeeded,
)
from misslink.documents import calibrations_of, manifest_of
from misslink.metrics import GOOD_SHARES
from misslink.stats import mean, paired_difference, proportion
from misslink.stats.intervals import critical_value, interval_estimate, wilson_interval
from misslink.stats.prevalence import (
    MIN_LABELS,
    corrected_difference,
    prediction_powered,
    rogan_gladen,
)
from misslink.types import Estimate, Reason, Run

_CURVE_SIZES = (25, 50, 100, 200, 300, 500, 1000, 2000, 5000)
_TARGET_WIDTHS = (0.2, 0.1, 0.05)
_MAX_LABELS = 10_000_000
_EIGHT_OF_TEN = 0.84  # normal quantile


def correct_prevalence(
    pairs: Sequence[LabelPair],
    scores: Mapping[str, float],
    threshold: float,
    seed: int,
    ties: Sequence[LabelPair] = (),
    sample: LabelSample | None = None,
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
    sample : LabelSample or None
        How the labels of `pairs` and `ties` were drawn and given. None: by one annotator, with
        the weights of the pairs.

    Returns
    -------
    CorrectedPrevalence
        ``judge_only``, ``labelled_only``, ``rogan_gladen`` by the delta method,
        ``rogan_gladen_posterior``, both by the weighted rates if cases were drawn with unequal
        chances, ``prediction_powered``; ``power`` and ``worth`` of the last; ``label_error`` of one
        annotator; ``verdicts`` and ``ties``, their numbers. Missing with a reason if the labels do not suffice.
    """
    labelled = [*pairs, *ties]
    everyone = dict(scores) | {label.case_id: label.score for label in labelled}
    ids = {label.case_id for label in labelled}
    n, called = len(everyone), sum(score >= threshold for score in everyone.values())
    if sample is None:
        halves = [*(float(pair.good) for pair in pairs), *(0.5 for _ in ties)]
        sample = LabelSample(halves, label_weights(labelled))
    powered = prediction_powered(
        sample.labels,
        [label.score for label in labelled],
        [score for case_id, score in everyone.items() if case_id not in ids],
        weights=sample.weights,
        strata=sample.strata,
        clusters=sample.clusters,
        disputed=sample.disputed,
        seed=seed,
    )
    judge = judge_confusion(pairs, threshold)
    # Of cases drawn with unequal chances, the rest is no random sample.
    among = label_weights(pairs) is None
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
        label_error=label_error(sample),
        verdicts=n,
        ties=len(ties),
    )


def label_error(sample: LabelSample) -> Estimate:
    """Return how often one annotator errs, by the pairs that disagree: d = 2 e (1 - e)."""
    if sample.disputed is None:
        return Estimate.missing(Reason(code="few_double_labels"))
    told = [share for share in sample.disputed if not math.isnan(share)]
    split = mean(told)
    if split.value is None or split.low is None or split.high is None:
        return split
    ends = (split.value, split.low, split.high)
    error, low, high = ((1 - math.sqrt(max(1 - 2 * end, 0.0))) / 2 for end in ends)
    return interval_estimate(error, low, high, n=len(told), method="two annotators")


def labels_needed(
    pairs: Sequence[LabelPair],
    verdicts: int,
    corrected: Estimate | None = None,
    worth: float | None = None,
) -> LabelsNeeded:
    """Return with how many labels the interval of the corrected share is narrow in 8 of 10 cases.

    A median would do in half of them. So the share is planned at the end nearer to one half, and
    the variance at the upper end, of what these labels allow in 8 of 10 cases.

    Parameters
    ----------
    pairs : sequence of LabelPair
    verdicts : int
        Cases with a verdict, labelled or not.
    corrected : Estimate or None
        The corrected share by these labels, whose width a target is compared with.
    worth : float or None
        How many labels alone would give its precision. None: as many as there are.

    Returns
    -------
    LabelsNeeded
        ``share`` and ``unexplained`` that it is planned with; ``curve`` by number of labels;
        ``for_width``, the fewest labels by target width, None if not even a label on every verdict
        suffices. ``reason`` without labels.
    """
    if not pairs:
        return LabelsNeeded(
            reason=str(Reason(code="no_labelled_case")),
            share=None,
            unexplained=None,
            verdicts=verdicts,
            curve=(),
            for_width={},
        )
    n = len(pairs)
    weights = label_weights(pairs) or [1.0] * n
    good = sum(weight for pair, weight in zip(pairs, weights, strict=True) if pair.good)
    share = min(good / sum(weights), 1.0)
    measured = math.inf
    if corrected is not None and corrected.value is not None:
        share = corrected.value
        if corrected.low is not None and corrected.high is not None:
            measured = corrected.high - corrected.low
    unexplained = _planned_variance(n, verdicts, worth)
    error = math.sqrt(max(share * (1 - share), 0.25 / n) / (worth or n))
    share += math.copysign(min(_EIGHT_OF_TEN * error, abs(0.5 - share)), 0.5 - share)
    sizes = sorted({*(size for size in _CURVE_SIZES if size < verdicts), n, verdicts})
    curve = tuple(
        LabelForecastDocument(
            labels=size,
            width=share_width(size, share, unexplained=unexplained, judged=verdicts),
            labelled_only=share_width(size, share),
        )
        for size in sizes
        if size <= verdicts
    )
    for_width: dict[str, int | None] = {}
    for width in _TARGET_WIDTHS:
        needed = labels_for_share(share, width, unexplained=unexplained, judged=verdicts)
        if measured <= width:  # these labels are enough
            needed = n if needed is None else min(needed, n)
        elif needed is not None and verdicts > n:
            needed = max(needed, n + 1)
        for_width[str(width)] = needed and max(needed, min(MIN_LABELS, verdicts))
    return LabelsNeeded(
        reason=None,
        share=share,
        unexplained=unexplained,
        verdicts=verdicts,
        curve=curve,
        for_width=for_width,
    )


def _planned_variance(n: int, verdicts: int, worth: float | None) -> float:
    """The variance that verdicts leave of a label, as a part of all; over 1 if annotators err.

    >>> round(_planned_variance(100, 1000, 160), 2), _planned_variance(100, 1000, None)
    (0.65, 1.0)
    """
    if worth is None or verdicts <= n:
        return 1.0
    left = max((1 / worth - 1 / verdicts) * n / (1 - n / verdicts), 0.0)
    upper = max(left, 1 / n) * (1 + _EIGHT_OF_TEN * math.sqrt(2 / n))
    return upper if left > 1 else min(upper, 1.0)


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

    def document(self) -> dict[str, object]:
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
) -> tuple[dict[str, CorrectedDifference], tuple[Reason, ...]]:
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
    reasons : tuple of Reason
        Why some or all are not corrected, if a run stores a calibration; empty if neither does.
    """
    stored = calibrations_of(a), calibrations_of(b)
    if not any(stored):
        return {}, ()
    if not all(stored):
        without, other = letters if stored[1] else letters[::-1]
        documents = stored[1] or stored[0]
        mismatches = [judge_mismatch(a, b, metric, each) for metric, each in documents.items()]
        if all(mismatches):  # then it would be refused
            return {}, tuple(dict.fromkeys(filter(None, mismatches)))
        return {}, (Reason(code="one_run_uncalibrated", without=without, other=other),)
    differences: dict[str, CorrectedDifference] = {}
    reasons: list[Reason] = []
    for metric in sorted(stored[0].keys() | stored[1].keys()):
        both = [documents[metric] for documents in stored if metric in documents]
        if len(both) < len(stored):
            reasons.append(Reason(code="one_run_calibrated", metric=metric))
        elif mismatch := judge_mismatch(a, b, metric, *both):
            why = str(mismatch)
            reasons.append(Reason(code="metric_not_corrected", metric=metric, why=why))
        else:
            document = max(both, key=label_count)
            difference = corrected_share_difference(a, b, metric, document, ids, seed=seed)
            differences[difference.name] = difference
    return differences, tuple(dict.fromkeys(reasons))


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
    if cut is None or judge is None or not cases:
        reason = Reason(code="no_threshold" if judge else "no_error_rates")
        reason = reason if cases else Reason(code="no_shared_verdict", metric=metric)
        missing = Estimate.missing(reason, n=n, method="rogan-gladen")
        return CorrectedDifference(name, metric, missing, missing, missing, labels)
    good = [[float(scores[case] >= cut) for case in cases] for scores in (before, after)]
    first, second = (rogan_gladen(int(sum(side)), n, judge) for side in good)
    raw = paired_difference(*good, seed=seed, level=level).difference
    difference = corrected_difference(raw, judge, level=level)
    return CorrectedDifference(name, metric, first, second, difference, labels)


def judge_mismatch(a: Run, b: Run, metric: str, *documents: CalibrationDocument) -> Reason | None:
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
        return Reason(code="runs_of_other_judges", first=judges[0], second=judges[1])
    prompts: list[dict[str, set[str]]] = []
    for run in (a, b):
        hashes = defaultdict(set)
        for verdict in run.scores:
            if verdict.metric == metric and verdict.prompt:
                hashes[verdict.prompt.name].add(verdict.prompt.sha256)
        prompts.append(hashes)
    for name in sorted(prompts[0].keys() & prompts[1].keys()):
        if prompts[0][name] != prompts[1][name]:
            return Reason(code="runs_of_other_prompts", name=name)
    for document in documents:
        if document.judge and document.judge != judges[0]:
            return Reason(
                code="calibration_of_other_judge", calibrated=document.judge, judge=judges[0]
            )
        for name, sha256 in document.prompts.items():
            if any(name in hashes and sha256 not in hashes[name] for hashes in prompts):
                return Reason(code="calibration_of_other_prompt", name=name)
    return None


def share_width(
    n: int, share: float, *, unexplained: float = 1.0, judged: int | None = None
) -> float:
    """Return the width of the interval of a share with `n` labels.

    Parameters
    ----------
    n : int
        Labels, at least 1.
    share : float
        Expected, in [0, 1]: the rate to be estimated, or the judge's accuracy, or its
        sensitivity (`n` then counts the positive cases alone). 0.5 is the worst.
    unexplained : float
        The variance of a label that verdicts leave, at least 0: 1 - rho^2 for prediction-powered
        inference with a correlation rho. 1: the labels alone.
    judged : int or None
        All cases with a verdict, labelled or not, at least `n`; required if `unexplained` is not 1.

    Returns
    -------
    float
        high - low of Wilson's interval, with verdicts of the one with
        1 / ((1 - n / judged) unexplained / n + 1 / judged) labels.

    Raises
    ------
    ValueError
        A number is outside its range.

    Examples
    --------
    >>> round(share_width(100, 0.5), 2)
    0.19
    >>> round(share_width(100, 0.5, unexplained=0.36, judged=2000), 2)
    0.12
    """
    if not 0 <= share <= 1 or unexplained < 0 or n < 1:
        raise ValueError(f"{n} labels, share {share} or part {unexplained} is out of range")
    effective = float(n)
    if unexplained != 1:
        if judged is None or judged < n:
            raise ValueError(f"{judged} judged cases are fewer than {n} labelled ones")
        effective = 1 / ((1 - n / judged) * unexplained / n + 1 / judged)
    low, high = wilson_interval(share, effective, critical_value())
    return high - low


def labels_for_share(
    share: float, width: float, *, unexplained: float = 1.0, judged: int | None = None
) -> int | None:
    """Return the fewest labels with which the interval of a share has at most a given width.

    Parameters
    ----------
    share, unexplained, judged
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
    >>> labels_for_share(0.5, 0.1), labels_for_share(0.5, 0.1, unexplained=0.36, judged=5000)
    (381, 144)
    """
    if not 0 < width < 1:
        raise ValueError(f"a width is between 0 and 1, not {width}")

    def is_narrow(n: int) -> bool:
        return share_width(n, share, unexplained=unexplained, judged=judged) <= width

    most = judged if judged is not None else _MAX_LABELS
    fewest = 1 + bisect.bisect_left(range(1, most + 1), x=True, key=is_narrow)
    return fewest if fewest <= most else None
