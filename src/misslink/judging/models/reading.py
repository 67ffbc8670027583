"""Read a judge's words as the answer that was asked for, however they are wrapped."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from misslink.judging.models.places import Place, labels_of
from misslink.judging.models.probabilities import Tokens, label_probabilities, word_probabilities
from misslink.judging.protocol import Probabilities, Reply
from misslink.judging.schema import strict_schema
from misslink.text import valid_text
from misslink.types import Usage

__all__ = [
    "EXCERPT",
    "Said",
    "read_answer",
    "read_body",
    "read_completion",
    "read_usage",
    "said_in",
]

_THINKING = re.compile(r"\s*(?:<(think|thinking|thought|reasoning)>|\[(THINK)\])")
_THOUGHT_UNOPENED = "</think>"  # where the prompt's template opens it for the model
_JSON_BEGINS = re.compile(r"\s*(?:```(?:json)?\s*)?[{\[]")
EXCERPT = 300  # characters of somebody else's message that fit into one of ours


class _Found(NamedTuple):
    """An answer, or why there is none; the words it was read from, and where they begin."""

    answer: BaseModel | None
    problem: str | None
    words: str = ""
    start: int = 0
    place: Place | None = None


@dataclass(frozen=True)
class Said:
    """What a model said, whatever the interface it said it through.

    Parameters
    ----------
    content : str
        Its words, without what it thought.
    message : str
        The whole message as JSON where the content is empty: it was paid for and has to be seen.
    usage : Usage or None
    refusal : str or None
        Its words where it declines.
    cut : bool
        Whether it stopped at the token limit.
    withheld : bool
        Whether its provider held its words back.
    logprobs : object
        The tokens with their alternatives, as the server lists them.
    """

    content: str
    message: str
    usage: Usage | None = None
    refusal: str | None = None
    cut: bool = False
    withheld: bool = False
    logprobs: Any = None

    @property
    def gives_logprobs(self) -> bool:
        """Whether the tokens come with log-probabilities."""
        return isinstance(self.logprobs, list) and bool(self.logprobs)

    def reply(self, schema: type[BaseModel], *, structured: bool = True) -> Reply:
        """Read it as an instance of `schema`, from JSON or from one word."""
        if self.refusal and not self.content:
            declined = f"the judge declined to answer: {self.refusal}"
            return Reply(None, self.refusal, self.usage, problem=declined)
        found = _find(self.content, schema) if structured else _find_label(self.content, schema)
        problem = found.problem
        if found.answer is None and self.cut:
            problem = "the reply was cut off at the token limit (max_tokens)"
        elif found.answer is None and self.withheld:
            problem = "the judge's provider withheld the reply (content filter)"
        chances = {} if found.answer is None else self._probabilities(found, schema)
        return Reply(found.answer, self.content or self.message, self.usage, chances, problem)

    def ignores(self, structure: str) -> bool:
        """Whether it is no broken or cut piece of the JSON that was asked for, but other words.

        Parameters
        ----------
        structure : {'json_schema', 'json_object', 'plain'}
            How it was asked for. JSON of another shape ignores a schema only.
        """
        if structure == "plain" or self.cut or self.withheld or self.refusal or not self.content:
            return False
        if not _JSON_BEGINS.match(self.content):
            return True
        return structure == "json_schema" and next(_objects(self.content), None) is not None

    def _probabilities(self, found: _Found, schema: type[BaseModel]) -> Probabilities:
        tokens = Tokens.read(self.logprobs, self.content)
        if tokens is None:
            return {}
        if found.place is not None:
            return word_probabilities(tokens, self.content, found.place)
        return label_probabilities(
            tokens, self.content, found.words, found.start, strict_schema(schema)
        )


def read_answer(text: str, schema: type[BaseModel]) -> tuple[BaseModel | None, str | None]:
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
    answer : BaseModel or None
    problem : str or None
        Why there is no answer, as part of a sentence.
    """
    found = _find(text, schema)
    return found.answer, found.problem


def read_completion(body: str, schema: type[BaseModel], *, structured: bool = True) -> Reply:
    """Read the body of a successful chat completion.

    Parameters
    ----------
    body : str
        What the server sent with status 200. Servers have been seen to send errors this way.
    schema : type of BaseModel
        What the content must be.
    structured : bool
        Whether it was asked for as JSON; False: as one word, a label of the schema's only field.

    Returns
    -------
    Reply
        Where the body holds no completion at all, the one of `Reply.nothing`.
    """
    said = said_in(body)
    return (
        Reply.nothing(said) if isinstance(said, str) else said.reply(schema, structured=structured)
    )


