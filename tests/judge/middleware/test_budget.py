"""What a run may cost, in calls, tokens and money."""

import asyncio
import random
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest

from misslink.errors import InputError, JudgeUnreachableError
from misslink.judge.config import JudgeConfig, Price
from misslink.judge.middleware.budget import BatchTerms, BudgetedJudge
from misslink.judge.middleware.throttle import ThrottledJudge
from misslink.judge.protocol import (
    JudgeInfo,
    Reply,
    RetryableError,
    SkippedAskError,
    judge_info,
    schema_json,
)
from misslink.types import Usage
from staged_judge import StagedJudge, all_of, answer, numbered
from virtual_time import run

PRICE = Price(1.0, 4.0)  # of a million tokens
priced = partial(JudgeConfig, price_in=1.0, price_out=4.0)
ASK = numbered(0)
TEXTS = [*(message["content"] for message in ASK.messages), schema_json(ASK.schema)]
MOST_READ = -(-sum(len(text.encode()) for text in TEXTS) // 2)
MOST = PRICE.cost(MOST_READ, 4096)  # what one call costs at worst


def spent_by(budget):
    return budget.ledger.recorded.cost(PRICE)


def came(outcomes):
    return [isinstance(outcome, Reply) for outcome in outcomes]


def test_no_more_calls_are_made_than_allowed():
    budget = BudgetedJudge(StagedJudge(), JudgeConfig(max_calls=7))
    outcomes = run(all_of(budget, 20))
    assert came(outcomes) == [True] * 7 + [False] * 13
    assert {type(outcome) for outcome in outcomes[7:]} == {SkippedAskError}
    assert str(outcomes[7]) == "max_calls 7 is used up; the same command continues"
    assert budget.ledger.calls == len(budget.judge.puts) == 7


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ({"claims": []}, "returned dict; its ask must return"),
        (None, "returned NoneType; its ask must return"),
        (Reply({"claims": []}, ""), "'parsed' is dict"),
        (Reply(None, b"{}"), "'raw' is bytes"),
        *(
            (replace(answer(), probabilities={"claims.0.support": {"supported": value}}), "0 to 1")
            for value in ("high", float("nan"), 7)
        ),
    ],
)
def test_what_is_no_reply_is_named_at_the_first_question(reply, problem):
    async def ask(_):
        return reply

    judge = SimpleNamespace(name="mine", identity={}, ask=ask)
    with pytest.raises(InputError, match=f"the judge mine .*{problem}"):
        run(BudgetedJudge(judge, JudgeConfig()).ask(ASK))


def test_tries_in_vain_are_calls_too():
    judge = StagedJudge(
        lambda put: RetryableError("500", "server") if put.attempt == 1 else answer()
    )
    budget = BudgetedJudge(judge, JudgeConfig(max_calls=10))
    outcomes = run(all_of(ThrottledJudge(budget, 3), 20))
    assert len(judge.puts) == 10
    assert sum(came(outcomes)) < 10


@pytest.mark.parametrize("concurrency", [1, 4, 64])
def test_no_more_is_ever_spent_than_allowed(concurrency):
    sizes = random.Random(concurrency)
    cap = 12 * MOST
    spent = []

    def act(put):
        kind = sizes.random()
        if kind < 0.1:
            return RetryableError("500", "server")
        reply = answer(sizes.randrange(MOST_READ), sizes.randrange(4097))
        spent.append(PRICE.cost(reply.usage.prompt_tokens, reply.usage.completion_tokens))
        return reply

    budget = BudgetedJudge(StagedJudge(act), priced(max_cost=cap))
    outcomes = run(all_of(ThrottledJudge(budget, concurrency), 200))
    assert sum(spent) <= cap
    assert sum(spent) > cap - MOST  # and stops only where the next call could pass it
    assert spent_by(budget) == pytest.approx(sum(spent))
    refused = [outcome for outcome in outcomes if not isinstance(outcome, Reply)]
    assert {type(outcome) for outcome in refused} == {SkippedAskError}
    assert str(refused[0]).startswith(f"the next question could exceed max_cost {cap:g}")
    assert "the same command continues" in str(refused[0])


