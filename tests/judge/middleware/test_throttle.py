"""How many calls are out at once, how long they wait, and when a judge is given up."""

import asyncio
import itertools
import math
import random
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from honest_judge import small_ask
from judge_faults import after, status
from misslink.errors import InputError, JudgeUnreachableError
from misslink.judge.backends.openai import open_openai
from misslink.judge.config import JudgeConfig
from misslink.judge.middleware.budget import BudgetedJudge
from misslink.judge.middleware.throttle import CircuitBreaker, ThrottledJudge
from misslink.judge.protocol import JudgeInfo, Reply, RetryableError, SkippedAskError
from misslink.timeouts import map_concurrently
from staged_judge import (
    StagedJudge,
    absent,
    all_of,
    answer,
    came,
    failing,
    numbered,
    reset,
    slow_down,
    staged,
    times,
)
from virtual_time import now, run

# How many at once


def test_all_places_are_open_from_the_start_and_no_more():
    throttle = staged(concurrency=8)
    assert all(came(run(all_of(throttle, 40))))
    assert throttle.judge.most_at_once == 8
    assert times(throttle) == sorted([0, 1, 2, 3, 4] * 8)


def test_many_told_at_once_to_slow_down_close_half_of_the_places_once():
    throttle = staged(lambda put: slow_down(5) if put.attempt == 1 else answer(), 16, latency=1.0)

    async def put():
        asking = asyncio.create_task(all_of(throttle, 16))
        await asyncio.sleep(2)
        allowed = throttle.places.allowed
        return allowed, await asking

    allowed, outcomes = run(put())
    assert allowed == 8
    assert all(came(outcomes))


def test_a_call_begun_after_a_cut_cuts_again_and_one_place_is_left():
    throttle = staged(lambda put: slow_down(1) if put.attempt < 6 else answer(), 8)
    seen = []

    async def put():
        asking = asyncio.create_task(throttle.ask(numbered(0)))
        while not asking.done():
            await asyncio.sleep(0.5)
            seen.append(throttle.places.allowed)
        return await asking

    assert run(put()).came
    assert list(dict.fromkeys(seen))[:4] == [8, 4, 2, 1]
    assert min(seen) == 1


def test_every_reply_opens_a_part_of_a_place_until_all_are_open():
    throttle = staged(lambda put: slow_down(1) if put.number == 0 == put.attempt - 1 else answer())
    run(all_of(throttle, 8))  # 8 at once: one is told to slow down, 7 and then it succeed
    assert 4 < throttle.places.allowed < 8
    run_again = staged(lambda put: slow_down(1) if put.number == 0 == put.attempt - 1 else answer())
    run(all_of(run_again, 80))
    assert run_again.places.allowed == 8


def test_a_server_that_merely_fails_closes_no_place():
    throttle = staged(lambda put: failing() if put.attempt == 1 else answer(), 4)
    assert all(came(run(all_of(throttle, 4))))
    assert throttle.places.allowed == 4


def test_a_server_that_bears_four_gets_all_questions_answered():
    throttle = staged(None, 32, latency=1.0)
    judge = throttle.judge
    judge.act = lambda _: slow_down(0.5) if judge.out > 4 else answer()
    assert all(came(run(all_of(throttle, 200))))
    told = len(judge.puts) - 200
    assert told < 100  # the first 28, and now and then one that probes for more


def test_the_oldest_question_goes_first_also_when_it_is_repeated():
    throttle = staged(lambda put: failing() if put.number == put.attempt - 1 == 0 else answer(), 1)
    run(all_of(throttle, 40))
    order = [put.number for put in throttle.judge.puts]
    again = order.index(0, 1)
    assert again <= 2  # its own wait is shorter than a call
    assert order[1:again] + order[again + 1 :] == list(range(1, 40))


