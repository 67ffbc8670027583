"""The sentence of each reason code: why a number is missing, and why a gate failed or passed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from misslink.render.calibration_sentences import CALIBRATION_SENTENCES
from misslink.render.comparison_sentences import COMPARISON_SENTENCES, describe_unmeasured
from misslink.render.format import (
    describe_negligible,
    format_change,
    format_difference,
    format_drop,
    format_p_value,
    format_percent,
    format_values,
    pluralize,
)
from misslink.render.miss_sentences import MISS_SENTENCES
from misslink.render.retrieval_sentences import RETRIEVAL_SENTENCES
from misslink.render.statistics_sentences import STATISTICS_SENTENCES
from misslink.types import Estimate, Reason


def describe_reason(reason: Reason) -> str:
    """Return the sentence of a reason, without a capital and a full stop.

    >>> describe_reason(Reason(code="no_cases"))
    'there are no cases'
    """
    sentence = SENTENCES.get(reason.code, "{code}")  # of a folder that another program wrote
    parameters = reason.parameters
    if isinstance(sentence, str):
        return sentence.format(code=reason.code, **parameters)
    return sentence(**parameters)


def describe_reasons(reasons: Iterable[Reason]) -> str:
    """Return the sentences of several reasons as one."""
    return "; ".join(map(describe_reason, reasons))


LOSS_STEPS = {
    "not_searched": "no search asked for it",
    "ranked_low": "ranked too low",
    "dropped_by_grader": "dropped by a grader or reranker",
    "cut_from_prompt": "cut from the prompt",
}


def describe_loss(step: str | None, search: int | None) -> str:
    """Return the step that lost a passage, to follow a sentence about it; empty where not known.

    >>> describe_loss("cut_from_prompt", 2)
    ' (search 2 returned it; cut from the prompt)'
    """
    if step is None:
        return ""
    verb = "ranks it best" if step == "ranked_low" else "returned it"
    place = "" if search is None else f"search {search} {verb}; "
    return f" ({place}{LOSS_STEPS[step]})"


def _no_verdict_value(verdicts: int, n: int, why: str, others: int) -> str:
    more = f", and {others} other reason{'s' * (others > 1)}" if others else ""
    return f"no case has a value ({n} of {verdicts} {why}{more})"


def metric_in_words(metric: str) -> str:
    """A metric as a sentence calls it: a path into the summary becomes words.

    >>> metric_in_words("link.owners.gold_set"), metric_in_words("recall@5")
    ('the share of cases with a failure of the gold set', 'recall@5')
    """
    group, _, name = metric.rpartition(".")
    if group == "link.owners":
        return f"the share of cases with a failure of the {name.replace('_', ' ')}"
    if group == "link.failures":
        return f"the share of cases that {'pass' if name == 'passed' else f'are {name!r}'}"
    return metric


def _called(metric: str, *, corrected: bool) -> str:
    name = metric_in_words(metric)
    return f"{name} (corrected)" if corrected else name


def _have(count: int) -> str:
    return f"{pluralize(count, 'question')} {'has' if count == 1 else 'have'}"


def _limit_not_met(
    metric: str, value: float, limit: float, n: int, side: str, *, end: str | None, corrected: bool
) -> str:
    number, needed = format_values(metric, value, limit, n=n)
    called = _called(metric, corrected=corrected)
    name = called if end is None else f"the {end} end of the interval of {called}"
    return f"{name} is {number}, {side} of {needed}"


def _below_floor(
    metric: str, value: float, limit: float, n: int, *, end: str | None, corrected: bool
) -> str:
    return _limit_not_met(metric, value, limit, n, "below the floor", end=end, corrected=corrected)


def _above_ceiling(
    metric: str, value: float, limit: float, n: int, *, end: str | None, corrected: bool
) -> str:
    side = "above the ceiling"
    return _limit_not_met(metric, value, limit, n, side, end=end, corrected=corrected)


def _no_interval_end(metric: str, end: str, why: str, *, corrected: bool) -> str:
    return f"{_called(metric, corrected=corrected)} has no {end} end of an interval: {why}"


def _not_computed(metric: str, why: str, *, corrected: bool) -> str:
    return f"{_called(metric, corrected=corrected)} could not be computed: {why}"


def _too_few_cases(metric: str, n: int, needed: int) -> str:
    return f"only {_have(n)} a value of {metric}, and {needed:,} must"


def _too_few_pairs(metric: str, n: int, needed: int) -> str:
    return f"only {_have(n)} a value of {metric} in both runs, and {needed:,} must"


def _pairs_undecided(metric: str, n: int, allowed: float) -> str:
    return (
        f"only {_have(n)} a value of {metric} in both runs: even if all of them got worse, the "
        f"interval of the loss would reach below the margin of {format_drop(metric, allowed, n)}, so "
        "nothing is decided"
    )


def _no_baseline_value(metric: str, why: str, *, corrected: bool) -> str:
    return f"the baseline has no {_called(metric, corrected=corrected)} to compare with: {why}"


def _judge_differs(metric: str, was: str, now: str, baseline: str) -> str:
    judges = f"by {was}, and this run by {now}"
    if was == now:
        judges = f"and this run by {now} with another setting, prompt or rules"
    return (
        f"the baseline was judged {judges}, so {metric} is not compared; judge the baseline again:  "
        f"misslink rejudge {baseline} --judge {now} --out FOLDER"
    )


def _values_lost(metric: str, lost: int, reasons: Mapping[str, int]) -> str:
    return f"{_have(lost)} no value of {metric} now that had one: {describe_unmeasured(reasons)}"


def _fewer_values(metric: str, n: int, before: int, reasons: Mapping[str, int]) -> str:
    return (
        f"{metric} is over {pluralize(n, 'question')} now and was over {before:,}: "
        f"{describe_unmeasured(reasons)}"
    )


def _regressed(
    metric: str,
    before: float,
    value: float,
    drop: float,
    n: int,
    margin: Mapping[str, Any],
    *,
    corrected: bool,
    paired: bool,
) -> str:
    was, is_now = format_values(metric, before, value, n=n)
    text = (
        f"{_called(metric, corrected=corrected)} {'rose' if value > before else 'dropped'} from "
        f"{was} to {is_now}: a loss of {format_drop(metric, drop, n)}, more than the "
        f"{format_drop(metric, margin['allowed'], n)} allowed"
    )
    if margin["loss"] is None:
        return text
    text += f" ({_format_loss(metric, **margin)}"
    if not paired and not _exceeds(**margin):
        text += "; the interval reaches below the margin, but this gate goes by the change alone"
    return f"{text})"


def _exceeds(allowed: float, loss: Mapping[str, Any], **_: float) -> bool:
    low: float = loss["low"]
    return low > allowed


def _format_loss(metric: str, loss: Mapping[str, Any], level: float, **_: float) -> str:
    estimate = Estimate.model_validate(loss)
    over, interval = pluralize(estimate.n, "question"), format_change(metric, estimate)
    return f"over the {over} in both: loss {interval}, {100 * level:.3g}% interval"


def _met(
    metric: str,
    value: float,
    n: int,
    *,
    labels: int | None,
    corrected: bool,
    change: Mapping[str, Any] | None,
) -> str:
    (now,) = format_values(metric, value, n=n)
    text = f"{_called(metric, corrected=corrected)} is {now} over {pluralize(n, 'question')}"
    if labels is not None:
        text += f", by {pluralize(labels, 'label')}"
    return text if change is None else text + _met_change(metric, n, **change)


def _met_change(
    metric: str,
    n: int,
    by: str,
    before: float = 0.0,
    value: float = 0.0,
    margin: Mapping[str, Any] | None = None,
) -> str:
    if by == "no_baseline":
        return "; there is no baseline, so its regression was not checked"
    was, is_now = format_values(metric, before, value, n=n)
    text = {
        "value": f", was {was}",
        "error_rates": f"; by the judge's error rates alone it was {was} and is {is_now}",
        "pairs": f"; paired it was {was} and is {is_now}",
        "shared": f"; over the shared questions it was {was} and is {is_now}",
    }[by]
    if margin is None:
        return text
    text += f"; margin {format_drop(metric, margin['allowed'], n)}"
    if margin["loss"] is not None:
        text += f", {_format_loss(metric, **margin)}"
        if by == "pairs" and margin["drop"] > margin["allowed"]:
            text += ", which reaches below the margin: not enough data to tell"
    return text


def _unfinished_judging(run: str, unjudged: int, unknown: str) -> str:
    return (
        f"the judging of {run} was stopped early ({pluralize(unjudged, 'question')} left), so "
        f"{unknown} is not known; run the same  misslink evaluate  command again"
    )


def _new_failures(n: int, allowed: int, *, failure: str | None, retrieval: str | None) -> str:
    condition = f"the failure mode {failure}" if failure else "a failure mode"
    condition = f"the retrieval outcome {retrieval}" if retrieval else condition
    number = {0: "none is", 1: "1 is"}.get(allowed, f"{allowed:,} are")
    return f"{_have(n)} {condition} now and had not before; {number} allowed"


_AXES = {"failures": "failure mode", "retrieval": "retrieval outcome"}


def _outcomes_unknown(axis: str) -> str:
    return f"the {_AXES[axis]} of every case is unknown, so new failures could not be counted"


def _inconclusive_now(n: int, axis: str, reasons: Mapping[str, int]) -> str:
    were, are = ("was", "is") if n == 1 else ("were", "are")
    text = f"{pluralize(n, 'question')} {were} decided before and {are} inconclusive now"
    if reasons:
        return f"{text}, and may be among them ({describe_unmeasured(reasons)})"
    judged = "; the judge's verdicts do not settle the failure mode" if axis == "failures" else ""
    return f"{text}, and may be among them{judged}"


def _ids_unmatched(passage: str, label: str, key: str | None) -> str:
    if key:
        hint = f"the metadata key '{key}' holds such ids: give --id-key {key}"
    else:
        hint = (
            "name the metadata key of the id with --id-key, give --corpus, or label evidence texts"
        )
    return (
        "no retrieved passage of the run has an id of the gold set (passages have ids like "
        f"'{passage}', the gold set '{label}'); {hint}"
    )


def _replayed(fraction: Estimate) -> str:
    value, low, high = fraction.value, fraction.low, fraction.high
    if little := describe_negligible(fraction):
        return f"replay: missing passages cause {little} of the failures"
    if value is None or low is None or high is None or low <= 0 <= high:
        return "replay: not enough data to tell whether missing passages cause the failures"
    if value < 0:
        return (
            "in a replay, injecting the missed passages fixed fewer answers than injecting others"
        )
    return f"replay: missing passages cause {format_percent(value)} of the failures"


def _replayed_owners(owners: Mapping[str, int], of: int, others: int) -> str:
    counts = ", ".join(f"{owner} {count:,}" for owner, count in owners.items())
    told = f": {counts}" if counts else ""
    other = f". The run names another owner in {others:,} of them" if others else ""
    confirmed = f"{sum(owners.values()):,} of {pluralize(of, 'replayed failure')}"
    return f"replay confirms the owner of {confirmed}{told}{other}"


def _differences(crude: Mapping[str, Any], adjusted: Mapping[str, Any]) -> tuple[str, str]:
    both = (Estimate.model_validate(each) for each in (crude, adjusted))
    first, second = (format_difference("share", each).brief for each in both)
    return first, second


def _adjusted_change(by: str, **both: Mapping[str, Any]) -> str:
    crude, adjusted = _differences(**both)
    return f"from all relevant passages to none, the share changes by {crude}; within groups by {by}, by {adjusted}"


def _not_corrected(metric: str | None) -> str:
    of = {"faithfulness": " of unfaithful answers", "correctness": " of wrong answers"}
    return (
        f"the attributable fraction{of.get(metric or '', '')} is not corrected for the judge's "
        "errors: if the judge errs more often after misses than after hits, or less, it is too high "
        "or too low"
    )


def _unlabelled(inferred: int) -> str:
    return f"the owner of {inferred:,} of them is inferred without labels"


def _searched_by_words(queries: int, passages: int) -> str:
    return (
        f"the corpus was searched for {queries:,} questions and claims by BM25 alone, because no "
        f"vectors of its {passages:,} passages are stored; to search by meaning too, name an "
        "embedding with --embedding"
    )


def _inferred(count: int) -> str:
    modes = "1 failure mode is" if count == 1 else f"{count} failure modes are"
    return f"{modes} inferred without labels; confirm them with  misslink goldset from-run RUN --out pool"


def _sign_turns(**both: Mapping[str, Any]) -> str:
    crude, adjusted = _differences(**both)
    return (
        f"the risk difference is {crude} over all cases and {adjusted} within groups: the sign "
        "turns (Simpson's paradox), so read the adjusted numbers and not the crude ones"
    )


def _crude_misleads(**both: Mapping[str, Any]) -> str:
    crude, adjusted = _differences(**both)
    return (
        f"the risk difference is {crude} over all cases and {adjusted} within groups: groups with "
        "many misses differ in their risk anyway, so read the adjusted numbers, not the crude ones"
    )


def _strata_disagree(p: float) -> str:
    return (
        f"the groups disagree on the risk difference ({format_p_value(p)}), so read each group's "
        "own before any number over all of them"
    )


SENTENCES: dict[str, str | Callable[..., str]] = {
    **CALIBRATION_SENTENCES,
    **RETRIEVAL_SENTENCES,
    **COMPARISON_SENTENCES,
    **MISS_SENTENCES,
    **STATISTICS_SENTENCES,
    # an estimate
    "no_cases": "there are no cases",
    "no_such_cases": "{metric} has no cases",
    "not_judged": "no judge was used",
    "not_judged_by": "this run was not judged by {metric}",
    "not_judged_by_it": "this run was not judged by it",
    "no_common_value": "no case has a value in both runs",
    "no_latency": "no trace has a latency",
    "not_of_selection": "the selected cases have no such number",
    "whole_run_only": "this number is known for the whole run only",
    "needs_command": "this needs  {command}  on the run first",
    "not_calibrated": (
        "the judge was not compared with human labels: run  misslink calibrate  on the run, or "
        "evaluate with --calibration"
    ),
    "not_in_calibration": "the run's calibration has no {name}",
    "null_number": "the run has no value there ({name} is null)",
    "no_relevant_ranking": "no case has relevant passages and a ranking",
    "no_verdict_value": _no_verdict_value,
    "no_part": "no verdict has this part",
    "no_two_labels": "no verdict has two samples with a label",
    "no_two_values": "no verdict has two samples with a value",
    "no_query_value": "no query has a value",
    # what was captured
    "app_failed": "the app failed on {n} of {cases} questions; the first time {first}",
    "traces_absent": "{n} of {cases} cases have no trace and are not measured, such as '{first}'",
    "shared_memory": (
        "in {n} of {cases} cases the app's prompt has the question of another case, such as that of "
        "'{other}' in '{first}': reset the app's memory before each question, or take the gold set's "
        "questions out of its examples"
    ),
    "retrieval_unseen": "in {n} of {cases} cases {why}",
    "prompt_unseen": (
        "in {n} of {cases} cases misslink did not see the prompt: the first {k} retrieved passages count "
        "as in it, also those that the app dropped; return 'prompted', the ids of those in the prompt"
    ),
    "cutoff_too_large": lambda k, most: (
        f"the app retrieved at most {pluralize(most, 'passage')} for a question, so recall@{k} is "
        f"recall@{most}; give --k {most}"
    ),
    "searches_merged": (
        "in {n} of {cases} cases the app searched several times and its prompt was not seen: the "
        "first {k} passages of all searches count as the prompt; record 'prompted', or give a larger --k"
    ),
    "ids_unmatched": _ids_unmatched,
    "evidence_unmatched": (
        "no passage of the run or its corpus has an evidence text of the gold set, such as '{evidence}'; "
        "quote passages word for word, or label their ids"
    ),
    "labels_misspelled": (
        "{n} labelled ids are of no passage and differ from one in a letter, such as '{label}' from "
        "'{passage}'; their cases are not compared with their labels. Correct the ids"
    ),
    "label_misspelled": "no passage has the labelled id '{label}'; did you mean '{passage}'?",
    "labels_not_in_corpus": (
        "{n} of {of} relevant ids, such as '{label}', are in no passage of the corpus and count as "
        "missed; correct them, or add the passages to the corpus"
    ),
    "few_labels_match": (
        "only {n} of {of} relevant ids were ever retrieved: '{label}' was not, and passages have ids "
        "like '{passage}'; if the ids are of two kinds, name the metadata key with --id-key, or give "
        "--corpus"
    ),
    "ids_respelled": (
        "{n} ids, such as '{id}', match only without regard to case, './' and invisible characters"
    ),
    "id_key_used": (
        "passages are matched by their metadata key '{key}', which holds ids of the gold set; "
        "add --id-key {key} to make sure"
    ),
    "suite_of_other_judge": (
        "{n} of {of} cases were promoted with another judge or other rules ({was}): where an owner "
        "is not the expected one, the judge may have changed and not the app; promote the cases "
        "again from a run with this judge"
    ),
    "other_app": (
        "the run was made with {was}, and the replay calls {now}: unless that is the same app, built "
        "from a retriever, the replay says nothing about this run"
    ),
    # a forecast of failures avoided, and the fixes
    "longer_context_unchecked": (
        "a longer context may break answers that are right today; check it with  misslink whatif "
        "RUN --app APP --options k --check 40"
    ),
    "misses_unknown": "misses are {why}",
    "no_judged_exposure": "no judged case is a {exposure} today, so its risk is not known",
    "nothing_judged_and_labelled": "no case has both relevance labels and a judged answer",
    "nothing_rerun": "no case could be run and judged again: {why}",
    "needs_whatif": "measure it with  misslink whatif",
    "not_enough_data": "not enough data to tell",
    "fix_gains": "the whole forecast is above 0",
    "forecast_by_association": (
        "The forecast assumes that a case with more relevant passages fails as often as the cases "
        "that have them today. This is an association, not a cause, and the interval does not "
        "include the error of this assumption."
    ),
    "forecast_by_replay": (
        "The forecast rests on replayed misses: with the missed passages {still_failed} of "
        "{still_of} failed cases failed again, and {turned_failed} of {turned_of} others failed."
    ),
    # why answers fail
    "replayed": _replayed,
    "replayed_owners": _replayed_owners,
    "reference_suspected": "the reference is suspected, so no passage can make the answer good",
    "nothing_to_try": "no passage that the answer lacked is known, and no other change is left to try",
    "missing_passages": ("answers without a relevant passage fail more often (association)"),
    "generator": "answers fail as often with every relevant passage in the prompt",
    "complete": "the prompts of the failed answers held every relevant passage",
    "few_associated": "few failures are associated with missing passages",
    "unlabelled": _unlabelled,
    "labelled_good": "annotators call the answer good",
    "second_judge_good": "judged again, the answer is good",
    "labelled_bad": "annotators call the answer bad, and what the judge found does not say why",
    "owners_not_measured": (
        "how often owners are right was not measured for this judge and these data; "
        "misslink selftest measures it"
    ),
    # an association
    "nothing_missed": (
        "every case has all of its relevant passages in the prompt, so no bad answer can be "
        "attributed to a missing one"
    ),
    "no_case_at_exposure": "no case has {exposure} of its relevant passages in the prompt",
    "few_labels_at_exposure": (
        "{n} labels of cases with {exposure} of their relevant passages in the prompt are too few; "
        "{needed} are needed"
    ),
    "judge_unmeasured": (
        "the judge's error is not known for cases with {exposure} of their relevant passages in "
        "the prompt: it takes {needed} labels there, of good and of bad answers, and a judge better "
        "than chance; label answers of this run with  misslink annotate"
    ),
    "no_bad_with_all": "no answer with all relevant passages in the prompt is bad",
    "no_bad_answer": "there is no bad answer to attribute",
    "no_exposure": (
        "fewer than 10 cases have all of their labelled relevant passages in the prompt, and the "
        "judge does not say whether the passages in the prompt suffice"
    ),
    "no_exposed_verdict": (
        "no case has both a verdict on its answer and a known share of relevant passages in the "
        "prompt"
    ),
    "exposure_by_judge": (
        "fewer than 10 cases have all of their labelled relevant passages in the prompt, so what "
        "reached the prompt is the judge's sufficiency of the passages there"
    ),
    "not_corrected": _not_corrected,
    "inferred": _inferred,
    "searched_by_words": _searched_by_words,
    "few_to_compare": "too few labels to compare the judge's errors between misses and hits",
    "no_exposure_in_labels": (
        "the share of relevant passages in the prompt is not known for any labelled case"
    ),
    "judge_adds_nothing": (
        "the judge adds nothing to the labels: the interval of the corrected share is no narrower "
        "than that of the labels alone"
    ),
    "judge_errs_differently": (
        "the judge's errors differ between cases with none, some and all of their relevant "
        "passages in the prompt ({p}), so a risk after misses must not be compared with one after "
        "hits without correction"
    ),
    "nothing_to_adjust_for": (
        "no case has a category, and fewer than 30 cases differ in the length of the question, the "
        "number of relevant passages or the score of an irrelevant passage"
    ),
    "few_strata": "fewer than two groups have both cases with no relevant passage in the prompt and cases with all of them",
    "adjusted_change": _adjusted_change,
    "sign_turns": _sign_turns,
    "crude_misleads": _crude_misleads,
    "strata_disagree": _strata_disagree,
    "wide_ratio": "it could be anything: its interval spans more than a factor of {factor}",
    # a gate
    "met": _met,
    "below_floor": _below_floor,
    "above_ceiling": _above_ceiling,
    "no_interval_end": _no_interval_end,
    "not_computed": _not_computed,
    "too_few_cases": _too_few_cases,
    "nothing_paired": (
        "no question has a value of {metric} in both runs, so nothing could be paired"
    ),
    "too_few_pairs": _too_few_pairs,
    "pairs_undecided": _pairs_undecided,
    "no_baseline_value": _no_baseline_value,
    "values_lost": _values_lost,
    "fewer_values": _fewer_values,
    "regressed": _regressed,
    "unverified_labels": "labels that do not say which answer they are of (answer_hash): {n}; those of "
    "earlier answers would count, too. misslink annotate and its exports write it",
    "judge_differs": _judge_differs,
    "judge_unproven": lambda verdict, why: (
        f"misslink calibrate says '{verdict}' of the judge" + (f" ({why})" if why else "")
    ),
    "not_of_shared": "{metric} is not known of the shared questions alone, so it is not compared with "
    "the baseline ({why})",
    "questions_differ": "the baseline is a summary.json of other questions, so {metric} is not compared "
    "with it: name its run folder, whose shared questions can be",
    "labels_differ": "the baseline is a summary.json by other labels, so {metric} is not compared with "
    "it: name its run folder, which this run's labels can score",
    "no_case_in_run": "the run has no cases",
    "no_case_selected": "no question of the run has {selection}",
    "unfinished_judging": _unfinished_judging,
    "new_failures": _new_failures,
    "no_baseline": "there is no baseline, so new failures were not counted",
    "outcomes_unknown": _outcomes_unknown,
    "inconclusive_now": _inconclusive_now,
}
