"""Concurrency, calls and tokens a minute, timeouts, retries and circuit breaking of judge calls."""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import math
import random
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import NamedTuple

from misslink.errors import InputError, JudgeUnreachableError
from misslink.event_loops import is_of_another_loop
from misslink.io.retry import Backoff
from misslink.judge import protocol
from misslink.judge.backends.response_parsing import is_question_error
from misslink.judge.config import DEFAULTS, JudgeConfig
from misslink.judge.protocol import Reply, SkippedAskError
from misslink.timeouts import await_paid_replies
from misslink.types import Usage

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
        How many places there are now, in [1, most]; its whole part counts. Infinite at the end.
    out : int
        How many are taken.
    """

    def __init__(self, most: int) -> None:
        self.most = self.allowed = float(most)
        self.out = 0
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._cut_at = 0
        self._left = asyncio.Event()

    async def enter(self, age: int) -> None:
        """Take a place, as soon as one is free for a question of this age.

        Parameters
        ----------
        age : int
            The question's number, which no other has; the lowest goes first.
        """
        place = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (age, place))
        self._give()
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
        self._left.set()

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
        """Release all waiting calls at once; they find that judging has ended."""
        self.most = self.allowed = math.inf
        self._give()

    async def all_left(self) -> None:
        """Wait until no place is taken."""
        while self.out:
            self._left.clear()
            await self._left.wait()

    def _give(self) -> None:
        while self._waiting and self.out + 1 <= self.allowed:
            _, place = heapq.heappop(self._waiting)
            if not place.done():  # a waiter that was cancelled
                self.out += 1
                place.set_result(None)


class SlidingWindow:
    """At most so many units in any 60 seconds, by whichever clock the server counts.

    A server may count a call when it comes or when it is answered, so a call counts here from
    its start until 60 seconds after its end.

    Parameters
    ----------
    most : int or None
        None sets no limit.
    """

    def __init__(self, most: int | None) -> None:
        self.most = math.inf if most is None else most
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


class RateReservation(NamedTuple):
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
        self._calls = SlidingWindow(rpm)
        self._tokens = SlidingWindow(tpm)
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
        if text > self._tokens.most:
            raise SkippedAskError(
                f"this question has about {text} tokens, more than tpm {self._tokens.most} "
                "allows in a minute; raise it and run the same command again"
            )
        async with self._turn:
            while (seconds := self._seconds_until(text)) > 0:
                self._home.clear()
                await wait(seconds, self._home)
            slot = RateReservation(self._estimate(text), text)
            self._calls.begin(1)
            self._tokens.begin(slot.reserved)
        return slot

    def end(self, slot: RateReservation, reply: Reply | None, *, cut: bool) -> None:
        """End a call.

        A reply without reported usage counts by its length. `cut` says whether a call without a reply
        was cut off, and may have used all that it reserved.
        """
        now = asyncio.get_running_loop().time()
        self._calls.end(1, 1, now)
        used = slot.reserved if cut else slot.text
        if reply is not None:
            used = self._learn_from(slot, reply)
        self._tokens.end(slot.reserved, used, now)
        self._home.set()

    def _learn_from(self, slot: RateReservation, reply: Reply) -> int:
        """Learn how long texts and replies are; return how many tokens this call used."""
        usage = reply.usage or Usage()
        read, written = usage.prompt_tokens, usage.completion_tokens
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
        most = self._tokens.most
        if math.isinf(most):
            return 0
        if self._ratio is None:
            return int(most)
        reply = self._longest
        if self._replies >= _MIN_OBSERVED_REPLIES:
            reply = min(self._longest, _REPLY_LENGTH_FACTOR * self._longest_seen)
        return int(min(most, math.ceil(text * self._ratio) + reply))

    def _seconds_until(self, text: int) -> float:
        now = asyncio.get_running_loop().time()
        tokens = self._tokens.seconds_until(self._estimate(text), now)
        return max(self._calls.seconds_until(1, now), tokens)


def _estimate_tokens(characters: int) -> int:
    return math.ceil(characters / _CHARACTERS_PER_TOKEN)


async def ask_with_timeout(
    judge: protocol.Judge, ask: protocol.Ask, seconds: float, begin: Callable[[], None]
) -> protocol.Reply:
    """Ask, with so many seconds for the call itself.

    Time before the call begins does not count: a call that times out in a queue would be paid for
    and lost. A judge that queues calls has a method ``ask_with_timeout`` like this function, or
    ``prepare`` in its info, which returns when a call can begin at once. `begin` is called when the
    call begins; where it raises, the call is not made.

    Raises
    ------
    RetryableError
        No reply came in time (kind ``time``), or what the judge raises.
    """
    within = getattr(judge, "ask_with_timeout", None)
    if within is not None:
        reply: protocol.Reply = await within(ask, seconds, begin)
        return reply
    prepare = protocol.judge_info(judge).prepare
    if prepare is not None:
        await prepare()
    begin()
    clock = asyncio.timeout(seconds)
    try:
        async with clock:
            return await judge.ask(ask)
    except TimeoutError:
        if not clock.expired():  # the judge's own
            raise
        raise protocol.RetryableError(f"no reply came within {seconds:g} s", "time") from None
    except Exception as error:
        if is_of_another_loop(error):
            raise protocol.RetryableError(str(error), "connection") from None
        raise


# If each question failed for itself once in ten, of 1,000 five in a row would in one run of 110.
_MAX_FAILURES = 5
_MAX_FIRST_REFUSALS = 10  # free, and a gold set may well begin with a few that no filter lets pass
_RESUME_HINT = "replies are cached, so run the same command again when the judge works"


class CircuitBreaker:
    """Counts failures in a row, and decides when they are the judge's.

    Five questions in a row whose tries all failed are enough; each has fewer tries than the one
    before. A call that was in flight when another one was answered does not count.

    A judge that refuses a question is up. Refusals for length or by a policy do not count, nor any
    refusal once a question was answered, in this run or an earlier one. Only a judge that never
    answered is given up, after it refused ten different questions for other reasons.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.judge_failures = 0
        self._failures = 0
        self._answered_to = 0
        self._ever_answered = False
        self._refused: set[str] = set()

    def answered(self, latest: int) -> None:
        """A reply came when `latest` was the latest call begun."""
        self._answered_to = latest
        self.answers()
        self.judge_failures = self._failures = 0

    def answers(self) -> None:
        """Take the judge to answer questions, as it did in an earlier run."""
        self._ever_answered = True
        self._refused.clear()

    def refused(self, problem: str, key: str) -> str | None:
        """The judge refused a question; return why asking on is pointless, None while it is not.

        Parameters
        ----------
        problem : str
            What it said.
        key : str
            The question's, the same for every sample of it.
        """
        self.judge_failures = 0
        if self._ever_answered or is_question_error(problem):
            return None
        self._refused.add(key)
        if len(self._refused) < _MAX_FIRST_REFUSALS:
            return None
        return (
            f"the judge {self.name} is up, but refused {len(self._refused)} different questions "
            f"and answered none; of the last one it says: {problem}; check that --judge names a "
            "chat model and what its server takes"
        )

    def failed(
        self, problem: str | None, call: int, trouble: protocol.RetryableError
    ) -> str | None:
        """Nothing came to a question; return why asking on is pointless, None while it is not.

        Parameters
        ----------
        problem : str or None
            Why nothing came.
        call : int
            Number of its last call.
        trouble : RetryableError
            What its last try met.
        """
        if call <= self._answered_to:
            return None
        if trouble.kind != "rate":
            self.judge_failures += 1
        self._failures += 1
        if self._failures < _MAX_FAILURES:
            return None
        return (
            f"the judge {self.name} failed {self._failures} questions in a row, the last one "
            f"because {problem}; {_RESUME_HINT}"
        )

    def gone(self, why: str) -> str:
        """Return `why` as the sentence for the reader, who may have paid for replies already."""
        return f"{why}; {_RESUME_HINT}" if self._answered_to else why