def test_who_stops_waiting_for_a_place_takes_none():
    throttle = staged(concurrency=1)

    async def put():
        asks = [asyncio.create_task(throttle.ask(numbered(n))) for n in range(4)]
        await asyncio.sleep(0.5)
        asks[1].cancel()
        await asyncio.sleep(0.5)
        asks[2].cancel()  # it may hold a place since this moment
        return await asyncio.gather(*asks, return_exceptions=True)

    first, second, third, last = run(put())
    assert first.came
    assert last.came
    assert isinstance(second, asyncio.CancelledError)
    assert isinstance(third, asyncio.CancelledError)
    assert throttle.places.out == 0


def test_a_concurrency_below_one_is_refused():
    with pytest.raises(InputError, match="at least 1"):
        staged(concurrency=0)


# How long it waits


def test_a_wait_the_server_asks_for_holds_for_everybody():
    throttle = staged(lambda put: slow_down(30) if put.number == put.attempt - 1 == 0 else answer())

    async def put():
        first = asyncio.create_task(all_of(throttle, 2))
        await asyncio.sleep(2)
        return [*await all_of(throttle, 6), *await first]

    assert all(came(run(put())))
    assert [at for at in times(throttle) if 1 < at < 31] == []
    assert len(times(throttle)) > 8


@pytest.mark.parametrize("seconds", [121, 3600, math.inf, math.nan])
def test_a_wait_beyond_two_minutes_is_not_waited_for(seconds):
    throttle = staged(lambda put: slow_down(seconds) if put.number == 0 else answer())
    first, *others = run(all_of(throttle, 5))
    assert first.problem == ("the server answers 429 (tried once; misslink waits at most 120 s)")
    assert not first.came
    assert all(came(others))
    assert len(throttle.judge.puts) == 5


def test_waits_grow_are_drawn_from_a_seed_and_have_an_end():
    def waits(seed, kind="server", retries=9):
        trouble = RetryableError("trouble", kind)
        throttle = staged(lambda _: trouble, latency=0.0, retries=retries, rng=random.Random(seed))
        run(throttle.ask(numbered(0)))
        at = times(throttle)
        return [later - earlier for earlier, later in itertools.pairwise(at)]

    assert waits(1) == waits(1) != waits(2)
    drawn = [waits(seed) for seed in range(40)]
    longest = [max(column) for column in zip(*drawn, strict=True)]
    bounds = [0.5, 1, 2, 4, 8, 16, 30, 30, 30]
    assert all(
        bound * 0.7 < most <= bound * 1.001 for most, bound in zip(longest, bounds, strict=True)
    )
    assert min(map(min, drawn)) < 0.1  # full jitter: down to nothing
    assert sum(waits(1, "rate", 5)) > sum(waits(1, "server", 5))  # quotas are by the minute


def test_a_wait_of_no_time_is_not_hammered():
    throttle = staged(lambda put: slow_down(0) if put.attempt < 5 else answer(), latency=0.0)
    assert run(throttle.ask(numbered(0))).came
    assert times(throttle)[-1] > 0.5


def test_what_finally_fails_says_why_and_how_often_it_was_tried():
    throttle = staged(lambda put: failing() if put.number == 3 else answer(), retries=2)
    outcomes = run(all_of(throttle, 9))
    assert [outcome.problem for outcome in outcomes if not outcome.came] == [
        "the server answers 500 (tried 3 times)"
    ]


def test_a_call_that_hangs_is_cut_and_tried_again():
    throttle = staged(timeout=3.0, retries=1)
    throttle.judge.latency = 100

    async def put():
        asking = asyncio.create_task(throttle.ask(numbered(0)))
        await asyncio.sleep(1)
        throttle.judge.latency = 1
        return await asking, await all_of(throttle, 3)

    first, others = run(put())
    assert first.came
    assert all(came(others))
    assert throttle.judge.puts[0].went - throttle.judge.puts[0].came == pytest.approx(3)


def test_a_call_that_always_hangs_fails_with_a_reason():
    throttle = staged(latency=100, timeout=3.0, retries=1)
    assert run(throttle.ask(numbered(0))).problem == "no reply came within 3 s (tried 2 times)"


