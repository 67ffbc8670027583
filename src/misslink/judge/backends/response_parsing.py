"""Parse what a model replied into a `Reply`: JSON or a refusal, however wrapped."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, ValidationError, ValidationInfo, field_validator

from misslink.io.jsonl import DuplicateKeyError, unique_keys
from misslink.judge.backends.label_probabilities import label_probabilities
from misslink.judge.protocol import Reply, RetryableError, strict_schema
from misslink.text.normalization import valid_text
from misslink.types import Usage

CUT_OFF = "the reply was cut off"
_NOT_UTF8 = "the reply is not valid UTF-8"
_TOOL_CALL = "the reply is a tool call and not text"
DECLINED = "the judge declined to answer"
WITHHELD = "the judge's provider withheld the reply"
# By what the providers call the reason. An answer that is complete all the same counts.
_EARLY_ENDS = {
    **dict.fromkeys(
        ("length", "max_tokens", "max_output_tokens", "MAX_TOKENS", "model_length"),
        f"{CUT_OFF} at the token limit (max_tokens)",
    ),
    **dict.fromkeys(
        ("content_filter", "SAFETY", "RECITATION", "PROHIBITED_CONTENT", "guardrail_intervened"),
        f"{WITHHELD} (content filter)",
    ),
}

_INVALID_BYTE = re.compile("[\udc80-\udcff]")  # as decoded by `decode_body`
_MAX_REFUSAL_LENGTH = 400  # characters; longer ones say more than that they will not
# In lower case, in the languages of the prompts. What is refused is help, or the request itself: "I cannot find this in the
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
)
_REFUSAL = re.compile("|".join(_REFUSALS))
# "the setting context_length" is what our own messages name.
_TOO_LONG = re.compile(
    r"(?<!setting )context[ _.-]?(length|window|size)|maximum context"
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
    """Whether a short reply in plain words is a refusal to help, in English or German.

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
    reply = words.rpartition(_REASONING_END)[2].strip()
    plain = " ".join(reply.lower().translate(_PLAIN_PUNCTUATION).split()).lstrip("\"'*_ ")
    return len(reply) <= _MAX_REFUSAL_LENGTH and _REFUSAL.match(plain) is not None


def is_length_error(complaint: str) -> bool:
    """Whether a server refuses a question for its length, by what it says; never by nothing."""
    return _TOO_LONG.search(complaint) is not None


def is_question_error(complaint: str) -> bool:
    """Return whether a server rejects the question (length or policy), not the request format."""
    return is_length_error(complaint) or _POLICY_ERROR.search(complaint) is not None


_REASONING_START = re.compile(r"\s*(?:<(think|thinking|thought|reasoning)>|\[(THINK)\])")
_REASONING_END = "</think>"  # where the prompt's template opens it for the model
_MISSING_FIELD_ERRORS = "missing", "model_type"  # a field, or an object where one should be
_MISFIT = "the reply does not fit the answer schema"
_JSON_START = re.compile(r"\s*(?:```(?:json)?\s*)?[{\[]")


class ExtractedAnswer(NamedTuple):
    """An answer, or why there is none; the words it was read from, and where they begin.

    It is ``misshapen`` where there is none, but JSON that lacks required fields.
    """

    answer: BaseModel | None
    problem: str | None
    words: str = ""
    start: int = 0
    misshapen: bool = False


def extract_answer(text: str, schema: type[BaseModel]) -> ExtractedAnswer:
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
        return ExtractedAnswer(None, "the reply is empty")
    problems: list[str] = []
    misshapen = False
    for start, words in _candidate_texts(text):
        try:
            answer = schema.model_validate_json(words)
            json.loads(words, object_pairs_hook=unique_keys)
            return ExtractedAnswer(answer, None, words, start)
        except DuplicateKeyError as twice:
            problems.append(f"{_MISFIT}: {twice}")
        except ValidationError as mismatch:
            errors = mismatch.errors(include_url=False, include_input=False)
            misshapen = misshapen or any(error["type"] in _MISSING_FIELD_ERRORS for error in errors)
            first = errors[0]
            place = ".".join(map(str, first["loc"])) or "the whole"
            if first["type"] != "json_invalid":
                problems.append(f"{_MISFIT}: {place}: {first['msg']}")
            elif not any(problem.startswith(_MISFIT) for problem in problems):
                problems.append(f"the reply is not JSON: {first['msg']}")
    # A part of broken JSON fits no schema, but that is not why.
    problem = problems[0 if text.lstrip().startswith("{") else -1]
    if _end_of_reasoning(text) is None:
        problem = "the reply ended during the judge's reasoning"
    return ExtractedAnswer(None, problem, misshapen=misshapen)


