"""How well the judge agrees with human labels: rates, baselines, probabilities and thresholds."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Literal

from misslink.calibration.inter_annotator import LabelPair, judge_calls, label_weights
from misslink.calibration_document import (
    FittedThreshold,
    JudgeErrorTest,
    Recalibration,
    Recalibrations,
    ReliabilityBinDocument,
)
from misslink.stats.agreement import kendall_tau, spearman
from misslink.stats.classification import (
    ConfusionMatrix,
    ThresholdAim,
    average_precision,
    confusion_matrix,
    nested_threshold,
)
from misslink.stats.exposure import EXPOSURES, permutation_test
from misslink.stats.probability_calibration import (
    IsotonicCurve,
    PlattCurve,
    brier_score,
    calibration_error,
    cross_fitted_probabilities,
    fit_isotonic,
    fit_platt,
    reliability_bins,
)
from misslink.stats.roc import auroc, auroc_difference
from misslink.types import Estimate, Reason

_MIN_COMPARED = 5  # labels of a kind at an exposure, for its errors to be compared
_SIGNIFICANT = 0.05


def judge_confusion(pairs: Sequence[LabelPair], threshold: float) -> ConfusionMatrix:
    """The 2 x 2 table of people and judge, good being positive; effective cases if weighted."""
    good = [pair.good for pair in pairs]
    return confusion_matrix(good, judge_calls(pairs, threshold), label_weights(pairs))


def agreement_measures(pairs: Sequence[LabelPair], threshold: float) -> dict[str, Estimate]:
    """All measures of agreement about the good label at `threshold`, weighted as the cases are.

    Parameters
    ----------
    pairs : sequence of LabelPair
        None gives measures that are missing and say so.
    threshold : float

    Returns
    -------
    dict of str to Estimate
        Those of the table; AUROC and average precision of the score; Spearman's rho and Kendall's
        tau-b of the score with people's mean label. These two and the average precision are plain.
    """
    good = [(pair.case_id, pair.score) for pair in pairs if pair.good]
    bad = [(pair.case_id, pair.score) for pair in pairs if not pair.good]
    scores = [pair.score for pair in pairs]
    shares = [pair.share for pair in pairs]
    return {
        **judge_confusion(pairs, threshold).estimates(),
        "auroc": auroc(good, bad, _case_weights(pairs)),
        "average_precision": average_precision([pair.good for pair in pairs], scores),
        "spearman": spearman(scores, shares),
        "kendall": kendall_tau(scores, shares),
    }


def _case_weights(pairs: Sequence[LabelPair]) -> dict[str, float]:
    weights = label_weights(pairs) or ()
    return dict(zip((pair.case_id for pair in pairs), weights, strict=False))


def detection_measures(pairs: Sequence[LabelPair], threshold: float) -> dict[str, Estimate]:
    """How well the judge finds what is bad: precision, recall, F1, average precision."""
    confusion = judge_confusion(pairs, threshold).turned
    bad = [not pair.good for pair in pairs]
    return {
        "precision": confusion.precision,
        "recall": confusion.sensitivity,
        "f1": confusion.f1,
        "average_precision": average_precision(bad, [1 - pair.score for pair in pairs]),
    }


def trivial_baselines(pairs: Sequence[LabelPair]) -> dict[str, dict[str, float | None]]:
    """What judges reach that do not read: always the majority's label, and going by the length.

    Parameters
    ----------
    pairs : sequence of LabelPair

    Returns
    -------
    dict
        ``majority``: its accuracy, and its F1 of finding the bad ones (0 where the good ones are
        the more frequent: it finds none). ``length``: the AUROC of finding them by the characters
        of the answer, the longer the worse; None where no length or no second label is known.
    """
    weights = label_weights(pairs) or [1.0] * len(pairs)
    n = sum(weights)
    good = sum(weight for pair, weight in zip(pairs, weights, strict=True) if pair.good)
    accuracy = f1 = None
    if n:
        accuracy = max(good, n - good) / n
        says_bad = 2 * good < n
        f1 = 2 * (n - good) / (2 * n - good) if says_bad else 0.0
    long, short = ([(name, size) for name, _, size in side] for side in _answer_lengths(pairs))
    return {
        "majority": {"accuracy": accuracy, "f1": f1},
        "length": {"auroc": auroc(long, short, _case_weights(pairs)).value},
    }


def judge_over_length(pairs: Sequence[LabelPair]) -> Estimate:
    """Return the judge's AUROC less that of the answer's length, in its better direction."""
    weights, (bad, good) = _case_weights(pairs), _answer_lengths(pairs)
    longer = auroc_difference(bad, good, weights)
    bad, good = ([(name, score, -size) for name, score, size in side] for side in (bad, good))
    shorter = auroc_difference(bad, good, weights)
    return min(longer, shorter, key=lambda estimate: estimate.value or 0.0)


def _answer_lengths(pairs: Sequence[LabelPair]) -> list[list[tuple[str, float, float]]]:
    """Of bad and of good answers the case, how bad the judge calls it, and its characters."""
    sized = [(pair, pair.judged.length) for pair in pairs]
    return [
        [
            (pair.case_id, 1 - pair.score, float(size))
            for pair, size in sized
            if size is not None and pair.good == is_good
        ]
        for is_good in (False, True)
    ]


def error_by_exposure(
    good: Mapping[str, bool],
    scores: Mapping[str, float],
    threshold: float,
    exposures: Mapping[str, str],
    clusters: Mapping[str, Hashable],
    *,
    seed: int = 0,
) -> JudgeErrorTest:
    """Return the judge's error rates where none, some and all of what a case needs was in the prompt.

    Parameters
    ----------
    good : mapping of str to bool
        The label of each labelled case.
    scores : mapping of str to float
        The judge's score of each case.
    threshold : float
    exposures : mapping of str to str
        Of each case 'none', 'some' or 'all'.
    clusters : mapping of str to hashable
        The cluster of each case; a case without one varies by itself.
    seed : int
        Random seed of the permutation test.

    Returns
    -------
    JudgeErrorTest
        ``sensitivity`` and ``specificity`` at each exposure; ``p`` of the test that the judge errs
        alike at all of them, good and bad answers apart, ``differs`` whether it is below 0.05, and
        ``tested``: false, with a ``reason``, unless two exposures have 5 labels of one kind.
    """
    cases = [
        (exposures[name], is_good, scores[name] >= threshold, clusters.get(name, name))
        for name, is_good in sorted(good.items())
        if name in exposures and name in scores
    ]
    tables = {
        name: confusion_matrix(
            [label for level, label, *_ in cases if level == name],
            [call for level, _, call, _ in cases if level == name],
        )
        for name in EXPOSURES
    }
    counts = Counter((level, label) for level, label, *_ in cases)
    kinds = Counter(label for (_, label), n in counts.items() if n >= _MIN_COMPARED)
    compared = [row for row in cases if counts[row[:2]] >= _MIN_COMPARED and kinds[row[1]] > 1]
    p = reason = None
    if compared:
        levels, labels, calls, groups = zip(*compared, strict=True)
        p = permutation_test(levels, calls, labels, groups, seed=seed)
    else:
        reason = str(Reason(code="few_to_compare" if cases else "no_exposure_in_labels"))
    unknown = reason if not cases else None  # else the rates would say that no label is good
    none, some, whole = (
        {
            "sensitivity": Estimate.missing(unknown) if unknown else tables[name].sensitivity,
            "specificity": Estimate.missing(unknown) if unknown else tables[name].specificity,
        }
        for name in EXPOSURES
    )
    return JudgeErrorTest(
        tested=p is not None,
        differs=None if p is None else p < _SIGNIFICANT,
        p=p,
        reason=reason,
        none=none,
        some=some,
        all=whole,
    )


_MIN_LABELS = 30  # to fit the uncertain band
_MIN_RARER_LABELS = 5  # of either label; a curve through fewer is chance
TARGET_RATE = 0.9  # precision, and recall, that fitted thresholds are to reach


def probability_measures(pairs: Sequence[LabelPair], seed: int) -> dict[str, Estimate]:
    """Return Brier score and expected calibration error; missing if there is no probability."""
    return _probability_errors(*_labelled_probabilities(pairs), seed)


def _probability_errors(
    good: Sequence[bool], chance: Sequence[float], seed: int
) -> dict[str, Estimate]:
    return {
        "brier": brier_score(good, chance, seed=seed),
        "ece": calibration_error(good, chance, seed=seed),
    }


def reliability_diagram(pairs: Sequence[LabelPair]) -> tuple[ReliabilityBinDocument, ...]:
    """Return the reliability diagram: ten bins, empty ones too; none without probabilities."""
    return tuple(
        ReliabilityBinDocument(
            low=each.low, high=each.high, n=each.n, predicted=each.predicted, good=each.good
        )
        for each in reliability_bins(*_labelled_probabilities(pairs))
    )


def recalibrate(pairs: Sequence[LabelPair], seed: int) -> Recalibrations:
    """Return Brier score and calibration error after recalibration, cross-fitted, and the curves.

    Returns
    -------
    Recalibrations
        By form; ``reason`` if there is nothing to fit on.
    """
    good, chance = _labelled_probabilities(pairs)
    reason = _too_few_reason(good, "no_probability")
    if reason:
        return Recalibrations(reason=reason, platt=None, isotonic=None)

    def fitted(
        form: Literal["platt", "isotonic"], curve: PlattCurve | IsotonicCurve
    ) -> Recalibration:
        recalibrated = cross_fitted_probabilities(good, chance, method=form, seed=seed)
        errors = _probability_errors(good, recalibrated, seed)
        numbers = {
            name: number if isinstance(number, float) else list(number)
            for name, number in vars(curve).items()
        }
        return Recalibration(brier=errors["brier"], ece=errors["ece"], curve=numbers)

    return Recalibrations(
        reason=None,
        platt=fitted("platt", fit_platt(good, chance)),
        isotonic=fitted("isotonic", fit_isotonic(good, chance)),
    )


def nested_thresholds(
    pairs: Sequence[LabelPair], seed: int, target: float = TARGET_RATE
) -> dict[str, FittedThreshold | str | None]:
    """Return thresholds fitted for finding bad cases, with their cross-fitted performance.

    Parameters
    ----------
    pairs : sequence of LabelPair
    seed : int
    target : float
        In (0, 1]: the precision that one threshold is to reach, and the recall of another.

    Returns
    -------
    dict
        By aim 'f1', 'precision_0.9', 'recall_0.9' (or another target): ``threshold`` (None: none
        reaches it), ``of_folds`` and ``detection``, cross-fitted. ``reason`` if there is nothing
        to fit on.
    """
    good, scores = [pair.good for pair in pairs], [pair.score for pair in pairs]
    reason = _too_few_reason(good, "nothing_labelled")
    document: dict[str, FittedThreshold | str | None] = {"reason": reason}
    if reason:
        return document
    aims: tuple[tuple[str, ThresholdAim, float | None], ...] = (
        ("f1", "f1", None),
        (f"precision_{target:g}", "precision", target),
        (f"recall_{target:g}", "sensitivity", target),
    )
    for name, aim, rate in aims:
        nested = nested_threshold(good, scores, aim=aim, target=rate, find=False, seed=seed)
        bad = nested.measured.turned
        document[name] = FittedThreshold(
            threshold=nested.threshold,
            of_folds=tuple(nested.of_folds),
            detection={"precision": bad.precision, "recall": bad.sensitivity, "f1": bad.f1},
        )
    return document


def uncertain_band(
    pairs: Sequence[LabelPair], certainty: float
) -> tuple[tuple[float, float] | None, Reason | None]:
    """Return the probabilities at which either call would be wrong too often.

    Parameters
    ----------
    pairs : sequence of LabelPair
    certainty : float
        Share of calls that must be correct, in (0.5, 1).

    Returns
    -------
    band : (low, high) or None
        Where a Platt curve through the labels gives a good case a probability between
        1 - `certainty` and `certainty`.
    reason : Reason or None
        Why there is none.
    """
    good, chance = _labelled_probabilities(pairs)
    if len(good) < _MIN_LABELS or min(sum(good), len(good) - sum(good)) < _MIN_RARER_LABELS:
        least = {"labels": _MIN_LABELS, "rarer": _MIN_RARER_LABELS}
        return None, Reason(code="few_labels_for_band", **least)
    curve = fit_platt(good, chance)
    if curve.slope <= 0:
        return None, Reason(code="band_of_no_use")
    logit = math.log(certainty / (1 - certainty))
    low = max((-logit - curve.intercept) / curve.slope, 0.0)
    high = min((logit - curve.intercept) / curve.slope, 1.0)
    if low >= high:
        return None, Reason(code="certain_everywhere", certainty=certainty)
    return (low, high), None


def _labelled_probabilities(pairs: Sequence[LabelPair]) -> tuple[list[bool], list[float]]:
    both = [(pair.good, pair.probability) for pair in pairs if pair.probability is not None]
    return [good for good, _ in both], [chance for _, chance in both]


def _too_few_reason(good: Sequence[bool], none: str) -> str | None:
    """Why nothing can be fitted on labels; the code `none` where there are none."""
    rarer = min(sum(good), len(good) - sum(good))
    if good and rarer >= 2:
        return None
    reason = Reason(code="few_of_rarer_label", n=rarer) if good else Reason(code=none)
    return str(reason)
