"""Evidence that no passage of the corpus contains any more, or never did, and where it may be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from misslink.files.goldset import GoldSet
from misslink.goldset.checking.finding import Finding, Proposal
from misslink.goldset.checking.grounds import Grounds
from misslink.goldset.checking.texts import Texts
from misslink.text import fold
from misslink.types import Case

__all__ = ["evidence"]

_SHOWN = 60  # characters of a text in a message
_UNLIKE = 0.5  # under this, half of the characters differ, and a proposal helps nobody
MEANING = "its numbers, signs or negations are others"


def evidence(gold: GoldSet, grounds: Grounds) -> Sequence[Finding]:
    """Find evidence that the corpus does not hold verbatim, folded as retrieval is scored.

    What a chunk boundary cuts in two is told as split, not as missing. Where the earlier corpus
    held it, or the earlier gold set had it, it is stale. Each comes with the nearest stretch of
    text in the corpus, if that is half alike.
    """
    if grounds.corpus is None:
        return []
    return [found for case in gold.cases for found in _of_case(case, grounds.corpus, grounds)]


def _of_case(case: Case, corpus: Texts, grounds: Grounds) -> Iterator[Finding]:
    texts = [text for text, grade in case.evidence.items() if grade > 0]
    lost = []
    for text in texts:
        if corpus.holds(text):
            continue
        pair = corpus.split(text)
        if pair is None:
            lost.append(text)
            continue
        yield Finding(
            "evidence",
            "note",
            f"no passage holds {_brief(text)} whole: it is split over '{pair[0].id}' and "
            f"'{pair[1].id}'",
            "a retriever has to bring both; longer passages, or some overlap, keep it together",
            (case.id,),
            {"evidence": text, "passages": [passage.id for passage in pair]},
        )
    for text in lost:
        yield _lost(case, text, corpus, grounds)


def _lost(case: Case, text: str, corpus: Texts, grounds: Grounds) -> Finding:
    since = _stale_since(case, text, grounds)
    proposal = _proposed(case, text, corpus)
    message = f"no passage contains {_brief(text)}"
    if since:
        message += f", which {since}"
    if proposal is None:
        way_out = "write the text as it stands in the corpus, or drop the case"
    else:
        message += f"; '{proposal.passage}' is {proposal.score:.0%} alike"
        way_out = f"take {_brief(proposal.after)}"
        way_out += (
            f" only if the answer is still the same: {proposal.meaning}"
            if proposal.meaning
            else " if it says the same"
        )
    return Finding(
        "stale" if since else "evidence",
        "error",
        message,
        way_out,
        (case.id,),
        {"evidence": text},
        () if proposal is None else (proposal,),
    )


def _stale_since(case: Case, text: str, grounds: Grounds) -> str:
    """How it is known that the evidence once held; "" where it is not."""
    before = grounds.before
    if before is not None and (before.holds(text) or before.split(text) is not None):
        return "the earlier corpus held"
    if grounds.baseline is not None:
        known = (one for one in grounds.baseline.cases if one.id == case.id)
        earlier = {fold(one) for found in islice(known, 1) for one in found.evidence}
        if fold(text) in earlier:
            return "the earlier gold set had already"
    return ""


def _proposed(case: Case, text: str, corpus: Texts) -> Proposal | None:
    near = corpus.nearest(text)
    if near is None or near.score < _UNLIKE:
        return None
    return Proposal(
        case.id,
        "evidence",
        text,
        near.text,
        near.passage.id,
        near.score,
        None if near.same_facts else MEANING,
    )


def _brief(text: str) -> str:
    line = " ".join(text.split())
    return f"'{line if len(line) <= _SHOWN else line[: _SHOWN - 3] + '...'}'"
