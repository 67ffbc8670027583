"""The sentences about a comparison of runs: settings, labels, and cases without a value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from misslink.render.format import pluralize

_UNMEASURED = {
    "app_failed": "the app failed on",
    "retrieval_unknown": "retrieval is unknown for",
    "no_trace": "there is no trace of",
    "no_value": "there is no value of",
}


def describe_unmeasured(counts: Mapping[str, int]) -> str:
    """Describe why cases have no value, by the number of cases of each reason code."""
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    return ", and ".join(f"{_UNMEASURED[code]} {pluralize(n, 'question')}" for code, n in ordered)


def _unmeasured_left_out(metric: str, reasons: Mapping[str, int]) -> str:
    pronoun = "it" if sum(reasons.values()) == 1 else "them"
    return f"{describe_unmeasured(reasons)}; {metric} leaves {pronoun} out"


_LEFT_OUT = {  # why cases are not compared
    "only_in_a": "are only in {a}",
    "only_in_b": "are only in {b}",
    "asks_something_else": "ask different questions",
    "not_selected": "were not selected",
}


def _cases_left_out(n: int, left_out: Mapping[str, int], a: str, b: str) -> str:
    counts = [f"{count} {_LEFT_OUT[code].format(a=a, b=b)}" for code, count in left_out.items()]
    return f"{n} cases are compared; of the others, {', '.join(counts)}"


def _count_cases(n: int, verb: str) -> str:
    return f"1 case {verb}s" if n == 1 else f"{n:,} cases {verb}"


_SETTING_KINDS = {  # what a difference of a setting means for a comparison
    "version": "numbers may differ by the versions alone",
    "cutoff": "rank metrics are compared at each k, and unseen prompts are cut at k",
    "judge": "levels 2 and 3 and the failure modes differ by the judge as well as by the answers",
    "judge_setting": "levels 2 and 3 and the failure modes may differ by that alone",
    "calibration": "verdicts in a calibrated judge's uncertain band give no failure mode",
}


_SETTING_NAMES = {
    "misslink": "the version of misslink",
    "k": "the cutoff k",
    "judge": "the judge",
    "calibration": "the calibration",
}


def _setting_differs(setting: str, kind: str, values: Sequence[tuple[str, str]]) -> str:
    both = ", ".join(f"{value or 'none'} in {name}" for name, value in values)
    return f"{_SETTING_NAMES.get(setting, setting)}: {both}; {_SETTING_KINDS[kind]}"


def _verdicts_missing(counts: Sequence[tuple[str, int]]) -> str:
    listed = ", ".join(f"{n} in {name}" for name, n in counts if n)
    return f"verdicts are missing ({listed}) and are not compared"


COMPARISON_SENTENCES: dict[str, str | Callable[..., str]] = {
    # the cases of both runs
    "cases_left_out": _cases_left_out,
    "baseline_of_other_cases": (
        "the baseline has other cases: {both:,} ask the same in both, of {run:,} in the run and "
        "{baseline:,} in the baseline. Changes are decided on these"
    ),
    "other_labels": lambda n, last: (
        f"{_count_cases(n, 'list')} other relevant passages in each run: the labels of {last} "
        "score both rankings"
    ),
    "other_references": lambda n: (
        f"{_count_cases(n, 'expect')} another answer in each run: metrics that depend on it leave "
        "them out"
    ),
    "labels_differ_between_runs": "its labels differ between the runs",
    # settings
    "setting_differs": _setting_differs,
    "verdicts_missing": _verdicts_missing,
    "rejudge_to_compare": (
        "the judges differ, so judged metrics have no winner: judge one run again with the judge "
        "of the other,  misslink rejudge RUN --judge NAME --out FOLDER, and compare that"
    ),
    "differences_not_corrected": "not corrected for the judge's errors: {why}",
    "selftest_of_other_judge": (
        "the selftest is of the judge {tested}, and the run of {judge}; repeat  misslink selftest  "
        "with the run's judge"
    ),
    # a case or a metric without a value
    "unmeasured_left_out": _unmeasured_left_out,
    "case_app_failed": "the app failed",
    "case_verdict_failed": "the verdict failed",
    "case_without_verdict": "there is no verdict",
    "not_in_table": "the table has no value",
    "case_without_trace": "there is no trace",
    "case_not_measured": "it was not measured",
    "verdict_without_part": "its verdict does not have this part",
    "inconclusive_failure": "its failure mode is inconclusive",
    "no_such_value": "it has no such value",
    "no_failure_mode": "it has no failure mode",
    "no_relevant_label": "no relevant passage is labelled",
    "no_conversation": "no case is a turn of a conversation",
    "no_case_traced": "no case has a trace",
    "no_case_linked": "no case has a failure mode",
    "axis_unknown": "the {axis} of every case is unknown",
    "nothing_to_judge": "no case gave the judge anything to judge",
    "recorded_number": "a number that was recorded, not estimated, has no interval",
}
