"""Compare answers with reference answers by words, numbers and choices."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from misslink.matching.assertion import is_negated
from misslink.matching.claim_matching import (
    SAME_STATEMENT,
    MatchingContext,
    leading_polarity,
    number_neighbors,
    strip_polarity,
)
from misslink.text import normalization
from misslink.types import Support

SHORT = 3  # content words; a text this short must be matched in full
_MIN_SHARE = 0.5  # of the words that are not in the question, that the other text must have
_MIN_STEM_LETTERS = 4  # letters that must be left of a word without its ending
_WORD = re.compile(r"non-\w+|\w+(?:['.]\w+|,\d{3}\b)*")
_CHOICE = re.compile(r"(\w+),? or (?:\w+ )??(\w+)")
_SENTENCE_END = re.compile(r"[.!?]\s+")
_YES_OR_NO = re.compile(
    r"\W*(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should|may|must)\b"
)


def compare(
    claim: str,
    texts: Sequence[str],
    question: str,
    judged: Callable[[str, MatchingContext], Support],
    *,
    of_reference: bool,
) -> Support:
    """Compare a claim of an answer with references, or a claim of a reference with the answer.

    Parameters
    ----------
    claim : str
    texts : sequence of str
        The references; if `of_reference`, only the answer.
    question : str
        Both may leave out what it says, so each text is read with the question before it.
    judged : callable
        Judges whether passages support a claim.
    of_reference : bool
        Whether `claim` is from a reference; the answer must then have its numbers and names.
    """
    if any(_has_sentence(text, claim) for text in texts):
        return "supported"
    plain = judged(claim, MatchingContext(texts, question))
    if plain == "contradicted":
        return plain
    if texts and all(_has_other_number(claim, text, question) for text in texts):
        return "contradicted"
    if all(_other_choice(claim, text, question) for text in texts):
        return "unsupported"
    if any(_shortly_the_same(claim, text, question, of_reference) for text in texts):
        return "supported"
    new = _new_words(claim, question)
    if not new:  # with the question before it, any text would support it
        return plain if leading_polarity(claim) is None else "unsupported"
    asked = question.strip().rstrip("?!.: ")
    support = judged(claim, MatchingContext([f"{asked} {text}" for text in texts], question))
    held = _share_contained(new, texts)
    if of_reference:
        enough = held == 1 if len(new) <= SHORT else held >= _MIN_SHARE
    else:  # it may add words, but must contain all that a short reference says
        short = [words for text in texts if len(words := _key_words(text, question)) <= SHORT]
        whole = not short or any(_share_contained(words, [claim]) == 1 for words in short)
        enough = held == 1 or (whole and held >= _MIN_SHARE)
    return "supported" if enough and support == "supported" else "unsupported"


def _has_sentence(text: str, sentence: str) -> bool:
    """Whether a sentence of `text` is `sentence` word for word, its yes or no included."""
    words = normalization.fold(sentence).strip(" .!")
    spans = normalization.sentence_spans(text)
    return any(normalization.fold(text[start:end]).strip(" .!") == words for start, end in spans)


def leading_agreement(text: str, others: Sequence[str], question: str = "") -> Support | None:
    """Compare the yes or no of `text` with those of `others`; None if that decides nothing.

    A text that restates a yes-or-no question says yes, and one that denies it says no. The result is
    'contradicted' if every other text with a yes or no says the opposite, and 'supported' if one
    says the same and one of the two says nothing more.
    """
    stance = _stance(text, question)
    stances = {other: _stance(other, question) for other in others}
    if stance is None or all(value is None for value in stances.values()):
        return None
    agreeing = [other for other, value in stances.items() if value == stance]
    if not agreeing:
        return "contradicted"
    return (
        "supported" if any(not _new_words(each, question) for each in (text, *agreeing)) else None
    )


def _stance(text: str, question: str) -> bool | None:
    stance = leading_polarity(text)
    asked = _SENTENCE_END.split(normalization.fold(question).strip())[-1]  # of a conversation
    if stance is not None or " or " in asked or not _YES_OR_NO.match(asked):
        return stance
    words = _words(text)
    restates = bool(words) and not _new_words(text, question)
    return is_negated(text) == is_negated(asked) if restates else None


def _has_other_number(claim: str, text: str, question: str) -> bool:
    """Whether all sentences of `text` on the same matter have another number by the same word.

    Of "10 cents in black, 40 cents in color" both numbers count.
    """
    words = [word for word in _words(claim) if not word[0].isdigit()]
    own = number_neighbors(claim)
    asked = _numbers(question)
    own_numbers = _numbers(claim) - asked
    differs = []
    for start, end in normalization.sentence_spans(text):
        others = number_neighbors(text[start:end])
        shared = own.keys() & others
        if shared and _share_contained(words, [question, text[start:end]]) >= SAME_STATEMENT:
            numbers = _numbers(text[start:end]) - asked
            differs.append(
                any(own[word] not in numbers and others[word] not in own_numbers for word in shared)
            )
    return bool(differs) and all(differs)


def _numbers(text: str) -> set[str]:
    return normalization.extract_numbers(normalization.fold(text))


def _other_choice(claim: str, text: str, question: str) -> bool:
    """Whether the question offers a choice ("A or B"), and the two texts choose differently."""
    for choice in _CHOICE.findall(normalization.fold(question)):
        options = [_word_forms([word]) for word in choice]
        first, second = (_word_forms(_words(each)) for each in (claim, text))
        chosen = [{i for i, o in enumerate(options) if o & forms} for forms in (first, second)]
        if all(chosen) and chosen[0].isdisjoint(chosen[1]):
            return True
    return False


def _shortly_the_same(claim: str, text: str, question: str, of_reference: bool) -> bool:
    """Whether `claim` says all that a short text does; it may add words, but no denial."""
    words = _new_words(text, question)
    if not 0 < len(words) <= SHORT or is_negated(claim) != is_negated(text):
        return False
    if _share_contained(words, [claim]) < 1:
        return False
    if not of_reference:
        return True
    names = set(map(normalization.fold, re.findall(r"\b[A-Z][\w'-]+", claim)))
    facts = [w for w in _new_words(claim, question) if w[0].isdigit() or w in names]
    numbers = [word for word in facts if word[0].isdigit()]
    held = _share_contained(numbers, [text]) == 1 and _share_contained(facts, [text]) >= _MIN_SHARE
    return bool(facts) and held


def _key_words(text: str, question: str) -> list[str]:
    """The words of `text` that are not in the question; all of its words if there are none."""
    return _new_words(text, question) or _words(strip_polarity(text))


def _new_words(text: str, question: str) -> list[str]:
    options = {word for choice in _CHOICE.findall(normalization.fold(question)) for word in choice}
    asked = _word_forms(word for word in _words(question) if word not in options)
    words = _words(strip_polarity(text))
    return [word for word in words if asked.isdisjoint(_word_forms([word]))]


def _share_contained(words: Sequence[str], texts: Iterable[str]) -> float:
    """Share of `words` that are in any of the texts; 1 if there are no words."""
    forms = _word_forms(word for text in texts for word in _words(text))
    held = sum(not forms.isdisjoint(_word_forms([word])) for word in words)
    return held / len(words) if words else 1.0


def _words(text: str) -> list[str]:
    """Content words; an identifier or a word such as "non-zero" counts as one."""
    words = _WORD.findall(
        normalization.number_words_to_digits(normalization.fold(text.replace("\\_", "_")))
    )
    return [word for word in words if word not in normalization.STOPWORDS]


def _word_forms(words: Iterable[str]) -> set[str]:
    """The words as they are, and without their endings if enough letters are left."""
    forms = set()
    for word in words:
        forms.add(word.removesuffix("'s").replace(",", ""))
        if len(short := normalization.strip_ending(word)) >= _MIN_STEM_LETTERS:
            forms.add(short)
    return forms
