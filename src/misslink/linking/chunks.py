"""What the chunks of a corpus look like: lengths, cut sentences, near-duplicates."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from misslink.linking.duplicates import duplicates, repeated
from misslink.linking.thresholds import below
from misslink.stats import mean, proportion
from misslink.stats.median import median, quartiles
from misslink.stats.written import percent
from misslink.types import Estimate, Passage, Trace

__all__ = ["chunk_quality", "places_lost"]

_CUT = 0.5  # from here on a chunk is more often cut within a sentence than not
_LOST = 0.1  # from here on one place in ten of a context repeats what another one says
_MOST_CHUNKS = 5_000  # held against each other for near-duplicates: 2 s
_MOST_COMPARED = 30  # of a context, each pair of which is compared
# Prose that goes on: it ends on a word or a comma, or begins in lower case. A chunk of a list, of
# code or of a heading ends on a word too, which is why half of the chunks may.
_ENDS_WITHIN = re.compile(r"[\w,;(\[\u2013\u2014-]")
_BEGINS_WITHIN = re.compile(r"\s*[a-z\u00df-\u00f6\u00f8-\u00ff]")


def chunk_quality(
    traces: Sequence[Trace], corpus: Sequence[Passage] | None, lost: Estimate
) -> tuple[dict[str, Any], str, bool | None]:
    """Numbers, finding and verdict on the chunks: of the corpus, else of those that were seen.

    Parameters
    ----------
    traces : sequence of Trace
    corpus : sequence of Passage or None
    lost : Estimate
        `places_lost` of the traces.

    Notes
    -----
    Of more than 5,000 chunks every n-th is held against the others of this sample for
    near-duplicates, so that share is then a floor; its ``n`` says how many there were.
    """
    seen = (one for trace in traces for one in (*trace.retrieved, *trace.deeper))
    by_id = {one.id: one.text for one in (seen if corpus is None else corpus) if one.text.strip()}
    texts = list(by_id.values())
    lengths = [len(text) for text in texts]
    spread = quartiles(lengths)
    cut = proportion(sum(map(_is_cut, texts)), len(texts))
    sample = texts[:: -(-len(texts) // _MOST_CHUNKS) or 1]
    copies = proportion(sum(repeated(sample)), len(sample))
    numbers: dict[str, Any] = {
        "passages": len(texts),
        "median_characters": median(lengths),
        "lower_quartile_characters": spread and spread[0],
        "upper_quartile_characters": spread and spread[1],
        "cut_within_a_sentence": cut,
        "near_duplicates": copies,
        "places_lost_to_duplicates": lost,
    }
    if not texts or spread is None:
        return numbers, "Not measured: no passage with a text was seen.", None
    which = "corpus has" if corpus is not None else "traces show"
    finding = (
        f"The {which} {len(texts)} chunks of {numbers['median_characters'].value:.0f} characters "
        f"in the median (middle half {spread[0]:.0f} to {spread[1]:.0f}); {percent(cut)} are cut "
        f"within a sentence, {percent(copies)} repeat another one"
    )
    if lost.value is not None:
        finding += f", and {percent(lost)} of the places in the contexts go to repetitions"
    held = [below(cut, _CUT), below(lost, _LOST)]
    ok = False if False in held else None if None in held else True
    return numbers, f"{finding}.", ok


def places_lost(traces: Sequence[Trace], k: int, *, seed: int = 0) -> Estimate:
    """Mean share of the places of a context that repeat another of its passages.

    Missing where no context holds a passage with a text.
    """
    shares = []
    for trace in traces:
        texts = [one.text for one in trace.context(k) if one.text.strip()][:_MOST_COMPARED]
        if texts:
            shares.append(sum(of is not None for of in duplicates(texts)) / len(texts))
    if not shares:
        return Estimate.missing("no context holds a passage with a text")
    return mean(shares, seed=seed)


def _is_cut(text: str) -> bool:
    return bool(_ENDS_WITHIN.match(text.rstrip()[-1:]) or _BEGINS_WITHIN.match(text))