def test_a_judge_that_takes_fewer_at_once_gets_no_more():
    judge = StagedJudge()
    judge.info = JudgeInfo(max_concurrency=1)
    assert all(came(run(all_of(ThrottledJudge(judge, 8), 9))))
    assert judge.most_at_once == 1


@pytest.mark.parametrize("around", [lambda judge: judge, BudgetedJudge])
def test_waiting_until_a_judge_is_ready_takes_nothing_of_the_time_for_a_call(around):
    judge = StagedJudge(latency=2.0)

    async def ready():
        await asyncio.sleep(50)

    judge.info = JudgeInfo(prepare=ready)
    throttle = ThrottledJudge(around(judge), 1, JudgeConfig(timeout=3.0, retries=0))
    assert all(came(run(all_of(throttle, 3))))


@pytest.mark.parametrize("around", [lambda judge: judge, BudgetedJudge])
def test_a_call_that_was_made_to_wait_is_not_begun_after_the_end(around):
    judge = StagedJudge()

    async def ready():
        await asyncio.sleep(5)

    judge.info = JudgeInfo(prepare=ready)
    outcomes = run(all_of(ThrottledJudge(around(judge), 4, JudgeConfig(deadline=3.0)), 2))
    assert {type(outcome) for outcome in outcomes} == {SkippedAskError}
    assert not judge.puts


def test_a_time_out_of_the_judges_own_is_not_ours():
    throttle = staged(lambda _: TimeoutError("its own"))
    with pytest.raises(TimeoutError, match="its own"):
        run(throttle.ask(numbered(0)))
    assert len(throttle.judge.puts) == 1


# At a real server


@asynccontextmanager
async def throttled(server, concurrency, **options):
    judge = ThrottledJudge(
        open_openai("test-judge", base_url=server.url), concurrency, JudgeConfig(**options)
    )
    try:
        yield judge
    finally:
        await judge.judge.close()


def test_what_a_server_says_of_waiting_is_heard(judge_server):
    judge_server.script = after(2, status(429, "slow down", retry_after_ms="60"))

    async def put():
        async with throttled(judge_server, 4) as judge:
            return await asyncio.gather(*(judge.ask(small_ask(n)) for n in range(4)))

    assert all(reply.parsed for reply in asyncio.run(put()))
    assert sorted(call.status for call in judge_server.calls) == [200] * 4 + [429] * 2


async def in_a_run(throttle, count, concurrency):
    """The outcomes of so many questions, so many at a time as in a run, and when it ended."""
    outcomes = []

    async def ask(number):
        try:
            outcomes.append(await throttle.ask(numbered(number)))
        except JudgeUnreachableError as outage:
            outcomes.append(outage)

    await map_concurrently(range(count), ask, concurrency, lambda *_: None)
    return outcomes, now()


@pytest.mark.slow
@pytest.mark.parametrize("trouble", [reset, absent])
@pytest.mark.parametrize("concurrency", [1, 3, 32])
def test_a_judge_that_dies_in_the_middle_is_given_up_early(concurrency, trouble):
    for seed in range(2):
        throttle = staged(None, concurrency, latency=0.1, rng=random.Random(seed))
        throttle.judge.act = lambda put: trouble() if put.came > 1002 else answer()
        outcomes, ended = run(in_a_run(throttle, 1000, concurrency))
        lost = [outcome for outcome in outcomes if isinstance(outcome, JudgeUnreachableError)]
        assert len(lost) > 300
        assert len(set(map(str, lost))) == 1
        assert "failed 5 questions in a row" in str(lost[0])
        assert "replies are cached, so run the same command again" in str(lost[0])
        assert ended - 1002 < 31  # five questions' own waits take 70 s
        assert sum(put.came > 1002 for put in throttle.judge.puts) <= 12 + 6 * concurrency


