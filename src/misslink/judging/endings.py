"""How a question ends that brings no answer: cut off, declined, withheld, refused by the server.

The constants are how the problem of such a reply begins. Whoever reads a server's reply writes
them, and who decides whether to ask again looks for them; a judge of your own may use them too.
Many servers have no field for a refusal and send it as the reply itself: `declines` recognises
that. A server that refuses a request says why in words of its own: `too_long` and
`about_the_question` recognise the reasons that lie in what was asked.
"""

from __future__ import annotations

import re

__all__ = [
    "CUT_OFF",
    "DECLINED",
    "WITHHELD",
    "about_the_question",
    "declines",
    "too_long",
]

CUT_OFF = "the reply was cut off"
DECLINED = "the judge declined to answer"
WITHHELD = "the judge's provider withheld the reply"

_SHORT = 400  # characters; longer ones say more than that they will not
_THOUGHT = "</think>"
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
_AGAINST_A_POLICY = re.compile(
    r"content.?(policy|filter|management)|safety|moderation|flagged|(usage|acceptable.use) polic"
    r"|responsible.?ai|guardrail|inappropriate|harmful|prohibited.(content|use)",
    re.IGNORECASE,
)
_PLAIN = str.maketrans({"\u2019": "'", "\u02bc": "'", "`": "'", "\u2013": "-", "\u2014": "-"})


def declines(words: str) -> bool:
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
    said = words.rpartition(_THOUGHT)[2].strip()
    plain = " ".join(said.lower().translate(_PLAIN).split()).lstrip("\"'*_ ")
    return len(said) <= _SHORT and _REFUSAL.match(plain) is not None


def too_long(complaint: str) -> bool:
    """Whether a server refuses a question for its length, by what it says; never by nothing."""
    return _TOO_LONG.search(complaint) is not None


def about_the_question(complaint: str) -> bool:
    """Whether a server refuses what was asked, for its length or by a policy, and not how."""
    return too_long(complaint) or _AGAINST_A_POLICY.search(complaint) is not None
