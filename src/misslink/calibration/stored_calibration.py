"""The calibrations stored in a run: the shares corrected by them, and whether scores have drifted since."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from misslink.calibration.verdicts import hash_verdicts
from misslink.calibration_document import CalibrationDocument, ScoreDistribution
from misslink.documents import CorrectedShare, Drift, calibrations_of
from misslink.io.numbers import parse_estimate
from misslink.metrics import GOOD_SHARES
from misslink.render.format import as_sentence
from misslink.stats import proportion
from misslink.stats.classification import ConfusionMatrix, ErrorRates
from misslink.stats.prevalence import rogan_gladen
from misslink.types import Estimate, Reason, Run

RATE_NAMES = ("sensitivity", "specificity")
LINKING_METRIC = "faithfulness"  # its calibration corrects risks and makes failures inconclusive
PREDICTION_POWERED, ROGAN_GLADEN = "prediction-powered", "rogan-gladen"


def verdict_scores(run: Run, metric: str) -> dict[str, float]:
    """Return the probability of the good label, else the value, by scored case."""
    return {
        verdict.case_id: verdict.value if verdict.probability is None else verdict.probability
        for verdict in run.scores
        if verdict.metric == metric and verdict.value is not None
    }


def judge_error_rates(document: CalibrationDocument) -> ConfusionMatrix | ErrorRates | None:
    """Return the judge's errors by a calibration; None if it does not have them.

    Of a weighted sample the rates count, not the plain table.
    """
    table, weighted = document.confusion, len(set(document.label_weights.values())) > 1
    if table is not None and not weighted:
        return ConfusionMatrix(table.true_good, table.false_bad, table.false_good, table.true_bad)
    return _error_rates(document.agreement, document)


def label_count(document: CalibrationDocument) -> int:
    """Return the number of labelled cases of a calibration."""
    judge = judge_error_rates(document)
    return document.n or (judge.n if judge else 0)


def read_estimate(value: object) -> Estimate | None:
    """Return the estimate of a JSON value; None if it is not an object."""
    return parse_estimate(value) if isinstance(value, Mapping) else None


def _error_rates(
    estimates: Mapping[str, Estimate], document: CalibrationDocument
) -> ErrorRates | None:
    rates = [estimates[name] for name in RATE_NAMES if name in estimates]
    valid = all(rate.value is None or (0 <= rate.value <= 1 and rate.n) for rate in rates)
    return ErrorRates(rates[0], rates[1], document.n or None) if valid and len(rates) == 2 else None


@dataclass(frozen=True)
class CorrectedRate:
    """A share of good answers, as the judge calls them and corrected.

    Parameters
    ----------
    name : str
        Of the share: 'fully_faithful', 'correct', else the metric.
    metric : str
    raw : Estimate
        Share that the judge calls good at the calibration's threshold.
    estimate : Estimate
        Share that annotators would call good; missing with a reason if the labels do not suffice.
    by : {'prediction-powered', 'rogan-gladen'}
    labels : int
        Labelled cases behind it; by prediction-powered inference including ties.
    own : bool
        Whether they are labels of this run's own verdicts.
    note : str
        The method and the labels, as a sentence.
    """

    name: str
    metric: str
    raw: Estimate
    estimate: Estimate
    by: str
    labels: int
    own: bool
    note: str

    def summary_entry(self) -> CorrectedShare:
        """Return it as a run's summary has it."""
        return CorrectedShare(
            raw=self.raw,
            estimate=self.estimate,
            by=self.by,
            labels=self.labels,
            own=self.own,
            note=self.note,
        )


def stored_calibrations(run: Run) -> dict[str, Mapping[str, Any]]:
    """Return the calibration documents that a run stores, by metric."""
    return _documents_by_metric(run.calibration)


def _documents_by_metric(stored: Any) -> dict[str, Mapping[str, Any]]:
    """The documents of a calibration file, the one on top first."""
    if not isinstance(stored, Mapping):
        return {}
    documents: dict[str, Mapping[str, Any]] = {}
    metric, others = stored.get("metric"), stored.get("others")
    if isinstance(metric, str) and metric:
        documents[metric] = {name: value for name, value in stored.items() if name != "others"}
    for name, document in others.items() if isinstance(others, Mapping) else ():
        if isinstance(document, Mapping):
            documents.setdefault(name, document)
    return documents


def current_calibrations(run: Run) -> frozenset[str]:
    """Return the metrics whose stored calibration is of this run's own verdicts."""
    return frozenset(
        metric
        for metric, document in calibrations_of(run).items()
        if document.verdicts_sha256 == hash_verdicts(run, metric)
    )


def merge_calibration(
    stored: Mapping[str, Any] | None, document: Mapping[str, Any]
) -> dict[str, Any]:
    """Add a document to those that a run stores, in place of that metric's.

    Returns
    -------
    dict
        Faithfulness's document with the others under its key ``others``, by metric; without one,
        the document that was on top stays there.
    """
    documents = _documents_by_metric(stored)
    metric = str(document["metric"])
    documents[metric] = {name: value for name, value in document.items() if name != "others"}
    top = LINKING_METRIC if LINKING_METRIC in documents else next(iter(documents))
    others = {name: documents[name] for name in sorted(documents) if name != top}
    return {**documents[top], "others": others}