_CLOSE_GRACE_S = 20.0  # who pressed Ctrl-C waits no longer
# With longer waits, a server that is back would go unnoticed.
_BACKOFF = Backoff(first_s=0.5, longest_s=30.0)
# Told to slow down, not how long: quotas are by the minute.
_RATE_BACKOFF = Backoff(first_s=2.0, longest_s=30.0)
_MAX_RETRY_AFTER_S = 120.0  # two windows of a quota by the minute; more is a quota by the day
# Told to wait less than that, it would be asked again at once, and in a loop.
_MIN_RETRY_AFTER_S = 0.05


class ThrottledJudge(protocol.JudgeLayer):
    """A judge with limits on concurrency, time and calls per minute, and with retries.

    It starts with `concurrency` calls, halves that when the server is overloaded, and raises it again
    with every reply. A wait that the server requests applies to all calls. Otherwise a question waits
    with exponential backoff and full jitter. While the judge is down, every further ask raises at
    once (see `CircuitBreaker`).

    Parameters
    ----------
    judge : Judge
        Makes one attempt per ask, and raises RetryableError where it failed.
    concurrency : int
        Maximum number of calls in flight, at least 1; fewer where the judge's info says so.
    config : JudgeConfig
        Its ``timeout`` is that of one call (see `ask_with_timeout`), its ``retries`` are fewer while
        questions fail in a row, ``rpm`` and ``tpm`` as in `RateLimit`, and the ``deadline`` counts
        from the first ask.
    rng : random.Random or None
        Draws the jitter; None: one that differs in every process.
    """

    def __init__(
        self,
        judge: protocol.Judge,
        concurrency: int,
        config: JudgeConfig = DEFAULTS,
        rng: random.Random | None = None,
    ) -> None:
        if concurrency < 1:
            raise InputError(f"--concurrency is {concurrency}; it must be at least 1")
        super().__init__(judge)
        self._innermost = protocol.unwrap_judge(judge)
        info = protocol.judge_info(self._innermost)
        self.places = ConcurrencyLimit(min(concurrency, info.max_concurrency or concurrency))
        self._config = config
        self._ends: float | None = None
        self._rng = rng or random.Random()  # noqa: S311 (jitter is no secret)
        self._pace = None
        if config.rpm is not None or config.tpm is not None:
            self._pace = RateLimit(config.rpm, config.tpm, info.max_tokens)
        self._circuit = CircuitBreaker(judge.name)
        self._outage: str | None = None
        self._over = asyncio.Event()
        self._questions = 0
        self._calls = 0
        self._paused_until = -math.inf

    async def ask(self, ask: protocol.Ask) -> protocol.Reply:
        """Ask, with retries; where all fail, the reply is a `Reply.nothing` with the last reason.

        Raises
        ------
        JudgeUnreachableError
            The judge is unreachable, now or since an earlier ask.
        SkippedAskError
            The time of the run is used up, or the question is too large for a minute.
        """
        if self._config.deadline is not None and self._ends is None:
            self._ends = asyncio.get_running_loop().time() + self._config.deadline
        if not self._questions and protocol.judge_info(self._innermost).abilities:
            self._circuit.answers()  # a response cache told what an earlier run found out
        self._questions += 1
        question = _ThrottledAsk(self._questions)
        while True:
            question.tries += 1
            try:
                reply = await self._try(ask, question)
            except protocol.RetryableError as trouble:
                patience = self._config.retries >> self._circuit.judge_failures
                if question.tries <= patience and _worth_waiting(trouble):
                    await self._back_off(trouble, question.tries)
                    continue
                reply = protocol.Reply.nothing(_failure_message(trouble, question.tries))
                why = self._circuit.failed(reply.problem, question.call, trouble)
            else:
                if reply.came:
                    self._circuit.answered(self._calls)
                    return reply
                why = self._circuit.refused(reply.problem or "", ask.key)
            if why:
                raise self._open(why)
            return reply

    async def close(self) -> None:
        """Let the calls in flight come home for up to 20 s, start no other, and close the judge."""
        self._open("the run has ended")
        stop = getattr(self.judge, "stop", None)
        if stop is not None:
            stop()
        async with await_paid_replies(_CLOSE_GRACE_S):
            await self.places.all_left()
        await super().close()

    async def _try(self, ask: protocol.Ask, question: _ThrottledAsk) -> protocol.Reply:
        """Wait for all that must be waited for, and make one call."""

        def begin() -> None:
            self._refuse_if_over()
            self._calls += 1
            question.call = self._calls

        await self.places.enter(question.number)
        slot, reply, cut = None, None, False
        try:
            self._refuse_if_over()
            if self._pace:
                slot = await self._pace.begin(ask.characters, self._wait)
            while (pause := self._paused_until - asyncio.get_running_loop().time()) > 0:
                await self._wait(pause)
            reply = await ask_with_timeout(self.judge, ask, self._config.timeout, begin)
            self.places.grow()
        except protocol.RetryableError as trouble:
            cut = trouble.kind == "time"
            self._slow_down(trouble, question.call)
            raise
        except JudgeUnreachableError as outage:
            raise self._open(self._circuit.gone(str(outage))) from None
        else:
            return reply
        finally:
            if self._pace and slot:
                self._pace.end(slot, reply, cut=cut)
            self.places.leave()

    def _slow_down(self, trouble: protocol.RetryableError, call: int) -> None:
        """Make fewer calls at a time, and none before the server wants them."""
        bearable = trouble.after is not None and _worth_waiting(trouble)
        if trouble.kind == "rate" or (trouble.kind == "server" and bearable):
            self.places.halve(call, self._calls)
        if trouble.after is not None and bearable:
            until = asyncio.get_running_loop().time() + trouble.after
            self._paused_until = max(self._paused_until, until)

    async def _back_off(self, trouble: protocol.RetryableError, tries: int) -> None:
        """Wait before the next try; a wait that the server asked for is everybody's already."""
        if trouble.after is None or trouble.after < _MIN_RETRY_AFTER_S:
            backoff = _RATE_BACKOFF if trouble.kind == "rate" else _BACKOFF
            await self._wait(backoff.wait_s(tries, self._rng))

    async def _wait(self, seconds: float, event: asyncio.Event | None = None) -> None:
        """Wait so long, or until the event; not beyond the deadline or the end of the asking."""
        self._refuse_if_over()
        remaining = self._seconds_left()
        if math.isfinite(seconds) and seconds > remaining:
            raise self._out_of_time()
        longest = min(seconds, remaining)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(longest if math.isfinite(longest) else None):
                await (event or self._over).wait()
        self._refuse_if_over()

    def _refuse_if_over(self) -> None:
        if self._outage:
            raise JudgeUnreachableError(self._outage)
        if self._seconds_left() <= 0:
            raise self._out_of_time()

    def _seconds_left(self) -> float:
        if self._ends is None:
            return math.inf
        return self._ends - asyncio.get_running_loop().time()

    def _out_of_time(self) -> protocol.SkippedAskError:
        return protocol.SkippedAskError(
            f"the time of the run is used up (deadline {self._config.deadline:g}); "
            "the same command continues"
        )

    def _open(self, why: str) -> JudgeUnreachableError:
        """Open the circuit: waiting calls are refused, calls in flight finish."""
        if self._outage is None:
            self._outage = why
            self._over.set()
            self.places.turn_away()
            if self._pace:
                self._pace.wake()
        return JudgeUnreachableError(self._outage)


@dataclass(slots=True)
class _ThrottledAsk:
    """A question on its way: its number, how often it was tried, its latest call's number."""

    number: int
    tries: int = 0
    call: int = 0


def _worth_waiting(trouble: protocol.RetryableError) -> bool:
    """Whether the server asks for no longer wait than is worth it."""
    return trouble.after is None or trouble.after <= _MAX_RETRY_AFTER_S


def _failure_message(trouble: protocol.RetryableError, tries: int) -> str:
    times = "once" if tries == 1 else f"{tries} times"
    if _worth_waiting(trouble):
        return f"{trouble.problem} (tried {times})"
    return f"{trouble.problem} (tried {times}; misslink waits at most {_MAX_RETRY_AFTER_S:g} s)"