def said_in(body: str) -> Said | str:
    """Return what a chat completion says, or in a sentence why it says nothing."""
    completion = read_body(body)
    if isinstance(completion, str):
        return completion
    choices = completion.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        return f"the server sent no completion: {body[:EXCERPT]}"
    content = _content(message.get("content"))
    if isinstance(choice.get("error"), dict) and not content:
        return f"the server sent no completion: {json.dumps(choice['error'])[:EXCERPT]}"
    refusal, logprobs = message.get("refusal"), choice.get("logprobs")
    return Said(
        content=content,
        message="" if content else json.dumps(message),
        usage=read_usage(completion.get("usage"), "prompt_tokens", "completion_tokens"),
        refusal=valid_text(str(refusal)) if refusal else None,
        cut=choice.get("finish_reason") == "length",
        withheld=choice.get("finish_reason") == "content_filter",
        logprobs=logprobs.get("content") if isinstance(logprobs, dict) else None,
    )


def read_body(body: str) -> dict[str, Any] | str:
    """Return the JSON object that a body is, or in a sentence what it is instead."""
    try:
        read = from_json(body)
    except ValueError:
        try:  # slower, and takes halves of characters too
            read = json.loads(body)
        except (ValueError, RecursionError):
            return f"the server's answer is not JSON: {body[:EXCERPT]!r}"
    return read if isinstance(read, dict) else f"the server sent no completion: {body[:EXCERPT]}"


def read_usage(reported: Any, prompt: str, completion: str) -> Usage | None:
    """Return the usage reported under these names; a strange count is missing, not zero."""
    if not isinstance(reported, dict):
        return None
    counts = (reported.get(name) for name in (prompt, completion))
    known = [n if type(n) is int and n >= 0 else None for n in counts]
    return Usage(prompt_tokens=known[0], completion_tokens=known[1])


def _find(text: str, schema: type[BaseModel]) -> _Found:
    if not text.strip():
        return _Found(None, "the reply is empty")
    problem = "the reply holds no JSON object"
    for start, words in _candidates(text):
        try:
            return _Found(schema.model_validate_json(words), None, words, start)
        except ValidationError as mismatch:
            first = mismatch.errors(include_url=False, include_input=False)[0]
            place = ".".join(map(str, first["loc"])) or "the whole"
            if first["type"] != "json_invalid":
                problem = f"the reply does not fit the answer schema: {place}: {first['msg']}"
            elif "does not fit" not in problem:
                problem = f"the reply is not JSON: {first['msg']}"
    if _after_thought(text) is None:
        problem = "the reply ends before the judge is done thinking"
    return _Found(None, problem)


def _find_label(text: str, schema: type[BaseModel]) -> _Found:
    """Find the label that is the first word, or the only one there is, or JSON after all."""
    if not text.strip():
        return _Found(None, "the reply is empty")
    start = _after_thought(text)
    if start is None:
        return _Found(None, "the reply ends before the judge is done thinking")
    ((name, node),) = strict_schema(schema)["properties"].items()
    labels = _words(node)
    by_word = {word.casefold(): label for label, word in labels.items()}
    either = "|".join(map(re.escape, sorted(labels.values(), key=len, reverse=True)))
    said = list(re.finditer(rf"(?<!\w)(?:{either})(?!\w)", text[start:], re.IGNORECASE))
    first = bool(said) and not re.search(r"\w", text[start : start + said[0].start()])
    if first or len({match.group().casefold() for match in said}) == 1:
        value = by_word[said[0].group().casefold()]
        answer = schema.model_validate_json(json.dumps({name: json.loads(labels_of(node)[value])}))
        span = start + said[0].start(), start + said[0].end()
        return _Found(answer, None, place=Place(name, *span, labels) if first else None)
    found = _find(text, schema)
    wanted = ", ".join(labels.values())
    return found if found.answer else _Found(None, f"the reply is none of the labels {wanted}")


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
    yield from reversed(list(_objects(text, begin)))


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


def _objects(text: str, begin: int = 0) -> Iterator[tuple[int, str]]:
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


def _content(content: Any) -> str:
    if isinstance(content, list):  # some servers send parts
        texts = [part.get("text") for part in content if isinstance(part, dict)]
        return valid_text("".join(text for text in texts if isinstance(text, str)))
    return valid_text(content) if isinstance(content, str) else ""
