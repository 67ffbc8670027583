"""Calibrate a judge: verdicts and human labels in, one document out."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from misslink.calibration import advice, judge_accuracy
from misslink.calibration.bias import bias_findings, measure_bias
from misslink.calibration.corrected_prevalence import correct_prevalence, labels_needed
from misslink.calibration.inter_annotator import (
    LabelKey,
    LabelPair,
    SettledLabel,
    annotator_agreement,
    describe_sample,
    judge_calls,
    label_weights,
    labels_from_claims,
    pair_answers,
    pair_claims,
    settle_labels,
    tied_answers,
)
from misslink.calibration.stored_calibration import score_distribution
from misslink.calibration.verdicts import MetricVerdicts
from misslink.calibration_document import (
    Audit,
    CalibrationDocument,
    ClaimAgreement,
    Confusion,
)
from misslink.errors import InputError
from misslink.io.labels import Label, Labels
from misslink.io.manifest import display_path, package_version
from misslink.render.format import as_sentence, format_p_value
from misslink.stats.classification import confusion_matrix
from misslink.types import Reason

_FEW_LABELS = 30  # with fewer, most intervals are too wide
_NOTES_SHOWN = 3


def calibrate(
    verdicts: MetricVerdicts,
    labels: Labels,
    *,
    threshold: float | None = None,
    all_verdicts: MetricVerdicts | None = None,
    criteria: advice.TrustCriteria | None = None,
    known_only: bool = False,
    audit: Audit | None = None,
    seed: int = 0,
) -> CalibrationDocument:
    """Compare a judge with human labels.

    Parameters
    ----------
    verdicts : MetricVerdicts
        Of one metric, including those of the labelled cases.
    labels : Labels
        Labels of other metrics are ignored.
    threshold : float or None
        In [0, 1]: a case with this score or more is called good. None: the judge's own cut.
    all_verdicts : MetricVerdicts or None
        All cases that the corrected share is about, labelled or not. None: `verdicts`.
    criteria : TrustCriteria or None
        The requirements for the judge; None: the defaults.
    known_only : bool
        Leave out labels of cases without a verdict, instead of refusing them.
    audit : Audit or None
        What ``misslink judge audit`` found of the run's judge.
    seed : int
        Random seed of every draw.

    Returns
    -------
    CalibrationDocument
        A value that the labels cannot
        support is missing with a reason, and ``notes`` are warnings for the reader.

    Raises
    ------
    InputError
        No label is of the metric, a label is of an unknown case, or the threshold is out of range.
    """
    if threshold is not None and not 0 <= threshold <= 1:
        raise InputError(f"--threshold {threshold:g} is not from 0 to 1")
    criteria = criteria or advice.TrustCriteria()
    if not 0 < criteria.target <= 1:
        raise InputError(f"--target {criteria.target:g} is not above 0 and at most 1")
    cases = verdicts.cases | (all_verdicts.cases if all_verdicts else frozenset())
    own = labels.select_metric(verdicts.metric)
    whose = display_path(verdicts.name)
    labels_of_cases = own.select_cases(cases, whose, leave_out=known_only)
    if all_verdicts is not None:
        verdicts = _with_missing_verdicts(verdicts, all_verdicts)
    answers = {case_id: case.answer_hash for case_id, case in verdicts.items.items()}
    labels_of_run = labels_of_cases.select_answers(answers, whose)
    cut, cut_from = (
        verdicts.decision_threshold() if threshold is None else (threshold, "--threshold")
    )
    consensus = settle_labels(labels_of_run.items)
    gold = labels_from_claims(consensus, verdicts)
    pairs, left_out = pair_answers(gold, verdicts)
    ties = tied_answers(consensus, gold, verdicts)
    tied, _ = pair_answers(ties, verdicts)
    settled = {name: label for (name, claim), label in (gold | ties).items() if claim is None}
    usable = [pair.case_id for pair in (*pairs, *tied)]
    sample = describe_sample({name: settled[name] for name in usable}, verdicts.clusters)
    scored = (all_verdicts or verdicts).scores()
    table = confusion_matrix([pair.good for pair in pairs], judge_calls(pairs, cut))
    probability = judge_accuracy.probability_measures(pairs, seed)
    band, no_band = judge_accuracy.uncertain_band(pairs, criteria.band)
    prevalence = correct_prevalence(pairs, scored, cut, seed, tied, sample)
    stored_audit, no_audit = advice.matching_audit(audit, verdicts)
    document = CalibrationDocument(
        metric=verdicts.metric,
        judge=verdicts.judge,
        prompts=verdicts.prompts,
        judge_identity=dict(verdicts.identity),
        created=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        misslink=package_version("misslink"),
        run=None,
        verdicts_from=display_path(verdicts.name),
        labels_from=display_path(labels.name),
        labels=len(labels_of_run.items),
        seed=seed,
        # With other verdicts the corrected share is not this run's.
        verdicts_sha256=verdicts.sha256 if all_verdicts is None else None,
        n=len(pairs),
        positives=sum(pair.good for pair in pairs),
        threshold=cut,
        threshold_from=cut_from,
        agreement=judge_accuracy.agreement_measures(pairs, cut),
        detection=judge_accuracy.detection_measures(pairs, cut),
        by_exposure=judge_accuracy.error_by_exposure(
            {pair.case_id: pair.good for pair in pairs},
            scored,
            cut,
            verdicts.exposures,
            verdicts.clusters,
            seed=seed,
        ),
        confusion=Confusion(
            true_good=int(table.true_positive),
            false_good=int(table.false_positive),
            true_bad=int(table.true_negative),
            false_bad=int(table.false_negative),
        ),
        baselines=judge_accuracy.trivial_baselines(pairs),
        over_length=judge_accuracy.judge_over_length(pairs),
        human=annotator_agreement(
            labels_of_run.items, _judge_calls(verdicts, labels_of_run.cases, cut), seed
        ),
        labelled=_case_labels(gold),
        label_weights={pair.case_id: pair.weight for pair in pairs if pair.weight is not None},
        label_strata=dict(zip(usable, sample.strata or (), strict=False)),
        label_disputes={
            name: share
            for name, share in zip(usable, sample.disputed or (), strict=False)
            if not math.isnan(share)
        },
        probability={name: estimate.value for name, estimate in probability.items()},
        probability_intervals=probability,
        reliability=judge_accuracy.reliability_diagram(pairs),
        recalibration=judge_accuracy.recalibrate(pairs, seed),
        nested=judge_accuracy.nested_thresholds(pairs, seed, criteria.target),
        uncertain_band=band,
        uncertain_band_reason=str(no_band) if no_band else None,
        corrected=prevalence,
        labels_needed=labels_needed(
            pairs, prevalence.verdicts, prevalence.prediction_powered, prevalence.worth
        ),
        scores=score_distribution(scored.values()),
        bias=measure_bias(pairs, cut),
        claims=_claims_section(consensus.gold, verdicts, cut),
        left_out=left_out,
        unknown_labels=len(own.items) - len(labels_of_cases.items),
        labels_of_other_answers=len(labels_of_cases.items) - len(labels_of_run.items),
        unverified_labels=sum(
            None in (label.answer_hash, answers[label.case_id])
            for label in labels_of_run.items
            if label.case_id in answers
        ),
        audit=stored_audit,
        audit_reason=str(no_audit) if no_audit else None,
        checks=(),
        verdict="",
        reasons=(),
        notes=(),
        others={},
    )
    advised = advice.advise(_advice_numbers(document, pairs), criteria)
    findings = [*bias_findings(document.bias), *advice.audit_findings(stored_audit)]
    findings += map(str, _judge_reasons(document))
    notes = _notes(
        document,
        pairs,
        verdicts,
        labels_of_run.items,
        from_claims=len(gold) - len(consensus.gold),
        ties=prevalence.ties,
    )
    return document.replace(
        checks=advised.checks,
        verdict=advised.verdict,
        reasons=(*advised.reasons, *map(as_sentence, findings)),
        notes=tuple(as_sentence(str(note)) for note in notes),
    )


def _judge_reasons(document: CalibrationDocument) -> list[Reason]:
    """What else a reader must know of the judge."""
    shares = document.corrected.prediction_powered, document.corrected.labelled_only
    widths = [e.high - e.low for e in shares if e and e.low is not None and e.high is not None]
    reasons = []
    if len(widths) == len(shares) and widths[0] >= widths[1]:
        reasons.append(Reason(code="judge_adds_nothing"))
    if document.by_exposure.differs:
        p = format_p_value(document.by_exposure.p)
        reasons.append(Reason(code="judge_errs_differently", p=p))
    return reasons


def _with_missing_verdicts(verdicts: MetricVerdicts, others: MetricVerdicts) -> MetricVerdicts:
    """Add the verdicts that only `others` has."""
    if others.judge and verdicts.judge and others.judge != verdicts.judge:
        raise InputError(
            f"these are verdicts by {others.judge}, the labelled ones by {verdicts.judge}; error "
            "rates of one judge do not apply to another",
            path=others.name,
        )
    items = dict(others.items) | dict(verdicts.items)
    return replace(verdicts, items=items, judge=verdicts.judge or others.judge)


def _judge_calls(
    verdicts: MetricVerdicts, labelled: AbstractSet[str], cut: float
) -> dict[LabelKey, bool]:
    """What the judge calls each labelled case and each of its claims."""
    calls: dict[LabelKey, bool] = {}
    for case_id in labelled & verdicts.items.keys():
        judged = verdicts.items[case_id]
        scores: dict[int | None, float | None] = {None: judged.score}
        scores |= enumerate(judged.claims)
        calls |= {
            (case_id, key): score >= cut for key, score in scores.items() if score is not None
        }
    return calls


def _case_labels(gold: Mapping[LabelKey, SettledLabel]) -> dict[str, float]:
    """The settled label of each case, on the side of the majority."""
    return {
        case_id: label.share if (label.share >= 1 / 2) == label.good else float(label.good)
        for (case_id, claim), label in gold.items()
        if claim is None
    }


def _claims_section(
    gold: Mapping[LabelKey, SettledLabel], verdicts: MetricVerdicts, cut: float
) -> ClaimAgreement | None:
    """Agreement about single claims; None if none was labelled."""
    pairs, unknown = pair_claims(gold, verdicts)
    if not pairs and not unknown:
        return None
    return ClaimAgreement(
        n=len(pairs),
        positives=sum(pair.good for pair in pairs),
        without_verdict=unknown,
        agreement=judge_accuracy.agreement_measures(pairs, cut),
        detection=judge_accuracy.detection_measures(pairs, cut),
    )


def _advice_numbers(
    document: CalibrationDocument, pairs: Sequence[LabelPair]
) -> dict[str, float | None]:
    """The numbers that the advice needs, by the rules' names."""
    agreement, baselines = document.agreement, document.baselines
    good = document.positives
    failed = sum(n for why, n in document.left_out.items() if why != "skipped")
    f1, majority = document.detection["f1"].low, baselines["majority"]["f1"]
    return {
        "labels": len(pairs),
        "rarer_label": min(good, len(pairs) - good),
        "kappa_low": agreement["kappa"].low,
        "balanced_accuracy_low": agreement["balanced_accuracy"].low,
        "over_length_low": document.over_length.low,
        "over_majority_low": None if f1 is None or majority is None else f1 - majority,
        "people_alpha_low": document.human.alpha.low,
        "failed": failed / (failed + len(pairs)) if failed + len(pairs) else None,
        "calibration_error_low": document.probability_intervals["ece"].low,
        "biases": len(bias_findings(document.bias)),
        **advice.audit_numbers(document.audit),
    }


