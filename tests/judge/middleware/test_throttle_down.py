from __future__ import annotations

import asyncio
import contextlib
import random
from dataclasses import replace

import pytest

from misslink.engines.local import map_concurrently
from misslink.errors import JudgeUnreachableError
from misslink.judge.middleware.throttle import ThrottledJudge
from misslink.judge.protocol import JudgeInfo, Reply
from staged_judge import StagedJudge, all_of, answer, numbered
from staged_throttle import absent, came, failing, reset, slow_down, staged, times
from virtual_time import now, run


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
    assert "replies are cached, so run the same command again" in str(lost[0])
    assert ended - 1002 < (30 if concurrency == 1 else 15)  # five questions' own waits take 70 s
    assert sum(put.came > 1002 for put in throttle.judge.puts) <= 12 + 5 * concurrency


@pytest.mark.parametrize("concurrency", [1, 2, 8])
def test_a_judge_that_nobody_answers_for_is_given_up_within_five_tries_of_one_question(concurrency):
    """However few cases a run has under way, it has not to wait until three of them failed."""

    async def put(throttle):
        async def ask(number):
            with contextlib.suppress(JudgeUnreachableError):
                await throttle.ask(numbered(number))

        await map_concurrently(range(60), ask, concurrency, lambda *_: None)
        return now()

    for seed in range(20):
        throttle = staged(None, concurrency, latency=0.1, rng=random.Random(seed))
        throttle.judge.act = lambda put: absent() if put.came > 1002 else answer()
        ended = run(put(throttle))
        assert ended - 1002 < 0.5 + 1 + 2 + 4 + 6 * 0.1  # its four longest waits, and the calls
        assert sum(put.came > 1002 for put in throttle.judge.puts) <= 5 * concurrency


@pytest.mark.parametrize("trouble", [reset, absent])
def test_a_judge_that_is_away_for_a_moment_costs_nothing(trouble):
    for seed in range(20):
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
