"""Read plain-text replies: single labels, refusals, and the error messages of servers."""

from __future__ import annotations

import re
from collections.abc import Collection

CUT_OFF = "the reply was cut off"
DECLINED = "the judge declined to answer"
WITHHELD = "the judge's provider withheld the reply"

_MAX_REFUSAL_LENGTH = 400  # characters; longer ones say more than that they will not
_THINK_END = "</think>"
# In lower case. What is refused is help, or the request itself: "I cannot find this in the
# passages" is an attempt at an answer.
_REFUSALS = (
    (
        r"(?:(?:i'?m|i am)? ?(?:very |so |really |truly )?sorry|(?:my )?apologies|i apologi[sz]e"
        r"|unfortunately|as an ai[^.!?]{0,40}?)?[,.;:! -]*(?:but |however,? )?"
        r"(?:i (?:can't|cannot|can not|could not|won't|will not|must decline to|decline to"
        r"|(?:am|'m) (?:unable|not able|not allowed|not permitted) to)"
        r"|i'm (?:unable|not able|not allowed|not permitted) to)"
        r" (?:(?:help|assist)(?! but)(?: you)?(?: with| in|\W|$)|comply\b|fulfil|do (?:that|this)\b"
        r"|engage (?:with|in)\b|participate\b|continue with (?:this|that)\b"
        r"|(?:discuss|process|complete|support|respond to|create|generate|produce|provide|share)"
        r" (?:that|this|such|your|any|assistance|help)\b[^.]{0,30}"
        r"(?:request|topic|content|material|conversation|assistance|help)\b)"
    ),
    r"(?:i'm sorry[,.]? (?:but )?)?i must (?:respectfully )?decline\b",
    (
        r"(?:(?:es )?tut mir (?:sehr )?leid|entschuldigung|leider)[,.]?(?: aber)?"
        r" (?:ich kann|kann ich|dabei kann ich|damit kann ich) [^.]{0,40}?nicht"
        r" (?:weiter)?(?:helfen|behilflich|unterstützen|nachkommen|erfüllen|bearbeiten)\b"
    ),
    (
        r"(?:(?:je suis )?d[ée]sol[ée]e?|je m'excuse|malheureusement)[,.]?(?: mais)?"
        r" je ne (?:peux|puis) pas (?:vous |t')?"
        r"(?:aider|assister|r[ée]pondre [àa] (?:cette|votre) demande|faire (?:cela|[cç]a))\b"
    ),
    (
        r"(?:lo siento|lo lamento|disculpa|perd[óo]n)[,.]?(?: pero)? no puedo"
        r" (?:ayudar(?:te|le|los)?|asistir(?:te|le)?|cumplir|hacer eso)\b"
    ),
    (
        r"(?:mi dispiace|spiacente|scusa)[,.]?(?: ma)? non posso"
        r" (?:aiutar(?:ti|la|e)|assister(?:ti|la|e)|farlo|soddisfare)(?!\w)"
    ),
    (
        r"(?:desculpe|sinto muito|lamento)[,.]?(?: mas)? n[ãa]o posso (?:te |lhe |o )?"
        r"(?:ajudar|auxiliar|atender|fazer isso)\b"
    ),
    (
        r"(?:het spijt me|sorry|helaas)[,.]?(?: maar)? (?:ik kan|kan ik)"
        r" (?:je |u |hier |daar )?[^.]{0,30}?niet (?:mee |bij )?helpen\b"
    ),
    r"(?:извините|простите|к сожалению)[,.]?(?: но)? я не могу(?: \w+){0,3}? (?:помочь|выполнить)",
    (
        r"(?:很?抱歉|对不起|對不起)[^。]{0,6}?(?:无法|不能|無法)[^。]{0,12}?"
        r"(?:帮助|协助|满足|幫助|協助|滿足)"
    ),
    (
        r"(?:申し訳(?:ありません|ございません)|すみません)[^。]{0,30}?"
        r"(?:お手伝い|対応|お応え)[^。]{0,12}?(?:できません|できかねます)"
    ),
)
_REFUSAL = re.compile("|".join(_REFUSALS))
# "--context-length" is the option that our own messages name.
_TOO_LONG = re.compile(
    r"(?<!--)context[ _.-]?(length|window|size)|maximum context"
    r"|(than|exceeds?|beyond) the (maximum )?(model's )?context"
    r"|(maximum|exceeds?) .{0,20}(prompt|input|tokens)|too many tokens"
    r"|(prompt|input|request|messages?)( is| are)? too (long|large)",
    re.IGNORECASE,
)
_POLICY_ERROR = re.compile(
    r"content.?(policy|filter|management)|safety|moderation|flagged|(usage|acceptable.use) polic"
    r"|responsible.?ai|guardrail|inappropriate|harmful|prohibited.(content|use)",
    re.IGNORECASE,
)
_PLAIN_PUNCTUATION = str.maketrans(
    {"\u2019": "'", "\u02bc": "'", "`": "'", "\u2013": "-", "\u2014": "-"}
)


def is_refusal_text(words: str) -> bool:
    """Whether a short reply in plain words is a refusal to help, in one of a few languages.

    Parameters
    ----------
    words : str
        A reply without JSON; what a model thought before it is passed over. Empty text is none.

    Returns
    -------
    bool
        False where it is long, or opens otherwise: "I cannot find that in the passages" is the
        beginning of an answer.
    """
    reply = words.rpartition(_THINK_END)[2].strip()
    plain = " ".join(reply.lower().translate(_PLAIN_PUNCTUATION).split()).lstrip("\"'*_ ")
    return len(reply) <= _MAX_REFUSAL_LENGTH and _REFUSAL.match(plain) is not None


