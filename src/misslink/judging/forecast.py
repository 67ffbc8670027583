"""What judging would ask and cost, before anything is asked."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from misslink.judging.batches.judge import InBatches
from misslink.judging.batches.saving import Saving, Sizes, saving
from misslink.judging.embedded import EmbeddedJudge
from misslink.judging.metric import JudgedMetric, Subject
from misslink.judging.opening import Opened
from misslink.judging.protocol import Ask, Judge, innermost
from misslink.judging.tokenrates import CHARACTERS, Rates, Spent, about, learn, simulated
from misslink.judging.wrappers.ledger import Ledger

__all__ = ["Forecast", "forecast"]

_SAMPLE = 100  # questions that are simulated
_EARLIER = 200  # replies of the ledger that are learned from
_SEED = 0


@dataclass(frozen=True)
class Forecast:
    """What judging would ask and cost.

    Parameters
    ----------
    calls : int
        Questions that would be put to the judge, those to repair a reply not among them.
    from_ledger : int
        Questions that the ledger answers.
    prompt_tokens, completion_tokens : int
        Of the calls.
    cost : float or None
        In the currency of the prices; None where there are none.
    basis : str
        How the tokens are estimated, as sentences.
    batch : Saving or None
        Where the judge is asked in batches: what that saves. `cost` is what it would be live.
    """

    calls: int
    from_ledger: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    basis: str
    batch: Saving | None = None


@dataclass
class _Wanted:
    """The questions of one schema that would be put, summed up; a few of them in whole."""

    schema: frozenset[str]
    calls: int = 0
    message_characters: int = 0
    schema_characters: int = 0
    sample: list[Ask] = field(default_factory=list)


async def forecast(
    subjects: Iterable[Subject],
    metrics: Sequence[JudgedMetric],
    judge: Opened | None,
    more: Iterable[Ask] = (),
) -> Forecast:
    """Say what judging `subjects` would ask and cost; the judge is asked nothing.

    Prompt tokens are a quarter of the characters of messages and schema, and completion tokens a
    quarter of those that the embedded judge would write, each times what earlier replies of this
    judge in the ledger teach. Some servers bill the answer schema and some do not, and nothing
    tells before a first reply: then about half of it is counted, so that the prompt is off by at
    most s / (2 + s), where s is the schema's length against the messages'. For an examination of
    four passages of 150 words that is 9 %. Where the ledger holds replies, they tell.

    Parameters
    ----------
    subjects : iterable of Subject
        Taken one by one, never held together.
    metrics : sequence of JudgedMetric
    judge : Opened or None
        With its ledger and its terms: repeats and prices. None: nothing is judged.
    more : iterable of Ask
        Questions that are likely to be put beside those of the metrics, each once.

    Returns
    -------
    Forecast
        All zero where nothing is to be asked.

    Raises
    ------
    InputError
        The ledger cannot be read.
    """
    if judge is None:
        return Forecast(0, 0, 0, 0, None, "no judge is asked")
    from_ledger = 0
    asked = next((each for each in _within(judge) if isinstance(each, InBatches)), None)
    sizes = None if asked is None else Sizes(asked)
    groups: dict[frozenset[str], _Wanted] = {}
    drawn = random.Random(_SEED)  # noqa: S311 (which questions are simulated is no secret)
    async for ask, held in _asks(subjects, metrics, judge):
        if held:
            from_ledger += 1
        else:
            _count(groups, ask, drawn, sizes)
    ledger = _ledger(judge)
    for ask in more:
        if ledger is not None and ledger.holds(ask):
            from_ledger += 1
        else:
            _count(groups, ask, drawn, sizes)
    calls = sum(group.calls for group in groups.values())
    if isinstance(innermost(judge), EmbeddedJudge):
        why = f"the judge {judge.name} is a program, which reads no prompt and bills nothing"
        return Forecast(calls, from_ledger, 0, 0, 0.0 if judge.price else None, why)
    schemas = {group.schema: _mean_schema(group) for group in groups.values()}
    rates = await learn(_earlier(judge), schemas)
    prompt = sum(
        rates.prompt(group.message_characters, group.schema_characters) for group in groups.values()
    )
    completion = rates.completion_factor * await _written(list(groups.values()))
    tokens = round(prompt), round(completion)
    price = judge.price
    cost = price.of(*tokens) if price else None
    return Forecast(
        calls=calls,
        from_ledger=from_ledger,
        prompt_tokens=tokens[0],
        completion_tokens=tokens[1],
        cost=cost,
        basis=_basis(rates, min(calls, _SAMPLE), calls, _off(groups, prompt)),
        batch=None if sizes is None else saving(sizes, calls, _bytes(groups, sizes), cost),
    )


async def _asks(
    subjects: Iterable[Subject], metrics: Sequence[JudgedMetric], judge: Opened
) -> AsyncIterator[tuple[Ask, bool]]:
    """Every question that would reach the ledger, once, and whether the ledger answers it."""
    ledger = _ledger(judge)
    put: set[tuple[str, int]] = set()
    for subject in subjects:
        wanted = (metric.ask(subject) for metric in metrics)
        shared = {ask.key: ask for ask in wanted if isinstance(ask, Ask)}
        for number in range(judge.terms.repeats):
            for first in shared.values():
                for ask in await _foreseen(judge, replace(first, repeat=number)):
                    which = (ask.key, ask.repeat)
                    again = which in put  # of the run itself: asked once, then in the ledger
                    put.add(which)
                    yield ask, again or (ledger is not None and ledger.holds(ask))


async def _foreseen(judge: Opened, ask: Ask) -> Sequence[Ask]:
    """What the wrappers around the ledger would make of `ask`: none, itself, or several."""
    asks: Sequence[Ask] = (ask,)
    for wrapper in _within(judge):
        foresee = getattr(wrapper, "foresee", None)
        if foresee is not None:
            asks = [put for each in asks for put in await foresee(each)]
    return asks


def _within(judge: Judge) -> Iterator[Judge]:
    """A judge and what it wraps, outermost first."""
    inner: Judge | None = judge
    while inner is not None:
        yield inner
        inner = getattr(inner, "judge", None)


def _ledger(judge: Judge) -> Ledger | None:
    return next((each for each in _within(judge) if isinstance(each, Ledger)), None)


def _earlier(judge: Opened) -> Sequence[Spent]:
    ledger = _ledger(judge)
    return [] if ledger is None else ledger.spent(_EARLIER)


def _count(
    groups: dict[frozenset[str], _Wanted], ask: Ask, drawn: random.Random, sizes: Sizes | None
) -> None:
    """Add a question to its group; every one has the same chance to be in the sample."""
    if sizes is not None:
        sizes.count(ask)
    fields = frozenset(ask.schema.model_fields)
    group = groups.setdefault(fields, _Wanted(fields))
    messages = sum(len(message["content"]) for message in ask.messages)
    group.calls += 1
    group.message_characters += messages
    group.schema_characters += ask.characters - messages
    if len(group.sample) < _SAMPLE:
        group.sample.append(ask)
    else:
        place = drawn.randrange(group.calls)
        if place < _SAMPLE:
            group.sample[place] = ask


def _bytes(groups: dict[frozenset[str], _Wanted], sizes: Sizes) -> int:
    return sum(sizes.bytes(group.calls, group.sample) for group in groups.values())


def _mean_schema(group: _Wanted) -> float:
    return group.schema_characters / group.calls


async def _written(groups: Sequence[_Wanted]) -> float:
    """Tokens that would be written, by what the embedded judge writes to the sample.

    What it cannot answer is taken to be as long as the rest, measured by the text it is about.
    """
    written = covered = total = unknown = 0.0
    for group in groups:
        sizes = [(await simulated(ask.inputs), about(ask.inputs)) for ask in group.sample]
        told = [(length, size) for length, size in sizes if length is not None]
        if told:
            total += group.calls * sum(length for length, _ in told) / len(told)
            written += sum(length for length, _ in told)
            covered += sum(size for _, size in told)
        else:
            unknown += group.calls * sum(size for _, size in sizes) / len(sizes)
    rate = written / covered if covered else 1.0
    return (total + rate * unknown) / CHARACTERS


def _off(groups: dict[frozenset[str], _Wanted], prompt: float) -> float:
    """How far off so many prompt tokens may be, as a share, for want of knowing what is billed."""
    messages = sum(group.message_characters for group in groups.values()) / CHARACTERS
    whole = messages + sum(group.schema_characters for group in groups.values()) / CHARACTERS
    return max(prompt / messages - 1, 1 - prompt / whole) if messages else 0.0


def _basis(rates: Rates, simulated_calls: int, calls: int, off: float) -> str:
    if not calls:
        return "nothing is to be asked"
    prompts = (
        f"prompt tokens as {rates.prompts} earlier replies of this judge counted them"
        if rates.prompts
        else f"prompt tokens are characters / {CHARACTERS} of the messages and about half of the "
        f"answer schema, which some servers bill and some do not: up to {off:.0%} more or less"
    )
    simulation = f"what the embedded judge writes to {simulated_calls} of {calls} questions"
    completions = (
        f"completion tokens are {simulation}, scaled to {rates.completions} earlier replies"
        if rates.completions
        else f"completion tokens are {simulation}, characters / {CHARACTERS}"
    )
    return f"{prompts}; {completions}; calls to repair a reply are not foreseen"
