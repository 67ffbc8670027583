"""Where a log itself says that the app failed: thumbs down, errors, refusals, asking again."""

from __future__ import annotations

import datetime as dt
import itertools
from collections import Counter
from collections.abc import Sequence

from misslink.goldset.logs.grouping import key_of
from misslink.goldset.logs.request import Request
from misslink.judging.embedded.abstention import declines
from misslink.judging.embedded.lexical import stems

__all__ = ["SIGNALS", "failing", "not_understood"]

# The surest first: by this order one is named where several hold.
SIGNALS = ("thumbs_down", "error", "abstained", "asked_again")

_GOOD = {
    "1", "up", "thumbsup", "thumbs_up", "positive", "good", "like", "liked", "yes", "true",
    "helpful", "correct", "pass", "\U0001f44d",
}  # fmt: skip
_BAD = {
    "0", "-1", "down", "thumbsdown", "thumbs_down", "negative", "bad", "dislike", "disliked", "no",
    "false", "unhelpful", "not_helpful", "incorrect", "wrong", "fail", "\U0001f44e",
}  # fmt: skip
_STARS = 5  # the longest scale of stars that is understood
# Who asks again within this time about the same thing has not been answered. Search logs draw the
# line between 5 minutes (a task) and 30 (a session).
_AGAIN = dt.timedelta(minutes=10)
_SHARED = 0.5  # of the words of two questions about the same thing


def failing(requests: Sequence[Request]) -> list[tuple[str, ...]]:
    """The signals of failure of each request, in the order of `SIGNALS`.

    thumbs_down
        The feedback is bad: a word for it; a number below 0 where the log has such, else below a
        half where none is above 1, else at most 2 of 5 stars.
    error
        The log has an error.
    abstained
        The answer says that it cannot answer, and no more.
    asked_again
        The same session's next question, within 10 minutes where times are known, has at least
        half of their words in common.
    """
    scale = _scale(requests)
    again = _asked_again(requests)
    found = []
    for number, request in enumerate(requests):
        holds = {
            "thumbs_down": _good(request.feedback, scale) is False,
            "error": request.error is not None,
            "abstained": bool(request.answer and declines(request.answer)),
            "asked_again": number in again,
        }
        found.append(tuple(signal for signal in SIGNALS if holds[signal]))
    return found


def not_understood(requests: Sequence[Request]) -> Counter[str]:
    """Feedback that is neither good nor bad by any scale known, and how often it occurs."""
    scale = _scale(requests)
    return Counter(
        str(request.feedback)
        for request in requests
        if request.feedback is not None
        and _number(request.feedback) is None
        and _word(request.feedback) not in _GOOD | _BAD
    ) + Counter(
        "numbers above 5"
        for request in requests
        if scale is None and _number(request.feedback) is not None
    )


def _scale(requests: Sequence[Request]) -> tuple[float, float] | None:
    """Where bad ends and good begins among the log's numbers; None where they are no such scale."""
    numbers = [n for request in requests if (n := _number(request.feedback)) is not None]
    if not numbers or (min(numbers) >= 0 and max(numbers) <= 1):
        return 0.5, 0.5
    if min(numbers) < 0:
        return (0.0, 0.0) if min(numbers) >= -1 and max(numbers) <= 1 else None
    return (3.0, 3.0) if max(numbers) <= _STARS else None


def _good(feedback: str | float | None, scale: tuple[float, float] | None) -> bool | None:
    """Whether feedback is good; None where it is none, neither, or not understood."""
    number = _number(feedback)
    if number is not None:
        if scale is None:
            return None
        low, high = scale
        middle = low == high and number == low and low != 0.5  # noqa: PLR2004 (the middle itself)
        return None if middle else number >= high
    word = _word(feedback)
    return True if word in _GOOD else False if word in _BAD else None


def _number(feedback: str | float | None) -> float | None:
    try:
        number = float(feedback)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return number if abs(number) < float("inf") else None


def _word(feedback: str | float | None) -> str:
    return "_".join(str(feedback or "").replace("-", " ").casefold().split())


def _asked_again(requests: Sequence[Request]) -> set[int]:
    sessions: dict[str, list[int]] = {}
    for number, request in enumerate(requests):
        if request.session:
            sessions.setdefault(request.session, []).append(number)
    found: set[int] = set()
    for members in sessions.values():
        if all(requests[number].at is not None for number in members):
            members.sort(key=lambda number: requests[number].at)  # type: ignore[arg-type,return-value]
        for earlier, later in itertools.pairwise(members):
            if _same_thing(requests[earlier], requests[later]):
                found.add(earlier)
    return found


def _same_thing(one: Request, other: Request) -> bool:
    if one.at and other.at and other.at - one.at > _AGAIN:
        return False
    first, second = set(stems(one.question)), set(stems(other.question))
    if not (first and second):
        return key_of(one.question) == key_of(other.question)
    return len(first & second) >= _SHARED * len(first | second)
