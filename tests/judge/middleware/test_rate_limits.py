from __future__ import annotations

import asyncio
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from misslink.judge.middleware.rate_limits import ConcurrencyLimit, RateLimit, SlidingWindow
from misslink.judge.protocol import Reply, SkippedAskError
from misslink.types import Usage
from virtual_time import run


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


def test_a_question_larger_than_a_minute_is_refused():
    with pytest.raises(SkippedAskError, match="about 1001 tokens, more than --tpm 1000"):
        run(RateLimit(None, 1000, 4096).begin(4001, until))