def _notes(
    document: CalibrationDocument,
    pairs: Sequence[LabelPair],
    verdicts: MetricVerdicts,
    labels: Sequence[Label],
    *,
    from_claims: int,
    ties: int,
) -> Iterator[Reason]:
    """What a reader must know of the labels, the annotators and the verdicts."""
    yield from _label_notes(document, pairs, from_claims)
    if document.human.unsettled:
        yield Reason(code="tied_items", items=document.human.unsettled, answers=ties)
    for copy in document.human.copies[:_NOTES_SHOWN]:
        first, second = copy.annotators
        yield Reason(code="copied_labels", first=first, second=second, n=copy.labels)
    yield from _verdict_notes(document, verdicts, pairs)
    if seen := sum(label.judge_shown for label in labels):
        yield Reason(code="verdict_was_shown", seen=seen, n=len(labels))


def _label_notes(
    document: CalibrationDocument, pairs: Sequence[LabelPair], from_claims: int
) -> Iterator[Reason]:
    n, good = document.n, document.positives
    if not n:
        yield Reason(code="no_labelled_verdicts")
    elif n < _FEW_LABELS:
        yield Reason(code="few_labels", n=n)
    if n and good in {0, n}:
        label, other = ("good", "bad") if good else ("bad", "good")
        yield Reason(code="one_sided_labels", n=n, label=label, other=other)
    if unknown := document.unknown_labels:
        yield Reason(code="labels_of_unknown_cases", n=unknown)
    if others := document.labels_of_other_answers:
        yield Reason(code="labels_of_other_answers", n=others)
    if unverified := document.unverified_labels:
        yield Reason(code="unverified_labels", n=unverified)
    if from_claims:
        yield Reason(code="labels_from_claims", n=from_claims)
    if document.claims and (missing := document.claims.without_verdict):
        yield Reason(code="claims_without_verdict", n=missing)
    if label_weights(pairs) is not None:
        yield Reason(code="weighted_labels")
    has_weights = any(pair.weight is not None for pair in pairs)
    if document.corrected.verdicts > n and n and not has_weights:
        yield Reason(code="unweighted_labels")


