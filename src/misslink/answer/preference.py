"""Which of two runs answers better: every pair of answers is judged in both orders."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from misslink.errors import InputError
from misslink.judging.asking import put
from misslink.judging.embedded.judge import EmbeddedJudge
from misslink.judging.protocol import Ask, Judge, Reply, innermost
from misslink.prompting import BUILT_IN, Prompts
from misslink.stats import proportion
from misslink.types import Estimate, Run

__all__ = [
    "Outcome",
    "Pair",
    "Preference",
    "pair_up",
    "prefer",
    "preference",
    "refuse_without_preference",
    "which_is_better",
]

Winner = Literal["a", "b", "tie"]
_AB: dict[str, Winner] = {"first": "a", "second": "b", "tie": "tie"}
_BA: dict[str, Winner] = {"first": "b", "second": "a", "tie": "tie"}


class Preference(BaseModel):
    """What is said of two answers to one question."""

    model_config = ConfigDict(frozen=True)

    better: Literal["first", "second", "tie"]


@dataclass(frozen=True)
class Pair:
    """One case's two answers; `reason` says why they cannot be compared, where they cannot."""

    case_id: str
    question: str
    a: str
    b: str
    reason: str | None = None


@dataclass(frozen=True)
class Outcome:
    """How one case went.

    Parameters
    ----------
    case_id : str
    winner : {'a', 'b', 'tie'} or None
        The answer that was better in both orders, else a tie. None: an order has no reply.
    orders : pair of {'a', 'b', 'tie'} or None
        The better answer with A first and with B first; None where the answers are identical and
        nobody was asked. A single one is None where its reply could not be had.
    probability : float or None
        P(B is better), the mean over both orders, where the judge gives both.
    reason : str or None
        Why there is no winner, or why nobody was asked.
    """

    case_id: str
    winner: Winner | None
    orders: tuple[Winner | None, Winner | None] | None = None
    probability: float | None = None
    reason: str | None = None


def which_is_better(question: str, first: str, second: str, *, prompts: Prompts = BUILT_IN) -> Ask:
    """Ask which of two answers would satisfy the asker more."""
    inputs = {"question": question, "first": first, "second": second}

    def alone() -> Ask:
        return Ask.rendered(prompts.load("preference_alone"), inputs, Preference, structured=False)

    return Ask.rendered(prompts.load("preference"), inputs, Preference, alone=alone)


def pair_up(a: Run, b: Run, *, names: tuple[str, str] = ("A", "B")) -> list[Pair]:
    """Return the answers of two runs to the cases that both have, in the order of `a`.

    Parameters
    ----------
    a, b : Run
    names : pair of str
        What the runs are called in messages, such as their folders.

    Raises
    ------
    InputError
        They share no case, or a case asks different things.
    """
    others = {case.id: case for case in b.cases}
    answers = [{trace.case_id: trace for trace in run.traces} for run in (a, b)]
    pairs = []
    for case in a.cases:
        other = others.get(case.id)
        if other is None:
            continue
        if other.question.strip() != case.question.strip():
            raise InputError(
                f"the case '{case.id}' asks something else in {names[0]} than in {names[1]}; "
                "compare runs over the same gold set"
            )
        texts, missing = [], []
        for name, traces in zip(names, answers, strict=True):
            trace = traces.get(case.id)
            text = (trace.answer if trace else None) or ""
            texts.append(text)
            if not text.strip():
                error = trace.error if trace and trace.answer is None else None
                missing.append(f"{name} has no answer" + (f" ({error})" if error else ""))
        reason = ", ".join(missing) or None
        pairs.append(Pair(case.id, case.question, texts[0], texts[1], reason))
    if not pairs:
        raise InputError(
            f"{names[0]} and {names[1]} share no case; compare runs over the same gold set"
        )
    return pairs