def _candidate_texts(text: str) -> Iterator[tuple[int, str]]:
    """Where an answer may be: its offset and words, likeliest first."""
    yield 0, text
    begin = _end_of_reasoning(text)
    if begin is None:
        return  # what it tried out on the way is not its answer
    start, end = text.find("{", begin), text.rfind("}", begin)
    if start < 0 or end < start:
        return
    yield start, text[start : end + 1]
    yield from reversed(list(iter_json_objects(text, begin)))


def _end_of_reasoning(text: str) -> int | None:
    """Where the part before the answer, in which a model thinks, ends; None where it does not."""
    start = 0
    while opening_tag := _REASONING_START.match(text, start):
        name = opening_tag.group(1) or opening_tag.group(2)
        closing = f"[/{name}]" if opening_tag.group(2) else f"</{name}>"
        end = text.find(closing, opening_tag.end())
        if end < 0:
            return None
        start = end + len(closing)
    if start == 0 and not _JSON_START.match(text):
        end = text.rfind(_REASONING_END)
        after = end + len(_REASONING_END)
        # Words of the answer under test may be quoted, so only where the answer follows at once.
        if end >= 0 and (_JSON_START.match(text, after) or "{" not in text):
            return after
    return start


def iter_json_objects(text: str, begin: int = 0) -> Iterator[tuple[int, str]]:
    """Every outermost JSON object in `text` from `begin`, in order, with its offset."""
    decoder = json.JSONDecoder()
    start = text.find("{", begin)
    while start >= 0:
        try:
            _, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = start + 1
        else:
            yield start, text[start:end]
        start = text.find("{", end)


EXCERPT_LENGTH = 300  # characters of somebody else's message that fit into one of ours


class ServerDocument(BaseModel):
    """What a server sent; a field that is missing or invalid has its default."""

    model_config = ConfigDict(frozen=True, strict=True)

    @field_validator("*", mode="wrap")
    @classmethod
    def _default_if_invalid(cls, value: Any, validate: Any, info: ValidationInfo) -> Any:
        try:
            return validate(value)
        except ValidationError:
            field = cls.model_fields[str(info.field_name)]
            if field.is_required():
                raise
            return field.default

    @classmethod
    def of(cls, document: object) -> Self | None:
        """Read a document; None where it lacks what it needs."""
        try:
            return cls.model_validate(document)
        except ValidationError:
            return None


