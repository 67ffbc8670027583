"""Tell what a sentence asserts from what it denies, reports, asks, or gives as an example."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from math import ceil
from typing import Literal, NamedTuple

from misslink.text.languages import DASH
from misslink.text.normalization import (
    Phrases,
    content_stems,
    fold,
    overlapping,
    sentence_spans,
    stems,
)

NotAsserted = Literal["denied", "hearsay", "example", "question"]

# All patterns read folded text: lower case, no accents, plain quote marks.
_FALSE = (
    r"(?:false|untrue|incorrect|wrong|not true|not correct|not right|not the case|not so|a myth"
    r"|a lie|a misconception|a mistake|a hoax|nonsense|unfounded|baseless|fictitious|made up"
    r"|falsch|unwahr|unrichtig|nicht wahr|nicht richtig|nicht der fall|ein mythos|ein irrtum"
    r"|eine luge|unsinn|erfunden)"
)
_CLAIM = (
    r"(?:claim|statement|rumou?r|belief|idea|assertion|notion|myth|story|report|suggestion|theory"
    r"|behauptung|gerucht|aussage|legende|vorstellung)s?"
)
_DENIED = Phrases(
    rf"(?:is|are|was|were|be|isn't|wasn't|ist|war|ware) (?:\w+ly |simply |einfach )?{_FALSE},?"
    r" (?:that|to (?:say|think|claim|believe|assume|state)|dass|zu (?:sagen|glauben))\b"
    rf"|(?:{_CLAIM},? that|dass)\b[^.;?!]*\b(?:is|are|was|were|been|wurden?|wird) (?:\w+ )?"
    r"(?:refuted|rejected|disprove[dn]|debunked|denied|dismissed|discredited|widerlegt|bestritten)\b"
    r"|(?:isn't|wasn't|is hardly|stimmt nicht)\s*(?:true|correct|right|the case)?,? (?:that|dass)\b"
    r"|(?:do|does|did|would|could|can)(?: not|n't) (?:\w+ )?(?:believe|think|say|claim|mean|follow|suggest),? that\b"
    r"|(?:den(?:y|ies|ied)|refut(?:e|es|ed)|reject(?:s|ed)?|disput(?:e|es|ed)|disprov(?:e|es|ed)"
    rf"|debunk(?:s|ed)?|doubt(?:s|ed)?|bestreitet|bestritt|widerlegt|bezweifelt)\b[^.;]{{0,20}}?\b(?:that|dass|{_CLAIM})\b"
    r"|(?:falsely|wrongly|incorrectly|mistakenly|erroneously|falschlich|irrtumlich)\w*\b"
    rf"|(?:{_CLAIM}|that|which|this|dies|das|what)\b[^?!]*\b(?:is|are|was|were|ist|war|sind) "
    rf"(?:\w+ly |simply |einfach )?{_FALSE}\W*$|(?:sentence|{_CLAIM})\b.*\bcontains? an? (?:mistake|error)\b"
    r"|(?:do not|don't|never) (?:believe|trust)\b|said (?:no one|nobody)\b|by no means\b|far from it\b"
    r"|(?:no|never|nobody|none|niemand|hardly|unclear|doubtful|unlikely)\b(?! (?:doubt|matter|surprise|wonder))"
    r"[^,.;]{0,40}\b(?:that|whether|dass|ob|thinks|believes|says|sagt|behauptet|glaubt)\b(?! (?:is|are|was|were)\b)"
    r"|(?<=^.)(?:false|wrong|untrue|falsch|myth|mythos)\s*:|(?<=[:;?-])\s*(?:false|wrong|untrue|falsch)\W*$"
)
# "Nobody denies that", "not only" and "no later than" assert, and so does "would like to say".
AFFIRMED = re.compile(
    r"(?:\b(?:not|no|never|nobody|none|cannot|nicht|nie|niemand|kein\w*)\b|n't\b) (?:\w+ ){0,2}?"
    r"(?:den(?:y|ies|ied)|disput\w*|doubt\w*|contest\w*|forget|question(?:s|ed)?|surpris\w*|secret|wonder"
    r"|only|nur|just|merely|until|to mention|matter|(?:longer|more|later|less|fewer) than|bestreit\w*|bezweif\w*|zweifel\w*|vergess\w*)\b ?|\bwould like to\b ?"
)
_SPEAKERS = (
    r"(?:some|many|few|people|critics|others?|they|visitors?|locals|neighbou?rs?|fans|users?|bloggers?"
    r"|tourists?|guests?|skeptics|some(?:body|one)|manche|einige|viele|leute|kritiker|jemand"
    r"|a (?:\w+ )?(?:man|woman|friend|visitor|neighbou?r|tourist|guest|blogger|user))"
)
_SAYS = (
    r"(?:say|says|said|claim|claims|claimed|believe|believes|believed|think|thinks|thought|allege"
    r"|alleges|alleged|insist|insists|insisted|swear|swears|suspect|guess|tell|tells|told"
    r"|sagen|sagt|sagte|behaupten|behauptet|behauptete|glauben|glaubt|meinen|meint)"
)
_HEARSAY = Phrases(
    rf"{_SPEAKERS} (?:\w+ ){{0,4}}?{_SAYS}\b"
    r"|(?:allegedly|supposedly|purportedly|rumou?r(?:s|ed)?|hearsay|gossip|angeblich|vermeintlich"
    r"|geruchten?|gerucht)\b"
    rf"|it (?:is|was|has been) (?:\w+ )?(?:said|claimed|alleged|whispered) that\b"
    r"|(?:i|we) (?:once |have )?(?:heard|read somewhere)\b|so the story goes\b"
    r"|(?:reportedly|(?:legend|word|rumou?r) has it|(?:jok|dream|pretend|fantasi[sz])(?:s|ed|t)\b"
    r"[^.;]{0,20}\bthat|in (?:the|a|his|her) (?:novel|film|movie|dream|fairy tale|joke)"
    r"|(?:ask|wonder)(?:s|ed)? (?:\w+ )?whether|(?:student|child|boy|girl) (?:wrote|said|claimed))\b"
    r"|es (?:heisst|wird (?:behauptet|erzahlt|gemunkelt))\b"
)
_BESIDE = 80  # characters in which a denial stands beside a quote
_SENTENCE_PART = re.compile(r"[,;:()]|\b(?:but|aber|sondern)\b")
# Behind these a new clause begins, to which a negation before it does not reach.
_CLAUSE_START = re.compile(
    r"[,;:()]|(?<!\d)[.!?]|[.!?](?!\d)|(?<!\w)-(?!\w)|\b(?:but|and|or|because|since|while|so|as|aber|und|oder|sondern|weil|denn)\b"
)


@lru_cache(maxsize=8_192)
def not_asserted(sentence: str) -> NotAsserted | None:
    """Return why a sentence asserts nothing that may be quoted for it; None: it asserts.

    By English and German phrases, so a denial worded otherwise is missed.

    Examples
    --------
    >>> not_asserted("It is not true that the ferry leaves at seven.")
    'denied'
    >>> not_asserted("Some people say that the ferry leaves at seven.")
    'hearsay'
    >>> not_asserted("The ferry does not leave at seven.")
    """
    folded = AFFIRMED.sub("", fold(sentence))
    if folded.rstrip("\"')]*_ ").endswith("?"):
        return "question"
    if _DENIED.search(folded):
        return "denied"
    return "hearsay" if _HEARSAY.search(folded) else None


def is_negated(text: str) -> bool:
    """Whether a text has a negation, or denies what it says by a phrase."""
    folded = fold(text)
    return (
        DENYING.search(folded) is not None and DENYING.search(AFFIRMED.sub("", folded)) is not None
    ) or not_asserted(text) == "denied"


def is_denied(text: str, word: str) -> bool:
    """Whether an odd number of denials stand before a folded word in its clause.

    Examples
    --------
    >>> is_denied("It is red, not open on Monday or Sunday.", "sunday")
    True
    """
    before, *found = re.split(rf"\b{re.escape(word)}\b", AFFIRMED.sub("", fold(text)), maxsplit=1)
    denials = DENYING.findall(_SENTENCE_PART.split(before)[-1]) if found else ()
    return len(denials) % 2 == 1


def loses_denial(text: str, start: int, end: int) -> bool:
    """Whether the words from `start` to `end` leave out a denial of them beside them.

    Examples
    --------
    >>> sentence = "It is false that the earth is flat."
    >>> loses_denial(sentence, 17, 34), loses_denial(sentence, 0, 34)
    (True, False)
    """
    left, right = enclosing_sentences(text, start, end)
    if (left, right) == (start, end):
        return False
    words = text[start:end]
    if not_asserted(words) != "denied" and "denied" in (
        not_asserted(text[max(left, start - _BESIDE) : end]),
        not_asserted(text[start : min(right, end + _BESIDE)]),
    ):
        return True
    before = AFFIRMED.sub("", fold(text[left:start].rpartition("\n")[2]))
    clause = _CLAUSE_START.split(before)[-1]
    return DENYING.search(clause) is not None


def enclosing_sentences(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the offsets of the sentences of `text` that hold the place from `start` to `end`."""
    around = overlapping(sentence_spans(text), start, end)
    return (min(start, around[0][0]), max(end, around[-1][1])) if around else (start, end)


