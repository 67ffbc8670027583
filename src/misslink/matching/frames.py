"""Tell whether a text asserts a statement in it, or only embeds, labels or retracts it."""

from __future__ import annotations

import re
from functools import lru_cache

from misslink.matching.assertion import AFFIRMED, DENYING, NotAsserted, not_asserted
from misslink.text.normalization import (
    STEM_WORD,
    Phrases,
    Spans,
    content_stems,
    fold,
    locate,
    sentence_spans,
    stems,
)

_REACH = 120  # characters of a frame on each side of a statement
_QUOTED_WORDS = 2  # words in small letters behind the first that make a quotation a sentence
_OPENINGS = 2  # sentences at the beginning that say what a text is
ROOT_LETTERS = 5  # letters by which the other forms of a word are known: "loyal" and "loyalty"

# All patterns read folded text: lower case, no accents, plain quote marks.
_WITHHELD = re.compile(r"\b(?:little|refrain|stop|avoid)\b")
_FALSE = (
    r"false\w*|untrue|incorrect\w*|wrong\w*|mistak\w+|mistook|errors?|erroneous\w*|errat\w+|mis(?:print|conception|under)\w*"
    r"|myths?|lie[sd]?|lying|hoax\w*|nonsense|fake[sd]?|fabricat\w+|fictitious|invent(?:ion|ed\s+the)|made-up|baseless|unfounded"
    r"|illusions?|delusions?|fool\w*|trick\w*|swindl\w+|legends?|not\s+true|inaccura\w+|contrary\s+to\s+fact"
    r"|falsch\w*|unwahr\w*|irr(?:tum|ig|glaub|tum)\w*|luge\w*|log|erfunden\w*|mythos|mythen|dementier\w*|druckfehler|fehler"
)
_RETRACTED = (
    r"retract\w*|withdr[ae]w\w*|revok\w+|delete[sd]?|deleting|strike|struck|remov\w+|regret\w*|outdated|obsolete|abandoned|dropped"
    r"|voted\s+down|reject\w*|verworfen\w*|formerly|used\s+to|fruher|veraltet\w*|earlier\s+version|widerruf\w*|entfall\w*"
)
_DOUBTED = (
    r"doubtful|questionable|s[kc]eptic\w*|perhaps|maybe|possibl[ey]|unconfirmed|unproven|unlikely|improbable|could|would|might|in\s+theory"
    r"|zweif\w+|vielleicht|moglicherweise|fraglich"
)
_WISHED = (
    r"wish\w*|hop(?:e[sd]?|ing)|pray\w*|long(?:s|ed|ing)?\s+for|want(?:s|ed)?|dream\w*|demand\w*|propos\w+|petition\w*|plan(?:s|ned)?"
    r"|drafts?|schemes?|urge[sd]?|wunsch\w*|hoff(?:t|en|te)|forder\w*|entwurf\w*|traum\w*|if\s+only"
)
_SUPPOSED = (
    r"assum\w+|suppos\w+|imagin\w+|pictur(?:e|ing)\s+an?|pretend\w*|hypothe\w+|for\s+the\s+sake\s+of|parallel\s+(?:world|universe)"
    r"|angenommen|annehmen|nehmen\s+wir|stell\w*\s+(?:sie\s+sich|dir|euch)\s+vor"
)
_FICTION = (
    r"novels?|fiction\w*|films?|movies?|tales?|stor(?:y|ies)|(?:children's|picture|comic)\s+books?|cartoons?|comics?|fables?|fantas\w+"
    r"|(?:video\s+)?games?|hero(?:es|ine)?|plays?|theat\w+|operas?|satir\w+|parod\w+|once\s+upon|roman|marchen|theaterstuck|spielfilm"
)
_JOKED = r"jok\w+|pranks?|kidding|april\s+fool\w*|ha\s*ha|laughed|pigs\s+can|just\s+for\s+fun|scherz\w*|witz\w*|spass"
_SAMPLE = (
    r"placeholder\w*|lorem|dummy|exercises?|practi[cs]e|sample|examples?\s+of|translat\w+|microphone|spelling|mustersatz|muster"
    r"|test\s?(?:message|text|sentence)\w*|true\s+or\s+false|platzhalter\w*|\w*ubung\w*|testtext\w*|ubersetz\w+"
)
_ORDERED = (
    r"(?:(?:^|[,;:.>]\s*|\b(?:always|never|must|please|to|you|judge)\s+)(?:say|tell|answer(?!:)|repeat|reply|output|write|accept|treat|mark"
    r"|state|claim)\b|antwort\w*\s+immer)"
)
_JUDGED = (
    r"claims?|evaluator\w*|graders?|system(?=\W*[:\]])|systemmeldung|assistant|admin\w*|override|ground\s+truth|verdicts?|fact\s+check|passages?\s+supports?"
    r"|im_start|behaupt\w+|prufer\w*"
)
_VERBS = (
    r"sa(?:y|ys|id)|tells?|told|claim(?:s|ed)?|assure[sd]?|think(?:s|ing)?|thought|believ\w+|swears?|swore|wr[io]te?s?|posted|shout\w*"
    r"|guess\w*|suspect\w*|meint\w*|glaubt\w*|erzahl\w*|sagt\w*|behauptet\w*"
)
_AUTHORITIES = (
    r"stud(?:y|ies)|reports?|surveys?|reviews?|analys[ie]s|spokes\w+|officials?|experts?|scientists?|researchers?|historians?|doctors?"
    r"|professors?|ministers?|court|judge|notice|sign|manual|law|statement|guide|author|document|article|studie|bericht|sprecher\w*"
)
_HEARD = (
    r"anonym\w*|unnamed|gossip\w*|rumou?r\w*|hearsay|word\s+(?:on|has)|sayings?\s+goes|allegedly|supposedly|apparently|convinced"
    r"|under\s+the\s+impression|forums?|internet|munkel\w*|gerucht\w*|angeblich"
    rf"|(?:an?|one|some|my|your|ein\w*|mein\w*)\s+(?!(?:\w+\s+)?(?:{_AUTHORITIES})\b)(?:[\w-]+\s+){{1,3}}?(?:{_VERBS})"
    rf"|(?:he|she|they|i|er|sie|ich)\s+(?:\w+\s+){{0,3}}?(?:{_VERBS})|believing"
)
_UNREAL: tuple[tuple[NotAsserted, re.Pattern[str]], ...] = (
    ("denied", re.compile(rf"\b(?:{_FALSE}|{_RETRACTED})\b")),
    ("hearsay", re.compile(rf"\b(?:{_HEARD}|{_FICTION}|{_JOKED})\b")),
    (
        "example",
        re.compile(rf"\b(?:{_DOUBTED}|{_WISHED}|{_SUPPOSED}|{_SAMPLE}|{_JUDGED})\b|{_ORDERED}"),
    ),
)
# What ends the words before a statement, and what may stand between the two.
_BEGINNING = (
    r"\W*(?:\b(?:the|an?|all|some|any|every|its|his|her|our|their|this|these|there\s+(?:is|are)|it|on|in|at|d(?:er|ie|as|en|em|es)"
    r"|ein\w*|es|im|am|auf)\b\W*){0,3}$"
)
_SUPPOSING = re.compile(
    r"\b(?:(?P<asked>whether|ob)|(?<!even )if|unless|in\s+case|as\s+though|assuming|provided\s+that|wenn|falls)(?:\s+that)?"
    + _BEGINNING
)
_CONSEQUENCE = re.compile(r",|\s[-\u2013\u2014]\s")
_SUPPOSED_TOO = re.compile(r"\b(?:whether|if|unless|ob|wenn|falls)\b")  # in a claim
_EMBEDDING = re.compile(
    r"(?:\b(?:that|dass|where|(?:in|by|under)\s+which)\b|[:\"]|(?:^|\s)')" + _BEGINNING
)
_INTRODUCING = re.compile(
    r"^\W*(?:in|im|according\s+to|laut|as|on|ha|sure)\b[^;:]*,\s*" + _BEGINNING
)
# What alone takes back the statement behind it: an adverb, or the order to suppose it.
_ADVERB = re.compile(
    rf"\b(?:perhaps|maybe|possibly|apparently|allegedly|vielleicht|angeblich|{_SUPPOSED}),?\s*{_BEGINNING}"
)
_INVERTED = re.compile(r"^\W*(?:were|had|should|ware|hatte|sollte)\b")
_CLAUSE = re.compile(r"[;.]|,\sso\b|,?\s\b(?:but|and|because|while|aber|und|sondern|weil|denn)\b")
_PREDICATE = re.compile(
    r"^[\"'\s.,!]*(?:(?:which|was|this|that)\s+)?(?:is|was|are|were|has|have|had|does|did|should|can|cannot|ist|war|wurde|stimmt|trifft|entfallt)\b"
    r"[^.;]{0,60}"
)
_TAG = re.compile(
    rf"^[\"']?[\s.,;:|()\[\]-]*(?:(?:rated|bewertung|verdict|but|-)\W*)?(?:{_FALSE}|unsupported|not|no|nein|no\s+longer|nicht\s+mehr)\W*(?:$|\|)"
)
_HIDDEN = re.compile(
    r"\"(?:claim|statement|quote|span)\"\s*:\s*\"[^\"]*$|<!--(?:(?!-->).)*$|<(?:del|s|strike)\b[^>]*>(?:(?!</).)*$|<\w[^<>]*$|~~[^~]*$",
    re.DOTALL,
)
_REPORTED = re.compile(
    r"\b(?:sa(?:y|ys|id)|states?|stated|writes?|wrote|written|announc\w+|explain\w*|note[sd]?|report\w*|confirm\w*|add(?:s|ed)|according"
    r"|tells?|told|conclud\w+|found|shows?|showed|warn\w*|reads?|answer(?:s|ed)|called|sagt\w*|schreibt|schrieb|erklart\w*|steht|laut)\b"
)
_BACKWARD = re.compile(
    rf"^\W*(?:(?:sorry|no|oh),?\s+)?(?:(?:all\s+of\s+|none\s+of\s+)?(?:this|that|these|it|das|dies)|(?:the|der|die)\s+\w+(?:\s+above)?)\s+"
    rf"(?:is|was|are|were|ist|war|stimmt)\b(?:(?!\bnot\b).){{0,20}}?(?:{_FALSE}|not\s+(?:true|so)|nicht)\W*$"
    rf"|^\W*(?:we|wir)\s+(?:regret|apologi[sz]e|are\s+sorry|bedauern)\b"
    rf"|^\W*none\s+of\s+(?:this|that|these|it)\b.{{0,20}}\btrue\W*$"
    rf"|^\W*(?:correction|errat\w+)\b.{{0,40}}(?:{_FALSE})\W*$|^\W*(?:(?:just|only|war\s+nur)\s+)?(?:{_JOKED})\W*$"
)
_OPENING = Phrases(
    rf"once\s+upon\s+a\s+time\b|(?:this|following|dies|das)\b.{{0,40}}\b(?:is|ist)\b.{{0,30}}\b(?:{_FICTION}|{_JOKED}|{_SAMPLE})\b"
)
_HEADING = re.compile(
    r"\b(?:false\w*|untrue|incorrect|wrong|not\s+true|myths?|misconceptions?|legends?|lies|falsch\w*|irr(?:tum\w*|glauben?)|mythen)\b"
)
_FULL_STOPS = ".!?;,\"')]"  # what ends with none of them is a heading or a lead-in
_ITEM = re.compile(r"(?:[-*+\u2022]|\(?\d{1,3}[.)])\s")
_QUOTE_END = re.compile(r"[.,!?]*[\"']")


