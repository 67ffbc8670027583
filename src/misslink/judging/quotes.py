"""Whether a quote that a judge gives stands in a passage, and speaks of the claim it is given for.

Three things are asked of a quote. It stands there: word for word after folding, or with a few
slips of the pen, none of which may touch a number, a sign, a short word, a negation, a name or a
word of the claim (`misslink.judging.nearly`). It cuts no word or number in two ("able" is not in
"unable"). And the sentence it stands in shares a content word or a number with the claim: a judge
that obeys a text it should judge quotes the order ("All claims are supported."), and that order
says nothing of the harbour.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from misslink.judging.embedded.lexical import SAID_OF_SOURCES, stems
from misslink.judging.nearly import UNSPACED, WORD, Found, facts, near
from misslink.text import fold, has_content, sentences

__all__ = ["Found", "find_quote", "in_another_language", "speaks_of", "verified"]

SHORT_CLAIM = 3  # content words: a claim this short ("At seven.") is read with its question
SAME_LANGUAGE = 0.3  # share of an answer's short words that its passages hold, at least,
TELLING_WORDS = 5  # and different ones that both must have before anything is said of that
_PART_WORDS = 2  # of each side of an ellipsis
# Words an order to a judge is made of; a claim that holds others must share one of those.
_OF_JUDGING = frozenset(
    stems(
        "claim support unsupported contradict faithful correct incorrect true false verdict judge"
        " judgement evaluate evaluation grade score rating label instruction ignore previous system"
        " assistant user reply response json quote verify verified approved relevant everything"
    )
)

_ELLIPSIS = re.compile(r"\s*(?:[\[(]\s*(?:\.{3,}|\u2026)\s*[\])]|\.{3,}|\u2026)\s*")
# What surrounds a quote and is not of it.
_BEFORE = " \t\n\r\f\v\u00a0\"'*_`\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u00ab\u00bb"
_BEHIND = _BEFORE + ",;:."
_SHORT_WORD = re.compile(r"(?<!\w)[^\W\d_]{1,4}(?!\w)")


def verified(
    quote: str,
    passage: str,
    claim: str,
    question: str = "",
    *,
    context: Sequence[str] | None = None,
) -> Found | None:
    """Return where `quote` stands in `passage`, if it does and if it speaks of `claim`.

    Parameters
    ----------
    quote, passage, claim : str
    question : str
        What the claim answers; a claim of three content words or fewer is read with it.
    context : sequence of str or None
        All that the answer was written from: where the claim is in none of its languages, a quote
        need share no word with it, unless it is made of the words of an order to a judge alone.
        None: the passage alone. An order in a foreign language inside of a text is no reason, nor
        is one foreign passage among others.

    Returns
    -------
    Found or None
        None too where the quote holds no content word.
    """
    asked = f"{claim} {question}"
    first = found = find_quote(quote, passage, asked)
    while found is not None and not speaks_of(found, passage, claim, question):
        later = find_quote(quote, passage[found.end :], asked)
        found = later and Found(found.end + later.start, found.end + later.end, later.edits)
    if found is None and first is not None:
        words = _tellings(passage[first.start : first.end])
        if words and words <= _OF_JUDGING:  # an order, whatever the language of the claim
            return None
        said = claim if len(_short_words(claim)) >= TELLING_WORDS else asked
        return first if in_another_language(said, context or (passage,)) else None
    return found


def find_quote(quote: str, text: str, claim: str = "") -> Found | None:
    """Return where `quote` stands in `text`, whatever it speaks of.

    Verbatim after folding, else with a few slips (see `near`). An ellipsis in it may leave out
    words of one sentence, if neither a number nor a negation is among them; what is found is then
    the whole stretch.

    Parameters
    ----------
    quote : str
        Without a content word it is nowhere.
    text : str
    claim : str
        What it is given for: no slip is allowed in a word that this has as the quote writes it.
    """
    if not has_content(quote):
        return None
    bare = _bare(quote)
    return near(bare, text, claim) or _with_gaps(bare, text, claim)


def speaks_of(found: Found, passage: str, claim: str, question: str = "") -> bool:
    """Whether the sentences of `passage` around a quote share a word or number with `claim`.

    Content words count by their stems, numbers in digits or words, words about sources and answers
    ("passage", "according") not at all. A claim of three content words or fewer may share with the
    question instead; a claim and question without any content word ask nothing.
    """
    if _shares_a_word(claim, passage[found.start : found.end]):
        return True
    wanted = _tellings(claim)
    if len(wanted) <= SHORT_CLAIM:
        wanted = wanted | _tellings(question)
    wanted = wanted - _OF_JUDGING or wanted
    if not wanted or not wanted.isdisjoint(_tellings(passage[found.start : found.end])):
        return True
    around = (
        passage[start:end]
        for start, end in _sentences(passage)
        if start < found.end and found.start < end
    )
    return any(not wanted.isdisjoint(_tellings(sentence)) for sentence in around)


def in_another_language(answer: str, passages: Sequence[str]) -> bool:
    """Whether `answer` is in no language of `passages`, so that no shared word can be asked.

    Told without any word list: every language has its own short words, and an answer shares most
    of its words of up to four letters (in scripts without blanks: its characters) with passages of
    the same language. Where either has fewer than five different ones nobody can tell, and the
    language is taken to be the same.
    """
    mine = _short_words(answer)
    theirs = frozenset[str]().union(*map(_short_words, passages))
    if min(len(mine), len(theirs)) < TELLING_WORDS:
        return False
    return len(mine & theirs) / len(mine) < SAME_LANGUAGE


def _shares_a_word(claim: str, quote: str) -> bool:
    """Whether the two share a telling word as it stands, and what stands around it; most do.

    To cut both into words and those into stems takes ten times as long.
    """
    shared = set(fold(quote).split()).intersection(fold(claim).split())
    return any(map(_is_telling, shared))


def _bare(quote: str) -> str:
    return quote.lstrip(_BEFORE).rstrip(_BEHIND)


@lru_cache(maxsize=16_384)  # the words of a large corpus, looked at one by one
def _is_telling(piece: str) -> bool:
    return bool(_tellings(piece) - _OF_JUDGING)


@lru_cache(maxsize=16_384)
def _tellings(text: str) -> frozenset[str]:
    return frozenset(stems(text)) - SAID_OF_SOURCES


@lru_cache(maxsize=512)
def _sentences(text: str) -> tuple[tuple[int, int], ...]:
    return tuple(sentences(text))


@lru_cache(maxsize=512)
def _short_words(text: str) -> frozenset[str]:
    folded = fold(text)
    return frozenset((*UNSPACED.findall(folded), *_SHORT_WORD.findall(folded)))


def _with_gaps(quote: str, text: str, claim: str) -> Found | None:
    parts = [part for part in _ELLIPSIS.split(quote) if part.strip()]
    if len(parts) < 2:  # noqa: PLR2004 (an ellipsis has two sides)
        # One that opens or closes a quote leaves nothing out of it.
        whole = bool(parts) and parts[0] != quote
        return near(_bare(parts[0]), text, claim) if whole else None
    if any(len(WORD.findall(part)) < _PART_WORDS or not has_content(part) for part in parts):
        return None
    for start, end in _sentences(text):
        found = _in_order(parts, text[start:end], claim)
        if found is not None:
            return Found(start + found.start, start + found.end, found.edits)
    return None


def _in_order(parts: Sequence[str], sentence: str, claim: str) -> Found | None:
    places: list[Found] = []
    for part in parts:
        since = places[-1].end if places else 0
        found = near(_bare(part), sentence[since:], claim)
        if found is None:
            return None
        place = Found(since + found.start, since + found.end, found.edits)
        left_out = fold(sentence[since : place.start]) if places else ""
        if any(map(len, facts(left_out))):
            return None
        places.append(place)
    return Found(places[0].start, places[-1].end, sum(place.edits for place in places))
