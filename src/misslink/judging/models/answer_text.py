"""Find the answer that was asked for in what a judge wrote, however it is wrapped."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError

from misslink.judging.labels import label_in
from misslink.judging.models.places import Place, labels_of
from misslink.judging.schema import strict_schema

__all__ = ["Found", "begins_as_json", "find_answer", "find_label", "objects"]

_THINKING = re.compile(r"\s*(?:<(think|thinking|thought|reasoning)>|\[(THINK)\])")
_THOUGHT_UNOPENED = "</think>"  # where the prompt's template opens it for the model
_LACKING = "missing", "model_type"  # a field, or an object where one should be
_JSON_BEGINS = re.compile(r"\s*(?:```(?:json)?\s*)?[{\[]")


class Found(NamedTuple):
    """An answer, or why there is none; the words it was read from, and where they begin.

    It is ``misshapen`` where there is none, but JSON that lacks required fields.
    """

    answer: BaseModel | None
    problem: str | None
    words: str = ""
    start: int = 0
    place: Place | None = None
    misshapen: bool = False


def begins_as_json(text: str) -> bool:
    """Whether a text begins as JSON does, in a code fence or not."""
    return _JSON_BEGINS.match(text) is not None


def find_answer(text: str, schema: type[BaseModel]) -> Found:
    """Find an instance of `schema` in what a model wrote.

    The text as it stands is tried first, then what follows its ``<think>`` part, then the
    outermost braces, then every object in it. Of several objects that fit, the last is taken: a
    model that quotes an example of the format writes its own answer after it.

    Parameters
    ----------
    text : str
        Empty text gives no answer and a problem.
    schema : type of BaseModel
        Keys it does not know are ignored.

    Returns
    -------
    Found
        With where the instance stands, or in a sentence why there is none.
    """
    if not text.strip():
        return Found(None, "the reply is empty")
    problem, misshapen = "the reply holds no JSON object", False
    for start, words in _candidates(text):
        try:
            return Found(schema.model_validate_json(words), None, words, start)
        except ValidationError as mismatch:
            errors = mismatch.errors(include_url=False, include_input=False)
            misshapen = misshapen or any(error["type"] in _LACKING for error in errors)
            first = errors[0]
            place = ".".join(map(str, first["loc"])) or "the whole"
            if first["type"] != "json_invalid":
                problem = f"the reply does not fit the answer schema: {place}: {first['msg']}"
            elif "does not fit" not in problem:
                problem = f"the reply is not JSON: {first['msg']}"
    if _after_thought(text) is None:
        problem = "the reply ends before the judge is done thinking"
    return Found(None, problem, misshapen=misshapen)


def find_label(text: str, schema: type[BaseModel]) -> Found:
    """Find the label that is given as the answer, in words or in JSON after all.

    Parameters
    ----------
    text : str
        Words are read as `label_in` reads them. JSON beside which another label is given as the
        answer is nobody's.
    schema : type of BaseModel
        With one field whose values are labels; a truth value is said as yes or no.

    Returns
    -------
    Found
        With its place where the label is the first word, so that it has a probability.
    """
    if not text.strip():
        return Found(None, "the reply is empty")
    start = _after_thought(text)
    if start is None:
        return Found(None, "the reply ends before the judge is done thinking")
    ((name, node),) = strict_schema(schema)["properties"].items()
    labels = _words(node)
    as_json = find_answer(text, schema)
    if as_json.answer is not None:
        # What was judged may hold such JSON too, and a judge may quote it beside its own word.
        text = text[: as_json.start] + text[as_json.start + len(as_json.words) :]
    said = label_in(text, labels.values(), start)
    if isinstance(said, str):
        return as_json if as_json.answer is not None else Found(None, said)
    word, begin, end = said
    value = next(label for label, spoken in labels.items() if spoken == word)
    answer = schema.model_validate_json(json.dumps({name: json.loads(labels_of(node)[value])}))
    if as_json.answer is not None:
        either = ", ".join(labels.values())
        differs = f"the reply names more than one of the labels {either}"
        return as_json if answer == as_json.answer else Found(None, differs)
    first = not re.search(r"\w", text[start:begin])
    return Found(answer, None, place=Place(name, begin, end, labels) if first else None)


def _words(node: Mapping[str, Any]) -> dict[str, str]:
    """The labels of a field as they are said in one word: a truth value is yes or no."""
    spoken = {"true": "yes", "false": "no"} if node.get("type") == "boolean" else {}
    return {label: spoken.get(label, label) for label in labels_of(node)}


def _candidates(text: str) -> Iterator[tuple[int, str]]:
    """Where an answer may be: its offset and words, likeliest first."""
    yield 0, text
    begin = _after_thought(text)
    if begin is None:
        return  # what it tried out on the way is not its answer
    start, end = text.find("{", begin), text.rfind("}", begin)
    if start < 0 or end < start:
        return
    yield start, text[start : end + 1]
    yield from reversed(list(objects(text, begin)))


def _after_thought(text: str) -> int | None:
    """Where the part before the answer, in which a model thinks, ends; None where it does not."""
    at = 0
    while opened := _THINKING.match(text, at):
        name = opened.group(1) or opened.group(2)
        closing = f"[/{name}]" if opened.group(2) else f"</{name}>"
        end = text.find(closing, opened.end())
        if end < 0:
            return None
        at = end + len(closing)
    if at == 0 and not _JSON_BEGINS.match(text):
        end = text.rfind(_THOUGHT_UNOPENED)
        rest = end + len(_THOUGHT_UNOPENED)
        # Words of the answer under test may be quoted, so only where the answer follows at once.
        if end >= 0 and (_JSON_BEGINS.match(text, rest) or "{" not in text):
            return rest
    return at


def objects(text: str, begin: int = 0) -> Iterator[tuple[int, str]]:
    """Every outermost JSON object in `text` from `begin`, in order, with its offset."""
    decoder = json.JSONDecoder()
    at = text.find("{", begin)
    while at >= 0:
        try:
            _, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            yield at, text[at:end]
        at = text.find("{", end)
