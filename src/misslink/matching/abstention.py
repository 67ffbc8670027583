"""Recognize answers that decline, and find the sentences that state something to check."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import filterfalse

from misslink.matching.marks import strip_marks
from misslink.text.normalization import (
    OF_SOURCES,
    Phrases,
    Spans,
    content_words,
    fold,
    sentence_spans,
)

_SELF_REFERENCE_WORDS = frozenset(
    content_words(
        f"{OF_SOURCES} necessary sufficient enough sure happy help able unsure certain mistaken guarantee promise"
        " hesitate vouch confident doubt verify check double confirm confirmed consult rely ask believe think guess"
        " find found read take word know page entirely fully completely quite little least caution careful please"
        " can't don't cannot like since well could"
    )
)
_PARENTHESES = re.compile(r"\([^()]*\)")
_LONE_MARKER = re.compile(r"^\(?\d{1,2}[.)]$")
_CLAUSE = re.compile(r"[,;]?\s+(?:but|however|although|though|whereas)\s|[;:]\s|(?<=\w),\s(?=it\s)")
_FACT = re.compile(r"\d|\b(?:sondern|sino)\b")
_FEWEST_WORDS = 3  # content words a clause needs to state something beside an absence

_INFORMATION = r"(?:passages?|contexts?|documents?|sources?|text|information|details|data)"
_VERBS = (
    r"(?:provide|mention|specify|state|contain|include|give|offer|address|say|discuss|cover|"
    r"explain|indicate|answer|describe)(?:d|s|ed)?"
)
# "The text in passage 2", "documents you provided": the sources, and no "text editor".
_SOURCES = (
    rf"{_INFORMATION}(?:,? (?:(?:provided|given|gave|above|below|here|itself|themselves|alone|also|only"
    r"|available|retrieved|shown|you|i|we|have|has|is|are|was|were|and|or|the|this|these|your|my|\w+ly"
    rf"|\d+|{_INFORMATION})\b|(?:in|on|of|from|about|for) (?:\w+ ){{0,3}}?\w+))*"
)
_NOT = r"(?: not|n't) (?:\w+ )?"
_ABSENT = Phrases(
    r"unable to (?:answer|find|determine|provide|say)"
    rf"|(?:{_SOURCES}|i|we|it|they|this|these|that|which|and|but|or|therefore|however),? "
    rf"(?:do|does|did){_NOT}(?:{_VERBS}|have (?:any |enough |sufficient )?information)"
    rf"|(?:is|are|was|were){_NOT}(?:{_VERBS}|stated|given|available|known|clear|possible|found"
    r"|enough|sufficient)"
    r"|(?:cannot|can't|can not|could not|couldn't) (?:\w+ )?(?:be (?:determined|answered|found)"
    r"|provide|answer|find|determine|give|help|say|tell)"
    rf"|(?:there (?:is|are|was|were)|(?:has|have|had|with|{_VERBS})) no (?:\w+ ){{0,2}}{_INFORMATION}"
    r"|(?:no|lacks?) (?:\w+ ){0,2}(?:information|details)"
    rf"|(?:insufficient|not enough|without (?:\w+ )?(?:more|further|additional|enough|sufficient)) "
    rf"(?:\w+ ){{0,2}}{_INFORMATION}"
    r"|no (?:mention|answer)"
    rf"|{_INFORMATION} (?:is|are) (?:insufficient|missing)"
    r"|difficult to (?:provide|determine|give|say|answer)"
)
_ABOUT_SOURCES = Phrases(
    r"(?:unable to|you|your|answer|question|i|we"
    r"|it(?: is|'s) not (?:\w+ )?(?:known|clear|possible|stated|mentioned|specified)"
    r"|(?:the|this|these|provided|given) (?:passages?|contexts?|documents?|sources?|text)|passage \d+"
    rf"|(?:no|not enough|insufficient|more|further|enough|specific) (?:\w+ ){{0,2}}{_INFORMATION}"
    rf"|{_SOURCES} (?:do|does|did|is|are|was|were|lacks?)"
    rf"|(?:in|by|from|on|within|of|with|to) (?:\w+ ){{0,3}}{_INFORMATION})\b"
)
# "It returns -1 when the text is missing": what holds where something is absent. "The date when it
# was built is not given" names what is absent.
_CONDITION = re.compile(
    r"(?:^(?=[^,;]*[,;])|(?<!\bdate)(?<!\bday)(?<!\byear)(?<!\btime)(?<!place)(?<!location)(?<!\bof)"
    r"(?<!\babout)(?<!\bon)(?<!\band)(?<!\bor),? )"
    r"(?:if|when|whenever|where|wherever|unless|once|until) [^,;]*"
)
# What the text or the asker may have meant, and where to look instead: beside an absence no claim.
_GUESS = Phrases(
    r"(?:passages?|contexts?|documents?|sources?|text|information|question|you)\s(?:\w+ly\s)?"
    r"(?:(?:may|might|could|seems? to|appears? to)\s(?:be\s|have\s)?(?:\w+ly\s)?)?"
    r"(?:refer(?:s|red|ring)?\sto|mean(?:s|t|ing)?|(?:is\s|are\s)?(?:asking|talking)?\s?about|ask)\b"
)
_POSSIBLY = Phrases(r"(?:may|might|could|possibl[ey]|perhaps|probably|likely|seems?|appears?)\b")
_REFERRAL = re.compile(
    r"^(?:\w+,\s)?you\s(?:may|might|can|could|should|would|will)\s(?:\w+\s){0,3}"
    r"(?:consult|refer\sto|contact)\b"
)
# "I do not know", "I cannot answer" and "the text does not say", folded as `fold` folds (no accents).
_NO_ANSWER = Phrases(
    r"i (?:really |simply |just )?(?:do not|don't|did not|didn't) (?:actually )?(?:know|have)\b"
    r"|i(?:'m| am)? (?:not sure|unsure|uncertain)\b|i have no idea\b|as an ai\b"
    r"|(?<=^.)no (?:\w+ )?(?:documents?|passages?|results?|sources?) (?:were |was )?(?:found|retrieved)\W*$"
    r"|(?<=^.)(?:unknown|n/?a|none|unanswerable|not answerable|no answer|empty response)\W*$"
    + fold(
        r"|(?:(?:ich weiß|weiß ich) (?:es |das )?nicht|nicht (?:beantworten|hervor|erwähnt|genannt|angegeben)"
        r"|zu (?:diesem|dem) thema\b[^.]{0,40}\bnichts\b|keine[nr]? (?:information|angabe|auskunft|hinweis|antwort)"
        r"|je ne (?:sais|trouve|peux|connais)[^.]* pas\b|aucune (?:information|mention)|n'est pas (?:précis|mentionn|indiqu)é"
        r"|ne (?:l[ea] |les )?(?:précis|mentionn|indiqu|d(?:it|isent)\b|contien)\w* (?:pas|rien)\b"
        r"|il n'y a (?:pas|aucune?) (?:d'|de |)information"
        r"|no (?:lo sé|sé la|puedo (?:responder|encontrar)|hay información|se encontr(?:ó|aron) (?:ninguna )?informac)"
        r"|no (?:se |lo )?(?:menciona|especifica|indica)n?\b"
        r"|non (?:lo so|posso rispondere|menziona|specifica|ci sono informazioni)"
        r"|não (?:sei|posso responder|menciona|especifica|há informaç)|ik weet het niet|geen informatie|niet beantwoorden"
        r"|jeg ved det ikke|jeg vet ikke|jag vet inte|en (?:tiedä|(?:osaa|voi|pysty) vastata)|ei (?:löydy|ole) (?:\w+ )?tietoa"
        r"|nevím|nem tud(?:om|(?:ok|unk) válaszol)|nincs \w+ információ|brak informacji|nie (?:wiem|(?:mogę|potrafię) odpowiedzieć)"
        r"|saya tidak tahu|tidak (?:dapat|bisa) menjawab|tidak ada informasi|(?:dokumen|teks|sumber|konteks)\b[^.]{0,20}\btidak menyebut"
        r"|не (?:знаю|могу ответить|упомина|говорится)|нет информации"
        r"|(?:belge|metin|kaynak)\w*[^.]{0,30}(?:bahsedilmiyor|belirtilmemi|yer alm.yor)"
        r"|bilmiyorum|yan.tlayam.yor|cevaplayam.yor|bilgi (?:bulunamad.|yok)"
        r"|tôi không biết|không (?:thể trả lời|có thông tin)|(?:tài liệu|văn bản|nguồn|đoạn)[^.]{0,20}không đề cập)"
    )
)
_NO_ANSWER_UNSPACED = re.compile(
    fold(
        r"(?:모르겠습니다|언급되(?:지|어 있지)|답할 수 없|답변할 수 없|(?:정보|내용)(?:를|을|이|가) (?:찾을 수 )?없"
        r"|لا أعرف|لا أستطيع الإجابة|لا (?:تذكر|يذكر) (?:الوثائق|المستندات|النص)|لا توجد معلومات|لم يتم ذكر"
        r"|मुझे नहीं पता|उल्लेख नहीं|उत्तर नहीं दे सकत|कोई जानकारी नहीं"
        r"|不知道|[没沒]有?(?:提到|提及|说明|相关|找到)|未(?:提及|提到|说明)|[无無]法(?:回答|确定|得知)"
        r"|[わ分]か(?:りません|らない)|答えられ|お答えでき(?:ません|ない)|(?:記載|言及|情報|記述)[^。]{0,4}(?:ありません|ない|いません|見つかり))"
    )
)


# A clause that denies, speaks of sources, and of what they tell or of the subject ("dazu steht nichts in den
# Unterlagen"), in the languages of Europe; a word is its beginning, or whole with `=`.
def _any_of(words: str) -> Phrases:
    parts = (rf"{word[1:]}\b" if word.startswith("=") else word for word in fold(words).split())
    return Phrases("|".join(parts))


_DENIES = _any_of(
    "nicht kein =ne =n =rien =pas aucun =no =nada ningun =non =nulla =niente nessun =nao nenhum niet geen ikke"
    " =inte =ingen =inget ingenting =ei =eivat =nie =nic brak neni nem nincs hicbir =не =нет ничего нічого"
    " nothing =none neither silent =anything"
)
_IN_SOURCES = _any_of(
    "dokument unterlage quelle =text =texten =textes? kontext passag auszug document source contexte extrait fuente"
    " =texto =textos context fragmento fonti =testo =testi =fontes =contesto =tekst =teksten bronnen kilde asiakirj"
    " =tekscie zrodl zdroj szoveg forras belge metin документ источник джерел текст =files material =records"
)
_TELLS = _any_of(
    "steht stehen hervor erwahn genannt angegeb angab sagen =sagt aufschluss auskunft hinweis dazu daruber hierzu"
    " beantwort informa figur mention indiqu precis =dit disent =sujet dice dicono respecto aparec especific indic"
    " contien =sobre riguardo presente menzion dizem =diz respeito encontr staat vermeld noem hierover =over"
    " star framgar fremgar mainit kerro tieto =tym wspomin =tom emlit tartalmaz ilgili konuda сказано говор"
    " упомин информац этом =це =says? =say tells? mention about silent"
)
_DEPENDENT = re.compile(r",? (?:that|dass|que|che|dat|att|ze|что) ")
_POLITE = re.compile(  # from the beginning
    r"(?:(?:i am|i'm|we are|we're) (?:very |so |really )?sorry|sorry|my apologies|i apologi[sz]e"
    r"|hello|hi|hey|thanks?|thank you|sure|certainly|of course|you're welcome|i hope this helps"
    r"|hope (?:this|that) helps|good (?:morning|afternoon|evening|question|luck)|great question"
    r"|that's it|i hope that helps)\b"
    r"[^.!?]{0,40}[.!]*$"
    r"|please (?:provide|rephrase|clarify|consult|check|refer|see|ask|share)\b"
    r"|(?:yes|yeah|no|correct|true|false)\W*$"
)
_OFFER = Phrases(
    r"(?<=^.)i hope\b|(?:let me know|feel free|i(?:'d| would) need (?:more|further|additional)|ich hoffe"
    r"|gern(?:e)? geschehen|vielen dank|bei (?:weiteren )?fragen|melden sie sich|lassen sie (?:es )?mich wissen)\b"
)


def declines(answer: str) -> bool:
    """Whether `answer` says that it cannot answer, and states nothing else.

    "I don't know" followed by an answer is no pure decline; a blank answer declines nothing.
    """
    return states_absence(answer) and not claim_spans(answer)


def states_absence(answer: str) -> bool:
    """Whether some sentence of `answer` says that the answer is not known or not given."""
    return any(is_absence for _, _, is_absence in _read_sentences(answer))


@lru_cache(maxsize=512)
def claim_spans(answer: str) -> Spans:
    """Character offsets of the sentences of `answer` that state something to check.

    Left out: questions, lines that end in a colon, courtesies, mere references to a passage, and
    sentences that only say what is not known or not in the passages. In an answer that says so,
    guesses at what a text or the question may refer to, and advice to look elsewhere, too.
    """
    plain = strip_marks(answer)
    absent = states_absence(answer)
    return tuple(
        plain.original(start, end)
        for start, end, is_absence in _read_sentences(answer)
        if _is_claim(plain.text[start:end], is_absence=is_absence, absent=absent)
    )


@lru_cache(maxsize=512)
def _read_sentences(answer: str) -> tuple[tuple[int, int, bool], ...]:
    """The offsets of each sentence without marks, and whether it only says what is not known."""
    text = strip_marks(answer).text
    return tuple(
        (start, end, _is_absence_statement(fold(text[start:end])))
        for start, end in sentence_spans(text)
    )


@lru_cache(maxsize=4_096)
def _is_claim(sentence: str, *, is_absence: bool, absent: bool) -> bool:
    folded = fold(sentence)
    if sentence.rstrip("*_ \t").endswith((":", "?", "\uff1a", "\uff1f")) or _LONE_MARKER.match(
        folded
    ):
        return False
    words = content_words(folded)  # "passage 1" is a self-reference, "7" an answer
    named = set(filterfalse(str.isdigit, words)) or set(words)
    if _POLITE.match(folded) or _OFFER.search(folded) or named <= _SELF_REFERENCE_WORDS:
        return False
    if not is_absence and not (absent and _is_guess(folded)):
        return True
    return any(
        len(content_words(clause)) >= _FEWEST_WORDS
        and not _is_absence_statement(clause)
        and not _is_guess(clause)
        for clause in _CLAUSE.split(_PARENTHESES.sub(" ", folded))
    )


def _is_guess(folded: str) -> bool:
    return bool((_POSSIBLY.search(folded) and _GUESS.search(folded)) or _REFERRAL.search(folded))


def _is_absence_statement(folded: str) -> bool:
    """Whether a sentence only says what is not known."""
    return (
        _NO_ANSWER.search(folded) is not None
        or (not folded.isascii() and _NO_ANSWER_UNSPACED.search(folded) is not None)
        or (_ABSENT.search(folded) is not None and _is_about_sources(folded))
        or (
            _IN_SOURCES.search(folded) is not None
            and any(map(_denies_sources, _DEPENDENT.split(folded)))
        )
    )


def _denies_sources(clause: str) -> bool:
    parts = _IN_SOURCES, _DENIES, _TELLS
    return all(part.search(clause) for part in parts) and not _FACT.search(clause)


def _is_about_sources(folded: str) -> bool:
    stated = _CONDITION.sub("", folded)
    return bool(_ABSENT.search(stated) and _ABOUT_SOURCES.search(stated))
