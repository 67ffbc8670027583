"""Find words of a claim and of its quote that exclude each other, where the rest is the same."""

from __future__ import annotations

import re

from misslink.matching.abstention import content_stems
from misslink.text.normalization import fold

_SAME = 0.75  # share of a claim's other content words that the sentence must have
_LONGEST = 400  # characters of a sentence; a longer one is a list or a table
_WORD = re.compile(r"\w+|[$\u20ac\u00a3\u00a5]")
# In each row, words between bars mean the same, and exclude the others of the row.
_EXCLUSIVE = tuple(
    tuple(frozenset(place.split(",")) for place in row.split("|"))
    for row in """
euro,euros,eur,\u20ac|dollar,dollars,usd,$|pound,pounds,gbp,\u00a3|crown,crowns,krone,kroner|yen,jpy,\u00a5|franc,francs,chf|rupee,rupees,inr
monday,montag|tuesday,dienstag|wednesday,mittwoch|thursday,donnerstag|friday,freitag|saturday,samstag|sunday,sonntag
january,januar|february,februar|april|june,juni|july,juli|august|september|october,oktober|november|december,dezember
north,northern|south,southern|east,eastern|west,western
since,seit|until,till,bis
before,vor|after,nach
most,many|few
open,offen,geoffnet|closed,geschlossen
hot|cold
rise,rises,rose,risen,increase,increased|fall,falls,fell,fallen,decrease,decreased
bought,buys|sold,sells
""".strip().splitlines()
)
# What the first words of a pair say entails the second, and not the other way round.
_WEAKER = (
    ("all,every,each,everyone,everybody,alle,jeder,jede", "some,most,many,few,several,einige,manche,viele"),
    ("always,immer", "sometimes,often,usually,occasionally,manchmal,oft"),
    ("must,muss", "may,can,kann"),
)  # fmt: skip


def contrast(claim: str, sentence: str) -> bool:
    """Whether a sentence that says the same but for a word says something else by it.

    Examples
    --------
    >>> contrast("A ticket costs 9 euros.", "A ticket costs 9 crowns.")
    True
    >>> contrast("Some rooms have a bath.", "All rooms have a bath.")
    False
    """
    if len(sentence) > _LONGEST:
        return False
    own, other = (frozenset(_WORD.findall(fold(text))) for text in (claim, sentence))
    new, others_new = own - other, other - own
    excluded = frozenset[str]()
    for places in _EXCLUSIVE:
        mine = [place for place in places if place & new]
        if mine and not any(place & other for place in mine):
            theirs = [place for place in places if place & others_new and place not in mine]
            excluded |= frozenset().union(*(place & new for place in mine)) if theirs else excluded
    for strong, weak in _WEAKER:
        stronger = new.intersection(strong.split(","))
        if stronger and other.isdisjoint(strong.split(",")) and others_new & set(weak.split(",")):
            excluded |= stronger
    topic = content_stems(claim) - content_stems(" ".join(excluded))
    if excluded:
        return len(topic & content_stems(sentence)) >= _SAME * len(topic)
    return _other_names(claim, sentence)


def _other_names(claim: str, sentence: str) -> bool:
    """Whether two texts of the same words differ in one name, or have names in each other's place."""
    own, other = _WORD.findall(claim), _WORD.findall(sentence)
    if len(own) != len(other):
        return False
    changed = [
        n for n, pair in enumerate(zip(own, other, strict=True)) if len(set(map(fold, pair))) > 1
    ]
    names = all(own[n][0].isupper() and other[n][0].isupper() for n in changed)
    same = content_stems(
        " ".join(word for n, word in enumerate(own) if n not in changed and word.islower())
    )
    if not (changed and names and same):
        return False
    if len(changed) == 1:  # at the beginning any word has a capital
        return changed[0] > 0 or own[1][0].isupper()
    exchanged = sorted(map(fold, own)) == sorted(map(fold, other))
    return exchanged and not {"and", "or", "with", "und", "oder", "mit"}.intersection(own)
