"""What a judge says of claims and of passages that the app never saw: one question a case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from pydantic import BaseModel, ConfigDict

from misslink.judging.asking import put
from misslink.judging.embedded.lexical import SAID_OF_SOURCES, stems
from misslink.judging.endings import too_long
from misslink.judging.nearly import UNSPACED
from misslink.judging.protocol import Ask, Judge, Reply, innermost, longest_reply
from misslink.judging.quotes import SHORT_CLAIM, TELLING_WORDS, verified
from misslink.judging.wrappers.packing import Piece, size_of, tokens
from misslink.linking.words import passage_stems
from misslink.prompting import BUILT_IN, Prompts
from misslink.text import fold

__all__ = [
    "LEAST_SHARED",
    "ClaimNeeds",
    "NeedSaid",
    "OfPairs",
    "Relation",
    "Said",
    "ask_needs",
    "foreseen_needs",
    "judged_needs",
    "may_be_related",
    "share_of",
]

Relation = Literal["would_support", "would_contradict", "unrelated"]
Texts = tuple[str, ...]

# A passage that holds a smaller share of a claim's content stems is not asked about. Of 1,969
# sentences that people found supported, or wrote from the passage itself, that loses 0.6 %
# (RAGTruth 10 of 1,360, BEGIN 1 of 198, CLAPNQ none of 411; none of the 6 that RAGTruth marks as
# contradicted), and it spares 88 % of the pairs with a passage of another question. At 0.3 it
# would lose 3.1 % of RAGTruth's. tests/linking/test_claims_prefilter.py measures it again.
LEAST_SHARED = 0.15
# Of two languages, a claim shares fewer of its short words with a passage. Stricter than the cut
# for a whole answer and all its passages, which would take a third of English pairs that share no
# topic for two languages; this one 6 % (RAGTruth), 14 % (BEGIN) and 1 % (CLAPNQ).
LEAST_COMMON = 0.15
_SHORT_WORD = 4  # letters
_HALVINGS = 4  # as of an examination: who refuses a sixteenth refuses for another reason
_AROUND = 64  # tokens of a reply that are of no claim
_A_CLAIM = 48  # tokens of an entry beside its quote: the numbers, the label and the field names
_QUOTE = 2  # a quote is rarely longer than two times its claim


class NeedSaid(BaseModel):
    """What the passages say of a claim, and which of them does, both by number from 1."""

    model_config = ConfigDict(frozen=True)

    claim: int
    relation: Relation
    passage: int | None = None
    quote: str | None = None


class ClaimNeeds(BaseModel):
    """What is said of claims held against passages that the app never saw."""

    model_config = ConfigDict(frozen=True)

    claims: tuple[NeedSaid, ...]


@dataclass(frozen=True, slots=True)
class Said:
    """What somebody said of one claim and one passage."""

    relation: Relation
    quote: str | None
    probability: float | None
    by: str = "embedded"


OfPairs = dict[tuple[str, str], Said]  # claim and passage text -> what is said of the two


def may_be_related(claim: str, passage: str, question: str = "") -> bool:
    """Whether a passage may say anything of a claim, told from shared words; generous.

    It holds at least 15 % of the claim's different content stems, numbers among them. A claim of
    three or fewer ("At seven.") may share one with the question instead. Of two texts that share
    hardly any of their short words, so that they are in two languages, nothing can be told: they
    may be related.

    Parameters
    ----------
    claim, passage, question : str

    Returns
    -------
    bool
        False of an empty passage.

    Examples
    --------
    >>> may_be_related("The ferry leaves at nine.", "The ferry sails at seven.")
    True
    >>> may_be_related("The ferry leaves at nine.", "Gulls nest under the roof.")
    False
    """
    return _shared(claim, passage, question) is not None


def _shared(claim: str, passage: str, question: str) -> float | None:
    """The share of the claim's stems that the passage holds; None where they are not related."""
    if not passage.strip():
        return None
    share = share_of(claim, passage)
    if share >= LEAST_SHARED:
        return share
    short = len(_tellings(claim)) <= SHORT_CLAIM
    by_question = short and not _tellings_of(passage).isdisjoint(_tellings(question))
    return share if by_question or (not share and _differ_in_language(claim, passage)) else None


def share_of(claim: str, passage: str) -> float:
    """Share of the claim's different content stems that a passage holds; 0 where it has none."""
    wanted = _tellings(claim)
    return len(wanted & _tellings_of(passage)) / len(wanted) if wanted else 0.0


def _differ_in_language(claim: str, passage: str) -> bool:
    mine, theirs = _short_words(claim), _short_words(passage)
    if min(len(mine), len(theirs)) < TELLING_WORDS:
        return False
    return len(mine & theirs) < LEAST_COMMON * len(mine)


@lru_cache(maxsize=1024)
def _short_words(text: str) -> frozenset[str]:
    """Every language has its own; in scripts without blanks a character is a word."""
    folded = fold(text)
    words = (word for word in folded.split() if len(word) <= _SHORT_WORD and word.isalpha())
    return frozenset((*UNSPACED.findall(folded), *words))


@lru_cache(maxsize=4096)
def _tellings(text: str) -> frozenset[str]:
    return frozenset(stems(text)) - SAID_OF_SOURCES


@lru_cache(maxsize=4096)
def _tellings_of(passage: str) -> frozenset[str]:
    """As `_tellings`, of a passage, whose stems are kept for all that compares passages."""
    return frozenset(passage_stems(passage)) - SAID_OF_SOURCES