@pytest.mark.slow
@pytest.mark.parametrize("trouble", [reset, absent])
def test_a_judge_that_is_away_for_a_moment_costs_nothing(trouble):
    for seed in range(2):
        throttle = staged(None, 32, latency=0.1, rng=random.Random(seed))
        throttle.judge.act = lambda put: trouble() if 1002 < put.came < 1002.3 else answer()
        assert all(came(run(all_of(throttle, 1000))))


def test_connections_that_break_now_and_then_hold_nobody_up():
    breaking = random.Random(3)
    throttle = staged(lambda _: reset() if breaking.random() < 0.05 else answer(), 32, latency=0.2)

    async def put():
        return await all_of(throttle, 2000), now()

    outcomes, ended = run(put())
    assert all(came(outcomes))
    assert ended - 1000 < 1.25 * 2000 * 0.2 / 32


@pytest.mark.parametrize("others", [0, 1, 20])
def test_a_question_that_breaks_every_connection_is_its_own_failure(others):
    throttle = staged(lambda put: reset() if put.number == 0 else answer())
    first, *rest = run(all_of(throttle, 1 + others))
    assert first.problem == "the connection broke before a reply came (tried 6 times)"
    assert all(came(rest))


def test_calls_that_hang_while_others_are_answered_say_nothing_of_the_judge():
    throttle = staged(None, 16, timeout=50, retries=0)
    hanging = asyncio.Event()

    async def put():
        answering = throttle.judge.ask

        async def ask(ask):
            if ask.repeat < 8:
                await hanging.wait()
            return await answering(ask)

        throttle.judge.ask = ask
        throttle.judge.act = lambda _: answer()
        return await all_of(throttle, 100)

    outcomes = run(put())
    assert came(outcomes) == [False] * 8 + [True] * 92
    assert {outcome.problem for outcome in outcomes[:8]} == {
        "no reply came within 50 s (tried once)"
    }


def test_a_judge_that_hangs_is_given_up_within_seven_timeouts():
    outcomes, ended = run(in_a_run(staged(latency=10_000, timeout=300), 100, 8))
    assert [type(outcome) for outcome in outcomes[5:]] == [JudgeUnreachableError] * 95
    assert ended - 1000 < 7 * 310


def test_five_failures_in_a_row_stop_the_asking_with_ever_fewer_tries():
    throttle = staged(lambda _: failing(), 1)
    outcomes = run(all_of(throttle, 8))
    assert [type(outcome) for outcome in outcomes] == [Reply] * 4 + [JudgeUnreachableError] * 4
    assert "failed 5 questions in a row, the last one because the server answers 500" in str(
        outcomes[4]
    )
    tries = [sum(put.number == n for put in throttle.judge.puts) for n in range(8)]
    assert tries[0] == 6
    assert sum(tries) < 5 * 6 - 5
    assert tries[5:] == [0, 0, 0]


def test_questions_refused_for_themselves_shorten_nobodys_tries():
    refused = Reply.nothing("the judge refused the question: too long")

    def act(put):
        if put.number < 4:
            return refused
        return failing() if put.attempt <= 5 else answer()

    throttle = staged(act, 1)
    outcomes = run(all_of(throttle, 5))
    assert outcomes[:4] == [refused] * 4
    assert outcomes[4].came


def different(count):
    """So many asks, each another question."""
    contents = (f"question {n}" for n in range(count))
    return [
        replace(numbered(0), messages=({"role": "user", "content": text},)) for text in contents
    ]


async def each_of(judge, asks):
    """The outcomes of `asks`, put at once."""
    return await asyncio.gather(*map(judge.ask, asks), return_exceptions=True)


TOO_LONG = "the judge refused the question: This model's maximum context length is 3000 tokens."
FILTERED = (
    "the judge refused the question: The response was filtered due to the prompt triggering the "
    "content management policy"
)


@pytest.mark.parametrize("concurrency", [1, 8])
@pytest.mark.parametrize("said", [TOO_LONG, FILTERED])
def test_questions_refused_for_themselves_never_stop_the_asking(concurrency, said):
    throttle = staged(lambda put: answer() if put.number else Reply.nothing(said), concurrency)
    outcomes = run(each_of(throttle, [*different(30), numbered(1)]))
    assert [outcome.problem for outcome in outcomes] == [said] * 30 + [None]


