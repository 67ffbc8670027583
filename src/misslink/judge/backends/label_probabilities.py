"""Probabilities of a reply's labels from the log-probabilities of its tokens."""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

# A key, or a value that is none of objects and lists.
_JSON_SCALAR = re.compile(
    r'"(?:[^"\\]|\\.)*"\s*:|(?P<value>"(?:[^"\\]|\\.)*"|[^\s{}\[\]:,"]+)', re.DOTALL
)


class LabelSpan(NamedTuple):
    """A value that is one of a few labels, with every label and how it is written in JSON.

    Its ``name`` has keys and numbers from the root, such as ``claims.0.support``. ``start`` and
    ``end`` are character offsets of the value in the text, quote marks included.
    """

    name: str
    start: int
    end: int
    labels: Mapping[str, str]


def find_label_spans(text: str, schema: Mapping[str, Any]) -> list[LabelSpan]:
    """Find every value of `text` for which `schema` leaves two labels or more, in order.

    Parameters
    ----------
    text : str
        A JSON document.
    schema : mapping
        A strict JSON schema without references: enumerations, booleans and nullable ones are
        labels.

    Raises
    ------
    ValueError
        The text is no JSON, or has a key twice.
    """
    leaves = _leaves(json.loads(text, strict=False), schema, "")
    values = (found for found in _JSON_SCALAR.finditer(text) if found["value"])
    return [
        LabelSpan(name, value.start(), value.end(), labels)
        for (name, node), value in zip(leaves, values, strict=True)
        if (labels := schema_labels(node))
    ]


def schema_labels(schema: Mapping[str, Any]) -> dict[str, str]:
    """Every label that a schema node leaves, and how it is written in JSON; empty if it is none."""
    kinds = schema.get("type")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    if "enum" in schema:
        values = list(schema["enum"])
    elif set(kinds) <= {"boolean", "null"} and "boolean" in kinds:
        values = [True, False, *([None] if "null" in kinds else [])]
    else:
        return {}
    written = [(value, json.dumps(value, ensure_ascii=False)) for value in values]
    labels = {value if isinstance(value, str) else text: text for value, text in written}
    return labels if len(labels) == len(values) > 1 else {}