_SCOPE = re.compile(
    r"\b(?:except(?:\s+for)?|with\s+the\s+exception\s+of|excluding|apart\s+from|save\s+for|mit\s+ausnahme\s+(?:von|der|des)|rather\s+than|instead\s+of|apart\s+from|other\s+than|statt|au(?:ss|\u00df)er|anstelle)\b"
)
# "Free of charge" denies no more than "without charge" does.
_FREE_OF = re.compile(r"\bfree\s+(?:of|from(?!\s+(?:\d|\w+day)))\b")
# Whatever denies, in any language.
DENYING = re.compile(
    r"\b(?:no\s+longer|nicht\s+mehr|(?:ne|neither|weder)\b[^,;.]{1,40}?\b(?:pas|jamais|plus|rien|nor|noch)|not|no|non|never|cannot|without|neither|nor|hardly|barely|nobody|none|nothing|nowhere|nicht|nichts|kein\w*|keineswegs|nie|niemals|niemand|kaum|ohne|weder|nao|niet|geen"
    rf"|pas|jamais|sans|aucun\w*|nunca|ningun\w*|senza|ikke|inte|ingen|nem|nincs|yok|tidak|bukan|{fold('не|нет|není|değil|δεν|لا|ليس|नहीं|לא|không')}"
    r"|prohibit\w*|forbid\w*|bann(?:ed|s)|lack(?:s|ed|ing)?|den(?:y|ies|ied)|verboten|untersagt"
    r"|(?:fail(?:s|ed)?|refus(?:e|es|ed)|declin(?:e|es|ed)|unable)(?:\s+to|$)|rul(?:ed?|es|ing)\s+out)\b|n't\b"
)