def test_after_a_reply_no_refusal_stops_the_asking():
    throttle = staged(None, 1)
    throttle.judge.act = lambda _: Reply.nothing("Bad Request") if times(throttle)[1:] else answer()
    assert came(run(each_of(throttle, different(30)))) == [True] + [False] * 29


def test_nor_does_one_where_an_earlier_run_had_replies():
    judge = StagedJudge(lambda put: answer() if put.number else Reply.nothing("Bad Request"))
    judge.info = JudgeInfo(abilities={"structure": "plain"})  # as a response cache told it
    throttle = ThrottledJudge(judge, 1)
    assert came(run(each_of(throttle, different(15)))) == [False] * 15
    assert run(throttle.ask(numbered(20))).came


def test_a_judge_that_refuses_everything_is_given_up_with_a_sentence_that_says_so():
    throttle = staged(lambda _: Reply.nothing("the judge refused the question: Bad Request"), 1)
    outcomes = run(each_of(throttle, different(12)))
    assert [type(outcome) for outcome in outcomes] == [Reply] * 9 + [JudgeUnreachableError] * 3
    assert str(outcomes[9]) == (
        "the judge staged is up, but refused 10 different questions and answered none; of the last "
        "one it says: the judge refused the question: Bad Request; check that --judge names a chat "
        "model and what its server takes"
    )


def test_one_question_refused_again_and_again_is_one_question():
    throttle = staged(lambda _: Reply.nothing("Bad Request"), 1)  # samples of the same question
    assert {type(outcome) for outcome in run(all_of(throttle, 30))} == {Reply}


def test_a_success_between_failures_starts_the_count_again():
    throttle = staged(lambda put: answer() if put.number % 5 == 4 else failing(), 1, retries=0)
    assert came(run(all_of(throttle, 14))) == [n % 5 == 4 for n in range(14)]


def test_whoever_waits_is_told_at_once_when_the_judge_is_gone():
    def act(put):
        if put.number == 0:
            return slow_down(100)
        return JudgeUnreachableError("it refuses the key (401)") if put.number == 1 else answer()

    throttle = staged(act, 2, rpm=100)

    async def put():
        return await all_of(throttle, 20), now()

    outcomes, ended = run(put())
    assert {str(outcome) for outcome in outcomes} == {"it refuses the key (401)"}
    assert ended - 1000 == pytest.approx(1)
    assert len(throttle.judge.puts) == 2


def test_a_judge_gone_after_replies_says_that_they_are_kept():
    gone = JudgeUnreachableError("no connection")
    throttle = staged(lambda put: gone if put.number == 3 else answer(), 1)
    outcomes = run(all_of(throttle, 6))
    assert came(outcomes) == [True] * 3 + [False] * 3
    told = "no connection; replies are cached, so run the same command again"
    assert all(told in str(outcome) for outcome in outcomes[3:])


def refused(circuit, said, count=30):
    return [
        circuit.refused(f"the judge refused the question: {said}", f"{n}") for n in range(count)
    ]


def test_one_that_is_too_long_leaves_the_count_of_others_as_it_is():
    circuit = CircuitBreaker("judge")
    refused(circuit, "Bad Request", 9)
    assert circuit.refused("the prompt is too long", "another") is None
    assert circuit.refused("Bad Request", "one more")


def test_refusals_between_failures_of_the_server_neither_count_nor_hide_them():
    circuit, trouble = CircuitBreaker("judge"), RetryableError("the server answers 500", "server")
    told = []
    for call in range(1, 6):
        told.append(circuit.failed(trouble.problem, call, trouble))
        circuit.refused("the prompt is too long", f"{call}")
    assert told[:4] == [None] * 4
    assert "failed 5 questions in a row" in told[4]
