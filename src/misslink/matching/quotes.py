"""Check a judge's quotes against the passages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice

from misslink.matching.abstention import content_stems
from misslink.matching.assertion import enclosing_sentences, is_negated, loses_denial, not_asserted
from misslink.matching.claim_matching import MatchingContext, find_conflict
from misslink.matching.contrast import contrast
from misslink.matching.frames import frame_kind, sentence_kinds
from misslink.matching.fuzzy_matching import (
    UNSPACED,
    WORD,
    FuzzyMatch,
    fuzzy_match,
    invariant_tokens,
)
from misslink.text.normalization import (
    STOPWORDS,
    KeywordPattern,
    fold,
    has_content,
    overlapping,
    sentence_spans,
    stems,
)

SHORT_CLAIM = 3  # content words: a claim this short ("At seven.") is read with its question
SAME_LANGUAGE = 0.3  # share of an answer's short words that its passages hold, at least,
MIN_LANGUAGE_WORDS = 5  # and different ones that both must have before anything is said of that
_MAX_MATCHES = 10  # places of a quote that are looked at: a passage may repeat itself for ever
_MAX_PARTS = 8  # of a quote with ellipses
_PART_WORDS = 2  # of each side of an ellipsis
_UNASSERTED = frozenset(("question", "hearsay", "example"))
# Words an order to a judge is made of; a claim that holds others must share one of those.
_JUDGING_STEMS = frozenset(
    stems(
        "claim support unsupported contradict faithful correct incorrect true false verdict judge"
        " judgement evaluate evaluation grade score rating label instruction ignore previous system"
        " assistant user reply response json quote verify verified approved relevant everything"
    )
)

_ELLIPSIS = re.compile(r"\s*(?:[\[(]\s*(?:\.{3,}|\u2026)\s*[\])]|\.{3,}|\u2026)\s*")
# What surrounds a quote and is not of it.
_LEADING_MARKS = (
    " \t\n\r\f\v\u00a0\"'*_`\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u00ab\u00bb"
)
_TRAILING_MARKS = _LEADING_MARKS + ",;:."
# What follows a condition; a claim that shares no word with it is only supposed.
# "Falls" is an English noun too, so German words must follow it.
_IF = r"\b(?:if|wenn|falls(?=.*\b(?:das|dem|den|der|ein|eine|es|ist|nicht|sie|und)\b))\b"
_CONDITIONAL = re.compile(_IF, re.DOTALL)
_CONDITION = re.compile(rf"\W*{_IF}[^,]+,(.*)", re.DOTALL)
# In what a quote leaves out of its sentence; "even if" and "ask if" begin no condition.
_LEFT_OUT_CONDITION = KeywordPattern(
    r"(?<!\beven )(?<!\bas )(?<!\bask )(?<!\basks )(?<!\bsee )(?<!\bknow )(?<!\bauch )(?<!\bselbst )"
    rf"(?:{_IF}|\b(?:unless|provided that|as long as|in case|in the event|es sei denn|sofern|solange"
    r"|im falle?)\b|\A\W*(?:were|should|had)\b(?=.*,\s*\Z))(.+)",
    keywords="if unless provided long case event wenn fall denn sofern solange were should had",
    flags=re.DOTALL,
)
_THOUSANDS = re.compile(r"(?<=\d) (?=\d{3}(?!\d))")
_GERMAN_WORDS = (
    "der die das den dem des ein eine und oder ist sind wird auf aus bei mit nach von vom zu "
    "zum zur im um fur wie als wenn dass es er sie ich wir ihr nur auch noch kein"
)
_LANGUAGES = STOPWORDS.difference(("am", "an", "in", "so", "was")), frozenset(_GERMAN_WORDS.split())
_SHORT_WORD = re.compile(r"(?<!\w)[^\W\d_]{1,4}(?!\w)")


def verify_quote(
    quote: str,
    passage: str,
    claim: str,
    question: str = "",
    *,
    context: Sequence[str] | None = None,
    supports: bool = True,
) -> FuzzyMatch | None:
    """Return the position of `quote` in `passage` if it is evidence about `claim`, else None.

    It must share a topic with the claim. If it `supports` the claim, it must also assert something
    (see `asserts`).
    """
    claim_and_question = f"{claim} {question}"
    first = None
    for match in islice(_iter_matches(quote, passage, claim_and_question), _MAX_MATCHES):
        if supports and not asserts(match, passage, claim, question):
            continue
        if shares_topic(match, passage, claim, question):
            return match
        first = first or match
    if first is None:
        return None
    words = content_stems(passage[first.start : first.end])
    if words and words <= _JUDGING_STEMS:  # an order, whatever the language of the claim
        return None
    claim_text = claim if len(_short_words(claim)) >= MIN_LANGUAGE_WORDS else claim_and_question
    return first if is_other_language(claim_text, context or (passage,)) else None


def _iter_matches(quote: str, passage: str, claim: str) -> Iterator[FuzzyMatch]:
    """Every place of a quote, nearly equal ones only where no later place is."""
    end = 0
    while match := find_quote(quote, passage[end:], claim):
        yield FuzzyMatch(end + match.start, end + match.end, match.edits)
        end += match.end


def asserts(match: FuzzyMatch, passage: str, claim: str, question: str = "") -> bool:
    """Whether a quote may support a claim: more than a word of a sentence, and an assertion.

    Questions, hearsay and examples support no claim that is none itself, and a quote without the
    condition of its sentence no claim that does not mention it.

    A denial that stands beside the quote counts too ("It is false that", "not"), unless the claim
    denies something itself.
    """
    words = passage[match.start : match.end]
    left, right = enclosing_sentences(passage, match.start, match.end)
    is_word = len(WORD.findall(words)) < _PART_WORDS and not UNSPACED.search(words)
    if is_word and len(WORD.findall(passage[left:right])) >= _PART_WORDS:
        return False
    sentence = passage[left:right]
    kinds = {kind for _, _, kind in overlapping(sentence_kinds(passage), match.start, match.end)}
    kinds = {frame_kind(passage, left, right, claim)} - {None} or kinds
    if kinds and kinds <= _UNASSERTED and not_asserted(claim) is None:
        return False
    topic = content_stems(claim)
    condition = None if _CONDITIONAL.search(fold(claim)) else _CONDITION.match(fold(sentence))
    if condition and topic.isdisjoint(content_stems(condition[1])):
        return False
    if not _CONDITIONAL.search(fold(claim)):
        before = fold(passage[left : match.start]).rpartition(";")[2]
        after = fold(passage[match.end : right]).partition(";")[0]
        for condition in filter(None, map(_LEFT_OUT_CONDITION.search, (before, after))):
            supposed = content_stems(condition[1])
            if supposed and supposed.isdisjoint(content_stems(f"{claim} {question}")):
                return False
    # The rest compares what claim and sentence say.
    if is_negated(claim) or (kinds != {"denied"} and fold(claim) == fold(sentence)):
        return True
    if (
        kinds == {"denied"}
        or not_asserted(words) == "denied"
        or loses_denial(passage, match.start, match.end)
    ):
        return False
    numbers = _numbers(claim)
    new_numbers = numbers - _numbers(sentence) if numbers else numbers
    if numbers and MatchingContext([sentence], quoting=True).misquoted_numbers(claim):
        return False
    return not contrast(claim, sentence) and not any(
        find_conflict(claim, text, _coverage(topic, text), new_numbers)
        for text in (words, *([sentence] if new_numbers else []))
    )


def _numbers(text: str) -> frozenset[str]:
    plain = _THOUSANDS.sub("", fold(text))
    return frozenset(number.replace(",", "") for number in invariant_tokens(plain)[0])


def _coverage(topic: frozenset[str], text: str) -> float:
    """Share of the words of a claim, numbers aside, that a text holds."""
    plain = {word for word in topic if not word[0].isdigit()}
    return len(plain & content_stems(text)) / len(plain) if plain else 0.0


@lru_cache(maxsize=256)
def find_quote(quote: str, text: str, claim: str = "") -> FuzzyMatch | None:
    """Return the position of `quote` in `text`, allowing typos and ellipses."""
    if not has_content(quote):
        return None
    bare = _strip_marks(quote)
    return fuzzy_match(bare, text, claim) or _find_with_ellipsis(bare, text, claim)


def shares_topic(match: FuzzyMatch, passage: str, claim: str, question: str = "") -> bool:
    """Whether the sentences of `passage` around a quote share a word or number with `claim`.

    Content words count by their stems, numbers in digits or words, words about sources and answers
    ("passage", "according") not at all. A claim of three content words or fewer may share with the
    question instead; a claim and question without any content word ask nothing.
    """
    if _shares_word(claim, passage[match.start : match.end]):
        return True
    topic = content_stems(claim)
    if len(topic) <= SHORT_CLAIM:
        topic = topic | content_stems(question)
    topic = topic - _JUDGING_STEMS or topic
    if not topic or not topic.isdisjoint(content_stems(passage[match.start : match.end])):
        return True
    around = (
        passage[start:end]
        for start, end in overlapping(sentence_spans(passage), match.start, match.end)
    )
    return any(not topic.isdisjoint(content_stems(sentence)) for sentence in around)


def is_other_language(answer: str, passages: Sequence[str]) -> bool:
    """Return whether the short words of `answer` are not those of the languages of `passages`."""
    answer_words = _short_words(answer)
    passage_words = frozenset[str]().union(*map(_short_words, passages))
    if min(len(answer_words), len(passage_words)) < MIN_LANGUAGE_WORDS:
        return False
    for language in _LANGUAGES:  # short texts of one language may share few words
        shares = (len(words & language) / len(words) for words in (answer_words, passage_words))
        if min(shares) >= SAME_LANGUAGE:
            return False
    return len(answer_words & passage_words) / len(answer_words) < SAME_LANGUAGE


def is_known_language(text: str) -> bool:
    """Return whether the short words of `text` are mostly English or German ones."""
    words = _short_words(text)
    return any(len(words & language) >= SAME_LANGUAGE * len(words) > 0 for language in _LANGUAGES)


def _shares_word(claim: str, quote: str) -> bool:
    """Whether the two share a telling word as it stands, and what stands around it; most do.

    To cut both into words and those into stems takes ten times as long.
    """
    shared = set(fold(quote).split()).intersection(fold(claim).split())
    return any(map(_is_content_piece, shared))


def _strip_marks(quote: str) -> str:
    return quote.lstrip(_LEADING_MARKS).rstrip(_TRAILING_MARKS)


@lru_cache(maxsize=16_384)  # the words of a large corpus, looked at one by one
def _is_content_piece(piece: str) -> bool:
    return bool(content_stems(piece) - _JUDGING_STEMS)


@lru_cache(maxsize=512)
def _short_words(text: str) -> frozenset[str]:
    folded = fold(text)
    return frozenset((*UNSPACED.findall(folded), *_SHORT_WORD.findall(folded)))


def _find_with_ellipsis(quote: str, text: str, claim: str) -> FuzzyMatch | None:
    parts = [part for part in _ELLIPSIS.split(quote) if part.strip()]
    if len(parts) < 2:
        # One that opens or closes a quote leaves nothing out of it.
        whole = bool(parts) and parts[0] != quote
        return fuzzy_match(_strip_marks(parts[0]), text, claim) if whole else None
    if len(parts) > _MAX_PARTS or any(
        len(WORD.findall(part)) < _PART_WORDS or not has_content(part) for part in parts
    ):
        return None
    for start, end in sentence_spans(text):
        match = _find_in_order(parts, text[start:end], claim)
        if match is not None:
            return FuzzyMatch(start + match.start, start + match.end, match.edits)
    return None


def _find_in_order(parts: Sequence[str], sentence: str, claim: str) -> FuzzyMatch | None:
    places: list[FuzzyMatch] = []
    for part in parts:
        since = places[-1].end if places else 0
        match = fuzzy_match(_strip_marks(part), sentence[since:], claim)
        if match is None:
            return None
        place = FuzzyMatch(since + match.start, since + match.end, match.edits)
        left_out = fold(sentence[since : place.start]) if places else ""
        if any(map(len, invariant_tokens(left_out))):
            return None
        places.append(place)
    return FuzzyMatch(places[0].start, places[-1].end, sum(place.edits for place in places))
