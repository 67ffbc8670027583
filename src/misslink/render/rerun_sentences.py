"""The sentences about what was tried on a run: replays, what-if options, triplets."""

from __future__ import annotations

from collections.abc import Callable


def _few_replayed(n: int, needed: int) -> str:
    return (
        f"{n} failed {'answer was' if n == 1 else 'answers were'} replayed, and below {needed} the "
        "fraction says nothing; evaluate more cases"
    )


RERUN_SENTENCES: dict[str, str | Callable[..., str]] = {
    # a replay
    "retrieved_unknown": "what was retrieved is not known: {why}",
    "not_answered": lambda why: f"the app gave no answer: {why or 'its trace holds none'}",
    "no_answer_given": "the app gave no answer",
    "blank_passage": "the retrieved passage '{passage}' has no text to inject",
    "injected": "{n} of {of} missed passages were injected",
    "missed_without_text": (
        "the missed passage '{passage}' has no text: it was never retrieved, and the gold set gives no "
        "evidence"
    ),
    "missed_already_first": "the app already had the missed passages in the first places",
    "no_placebo_passage": (
        "the run has no irrelevant passage that could be its placebo; evaluate more cases"
    ),
    "nothing_labelled_to_inject": (
        "no relevant passage is known: without labels nothing says what the prompt should hold"
    ),
    "replay_other_judge": "the run was judged by {was}, the replay by {now}",
    "replay_other_setting": "the run's judge had {setting} {was}, the replay's has {now}",
    "replay_other_repeats": (
        "the run asked the judge {was} times per question, and the replay {now} times"
    ),
    "replay_other_prompt": "the prompt '{prompt}' is not the run's",
    "judged_otherwise": "{how}; evaluate the run again, then replay",
    "budget_spent": "the judge's budget or time is spent, so the app was not called either",
    "answer_not_kept": "an answer is not kept",
    "injected_in_vain": "'{passage}' was injected and did not reach the prompt",
    "declined_unknown": "the app declined, and the gold set does not say if it should",
    "nothing_replayed": "no case was replayed",
    "nothing_failed": "no answer of the run failed",
    "no_failed_miss": "no failed answer missed a passage",
    "few_replayed": _few_replayed,
    "judge_without_placebo": "a judge has no placebo",
    # a what-if option
    "larger_k_alone": (
        "without a corpus only a larger k was tried, from the ranks that the run knows; give --corpus "
        "or --app to try other searches"
    ),
    "searched_by_question": "the corpus is searched with the questions as the gold set has them",
    "kept_out_of_search": (
        "missed passages that a filter hides or the index lacks, and that no other search reaches: {n}"
    ),
    "searched_standalone": (
        "turns of conversations searched by their standalone question: {turns}"
    ),
    "corpus_lacks": (
        "the corpus lacks {n} of the {of} passages that the gold set names; no option can find them"
    ),
    "other_corpus": "the corpus does not hold all that the app retrieved; it may be another one",
    "other_texts": (
        "retrieved passages that have another text in the corpus: {n}; if the corpus has changed since "
        "the run, evaluate again, or the change counts as an effect of the options that search it"
    ),
    "documents_unknown": (
        "the corpus' passages have at most {longest} characters and cannot be put together into their "
        "documents; give the documents themselves as corpus"
    ),
    "not_asked_for": "the retriever was not asked for {width} passages",
    "deeper_unseen": "{n} of the {of} passages are not known, as the app shows no deeper ranks",
    "cases_unknown": "not known for {n} of {of} cases: {why}",
    "relevant_unknown": "none of its relevant passages is known",
    "nothing_judged": "no case was judged",
    "no_text": "no passage has a text",
    "alternatives_unchunkable": "it gives alternative sets of ids, which other chunks do not have",
    "needed_without_text": "the corpus has no text of a passage it needs",
    "longer_than_chunks": "it names passages longer than the new chunks; give it evidence texts",
    # triplets to train an embedding with
    "unconfirmed_miss": "a search found the passage, and no label confirms it",
    "missed_text_unknown": "the text of the missed passage is not known",
    "no_hard_negative": "no retrieved passage is surely irrelevant",
}
