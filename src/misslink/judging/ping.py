"""Whether a judge answers, and what it can do."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from misslink.errors import InputError, MisslinkError
from misslink.judging.examination import LabelAlone, examine
from misslink.judging.models.reading import EXCERPT
from misslink.judging.opening import open_judge
from misslink.judging.protocol import Ask, Judge, Reply, TryAgainError, innermost
from misslink.judging.terms import Price, Terms

__all__ = ["Ping", "ping", "ping_spec"]

_CALLS = 3  # questions that a ping may cost, refused ones included
_JSON_MODE_S = 60.0  # for a few tokens


@dataclass(frozen=True)
class Ping:
    """How a judge took one small question.

    Parameters
    ----------
    judge : str
    ok : bool
        Whether it gave a readable answer.
    latency_s : float
        Seconds for the question.
    structure : str or None
        How it gives structured answers ('json_schema', 'json_object', 'plain'); None where the
        judge has no such modes or did not answer.
    json_schema, json_mode : bool or None
        Whether its answers can be bound to a schema, and to JSON; None where that was not found
        out.
    logprobs : bool or None
        Whether it gives token log-probabilities.
    seed : bool or None
        Whether it takes a seed.
    context_length : int or None
        How many tokens prompt and reply may have together; None where it does not say.
    price : Price or None
        What its tokens cost; None where it does not say.
    prompt_tokens, completion_tokens : int or None
        Of the question.
    note : str or None
        What readers of its verdicts must know, such as that it is a heuristic.
    problem : str or None
        Why it is not ok.
    """

    judge: str
    ok: bool
    latency_s: float
    structure: str | None = None
    json_schema: bool | None = None
    json_mode: bool | None = None
    logprobs: bool | None = None
    seed: bool | None = None
    context_length: int | None = None
    price: Price | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    note: str | None = None
    problem: str | None = None


async def ping(judge: Judge) -> Ping:
    """Ask the judge one small question, past any ledger, and see what it can do.

    At most three questions are put, refused ones included: what a judge takes is seen from the
    one that it answers, and another asks for JSON mode where that is still open. A server that
    fails, or ignores the answer format, is asked the same question again, so that it is seen
    whether that is all that it lacks.

    Returns
    -------
    Ping
        Not ok where a judge of somebody's own raises; its problem says what.

    Raises
    ------
    JudgeUnreachableError
        Nobody answers at its address, or it refuses the key or the model.
    InputError
        What a judge of somebody's own returns is no Reply.
    """
    asked = innermost(judge)
    question = examine(
        "What colour is the sky by day?", ("By day the sky is blue.",), "The sky is blue."
    )
    sent = getattr(asked, "sent", 0)
    # Past the throttle, which would see to the deadline.
    patience = getattr(judge, "terms", Terms()).timeout
    start = time.perf_counter()
    reply = await _put(asked, question, patience)
    latency = time.perf_counter() - start
    ok = reply.parsed is not None
    abilities: Mapping[str, Any] = getattr(asked, "abilities", None) or {}
    structure = getattr(asked, "structure", None) or abilities.get("structure")
    takes = getattr(asked, "takes", abilities.get)
    gives = abilities.get("gives_logprobs")
    logprobs = takes("logprobs")
    usage: Any = reply.usage
    return Ping(
        judge=judge.name,
        ok=ok,
        latency_s=round(latency, 4),
        structure=structure,
        json_schema=None if structure is None else structure == "json_schema",
        json_mode=await _json_mode(asked, structure, sent, patience) if ok else None,
        logprobs=gives if logprobs and gives is not None else logprobs,
        seed=takes("seed"),
        context_length=getattr(asked, "context_length", None),
        price=getattr(asked, "price", None),
        prompt_tokens=getattr(usage, "prompt_tokens", None),
        completion_tokens=getattr(usage, "completion_tokens", None),
        note=getattr(asked, "note", None),
        problem=reply.problem,
    )


async def ping_spec(spec: str, terms: Terms | None = None) -> dict[str, Any]:
    """Open the judge `spec`, ping it and close it; return the fields of `Ping`.

    Raises
    ------
    InputError
        There is no such judge, or it lacks something.
    JudgeUnreachableError
        It cannot be asked.
    """
    judge = open_judge(spec, ledger=None, concurrency=1, terms=terms)
    if judge is None:
        raise InputError("--judge none asks nobody; say --judge embedded or --judge openai:MODEL")
    try:
        return asdict(await ping(judge))
    finally:
        try:
            await judge.close()
        except MisslinkError:
            raise
        except Exception as error:  # noqa: BLE001 (somebody's own; it is told)
            raise InputError(f"closing the judge {judge.name}, {_raised(error)}") from None


async def _put(asked: Judge, question: Ask, patience: float) -> Reply:
    """Ask; the reply of `Reply.nothing`, with the reason, where none came."""
    try:
        check = getattr(asked, "reachable", None)
        if check is not None:
            await check()  # lists the models, which may say more than a question can find out
        async with asyncio.timeout(patience):
            reply = await _answer(asked, question)
    except TimeoutError:
        return Reply.nothing(f"no reply came within {patience:g} s")
    except TryAgainError as trouble:
        return Reply.nothing(trouble.problem)
    except MisslinkError:
        raise
    except Exception as error:  # noqa: BLE001 (a judge of somebody's own; it is told)
        return Reply.nothing(_raised(error))
    if not isinstance(reply, Reply):
        raise InputError(
            f"the judge {asked.name} returned {type(reply).__name__}; its ask must return a "
            "misslink.judging.protocol.Reply"
        )
    wanted = question.schema | LabelAlone
    if reply.parsed is not None and not isinstance(reply.parsed, wanted):
        kind, right = type(reply.parsed).__name__, question.schema.__name__
        return replace(
            reply, parsed=None, problem=f"the judge gave {kind} where {right} was asked for"
        )
    return reply


async def _answer(asked: Judge, question: Ask) -> Reply:
    """Ask, and once more where the answer format alone may be what the judge cannot do."""
    before = getattr(asked, "sent", 0)
    try:
        reply = await asked.ask(question)
    except TryAgainError:
        first = getattr(asked, "sent", 0) - before <= 1
        if not (first and getattr(asked, "doubted", False)):
            raise
        return await asked.ask(question)
    left = getattr(asked, "sent", 0) - before < _CALLS
    known: Mapping[str, Any] = getattr(asked, "abilities", None) or {}
    taken = known.get("structure")
    # It took the schema by parameter and no notice of it: the next one has it in the prompt.
    otherwise = taken not in (None, getattr(asked, "structure", None))
    return await asked.ask(question) if left and otherwise and reply.parsed is None else reply


def _raised(error: Exception) -> str:
    said = " ".join(str(error).split())[:EXCERPT]
    return f"the judge raised {type(error).__name__}" + (f": {said}" if said else "")


async def _json_mode(
    asked: Judge, structure: str | None, before: int, patience: float
) -> bool | None:
    """Whether the judge has a JSON mode, asked where it can be and the ping has a call left."""
    if structure == "json_object":
        return True
    takes = getattr(asked, "takes", None)
    known: bool | None = takes("json_object") if takes is not None else None
    if known is not None:
        return known
    find_out = getattr(asked, "takes_json_mode", None)  # such a judge counts what it sent
    if find_out is None or getattr(asked, "sent", 0) - before >= _CALLS:
        return None
    found: bool | None = None
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(min(patience, _JSON_MODE_S)):
            found = await find_out()
    return found
