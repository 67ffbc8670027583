"""Claims, missed passages, and what a scripted judge says of the two."""

from __future__ import annotations

from misslink.judge.protocol import Reply
from misslink.linking.claim_support import ClaimNeed, ClaimNeeds
from misslink.types import Claim, RetrievalMiss

FERRY = "The ferry to Holm leaves at seven."
GULLS = "Gulls nest there."
TOLL = "Ships pay a toll."
K = 5


def unfaithful(*texts):
    return [(n, Claim(text=text, support="unsupported")) for n, text in enumerate(texts)]


def lost(name, text, *, grade=1, rank=17, evidence=None):
    distance = None if rank is None else rank - K
    return RetrievalMiss(
        passage_id=name,
        text=text,
        grade=grade,
        true_rank=rank,
        distance=distance,
        evidence=evidence,
    )


def said(claim, relation, passage=None, quote=None):
    return ClaimNeed(claim=claim, relation=relation, passage=passage, quote=quote)


def needs(*claims, chance=None):
    """A reply; `chance` is P(would_support) of each entry."""
    likely = {} if chance is None else {"would_support": chance, "unrelated": 1 - chance}
    probabilities = {f"claims.{place}.relation": likely for place in range(len(claims)) if likely}
    return Reply(ClaimNeeds(claims=claims), "{}", probabilities=probabilities)
