"""Detect failures that a log itself shows: feedback, errors, refusals, repeated questions."""

from __future__ import annotations

import datetime as dt
import itertools
from collections import Counter
from collections.abc import Sequence

from misslink.goldset.logs.clustering import question_key
from misslink.io.numbers import parse_number
from misslink.io.trace_formats.requests import LogRequest
from misslink.judge.backends.heuristic.abstention import declines
from misslink.text.normalization import stems

# The most certain first: it names the failure where several hold.
FAILURE_SIGNALS = ("thumbs_down", "error", "abstained", "asked_again")

_GOOD_WORDS = {
    "1", "up", "thumbsup", "thumbs_up", "positive", "good", "like", "liked", "yes", "true",
    "helpful", "correct", "pass", "\U0001f44d",
}  # fmt: skip
_BAD_WORDS = {
    "0", "-1", "down", "thumbsdown", "thumbs_down", "negative", "bad", "dislike", "disliked", "no",
    "false", "unhelpful", "not_helpful", "incorrect", "wrong", "fail", "\U0001f44e",
}  # fmt: skip
_MAX_STARS = 5  # the longest scale of stars that is recognized
# A user who asks about the same thing again within this time got no answer. Search logs put the
# limit between 5 minutes (a task) and 30 (a session).
_REPEAT_WINDOW = dt.timedelta(minutes=10)
_MIN_SHARED_WORDS = 0.5


def failure_signals(requests: Sequence[LogRequest]) -> list[tuple[str, ...]]:
    """Return the failure signals of each request, in the order of `FAILURE_SIGNALS`.

    thumbs_down
        The feedback is bad: a bad word; a number below 0 where the log has negative numbers, else
        below 0.5 where none is above 1, else at most 2 of 5 stars.
    error
        The log has an error.
    abstained
        The answer only says that it cannot answer.
    asked_again
        The next question of the session, within 10 minutes where times are known, shares at least
        half of their words.
    """
    scale = _feedback_scale(requests)
    repeated = _repeated_questions(requests)
    signals = []
    for index, request in enumerate(requests):
        holds = (
            _is_good(request.feedback, scale) is False,
            request.error is not None,
            bool(request.answer and declines(request.answer)),
            index in repeated,
        )
        signals.append(tuple(itertools.compress(FAILURE_SIGNALS, holds)))
    return signals


def unknown_feedback(requests: Sequence[LogRequest]) -> Counter[str]:
    """Count feedback that is neither good nor bad on any known scale."""
    scale = _feedback_scale(requests)
    unknown: Counter[str] = Counter()
    for request in requests:
        if parse_number(request.feedback) is not None:
            unknown["numbers above 5"] += scale is None
        elif request.feedback is not None and _is_good(request.feedback, scale) is None:
            unknown[str(request.feedback)] += 1
    return +unknown


def _feedback_scale(requests: Sequence[LogRequest]) -> float | None:
    """Where good begins among the log's numbers; None for an unknown scale."""
    numbers = [n for request in requests if (n := parse_number(request.feedback)) is not None]
    if not numbers or (min(numbers) >= 0 and max(numbers) <= 1):
        return 0.5
    if min(numbers) < 0:
        return 0.0 if min(numbers) >= -1 and max(numbers) <= 1 else None
    return 3.0 if max(numbers) <= _MAX_STARS else None


def _is_good(feedback: str | float | None, scale: float | None) -> bool | None:
    """Whether feedback is good; None if there is none, it is neutral or not understood."""
    number = parse_number(feedback)
    if number is not None:
        neutral = scale is None or (number == scale and scale != 0.5)
        return None if neutral else number >= (scale or 0.0)
    word = "_".join(str(feedback or "").replace("-", " ").casefold().split())
    return True if word in _GOOD_WORDS else False if word in _BAD_WORDS else None


def _repeated_questions(requests: Sequence[LogRequest]) -> set[int]:
    sessions: dict[str, list[int]] = {}
    for index, request in enumerate(requests):
        if request.session:
            sessions.setdefault(request.session, []).append(index)
    repeated: set[int] = set()
    for members in sessions.values():
        if all(requests[index].at is not None for index in members):
            members.sort(key=lambda index: requests[index].at)  # type: ignore[arg-type,return-value]
        for earlier, later in itertools.pairwise(members):
            if _same_topic(requests[earlier], requests[later]):
                repeated.add(earlier)
    return repeated


def _same_topic(first: LogRequest, second: LogRequest) -> bool:
    if first.at and second.at and second.at - first.at > _REPEAT_WINDOW:
        return False
    words, other_words = set(stems(first.question)), set(stems(second.question))
    if not (words and other_words):
        return question_key(first.question) == question_key(second.question)
    return len(words & other_words) >= _MIN_SHARED_WORDS * len(words | other_words)
