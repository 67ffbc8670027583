"""Compare answers with reference answers: quantities, names, words, and yes or no."""

from __future__ import annotations

import re
from collections.abc import Sequence

from misslink.matching.claim_matching import Passages
from misslink.matching.quantities import Quantity, other_amount
from misslink.matching.readings import Part, Reader, Reading, has_negation, sentences
from misslink.text.languages import leading_polarity, strip_polarity
from misslink.text.normalization import UNSPACED_RUN
from misslink.types import Support

SHORT = 3  # words and quantities; a text this short must be met in full
_MIN_SHARE = 0.5  # of the words of a longer text that are not in the question
_SAME_PLACE = 0.75  # of the words around a quantity, that the text with another one has, too
_CLAUSE = re.compile(r"[,;:()]|\b(?:but|and|aber|und|sondern)\b")
_PRONOUN = re.compile(r"\W*(?:it|they|he|she|this|that|these|those|es|sie|er|das|dies|man)\b")
_PASSIVE = re.compile(r"\b(?:by|von|par|por)\b")
_NOTHING = frozenset(["none", "nothing", "keine", "keiner", "nichts"])


def compare(
    claim: str,
    texts: Sequence[str],
    question: str,
    *,
    of_reference: bool,
) -> Support:
    """Compare a claim of an answer with references, or a claim of a reference with the answer.

    A short claim is met by a text with all of its amounts, names and words, or with the yes or no
    that it implies, and contradicted by another amount, or the opposite, in its place.

    Parameters
    ----------
    claim : str
    texts : sequence of str
        The references; if `of_reference`, only the answer.
    question : str
        Both may leave out what it says, so each text is read with the question before it.
    of_reference : bool
        Whether `claim` is from a reference; the answer must then have its amounts and names.
    """
    reader = Reader(question, (claim, *texts))
    relations = [_relation(reader, claim, text) for text in texts]
    if "supported" in relations:
        return "supported"
    if any(
        _repeats(reader, text, claim) if of_reference else _extends(reader, claim, text)
        for text in texts
    ):
        return "supported"
    if None in relations:
        asked = question.strip().rstrip("?!.: ")
        read = Passages.of(tuple(f"{asked} {text}" for text in texts), question)
        return read.match(claim).support
    return "contradicted" if "contradicted" in relations else "unsupported"


def _repeats(reader: Reader, text: str, claim: str) -> bool:
    """Whether a short text says nothing but what a claim does, and has its amounts and names."""
    short, body = reader.read(strip_polarity(text)), reader.read(strip_polarity(claim))
    if len(reader.new(short, SHORT + 1)) > SHORT or _relation(reader, text, claim) != "supported":
        return False
    new = reader.new(body)
    amounts = [part for part in new if isinstance(part, Quantity)]
    names = [part for part in new if part in body.capitals or UNSPACED_RUN.search(str(part))]
    return (
        bool(amounts or names)
        and reader.share(amounts, short) == 1
        and reader.share(names, short) >= _MIN_SHARE
    )


def _extends(reader: Reader, claim: str, text: str) -> bool:
    """Whether a claim says all that a short sentence of a text does."""
    return any(
        len(reader.new(reader.read(sentence), SHORT + 1)) <= SHORT
        and _relation(reader, sentence, claim) == "supported"
        for sentence in sentences(text)
    )


