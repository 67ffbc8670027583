"""Pairwise preference: which of two runs answers better, judged in both orders."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict

from misslink.case_fields import Message
from misslink.documents import DEFAULT_K, manifest_of
from misslink.errors import InputError
from misslink.judge.backends.heuristic import HeuristicJudge
from misslink.judge.judge_case import ask_safely
from misslink.judge.prompts import BUILT_IN, Prompts
from misslink.judge.protocol import Ask, Judge, Reply, unwrap_judge
from misslink.parts import by_case
from misslink.stats import proportion
from misslink.timeouts import map_concurrently
from misslink.types import Estimate, Run, Trace

PairWinner = Literal["a", "b", "tie"]
_OF_CASE = "winner", "orders", "probability", "reason"
_AB: dict[str, PairWinner] = {"first": "a", "second": "b", "tie": "tie"}
_BA: dict[str, PairWinner] = {"first": "b", "second": "a", "tie": "tie"}


class Preference(BaseModel):
    """What is said of two answers to one question."""

    model_config = ConfigDict(frozen=True)

    better: Literal["first", "second", "tie"]


@dataclass(frozen=True)
class AnswerPair:
    """One case's two answers, and what the judge is shown to tell which is better.

    `passages` are those that either answer was written from. `reason` says why the answers cannot be
    compared, where they cannot.
    """

    case_id: str
    question: str
    a: str
    b: str
    reason: str | None = None
    history: tuple[Message, ...] = ()
    passages: tuple[str, ...] = ()
    references: tuple[str, ...] = ()

    def asks(self, prompts: Prompts = BUILT_IN) -> list[Ask]:
        """Ask which is better, with A first and with B first."""
        prompt = prompts.load("preference")
        shared = {
            "question": self.question,
            "passages": self.passages,
            "references": self.references,
            "history": tuple(message.model_dump() for message in self.history),
        }
        return [
            Ask.rendered(prompt, {**shared, "first": first, "second": second}, Preference)
            for first, second in ((self.a, self.b), (self.b, self.a))
        ]


@dataclass(frozen=True)
class PairOutcome:
    """The result of one case.

    Parameters
    ----------
    case_id : str
    winner : {'a', 'b', 'tie'} or None
        The answer that was better in both orders, else a tie. None: a reply is missing.
    orders : pair of {'a', 'b', 'tie'} or None
        The better answer with A first and with B first; None where the answers are identical and the
        judge was not called. A single one is None where its reply is missing.
    probability : float or None
        P(B is better), the mean over both orders, where the judge gives both.
    reason : str or None
        Why there is no winner, or why the judge was not called.
    """

    case_id: str
    winner: PairWinner | None
    orders: tuple[PairWinner | None, PairWinner | None] | None = None
    probability: float | None = None
    reason: str | None = None


def pair_answers(a: Run, b: Run, *, names: tuple[str, str] = ("A", "B")) -> list[AnswerPair]:
    """Return the answers of two runs to the cases that both have, in the order of `a`.

    A pair has the references of `a`.

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
    other_cases = by_case(b.cases)
    answers = [
        (name, manifest_of(run).k or DEFAULT_K, by_case(run.traces))
        for name, run in zip(names, (a, b), strict=True)
    ]
    pairs = []
    for case in a.cases:
        other = other_cases.get(case.id)
        if other is None:
            continue
        if other.asked != case.asked:
            raise InputError(
                f"the case '{case.id}' asks something else in {names[0]} than in {names[1]}; "
                "compare runs over the same gold set"
            )
        texts, missing = [], []
        passages: dict[str, None] = {}
        for name, k, traces in answers:
            trace = traces.get(case.id, Trace(case_id=case.id))
            texts.append(trace.answer or "")
            passages |= dict.fromkeys(passage.text for passage in trace.context(k))
            if not texts[-1].strip():
                error = trace.error if trace.answer is None else None
                missing.append(f"{name} has no answer" + (f" ({error})" if error else ""))
        pairs.append(
            AnswerPair(
                case.id,
                case.judged_question,
                a=texts[0],
                b=texts[1],
                reason=", ".join(missing) or None,
                history=case.history,
                passages=tuple(passages),
                references=case.references,
            )
        )
    if not pairs:
        raise InputError(
            f"{names[0]} and {names[1]} share no case; compare runs over the same gold set"
        )
    return pairs


