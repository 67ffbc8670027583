"""Read a reply that was to be one word as the label it names."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from pydantic import BaseModel

from misslink.judging.schema import strict_schema

__all__ = ["label_in", "read_label"]

_THOUGHT = re.compile(r"\s*<(think|thinking|thought|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL)
_WORD = re.compile(r"[^\W_]+(?:['\u2019_-][^\W_]+)*")
_CLOSES = r"[\s\"'*_`)\]}]*"
_ENDS_A_THOUGHT = re.compile(
    rf"{_CLOSES}(?:[.,:;!?(\u2013\u2014]|-\s|\b(?:because|since|as)\b|\Z)|[^\S\n]*\n",
    re.IGNORECASE,
)
_INTRODUCED = re.compile(r"(?:[:=]|\bis|\bis that|->|\u2192)[\s\"'*_`(\[{]*\Z", re.IGNORECASE)
_DENIED = re.compile(r"(?:\bnot|n['\u2019]t|\bnever|\bneither|\bnor)[\s\"'*_`]*\Z", re.IGNORECASE)


def label_in(text: str, labels: Collection[str], start: int = 0) -> tuple[str, int, int] | str:
    """Find the one label that a text gives as its answer.

    Exactly one of the labels must occur, whole, where an answer stands: first, last, or introduced
    (``Answer: yes``). A text that names two of them, denies one or merely uses its word in a
    sentence ("I see no conflict") gives none.

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


def read_label(text: str, schema: type[BaseModel]) -> tuple[BaseModel | None, str | None]:
    """Find the one label that a model was asked for in what it wrote.

    Parameters
    ----------
    text : str
        A ``<think>`` part at its beginning is no part of the reply.
    schema : type of BaseModel
        With one field whose values are listed, or are true and false (said as yes and no).

    Returns
    -------
    answer : BaseModel or None
    problem : str or None
        Why there is no answer, as part of a sentence.

    Raises
    ------
    ValueError
        The schema has another form.

    Examples
    --------
    >>> from misslink.judging.examination import LabelAlone
    >>> read_label("Yes.", LabelAlone)
    (LabelAlone(supported='yes'), None)
    """
    name, labels = _labels(schema)
    thought = _THOUGHT.match(text)
    found = label_in(text, list(labels), thought.end() if thought else 0)
    if isinstance(found, str):
        return None, found
    return schema.model_validate({name: labels[found[0]]}), None


def _labels(schema: type[BaseModel]) -> tuple[str, dict[str, Any]]:
    """The only field of a schema, and its values by the word that says them."""
    fields = strict_schema(schema).get("properties", {})
    if len(fields) != 1:
        raise ValueError(f"{schema.__name__} has {len(fields)} fields; one word answers one")
    ((name, spec),) = fields.items()
    if spec.get("type") == "boolean":
        return name, {"yes": True, "no": False}
    labels = {str(value): value for value in spec.get("enum", ()) if value is not None}
    if not labels:
        raise ValueError(f"the field '{name}' of {schema.__name__} lists no labels")
    return name, labels


def _words(labels: Collection[str]) -> re.Pattern[str]:
    """What a text is cut into: words, and the labels that are more or less than one."""
    others = [label for label in labels if label and not _WORD.fullmatch(label)]
    if not others:
        return _WORD
    longest_first = "|".join(re.escape(label) for label in sorted(others, key=len, reverse=True))
    return re.compile(rf"(?<!\w)(?:{longest_first})(?!\w)|{_WORD.pattern}", re.IGNORECASE)


def _answers(word: re.Match[str], words: list[re.Match[str]], text: str) -> bool:
    """Whether a word stands where an answer stands, and not in the middle of a sentence."""
    before = text[words[0].start() : word.start()]
    if _DENIED.search(before):
        return False
    if word is words[-1]:
        return True
    # "There is no conflict" and "Note: no claim lacks a source" go on after the word.
    at_the_start = word is words[0] or _INTRODUCED.search(before) is not None
    return at_the_start and _ENDS_A_THOUGHT.match(text, word.end()) is not None