async def prefer(
    pairs: Sequence[Pair],
    judge: Judge,
    *,
    concurrency: int = 8,
    prompts: Prompts = BUILT_IN,
    done: Callable[[int, int], object] = lambda _, __: None,
) -> list[Outcome]:
    """Judge each pair in both orders.

    Parameters
    ----------
    pairs : sequence of Pair
    judge : Judge
    concurrency : int
        How many pairs are under way at once, at least 1.
    prompts : Prompts
        Where ``preference`` and ``preference_alone`` are read from.
    done : callable
        Called with how many pairs are done, and how many there are.

    Returns
    -------
    list of Outcome
        In the order of `pairs`. Identical answers are a tie, and nobody is asked.

    Raises
    ------
    InputError
        The judge is the embedded one, which cannot tell, or `concurrency` is below 1.
    JudgeUnreachableError
        Asking on is pointless.
    """
    refuse_without_preference(judge)
    if concurrency < 1:
        raise InputError(f"--concurrency is {concurrency}; it must be at least 1")
    gate = asyncio.Semaphore(concurrency)
    count = 0

    async def one(pair: Pair) -> Outcome:
        nonlocal count
        async with gate:
            outcome = await _judge(pair, judge, prompts)
        count += 1
        done(count, len(pairs))
        return outcome

    tasks = [asyncio.create_task(one(pair)) for pair in pairs]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def refuse_without_preference(judge: Judge) -> None:
    """Raise an InputError where a judge cannot tell which of two answers is better."""
    if isinstance(innermost(judge), EmbeddedJudge):
        raise InputError(
            f"the judge {judge.name} cannot say which of two answers is better, it only holds an "
            "answer against its passages; name a model, such as --judge openai:MODEL"
        )


async def _judge(pair: Pair, judge: Judge, prompts: Prompts) -> Outcome:
    if pair.reason:
        return Outcome(pair.case_id, None, reason=pair.reason)
    if pair.a.strip() == pair.b.strip():
        return Outcome(pair.case_id, "tie", reason="the answers are identical")
    asks = (
        which_is_better(pair.question, pair.a, pair.b, prompts=prompts),
        which_is_better(pair.question, pair.b, pair.a, prompts=prompts),
    )
    replies = await asyncio.gather(*(put(judge, ask) for ask in asks))
    orders = _said(replies[0], _AB), _said(replies[1], _BA)
    if None in orders:
        missing = [reply.problem for reply in replies if _said(reply, _AB) is None]
        reason = missing[0] or "the judge's reply cannot be read"
        return Outcome(pair.case_id, None, orders, reason=reason)
    chances = replies[0].chance("better", "second"), replies[1].chance("better", "first")
    known = [chance for chance in chances if chance is not None]
    return Outcome(
        pair.case_id,
        orders[0] if orders[0] == orders[1] else "tie",
        orders,
        probability=sum(known) / len(known) if len(known) == len(chances) else None,
    )


def _said(reply: Reply, meaning: Mapping[str, Winner]) -> Winner | None:
    return meaning[reply.parsed.better] if isinstance(reply.parsed, Preference) else None


def preference(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return who wins how often, how sure that is, and how often the order decided.

    Parameters
    ----------
    outcomes : sequence of Outcome

    Returns
    -------
    dict
        ``cases``; ``paired``: those with a winner or a tie; ``identical``: ties that nobody had to
        judge; ``wins`` of 'a', 'b' and 'tie'; ``preference``: Estimate, the share of B among the
        decided cases; ``p``: of the exact two-sided sign test over these, None where there are
        none; ``position_flips``: Estimate, the share of the judged pairs of which the two orders
        say different things; ``positions``: how often the 'first' and the 'second' place won
        whichever answer stood there; ``left_out``: reason to number of cases; ``per_case``: case
        id to ``winner``, ``orders``, ``probability`` and ``reason``.

    References
    ----------
    Both orders, and a win only where they agree: Zheng et al. (2023), Judging LLM-as-a-judge with
    MT-Bench and Chatbot Arena. The sign test leaves ties out: Dixon and Mood (1946), The
    statistical sign test.
    """
    from scipy.stats import binomtest

    wins = Counter(outcome.winner for outcome in outcomes if outcome.winner)
    decided = wins["a"] + wins["b"]
    judged = [o.orders for o in outcomes if o.winner and o.orders]
    flips = sum(ab != ba for ab, ba in judged)
    share = Estimate.missing("no case was decided")
    if decided:
        share = proportion(wins["b"], decided)
    flip_rate = Estimate.missing("no pair was judged in both orders")
    if judged:
        flip_rate = proportion(flips, len(judged))
    return {
        "cases": len(outcomes),
        "paired": wins.total(),
        "identical": sum(outcome.winner is not None and not outcome.orders for outcome in outcomes),
        "wins": {side: wins[side] for side in ("a", "b", "tie")},
        "preference": share.model_dump(),
        "p": float(binomtest(wins["b"], decided).pvalue) if decided else None,
        "position_flips": flip_rate.model_dump(),
        "positions": {"first": judged.count(("a", "b")), "second": judged.count(("b", "a"))},
        "left_out": dict(Counter(o.reason or "" for o in outcomes if o.winner is None)),
        "per_case": {
            outcome.case_id: {
                "winner": outcome.winner,
                "orders": outcome.orders and list(outcome.orders),
                "probability": outcome.probability,
                "reason": outcome.reason,
            }
            for outcome in outcomes
        },
    }
