"""What to do about a missed passage, by why it was missed."""

from __future__ import annotations

from misslink.types import Subtype

__all__ = ["recommendation"]

_ADVICE: dict[Subtype, str] = {
    "not_indexed": (
        "Index the document: the corpus does not hold the passage, so no retriever can find it."
    ),
    "dropped_before_prompt": (
        "Look at what stands between retriever and prompt (a compressor, a reranker, a token "
        "limit, the template): the passage was retrieved and did not get through."
    ),
    "split_evidence": (
        "Cut larger chunks or let them overlap, so that one chunk holds the whole evidence; "
        "`misslink whatif RUN --chunk 1000/200` forecasts what it would save."
    ),
    "duplicate_crowding": (
        "Remove near-duplicates from the index, or retrieve by maximal marginal relevance: "
        "copies took the places that the passage needed."
    ),
    "domain_mismatch": (
        "Fine-tune the embedding on your own questions (`misslink whatif RUN --triplets "
        "triplets.jsonl` writes the training data), or take one made for your domain."
    ),
    "vocabulary_mismatch": (
        "Search by words and by meaning together (BM25 and dense, fused by rank), and add "
        "synonyms or query expansion for terms that questions and documents word differently."
    ),
    "ranking": (
        "Add a reranker over the first 50 or so: the passage is as similar to its question as "
        "needed passages are, and others stand before it."
    ),
    "below_cutoff": (
        "Retrieve more passages (a larger k), or rerank a longer list: the passage is among the "
        "candidates, behind the cut-off."
    ),
}


def recommendation(subtype: Subtype | None) -> str:
    """Return what to do about misses of a subtype, in one sentence.

    Parameters
    ----------
    subtype : str or None
        None: nothing that was measured says why; then how to measure more.

    Examples
    --------
    >>> recommendation("below_cutoff").partition(",")[0]
    'Retrieve more passages (a larger k)'
    """
    if subtype is None:
        return (
            "Ask the retriever deeper (`misslink evaluate --depth 1000`) or give the corpus, so "
            "that more can be measured of these passages."
        )
    return _ADVICE[subtype]
