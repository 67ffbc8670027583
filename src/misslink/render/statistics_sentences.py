"""The sentences that say why a statistic has no value or no interval."""

from __future__ import annotations

from collections.abc import Callable


def _equal_differences(by: float) -> str:
    problem = "all cases differ by the same" if by else "no case differs"
    return f"{problem}, so the differences have no spread"


STATISTICS_SENTENCES: dict[str, str | Callable[..., str]] = {
    # agreement and correlation
    "no_double_rating": "no item has two ratings",
    "constant_ratings": "all ratings are the same: there is no disagreement to expect",
    "constant_categories": "both raters always use the same category, so chance agreement is 1",
    "one_category": "chance agreement needs two categories",
    "correlation_of_one": "a correlation needs two cases",
    "constant_side": "all numbers of one side are equal",
    "perfect_correlation": "a perfect correlation has no interval",
    "few_cases_for_interval": "{n} cases have no interval",
    # groups and strata
    "no_cases_in_group": "no cases in the {group} group",
    "no_outcome_for_ratio": (
        "none of the {n} cases of the second group has the outcome, so there is no ratio"
    ),
    "no_bad_answer_to_attribute": "no bad answer to attribute",
    "no_hit": "no case with a hit",
    "no_bad_hit_in_strata": "no hit is bad in the strata that are compared, so there is no ratio",
    "no_mixed_stratum": "no stratum has both misses and hits",
    "no_strata": "no strata",
    "empty_group": "one of the two groups is empty",
    "small_group": "one of the two groups has fewer than two cases",
    "one_group": "fewer than two groups have cases",
    "one_outcome": lambda bad, cases: f"{'all' if bad else 'none'} of the {cases} cases are bad",
    # labels and calls
    "no_positive_label": "no case has the positive label",
    "no_negative_label": "no case has the negative label",
    "no_positive_call": "the judge calls no case positive",
    "labels_unlike_the_rest": (
        "the judge calls {side} cases good than its errors on the {n} labelled cases allow: the "
        "labelled cases differ from the rest"
    ),
    "labels_unlike_these": (
        "the judge sees a larger difference than its errors on the {n} labelled cases allow: the "
        "labelled cases differ from these"
    ),
    "few_labels_for_level": "{n} labels are too few for a level of {level:.4g}",
    "few_labels_to_correct": (
        "{n} labels are too few to correct the judge by; {needed} are needed"
    ),
    # means, differences and experiments
    "no_values": "no values",
    "one_value": "one value has no interval",
    "equal_values": "all values are equal",
    "few_values": "{n} values are too few for an interval",
    "one_cluster": "one cluster does not show how clusters differ",
    "no_shared_value": "no case has a value in both",
    "one_shared_value": "fewer than two cases have a value in both",
    "no_difference": "no case differs",
    "equal_differences": _equal_differences,
    "dependent_cases": "cases of a cluster are not independent",
    "effect_size": "an effect size is given without an interval",
    "no_change": "no case changed",
    "no_loss_for_odds": "no case changed from yes to no, so there are no odds",
    "one_run_without_interval": "one run has no interval",
    "no_unit_value": "no unit has a value",
    "one_unit": "one unit does not show how units differ",
    "equal_units": "all units are equal",
    "few_units": "each variant needs {needed} units first",
    "units_without_spread": "there are too few units, or all have the same value",
    "variant_without_value": "a variant has no unit with a value",
    # control charts
    "learning": "{n} of {of} runs to learn from",
    "unsteady": "no {learn} runs in a row are steady enough to learn from",
}
