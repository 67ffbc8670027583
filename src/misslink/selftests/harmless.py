"""Changes of an answer that must not matter, each a function of a good case."""

from __future__ import annotations

import re
from collections.abc import Callable

from misslink.selftests.faults import Change, Draw, MutantKind
from misslink.selftests.good_cases import GoodCase
from misslink.selftests.values import MONTHS
from misslink.text.normalization import sentence_spans

HARMLESS: dict[str, MutantKind] = {}
_Rewrite = Callable[[GoodCase, Draw], str | None]


def _harmless(rewrite: _Rewrite) -> _Rewrite:
    def mutate(good: GoodCase, draw: Draw) -> Change | None:
        answer = rewrite(good, draw)
        if not answer or answer == good.answer:
            return None
        return Change(good.case, good.trace.model_copy(update={"answer": answer}))

    HARMLESS[rewrite.__name__] = MutantKind(rewrite.__name__, None, mutate)
    return rewrite


# Words and forms that say the same, in both directions.
_SAME = (
    ("because", "since"), ("in order to", "to"), ("for example", "for instance"),
    ("is called", "is known as"), ("about", "approximately"), ("also", "in addition"),
    ("such as", "like"), ("however", "but"), ("use", "make use of"), ("uses", "makes use of"),
    ("must", "has to"), ("can be", "may be"), ("only", "solely"), ("begins", "starts"),
    ("isn't", "is not"), ("doesn't", "does not"), ("can't", "cannot"), ("don't", "do not"),
    ("weil", "da"), ("zum Beispiel", "beispielsweise"), ("etwa", "ungefähr"), ("auch", "ebenfalls"),
)  # fmt: skip
_SAFE = frozenset(("in order to", "make use of", "makes use of", "is known as", "may be", "has to", "but", "like", "since", "da", "solely"))  # fmt: skip
_LEADS = ("In short: ", "To answer your question: ", "According to the sources, ")
_HEDGES = (
    ("usually", "typically"), ("generally", "as a rule"), ("probably", "likely"),
    ("may", "might"), ("approximately", "roughly"), ("about", "around"), ("often", "frequently"),
    ("seems", "appears"), ("in der Regel", "normalerweise"), ("etwa", "rund"), ("vermutlich", "wohl"),
)  # fmt: skip
_BACKWARD = re.compile(
    r"(?i)^\W*(?:it|its|this|that|these|those|they|their|he|she|his|her|such|both|then|however|but"
    r"|so|also|therefore|thus|otherwise|instead|and|or|for example|here|there"
    r"|er|sie|es|dies\w*|das|dabei|dann|aber|daher|auch|dort)\b"
)
_BLOCK = re.compile(r"(?m)^\s*(?:[-*#>|]|\d+[.)])|```")
_TEN_MARKS = (
    " [{n}]", "[{n}]", " ({n})", " [^{n}]", " \u3010{n}\u2020source\u3011", " [doc{n}]",
    " [Source {n}]", " (Source: passage {n})", "<sup>{n}</sup>", " [passage {n}]",
)  # fmt: skip
_HEADINGS = (
    "## Answer\n\n{}",
    "**Answer**\n\n{}",
    "Answer: {}",
    "# {question}\n\n{}",
    "### Summary\n\n{}",
)
_THOUSANDS = re.compile(r"(?<![\w.,])\d{1,3}(?:,\d{3})+(?![\w]|[.,]\d)")
_LONG_NUMBER = re.compile(r"(?<![\w.,$€£-])[1-9]\d{4,6}(?![\w]|[.,]\d)")
_PERCENT = re.compile(r"(?<=\d)\s?%")
_PERCENT_WORD = re.compile(r"(?<=\d) percent\b")
_ISO = re.compile(r"\b((?:1[5-9]|20)\d\d)-([01]\d)-([0-3]\d)\b")
_LONG_DATE = re.compile(rf"\b([0-3]?\d) ({MONTHS['en'].replace(' ', '|')}) ((?:1[5-9]|20)\d\d)\b")
_US_DATE = re.compile(rf"\b({MONTHS['en'].replace(' ', '|')}) ([0-3]?\d), ((?:1[5-9]|20)\d\d)\b")
_SHORT_UNITS = {
    "km": "kilometers", "kg": "kilograms", "cm": "centimeters", "mm": "millimeters",
    "min": "minutes", "ms": "milliseconds", "GB": "gigabytes", "MB": "megabytes", "kW": "kilowatts",
    "h": "hours", "m": "meters", "s": "seconds",
}  # fmt: skip
_SHORT = re.compile(rf"(?<=\d) ?({'|'.join(_SHORT_UNITS)})(?![\w/²³^])")
_LONG = re.compile(rf"(?<=\d) ({'|'.join(_SHORT_UNITS.values())})\b")


