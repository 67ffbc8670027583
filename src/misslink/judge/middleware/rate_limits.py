"""Limits on concurrent calls, and on calls and tokens per minute."""

from __future__ import annotations

import asyncio
import heapq
import math
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from misslink.judge.protocol import Reply, SkippedAskError

_WINDOW_S = 60.0
_CHARACTERS_PER_TOKEN = 4
# Among n replies and the next one each is as likely to be the longest, so the next is longer than
# all seen once in n + 1 times. With ten that is rare enough to let calls begin, and twice the
# longest leaves room for it.
_MIN_OBSERVED_REPLIES = 10
_REPLY_LENGTH_FACTOR = 2

WaitFunction = Callable[[float, asyncio.Event], Awaitable[None]]


class ConcurrencyLimit:
    """Places for calls: as many as the server bears, additive increase, multiplicative decrease.

    All `most` are open at first. Every success opens a part of another, and being told to slow
    down closes half of them, once a round trip. The oldest question gets the next free place, so
    that one which is repeated does not wait behind all that are new.

    Source: Chiu and Jain (1989), Analysis of the increase and decrease algorithms.

    Parameters
    ----------
    most : int
        At least 1.

    Attributes
    ----------
    allowed : float
        How many places there are now, in [1, most]; its whole part counts.
    out : int
        How many are taken.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.allowed = float(most)
        self.out = 0
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._entered = 0  # breaks ties between waiters of one age
        self._cut_at = 0
        self._turned_away = False
        self._empty: asyncio.Future[None] | None = None

    async def enter(self, age: int) -> None:
        """Take a place, as soon as one is free for a question of this age.

        Parameters
        ----------
        age : int
            The question's number; the lowest goes first.
        """
        if self._free() and not self._waiting:
            self.out += 1
            return
        place = asyncio.get_running_loop().create_future()
        self._entered += 1
        heapq.heappush(self._waiting, (age, self._entered, place))
        try:
            await place  # whoever gives it has counted us already
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self.leave()
            raise

    def leave(self) -> None:
        """Give a place back."""
        self.out -= 1
        self._give()
        if not self.out and self._empty is not None and not self._empty.done():
            self._empty.set_result(None)

    def grow(self) -> None:
        """A call succeeded."""
        self.allowed = min(self.most, self.allowed + 1 / self.allowed)

    def halve(self, call: int, latest: int) -> None:
        """Halve the limit after a rate-limited call.

        Calls that began before the last cut say nothing about its effect, so they do not cut again.
        """
        if call > self._cut_at:
            self.allowed = max(1.0, self.allowed / 2)
            self._cut_at = latest

    def turn_away(self) -> None:
        """Let everybody who waits through at once, to be told that the asking is over."""
        self._turned_away = True
        self._give()

    async def all_left(self) -> None:
        """Wait until no place is taken."""
        while self.out:
            self._empty = asyncio.get_running_loop().create_future()
            await self._empty

    def _free(self) -> bool:
        return self._turned_away or self.out < int(self.allowed)

    def _give(self) -> None:
        while self._waiting and self._free():
            _, _, place = heapq.heappop(self._waiting)
            if not place.done():  # a waiter that was cancelled
                self.out += 1
                place.set_result(None)


class SlidingWindow:
    """At most so many units in any 60 seconds, by whichever clock the server counts.

    A server may count a call when it comes or when it is answered, so a call counts here from
    its start until 60 seconds after its end.

    Parameters
    ----------
    most : int
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._out = 0
        self._ended: deque[tuple[float, int]] = deque()  # until when it counts, how much
        self._ended_sum = 0

    def seconds_until(self, amount: int, now: float) -> float:
        """How long until `amount` fits: 0 for now, inf where calls in flight must end first."""
        while self._ended and self._ended[0][0] <= now:
            self._ended_sum -= self._ended.popleft()[1]
        over = self._out + self._ended_sum + amount - self.most
        if over <= 0:
            return 0.0
        for until, ended in self._ended:
            over -= ended
            if over <= 0:
                return until - now
        return math.inf

    def begin(self, amount: int) -> None:
        """A call of `amount` starts."""
        self._out += amount

    def end(self, begun: int, amount: int, now: float) -> None:
        """End a call that reserved `begun` and used `amount`."""
        self._out -= begun
        if amount:
            self._ended.append((now + _WINDOW_S, amount))
            self._ended_sum += amount


