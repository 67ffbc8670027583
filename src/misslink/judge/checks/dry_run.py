"""Forecast the calls, tokens, and cost of judging before any call is made."""

from __future__ import annotations

import json
import random
import re
import statistics
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from misslink.documents import DEFAULT_K, manifest_of
from misslink.judge.backends.decision_questions import DecisionTask
from misslink.judge.backends.decisions import LIMITS
from misslink.judge.backends.heuristic import HeuristicJudge, open_heuristic
from misslink.judge.batch.judge import BatchSavings
from misslink.judge.examination import examine
from misslink.judge.judged_metric import JudgedMetric, Subject
from misslink.judge.protocol import Ask, judge_info, layers, schema_json, unwrap_judge
from misslink.judge.session import JudgeSession
from misslink.parts import by_case
from misslink.types import Run

CHARACTERS_PER_TOKEN = 4  # about right for English in every language model
_SAMPLE_SIZE = 100  # asks whose replies are simulated
_ESTIMATE_SIZE = 50  # cases that the tokens of a run are estimated from
_MAX_EARLIER = 200  # cached replies to learn from
_FENCED = re.compile(r"<(\w+) ([a-p]+)>\n(.*?)\n</\1 \2>", re.DOTALL)
_NUMBERED = re.compile(r"(passage|reference|history)_\d+(?:_(\w+))?\Z")
_EXAMINATION_INPUTS = {"question", "passages", "answer"}
_KNOWN_INPUTS = _EXAMINATION_INPUTS | {"references", "history", "criteria"}


@dataclass(frozen=True)
class JudgingForecast:
    """The calls, tokens, and cost of judging.

    Parameters
    ----------
    calls : int
        Questions for the judge, without those that repair a reply.
    from_cache : int
        Questions that the response cache answers.
    prompt_tokens, completion_tokens : int
        Of the calls.
    cost : float or None
        In the currency of the prices; None without prices.
    basis : str
        How the tokens are estimated, as sentences.
    batch : BatchSavings or None
        What asking in batches saves; `cost` is the cost of live calls.
    """

    calls: int
    from_cache: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    basis: str
    batch: BatchSavings | None = None


@dataclass
class _AskGroup:
    """The asks of one schema, summed up, with a random sample of them."""

    calls: int = 0
    characters: float = 0.0
    sample: list[Ask] = field(default_factory=list)

    def add(self, ask: Ask, rng: random.Random, characters: float) -> None:
        """Count an ask of so many characters; every ask has the same chance to be in the sample."""
        self.calls += 1
        self.characters += characters
        if len(self.sample) < _SAMPLE_SIZE:
            self.sample.append(ask)
        elif (index := rng.randrange(self.calls)) < _SAMPLE_SIZE:
            self.sample[index] = ask


class _TokenRates(NamedTuple):
    """Tokens per estimated token, as the median of so many earlier replies; 1 of none."""

    prompt: float
    prompts: int
    completion: float
    completions: int


