"""Check whether a judge responds and what it supports."""

from __future__ import annotations

import asyncio
import time
from dataclasses import asdict, replace
from typing import Any

from misslink.errors import InputError, MisslinkError
from misslink.judge.backends.response_parsing import EXCERPT_LENGTH
from misslink.judge.config import DEFAULTS, JudgeConfig
from misslink.judge.examination import examine
from misslink.judge.protocol import Ask, Judge, Reply, RetryableError, judge_info, unwrap_judge
from misslink.judge.session import open_judge, require_judge

_MAX_CALLS = 3  # requests that a ping may cost, refused ones included


async def ping_judge(judge: Judge) -> dict[str, object]:
    """Send the judge one small question, bypassing the cache, and report what it supports.

    Returns
    -------
    dict
        ``judge``; ``ok``: whether it gave a readable answer; ``latency_s``; ``structure``: how it gives
        structured answers, 'json_schema', 'json_object', or 'plain'; ``json_schema``,
        ``logprobs``, ``seed`` and ``temperature``: whether it supports them; ``token_limit``: the name
        of the parameter for the longest reply; ``context_length``: tokens of prompt and reply together; ``limits`` of one request to a decision model (OpenAI's, until the server
        states lower ones); ``price`` of a million tokens;
        ``prompt_tokens`` and ``completion_tokens`` of the question; ``note``: what readers of its
        verdicts must know; ``problem``: why it is not ok. None: unknown.
    """
    inner = unwrap_judge(judge)
    ask = examine(
        "What colour is the sky by day?", ("By day the sky is blue.",), "The sky is blue."
    )
    # Past the throttle, which would apply the deadline.
    seconds = getattr(judge, "terms", DEFAULTS).timeout
    reply, latency = await _ask_within(inner, ask, seconds)
    ok = reply.parsed is not None
    info = judge_info(inner)
    abilities = info.abilities or {}
    structure = info.structure or abilities.get("structure")
    supports = info.supports or abilities.get
    gives_logprobs = abilities.get("gives_logprobs")
    logprobs = supports("logprobs")
    usage: Any = reply.usage  # a custom judge may return anything
    return {
        "judge": judge.name,
        "ok": ok,
        "latency_s": round(latency, 4),
        "structure": structure,
        "json_schema": None if structure is None else structure == "json_schema",
        "logprobs": gives_logprobs if logprobs and gives_logprobs is not None else logprobs,
        "seed": supports("seed"),
        "temperature": supports("temperature"),
        "token_limit": abilities.get("limit"),
        "context_length": info.context_length,
        "limits": info.limits if ok else None,
        "price": info.price and asdict(info.price),
        "prompt_tokens": getattr(usage, "prompt_tokens", None),
        "completion_tokens": getattr(usage, "completion_tokens", None),
        "note": info.note,
        "problem": reply.problem,
    }


async def ping_judge_spec(spec: str, config: JudgeConfig = DEFAULTS) -> dict[str, object]:
    """Open the judge `spec`, ping it, and close it; return what `ping_judge` does.

    Raises
    ------
    InputError
        There is no such judge, or it lacks something.
    JudgeUnreachableError
        The judge cannot be reached.
    """
    judge = require_judge(open_judge(spec, cache=None, concurrency=1, terms=config))
    try:
        return await ping_judge(judge)
    finally:
        try:
            await judge.close()
        except MisslinkError:
            raise
        except Exception as error:  # noqa: BLE001 (a custom judge; the message names the error)
            raise InputError(f"closing the judge {judge.name}: {_error_summary(error)}") from None


async def _ask_within(judge: Judge, ask: Ask, seconds: float) -> tuple[Reply, float]:
    """Ask, and return the seconds that it took; where no reply arrives, `Reply.nothing` says why."""
    start = time.perf_counter()
    try:
        check = judge_info(judge).check_reachable
        if check is not None:
            await check()  # lists the models, which may say more than a question can find out
            start = time.perf_counter()  # its client is imported, and connected
        async with asyncio.timeout(seconds):
            reply = await _ask_with_retry(judge, ask)
    except TimeoutError:
        reply = Reply.nothing(f"no reply came within {seconds:g} s")
    except RetryableError as error:
        reply = Reply.nothing(error.problem)
    except MisslinkError:
        raise
    except Exception as error:  # noqa: BLE001 (a custom judge; the message names the error)
        reply = Reply.nothing(_error_summary(error))
    latency = time.perf_counter() - start
    if not isinstance(reply, Reply):
        raise InputError(
            f"the judge {judge.name} returned {type(reply).__name__}. Its ask() must return a "
            "misslink.judge.Reply."
        )
    if reply.parsed is not None and not isinstance(reply.parsed, ask.schema):
        problem = f"the judge returned {type(reply.parsed).__name__}, not {ask.schema.__name__}"
        reply = replace(reply, parsed=None, problem=problem)
    return reply, latency


async def _ask_with_retry(judge: Judge, ask: Ask) -> Reply:
    """Ask, and once more where only the answer format may be what the judge cannot do."""
    requests_before = judge_info(judge).requests_sent or 0
    try:
        reply = await judge.ask(ask)
    except RetryableError:
        info = judge_info(judge)
        if (info.requests_sent or 0) - requests_before > 1 or not info.structure_in_doubt:
            raise
        return await judge.ask(ask)
    info = judge_info(judge)
    calls_left = (info.requests_sent or 0) - requests_before < _MAX_CALLS
    # The server took the schema as a parameter and ignored it: the next prompt contains it.
    other_structure = (info.abilities or {}).get("structure") not in (None, info.structure)
    return (
        await judge.ask(ask) if calls_left and other_structure and reply.parsed is None else reply
    )


def _error_summary(error: Exception) -> str:
    message = " ".join(str(error).split())[:EXCERPT_LENGTH]
    return f"the judge raised {type(error).__name__}" + (f": {message}" if message else "")
