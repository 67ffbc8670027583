"""What passages say about needs and claims: by a model judge, who is asked once a case, or by words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict

from misslink.judge.backends.heuristic import HeuristicJudge
from misslink.judge.backends.response_parsing import is_length_error
from misslink.judge.judge_case import ask_safely
from misslink.judge.middleware.long_context import PassagePiece
from misslink.judge.prompts import BUILT_IN, Prompts
from misslink.judge.protocol import Ask, Judge, Reply, judge_info, unwrap_judge
from misslink.judge.tokens import estimate_ask_tokens, estimate_tokens
from misslink.linking.missed_passages import shared_stem_share
from misslink.matching import Passages, verify_quote
from misslink.text.languages import MIN_LANGUAGE_WORDS, short_words
from misslink.text.near_duplicates import passage_words
from misslink.text.normalization import content_stems
from misslink.types import Claim, ClaimLink, RetrievalMiss

Relation = Literal["would_support", "would_contradict", "unrelated"]
Texts = tuple[str, ...]

HEURISTIC = "heuristic"

SHORT_CLAIM = 3  # content words: a claim this short ("At seven.") is read with its question
# A passage that holds a smaller share of a claim's content stems is not asked about. Of 1,969
# sentences that people found supported, or wrote from the passage itself, that loses 0.6%
# (RAGTruth 10 of 1,360, BEGIN 1 of 198, CLAPNQ none of 411; none of the 6 that RAGTruth marks as
# contradicted), and it spares 88% of the pairs with a passage of another question. At 0.3 it
# would lose 3.1% of RAGTruth's. tests/linking/test_claim_support.py measures it again.
MIN_SHARED_STEMS = 0.15
# Of two languages, a claim shares fewer of its short words with a passage. Stricter than the cut
# for a whole answer and all its passages, which would take a third of English pairs that share no
# topic for two languages; this one 6% (RAGTruth), 14% (BEGIN) and 1% (CLAPNQ).
MIN_COMMON_WORDS = 0.15
_MIN_TIED = 0.5  # of a claim's stems, in a passage that the heuristic judge ties it to
_MAX_HALVINGS = 4  # as of an examination: who refuses a sixteenth refuses for another reason
_REPLY_OVERHEAD = 64  # tokens of a reply that are of no claim
# Tokens of an entry beside its quote: the numbers, the label and the field names. A quote is rarely
# longer than two times its claim.
_TOKENS_PER_CLAIM, _QUOTE_FACTOR = 48, 2


class ClaimNeed(BaseModel):
    """What the passages say of a claim or need, and which of them does, both by number from 1.

    ``passage`` is the best of those that were shown, ``missed_passage`` the best of the others;
    ``extent`` says whether the shown ones hold all of it.
    """

    model_config = ConfigDict(frozen=True)

    claim: int
    passage: int | None = None
    quote: str | None = None
    missed_passage: int | None = None
    missed_quote: str | None = None
    relation: Relation
    extent: Literal["whole", "part"] = "whole"


class ClaimNeeds(BaseModel):
    """What the passages say about claims; the reply to the ask ``claim_needs``."""

    model_config = ConfigDict(frozen=True)

    claims: tuple[ClaimNeed, ...]


@dataclass(frozen=True, slots=True)
class PairRelation:
    """The relation of one claim to one passage, the judge that found it, and if it is of a part."""

    relation: Relation
    quote: str | None
    probability: float | None
    by: str = HEURISTIC
    is_part: bool = False


# By claim and passage text, what is said of the two.
PairRelations = dict[tuple[str, str], PairRelation]


def related_share(claim: str, passage: str, question: str = "") -> float | None:
    """The share of a claim's content stems that a passage has; None where it can say nothing of it.

    It holds at least 15% of the claim's different content stems, numbers among them. A claim of three
    or fewer ("At seven.") may share one with the question instead. Two texts that share hardly any short
    words are in two languages, and may be related.

    Examples
    --------
    >>> related_share("The ferry leaves at nine.", "The ferry sails at seven.") is not None
    True
    >>> related_share("The ferry leaves at nine.", "Gulls nest under the roof.") is not None
    False
    """
    asked, held = content_stems(claim), passage_words(passage)
    share = len(asked & held) / len(asked) if asked else 0.0
    if share >= MIN_SHARED_STEMS:
        return share
    if len(asked) <= SHORT_CLAIM and not held.isdisjoint(content_stems(question)):
        return share
    words, others = short_words(claim), short_words(passage)
    tells = min(len(words), len(others)) >= MIN_LANGUAGE_WORDS
    return share if tells and len(words & others) < MIN_COMMON_WORDS * len(words) else None


def render_claim_needs(
    question: str, claims: Texts, passages: Texts, shown: int = 0, *, prompts: Prompts = BUILT_IN
) -> Ask:
    """Render the ask: what do passages say about claims? Both are numbered from 1.

    The first `shown` passages are those that the app read.
    """
    inputs = {"question": question, "claims": claims, "passages": passages, "shown": shown}
    return Ask.rendered(prompts.load("claim_needs"), inputs, ClaimNeeds)


async def judge_claim_needs(
    claims: Texts,
    shown: Texts,
    missed: Texts,
    question: str,
    judge: Judge,
    prompts: Prompts = BUILT_IN,
) -> PairRelations:
    """Ask a judge what shown and missed passages say about the claims, and verify its quotes.

    Pairs that cannot be related are left out, and the least similar where not all fit into the judge's
    context. Returns the relations by claim and passage; empty without a readable reply, and of the
    heuristic judge, whose relations need no ask.
    """
    if isinstance(unwrap_judge(judge), HeuristicJudge):
        return {}
    passages = tuple(dict.fromkeys((*shown, *missed)))
    pairs = _related_pairs(claims, passages, question)
    limit = _context_limit(judge)
    for _ in range(1 + _MAX_HALVINGS):
        chosen = pairs if limit is None else _pairs_that_fit(pairs, question, limit, judge, prompts)
        if not chosen:
            return {}
        # As the answer and the gold set have them: the same case asks the same.
        near_claims, near_texts = map(set, zip(*chosen, strict=True))
        some = tuple(filter(near_claims.__contains__, claims))
        texts = tuple(filter(near_texts.__contains__, passages))
        count = sum(text in shown for text in texts)
        ask = render_claim_needs(question, some, texts, count, prompts=prompts)
        reply = await ask_safely(judge, ask)
        if reply.came or not is_length_error(reply.problem or ""):
            return _read_reply(reply, some, texts, question, judge.name)
        needed = estimate_ask_tokens(ask) + _reply_tokens(some, judge)
        limit = min(limit or needed, needed) // 2
    return {}


def _related_pairs(claims: Texts, passages: Texts, question: str) -> list[tuple[str, str]]:
    """The pairs worth asking about, the most similar first; sorting keeps the order of equals."""
    shares = (
        (share, claim, text)
        for claim in claims
        for text in passages
        if (share := related_share(claim, text, question)) is not None
    )
    return [(claim, text) for _, claim, text in sorted(shares, key=lambda pair: -pair[0])]


def _context_limit(judge: Judge) -> int | None:
    """How many tokens prompt and reply may have together, where it is known."""
    given: int | None = getattr(getattr(judge, "terms", None), "context_length", None)
    model_limit = judge_info(judge).context_length
    return min((length for length in (given, model_limit) if length), default=None)


def _reply_tokens(claims: Sequence[str], judge: Judge) -> int:
    written = sum(_TOKENS_PER_CLAIM + _QUOTE_FACTOR * estimate_tokens(claim) for claim in claims)
    return min(judge_info(judge).max_tokens, _REPLY_OVERHEAD + written)


def _pairs_that_fit(
    pairs: Sequence[tuple[str, str]], question: str, limit: int, judge: Judge, prompts: Prompts
) -> list[tuple[str, str]]:
    """The most similar pairs that one question has room for; one too long makes way for others."""
    empty = estimate_ask_tokens(render_claim_needs(question, (), (), prompts=prompts))
    claims: set[str] = set()
    texts: set[str] = set()
    chosen = []
    for claim, text in pairs:
        with_claims, with_texts = claims | {claim}, texts | {text}
        size = sum(PassagePiece(0, text).size for text in (*with_claims, *with_texts))
        if empty + size + _reply_tokens([*with_claims], judge) <= limit:
            claims, texts = with_claims, with_texts
            chosen.append((claim, text))
    return chosen


def _read_reply(
    reply: Reply, claims: Texts, passages: Texts, question: str, name: str
) -> PairRelations:
    """What a reply says of every pair of the claims it speaks of, the quotes looked up."""
    if not isinstance(reply.parsed, ClaimNeeds):
        return {}
    judge_name = reply.judge or name
    relations: PairRelations = {}
    for place, item in enumerate(reply.parsed.claims):
        if not 1 <= item.claim <= len(claims):
            continue
        claim, unrelated = claims[item.claim - 1], item.relation == "unrelated"
        chance = reply.chance(f"claims.{place}.relation", "would_support")
        # P(support) of a claim whose quote does not hold is of a word that is not believed.
        nothing = PairRelation("unrelated", None, chance if unrelated else None, judge_name)
        for text in passages:
            relations.setdefault((claim, text), nothing)
        is_part = item.extent == "part"
        supports = item.relation == "would_support" and not is_part
        named = (item.passage, item.quote), (item.missed_passage, item.missed_quote)
        for number, quote in () if unrelated else named:
            if not quote:
                continue
            located = _locate_quote(quote, number, claim, passages, question, supports=supports)
            if located is not None and relations[claim, located[0]].relation == "unrelated":
                relations[claim, located[0]] = PairRelation(
                    item.relation, located[1], chance, judge_name, is_part
                )
    return relations


def _locate_quote(
    quote: str, number: int | None, claim: str, passages: Texts, question: str, *, supports: bool
) -> tuple[str, str] | None:
    """The passage that holds a quote, and the quote as it is written there.

    The named passage goes first; the words decide, as a number is easily mistaken. A quote that need not
    support the claim only has to be there.
    """
    named = passages[number - 1 : number] if number and number > 0 else ()
    for text in dict.fromkeys((*named, *passages)):
        place = verify_quote(quote, text, claim, question, supports=supports)
        if place is not None:
            return text, text[place.start : place.end]
    return None


_WEAKEST_FIRST: tuple[Relation, ...] = ("unrelated", "would_contradict", "would_support")
_NO_RANK = float("inf")  # behind every passage that has a rank


def link_claims(
    claims: Sequence[tuple[int, Claim]],
    missed: Sequence[RetrievalMiss],
    said: PairRelations | None = None,
) -> tuple[ClaimLink, ...]:
    """Link every bad claim to the missed passage that says most about it.

    A passage that would support the claim goes before one that would contradict it, and that before one
    that says nothing about it; then the higher probability, the higher grade and the better rank.

    Parameters
    ----------
    claims : sequence of (int, Claim)
        With their index in the faithfulness verdict.
    missed : sequence of RetrievalMiss
    said : mapping or None
        What a model judge says of pairs, in place of the heuristic judge, which relates all.

    Returns
    -------
    tuple of ClaimLink
        One for each claim, in their order; empty where no missed passage's text is known.
    """
    known = [(each, text) for each in missed if (text := each.text or each.evidence)]
    links = []
    for index, claim in claims if known else ():
        pairs = (
            (each, (said or {}).get((claim.text, text)) or _relate(claim.text, text))
            for each, text in known
        )
        passage, relation = max(pairs, key=_strength)  # the first of equals
        links.append(
            ClaimLink(
                index=index,
                passage_id=passage.passage_id,
                relation=relation.relation,
                true_rank=passage.true_rank,
                distance=passage.distance,
                score=passage.score,
                quote=relation.quote,
                probability=relation.probability,
                by=relation.by,
            )
        )
    return tuple(links)


def _strength(pair: tuple[RetrievalMiss, PairRelation]) -> tuple[float, ...]:
    """How much a passage says of a claim."""
    passage, said = pair
    relation, rank = _WEAKEST_FIRST.index(said.relation), passage.true_rank or _NO_RANK
    return relation, said.probability or 0.0, passage.grade, -rank


def _relate(claim: str, passage: str) -> PairRelation:
    """The relation of a pair by the heuristic judge.

    One that shares too little is unrelated without a check: reading the passage is what takes time.
    """
    if shared_stem_share(claim, passage) < _MIN_TIED:
        return PairRelation("unrelated", None, None)
    return PairRelation(*Passages.of((passage,)).match(claim).relation)
