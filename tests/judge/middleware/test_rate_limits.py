"""Calls and tokens per minute, and the deadline of a run."""

import asyncio
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from misslink.errors import JudgeUnreachableError
from misslink.judge.config import JudgeConfig
from misslink.judge.middleware.throttle import (
    ConcurrencyLimit,
    RateLimit,
    SlidingWindow,
    ThrottledJudge,
)
from misslink.judge.protocol import JudgeInfo, Reply, SkippedAskError
from misslink.types import Usage
from staged_judge import (
    StagedJudge,
    all_of,
    answer,
    came,
    failing,
    numbered,
    slow_down,
    staged,
    times,
)
from virtual_time import now, run


def test_places_start_full_and_never_leave_their_bounds():
    places = ConcurrencyLimit(8)
    places.grow()
    assert places.allowed == 8
    for call in range(1, 12):
        places.halve(call, call)
    assert places.allowed == 1
    places.grow()
    assert places.allowed == 2
    places.grow()
    assert places.allowed == 2.5


def test_calls_begun_before_a_cut_do_not_cut_again():
    places = ConcurrencyLimit(64)
    for call in range(1, 33):
        places.halve(call, latest=32)
    assert places.allowed == 32
    places.halve(33, latest=40)
    assert places.allowed == 16


def test_after_a_cut_nobody_enters_until_so_many_have_left():
    async def enter():
        places = ConcurrencyLimit(4)
        for age in range(4):
            await places.enter(age)
        places.halve(1, 4)
        waiting = asyncio.create_task(places.enter(5))
        outs = []
        for _ in range(3):
            await asyncio.sleep(1)
            outs.append((places.out, waiting.done()))
            places.leave()
        await waiting
        return outs, places.out

    assert run(enter()) == ([(4, False), (3, False), (2, False)], 2)


@given(
    st.integers(1, 5),
    st.lists(st.sampled_from(["enter", "leave", "cancel", "halve", "grow"]), max_size=60),
)
def test_places_are_counted_right_whatever_happens(most, steps):
    async def walk():
        places, inside, waiting = ConcurrencyLimit(most), 0, []
        for number, step in enumerate(steps, 1):
            if step == "enter":
                waiting.append(asyncio.ensure_future(places.enter(number)))
            elif step == "leave" and inside:
                places.leave()
                inside -= 1
            elif step == "cancel" and waiting:
                waiting.pop().cancel()
            elif step == "halve":
                places.halve(number, number)
            elif step == "grow":
                places.grow()
            await asyncio.sleep(0.001)
            inside += sum(task.done() for task in waiting)
            waiting = [task for task in waiting if not task.done()]
            assert places.out == inside <= most
        places.turn_away()
        await asyncio.gather(*waiting)
        for _ in range(inside + len(waiting)):
            places.leave()
        await places.all_left()
        assert places.out == 0

    run(walk())


def test_a_window_says_when_the_next_fits():
    window = SlidingWindow(10)
    assert window.seconds_until(10, now=0) == 0
    window.begin(6)
    assert window.seconds_until(5, now=1) == math.inf  # nobody knows when that call ends
    window.end(6, 6, now=2)
    assert window.seconds_until(4, now=3) == 0
    assert window.seconds_until(5, now=3) == 59  # 60 s after the call's end
    assert window.seconds_until(5, now=62) == 0


def test_a_window_keeps_to_what_was_reported():
    window = SlidingWindow(100)
    window.begin(80)
    window.end(80, 10, now=0)
    assert window.seconds_until(90, now=1) == 0
    window.begin(20)
    window.end(20, 95, now=1)
    assert window.seconds_until(10, now=2) == 59


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 90), st.integers(1, 7)), min_size=1))
def test_no_window_holds_more_than_allowed(calls):
    """Each call waits `gap`, is let in when the window says so, and takes `lasts` seconds."""
    window, now, running, seen = SlidingWindow(7), 0.0, [], []

    def end_until(moment):
        for ends, amount in sorted(running):
            if ends <= moment:
                window.end(amount, amount, ends)
                running.remove((ends, amount))

    for gap, lasts, amount in calls:
        now += gap
        end_until(now)
        while (wait := window.seconds_until(amount, now)) > 0:
            now = min(running)[0] if wait == math.inf else now + wait
            end_until(now)
        window.begin(amount)
        running.append((now + lasts, amount))
        seen.append((now, now + lasts, amount))
    for clock in (0, 1):
        for call in seen:
            start = call[clock]
            assert sum(c[2] for c in seen if start <= c[clock] < start + 60) <= 7