def _relation(reader: Reader, claim: str, text: str) -> Support | None:
    """What a text says of a claim; None where it has much of a longer claim, but not all."""
    agreed = False
    body, other = (reader.read(strip_polarity(each)) for each in (claim, text))
    if leading_polarity(claim) is not None or leading_polarity(text) is not None:
        own, its = _stance(reader, claim), _stance(reader, text)
        agreed = own is not None and own == its
        if agreed and not (reader.new(body) and reader.new(other)):
            return "supported"
        if not agreed and own is not None and its is not None:
            return "contradicted"
        if not agreed and not reader.new(body):
            return "unsupported"
    needed = reader.new(body) or list(body.parts)
    amounts = [part for part in needed if isinstance(part, Quantity)]
    missed = [amount for amount in amounts if not _has_amount(reader, body, amount, other)]
    if missed:
        differs = any(_has_other(reader, body, amount, other) for amount in missed)
        return "contradicted" if differs else "unsupported"
    share = reader.share(needed, other)
    if not needed or share < _MIN_SHARE:
        return "unsupported"
    if not agreed and len(needed) <= SHORT:  # what a longer claim denies, `Passages` tells
        is_denied = _denied(reader, needed, other, negated=has_negation(body.text))
        if is_denied is not None:
            return "contradicted" if is_denied else "unsupported"
    if share == 1 and (len(needed) <= SHORT or reader.endings):
        return "unsupported" if _exchanged(reader, body, other) else "supported"
    return None if len(needed) > SHORT else "unsupported"


def _has_amount(reader: Reader, body: Reading, amount: Quantity, text: Reading) -> bool:
    """Whether a text says an amount; one that the question says, too, beside the same word."""
    if not reader.holds(reader.asked, amount):
        return reader.holds(text, amount)
    return any(
        reader.holds(text, amount) and reader.same_noun(body, amount, text, each)
        for each in text.quantities
        if each.digits == amount.digits
    )


def _has_other(reader: Reader, body: Reading, amount: Quantity, text: Reading) -> bool:
    """Whether a sentence with the words of a claim has another amount of the same kind."""
    return any(
        other_amount(amount, other)
        and not reader.holds(body, other)
        and not reader.holds(reader.asked, other)
        and (amount.unit or other.unit or reader.same_noun(body, amount, sentence, other))
        for sentence in map(reader.read, sentences(text.text))
        if reader.share(body.words, reader.asked, sentence) >= _SAME_PLACE
        for other in sentence.quantities
    )


def _denied(reader: Reader, needed: Sequence[Part], text: Reading, *, negated: bool) -> bool | None:
    """Whether the clause of a text that has most of a short claim denies it, or is it denied.

    None: the clause is denied as the claim is; True: and it says the same otherwise.
    """
    pieces = [piece for each in sentences(text.text) for piece in _CLAUSE.split(each)]
    opposed = [piece for piece in pieces if has_negation(piece) != negated]
    if not opposed:
        return None
    read = ((reader.share(needed, reader.read(piece)), piece not in opposed) for piece in pieces)
    share, is_same = max(read)
    return None if is_same else share >= _SAME_PLACE


def _exchanged(reader: Reader, body: Reading, text: Reading) -> bool:
    """Whether a text has the words of "Ann beat Bob" the other way round, and is no passive."""
    row = [word for word in text.words if any(reader.is_form(word, own) for own in body.words)]
    turned = zip(row, reversed(body.words), strict=False)
    return (
        len(row) == len(body.words) == SHORT
        and body.capitals.issuperset((body.words[0], body.words[-1]))
        and all(reader.is_form(*pair) for pair in turned)
        and bool(_PASSIVE.search(body.folded)) == bool(_PASSIVE.search(text.folded))
    )


def _stance(reader: Reader, text: str) -> bool | None:
    """Whether a text says yes or no: at its beginning, or as it restates or denies the question."""
    polarity = leading_polarity(text)
    if polarity is not None:
        return polarity
    question = (sentences(reader.asked.text) or [""])[-1]  # of a conversation
    asked = reader.read(question)
    for sentence in map(reader.read, sentences(text)):
        restates = has_negation(sentence.text) == has_negation(question)
        if all(
            part in _NOTHING or (isinstance(part, Quantity) and part.digits == "1")
            for part in sentence.parts
        ):
            return restates and not sentence.words  # "It is.", "There is none."
        words = asked.words[-1:] if _PRONOUN.match(sentence.folded) else asked.words
        if not words or reader.share(words, sentence) < 1:
            continue
        if all(reader.holds(sentence, each) for each in asked.quantities):
            return restates
    return None