def test_where_others_are_out_it_waits_for_what_they_leave():
    budget = BudgetedJudge(StagedJudge(lambda _: answer(10, 10)), priced(max_cost=2 * MOST))
    assert all(came(run(all_of(budget, 30))))  # each costs next to nothing once it is home
    assert budget.judge.most_at_once == 2


def test_a_cap_below_one_question_asks_none():
    budget = BudgetedJudge(StagedJudge(), priced(max_cost=MOST * 0.99))
    (outcome,) = run(all_of(budget, 1))
    assert isinstance(outcome, SkippedAskError)
    assert not budget.judge.puts


def test_a_judge_that_writes_little_is_held_less():
    judge = StagedJudge()
    judge.info = JudgeInfo(max_tokens=100)
    budget = BudgetedJudge(judge, priced(max_cost=PRICE.cost(MOST_READ, 100)))
    assert came(run(all_of(budget, 2))) == [True, False]


@pytest.mark.parametrize(
    ("usage", "booked"),
    [
        (Usage(prompt_tokens=1000, completion_tokens=50), PRICE.cost(1000, 50)),
        (Usage(prompt_tokens=1000, completion_tokens=None), PRICE.cost(1000, 4096)),
        (Usage(prompt_tokens=None, completion_tokens=50), PRICE.cost(MOST_READ, 50)),
        (None, MOST),
    ],
)
def test_what_a_reply_does_not_report_is_booked_at_its_most(usage, booked):
    reply = Reply(parsed=None, raw="words", usage=usage)
    budget = BudgetedJudge(StagedJudge(lambda _: reply), priced(max_cost=1))
    run(all_of(budget, 1))
    assert spent_by(budget) == booked


@pytest.mark.parametrize(
    ("outcome", "booked"),
    [
        (RetryableError("slow", "time"), MOST),
        (RetryableError("429", "rate"), 0),
        (RetryableError("500", "server"), 0),
        (RetryableError("reset", "connection"), 0),
        (JudgeUnreachableError("nobody there"), 0),
        (Reply.nothing("refused"), 0),
        (RuntimeError("a mistake"), MOST),
    ],
)
def test_what_brought_nothing_is_a_call_and_costs_the_most_it_can_have_been(outcome, booked):
    budget = BudgetedJudge(StagedJudge(lambda _: outcome), priced(max_cost=1))
    run(all_of(budget, 1))
    assert (budget.ledger.calls, spent_by(budget)) == (1, booked)


def test_a_call_that_is_cut_off_may_have_been_written_to_its_end():
    budget = BudgetedJudge(StagedJudge(latency=100), priced())
    throttle = ThrottledJudge(budget, 1, JudgeConfig(timeout=3, retries=0))
    assert not run(throttle.ask(ASK)).came
    assert (budget.ledger.calls, spent_by(budget)) == (1, MOST)


def test_no_more_is_billed_than_allowed_where_every_call_is_cut_off():
    cap = 3.5 * MOST
    budget = BudgetedJudge(StagedJudge(latency=100), priced(max_cost=cap))
    run(all_of(ThrottledJudge(budget, 4, JudgeConfig(timeout=3, retries=5)), 4))
    assert len(budget.judge.puts) == 3  # the server may write each of them to its end
    assert spent_by(budget) == pytest.approx(3 * MOST)


def test_waiting_for_money_takes_nothing_of_the_time_for_a_call():
    budget = BudgetedJudge(StagedJudge(latency=2.0), priced(max_cost=1.5 * MOST))  # one at a time
    budget.judge.act = lambda _: answer(1, 1)
    outcomes = run(all_of(ThrottledJudge(budget, 16, JudgeConfig(timeout=3.0, retries=0)), 16))
    assert all(came(outcomes))
    assert len(budget.judge.puts) == 16  # none begun, cut and lost
    assert budget.judge.most_at_once == 1


def test_a_call_that_waited_for_money_is_not_begun_after_the_deadline():
    budget = BudgetedJudge(StagedJudge(lambda _: answer(1, 1), 5.0), priced(max_cost=1.5 * MOST))
    outcomes = run(all_of(ThrottledJudge(budget, 4, JudgeConfig(deadline=3.0)), 4))
    assert came(outcomes) == [True, False, False, False]
    assert {type(outcome) for outcome in outcomes[1:]} == {SkippedAskError}
    assert "deadline 3" in str(outcomes[1])
    assert budget.ledger.calls == len(budget.judge.puts) == 1
    assert spent_by(budget) == PRICE.cost(1, 1)


