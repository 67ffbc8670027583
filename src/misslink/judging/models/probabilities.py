"""From the log-probabilities of a reply's tokens to the probabilities of its labels.

At the token where a label begins, every listed alternative that can only become one label adds
its probability to that label; an alternative that is the beginning of several, and was the one
taken, is followed to the token where they part. What is left is renormalised over the labels.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from misslink.judging.models.places import Place, label_places

__all__ = ["Tokens", "label_probabilities", "word_probabilities"]

_ENOUGH = 0.5  # below it the labels are not what the model was choosing between
_TOO_MUCH = 0.01  # probability that fits some labels and not others, and cannot be shared out
_BLANKS = b" \t\r\n"
_DECORATION = _BLANKS + b"\"'`*_.:"


@dataclass(frozen=True)
class Tokens:
    """The tokens of a reply, placed in its content.

    Parameters
    ----------
    starts : sequence of int
        Where each token starts, in bytes from the start of the content. The first may lie before
        it, where the model thought before.
    options : sequence of mapping of bytes to float
        For each token, it and its listed alternatives with their probabilities.
    taken : sequence of bytes
        The tokens themselves.
    content : bytes
    """

    starts: Sequence[int]
    options: Sequence[Mapping[bytes, float]]
    taken: Sequence[bytes]
    content: bytes

    @classmethod
    def read(cls, listed: Any, content: str) -> Tokens | None:
        """Place the tokens of ``logprobs.content``; None where they are not those of `content`.

        Parameters
        ----------
        listed : list of mapping
            ``{"token", "logprob", "bytes", "top_logprobs"}`` each. Anything else is no list of
            tokens.
        content : str
            What the model said; its tokens may hold a thinking part before it and an end mark
            behind it.
        """
        if not isinstance(listed, list) or not content:
            return None
        read = [_token(item) for item in listed]
        taken = [token for token in read if token is not None]
        if len(taken) < len(read):
            return None
        words = [word for word, _ in taken]
        starts = [0, *accumulate(map(len, words))]
        wanted = content.encode("utf-8", "surrogatepass")
        offset = b"".join(words).rfind(wanted)
        if offset < 0:
            return None
        # The content is whole tokens, up to blanks that the server stripped.
        first = bisect_right(starts, offset) - 1
        last = bisect_right(starts, offset + len(wanted) - 1) - 1
        before = words[first][: offset - starts[first]]
        after = words[last][offset + len(wanted) - starts[last] :]
        if before.strip(_BLANKS) or after.strip(_BLANKS):
            return None
        options = [options for _, options in taken]
        return cls([start - offset for start in starts[:-1]], options, words, wanted)


def label_probabilities(
    tokens: Tokens, content: str, answer: str, start: int, schema: Mapping[str, Any]
) -> dict[str, dict[str, float]]:
    """Return the probability of each label at every place of a JSON answer.

    Parameters
    ----------
    tokens : Tokens
        Of `content`.
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
        cannot be told apart, or have less than half of the probability among them, is left out.
    """
    try:
        places = label_places(answer, schema)
    except (ValueError, RecursionError):
        return {}
    found = {}
    for place in places:
        value = answer[place.start : place.end]
        if value in place.labels.values():
            at = _bytes(content, start + place.start)
            shares = _shares(tokens, at, place.labels, value, _squeezed)
            if shares:
                found[place.name] = shares
    return found


def word_probabilities(tokens: Tokens, content: str, place: Place) -> dict[str, dict[str, float]]:
    """Return the same for a reply whose first word is the label.

    Parameters
    ----------
    tokens : Tokens
    content : str
    place : Place
        Of the word in `content`; its labels are written as in a sentence.
    """
    value = content[place.start : place.end].casefold()
    labels = {label: word.casefold() for label, word in place.labels.items()}
    if value not in labels.values():
        return {}
    shares = _shares(tokens, _bytes(content, place.start), labels, value, _bare)
    return {place.name: shares} if shares else {}


def _shares(
    tokens: Tokens,
    at: int,
    labels: Mapping[str, str],
    value: str,
    plain: Callable[[bytes], bytes],
) -> dict[str, float] | None:
    """The labels' shares at byte `at`, or None; `plain` takes away what tells no labels apart."""
    number = bisect_right(tokens.starts, at) - 1
    before = tokens.content[max(0, tokens.starts[number]) : at]
    written = {label: plain(before + text.encode()) for label, text in labels.items()}
    chosen = next(label for label, text in labels.items() if text == value)
    mass = dict.fromkeys(labels, 0.0)
    live = set(labels)
    weight, done = 1.0, b""
    while True:
        taken = done + plain(tokens.taken[number])
        followed = 0.0
        for option, probability in tokens.options[number].items():
            said = done + plain(option)
            if said == taken:
                followed += probability
                continue
            fits = {label for label in live if _fits(said, written[label])}
            if len(fits) == 1:
                mass[fits.pop()] += weight * probability
            elif fits and fits != live and weight * probability > _TOO_MUCH:
                return None
        weight *= followed
        live = {label for label in live if _fits(taken, written[label])}
        number += 1
        if live == {chosen}:
            mass[chosen] += weight
            break
        if chosen not in live or number == len(tokens.taken):
            return None
        done = taken
    total = sum(mass.values())
    return {label: share / total for label, share in mass.items()} if total >= _ENOUGH else None


def _fits(said: bytes, label: bytes) -> bool:
    """Whether what was said begins the label, or is the whole of it and something behind."""
    if label.startswith(said):
        return True
    if not said.startswith(label):
        return False
    # A quote mark ends a label; without one, "1" is not the beginning of "10".
    return label.endswith(b'"') or not (said[len(label) : len(label) + 1].isalnum())


def _token(item: Any) -> tuple[bytes, dict[bytes, float]] | None:
    """A token, and the probability of it and its alternatives; None where `item` is none."""
    own = _option(item)
    if own is None:
        return None
    listed = item.get("top_logprobs")
    others = [_option(other) for other in listed] if isinstance(listed, list) else []
    options: dict[bytes, float] = {}
    for token, probability in [other for other in others if other is not None]:
        options[token] = options.get(token, 0.0) + probability  # two tokens may read the same
    options[own[0]] = max(options.get(own[0], 0.0), own[1])
    return own[0], options


def _option(item: Any) -> tuple[bytes, float] | None:
    if not isinstance(item, dict):
        return None
    text, logprob, raw = item.get("token"), item.get("logprob"), item.get("bytes")
    if isinstance(logprob, bool) or not isinstance(logprob, int | float) or math.isnan(logprob):
        return None
    if isinstance(raw, list) and all(isinstance(b, int) and 0 <= b < 256 for b in raw):  # noqa: PLR2004
        token = bytes(raw)
    elif isinstance(text, str):
        token = text.encode("utf-8", "surrogatepass")
    else:
        return None
    return token, math.exp(min(logprob, 0.0))


def _bytes(text: str, characters: int) -> int:
    return len(text[:characters].encode("utf-8", "surrogatepass"))


def _squeezed(said: bytes) -> bytes:
    """Without blanks: JSON has the same labels however it is laid out."""
    return said.translate(None, _BLANKS)


def _bare(said: bytes) -> bytes:
    """In lower case and without blanks, quote marks and emphasis."""
    return said.translate(None, _DECORATION).decode("utf-8", "replace").casefold().encode()
