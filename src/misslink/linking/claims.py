"""Which missed passage an unfaithful claim needed, and what it would have said of the claim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from misslink.judging.embedded import EmbeddedJudge, relations
from misslink.judging.embedded.lexical import Context
from misslink.judging.protocol import Judge, innermost
from misslink.linking.needs import (
    LEAST_SHARED,
    OfPairs,
    Relation,
    Said,
    judged_needs,
    share_of,
)
from misslink.prompting import BUILT_IN, Prompts
from misslink.types import Claim, ClaimLink, Missed

__all__ = ["hold_claims"]

_STRENGTH: Mapping[Relation, int] = {"would_support": 2, "would_contradict": 1, "unrelated": 0}
_NO_RANK = float("inf")  # behind every passage that has a rank


async def hold_claims(
    unfaithful: Sequence[tuple[int, Claim]],
    missed: Sequence[Missed],
    *,
    question: str = "",
    judge: Judge | None = None,
    prompts: Prompts = BUILT_IN,
) -> tuple[ClaimLink, ...]:
    """Hold every unfaithful claim against the missed passages, and keep the best one for each.

    A passage that would support a claim goes before one that would contradict it, and that before
    one that says nothing of it; among equals the higher grade counts, then the better rank.

    The embedded judge holds every pair, a heuristic. A judge is asked one question a case, about
    the pairs that share enough words (`misslink.linking.needs`); where they do not fit into its
    context the least similar are left out. What it says of a pair goes before the embedded
    judge's word, and ``by`` tells whose it is. A quote of its that does not stand in any passage
    shown, or speaks of something else there, makes the claim unrelated. Where no reply can be had
    or read, and of a claim that it leaves out, the embedded judge's word stays.

    Parameters
    ----------
    unfaithful : sequence of (int, Claim)
        The claims with their places in the faithfulness verdict.
    missed : sequence of Missed
        One without text or evidence says nothing of any claim.
    question : str
        What the answer answers; short claims are read with it.
    judge : Judge or None
        Who is asked; None, and the embedded one: nobody.
    prompts : Prompts
        Where ``claim_needs`` is read from.

    Returns
    -------
    tuple of ClaimLink
        One for each claim, in their order; empty where nothing was missed.

    Raises
    ------
    JudgeUnreachableError
        Asking on is pointless. Nothing is lost: a later run goes on from the ledger.
    """
    if not missed:
        return ()
    texts = [passage.text or passage.evidence or "" for passage in missed]
    claims = tuple(dict.fromkeys(claim.text for _, claim in unfaithful))
    shown = tuple(dict.fromkeys(texts))
    said = _embedded(claims, shown)
    if judge is not None and not isinstance(innermost(judge), EmbeddedJudge):
        said |= await judged_needs(claims, shown, question, judge, prompts)
    return tuple(
        _best(
            index,
            [
                (passage, said[claim.text, text])
                for passage, text in zip(missed, texts, strict=True)
            ],
        )
        for index, claim in unfaithful
    )


def _embedded(claims: Sequence[str], passages: Sequence[str]) -> OfPairs:
    """What the embedded judge says of every pair; each passage is read once.

    It is not asked of a pair that shares too little: of 2,484 such pairs of the data that the cut
    was chosen on it called every one unrelated, and to read the passage is what takes time.
    """
    said: OfPairs = {}
    for text in passages:
        near = [claim for claim in claims if share_of(claim, text) >= LEAST_SHARED]
        for claim, found in zip(near, relations(near, _context(text)) if near else (), strict=True):
            said[claim, text] = Said(*found)
        for claim in claims:
            said.setdefault((claim, text), Said("unrelated", None, None))
    return said


@lru_cache(maxsize=512)
def _context(text: str) -> Context:
    """A passage, read; many cases of a run miss the same ones."""
    return Context((text,))


def _best(index: int, held: Sequence[tuple[Missed, Said]]) -> ClaimLink:
    """The link of a claim to the passage that says most of it; the first of equals."""

    def merit(pair: tuple[Missed, Said]) -> tuple[float, ...]:
        passage, said = pair
        rank: float = _NO_RANK if passage.true_rank is None else passage.true_rank
        return _STRENGTH[said.relation], passage.grade, -rank, said.probability or 0.0

    passage, said = max(held, key=merit)
    return ClaimLink(
        index=index,
        passage_id=passage.passage_id,
        relation=said.relation,
        true_rank=passage.true_rank,
        distance=passage.distance,
        score=passage.score,
        quote=said.quote,
        probability=said.probability,
        by=said.by,
    )