def test_nothing_is_held_for_ever():
    fates = [RetryableError("x", "time"), RuntimeError("x"), Reply.nothing("x"), answer(1, 1)]
    budget = BudgetedJudge(StagedJudge(lambda put: fates[put.number % 4]), priced(max_cost=1.0))
    run(all_of(budget, 8))
    spent = spent_by(budget)
    run(all_of(budget, 1))  # a time-out
    assert spent_by(budget) == pytest.approx(spent + MOST)
    rest = BudgetedJudge(StagedJudge(lambda _: fates[2]), priced(max_cost=MOST))
    assert all(came(run(all_of(rest, 50))))


def test_closing_turns_away_whoever_waits_for_money():
    budget = BudgetedJudge(StagedJudge(lambda _: answer(1, 1), latency=5), priced(max_cost=MOST))
    throttle = ThrottledJudge(budget, 4)

    async def put():
        asks = [asyncio.create_task(throttle.ask(numbered(n))) for n in range(4)]
        await asyncio.sleep(1)
        await throttle.close()
        return await asyncio.gather(*asks, return_exceptions=True)

    outcomes = run(put())
    assert came(outcomes) == [True] + [False] * 3
    assert len(budget.judge.puts) == 1
    assert budget.judge.closed


def test_name_identity_and_note_are_the_judges():
    judge = StagedJudge()
    judge.info = JudgeInfo(note="mind this")
    budget = ThrottledJudge(BudgetedJudge(judge), 1)
    assert (budget.name, budget.identity) == (judge.name, judge.identity)
    assert judge_info(budget).note == "mind this"


def batched(budget, outcome, share=0.5, *, submitted=False, waited=None):
    """One call in a batch, which ends so."""

    async def call():
        await asyncio.sleep(1)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    on_wait = (waited if waited is not None else []).append
    return budget.call_within_caps(ASK, call, BatchTerms(share, submitted, on_wait))


def all_batched(budget, *outcomes, **terms):
    async def put():
        calls = (batched(budget, outcome, **terms) for outcome in outcomes)
        return await asyncio.gather(*calls, return_exceptions=True)

    return run(put())


def test_calls_in_a_batch_reserve_their_share_and_count():
    budget = BudgetedJudge(StagedJudge(), priced(max_calls=4, max_cost=1.6 * MOST))
    said = Reply(None, "said", Usage(prompt_tokens=100, completion_tokens=10))
    waited = []
    outcomes = all_batched(budget, said, said, said, Reply(None, "said"), waited=waited)
    assert came(outcomes) == [True] * 4
    assert waited == [3]  # the last one fits when the others have ended
    assert spent_by(budget) == pytest.approx(0.5 * (3 * PRICE.cost(100, 10) + MOST))
    assert budget.ledger.calls == 4
    (refused,) = all_batched(budget, said)
    assert str(refused) == "max_calls 4 is used up; the same command continues"
    assert came(all_batched(budget, said, submitted=True)) == [True]  # an earlier run paid for it
    assert budget.ledger.calls == 5


def test_what_can_never_fit_is_not_waited_for():
    budget = BudgetedJudge(StagedJudge(), priced(max_cost=0.4 * MOST))
    (refused,) = all_batched(budget, answer())
    assert "could exceed max_cost" in str(refused)
    assert came(all_batched(budget, Reply.nothing("refused"), share=0.25)) == [True]
    assert (budget.ledger.calls, spent_by(budget)) == (1, 0)


def test_what_was_lost_cost_the_most_and_what_was_not_made_nothing():
    budget = BudgetedJudge(StagedJudge(), priced(max_calls=2, max_cost=MOST))
    all_batched(budget, RetryableError("its answer is gone", "time"))
    assert (budget.ledger.calls, spent_by(budget)) == (1, pytest.approx(0.5 * MOST))
    all_batched(budget, SkippedAskError("it was not begun"))
    assert (budget.ledger.calls, spent_by(budget)) == (1, pytest.approx(0.5 * MOST))
    assert came(all_batched(budget, answer(1, 1))) == [True]  # as if it had not been