async def judge_pairs(
    pairs: Sequence[AnswerPair],
    judge: Judge,
    *,
    concurrency: int = 8,
    prompts: Prompts = BUILT_IN,
    done: Callable[[int, int], object] = lambda _, __: None,
) -> list[PairOutcome]:
    """Judge each pair in both orders, and return the outcomes in the order of `pairs`.

    Parameters
    ----------
    pairs : sequence of AnswerPair
    judge : Judge
    concurrency : int
        Pairs at a time, at least 1.
    prompts : Prompts
        Where ``preference`` is read from.
    done : callable
        Receives how many pairs are done and how many there are.

    Raises
    ------
    InputError
        The judge is the heuristic one, which cannot tell, or `concurrency` is below 1.
    JudgeUnreachableError
        The judge cannot be reached.
    """
    require_preference_judge(judge)
    if concurrency < 1:
        raise InputError(f"--concurrency is {concurrency}; it must be at least 1")
    return await map_concurrently(
        pairs, lambda pair: _judge_pair(pair, judge, prompts), concurrency, done
    )


def require_preference_judge(judge: Judge) -> None:
    """Raise an InputError where a judge cannot tell which of two answers is better."""
    if isinstance(unwrap_judge(judge), HeuristicJudge):
        raise InputError(
            f"the judge {judge.name} cannot compare two answers. Use a model, such as "
            "--judge openai:MODEL."
        )


async def _judge_pair(pair: AnswerPair, judge: Judge, prompts: Prompts) -> PairOutcome:
    if pair.reason:
        return PairOutcome(pair.case_id, None, reason=pair.reason)
    if pair.a.strip() == pair.b.strip():
        return PairOutcome(pair.case_id, "tie", reason="the answers are identical")
    replies = await asyncio.gather(*(ask_safely(judge, ask) for ask in pair.asks(prompts)))
    orders = _pair_winner(replies[0], _AB), _pair_winner(replies[1], _BA)
    if None in orders:
        missing = [reply.problem for reply in replies if _pair_winner(reply, _AB) is None]
        reason = missing[0] or "the judge's reply cannot be read"
        return PairOutcome(pair.case_id, None, orders, reason=reason)
    ab, ba = replies[0].chance("better", "second"), replies[1].chance("better", "first")
    probability = None if ab is None or ba is None else (ab + ba) / 2
    winner = orders[0] if orders[0] == orders[1] else "tie"
    return PairOutcome(pair.case_id, winner, orders, probability)


def _pair_winner(reply: Reply, meaning: Mapping[str, PairWinner]) -> PairWinner | None:
    return meaning[reply.parsed.better] if isinstance(reply.parsed, Preference) else None


def summarize_preferences(outcomes: Sequence[PairOutcome]) -> dict[str, object]:
    """Return how often each side wins, the uncertainty, and how often the order decides.

    Returns
    -------
    dict
        ``cases``; ``paired``: those with a winner or a tie; ``identical``: ties without a model call;
        ``wins`` of 'a', 'b' and 'tie'; ``preference``: Estimate, the share of B among the decided
        cases; ``p``: of the exact two-sided sign test over these, None without any;
        ``position_flips``: Estimate, the share of the judged pairs where the two orders disagree;
        ``positions``: how often the 'first' and the 'second' place won whichever answer was there;
        ``left_out``: reason to number of cases; ``per_case``: case id to ``winner``, ``orders``,
        ``probability`` and ``reason``.

    References
    ----------
    Both orders, and a win only where they agree: Zheng et al. (2023), Judging LLM-as-a-judge with
    MT-Bench and Chatbot Arena. The sign test leaves ties out: Dixon and Mood (1946), The statistical
    sign test.
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
        "per_case": {o.case_id: {name: getattr(o, name) for name in _OF_CASE} for o in outcomes},
    }
