from __future__ import annotations

import asyncio
import math
import random

import pytest

from misslink.errors import JudgeUnreachableError
from misslink.judge.middleware.throttle import ThrottledJudge
from misslink.judge.protocol import JudgeInfo, Reply, SkippedAskError
from staged_judge import StagedJudge, all_of, answer, numbered
from staged_throttle import came, failing, slow_down, staged, times
from virtual_time import now, run

# The time of the run


def test_after_the_deadline_nothing_is_begun_and_what_is_out_comes_home():
    throttle = staged(concurrency=2, deadline=2.5)
    outcomes = run(all_of(throttle, 9))
    assert came(outcomes) == [True] * 6 + [False] * 3
    assert {type(outcome) for outcome in outcomes[6:]} == {SkippedAskError}
    assert outcomes[6].reason == (
        "the time of the run is used up (--deadline 2.5); the same command continues"
    )


def test_the_deadline_counts_from_the_first_ask():
    throttle = staged(deadline=2.5)

    async def put():
        await asyncio.sleep(10)
        return await all_of(throttle, 2)

    assert all(came(run(put())))


def test_a_wait_that_would_pass_the_deadline_is_not_begun():
    throttle = staged(lambda _: slow_down(60), deadline=30)

    async def put():
        return await all_of(throttle, 3), now()

    outcomes, ended = run(put())
    assert {type(outcome) for outcome in outcomes} == {SkippedAskError}
    assert ended - 1000 == pytest.approx(1)


def test_a_wait_for_the_minute_ends_at_the_deadline():
    throttle = staged(concurrency=4, latency=50, rpm=1, deadline=30, timeout=100)

    async def put():
        return await all_of(throttle, 3), now()

    outcomes, ended = run(put())
    assert came(outcomes) == [True, False, False]
    assert {type(outcome) for outcome in outcomes[1:]} == {SkippedAskError}
    assert ended - 1000 == pytest.approx(50)


# So many a minute


def most_in_a_minute(moments):
    """The most that any 60 seconds hold, from (when, how much)."""
    return max(
        sum(amount for at, amount in moments if start <= at < start + 59.999)
        for start, _ in moments
    )


@pytest.mark.parametrize("latency", [0.0, 0.3, 7.0, 70.0])
def test_no_minute_has_more_calls_than_allowed_by_any_clock(latency):
    throttle = staged(concurrency=16, latency=latency, rpm=30, timeout=100)
    outcomes = run(all_of(throttle, 150))
    assert all(came(outcomes))
    puts = throttle.judge.puts
    assert most_in_a_minute([(put.came, 1) for put in puts]) <= 30
    assert most_in_a_minute([(put.went, 1) for put in puts]) <= 30
    assert puts[-1].came - 1000 <= 5 * (60 + latency) + 1  # and it uses what is allowed


def test_calls_that_fail_count_in_the_minute_too():
    throttle = staged(lambda put: failing() if put.attempt == 1 else answer(), rpm=10)
    assert all(came(run(all_of(throttle, 20))))
    assert most_in_a_minute([(put.came, 1) for put in throttle.judge.puts]) <= 10


def test_no_minute_has_more_tokens_than_allowed_though_replies_are_not_foreseen():
    about = numbered(0).characters / 4
    sizes = random.Random(5)

    def act(put):
        put.tokens = int(about * 1.2) + sizes.randrange(200)
        return answer(put.tokens - 150, 150)

    limit = int(about * 20)
    throttle = staged(act, 16, latency=0.5, tpm=limit)
    assert all(came(run(all_of(throttle, 60))))
    puts = throttle.judge.puts
    assert most_in_a_minute([(put.came, put.tokens) for put in puts]) <= limit
    assert puts[-1].came - 1000 <= 60 * 6


def test_a_server_that_reports_no_tokens_is_taken_at_its_length():
    limit = 4 * (math.ceil(numbered(0).characters / 4) + 1)  # four asks, replies of one token
    judge = StagedJudge(lambda _: Reply(parsed=answer().parsed, raw="yes"))
    judge.info = JudgeInfo(max_tokens=1)
    throttle = ThrottledJudge(judge, 8, tpm=limit)
    assert all(came(run(all_of(throttle, 9))))
    assert times(throttle)[0] == 0
    assert most_in_a_minute([(at, 1) for at in times(throttle)]) == 4


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("lengths", [[10, 20, 500], [150, 300, 600], range(10, 501)])
def test_no_minute_has_more_tokens_than_allowed_though_few_replies_are_long(seed, lengths):
    about = math.ceil(numbered(0).characters / 4)
    drawn = random.Random(seed)

    def act(put):
        put.tokens = about + drawn.choice(lengths)
        return answer(about, put.tokens - about)

    limit = 4 * (about + 600)
    throttle = staged(act, 16, latency=0.5, tpm=limit, timeout=30)
    assert all(came(run(all_of(throttle, 60))))
    puts = throttle.judge.puts
    assert most_in_a_minute([(put.came, put.tokens) for put in puts]) <= limit
    assert most_in_a_minute([(put.went, put.tokens) for put in puts]) <= limit
    later = [put for put in puts if put.came > puts[11].came]
    assert (puts[-1].came - puts[11].came) / 60 < len(later)  # more than one a minute, once learned


def test_tokens_of_a_call_that_was_cut_off_count_at_their_most():
    about = math.ceil(numbered(0).characters / 4)
    judge = StagedJudge(lambda _: answer(about, 1))
    judge.max_tokens = 4000
    throttle = ThrottledJudge(judge, 1, timeout=3, retries=1, tpm=4000 + 4 * about)

    async def put():
        first = await throttle.ask(numbered(0))
        judge.latency = 100
        asking = asyncio.create_task(throttle.ask(numbered(1)))
        await asyncio.sleep(2)
        judge.latency = 1
        return [first, await asking]

    assert all(came(run(put())))
    assert [at >= 64 for at in times(throttle)] == [False, False, True]


def test_a_question_larger_than_a_minute_is_not_put():
    throttle = staged(tpm=10)
    with pytest.raises(SkippedAskError, match=r"about \d+ tokens, more than --tpm 10 allows"):
        run(throttle.ask(numbered(0)))
    assert not throttle.judge.puts


# The end


def test_closing_lets_calls_come_home_and_turns_the_waiting_away():
    throttle = staged(lambda put: slow_down(1) if put.number == 0 else answer(), 2, latency=5)

    async def put():
        asks = [asyncio.create_task(throttle.ask(numbered(n))) for n in range(6)]
        await asyncio.sleep(1)
        await throttle.close()
        closed = now()
        return closed, await asyncio.gather(*asks, return_exceptions=True)

    closed, outcomes = run(put())
    assert closed - 1000 == pytest.approx(5)
    assert came(outcomes) == [False, True] + [False] * 4
    assert all(isinstance(outcomes[n], JudgeUnreachableError) for n in (0, 2, 3, 4, 5))
    assert len(throttle.judge.puts) == 2
    assert throttle.judge.closed


def test_closing_waits_twenty_seconds_and_no_longer():
    throttle = staged(latency=1000, timeout=2000)

    async def put():
        asking = asyncio.create_task(throttle.ask(numbered(0)))
        await asyncio.sleep(1)
        await throttle.close()
        asking.cancel()
        return now()

    assert run(put()) - 1001 == pytest.approx(20)
    assert throttle.judge.closed
