"""The sentences about the labels and verdicts of a calibration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from misslink.render.format import pluralize


def _one_sided_labels(n: int, label: str, other: str) -> str:
    return (
        f"every labelled case ({n:,}) is {label}: the judge was not measured on {other} ones. Label "
        f"cases that it calls {other}"
    )


def _tied_items(items: int, answers: int) -> str:
    counted = (
        f"the labels-only and the prediction-powered share count {pluralize(answers, 'tied answer')} "
        "as half good; "
        if answers
        else ""
    )
    return (
        f"{pluralize(items, 'tied item')} left out of agreement, error rates and Rogan-Gladen "
        f"correction; {counted}settle ties with a label by 'adjudicated'"
    )


def _unusable_verdicts(n: int, status: str, reasons: Sequence[tuple[str, int]]) -> str:
    causes = "; ".join(f"{count} x {reason[:100]}" for reason, count in reasons)
    return f"{pluralize(n, 'verdict')} {status} and not counted: {causes}"


def _left_out_labels(left_out: Mapping[str, int]) -> str:
    causes = ", ".join(f"{count} {why}" for why, count in sorted(left_out.items()))
    return f"labelled cases without a usable verdict are left out: {causes}"


def _judge_not_known(judges: int) -> str:
    several = f"{judges} judges" if judges else "no judge"
    return f"the verdicts name {several}, so it is not known which judge was calibrated"


CALIBRATION_SENTENCES: dict[str, str | Callable[..., str]] = {
    "no_labelled_verdicts": "no labelled case has a usable verdict, so the judge was not measured",
    "few_labels": lambda n: (
        f"only {pluralize(n, 'case')} with a label and a verdict: intervals are wide"
    ),
    "one_sided_labels": _one_sided_labels,
    "labels_of_unknown_cases": "labels of unknown cases left out: {n:,}",
    "labels_of_other_answers": "labels of other answers left out: {n:,}",
    "labels_from_claims": lambda n: (
        f"{pluralize(n, 'case')} got a label from the labels of the claims"
    ),
    "claims_without_verdict": "labels of claims without a verdict left out: {n:,}",
    "weighted_labels": (
        "labelled cases were drawn with unequal chances: the table, average precision, rank "
        "correlations and probabilities are plain; everything else uses the chances"
    ),
    "unweighted_labels": (
        "the corrected share is valid if the labelled cases were drawn at random from all; "
        "otherwise give a weight with each label"
    ),
    "tied_items": _tied_items,
    "copied_labels": (
        "the annotators {first} and {second} gave the same label to all {n} items that both "
        "labelled; if one file is a copy, their agreement means nothing"
    ),
    "unusable_verdicts": _unusable_verdicts,
    "left_out_labels": _left_out_labels,
    "judge_not_known": _judge_not_known,
    "without_probability": (
        "{lacking:,} of {scored:,} verdicts without a probability: the value is used"
    ),
    "other_threshold": lambda cut, differ, n: (
        f"at the threshold {cut:.4g} the judge's call differs from its own label in {differ:,} of "
        f"{pluralize(n, 'case')}"
    ),
    "audit_not_used": (
        "the run's audit of a judge is not used here: {why};  misslink judge audit RUN  makes one "
        "that is"
    ),
    "verdict_was_shown": (
        "{seen:,} of {n:,} labels were given after the judge's verdict was shown; agreement on them "
        "may be too high"
    ),
}
