from __future__ import annotations

import asyncio
import itertools
import math
import random
import threading
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from honest_judge import small_ask
from judge_faults import after, status
from misslink.errors import InputError, JudgeUnreachableError
from misslink.judging.models.openai import open_openai
from misslink.judging.protocol import NotAskedError, Reply, TryAgainError
from misslink.judging.wrappers.throttle import Throttle
from staged_judge import StagedJudge, all_of, answer, numbered
from virtual_time import now, run


def staged(act=lambda _: answer(), concurrency=8, *, latency=1.0, **options):
    return Throttle(StagedJudge(act, latency), concurrency, **options)


def times(throttle):
    """When each call came, in seconds since the loop began."""
    return [put.came - 1000 for put in throttle.judge.puts]


def slow_down(after=None):
    return TryAgainError("the server answers 429", "rate", after)


def reset():
    return TryAgainError("the connection broke before a reply came", "connection")


def failing():
    return TryAgainError("the server answers 500", "server")


def came(outcomes):
    return [isinstance(outcome, Reply) and outcome.came for outcome in outcomes]


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
    assert first.problem == ("the server answers 429 (tried once; more than 120 s are not waited)")
    assert not first.came
    assert all(came(others))
    assert len(throttle.judge.puts) == 5


def test_waits_grow_are_drawn_from_a_seed_and_have_an_end():
    def waits(seed, kind="server", retries=9):
        trouble = TryAgainError("trouble", kind)
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
    judge.at_once = 1
    assert all(came(run(all_of(Throttle(judge, 8), 9))))
    assert judge.most_at_once == 1


def test_waiting_until_a_judge_is_ready_takes_nothing_of_the_time_for_a_call():
    judge = StagedJudge(latency=2.0)

    async def ready():
        await asyncio.sleep(50)

    judge.ready = ready
    assert all(came(run(all_of(Throttle(judge, 1, timeout=3.0, retries=0), 3))))


def test_a_call_that_was_made_to_wait_is_not_begun_after_the_end():
    judge = StagedJudge()

    async def ready():
        await asyncio.sleep(5)

    judge.ready = ready
    outcomes = run(all_of(Throttle(judge, 4, deadline=3.0), 2))
    assert {type(outcome) for outcome in outcomes} == {NotAskedError}
    assert not judge.puts


def test_a_time_out_of_the_judges_own_is_not_ours():
    throttle = staged(lambda _: TimeoutError("its own"))
    with pytest.raises(TimeoutError, match="its own"):
        run(throttle.ask(numbered(0)))
    assert len(throttle.judge.puts) == 1


# The time of the run