def ask_needs(question: str, claims: Texts, passages: Texts, *, prompts: Prompts = BUILT_IN) -> Ask:
    """Ask what passages that the app never saw would have said of claims.

    Parameters
    ----------
    question : str
    claims, passages : sequence of str
        Numbered from 1 in the prompt and in the reply.
    prompts : Prompts
    """
    inputs = {"question": question, "claims": claims, "passages": passages}
    return Ask.rendered(prompts.load("claim_needs"), inputs, ClaimNeeds)


async def judged_needs(
    claims: Texts, passages: Texts, question: str, judge: Judge, prompts: Prompts
) -> OfPairs:
    """Ask a judge what the passages would have said of the claims, and look its quotes up.

    Parameters
    ----------
    claims, passages : sequence of str
        Each text once. Pairs that cannot be related are not asked about, and where not all of the
        rest fit into the judge's context, the least similar are left out.
    question : str
    judge : Judge
    prompts : Prompts

    Returns
    -------
    dict of (str, str) to Said
        By claim and passage; empty where there was nothing to ask, or no reply can be had or read.

    Raises
    ------
    JudgeUnreachableError
        Asking on is pointless.
    """
    pairs = _related(claims, passages, question)
    limit = _limit(judge)
    for _ in range(1 + _HALVINGS):
        chosen = pairs if limit is None else _that_fit(pairs, question, limit, judge, prompts)
        if not chosen:
            return {}
        some, shown = _in_order(chosen, claims, passages)
        ask = ask_needs(question, some, shown, prompts=prompts)
        reply = await put(judge, ask)
        if reply.came or not too_long(reply.problem or ""):
            return _read(reply, some, shown, question, judge.name)
        limit = min(limit or _needed(ask, some, judge), _needed(ask, some, judge)) // 2
    return {}


def foreseen_needs(
    claims: Texts, passages: Texts, question: str, *, prompts: Prompts
) -> Ask | None:
    """Return what `judged_needs` would ask a judge without a limit; None where nothing."""
    pairs = _related(claims, passages, question)
    if not pairs:
        return None
    return ask_needs(question, *_in_order(pairs, claims, passages), prompts=prompts)


def _related(claims: Texts, passages: Texts, question: str) -> list[tuple[str, str]]:
    """The pairs worth asking about, the most similar first; sorting keeps the order of equals."""
    shares = (
        (share, claim, text)
        for claim in claims
        for text in passages
        if (share := _shared(claim, text, question)) is not None
    )
    return [(claim, text) for _, claim, text in sorted(shares, key=lambda pair: -pair[0])]


def _in_order(
    chosen: Sequence[tuple[str, str]], claims: Texts, passages: Texts
) -> tuple[Texts, Texts]:
    """What the pairs hold, as the answer and the gold set have it: the same case asks the same."""
    held = {claim for claim, _ in chosen}, {text for _, text in chosen}
    some, shown = (
        tuple(text for text in every if text in kept)
        for every, kept in zip((claims, passages), held, strict=True)
    )
    return some, shown


def _limit(judge: Judge) -> int | None:
    """How many tokens prompt and reply may have together, where it is known."""
    given: int | None = getattr(getattr(judge, "terms", None), "context_length", None)
    known: int | None = getattr(innermost(judge), "context_length", None)
    return min((length for length in (given, known) if length), default=None)


def _needed(ask: Ask, claims: Sequence[str], judge: Judge) -> int:
    return size_of(ask) + _reply_room(claims, judge)


def _reply_room(claims: Sequence[str], judge: Judge) -> int:
    written = sum(_A_CLAIM + _QUOTE * tokens(claim) for claim in claims)
    return min(longest_reply(innermost(judge)), _AROUND + written)


def _that_fit(
    pairs: Sequence[tuple[str, str]], question: str, limit: int, judge: Judge, prompts: Prompts
) -> list[tuple[str, str]]:
    """The most similar pairs that one question has room for; one too long makes way for others."""
    empty = size_of(ask_needs(question, (), (), prompts=prompts))
    claims: set[str] = set()
    texts: set[str] = set()
    chosen = []
    for claim, text in pairs:
        with_claims, with_texts = claims | {claim}, texts | {text}
        size = sum(Piece(0, each).size for each in (*with_claims, *with_texts))
        if empty + size + _reply_room([*with_claims], judge) <= limit:
            claims, texts = with_claims, with_texts
            chosen.append((claim, text))
    return chosen


def _read(reply: Reply, claims: Texts, passages: Texts, question: str, name: str) -> OfPairs:
    """What a reply says of every pair of the claims it speaks of, the quotes looked up."""
    if not isinstance(reply.parsed, ClaimNeeds):
        return {}
    by = reply.judge or name
    said: OfPairs = {}
    for place, item in enumerate(reply.parsed.claims):
        if not 1 <= item.claim <= len(claims):
            continue
        claim, unrelated = claims[item.claim - 1], item.relation == "unrelated"
        chance = reply.chance(f"claims.{place}.relation", "would_support")
        # P(support) of a claim whose quote does not hold is of a word that is not believed.
        nothing = Said("unrelated", None, chance if unrelated else None, by)
        for text in passages:
            said.setdefault((claim, text), nothing)
        found = None if unrelated else _look_up(item, claim, passages, question)
        if found is not None and said[claim, found[0]].relation == "unrelated":
            said[claim, found[0]] = Said(item.relation, found[1], chance, by)
    return said


def _look_up(item: NeedSaid, claim: str, passages: Texts, question: str) -> tuple[str, str] | None:
    """The passage that holds a quote, and the quote as it stands there; the one named goes first.

    A number is easily mistaken; the words show which passage was meant.
    """
    if not item.quote:
        return None
    number = item.passage or 0
    named = passages[number - 1 : number] if number > 0 else ()
    for text in dict.fromkeys((*named, *passages)):
        place = verified(item.quote, text, claim, question, context=passages)
        if place is not None:
            return text, text[place.start : place.end]
    return None
