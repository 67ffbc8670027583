"""From ``NAME:ARGUMENT`` to a judge that can be asked."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from misslink.errors import InputError
from misslink.judging.protocol import Ask, Judge, NotAskedError, Reply
from misslink.judging.terms import Terms
from misslink.judging.wrappers.ledger import Ledger
from misslink.judging.wrappers.throttle import Throttle
from misslink.manifest import shown_path
from misslink.registry import judges

__all__ = ["Opened", "innermost", "open_judge"]

_LACKING = "name", "identity", "ask", "close"
_OPTIONS = "base_url", "api_key", "temperature", "max_tokens", "context_length"


class Opened:
    """A judge with everything around it, ready to be asked; `open_judge` makes one.

    Parameters
    ----------
    judge : Judge
        The outermost wrapper.
    ledger : Ledger
        The one in it that counts.
    terms : Terms

    Attributes
    ----------
    name, identity, note
        The judge's own.
    not_asked : int
        Questions that were not put, on purpose: the budget or the time of the run is used up.
    """

    def __init__(self, judge: Judge, ledger: Ledger, terms: Terms) -> None:
        self.judge = judge
        self.name = judge.name
        self.identity = judge.identity
        self.note: str | None = getattr(judge, "note", None)
        self.terms = terms
        self.not_asked = 0
        self._ledger = ledger

    async def ask(self, ask: Ask) -> Reply:
        """Answer `ask`, as `Judge.ask`."""
        try:
            return await self.judge.ask(ask)
        except NotAskedError:
            self.not_asked += 1
            raise

    def about(self) -> dict[str, Any]:
        """What a reader of the run must know of how it was judged, as JSON values.

        ``abilities`` of the judge where it found any out; the terms that change what is said.
        """
        terms = self.terms
        return {
            "abilities": getattr(innermost(self.judge), "abilities", None),
            "repeats": terms.repeats,
            "prompts": None if terms.prompts is None else shown_path(terms.prompts),
            "price_in": terms.price_in,
            "price_out": terms.price_out,
        }

    async def reachable(self) -> None:
        """Ask nothing, but find out whether the judge could be asked; for use before an app is run.

        A judge of which the ledger holds replies may not be needed at all and passes, and so does
        one that has no such check.

        Raises
        ------
        JudgeUnreachableError
            Nobody answers at its address, or it refuses the key.
        """
        check = getattr(innermost(self.judge), "reachable", None)
        if check is not None and not self._ledger.holds_any():
            await check()

    def usage(self) -> dict[str, Any]:
        """What was spent: calls, tokens, what the ledger gave, and cost where prices are known."""
        spent: dict[str, Any] = self._ledger.usage()
        price, prompt, completion = (
            self.terms.price,
            spent["prompt_tokens"],
            spent["completion_tokens"],
        )
        known = price is not None and prompt is not None and completion is not None
        return {
            **spent,
            "not_asked": self.not_asked,
            "cost": price.of(prompt, completion) if price and known else None,
        }

    async def close(self) -> None:
        """Close the judge and its files; calls in flight may come home first."""
        await self.judge.close()


def open_judge(
    judge: str | Judge | None,
    *,
    ledger: Path | None,
    concurrency: int,
    terms: Terms | None = None,
) -> Opened | None:
    """Open a judge, with its budget, throttle and ledger around it.

    Parameters
    ----------
    judge : str, Judge or None
        ``NAME`` or ``NAME:ARGUMENT``, such as ``embedded`` or ``openai:MODEL``, or a judge of your
        own. None and ``none`` open nothing.
    ledger : Path or None
        Where its replies are kept; None keeps them in memory only.
    concurrency : int
        How many questions it is asked at a time, at least 1.
    terms : Terms or None

    Returns
    -------
    Opened or None

    Raises
    ------
    InputError
        There is no such judge, it lacks something, or the ledger cannot be used.
    """
    terms = terms or Terms()
    if judge is None or judge == "none":
        return None
    bare = _named(judge, terms) if isinstance(judge, str) else judge
    lacking = [part for part in _LACKING if not hasattr(bare, part)]
    if lacking:
        raise InputError(
            f"{type(bare).__name__} is no judge, it lacks {', '.join(lacking)}; "
            "name one, such as 'embedded', or see misslink.judging.protocol.Judge"
        )
    kept = Ledger(Throttle(bare, concurrency), ledger)
    return Opened(kept, kept, terms)


def innermost(judge: Judge) -> Judge:
    """Return the judge inside all wrappers, each of which keeps what it wraps as ``judge``."""
    inner: Judge | None = getattr(judge, "judge", None)
    return judge if inner is None else innermost(inner)


def _named(spec: str, terms: Terms) -> Judge:
    name, _, argument = spec.strip().partition(":")
    if not name:
        raise InputError("no judge is named; say --judge embedded or --judge openai:MODEL")
    factory: Callable[..., Judge] = judges.get(name)
    given = {option: getattr(terms, option) for option in _OPTIONS}
    options = {option: value for option, value in given.items() if value is not None}
    taken = inspect.signature(factory).parameters
    takes_all = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in taken.values())
    for option in options:
        if not takes_all and option not in taken:
            raise InputError(f"the judge '{name}' has no {option}; leave it out")
    return factory(argument or None, **options)