async def forecast_judging(
    subjects: Iterable[Subject],
    metrics: Sequence[JudgedMetric],
    judge: JudgeSession | None,
    more: Iterable[Ask] = (),
) -> JudgingForecast:
    """Forecast the calls, tokens, and cost of judging `subjects`, without calling the judge.

    Prompt tokens are a quarter of the characters of the messages and of half of the schema, which
    some servers bill and some do not. Completion tokens are a quarter of those that the heuristic
    judge would write. Both are scaled by what earlier replies of this judge in the response cache show.

    Parameters
    ----------
    subjects : iterable of Subject
        Consumed one by one.
    metrics : sequence of JudgedMetric
    judge : JudgeSession or None
        None: nothing is judged.
    more : iterable of Ask
        Likely questions beside those of the metrics, each once.

    Raises
    ------
    InputError
        The cache cannot be read.
    """
    if judge is None:
        return JudgingForecast(0, 0, 0, 0, None, "no judge is used")
    batch = judge.batches
    sent_characters = judge_info(judge).request_characters
    groups: dict[frozenset[str], _AskGroup] = {}
    rng = random.Random(0)  # noqa: S311 (which asks are simulated is no secret)
    from_cache = submitted = 0
    async for ask, is_repeated in _planned_asks(subjects, metrics, judge, more):
        if is_repeated or judge.cache.is_cached(ask):
            from_cache += 1
            continue
        submitted += batch is not None and batch.is_submitted(ask)
        length = sent_characters(ask) if sent_characters else _billed_characters(ask)
        groups.setdefault(frozenset(ask.schema.model_fields), _AskGroup()).add(ask, rng, length)
    calls = sum(group.calls for group in groups.values())
    if isinstance(unwrap_judge(judge), HeuristicJudge):
        basis = f"the judge {judge.name} is a program: it reads no prompt and costs nothing"
        return JudgingForecast(calls, from_cache, 0, 0, 0.0 if judge.price else None, basis)
    characters = sum(group.characters for group in groups.values())
    prompt = characters / CHARACTERS_PER_TOKEN
    if sent_characters is not None:
        cost = judge.price.cost(round(prompt), 0) if judge.price else None
        basis = f"characters / {CHARACTERS_PER_TOKEN} of texts and questions; answers cost nothing"
        return JudgingForecast(calls, from_cache, round(prompt), 0, cost, basis)
    schemas = {fields: len(schema_json(of.sample[0].schema)) for fields, of in groups.items()}
    rates = await _learn_rates(judge.cache.past_usage(_MAX_EARLIER), schemas)
    prompt *= rates.prompt
    completion = rates.completion * await _completion_tokens(groups.values())
    tokens = round(prompt), round(completion)
    cost = judge.price.cost(*tokens) if judge.price else None
    savings = None
    if batch is not None:
        size = sum(
            group.calls * statistics.fmean(map(batch.line_bytes, group.sample))
            for group in groups.values()
        )
        savings = batch.forecast(calls, submitted, round(size), cost)
    unsure = sum(group.calls * schemas[fields] for fields, group in groups.items()) / 2
    basis = _basis(rates, calls, unsure / (characters - unsure) if calls else 0.0)
    return JudgingForecast(calls, from_cache, *tokens, cost, basis, savings)


