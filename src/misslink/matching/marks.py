"""Remove the marks of a text: what is layout or names a source, and states nothing."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from misslink.text.normalization import Phrases, Spans

# Words that name a source, in the languages of the prompts and a few others.
_SOURCE = (
    r"(?:passages?|documents?|docs?|dok(?:ument)?e?|sources?|quellen?|contexts?|chunks?|snippets?|excerpts?"
    r"|refs?|references?|citations?|cites?|textstellen?|auszug|ids?|node|fuentes?|fonti|fonte|ebd|ibid|op\.?\scit|\u6587\u66f8|\u6587\u6863|\u8d44\u6599|\u51fa\u5178|\u6765\u6e90)"
)
_NUMBERS = r"#?\d{1,4}(?:\s*(?:[-,;:&\u2013]|and|und)\s*#?\d{1,4})*"
_PAGE = r"(?:pp?\.|pages?|seiten?|s\.|p\u00e1g\.?|\u00a7)\s?\d{1,5}(?:\s?[-,\u2013]\s?\d{1,5})*"
_FILE = r"[\w./ -]*\w\.(?:md|pdf|txt|html?|docx?|csv|json|pptx?|xlsx?|rst|ya?ml|py)\b[^\[\]()\u3010\u3011]{0,40}"
_URL = r"(?:https?://|www\.)[^\s<>()\[\]\u3010\u3011]*[^\s<>()\[\]\u3010\u3011.,;:!?'\"]"
_AUTHOR_YEAR = r"(?:see\s|vgl\.\s)?[A-Z][\w'\u2019-]+(?:(?:\s(?:et\sal\.?|and|und|&)(?:\s[A-Z][\w'\u2019-]+)?)|,?\s[A-Z]\.)*,?\s(?:19|20)\d\d[a-z]?"
_NAMED = rf"(?i:(?:see\s|siehe\s|cf\.\s|vgl\.\s|aus\s|from\s)?{_SOURCE}(?![^\W_])(?:[.:_ -]*(?:no\.?\s|nr\.?\s)?[\w#.,/ -]{{0,60}})?)"
# Between brackets of any kind, what names a source.
_INSIDE = rf"(?:{_NUMBERS}|\^\w{{1,20}}|(?i:{_PAGE})|(?i:{_FILE})|{_URL}|{_AUTHOR_YEAR}(?:;\s?{_AUTHOR_YEAR})*|{_NAMED}|[a-zA-Z]{{0,6}}[_#-]?\d{{1,4}}(?:,\s?[a-zA-Z]{{1,6}}[_#-]?\d{{1,4}})*)"
_CITATION = re.compile(
    rf"(?:\u3010[^\u3010\u3011\n]{{0,60}}\u2020[^\u3010\u3011\n]{{0,80}}\u3011|\u3010{_INSIDE}\u3011"
    rf"|(?<![=(,:]\s)(?<![=(,:])\[\[?\s?{_INSIDE}\s?\]?\](?:\({_URL}\))?|\(\[{_INSIDE}\](?:\({_URL}\))?\)"
    rf"|[\u3014\uff3b]{_INSIDE}[\u3015\uff3d]|\{{{{1,2}}{_INSIDE}\}}{{1,2}}|\[[^\[\]\n]{{0,60}}\u2020[^\[\]\n]{{0,60}}\]"
    # Round brackets may hold content: "one (1) year" and "a ball (3 cm)" stay.
    rf"|\((?:(?i:{_PAGE})|(?i:{_FILE})|{_URL}|{_AUTHOR_YEAR}(?:;\s?{_AUTHOR_YEAR})*|{_NAMED})\)"
    r"|\(\d{1,2}(?:,\s?\d{1,2})*\)(?=\s*(?:[.;!?]|$))"
    r"|<(?P<tag>sup|cite|ref|c|source)\b[^<>]*>[^<>]{0,60}</(?P=tag)>|<(?:cite|ref|source|br)\b[^<>]*/?>"
    r"|\ue200[^\ue201]{0,120}\ue201|:cite\[[^\]\n]{0,60}\]|\^\[?\d{1,3}\]?(?!\w)|[\u2020\u2021\u00b6](?!\w)"
    # A raised figure behind a word or a full stop is a note; behind a unit or a number it is a power.
    r"|(?:(?<=\b(?:15|16|17|18|19|20)\d\d)|(?<!\d))(?<!\bm)(?<!\b[cdkm]m)(?<!\bft)(?<!\bin)(?<!\bhm)[\u2070\u00b9\u00b2\u00b3\u2074-\u2079]+(?![\w])"
    r"|\d\ufe0f?\u20e3|[\u2460-\u24ff\u2776-\u2793]"
    rf"|{_URL})",
    re.MULTILINE,
)
_MENTION = re.compile(  # of lower case
    r"\(?\b(?:(?:based\son|according\sto|as\s(?:per|(?:stated|mentioned|noted|described)\sin)|from|per|laut|gem\u00e4\u00df|nach|in)\s)?"
    rf"(?:the\s|der\s|dem\s)?{_SOURCE}\s#?\d{{1,3}}(?:(?:,\s?|\s(?:and|und)\s|,\s(?:and|und)\s)(?:{_SOURCE}\s)?\d{{1,3}})*\)?[,:]?"
    r"|(?:^|(?<=[.!?]\s))(?:based\son|according\sto|as\s(?:per|(?:stated|mentioned|noted)\sin)|laut|gem\u00e4\u00df)\s(?:the\s|dem\s|den\s)?"
    r"(?:(?:given|provided|above|retrieved|vorliegenden|obigen)\s)*(?:passages?|contexts?|documents?|sources?|texts?|information|kontext|text|quellen|textstellen)"
    r"(?:\s(?:provided|given|above))?,\s",
    re.MULTILINE,
)
_THINKING = re.compile(
    r"\A\s*<(?P<tag>think(?:ing)?|reasoning|scratchpad)>.*?</(?P=tag)>|\A(?:(?!<think).)*?</think(?:ing)?>",
    re.DOTALL,
)
_LINE = re.compile(
    r"^[ \t]*(?:"
    r"#{1,6}[ \t][^\n]*"  # a heading
    r"|(?:\*\*|__)[^\n*_.!?]{1,80}(?:\*\*|__):?[ \t]*(?=\n)"  # a line in bold, with lines below it
    r"|[^\n]{1,80}\n[ \t]*(?:={3,}|-{3,})[ \t]*"  # a heading that is underlined
    r"|[ \t]*\|[^\n]*\n[ \t]*\|[|: \t-]+\|[ \t]*"  # the head of a table
    r"|(?:-[ \t]?){3,}|(?:\*[ \t]?){3,}|(?:_[ \t]?){3,}|={3,}|[|+: \t=-]{3,}"  # a rule, also of a table
    r"|(?i:page|seite)\s\d+(?:\s(?:of|von)\s\d+)?|-\s?\d{1,4}\s?-"
    r"|\[\^?\d{1,3}\]:[^\n]*"  # a footnote
    r")[ \t]*$",
    re.MULTILINE,
)
_SOURCE_LIST = re.compile(
    r"(?:^|\n)[ \t]*[#>*_\- \t]*"
    r"(?i:(?:cited |used |retrieved )?sources?(?: cited| used)?|references?|citations?|footnotes?|bibliography|further reading"
    r"|read more|quellen?(?:angaben?)?|nachweise?|belege|literatur|verweise|fuentes|r\u00e9f\u00e9rences|fonti|fontes|\u51fa\u5178|\u53c2\u8003(?:\u6587\u732e)?|\u6765\u6e90|\ucd9c\ucc98)"
    r"[ \t]*[*_]*[ \t]*(?:[:\uff1a][*_]*(?:[ \t]*[^\n]*)?|(?=\n))"
    r"(?:\n(?:[ \t]*(?:[-*+\u2022]|\(?\[?\^?\d{1,3}[.)\]]|(?:https?://|www\.)|[\w./ -]+\.(?:md|pdf|html?|txt|docx?)\b)[^\n]*|[ \t]*(?=\n)))*\s*\Z"
)
_LONGEST_LIST = 5_000  # characters of a source list
_STEP = re.compile(
    r"(?:^|(?<=[.!?:;]\s)|(?<=[.!?:;]\s\s))[ \t>]*(?:[-*+\u2022\u25cf\u25aa\u2013\u2014\u2023\u25e6\u2192][ \t]+)?(?:\[[ xX]\][ \t]+)?"
    r"(?:(?:\*\*|__)?(?i:step|schritt|paso|\u00e9tape|passo|stap)[ \t]\#?\d{1,3}[ \t]*(?:[:.)\u2013\u2014-]|(?=\n|$))(?:\*\*|__)?"
    r"|(?:\*\*|__)?\(?(?:\d{1,3}(?:\.\d{1,2}){0,2}[.)]|(?:[a-zA-Z]|[ivx]{1,4})\))(?:\*\*|__)?(?=[ \t]|$|[^\x00-\u02ff])|\d{1,2}(?=\s\s\S))?[ \t]*",
    re.MULTILINE,
)
_EMPHASIS = re.compile(
    r"^[ \t]*\||\|[ \t]*$|(?<=\s)\|(?=\s)|\*{1,3}(?=\S)|(?<=\S)\*{1,3}|~~|`+|(?<!\w)_{1,2}(?=\w[^_\n]*\w?_{1,2}(?!\w))|(?<=\w)_{1,2}(?!\w)"
    r"|[\u2190-\u21ff\u2600-\u27bf\u2b00-\u2bff\ufe0f\U0001f000-\U0001faff]",
    re.MULTILINE,
)
_DUNDER = re.compile(r"(?<!\w)__[a-z]+(?:_[a-z]+)*__(?!\w)")  # what Python calls so is no emphasis
_LINK = re.compile(rf"!?\[(?P<text>[^\[\]\n]{{1,200}})\]\((?:{_URL}|[^()\s]{{1,200}})\)")


class StrippedText(NamedTuple):
    """A text without its marks.

    Parameters
    ----------
    text : str
        What is left.
    removed : tuple of (int, int)
        The offsets of the marks in the whole text.
    """

    text: str
    removed: Spans

    def original(self, start: int, end: int) -> tuple[int, int]:
        """Return the offsets in the whole text of the stretch from `start` to `end` of `text`."""
        if not self.removed:
            return start, end
        return self._shift(start), self._shift(max(end - 1, start)) + (end > start)

    def _shift(self, offset: int) -> int:
        lefts, lost = _places(self.removed)
        return offset + lost[bisect_right(lefts, offset)]


@lru_cache(maxsize=512)
def _places(removed: Spans) -> tuple[list[int], list[int]]:
    """Where each mark would stand in the text without marks, and what all up to it removed."""
    lefts, lost = [], [0]
    for start, end in removed:
        lefts.append(start - lost[-1])
        lost.append(lost[-1] + end - start)
    return lefts, lost


# What every mark has one of: quick to look for, in lower case and with a line end before it.
_SIGNS = re.compile(
    r"[(\[\]{}\u20e3\u2460-\u24ff\u2776-\u2793\u3010\u3014\uff3b\ue200#*`~<>|\u2020\u2021^=_\u2022\u00b9\u00b2\u00b3\u2070\u2074-\u2079\u2013\u2190-\u21ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff]"
)
_ITEMS = re.compile(
    r"[\n.!?:;](?:(?<=\n)|\s{1,9})[^\w\n]{0,9}(?:\w{1,3}[.)]|\d{1,2}\s\s)|\n[ \t]*[-+=]"
)
_WORDS = re.compile(r"step|schritt|paso|page|seite|https?:|www\.")
_HINTS = _SIGNS, _ITEMS, _WORDS, Phrases(rf"{_SOURCE}\b")
_ANYTHING = re.compile("")
_MARKED = re.compile(b"\1+")
_IN_LINE = re.compile(r"[^\n]")
# In their order, each with what its marks have one of.
_KINDS = (
    (_THINKING, re.compile("</")),
    (_SOURCE_LIST, _ANYTHING),
    (_LINE, re.compile(r"\n[ \t]*(?:[#*_=|+:\[-]|page|seite)")),
    (_LINK, re.compile(r"\]\(")),
    (
        _CITATION,
        re.compile(
            r"[(\[{<^\u3010\u3014\uff3b\ue200\u2020\u2021\u00b6\u2070\u00b9\u00b2\u00b3\u2074-\u2079\u20e3\u2460-\u24ff\u2776-\u2793]"
            r"|https?:|www\."
        ),
    ),
    (_STEP, _ANYTHING),
    (_MENTION, re.compile(rf"\b{_SOURCE}\b|text|information")),
    (
        _EMPHASIS,
        re.compile(r"[|*~`_\u2190-\u21ff\u2600-\u27bf\u2b00-\u2bff\ufe0f\U0001f000-\U0001faff]"),
    ),
)


@lru_cache(maxsize=4_096)
def strip_marks(text: str) -> StrippedText:
    """Return a text without its marks; where nothing else is left, as it is.

    Marks are list and step numbers, headings, rules, citation marks, source lists, page numbers, URLs,
    emphasis, thinking, and mentions of passages by number.

    Examples
    --------
    >>> strip_marks("2. Parking costs 9 euros [1]. (https://example.org/p)").text
    'Parking costs 9 euros.'
    """
    lower = f"\n{_lower(text)}"
    if not any(hint.search(lower) for hint in _HINTS):
        return StrippedText(text, ())
    blank = text
    marked = bytearray(len(text))  # of each character whether it is of a mark
    for pattern, signs in _KINDS:
        if not signs.search(lower):
            continue
        if pattern is _EMPHASIS:
            blank = _DUNDER.sub(lambda name: "x" * len(name[0]), blank)
        known = marked.count(1)
        # A source list ends the text; looked for from everywhere it takes quadratic time.
        since = max(0, len(blank) - _LONGEST_LIST) if pattern is _SOURCE_LIST else 0
        for found in pattern.finditer(_lower(blank) if pattern is _MENTION else blank, since):
            spans: Spans = (found.span(),)
            if pattern is _LINK:
                left, right = found.span("text")
                spans = (found.start(), left), (right, found.end())
            for start, end in spans:
                marked[start:end] = b"\1" * (end - start)
        if marked.count(1) > known:  # a character that no pattern knows stands in their place
            blank = _without(text, _runs(marked), lambda mark: _IN_LINE.sub("\0", mark))
    if 1 not in marked or not blank.strip(" \t\n\0.,;:!?()"):
        return StrippedText(text, ())
    removed = _with_blanks(text, _runs(marked))
    return StrippedText(_without(text, removed, lambda _: ""), removed)


def _runs(marked: bytearray) -> Spans:
    return tuple(run.span() for run in _MARKED.finditer(marked))


def _without(text: str, spans: Spans, instead: Callable[[str], str]) -> str:
    """The text with something else in place of the pieces at `spans`."""
    pieces, end = list[str](), 0
    for start, stop in spans:
        pieces += (text[end:start], instead(text[start:stop]))
        end = stop
    return "".join((*pieces, text[end:]))


def _lower(text: str) -> str:
    """The text in lower case, with every character in its place."""
    return text.replace("\u0130", "i").lower()


def _with_blanks(text: str, spans: Spans) -> Spans:
    """The spans, each with the blanks before it that nothing else needs."""
    merged: list[tuple[int, int]] = []
    for start, end in spans:
        left = start
        needed = end < len(text) and not (text[end].isspace() or text[end] in ".,;:!?)")
        while left and text[left - 1] in " \t":
            left -= 1
        if needed and left and left < start:
            left += 1
        elif needed and left == start > 0 and text[start - 1].isalnum() and text[end].isalnum():
            blank = next((n for n in range(start, end) if text[n].isspace()), None)
            left = start if blank is None else blank + 1
        if left < end:
            merged.append((left, end))
    return tuple(merged)