@dataclass(frozen=True)
class ParsedResponse:
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
    reason : str
        Why it ended, as the provider calls that.
    tool_call : bool
        Whether it calls a tool.
    valid : bool
        Whether its words are valid UTF-8; if not, they have question marks.
    logprobs : object
        The tokens with their alternatives, as the server lists them.
    """

    content: str
    message: str
    usage: Usage | None = None
    refusal: str | None = None
    reason: str = ""
    tool_call: bool = False
    valid: bool = True
    logprobs: Any = None

    def reply(self, schema: type[BaseModel]) -> Reply:
        """Read it as an instance of `schema`."""
        extracted = ExtractedAnswer(None, _NOT_UTF8)
        if self.valid:
            extracted = extract_answer(self.content, schema)
        raw = self.content or self.refusal or self.message
        if extracted.answer is not None:
            place = extracted.words, extracted.start
            chances = label_probabilities(
                self.logprobs, self.content, *place, strict_schema(schema)
            )
            return Reply(extracted.answer, raw, self.usage, chances)
        problem = extracted.problem
        if self.refusal and not self.content:
            problem = f"{DECLINED}: {self.refusal}"
        elif self.reason in _EARLY_ENDS:
            problem = _EARLY_ENDS[self.reason]
        elif self.tool_call and not self.content:
            problem = _TOOL_CALL
        elif self._declines:
            problem = f"{DECLINED}: {self.content}"
        return Reply(None, raw, self.usage, problem=problem)

    def ignores(self, structure: str, schema: type[BaseModel]) -> bool:
        """Whether a reply that does not fit ignores the requested answer format.

        With `structure` 'json_schema', JSON of another shape ignores it; an unknown label does not.
        """
        is_readable = self.valid and self.content and not self.refusal
        if structure == "plain" or self.reason in _EARLY_ENDS or not is_readable:
            return False
        if self._is_prose:
            return not self._declines
        return structure == "json_schema" and extract_answer(self.content, schema).misshapen

    @property
    def _is_prose(self) -> bool:
        """Whether there is no JSON in it, whole or broken."""
        return not (_JSON_START.match(self.content) or any(iter_json_objects(self.content)))

    @property
    def _declines(self) -> bool:
        """Whether it declines in its own words, where a server has no field for that."""
        return self._is_prose and is_refusal_text(self.content)


def parse_completion(body: str) -> ParsedResponse:
    """Return what a chat completion says; some servers send errors with status 200.

    Raises
    ------
    RetryableError
        It says nothing.
    """
    completion = parse_json_body(body)
    choices = completion.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise no_answer("completion", body)
    words = _message_content(message.get("content"))
    content = valid_text(words)
    if isinstance(choice.get("error"), dict) and not content:
        raise no_answer("completion", json.dumps(choice["error"]))
    refusal, logprobs = message.get("refusal"), choice.get("logprobs")
    return ParsedResponse(
        content=content,
        message="" if content else json.dumps(message),
        usage=parse_usage(completion.get("usage"), "prompt_tokens", "completion_tokens"),
        refusal=valid_text(str(refusal)) if refusal else None,
        reason=str(choice.get("finish_reason")),
        tool_call=bool(message.get("tool_calls") or message.get("function_call")),
        valid=is_valid_utf8(words),
        logprobs=logprobs.get("content") if isinstance(logprobs, dict) else None,
    )


def parse_json_body(body: str) -> dict[str, object]:
    """Return the JSON object that a body is; raise RetryableError where it is none."""
    try:
        read = json.loads(body)
    except (ValueError, RecursionError):
        problem = f"the server's answer is not JSON: {body[:EXCERPT_LENGTH]!r}"
        raise RetryableError(problem, "server") from None
    if not isinstance(read, dict):
        raise no_answer("completion", body)
    return read


def find_json_object(body: str) -> dict[str, Any] | None:
    """Return the JSON object that a body is; None where it is none."""
    with contextlib.suppress(RetryableError):
        return parse_json_body(body)
    return None


def no_answer(kind: str, sent: str) -> RetryableError:
    """Return the error of a server that answers with success, and not with what was asked."""
    excerpt = valid_text(sent[:EXCERPT_LENGTH])
    return RetryableError(f"the server sent no {kind}: {excerpt}", "server")


def parse_usage(
    reported: Any, prompt: str = "input_tokens", completion: str = "output_tokens"
) -> Usage | None:
    """Return the usage reported under these names; a strange count is missing, not zero."""
    if not isinstance(reported, dict):
        return None
    counts = (reported.get(name) for name in (prompt, completion))
    valid = [n if type(n) is int and n >= 0 else None for n in counts]
    return Usage(prompt_tokens=valid[0], completion_tokens=valid[1])


def _message_content(content: Any) -> str:
    if isinstance(content, list):  # some servers send parts
        texts = [part.get("text") for part in content if isinstance(part, dict)]
        return "".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else ""


def decode_body(body: bytes) -> str:
    """Return the text of a body; bytes that are no UTF-8 stay known (`is_valid_utf8`)."""
    return body.decode("utf-8", "surrogateescape")


def is_valid_utf8(text: str) -> bool:
    """Whether no byte of a decoded body was invalid."""
    return _INVALID_BYTE.search(text) is None