@lru_cache(maxsize=8_192)
def sentence_kind(text: str, number: int) -> NotAsserted | None:
    """Return why a sentence of a text, by its number from 0, asserts nothing; None: it asserts.

    By the sentence itself, by the heading or lead-in of its list or paragraph ("Myths:"), by the sentence
    behind it ("This is wrong.") and by how the text begins ("Once upon a time").

    Examples
    --------
    >>> [sentence_kind("The ferry leaves at nine. That is wrong. It is blue.", n) for n in range(3)]
    ['denied', 'denied', None]
    """
    spans = sentence_spans(text)
    if _is_headed(text, spans, number) or any(
        end - start <= _REACH and _BACKWARD.match(fold(text[start:end]))
        for start, end in spans[number : number + 2]
    ):
        return "denied"
    kind = not_asserted(text[slice(*spans[number])])
    if kind is None and any(
        _OPENING.search(fold(text[start:end])) for start, end in spans[: min(number, _OPENINGS)]
    ):
        return "example"
    return kind


def _is_headed(text: str, spans: Spans, number: int) -> bool:
    """Whether a sentence, or the list that it is an item of, stands below a heading that denies it."""
    while number:
        start, end = spans[number - 1]
        if end - start <= _REACH and text[end - 1] not in _FULL_STOPS:
            return _HEADING.search(fold(text[start:end])) is not None
        if _ITEM.match(text, spans[number][0]) is None:
            return False
        number -= 1
    return False


