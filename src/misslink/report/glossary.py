"""Display names, meanings and advice for failure modes, outcomes and metrics."""

from __future__ import annotations

import inspect
from functools import cache
from pathlib import Path

from misslink.registry import judged_metrics, rank_metric_key, rank_metrics

RETRIEVALS = {
    "miss": "Miss",
    "partial": "Partial hit",
    "hit": "Hit",
    "unlabelled": "Not labelled",
    "not_needed": "Not needed",
    "unknown": "Not seen",
}
ANSWERS = {
    "unfaithful": "Unfaithful",
    "unknown": "Not judged",
    "declined": "Declined",
    "faithful": "Faithful",
}
# The judge's label of a case beside that of annotators.
PEOPLE = {
    "disagree": "judge and annotators disagree",
    "agree": "judge and annotators agree",
    "tied": "annotators are tied",
}
RELATIONS = {
    "would_support": "supports this claim",
    "would_contradict": "contradicts this claim",
    "unrelated": "says nothing about this claim",
}
# The arms of a replay, beside the answer of the run.
ARMS = {
    "observed": "answer of the run",
    "other_judge": "its verdict again",
    "standalone_query": "standalone question",
    "missed_passage": "missed passages first",
    "whole_passage": "cut passage whole",
    "without_distractor": "without the distractor",
    "perfect_context": "relevant passages alone",
    "placebo": "placebo",
}
# What a replay confirms as the cause of a failure; several are joined by "+".
CAUSES = {
    "judge": "a wrong verdict of the judge",
    "query": "the query",
    "missed_passage": "a missed passage",
    "cut_passage": "a cut passage",
    "distractor": "a distracting passage",
    "generator": "the generator",
}
# What was measured of a missed passage; see types.Missed.
MEASURED = {
    "cosine": "cosine to the question",
    "cosine_kth": "cosine of the last passage given",
    "cosine_percentile": "known pairs with a lower cosine",
    "shared_stems": "question's words that it holds",
    "shared_stems_percentile": "known pairs that share fewer words",
    "dense_rank": "rank by embedding",
    "bm25_rank": "rank by words (BM25)",
    "pool": "passages ranked",
    "duplicates_in_context": "near-duplicates in the context",
}
# What the checklist counts; see misslink.linking.checklist.
CHECKED = {
    "auroc": "separation of the groups (AUROC)",
    "cut_within_a_sentence": "cut within a sentence",
    "lower_quartile_characters": "a quarter has fewer characters than",
    "median_characters": "characters in the median",
    "median_cosine_known": "cosine to a relevant passage, median",
    "median_cosine_random": "cosine to a random passage, median",
    "median_irrelevant": "score of irrelevant passages, median",
    "median_relevant": "score of relevant passages, median",
    "median_shared_found": "question's words in found passages, median",
    "median_shared_missed": "question's words in missed passages, median",
    "near_duplicates": "repeat another passage",
    "not_indexed": "relevant passages not in the index",
    "passages": "passages looked at",
    "places_lost_to_duplicates": "places in contexts lost to repetitions",
    "precision": "relevant among the passages with a score",
    "recall_at_depth": "relevant passages within the depth asked",
    "recall_in_context": "relevant passages in the context",
    "split": "evidence texts over two chunks",
    "upper_quartile_characters": "a quarter has more characters than",
}
_FILE = Path(__file__).with_name("glossary.md")  # a page of the documentation, too
# Parts of judged metrics and rates of the run; a registered metric has the first line of its docstring.
_PARTS = {
    "fully_faithful": "Share of answers without a single unsupported or contradicted claim.",
    "citation_recall": "Share of an answer's cited statements that at least one of the "
    "passages cited for them supports, averaged.",
    "correct": "Share of answers that agree with the reference answer.",
    "correctness_precision": "Share of an answer's claims that the reference supports, averaged.",
    "correctness_recall": "Share of the reference's claims that the answer states, averaged.",
    "over_refused": "Share of answerable questions that the app declined. Lower is better. The "
    "failure mode of this name is narrower: where the relevant passage never reached the prompt, the failure mode "
    "is a retrieval miss.",
    "should_have_abstained": "Share of unanswerable questions that the app answered. "
    "Lower is better.",
    "conversations_passed": "Share of conversations in which no turn failed.",
}


def metric_words(name: str) -> str:
    """Return one line of meaning for the metric `name`, its cutoff filled in.

    Examples
    --------
    >>> metric_words("hit@5")
    'Whether a relevant passage is among the first 5; the mean is the share of such questions.'
    """
    words = _PARTS.get(name, "")
    for registry, known in ((rank_metrics, rank_metric_key(name)), (judged_metrics, name)):
        if known is not None and known in registry:
            words = words or (inspect.getdoc(registry.get(known)) or "").partition("\n")[0]
    k = name.partition("@")[2]
    return (words or "A metric of a plugin.").replace("first k", f"first {k}" if k else "first k")


@cache
def _term_rows() -> tuple[tuple[str, ...], ...]:
    """The cells of the glossary's table: term, meaning, elsewhere, sections of the report."""
    lines = _FILE.read_text(encoding="utf-8").partition("|---")[2].splitlines()[1:]
    return tuple(tuple(cell.strip() for cell in line.split("|")[1:-1]) for line in lines)


def term_words(section: str) -> tuple[tuple[str, str], ...]:
    """Return the terms that `section` uses, each with its meaning.

    Examples
    --------
    >>> [term for term, _ in term_words("checks")]
    ['AUROC']
    """
    rows = _term_rows()
    return tuple((term, text) for term, text, _, used in rows if section in used.split(", "))
