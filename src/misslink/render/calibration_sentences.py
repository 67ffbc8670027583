"""The sentences about a calibration: labels, verdicts, trust, biases and corrected shares."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from misslink.render.format import format_p_value, format_share_of, pluralize
from misslink.types import Estimate

_TRUST_CHECKS = {  # the sentence of each rule, and how its number is formatted
    "labels": ("labelled cases: {}", "count"),
    "rarer_label": ("cases of the rarer label: {}", "count"),
    "kappa_low": ("kappa of judge and annotators may be as low as {}", "decimal"),
    "balanced_accuracy_low": (
        "balanced accuracy may be as low as {}, and 50% is chance",
        "share",
    ),
    "over_length_low": (
        "the judge's AUROC minus that of the answer's length may be as low as {}",
        "decimal",
    ),
    "over_majority_low": (
        "F1 of finding bad cases minus that of a constant label may be as low as {}",
        "decimal",
    ),
    "people_alpha_low": ("annotators may agree at an alpha as low as {}", "decimal"),
    "failed": ("{} of labelled cases have no usable verdict", "share"),
    "calibration_error_low": ("probabilities are off by {} or more on average", "decimal"),
    "biases": ("biases found in the judge: {}", "count"),
    "padding_flips_low": (
        "{} or more of the verdicts change if an answer is padded with empty words",
        "share",
    ),
    "order_flips_low": (
        "{} or more of the verdicts change with the order of the passages",
        "share",
    ),
    "again_flips_low": ("{} or more of the verdicts change if the judge answers twice", "share"),
}
_UNKNOWN_NUMBERS = {
    "balanced_accuracy_low": "balanced accuracy is not known; it needs labels of both kinds",
    "over_majority_low": (
        "F1 of finding bad cases is not known: neither annotators nor judge found any"
    ),
}


def describe_trust_check(
    name: str, number: float | None, limit: float, met: str | None, *, at_most: bool
) -> str:
    """Return the number of a trust rule beside the limit that decided what it `met`."""
    if number is None:
        return _UNKNOWN_NUMBERS.get(name, f"{name.replace('_', ' ')} is not known")
    says, form = _TRUST_CHECKS[name]
    text = at_limit = ""
    for more in range(5):  # more digits than usual, if they tell the number from its limit
        text, at_limit = (_format_number(value, form, more) for value in (number, limit))
        if text != at_limit or number == limit:
            break
    side = f"{'at most' if at_most else 'at least'} {at_limit}"
    purpose = "use it at all" if met == "do not use" else "trust it"
    verb = "are" if form == "count" else "is"
    return f"{says.format(text)}; {side} {verb} needed to {purpose}"


def _format_number(number: float, form: str, more: int) -> str:
    if form == "count":
        return f"{number:,.0f}"
    return f"{100 * number:.{more}f}%" if form == "share" else f"{number:.{2 + more}f}"


_COVARIATES = {
    "length": "longer answers",
    "passages": "more passages",
    "evidence_position": "evidence at a later rank",
}


def _answers_with(covariate: str) -> str:
    category = covariate.removeprefix("tag ").replace(": ", " ", 1)
    return _COVARIATES.get(covariate, f"answers with the {category}")


def _pair_preference(covariate: str, share: Estimate) -> str:
    other = f"the one with the {covariate.replace(': ', ' ')}"
    return (
        "of two answers to one question with the same label, the judge scores "
        f"{'the longer one' if covariate == 'length' else other} higher in "
        f"{format_share_of(share, 'pair')}"
    )


def _scores_drifted(
    metric: str, distance: float, p: float, before: tuple[int, float], now: tuple[int, float]
) -> str:
    p_value = format_p_value(p) if p < 0.001 else f"p = {p:.3f}"
    return (
        f"the judge's scores of {metric} have changed since it was calibrated: their mean was "
        f"{before[1]:.2f} over {before[0]:,} and is {now[1]:.2f} over {now[0]:,} "
        f"(Kolmogorov-Smirnov D = {distance:.2f}, {p_value}); the answers or the judge have "
        "changed, so label some new answers"
    )


def _corrected_by_other_labels(labels: int, *, other_run: bool) -> str:
    whose = "of another run" if other_run else "of this run or of another"
    return (
        f"by the judge's error rates on {pluralize(labels, 'label')} {whose}; valid if the judge "
        "has the same error rates here"
    )


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
    # where a threshold is from, and what a coefficient is per
    "cut_of_judge": "the judge's own",
    "cut_of_labels": "the judge's own labels",
    "cut_of_half": "one half",
    "coefficient_unit": lambda sd: (
        "category against the others" if sd is None else f"{sd:.4g} (one SD)"
    ),
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
    # whether an audit is of the judge that is calibrated
    "audit_of_other_metric": "it does not cover {metric}",
    "audit_of_other_judge": lambda audited, judge: (
        f"it is of {audited}, the verdicts are of {judge or 'an unknown judge'}"
    ),
    "audit_of_other_prompt": "the prompt '{name}' was different",
    "audit_of_other_setting": "{setting} of the judge was different",
    # biases
    "no_labelled_pair": "no two answers to the same question have a label",
    "no_differing_pair": "no two answers to the same question with the same label differ in this",
    "only_tied_pairs": "the judge scores both answers of every pair the same",
    "no_pair": "there is no pair to compare",
    "one_score": "the judge gives every answer the same score",
    "only_judge_errors": "the judge makes only errors",
    "no_judge_error": "the judge makes no error here",
    "covariate_unknown": lambda covariate: (
        f"{covariate.replace('_', ' ')}: known for too few labelled cases, or equal in all of them"
    ),
    "pair_preference": _pair_preference,
    "errors_by_covariate": lambda covariate, more: (
        f"the judge errs {'more' if more else 'less'} on {_answers_with(covariate)}"
    ),
    "pull_by_covariate": lambda covariate, lenient: (
        f"it is too {'lenient' if lenient else 'strict'} on {_answers_with(covariate)}"
    ),
    "constant_outcome": "the outcome is the same in every case",
    "constant_number": "the number is the same in every case",
    "collinear_number": "the number is determined by another one",
    "open_interval": "its interval has no end",
    # annotators
    "one_annotator": ("only one annotator labelled, so agreement between annotators is not known"),
    "no_item_labelled_twice": (
        "no item was labelled by two annotators, so agreement between annotators is not known"
    ),
    "kappa_of_two": "kappa compares two annotators, not {annotators}",
    "items_without_verdict": "the judge has no verdict on these items",
    "items_of_one_annotator": "no other annotator labelled these items",
    "few_double_labels": "fewer than 30 cases have the labels of two annotators",
    "no_labelled_case": "no case is labelled",
    "no_labels": "there are no labels",
    # probabilities and thresholds
    "no_probability": "the judge gives no probability",
    "nothing_labelled": "no labelled case has a verdict",
    "few_of_rarer_label": ("the rarer label has {n} cases; fitting and measuring needs 2 or more"),
    "few_labels_for_band": (
        "a band needs {labels} labels with a probability, {rarer} of either kind"
    ),
    "band_of_no_use": "good cases have no higher probability than bad ones, so no band helps",
    "certain_everywhere": "one of the two calls is {certainty:.0%} certain at every probability",
    # corrected shares
    "no_error_rates": "its calibration has no error rates of the judge",
    "no_threshold": "its calibration has no threshold",
    "no_verdict": "no case has a {metric} verdict",
    "no_shared_verdict": "no case has a {metric} verdict in both",
    "corrected_by_prediction": lambda labels: (
        f"by prediction-powered inference from {pluralize(labels, 'label')} of this run's verdicts"
    ),
    "corrected_by_own_labels": lambda labels: (
        f"by the judge's error rates on {pluralize(labels, 'label')} of this run's verdicts"
    ),
    "corrected_by_other_labels": _corrected_by_other_labels,
    "judge_not_above_chance": (
        "{n} labels do not show that the judge is better than chance: its balanced accuracy is "
        "{accuracy:.2f}, and could be {low:.2f}"
    ),
    "scores_drifted": _scores_drifted,
    "one_run_uncalibrated": (
        "{without} has no calibration; evaluate it with  --calibration {other}/calibration.json, "
        "and both are corrected"
    ),
    "one_run_calibrated": "only one run has a calibration of {metric}",
    "metric_not_corrected": "{metric}: {why}",
    "runs_of_other_judges": lambda first, second: (
        f"one run was judged by {first or 'no judge'}, the other by {second or 'no judge'}"
    ),
    "runs_of_other_prompts": "the prompt '{name}' is not the same in both runs",
    "calibration_of_other_judge": (
        "the calibration is of the judge {calibrated}, and the runs of {judge}"
    ),
    "calibration_of_other_prompt": "the prompt '{name}' is not the one of the calibration",
    "unverified_labels": "labels that do not say which answer they are of (answer_hash): {n}; those of "
    "earlier answers would count, too. misslink annotate and its exports write it",
}