def test_after_the_deadline_nothing_is_begun_and_what_is_out_comes_home():
    throttle = staged(concurrency=2, deadline=2.5)
    outcomes = run(all_of(throttle, 9))
    assert came(outcomes) == [True] * 6 + [False] * 3
    assert {type(outcome) for outcome in outcomes[6:]} == {NotAskedError}
    assert outcomes[6].reason == (
        "the time of the run is used up (--deadline 2.5); the same command goes on"
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
    assert {type(outcome) for outcome in outcomes} == {NotAskedError}
    assert ended - 1000 == pytest.approx(1)


def test_a_wait_for_the_minute_ends_at_the_deadline():
    throttle = staged(concurrency=4, latency=50, rpm=1, deadline=30, timeout=100)

    async def put():
        return await all_of(throttle, 3), now()

    outcomes, ended = run(put())
    assert came(outcomes) == [True, False, False]
    assert {type(outcome) for outcome in outcomes[1:]} == {NotAskedError}
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
    judge.max_tokens = 1
    throttle = Throttle(judge, 8, tpm=limit)
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
    throttle = Throttle(judge, 1, timeout=3, retries=1, tpm=4000 + 4 * about)

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
    with pytest.raises(NotAskedError, match=r"about \d+ tokens, more than --tpm 10 allows"):
        run(throttle.ask(numbered(0)))
    assert not throttle.judge.puts


# When the judge is down


@pytest.mark.parametrize("concurrency", [1, 3, 8, 32])
def test_a_judge_that_dies_in_the_middle_is_given_up_early(concurrency):
    throttle = staged(None, concurrency, latency=0.1)
    throttle.judge.act = lambda put: reset() if put.came > 1002 else answer()

    async def put():
        return await all_of(throttle, 1000), now()

    outcomes, ended = run(put())
    lost = [outcome for outcome in outcomes if isinstance(outcome, JudgeUnreachableError)]
    assert len(lost) > 300
    assert len(set(map(str, lost))) == 1
    assert "was not heard" in str(lost[0])
    assert "what was answered is kept, so run the same command again" in str(lost[0])
    assert ended - 1002 < (30 if concurrency == 1 else 15)  # five questions' own waits take 70 s
    assert sum(put.came > 1002 for put in throttle.judge.puts) <= 12 + 5 * concurrency


def test_a_judge_that_is_away_for_a_moment_costs_nothing():
    for seed in range(20):
        throttle = staged(None, 32, latency=0.1, rng=random.Random(seed))
        throttle.judge.act = lambda put: reset() if 1002 < put.came < 1002.3 else answer()
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


def test_a_judge_that_hangs_is_given_up_before_five_questions_failed():
    throttle = staged(latency=10_000, timeout=300)

    async def put():
        return await all_of(throttle, 100), now()

    outcomes, ended = run(put())
    assert {type(outcome) for outcome in outcomes} == {JudgeUnreachableError}
    assert ended - 1000 < 6 * 310


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
    judge.abilities = {"structure": "plain"}  # as a ledger told it
    throttle = Throttle(judge, 1)
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
    gone = JudgeUnreachableError("nobody answers there")
    throttle = staged(lambda put: gone if put.number == 3 else answer(), 1)
    outcomes = run(all_of(throttle, 6))
    assert came(outcomes) == [True] * 3 + [False] * 3
    told = "nobody answers there; what was answered is kept, so run the same command again"
    assert all(told in str(outcome) for outcome in outcomes[3:])


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


# At a real server


@asynccontextmanager
async def throttled(server, concurrency, **options):
    judge = Throttle(open_openai("test-judge", base_url=server.url), concurrency, **options)
    try:
        yield judge
    finally:
        await judge.judge.close()


def test_no_more_asks_are_out_than_allowed(judge_server):
    pairs = threading.Barrier(2, timeout=10)  # breaks unless two are out at once

    def paired(_):
        pairs.wait()

    judge_server.script = after(1, lambda _: None, paired)

    async def put():
        async with throttled(judge_server, 2) as judge:
            await judge.ask(small_ask(0))
            return await asyncio.gather(*(judge.ask(small_ask(n)) for n in range(1, 9)))

    assert all(reply.parsed for reply in asyncio.run(put()))
    assert judge_server.most_at_once == 2


def test_a_server_that_fails_is_given_up(judge_server):
    judge_server.script = status(500, "out of memory")

    async def put():
        async with throttled(judge_server, 1, retries=0) as judge:
            for n in range(4):
                assert (await judge.ask(small_ask(n))).parsed is None
            for n in range(4, 7):
                with pytest.raises(JudgeUnreachableError, match=r"5 questions in a row.*out of"):
                    await judge.ask(small_ask(n))

    asyncio.run(put())
    assert len(judge_server.calls) == 5


def test_what_a_server_says_of_waiting_is_heard(judge_server):
    judge_server.script = after(2, status(429, "slow down", retry_after_ms="60"))

    async def put():
        async with throttled(judge_server, 4) as judge:
            return await asyncio.gather(*(judge.ask(small_ask(n)) for n in range(4)))

    assert all(reply.parsed for reply in asyncio.run(put()))
    assert sorted(call.status for call in judge_server.calls) == [200] * 4 + [429] * 2


def test_after_a_refused_key_nobody_asks_again(judge_server):
    judge_server.key = "sk-another"

    async def put():
        async with throttled(judge_server, 1) as judge:
            asks = (judge.ask(small_ask(n)) for n in range(6))
            return await asyncio.gather(*asks, return_exceptions=True)

    assert {type(outcome) for outcome in asyncio.run(put())} == {JudgeUnreachableError}
    assert len(judge_server.calls) == 1
