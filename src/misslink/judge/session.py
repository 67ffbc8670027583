"""Open a judge from its name, with cache, budget, throttle, and repair around it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from misslink.calibration_document import JudgeUsage
from misslink.documents import Cascade, CascadeStage, Judging
from misslink.errors import InputError, JudgeUnreachableError
from misslink.io.manifest import display_path
from misslink.judge.backends.custom import as_judge, foreign_options, load_custom_judge
from misslink.judge.backends.heuristic import HeuristicJudge
from misslink.judge.batch.judge import BatchJudge
from misslink.judge.config import DEFAULT_CACHE, DEFAULTS, JudgeConfig, Price, is_custom_judge
from misslink.judge.middleware.budget import BudgetedJudge, Ledger
from misslink.judge.middleware.cache import CachedJudge, CacheUsage
from misslink.judge.middleware.cascade import CascadeJudge, parse_cascade_spec, stage_band
from misslink.judge.middleware.long_context import LongContextJudge
from misslink.judge.middleware.repair import RepairingJudge
from misslink.judge.middleware.throttle import ThrottledJudge
from misslink.judge.prompts import Prompts
from misslink.judge.protocol import (
    Ask,
    Judge,
    JudgeInfo,
    JudgeLayer,
    Reply,
    SkippedAskError,
    judge_info,
)
from misslink.registry import judges


class JudgeState(NamedTuple):
    """What a session reports, also of one in another process."""

    usage: JudgeUsage
    cascade: Cascade | None
    not_asked: int
    stopped_by: str | None
    info: JudgeInfo


@dataclass(frozen=True)
class JudgeSpec:
    """A judge with its configuration, concurrency, response cache, and the ledger of the run's caps.

    ``named`` is what it is opened by; of a cascade all of it, while the rest is of the judge alone.
    """

    named: str | Judge
    judge: Judge
    spec: str | None
    terms: JudgeConfig
    concurrency: int
    cache: Path | None
    ledger: Ledger


def with_limits(spec: JudgeSpec) -> Judge:
    """Return the judge with its budget and its throttle around it."""
    budget = BudgetedJudge(spec.judge, spec.terms, spec.ledger)
    return ThrottledJudge(budget, spec.concurrency, spec.terms)


_JUDGE_OPTIONS = "base_url", "api_key", "temperature"
_JUDGE_HINTS = "max_tokens", "context_length"  # for judges that can use them


class JudgeSession(JudgeLayer):
    """A judge with everything around it, ready to be asked; `open_judge` makes one.

    Parameters
    ----------
    judge : Judge
        The outermost wrapper.
    cache : Cache
        The one in it that counts.
    terms : JudgeConfig
    stages : mapping of str to CachedJudge
        The caches of a cascade's earlier judges that cost something, by judge.

    Attributes
    ----------
    not_asked : int
        Questions that were not put, on purpose: the budget or the time of the run is used up.
    stopped_by : str or None
        Why the first of them was not put.
    batches : BatchJudge or None
        The judge that asks in batches, where one does.
    elsewhere : JudgeState or None
        That of the session in another process that was asked in place of this one.
    """

    def __init__(
        self,
        judge: Judge,
        cache: CachedJudge,
        terms: JudgeConfig,
        stages: Mapping[str, CachedJudge],
    ) -> None:
        super().__init__(judge)
        self.terms = terms
        self.not_asked = 0
        self.stopped_by: str | None = None
        self.elsewhere: JudgeState | None = None
        self.cache = cache
        self.readings = cache.readings  # what was read from the replies before
        self.batches = cache.judge if isinstance(cache.judge, BatchJudge) else None
        self._stages = stages

    async def ask(self, ask: Ask) -> Reply:
        """Answer `ask`, as `Judge.ask`."""
        try:
            return await self.judge.ask(ask)
        except SkippedAskError as skipped:
            self.not_asked += 1
            self.stopped_by = self.stopped_by or str(skipped)
            raise

    def about(self, spec: str | None) -> Judging:
        """Return how the run was judged; `spec` is where a judge of the user's own is from.

        ``abilities`` of the judge where it found any out; the settings that change replies.
        """
        terms = self.terms
        abilities = judge_info(self.judge).abilities
        return Judging(
            abilities=None if abilities is None else dict(abilities),
            price_in=terms.price_in,
            price_out=terms.price_out,
            batch_price=self.batches and self.batches.share,
            prompts=None if terms.prompts is None else display_path(terms.prompts),
            repeats=terms.repeats,
            spec=spec,
        )

    def cascade(self) -> Cascade | None:
        """Return which judge of a cascade answered what; None for any other judge.

        ``stages`` has, by judge, how many questions it was ``sure`` of (the last one: answered), its
        ``agreement`` with the judges after it, and its usage and cost where its replies cost something.
        """
        if self.elsewhere is not None:
            return self.elsewhere.cascade
        if not isinstance(self.judge, CascadeJudge):
            return None
        whole = self.judge.summary()
        stages: dict[str, CascadeStage] = {}
        layer: Judge = self.judge
        while isinstance(layer, CascadeJudge):
            name, of_stage = layer.cheap.name, layer.summary()
            cache = self._stages.get(name)
            used = cache.usage() if cache else CacheUsage()  # its replies cost nothing
            stages[name] = CascadeStage(
                sure=of_stage.sure, agreement=of_stage.agreement, **used._asdict()
            )
            layer = layer.judge
        answered, used = whole.seen_by.get(layer.name, 0), self.cache.usage()
        stages[layer.name] = CascadeStage(sure=answered, agreement=None, **used._asdict())
        return whole.replace(stages=stages)

    async def check_reachable(self) -> None:
        """Check before an app is run whether the judge can be reached; asks no question.

        Passes where the response cache has replies, since the judge may not be needed, and where the
        judge has no such check.

        Raises
        ------
        JudgeUnreachableError
            The server does not answer, or refuses the key.
        """
        info = judge_info(self.judge)
        check = info.check_reachable
        is_known = info.abilities != {}
        if check is None or (is_known and self.cache.has_replies()):
            return
        try:
            await check()
        except JudgeUnreachableError:
            if not self.cache.has_replies():
                raise

    @property
    def price(self) -> Price | None:
        """What tokens cost: as configured, else as the server says."""
        return self.terms.price or judge_info(self.judge).price

    def usage(self) -> JudgeUsage:
        """Return calls, tokens, cache hits, and cost where prices are known, of all stages.

        Where questions are sent in batches, ``in_batches`` is the number of calls in batches.
        """
        if self.elsewhere is not None:
            return self.elsewhere.usage
        caches, batches = [*self._stages.values(), self.cache], self.batches
        spent = zip(*(cache.usage() for cache in caches), strict=True)
        # The sum of each; None where a part of it is not known.
        total = CacheUsage._make(None if None in parts else sum(parts) for parts in spent)
        cost = total.cost
        if cost is not None and batches is not None and self.price is not None:
            cost -= batches.saved(self.price)
        return JudgeUsage(
            **total._replace(cost=cost)._asdict(),
            not_asked=self.not_asked,
            stopped_by=self.stopped_by,
            in_batches=batches and batches.questions,
            generations=None,
            generations_kept=None,
        )


def open_judge(
    judge: str | Judge | None,
    *,
    cache: Path | None,
    concurrency: int,
    terms: JudgeConfig = DEFAULTS,
    reach: Callable[[JudgeSpec], Judge] = with_limits,
) -> JudgeSession | None:
    """Open a judge with its budget, throttle, and response cache.

    Parameters
    ----------
    judge : str, Judge or None
        ``NAME`` or ``NAME:ARGUMENT``, such as ``heuristic`` or ``openai:MODEL``;
        ``cascade:CHEAP,EXPENSIVE``, where address, key and temperature apply to the last judge,
        and the caps on calls and cost to all judges together;
        ``FILE.py:NAME``; or a judge object. None and ``none`` open nothing.
    cache : Path or None
        Where replies are stored. None and ``none``: in memory only.
    concurrency : int
        Questions at a time, at least 1.
    terms : JudgeConfig
    reach : callable
        Makes what the cache asks where it has no reply; an engine has its own.

    Raises
    ------
    InputError
        There is no such judge, it lacks something, or the cache cannot be used.
    """
    if judge is None or judge == "none":
        return None
    if cache == Path("none"):
        cache = None
    prompts = Prompts.from_spec(terms.prompts)
    ledger, named = Ledger(), judge

    def wrap(
        judge: str | Judge, terms: JudgeConfig, reach: Callable[[JudgeSpec], Judge]
    ) -> tuple[Judge, CachedJudge]:
        """One judge with everything around it, and the cache among that."""
        spec = judge if isinstance(judge, str) else None
        bare = create_judge(judge, terms)
        limited = reach(JudgeSpec(named, bare, spec, terms, concurrency, cache, ledger))
        # Batches are shared between processes by their own record.
        claims = not isinstance(limited, BatchJudge)
        cached = CachedJudge(limited, cache, terms, claims=claims)
        return LongContextJudge(
            RepairingJudge(cached, cached.readings), prompts, terms.context_length
        ), cached

    name, _, argument = judge.strip().partition(":") if isinstance(judge, str) else ("", "", "")
    *earlier, last = parse_cascade_spec(argument) if name == "cascade" else [judge]
    around, cached = wrap(last, terms, reach)
    stages: dict[str, CachedJudge] = {}
    for spec in reversed(earlier):
        cheap = create_judge(spec, DEFAULTS)
        band = stage_band(cheap)
        if not isinstance(cheap, HeuristicJudge):
            limits = replace(terms, base_url=None, api_key=None, temperature=None)
            cheap, stages[cheap.name] = wrap(cheap, limits, with_limits)
        around = CascadeJudge(cheap, around, band=band, audit=terms.cascade_check)
    return JudgeSession(around, cached, terms, stages)


def require_judge(judge: JudgeSession | None) -> JudgeSession:
    """Return a session; raise InputError where there is none."""
    if judge is None:
        raise InputError(
            "--judge none makes no model calls. Use --judge heuristic or --judge openai:MODEL."
        )
    return judge


@asynccontextmanager
async def open_needed_judge(
    spec: str | Judge,
    *,
    cache: Path | None,
    concurrency: int,
    terms: JudgeConfig,
    dry_run: bool = False,
) -> AsyncIterator[JudgeSession]:
    """Open a judge that is needed, check that it can be reached, and close it at the end.

    Takes the parameters of `open_judge`, but without `cache` the default one is used, as in commands.
    In a dry run it is asked nothing, so it need not be reached.

    Raises
    ------
    InputError
        As `open_judge`; or `spec` is ``none``.
    JudgeUnreachableError
        The server does not answer, or refuses the key.
    """
    judge = require_judge(
        open_judge(spec, cache=cache or DEFAULT_CACHE, concurrency=concurrency, terms=terms)
    )
    try:
        if not dry_run:
            await judge.check_reachable()
        yield judge
    finally:
        await judge.close()


def create_judge(judge: str | Judge, terms: JudgeConfig) -> Judge:
    """Return the judge itself, checked to be one, with nothing around it.

    Raises
    ------
    InputError
        There is no such judge, or it lacks something.
    """
    if isinstance(judge, str):
        return as_judge(_create_by_name(judge, terms), judge)
    return as_judge(judge, "the object given as judge")


def _create_by_name(spec: str, terms: JudgeConfig) -> Judge:
    given = {option: getattr(terms, option) for option in (*_JUDGE_OPTIONS, *_JUDGE_HINTS)}
    options = {option: value for option, value in given.items() if value is not None}
    if is_custom_judge(spec):
        return load_custom_judge(spec, options)
    name, _, argument = spec.strip().partition(":")
    if not name:
        raise InputError("no judge is named; add --judge heuristic or --judge openai:MODEL")
    factory: Callable[..., Judge] = judges.get(name)
    for option in foreign_options(factory, options):
        if option not in _JUDGE_HINTS:
            raise InputError(f"the judge '{name}' has no {option}; leave it out")
        del options[option]  # what goes around the judge knows it
    return factory(argument or None, **options)