def is_length_error(complaint: str) -> bool:
    """Whether a server refuses a question for its length, by what it says; never by nothing."""
    return _TOO_LONG.search(complaint) is not None


def is_question_error(complaint: str) -> bool:
    """Return whether a server rejects the question (length or policy), not the request format."""
    return is_length_error(complaint) or _POLICY_ERROR.search(complaint) is not None


_WORD = re.compile(r"[^\W_]+(?:['\u2019_-][^\W_]+)*")
_CLOSES = r"[\s\"'*_`)\]}]*"
_STATEMENT_END = re.compile(
    rf"{_CLOSES}(?:[.,:;!?(\u2013\u2014]|-\s|\b(?:because|since|as)\b|\Z)|[^\S\n]*\n", re.IGNORECASE
)
_QUESTION_MARK = re.compile(rf"{_CLOSES}\?")
_NUMBERS = re.compile(r"\.\s*\d")  # "No. 1" is the first of something
# Where the clause that a label ends begins; the colon or question mark before it is no boundary,
# for what stands before that ("Any conflict? No.") decides what the label means.
_CLAUSE = re.compile(r"[.!;,](?=\s|\Z)|(?<![?:\s])\s*\n")
_MARKUP = "\"'*_`([{# \t\n\u00a0\u2022\u201c\u201d\u2018\u2019\ufeff"
_BULLET = "->"
_INTRODUCTION = re.compile(
    r"(?:[:=?]|->|\u2192|\u21d2|\b(?:is|be|am|are|say|answer|answers|reply|verdict|label|conclude"
    r"|choose|prefer|boxed|so|thus|hence|therefore|then|overall|clearly|definitely|certainly|simply|just))"
    r"(?:\s+(?:that|a|an|the|clearly|definitely|certainly|simply|just|therefore|thus))*\Z"
    r"|\A(?:the|(?:i|we)?\s*(?:go|went|stay)\s+with)\Z",
    re.IGNORECASE,
)
_DENIAL = re.compile(
    r"\b(?:not|no|never|neither|nor|none|nothing|nobody|hardly|barely|scarcely|cannot|without"
    r"|unable|far from)\b|n['\u2019]t\b",
    re.IGNORECASE,
)
# Somebody else's word, a word that hangs on something, or the answer to a contrary question.
_HEDGE = re.compile(
    r"\b(?:there (?:is|are|was|were)|if|whether|unless|could|might|may|perhaps|maybe"
    r"|possibly|any|anything|something|else"
    r"|(?:ask|tell|instruct|demand|want|request|claim)(?:s|ed|ing)?|told|says|said|writes|wrote"
    r"|contra\w*|conflict\w*|unsupported|unstated|unknown|missing|absent|invent\w*|fabricat\w*"
    r"|hallucinat\w*|errors?|mistakes?|wrong|false|incorrect|inaccura\w*|differ\w*|discrepan\w*"
    r"|lacks?|lacking|beyond|outside|extra|additional|doubts?|problems?)\b",
    re.IGNORECASE,
)
_RETRACTION = re.compile(
    r"[\W_]*(?:but|except|although|though|however|unless|only|not|wait)\b", re.IGNORECASE
)


def parse_label(text: str, labels: Collection[str], start: int = 0) -> tuple[str, int, int] | str:
    """Return the label a reply answers with and its start and end, or why it has none.

    Examples
    --------
    >>> parse_label("Answer: **No**.", ["yes", "no"])
    ('no', 10, 12)
    >>> parse_label("I see no conflict.", ["yes", "no"])
    'the reply is none of the labels yes, no'
    """
    if not text[start:].strip():
        return "the reply is empty"
    by_word = {label.casefold(): label for label in labels}
    words = list(_label_words(labels).finditer(text, start))
    label_words = [word for word in words if word.group().casefold() in by_word]
    named = {word.group().casefold() for word in label_words}
    if len(named) > 1:
        return f"the reply names more than one of the labels {', '.join(labels)}"
    for word in label_words:
        if _is_answer_position(word, words, text):
            return by_word[named.pop()], word.start(), word.end()
    return f"the reply is none of the labels {', '.join(labels)}"


def _label_words(labels: Collection[str]) -> re.Pattern[str]:
    """What a text is cut into: words, and the labels that are more or less than one."""
    phrases = [label for label in labels if label and not _WORD.fullmatch(label)]
    if not phrases:
        return _WORD
    longest_first = "|".join(re.escape(label) for label in sorted(phrases, key=len, reverse=True))
    return re.compile(rf"(?<!\w)(?:{longest_first})(?!\w)|{_WORD.pattern}", re.IGNORECASE)


def _is_answer_position(word: re.Match[str], words: list[re.Match[str]], text: str) -> bool:
    """Return whether a word is in an answer position, not in the middle of a sentence."""
    after = text[word.end() :]
    if word is not words[-1] and (_STATEMENT_END.match(after) is None or _NUMBERS.match(after)):
        return False
    taken_back = word.group().casefold() != "no" and _RETRACTION.match(after)
    if taken_back or _QUESTION_MARK.match(after):
        return False
    before = text[words[0].start() : word.start()]
    clause = _CLAUSE.split(before)[-1].strip(_MARKUP).lstrip(_MARKUP + _BULLET)
    if clause.casefold() == word.group().casefold():  # "yes yes"
        clause = ""
    introduced = _INTRODUCTION.search(clause) is not None
    if clause and (not introduced or _DENIAL.search(clause) or _HEDGE.search(clause)):
        return False
    return introduced or word is words[0] or word is words[-1]
