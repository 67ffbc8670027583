"""From ``NAME:ARGUMENT`` to a judge that can be asked."""

from __future__ import annotations

import inspect
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from misslink.errors import InputError, JudgeUnreachableError
from misslink.judging.batches.judge import InBatches
from misslink.judging.models.own import is_own, load_judge
from misslink.judging.protocol import Ask, Judge, NotAskedError, Reply, innermost
from misslink.judging.reaching import Asked, within_limits
from misslink.judging.terms import Price, Terms
from misslink.judging.wrappers.cascade import Cascade, band_of, split
from misslink.judging.wrappers.ledger import Ledger
from misslink.judging.wrappers.ledger_file import DEFAULT_LEDGER
from misslink.judging.wrappers.parts import InParts
from misslink.judging.wrappers.repair import Repair
from misslink.manifest import shown_path
from misslink.prompting import Prompts
from misslink.registry import judges
from misslink.types import Estimate

__all__ = ["Opened", "bare_judge", "open_judge", "ready_judge"]

_LACKING = "name", "identity", "ask", "close"
_OPTIONS = "base_url", "api_key", "temperature"
_HINTS = "max_tokens", "context_length"  # for judges that can use them


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
            **({} if self._batches is None else {"batch_price": self._batches.share}),
        }

    def cascade(self) -> dict[str, Any]:
        """Who answered what, of a cascade; empty for any other judge."""
        if not isinstance(self.judge, Cascade):
            return {}
        return {
            name: value.model_dump() if isinstance(value, Estimate) else value
            for name, value in self.judge.summary().items()
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
        inner = innermost(self.judge)
        check = getattr(inner, "reachable", None)
        known = bool(getattr(inner, "abilities", True))
        if check is None or (known and self._ledger.holds_any()):
            return
        try:
            await check()
        except JudgeUnreachableError:
            if not self._ledger.holds_any():
                raise

    @property
    def price(self) -> Price | None:
        """What tokens cost: as given, else as the judge's server says."""
        return self.terms.price or getattr(innermost(self.judge), "price", None)

    def usage(self) -> dict[str, Any]:
        """What was spent: calls, tokens, what the ledger gave, and cost where prices are known.

        Where questions go out in batches, ``in_batches`` says how many of the calls did.
        """
        spent: dict[str, Any] = self._ledger.usage()
        price, batches = self.price, self._batches
        prompt, completion = spent["prompt_tokens"], spent["completion_tokens"]
        cost = None
        if price is not None and prompt is not None and completion is not None:
            cost = price.of(prompt, completion) - (batches.saved(price) if batches else 0.0)
        in_batches = {} if batches is None else {"in_batches": batches.questions}
        return {**spent, **in_batches, "not_asked": self.not_asked, "cost": cost}

    @property
    def _batches(self) -> InBatches | None:
        asked = self._ledger.judge
        return asked if isinstance(asked, InBatches) else None

    async def close(self) -> None:
        """Close the judge and its files; calls in flight may come home first."""
        await self.judge.close()


def open_judge(
    judge: str | Judge | None,
    *,
    ledger: Path | None,
    concurrency: int,
    terms: Terms | None = None,
    reach: Callable[[Asked], Judge] = within_limits,
) -> Opened | None:
    """Open a judge, with its budget, throttle and ledger around it.

    Parameters
    ----------
    judge : str, Judge or None
        ``NAME`` or ``NAME:ARGUMENT``, such as ``embedded`` or ``openai:MODEL``;
        ``cascade:CHEAP,DEAR``, to which the terms apply where it is the dear one's turn;
        ``FILE.py:NAME``, or a judge of your own. None and ``none`` open nothing.
    ledger : Path or None
        Where its replies are kept; None keeps them in memory only.
    concurrency : int
        How many questions it is asked at a time, at least 1.
    terms : Terms or None
    reach : callable
        Makes what the ledger asks where it holds no reply; an engine has one of its own.

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
    prompts = Prompts.of(terms.prompts)
    name, _, argument = judge.strip().partition(":") if isinstance(judge, str) else ("", "", "")
    if name != "cascade":
        around, kept = _wrapped(judge, ledger, concurrency, terms, prompts, reach)
        return Opened(around, kept, terms)
    cheap_spec, dear_spec = split(argument)
    cheap = bare_judge(cheap_spec, Terms())
    around, kept = _wrapped(dear_spec, ledger, concurrency, terms, prompts, reach)
    cascade = Cascade(cheap, around, band=band_of(cheap.name), audit=terms.audit)
    return Opened(cascade, kept, terms)


@asynccontextmanager
async def ready_judge(
    spec: str, *, ledger: Path | None, concurrency: int, terms: Terms
) -> AsyncIterator[Opened]:
    """Open a judge that is needed, see that it can be asked, and close it in the end.

    Parameters
    ----------
    spec, ledger, concurrency, terms
        As of `open_judge`, but that no `ledger` means the default one, as in commands.

    Raises
    ------
    InputError
        As `open_judge`; or `spec` is ``none``.
    JudgeUnreachableError
        Nobody answers, or the key is refused.
    """
    judge = open_judge(spec, ledger=ledger or DEFAULT_LEDGER, concurrency=concurrency, terms=terms)
    if judge is None:
        raise InputError("--judge none asks nobody; name one, such as --judge openai:MODEL")
    try:
        await judge.reachable()
        yield judge
    finally:
        await judge.close()


def _wrapped(
    judge: str | Judge,
    ledger: Path | None,
    concurrency: int,
    terms: Terms,
    prompts: Prompts,
    reach: Callable[[Asked], Judge],
) -> tuple[Judge, Ledger]:
    """One judge with everything around it, and the ledger among that."""
    spec = judge if isinstance(judge, str) else None
    asked = reach(Asked(bare_judge(judge, terms), spec, terms, concurrency, ledger))
    kept = Ledger(asked, ledger)
    return InParts(Repair(kept), prompts, terms.context_length), kept


def bare_judge(judge: str | Judge, terms: Terms) -> Judge:
    """Return the judge itself, checked to be one, with nothing around it.

    Raises
    ------
    InputError
        There is no such judge, or it lacks something.
    """
    bare = _named(judge, terms) if isinstance(judge, str) else judge
    lacking = [part for part in _LACKING if not hasattr(bare, part)]
    if lacking:
        raise InputError(
            f"{type(bare).__name__} is no judge, it lacks {', '.join(lacking)}; "
            "name one, such as 'embedded', or see misslink.judging.protocol.Judge"
        )
    try:
        json.dumps(dict(bare.identity))
    except (TypeError, ValueError):
        raise InputError(
            f"the judge {bare.name} has an identity that is no JSON; use texts, numbers and lists"
        ) from None
    return bare


def _named(spec: str, terms: Terms) -> Judge:
    given = {option: getattr(terms, option) for option in (*_OPTIONS, *_HINTS)}
    options = {option: value for option, value in given.items() if value is not None}
    if is_own(spec):
        return load_judge(spec, options)
    name, _, argument = spec.strip().partition(":")
    if not name:
        raise InputError("no judge is named; say --judge embedded or --judge openai:MODEL")
    factory: Callable[..., Judge] = judges.get(name)
    taken = inspect.signature(factory).parameters
    takes_all = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in taken.values())
    for option in [option for option in options if not takes_all and option not in taken]:
        if option not in _HINTS:
            raise InputError(f"the judge '{name}' has no {option}; leave it out")
        del options[option]  # what goes around the judge knows it
    return factory(argument or None, **options)