async def until(seconds, event):
    try:
        async with asyncio.timeout(None if seconds == math.inf else seconds):
            await event.wait()
    except TimeoutError:
        return


def used(prompt, completion):
    return Reply(None, "words", Usage(prompt_tokens=prompt, completion_tokens=completion))


async def learned(*replies, tpm=10_000, longest=4096):
    """A pace to which calls of 100 tokens of text brought so many."""
    pace = RateLimit(None, tpm, longest)
    for reply in replies:
        pace.end(await pace.begin(400, until), reply, cut=False)
    return pace


async def held(pace, characters=400):
    return (await pace.begin(characters, until)).reserved


def test_without_limits_nobody_waits():
    async def put():
        pace = RateLimit(None, None, 4096)
        slots = [await pace.begin(10_000, until) for _ in range(99)]
        for slot in slots:
            pace.end(slot, None, cut=False)

    run(put())


def test_the_first_call_of_limited_tokens_goes_alone_and_teaches_how_texts_are_counted():
    async def put():
        pace = RateLimit(None, 1000, 70)
        first = await pace.begin(400, until)
        assert (first.reserved, first.text) == (1000, 100)
        second = asyncio.create_task(held(pace))
        await asyncio.sleep(1)
        assert not second.done()
        pace.end(first, used(250, 10), cut=False)
        return await second

    assert run(put()) == 250 + 70


def test_the_longest_reply_is_held_until_ten_are_known_and_then_twice_the_longest_of_them():
    async def put(count, **options):
        return await held(await learned(*[used(100, n) for n in range(count)], **options))

    assert run(put(9)) == 100 + 4096
    assert run(put(10)) == 100 + 2 * 9
    assert run(put(10, longest=12)) == 100 + 12  # more is never paid for


def test_a_reply_that_outgrows_all_before_is_learned_at_once():
    async def put():
        return await held(await learned(*[used(100, 10)] * 10, used(100, 400)))

    assert run(put()) == 100 + 800


def test_a_reply_that_does_not_say_what_it_used_is_taken_at_its_length():
    async def put():
        return await held(await learned(*[Reply(None, "x" * 81)] * 10))

    assert run(put()) == 100 + 2 * 21


@pytest.mark.parametrize("reply", [None, Reply.nothing("refused")])
def test_a_call_that_brought_nothing_teaches_nothing(reply):
    async def put():
        pace = await learned(reply, tpm=1000)
        second = asyncio.create_task(held(pace))
        await asyncio.sleep(59)
        assert not second.done()  # whatever it was, the next one goes alone too
        return await second

    assert run(put()) == 1000


def test_a_question_that_fits_alone_is_put_alone():
    async def put():
        return await held(await learned(used(700, 50), tpm=1000), 2000)

    assert run(put()) == 1000  # 500 of text, seven times as much expected


# The time of the run


def test_after_the_deadline_nothing_is_begun_and_what_is_out_comes_home():
    throttle = staged(concurrency=2, deadline=2.5)
    outcomes = run(all_of(throttle, 9))
    assert came(outcomes) == [True] * 6 + [False] * 3
    assert {type(outcome) for outcome in outcomes[6:]} == {SkippedAskError}
    assert str(outcomes[6]) == (
        "the time of the run is used up (deadline 2.5); the same command continues"
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
    throttle = ThrottledJudge(judge, 8, JudgeConfig(tpm=limit))
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
    throttle = ThrottledJudge(judge, 1, JudgeConfig(timeout=3, retries=1, tpm=4000 + 4 * about))

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
    with pytest.raises(SkippedAskError, match=r"about \d+ tokens, more than tpm 10 allows"):
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