def corrected_shares(run: Run, ids: AbstractSet[str] | None = None) -> dict[str, CorrectedRate]:
    """Correct the shares of good answers by the calibrations that a run stores.

    Parameters
    ----------
    run : Run
    ids : set of str or None
        The cases that the shares are about. None: all.

    Returns
    -------
    dict of str to CorrectedRate
        By the name of the share; empty without a calibration. With labels of this run's own
        verdicts by prediction-powered inference, as ``misslink calibrate`` computed it; with labels
        of another run, or for a part of the cases, by the judge's error rates (Rogan and Gladen),
        which are then assumed to be the same here.
    """
    shares = [
        _corrected_share(run, metric, document, ids)
        for metric, document in calibrations_of(run).items()
    ]
    return {share.name: share for share in shares}


def _corrected_share(
    run: Run, metric: str, document: CalibrationDocument, ids: AbstractSet[str] | None
) -> CorrectedRate:
    everyone = verdict_scores(run, metric)
    scores = [score for case_id, score in everyone.items() if ids is None or case_id in ids]
    called = 0
    if document.threshold is None or not scores:
        why = Reason(code="no_threshold") if scores else Reason(code="no_verdict", metric=metric)
        raw = Estimate.missing(why, n=len(scores))
    else:
        called = sum(score >= document.threshold for score in scores)
        raw = proportion(called, len(scores))
    own = bool(scores) and document.verdicts_sha256 == hash_verdicts(run, metric)
    estimate, method = _share_estimate(document, raw, called, own and len(scores) == len(everyone))
    labels = label_count(document)
    if method == PREDICTION_POWERED:  # ties count as half good
        labels += document.corrected.ties
    note = Reason(code="corrected_by_own_labels", labels=labels)
    if method == PREDICTION_POWERED:
        note = Reason(code="corrected_by_prediction", labels=labels)
    elif not own:
        other = document.verdicts_sha256 is not None
        note = Reason(code="corrected_by_other_labels", labels=labels, other_run=other)
    name, text = GOOD_SHARES.get(metric, metric), as_sentence(str(note))
    return CorrectedRate(name, metric, raw, estimate, method, labels, own, text)


def _share_estimate(
    document: CalibrationDocument, raw: Estimate, called: int, whole: bool
) -> tuple[Estimate, str]:
    """The corrected share, and how; `whole`: the document's own numbers are about these cases."""
    if raw.value is None:
        return Estimate.missing(raw.why, n=raw.n), ROGAN_GLADEN
    corrected = document.corrected
    methods = (
        (corrected.prediction_powered, PREDICTION_POWERED),
        (corrected.rogan_gladen, ROGAN_GLADEN),
    )
    if estimates := [(estimate, method) for estimate, method in methods if whole and estimate]:
        return next((entry for entry in estimates if entry[0].value is not None), estimates[0])
    judge = judge_error_rates(document)
    if judge is None:
        unknown = Reason(code="no_error_rates")
        return Estimate.missing(unknown, n=raw.n, method=ROGAN_GLADEN), ROGAN_GLADEN
    return rogan_gladen(called, raw.n, judge), ROGAN_GLADEN


_MIN_SCORES = 30  # scores on either side
_ALPHA = 0.01
_MIN_DISTANCE = 0.1  # a smaller difference matters little, however sure it is
_DIGITS = 2


@dataclass(frozen=True)
class ScoreDrift:
    """Scores of one metric whose distribution changed since the judge was calibrated.

    Parameters
    ----------
    metric : str
    distance : float
        Kolmogorov and Smirnov's D: the largest difference of the cumulative shares.
    p : float
    before, now : (int, float)
        Number of scores and their mean, at calibration and now.
    """

    metric: str
    distance: float
    p: float
    before: tuple[int, float]
    now: tuple[int, float]

    @property
    def sentence(self) -> str:
        """The change, with its numbers, and the action to take."""
        return as_sentence(str(Reason(code="scores_drifted", **vars(self))))

    def summary_entry(self) -> Drift:
        """Return it as a run's summary has it."""
        return Drift(
            distance=self.distance,
            p=self.p,
            n_before=self.before[0],
            mean_before=self.before[1],
            n=self.now[0],
            mean=self.now[1],
            sentence=self.sentence,
        )


def score_distribution(scores: Iterable[float]) -> ScoreDistribution:
    """Count scores, rounded to two digits."""
    counts = Counter(round(score, _DIGITS) for score in scores)
    return ScoreDistribution(n=counts.total(), counts=dict(sorted(counts.items())))


def detect_drift(document: CalibrationDocument, scores: Iterable[float]) -> ScoreDrift | None:
    """Compare scores with those that a judge was calibrated on.

    Parameters
    ----------
    document : CalibrationDocument
    scores : iterable of float
        Of another run, in [0, 1].

    Returns
    -------
    ScoreDrift or None
        None if the distributions agree (p of 0.01 and more, or D under 0.1), if the calibration
        has no scores, or if either side has fewer than 30.

    References
    ----------
    Smirnov (1948), Table for estimating the goodness of fit of empirical distributions. With ties,
    as of rounded scores, the p-value is too large and never too small.
    """
    before = Counter(document.scores.counts)
    now = Counter(round(score, _DIGITS) for score in scores)
    sizes = before.total(), now.total()
    if min(sizes) < _MIN_SCORES:
        return None
    distance, share = 0.0, 0.0
    for score in sorted({*before, *now}):
        share += before[score] / sizes[0] - now[score] / sizes[1]
        distance = max(distance, abs(share))
    from scipy.special import kolmogorov

    p = float(kolmogorov(distance * math.sqrt(sizes[0] * sizes[1] / sum(sizes))))
    if distance < _MIN_DISTANCE or p >= _ALPHA:
        return None
    means = [sum(score * n for score, n in c.items()) / c.total() for c in (before, now)]
    return ScoreDrift(document.metric, distance, p, (sizes[0], means[0]), (sizes[1], means[1]))