def _verdict_notes(
    document: CalibrationDocument, verdicts: MetricVerdicts, pairs: Sequence[LabelPair]
) -> Iterator[Reason]:
    for status, cases in sorted(verdicts.unusable.items()):
        reasons = Counter(case.reason or "no reason" for case in cases).most_common(_NOTES_SHOWN)
        yield Reason(code="unusable_verdicts", n=len(cases), status=status, reasons=reasons)
    if document.left_out:
        yield Reason(code="left_out_labels", left_out=dict(document.left_out))
    judges = {case.judge for case in verdicts.items.values() if case.judge}
    if not verdicts.judge:
        yield Reason(code="judge_not_known", judges=len(judges))
    scored = sum(case.score is not None for case in verdicts.items.values())
    lacking = scored - sum(case.probability is not None for case in verdicts.items.values())
    if 0 < lacking < scored:
        yield Reason(code="without_probability", lacking=lacking, scored=scored)
    cut = document.threshold or 0.0
    labelled = [pair for pair in pairs if pair.judged.label is not None]
    if differ := sum((pair.score >= cut) != pair.judged.label for pair in labelled):
        yield Reason(code="other_threshold", cut=cut, differ=differ, n=len(labelled))
    if reason := document.audit_reason:
        yield Reason(code="audit_not_used", why=reason)