@_harmless
def paraphrased(good: GoodCase, draw: Draw) -> str | None:
    """Other words for the same, by rules; an introduction where no word has another."""
    text = good.answer
    for old, new in _SAME:
        text = _replaced(text, old, new)
        if text == good.answer and new not in _SAFE:
            text = _replaced(text, new, old)
    if text == good.answer and not _BLOCK.search(text):
        return draw.rng.choice(_LEADS) + text
    return text


@_harmless
def reordered(good: GoodCase, draw: Draw) -> str | None:  # noqa: ARG001
    """Its sentences in another order, where none refers to the one before."""
    parts = _sentences(good.answer)
    if len(parts) <= 1 or any(map(_BACKWARD.match, parts)):
        return None
    return " ".join(reversed(parts))


@_harmless
def listed(good: GoodCase, draw: Draw) -> str | None:
    """A list instead of prose."""
    parts = _sentences(good.answer)
    if len(parts) <= 1:
        return None
    bullets = draw.rng.choice((("- ",) * len(parts), tuple(f"{n}. " for n in range(1, 100))))
    return "\n".join(bullet + part for bullet, part in zip(bullets, parts, strict=False))


@_harmless
def marks_added(good: GoodCase, draw: Draw) -> str | None:
    """Citation marks of one of ten styles behind each sentence."""
    parts = _sentences(good.answer)
    if not parts or not good.sources:
        return None
    places = {passage.id: place for place, passage in enumerate(good.context, start=1)}
    mark = draw.rng.choice(_TEN_MARKS).format(n=places[good.sources[0].id])
    marked = [part[:-1] + mark + part[-1] if part[-1] in ".!" else part + mark for part in parts]
    return " ".join(marked)


@_harmless
def heading_added(good: GoodCase, draw: Draw) -> str | None:
    """A heading before the answer."""
    style = draw.rng.choice(_HEADINGS)
    return style.replace("{question}", good.case.question.strip()).replace("{}", good.answer)


@_harmless
def sentence_repeated(good: GoodCase, draw: Draw) -> str | None:
    """One sentence again at the end."""
    return (
        f"{good.answer.rstrip()}\n\n{draw.rng.choice(good.sentences)}" if good.sentences else None
    )


@_harmless
def form_changed(good: GoodCase, draw: Draw) -> str | None:  # noqa: ARG001
    """Another form of a date, number or unit."""
    names = MONTHS["en"].split()
    text = _THOUSANDS.sub(lambda m: m[0].replace(",", ""), good.answer)
    if text == good.answer:
        text = _LONG_NUMBER.sub(lambda m: f"{int(m[0]):,}", text)
    spelled = _PERCENT.sub(" percent", text)
    text = spelled if spelled != text else _PERCENT_WORD.sub("%", text)
    if _ISO.search(text):
        text = _ISO.sub(lambda m: f"{int(m[3])} {names[(int(m[2]) - 1) % 12]} {m[1]}", text)
    else:
        text = _LONG_DATE.sub(r"\2 \1, \3", text) if _LONG_DATE.search(text) else _US_DATE.sub(r"\2 \1 \3", text)  # fmt: skip
    longer = _SHORT.sub(lambda m: f" {_SHORT_UNITS[m[1]]}", text)
    if longer != text:
        return longer
    shorts = {name: short for short, name in _SHORT_UNITS.items()}
    return _LONG.sub(lambda m: f" {shorts[m[1]]}", text)


@_harmless
def hedge_reworded(good: GoodCase, draw: Draw) -> str | None:  # noqa: ARG001
    """Another word for the same hedge."""
    for pair in _HEDGES:
        for old, new in (pair, pair[::-1]):
            if (text := _replaced(good.answer, old, new)) != good.answer:
                return text
    return None


def _replaced(text: str, old: str, new: str) -> str:
    """The text with other words, where these are not the first ones of a sentence."""
    return re.sub(rf"(?<=[\w,] )\b{re.escape(old)}\b(?=\s\w)", new, text)


def _sentences(answer: str) -> list[str]:
    """The sentences of prose; none of a text with lists, headings or code."""
    if _BLOCK.search(answer):
        return []
    return [answer[start:end] for start, end in sentence_spans(answer)]
