"""Whether a judge answers, and what it can do."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

from misslink.errors import InputError
from misslink.judging.examination import examine
from misslink.judging.opening import innermost, open_judge
from misslink.judging.protocol import Judge
from misslink.judging.terms import Terms

__all__ = ["Ping", "ping", "ping_spec"]


@dataclass(frozen=True)
class Ping:
    """How a judge took one small question.

    Parameters
    ----------
    judge : str
    ok : bool
        Whether it gave a readable answer.
    latency_s : float
        Seconds for the question, the first connection included.
    structure : str or None
        How it gives structured answers ('json_schema', 'json_object', 'plain'); None where the
        judge has no such modes or did not answer.
    logprobs : bool or None
        Whether it gives token log-probabilities; None where it was not asked.
    prompt_tokens, completion_tokens : int or None
    note : str or None
        What readers of its verdicts must know, such as that it is a heuristic.
    problem : str or None
        Why it is not ok.
    """

    judge: str
    ok: bool
    latency_s: float
    structure: str | None = None
    logprobs: bool | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    note: str | None = None
    problem: str | None = None


async def ping(judge: Judge) -> Ping:
    """Ask the judge one small question, past any ledger, and see what it can do.

    A judge behind a server is asked for one more token, to see whether it gives log-probabilities.

    Raises
    ------
    JudgeUnreachableError
        Nobody answers at its address, or it refuses the key or the model.
    """
    asked = innermost(judge)
    question = examine(
        "What colour is the sky by day?", ("By day the sky is blue.",), "The sky is blue."
    )
    start = time.perf_counter()
    reply = await asked.ask(question)
    latency = time.perf_counter() - start
    ok = reply.parsed is not None
    logprobs = getattr(asked, "gives_logprobs", None) if ok else None
    usage: Any = reply.usage
    return Ping(
        judge=judge.name,
        ok=ok,
        latency_s=round(latency, 4),
        structure=getattr(asked, "structure", None),
        logprobs=None if logprobs is None else await logprobs(),
        prompt_tokens=usage and usage.prompt_tokens,
        completion_tokens=usage and usage.completion_tokens,
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
        await judge.close()
