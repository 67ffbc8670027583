"""The sentence of each reason code: why a number is missing, and why a gate failed or passed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from misslink.render.calibration_sentences import CALIBRATION_SENTENCES
from misslink.render.comparison_sentences import COMPARISON_SENTENCES
from misslink.render.format import (
    as_sentence,
    describe_negligible,
    format_difference,
    format_p_value,
    format_percent,
    pluralize,
)
from misslink.render.gate_sentences import GATE_SENTENCES
from misslink.render.miss_sentences import MISS_SENTENCES
from misslink.render.rerun_sentences import RERUN_SENTENCES
from misslink.render.retrieval_sentences import RETRIEVAL_SENTENCES
from misslink.render.statistics_sentences import STATISTICS_SENTENCES
from misslink.render.verdict_sentences import VERDICT_SENTENCES
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


def describe_note(reason: Reason) -> str:
    """Return a reason as a sentence that stands alone; a name at its start keeps its case."""
    text = describe_reason(reason)
    name = reason.parameters.get("metric") or reason.parameters.get("setting")
    return f"{text}." if name and text.startswith(str(name)) else as_sentence(text)


LOSS_STEPS = {
    "not_searched": "no search asked for it",
    "filtered_out": "a filter hides it",
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
    **RERUN_SENTENCES,
    **RETRIEVAL_SENTENCES,
    **COMPARISON_SENTENCES,
    **GATE_SENTENCES,
    **MISS_SENTENCES,
    **STATISTICS_SENTENCES,
    **VERDICT_SENTENCES,
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
    "labels_misspelled": lambda n, label, passage: (
        f"{pluralize(n, 'labelled id')}, such as '{label}', "
        f"{'names' if n == 1 else 'name'} no passage and {'differs' if n == 1 else 'differ'} from one "
        f"in a letter ('{passage}'); their cases are not compared with their labels. Correct the ids"
    ),
    "label_misspelled": "no passage has the labelled id '{label}'; did you mean '{passage}'?",
    "labels_not_in_corpus": (
        "{n} of {of} relevant ids, such as '{label}', are in no passage of the corpus and count as "
        "missed; correct them, or add the passages to the corpus"
    ),
    "evidence_not_in_corpus": (
        "{n} of {of} evidence texts, such as '{evidence}', are in no passage of the corpus and count as "
        "missed; quote passages word for word, or add the passages to the corpus"
    ),
    "few_labels_match": (
        "only {n} of {of} relevant ids were ever retrieved: '{label}' was not, and passages have ids "
        "like '{passage}'; if the ids are of two kinds, name the metadata key with --id-key, or give "
        "--corpus"
    ),
    "ids_respelled": lambda n, label: (
        f"{pluralize(n, 'labelled id')}, such as '{label}', "
        f"{'matches' if n == 1 else 'match'} only without regard to case, './' and invisible characters"
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
}
