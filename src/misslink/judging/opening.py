"""From ``NAME:ARGUMENT`` to a judge that can be asked, and whether it answers."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from misslink.errors import InputError
from misslink.judging.examination import examine
from misslink.judging.ledger import Ledger
from misslink.judging.protocol import Judge
from misslink.judging.throttle import Throttle
from misslink.registry import judges

__all__ = ["Ping", "open_judge", "ping", "ping_spec", "reachable"]


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


def open_judge(
    judge: str | Judge | None,
    *,
    ledger: Path | None,
    concurrency: int,
    base_url: str | None = None,
    api_key: str | None = None,
) -> Ledger | None:
    """Open a judge, throttled, with its ledger.

    Parameters
    ----------
    judge : str, Judge or None
        ``NAME`` or ``NAME:ARGUMENT``, such as ``embedded`` or ``openai:MODEL``, or a judge of your
        own. None and ``none`` open nothing.
    ledger : Path or None
        Where its replies are kept; None keeps them in memory only.
    concurrency : int
        How many questions it is asked at a time, at least 1.
    base_url, api_key : str or None
        For judges behind a server; each by default from the judge's own environment variables.

    Returns
    -------
    Ledger or None

    Raises
    ------
    InputError
        There is no such judge, it lacks something, or the ledger cannot be used.
    """
    if judge is None or judge == "none":
        return None
    opened = _named(judge, base_url, api_key) if isinstance(judge, str) else judge
    lacking = [part for part in ("name", "identity", "ask", "close") if not hasattr(opened, part)]
    if lacking:
        raise InputError(
            f"{type(opened).__name__} is no judge, it lacks {', '.join(lacking)}; "
            "name one, such as 'embedded', or see misslink.judging.protocol.Judge"
        )
    return Ledger(Throttle(opened, concurrency), ledger)


async def reachable(judge: Judge) -> None:
    """Ask nothing, but find out whether the judge could be asked; for use before an app is run.

    A ledger that holds replies of this judge (`Ledger.holds_any`) may need no judge at all, so ask
    it first. A judge that has no such check passes.

    Raises
    ------
    JudgeUnreachableError
        Nobody answers at its address, or it refuses the key.
    """
    check = getattr(_innermost(judge), "reachable", None)
    if check is not None:
        await check()


async def ping(judge: Judge) -> Ping:
    """Ask the judge one small question, past any ledger, and see what it can do.

    A judge behind a server is asked for one more token, to see whether it gives log-probabilities.

    Raises
    ------
    JudgeUnreachableError
        Nobody answers at its address, or it refuses the key or the model.
    """
    asked = _innermost(judge)
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


async def ping_spec(
    spec: str, *, base_url: str | None = None, api_key: str | None = None
) -> dict[str, Any]:
    """Open the judge `spec`, ping it and close it; return the fields of `Ping`.

    Raises
    ------
    InputError
        There is no such judge, or it lacks something.
    JudgeUnreachableError
        It cannot be asked.
    """
    judge = open_judge(spec, ledger=None, concurrency=1, base_url=base_url, api_key=api_key)
    if judge is None:
        raise InputError("--judge none asks nobody; say --judge embedded or --judge openai:MODEL")
    try:
        return asdict(await ping(judge))
    finally:
        await judge.close()


def _named(spec: str, base_url: str | None, api_key: str | None) -> Judge:
    name, _, argument = spec.strip().partition(":")
    if not name:
        raise InputError("no judge is named; say --judge embedded or --judge openai:MODEL")
    factory: Callable[..., Judge] = judges.get(name)
    given = {"base_url": base_url, "api_key": api_key}
    options = {option: value for option, value in given.items() if value is not None}
    taken = inspect.signature(factory).parameters
    takes_all = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in taken.values())
    for option in options:
        if not takes_all and option not in taken:
            raise InputError(f"the judge '{name}' has no {option}; leave it out")
    return factory(argument or None, **options)


def _innermost(judge: Judge) -> Judge:
    """The judge inside all wrappers, each of which keeps what it wraps as ``judge``."""
    inner: Judge | None = getattr(judge, "judge", None)
    return judge if inner is None else _innermost(inner)
