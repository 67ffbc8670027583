"""Read a reply that was to be one word as the label it names."""

from __future__ import annotations

import re
from collections.abc import Collection

__all__ = ["label_in"]

_WORD = re.compile(r"[^\W_]+(?:['\u2019_-][^\W_]+)*")
_CLOSES = r"[\s\"'*_`)\]}]*"
_ENDS_A_THOUGHT = re.compile(
    rf"{_CLOSES}(?:[.,:;!?(\u2013\u2014]|-\s|\b(?:because|since|as)\b|\Z)|[^\S\n]*\n",
    re.IGNORECASE,
)
_ASKS = re.compile(rf"{_CLOSES}\?")
_NUMBERS = re.compile(r"\.\s*\d")  # "No. 1" is the first of something
# Where the clause that a label ends begins; the colon or question mark before it is no boundary,
# for what stands before that ("Any conflict? No.") decides what the label means.
_CLAUSE = re.compile(r"[.!;,](?=\s|\Z)|(?<![?:\s])\s*\n")
_MARKUP = "\"'*_`([{# \t\n\u00a0\u2022\u201c\u201d\u2018\u2019\ufeff"
_BULLET = "->"
_INTRODUCES = re.compile(
    r"(?:[:=?]|->|\u2192|\u21d2|\b(?:is|be|am|are|say|answer|answers|reply|verdict|label|conclude"
    r"|choose|prefer|boxed|so|thus|hence|therefore|then|overall|clearly|definitely|certainly|simply|just))"
    r"(?:\s+(?:that|a|an|the|clearly|definitely|certainly|simply|just|therefore|thus))*\Z"
    r"|\A(?:the|(?:i|we)?\s*(?:go|went|stay)\s+with)\Z",
    re.IGNORECASE,
)
_DENIES = re.compile(
    r"\b(?:not|no|never|neither|nor|none|nothing|nobody|hardly|barely|scarcely|cannot|without"
    r"|unable|far from)\b|n['\u2019]t\b",
    re.IGNORECASE,
)
# Somebody else's word, a word that hangs on something, or the answer to a contrary question.
_DOUBTS = re.compile(
    r"\b(?:there (?:is|are|was|were)|if|whether|unless|could|might|may|perhaps|maybe"
    r"|possibly|any|anything|something|else"
    r"|(?:ask|tell|instruct|demand|want|request|claim)(?:s|ed|ing)?|told|says|said|writes|wrote"
    r"|contra\w*|conflict\w*|unsupported|unstated|unknown|missing|absent|invent\w*|fabricat\w*"
    r"|hallucinat\w*|errors?|mistakes?|wrong|false|incorrect|inaccura\w*|differ\w*|discrepan\w*"
    r"|lacks?|lacking|beyond|outside|extra|additional|doubts?|problems?)\b",
    re.IGNORECASE,
)
_TAKES_BACK = re.compile(
    r"[\W_]*(?:but|except|although|though|however|unless|only|not|wait)\b", re.IGNORECASE
)


def label_in(text: str, labels: Collection[str], start: int = 0) -> tuple[str, int, int] | str:
    """Find the one label that a text gives as its answer.

    Exactly one of the labels must occur, whole, where an answer stands: alone in its clause, or
    introduced and at the end of it (``Answer: yes``, "so it is no"); it must be the first word,
    the last or introduced, and only a reason may follow ("No, because ..."). A text gives none
    that names two labels, uses the word in a sentence ("I see no conflict"), denies it ("It is not
    a yes"), tells another's word ("The text says: yes"), answers a contrary question of its own
    ("Any conflict? No.") or takes a label back ("Yes, but ..."). What is given up so is asked for
    once more or fails; what is read wrongly nobody sees.

    Parameters
    ----------
    text : str
    labels : collection of str
        Upper and lower case are the same.
    start : int
        Where in the text to begin.

    Returns
    -------
    tuple of (str, int, int), or str
        The label as it stands in `labels`, and the characters from which and up to which it
        stands; where there is none, why, as part of a sentence.

    Examples
    --------
    >>> label_in("Answer: **No**.", ["yes", "no"])
    ('no', 10, 12)
    >>> label_in("I see no conflict.", ["yes", "no"])
    'the reply is none of the labels yes, no'
    """
    if not text[start:].strip():
        return "the reply is empty"
    by_word = {label.casefold(): label for label in labels}
    words = list(_words(labels).finditer(text, start))
    found = [word for word in words if word.group().casefold() in by_word]
    named = {word.group().casefold() for word in found}
    if len(named) > 1:
        return f"the reply names more than one of the labels {', '.join(labels)}"
    for word in found:
        if _answers(word, words, text):
            return by_word[named.pop()], word.start(), word.end()
    return f"the reply is none of the labels {', '.join(labels)}"


def _words(labels: Collection[str]) -> re.Pattern[str]:
    """What a text is cut into: words, and the labels that are more or less than one."""
    others = [label for label in labels if label and not _WORD.fullmatch(label)]
    if not others:
        return _WORD
    longest_first = "|".join(re.escape(label) for label in sorted(others, key=len, reverse=True))
    return re.compile(rf"(?<!\w)(?:{longest_first})(?!\w)|{_WORD.pattern}", re.IGNORECASE)


def _answers(word: re.Match[str], words: list[re.Match[str]], text: str) -> bool:
    """Whether a word stands where an answer stands, and not in the middle of a sentence."""
    after = text[word.end() :]
    if word is not words[-1] and (_ENDS_A_THOUGHT.match(after) is None or _NUMBERS.match(after)):
        return False
    taken_back = word.group().casefold() != "no" and _TAKES_BACK.match(after)
    if taken_back or _ASKS.match(after):
        return False
    before = text[words[0].start() : word.start()]
    clause = _CLAUSE.split(before)[-1].strip(_MARKUP).lstrip(_MARKUP + _BULLET)
    if clause.casefold() == word.group().casefold():  # "yes yes"
        clause = ""
    introduced = _INTRODUCES.search(clause) is not None
    if clause and (not introduced or _DENIES.search(clause) or _DOUBTS.search(clause)):
        return False
    return introduced or word is words[0] or word is words[-1]