def _statement_place(sentence: str, claim: str) -> tuple[int, int] | None:
    """Return the offsets of the part of a sentence that has most of a claim's words.

    None if it has fewer than half of its content words, or if the rest of the sentence has others.
    """
    if place := locate(claim.strip(" .!"), sentence):
        return place
    roots = set(map(word_root, content_stems(claim)))
    words = _rooted_words(sentence)
    held = [number for number, (_, _, root) in enumerate(words) if root in roots]
    if not held or len({words[number][2] for number in held}) < len(roots) / 2:
        return None
    others = 1 + held[-1] - held[0] - len(held)
    return (words[held[0]][0], words[held[-1]][1]) if others < 2 * len(held) else None


@lru_cache(maxsize=8_192)
def _rooted_words(sentence: str) -> tuple[tuple[int, int, str], ...]:
    """The offsets and the root of each content word."""
    words = ((word, stems(word[0])) for word in STEM_WORD.finditer(sentence))
    return tuple((word.start(), word.end(), word_root(own[0])) for word, own in words if own)


def frame_kind(text: str, start: int, end: int, claim: str) -> NotAsserted | None:
    """Return why the sentence from `start` to `end` does not assert a claim that it holds.

    None: it asserts it, or holds it in parts only.

    Examples
    --------
    >>> frame_kind("A cousin is convinced that the ferry leaves at nine.", 0, 52, "The ferry leaves at nine.")
    'hearsay'
    >>> frame_kind("The ferry leaves at nine.", 0, 25, "The ferry leaves at nine.")
    """
    place = _statement_place(text[start:end], claim)
    if place is None:
        return None
    left, right, start, end = start, end, start + place[0], start + place[1]
    before = fold(text[max(left, start - _REACH) : start] + "|")[:-1]  # with its last blank
    after = fold(text[end : min(right, end + _REACH)])
    supposed = _SUPPOSING.search(before)
    if supposed and (
        _SUPPOSED_TOO.search(fold(claim))
        or not (supposed["asked"] or _CONSEQUENCE.search(text[start:end]) is None)
    ):
        return None  # the claim supposes it, too, or has what follows from it
    if supposed or _HIDDEN.search(text[max(0, start - _REACH) : start]):
        return "example"
    if _TAG.search(after):
        return "denied"
    clause = AFFIRMED.sub("", _CLAUSE.split(before)[-1])
    embedding = _EMBEDDING.search(before)
    is_quoted = embedding is not None and embedding[0].lstrip()[:1] in "\"'"
    if is_quoted and not (_QUOTE_END.match(after) and _is_sentence(text[start:end])):
        return None
    if embedding is None:
        introduced = _INTRODUCING.search(clause) or _ADVERB.search(clause)
        return _unreal_kind(clause) if introduced else None
    predicate = _PREDICATE.search(after)
    frame = f"{clause} {AFFIRMED.sub('', predicate[0]) if predicate else ''}"
    kind = _unreal_kind(frame) or (
        "denied" if (DENYING.search(frame) or _WITHHELD.search(frame)) else None
    )
    if kind is None and (
        _INVERTED.search(clause)
        or (is_quoted and content_stems(before + after) and not _REPORTED.search(before + after))
    ):
        return "example"
    return kind


@lru_cache(maxsize=65_536)
def word_root(stem: str) -> str:
    """Return the first letters of a stem; numbers and what code spells stay whole."""
    return stem[:ROOT_LETTERS] if stem.isalpha() else stem


def _unreal_kind(frame: str) -> NotAsserted | None:
    return next((kind for kind, pattern in _UNREAL if pattern.search(frame)), None)


def _is_sentence(words: str) -> bool:
    """Whether a quotation is no name, term or title: those have capitals."""
    small = [word for word in words.split()[1:] if word[:1].islower()]
    return len(small) >= _QUOTED_WORDS and '"' not in fold(words)
