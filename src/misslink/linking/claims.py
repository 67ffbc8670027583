"""Which missed passage an unfaithful claim needed."""

from __future__ import annotations

from collections.abc import Sequence

from misslink.judging.embedded import relation
from misslink.judging.protocol import Judge
from misslink.prompting import Prompts
from misslink.prompting.prompts import BUILT_IN
from misslink.types import Claim, ClaimLink, Missed

__all__ = ["hold_claims"]

_STRENGTH = {"would_support": 2, "would_contradict": 1, "unrelated": 0}


async def hold_claims(
    unfaithful: Sequence[tuple[int, Claim]],
    missed: Sequence[Missed],
    *,
    question: str = "",
    judge: Judge | None = None,
    prompts: Prompts = BUILT_IN,
) -> tuple[ClaimLink, ...]:
    """Hold every unfaithful claim against the missed passages, and keep the nearest one.

    Parameters
    ----------
    unfaithful : sequence of (int, Claim)
        The claims with their places in the faithfulness verdict.
    missed : sequence of Missed
    question : str
        What the answer answers.
    judge : Judge or None
        Who is asked what the nearest passages say; None: the embedded judge alone.
    prompts : Prompts

    Returns
    -------
    tuple of ClaimLink
        One for each claim; empty where nothing was missed. The relation is the embedded judge's,
        a heuristic, whoever judged the claim.
    """
    if not missed:
        return ()
    links = []
    for index, claim in unfaithful:
        candidates = []
        for place, passage in enumerate(missed):
            kind, quote, probability = relation(claim.text, passage.text or passage.evidence or "")
            candidates.append((_STRENGTH[kind], probability, -place, kind, quote, passage))
        _, probability, _, kind, quote, passage = max(candidates, key=lambda found: found[:3])
        links.append(
            ClaimLink(
                index=index,
                passage_id=passage.passage_id,
                relation=kind,
                true_rank=passage.true_rank,
                distance=passage.distance,
                score=passage.score,
                quote=quote,
                probability=probability,
            )
        )
    return tuple(links)