_SAME_CLAUSE = 0.8  # share of the words of a claim's clause that the other clause has,
_SAME_BACK = 0.75  # and the other way round
_ALL_BACK = 0.5  # if the other clause has all words of the claim's
_FEWEST = 3


def clause_conflict(claim: str, sentences: Sequence[str]) -> bool:
    """Whether a clause of some sentences denies what a claim affirms, or the reverse.

    Both clauses have most of each other's words, among them the one that is denied, and no other clause
    says the same as the claim.

    Examples
    --------
    >>> clause_conflict("Dogs may travel without a lead.", ["Dogs may not travel without a lead."])
    True
    >>> clause_conflict("We took the bus.", ["We took the train rather than the bus."])
    True
    >>> clause_conflict("The bus is red.", ["The bus is red, but it does not stop here."])
    False
    """
    if not any(map(_may_deny, (claim, *sentences))):
        return False
    if _SCOPE.search(fold(claim)) and any(_SCOPE.search(fold(text)) for text in sentences):
        return False  # both make an exception
    own = _read_clauses(claim)
    others = [clause for sentence in sentences for clause in _read_clauses(sentence)]
    if not any(clause.denied for clause in (*own, *others)):
        return False
    for mine in own:
        alike = [its for its in others if _is_same_clause(mine, its)]
        differing = [its for its in alike if mine.is_denied != its.is_denied]
        if len(differing) == len(alike) and any(
            (mine.denied | its.denied) & mine.stems & its.stems for its in differing
        ):
            return True
    return False


@lru_cache(maxsize=8_192)
def _may_deny(text: str) -> bool:
    folded = fold(text)
    return any(each.search(folded) for each in (DENYING, _SCOPE, _FREE_OF))


class _Clause(NamedTuple):
    stems: frozenset[str]
    is_denied: bool  # by an odd number of denials
    needed: int  # of its words, that a clause must have to be the same
    denied: frozenset[str]  # the words that the denials are nearest to


@lru_cache(maxsize=8_192)
def _read_clauses(sentence: str) -> tuple[_Clause, ...]:
    text = _FREE_OF.sub("without", AFFIRMED.sub("", fold(DASH.sub(" - ", sentence))))
    pieces, clauses = _SCOPE.split(text), []
    for clause in _CLAUSE_START.split(pieces[0]):
        denials = list(DENYING.finditer(clause))
        denied = set[str]()
        for denial in denials:
            after = stems(clause[denial.end() :])
            denied.update(after[:1] or stems(clause[: denial.start()])[-1:])
        if words := content_stems(DENYING.sub(" ", clause)):
            needed = ceil(_SAME_BACK * len(words))
            clauses.append(_Clause(words, len(denials) % 2 == 1, needed, frozenset(denied)))
    for piece in pieces[1:]:  # "the train rather than the bus" says of the bus that it was not
        scope = content_stems(_CLAUSE_START.split(piece)[0])
        before = content_stems(_CLAUSE_START.split(pieces[0])[-1])
        if scope and not scope <= before:
            clauses.append(_Clause(before | scope, is_denied=True, needed=len(scope), denied=scope))
    return tuple(clauses)


def _is_same_clause(mine: _Clause, its: _Clause) -> bool:
    shared = len(mine.stems & its.stems)
    most = max(_FEWEST, _SAME_CLAUSE * len(mine.stems), its.needed)
    return (
        shared >= most
        or mine.stems == its.stems
        or shared == len(mine.stems) >= max(_FEWEST, _ALL_BACK * len(its.stems))
        or (its.needed < len(its.stems) - 1 and shared == len(mine.stems) >= its.needed)
    )