@dataclass(frozen=True)
class RateReservation:
    """A call's part of a minute: the tokens held for it, and those of its text alone."""

    reserved: int
    text: int


class RateLimit:
    """Calls and tokens a minute; first come, first served.

    Calls are never exceeded. Tokens are held before a call begins, and corrected by what it
    reports. For its text that is as many as the calls before reported for theirs at most (a
    language of many tokens); so that there is something to learn from, the first call goes alone.
    For its reply it is the longest that is paid for, and once ten replies are known twice the
    longest of them. So tokens are exceeded only by a text of a language that is new to the judge,
    by replies that suddenly are more than twice as long as all before, and by a single call
    that needs more than a minute's tokens, which goes alone.

    Parameters
    ----------
    rpm, tpm : int or None
        Calls and tokens a minute; None sets no limit.
    longest : int
        Tokens of the longest reply that is paid for.
    """

    def __init__(self, rpm: int | None, tpm: int | None, longest: int) -> None:
        self._calls = SlidingWindow(rpm) if rpm is not None else None
        self._tokens = SlidingWindow(tpm) if tpm is not None else None
        self._ratio: float | None = None  # the most tokens reported for one of the text
        self._longest = longest
        self._longest_seen = 0
        self._replies = 0
        self._turn = asyncio.Lock()
        self._home = asyncio.Event()

    async def begin(self, characters: int, wait: WaitFunction) -> RateReservation:
        """Wait until a call fits into the minute, and hold its place there.

        Parameters
        ----------
        characters : int
            Length of what is sent.
        wait : async callable
            Waits some seconds, or (inf) until the event; it may raise to give up.

        Raises
        ------
        SkippedAskError
            The question is larger than a whole minute.
        """
        text = _estimate_tokens(characters)
        if self._tokens and text > self._tokens.most:
            raise SkippedAskError(
                f"this question has about {text} tokens, more than --tpm {self._tokens.most} "
                "allows in a minute; raise it and run the same command again"
            )
        async with self._turn:
            while (seconds := self._seconds_until(text)) > 0:
                self._home.clear()
                await wait(seconds, self._home)
            slot = RateReservation(self._estimate(text), text)
            if self._calls:
                self._calls.begin(1)
            if self._tokens:
                self._tokens.begin(slot.reserved)
        return slot

    def end(self, slot: RateReservation, reply: Reply | None, *, cut: bool) -> None:
        """End a call.

        A reply without reported usage counts by its length. `cut` says whether a call without a reply
        was cut off, and may have used all that it reserved.
        """
        now = asyncio.get_running_loop().time()
        if self._calls:
            self._calls.end(1, 1, now)
        if self._tokens:
            used = slot.reserved if cut else slot.text
            if reply is not None:
                used = self._learn_from(slot, reply)
            self._tokens.end(slot.reserved, used, now)
        self._home.set()

    def _learn_from(self, slot: RateReservation, reply: Reply) -> int:
        """Learn how long texts and replies are; return how many tokens this call used."""
        usage = reply.usage
        read = usage.prompt_tokens if usage else None
        written = usage.completion_tokens if usage else None
        read = slot.text if read is None else read
        written = _estimate_tokens(len(reply.raw)) if written is None else written
        if reply.came:
            self._ratio = max(self._ratio or 1.0, read / max(1, slot.text))
            self._longest_seen = max(self._longest_seen, written)
            self._replies += 1
        return read + written

    def wake(self) -> None:
        """Wake all waiting calls."""
        self._home.set()

    def _estimate(self, text: int) -> int:
        if self._tokens is None:
            return 0
        if self._ratio is None:
            return self._tokens.most
        reply = self._longest
        if self._replies >= _MIN_OBSERVED_REPLIES:
            reply = min(self._longest, _REPLY_LENGTH_FACTOR * self._longest_seen)
        return min(self._tokens.most, math.ceil(text * self._ratio) + reply)

    def _seconds_until(self, text: int) -> float:
        now = asyncio.get_running_loop().time()
        calls = self._calls.seconds_until(1, now) if self._calls else 0.0
        tokens = self._tokens.seconds_until(self._estimate(text), now) if self._tokens else 0.0
        return max(calls, tokens)


def _estimate_tokens(characters: int) -> int:
    return math.ceil(characters / _CHARACTERS_PER_TOKEN)