def _leaves(
    value: Any, schema: Mapping[str, Any], name: str
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The name and schema of each value that is none of objects and lists, in order."""
    for option in schema.get("anyOf", ()):  # the first that may be of this kind
        if isinstance(value, dict) == ("properties" in option) and isinstance(value, list) == (
            "items" in option
        ):
            schema = option
            break
    inner = f"{name}." if name else ""
    if isinstance(value, dict):
        fields = schema.get("properties", {})
        for key, item in value.items():
            yield from _leaves(item, fields.get(key, {}), f"{inner}{key}")
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _leaves(item, schema.get("items", {}), f"{inner}{number}")
    else:
        yield name, schema


_MIN_LABEL_MASS = 0.5  # below it the labels are not what the model was choosing between
_MAX_AMBIGUOUS_MASS = 0.01  # of what fits some labels and not others, and cannot be shared out
_BLANKS = b" \t\r\n"


class _ReplyTokens(NamedTuple):
    """The tokens of a reply, placed in its content.

    A token ``starts`` so many bytes from the start of the content; the first may lie before it,
    where the model thought before. Its ``options`` are it and its listed alternatives, with their
    probabilities. ``taken`` are the tokens themselves.
    """

    starts: Sequence[int]
    options: Sequence[Mapping[bytes, float]]
    taken: Sequence[bytes]
    content: bytes


def _place_tokens(listed: Any, content: str) -> _ReplyTokens | None:
    """Place the tokens of ``logprobs.content``; None where they are not those of `content`.

    There may be a thinking part before the content and an end mark behind it.
    """
    read = [_parse_token(item) for item in listed] if isinstance(listed, list) else []
    taken = [token for token in read if token is not None]
    if not (taken and content) or len(taken) < len(read):
        return None
    words = [word for word, _ in taken]
    starts = [0, *accumulate(map(len, words))]
    target = content.encode("utf-8", "surrogatepass")
    offset = b"".join(words).rfind(target)
    if offset < 0:
        return None
    # The content is whole tokens, up to blanks that the server stripped.
    first = bisect_right(starts, offset) - 1
    last = bisect_right(starts, offset + len(target) - 1) - 1
    before = words[first][: offset - starts[first]]
    after = words[last][offset + len(target) - starts[last] :]
    if before.strip(_BLANKS) or after.strip(_BLANKS):
        return None
    options = [options for _, options in taken]
    return _ReplyTokens([start - offset for start in starts[:-1]], options, words, target)


def label_probabilities(
    listed: Any, content: str, answer: str, start: int, schema: Mapping[str, Any]
) -> dict[str, dict[str, float]]:
    """Return the probability of each label at every place of a JSON answer.

    Parameters
    ----------
    listed : list of mapping
        The tokens of `content`, ``{"token", "logprob", "bytes", "top_logprobs"}`` each. Anything
        else is no list of tokens, and gives no probabilities.
    content : str
        What the model said.
    answer : str
        The JSON text in it.
    start : int
        Its character offset in `content`.
    schema : mapping
        The strict JSON schema of the answer.

    Returns
    -------
    dict of str to dict of str to float
        By place, such as ``claims.0.support``; the labels of one sum to 1. A place whose labels
        cannot be distinguished, or have less than half of the probability among them, is left out.
    """
    tokens = _place_tokens(listed, content)
    if tokens is None:
        return {}
    by_span = {}
    for place in find_label_spans(answer, schema):
        value = answer[place.start : place.end]
        if value in place.labels.values():
            offset = len(content[: start + place.start].encode("utf-8", "surrogatepass"))
            shares = _label_shares(tokens, offset, place.labels, value)
            if shares:
                by_span[place.name] = shares
    return by_span


def _label_shares(
    tokens: _ReplyTokens, offset: int, labels: Mapping[str, str], value: str
) -> dict[str, float] | None:
    """The labels' shares at byte `offset`, or None."""
    number = bisect_right(tokens.starts, offset) - 1
    before = tokens.content[max(0, tokens.starts[number]) : offset]
    written = {label: _strip_blanks(before + text.encode()) for label, text in labels.items()}
    chosen = next(label for label, text in labels.items() if text == value)
    mass = dict.fromkeys(labels, 0.0)
    live = set(labels)
    weight, done = 1.0, b""
    while live != {chosen}:
        if chosen not in live or number == len(tokens.taken):
            return None
        taken = done + _strip_blanks(tokens.taken[number])
        followed = 0.0
        for option, probability in tokens.options[number].items():
            prefix = done + _strip_blanks(option)
            if prefix == taken:
                followed += probability
                continue
            fits = {label for label in live if _matches_label(prefix, written[label])}
            if len(fits) == 1:
                mass[fits.pop()] += weight * probability
            elif fits and fits != live and weight * probability > _MAX_AMBIGUOUS_MASS:
                return None
        weight *= followed
        live = {label for label in live if _matches_label(taken, written[label])}
        done, number = taken, number + 1
    mass[chosen] += weight
    total = sum(mass.values())
    if total < _MIN_LABEL_MASS:
        return None
    return {label: share / total for label, share in mass.items()}


def _matches_label(prefix: bytes, label: bytes) -> bool:
    """Whether what was said begins the label, or is the whole of it and something behind."""
    if label.startswith(prefix):
        return True
    if not prefix.startswith(label):
        return False
    # A quote mark ends a label; without one, "1" is not the beginning of "10".
    return label.endswith(b'"') or not (prefix[len(label) : len(label) + 1].isalnum())


def _parse_token(item: Any) -> tuple[bytes, dict[bytes, float]] | None:
    """A token, and the probability of it and its alternatives; None where `item` is none."""
    own = _parse_alternative(item)
    if own is None:
        return None
    options: dict[bytes, float] = {}
    listed = item.get("top_logprobs")
    for other in map(_parse_alternative, listed if isinstance(listed, list) else ()):
        if other is not None:  # two tokens may read the same
            options[other[0]] = options.get(other[0], 0.0) + other[1]
    options[own[0]] = max(options.get(own[0], 0.0), own[1])
    return own[0], options


def _parse_alternative(item: Any) -> tuple[bytes, float] | None:
    try:
        text, logprob, raw = item.get("token"), item["logprob"], item.get("bytes")
        token = text.encode("utf-8", "surrogatepass") if raw is None else bytes([*raw])
        is_number = not (isinstance(logprob, bool) or math.isnan(logprob))
        return (token, math.exp(min(logprob, 0.0))) if is_number else None
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
        return None


def _strip_blanks(text: bytes) -> bytes:
    """Without blanks: JSON has the same labels however it is laid out."""
    return text.translate(None, _BLANKS)
