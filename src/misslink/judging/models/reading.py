"""Read what a server sent as a judge's reply."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from pydantic_core import from_json

from misslink.judging.endings import CUT_OFF, DECLINED, WITHHELD, declines
from misslink.judging.models.answer_text import (
    Found,
    begins_as_json,
    find_answer,
    find_label,
    objects,
)
from misslink.judging.models.probabilities import Tokens, label_probabilities, word_probabilities
from misslink.judging.protocol import Probabilities, Reply
from misslink.judging.schema import strict_schema
from misslink.text import valid_text
from misslink.types import Usage

__all__ = [
    "EXCERPT",
    "Said",
    "read_body",
    "read_completion",
    "read_usage",
    "said_in",
]

EXCERPT = 300  # characters of somebody else's message that fit into one of ours


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
            declined = f"{DECLINED}: {self.refusal}"
            return Reply(None, self.refusal, self.usage, problem=declined)
        find = find_answer if structured else find_label
        found = find(self.content, schema)
        problem = found.problem
        if found.answer is None and self.cut:
            problem = f"{CUT_OFF} at the token limit (max_tokens)"
        elif found.answer is None and self.withheld:
            problem = f"{WITHHELD} (content filter)"
        elif structured and found.answer is None and self._declines:
            problem = f"{DECLINED}: {self.content}"
        chances = {} if found.answer is None else self._probabilities(found, schema)
        return Reply(found.answer, self.content or self.message, self.usage, chances, problem)

    def ignores(self, structure: str, schema: type[BaseModel]) -> bool:
        """Whether no notice was taken of the answer format, in a reply that does not fit.

        Parameters
        ----------
        structure : {'json_schema', 'json_object', 'plain'}
            What was asked for by parameter: the schema, JSON, or nothing. Where it was the
            schema, JSON of another shape ignores it; a value that is none of its labels does not.
        schema : type of BaseModel
        """
        if structure == "plain" or self.cut or self.withheld or self.refusal or not self.content:
            return False
        if self._is_prose:
            return not self._declines
        return structure == "json_schema" and find_answer(self.content, schema).misshapen

    @property
    def _is_prose(self) -> bool:
        """Whether there is no JSON in it, whole or broken."""
        return not begins_as_json(self.content) and next(objects(self.content), None) is None

    @property
    def _declines(self) -> bool:
        """Whether it declines in its own words, where a server has no field for that."""
        return self._is_prose and declines(self.content)

    def _probabilities(self, found: Found, schema: type[BaseModel]) -> Probabilities:
        tokens = Tokens.read(self.logprobs, self.content)
        if tokens is None:
            return {}
        if found.place is not None:
            return word_probabilities(tokens, self.content, found.place)
        return label_probabilities(
            tokens, self.content, found.words, found.start, strict_schema(schema)
        )


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


def _content(content: Any) -> str:
    if isinstance(content, list):  # some servers send parts
        texts = [part.get("text") for part in content if isinstance(part, dict)]
        return valid_text("".join(text for text in texts if isinstance(text, str)))
    return valid_text(content) if isinstance(content, str) else ""