def estimate_run_tokens(run: Run) -> tuple[int, int, int]:
    """Estimate what it takes to judge a run with a model, from at most 50 of its cases.

    Returns
    -------
    calls, prompt_tokens, decision_tokens : int
        Cases that can be judged, and the tokens that a language model or a decision model reads.
    """
    traces, k = by_case(run.traces), manifest_of(run).k or DEFAULT_K
    subjects = (Subject(case, traces[case.id], k) for case in run.cases if case.id in traces)
    asks = [ask for subject in subjects if isinstance(ask := subject.examination, Ask)]
    sample = asks[:: max(1, len(asks) // _ESTIMATE_SIZE)]
    scale = len(asks) / max(1, len(sample)) / CHARACTERS_PER_TOKEN
    chat = sum(ask.characters for ask in sample)
    decisions = sum(DecisionTask(ask, LIMITS["choices"]).characters for ask in sample)
    return len(asks), round(scale * chat), round(scale * decisions)


async def _planned_asks(
    subjects: Iterable[Subject],
    metrics: Sequence[JudgedMetric],
    judge: JudgeSession,
    more: Iterable[Ask],
) -> AsyncIterator[tuple[Ask, bool]]:
    """Every ask that would reach the cache, and whether the run itself has asked it before."""
    seen: set[tuple[str, int]] = set()
    for subject in subjects:
        asks = [ask for metric in metrics if isinstance(ask := metric.ask(subject), Ask)]
        unique = {ask.key: ask for ask in asks}.values()
        for repeat in range(judge.terms.repeats):
            for ask in unique:
                expanded = [replace(ask, repeat=repeat)]
                for layer in layers(judge):  # middleware may split an ask, or drop it
                    if planned_asks := getattr(layer, "planned_asks", None):
                        expanded = [
                            part for whole in expanded for part in await planned_asks(whole)
                        ]
                for part in expanded:
                    key = part.key, part.repeat
                    yield part, key in seen
                    seen.add(key)
    for ask in more:
        yield ask, False


async def _completion_tokens(groups: Iterable[_AskGroup]) -> float:
    """Tokens that would be written, by what the heuristic judge writes to the samples.

    Replies that it cannot write are taken to be as long as the others, relative to their texts.
    """
    simulated_length = simulated_text = total = text_without_simulation = 0.0
    for group in groups:
        sizes = [(await simulate_reply(ask.inputs), _text_length(ask)) for ask in group.sample]
        known_sizes = [(length, text) for length, text in sizes if length is not None]
        if known_sizes:
            total += group.calls * statistics.fmean(length for length, _ in known_sizes)
            simulated_length += sum(length for length, _ in known_sizes)
            simulated_text += sum(text for _, text in known_sizes)
        else:
            text_without_simulation += group.calls * statistics.fmean(text for _, text in sizes)
    rate = simulated_length / simulated_text if simulated_text else 1.0
    return (total + rate * text_without_simulation) / CHARACTERS_PER_TOKEN


def _text_length(ask: Ask) -> int:
    """Characters of the answer and its references; without any, of the question."""
    references = ask.inputs.get("references") or ()
    length = len(str(ask.inputs.get("answer") or "")) + sum(len(str(text)) for text in references)
    return length or len(str(ask.inputs.get("question") or ""))


async def simulate_reply(inputs: Mapping[str, Any]) -> int | None:
    """Characters of the JSON that the heuristic judge would answer; None where it cannot."""
    if not _EXAMINATION_INPUTS <= set(inputs) <= _KNOWN_INPUTS:
        return None
    reply = await open_heuristic().ask(examine(**inputs))
    return len(reply.parsed.model_dump_json()) if reply.parsed else None


def _billed_characters(ask: Ask) -> float:
    """Characters of the messages and half of the schema, which some servers bill and some do not."""
    return ask.characters - len(schema_json(ask.schema)) / 2


async def _learn_rates(
    rows: Iterable[tuple[str, str, int | None, int | None]], schemas: Mapping[frozenset[str], int]
) -> _TokenRates:
    """Learn from cached replies: messages and reply as JSON, prompt and completion tokens.

    A reply is matched with the length of its schema by its fields.
    """
    prompts, completions = list[float](), list[float]()
    for messages, reply, prompt_tokens, completion_tokens in rows:
        try:
            contents = [str(message["content"]) for message in json.loads(messages)]
            schema = schemas.get(frozenset(json.loads(reply)))
        except (ValueError, TypeError, KeyError):
            continue
        if not contents or schema is None:  # None: a question that is not asked now
            continue
        if prompt_tokens:
            prompts.append(prompt_tokens / (sum(map(len, contents)) + schema / 2))
        if completion_tokens and (length := await simulate_reply(_fenced_inputs(contents[-1]))):
            completions.append(completion_tokens / length)
    rates = [
        CHARACTERS_PER_TOKEN * statistics.median(learned) if learned else 1.0
        for learned in (prompts, completions)
    ]
    return _TokenRates(rates[0], len(prompts), rates[1], len(completions))


def _fenced_inputs(message: str) -> dict[str, object]:
    """The fenced texts of a message, as an examination takes them; none of other questions."""
    inputs: dict[str, Any] = {"passages": (), "references": (), "history": ()}
    for label, _, text in _FENCED.findall(message):
        numbered = _NUMBERED.match(label)
        if numbered and numbered[2]:
            inputs["history"] += ({"role": numbered[2], "content": text},)
        elif numbered:
            inputs[f"{numbered.group(1)}s"] += (text,)
        else:
            inputs[label] = text
    return inputs


def _basis(rates: _TokenRates, calls: int, error: float) -> str:
    if not calls:
        return "there is nothing to ask"
    prompts = (
        f"prompt tokens are characters / {CHARACTERS_PER_TOKEN} of the messages and half of the"
        f" answer schema, which some servers bill and some do not: up to {error:.0%} more or less"
    )
    if rates.prompts:
        prompts = f"prompt tokens as {rates.prompts} earlier replies of this judge counted them"
    simulated = f"{min(calls, _SAMPLE_SIZE)} of {calls}"
    scale = f"characters / {CHARACTERS_PER_TOKEN}"
    if rates.completions:
        scale = f"scaled to {rates.completions} earlier replies"
    return (
        f"{prompts}; completion tokens are what the heuristic judge writes to {simulated} questions,"
        f" {scale}; calls to repair a reply are not included"
    )
