"""Forecast the calls, tokens, and cost of judging before any call is made."""

from __future__ import annotations

import json
import random
import re
import statistics
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from misslink.documents import DEFAULT_K, manifest_of
from misslink.judge.backends.decision_questions import DecisionTask
from misslink.judge.backends.decisions import LIMITS
from misslink.judge.backends.heuristic import HeuristicJudge, open_heuristic
from misslink.judge.batch.judge import BatchSavings
from misslink.judge.examination import examine
from misslink.judge.judged_metric import JudgedMetric, Subject
from misslink.judge.protocol import Ask, judge_info, layers, unwrap_judge
from misslink.judge.session import JudgeSession
from misslink.parts import by_case
from misslink.types import Run

CHARACTERS_PER_TOKEN = 4  # about right for English in every language model
_SAMPLE_SIZE = 100  # asks whose replies are simulated
_ESTIMATE_SIZE = 50  # cases that the tokens of a run are estimated from
_MAX_EARLIER = 200  # cached replies to learn from
_OUTLIER_RATIO = 4.0  # a token count this many times off the median is a server's mistake
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
    message_characters: int = 0
    schema_characters: int = 0
    sample: list[Ask] = field(default_factory=list)

    def add(self, ask: Ask, rng: random.Random, sent: int | None) -> None:
        """Count an ask; every ask has the same chance to be in the sample.

        `sent` is the length of what the judge sends, where that is not messages and schema.
        """
        message_characters = sum(len(message["content"]) for message in ask.messages)
        self.calls += 1
        self.message_characters += message_characters if sent is None else sent
        self.schema_characters += 0 if sent is not None else ask.characters - message_characters
        if len(self.sample) < _SAMPLE_SIZE:
            self.sample.append(ask)
        elif (index := rng.randrange(self.calls)) < _SAMPLE_SIZE:
            self.sample[index] = ask


@dataclass(frozen=True)
class _TokenRates:
    """Tokens per estimated token, learned from earlier replies; 1 where nothing is known."""

    prompt_factor: float
    counts_schema: bool | None  # whether the server bills the answer schema
    completion_factor: float
    prompts: int  # earlier replies that each factor rests on
    completions: int

    def prompt_tokens(self, messages: float, schema: float) -> float:
        """Tokens of so many characters of messages and of schema.

        Where it is unknown whether the schema counts, the harmonic mean of both ways: its
        relative error is the same, and so the smallest, whichever way it turns out to be.
        """
        whole = messages + schema
        ways = {True: whole, False: messages, None: 2 * messages * whole / (messages + whole)}
        return self.prompt_factor * ways[self.counts_schema] / CHARACTERS_PER_TOKEN


async def forecast_judging(
    subjects: Iterable[Subject],
    metrics: Sequence[JudgedMetric],
    judge: JudgeSession | None,
    more: Iterable[Ask] = (),
) -> JudgingForecast:
    """Forecast the calls, tokens, and cost of judging `subjects`, without calling the judge.

    Prompt tokens are a quarter of the characters of messages and schema. Completion tokens are a
    quarter of those that the heuristic judge would write. Both are scaled by what earlier replies
    of this judge in the response cache show. Some servers bill the answer schema and some do not:
    without earlier replies about half of it is counted.

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
        length = sent_characters(ask) if sent_characters else None
        groups.setdefault(frozenset(ask.schema.model_fields), _AskGroup()).add(ask, rng, length)
    calls = sum(group.calls for group in groups.values())
    prompt = completion = 0.0
    if isinstance(unwrap_judge(judge), HeuristicJudge):
        basis = f"the judge {judge.name} is a program: it reads no prompt and costs nothing"
    elif sent_characters is not None:
        prompt = sum(g.message_characters for g in groups.values()) / CHARACTERS_PER_TOKEN
        basis = f"characters / {CHARACTERS_PER_TOKEN} of texts and questions; answers cost nothing"
    else:
        rates = await _learn_rates(
            judge.cache.past_usage(_MAX_EARLIER),
            {fields: group.schema_characters / group.calls for fields, group in groups.items()},
        )
        prompt = sum(
            rates.prompt_tokens(group.message_characters, group.schema_characters)
            for group in groups.values()
        )
        completion = rates.completion_factor * await _completion_tokens(groups.values())
        basis = _basis(rates, calls, groups.values(), prompt)
    tokens = round(prompt), round(completion)
    cost = judge.price.cost(*tokens) if judge.price else None
    savings = None
    if batch is not None:
        size = sum(
            group.calls * statistics.fmean(map(batch.line_bytes, group.sample))
            for group in groups.values()
        )
        savings = batch.forecast(calls, submitted, round(size), cost)
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


async def _learn_rates(
    rows: Iterable[tuple[str, str, int | None, int | None]],
    schema_lengths: Mapping[frozenset[str], float],
) -> _TokenRates:
    """Learn from cached replies: messages and reply as JSON, prompt and completion tokens.

    Whether the server counts the answer schema is decided by which way of counting agrees better
    with itself from reply to reply. A reply is matched with its schema by its fields.
    """
    prompts: list[tuple[float, float, int]] = []
    completions: list[tuple[float, int]] = []
    for messages, reply, prompt_tokens, completion_tokens in rows:
        try:
            contents = [str(message["content"]) for message in json.loads(messages)]
            schema_length = schema_lengths.get(frozenset(json.loads(reply)))
        except (ValueError, TypeError, KeyError):
            continue
        if not contents or schema_length is None:  # None: a question that is not asked now
            continue
        if prompt_tokens:
            prompts.append((sum(map(len, contents)), schema_length, prompt_tokens))
        if completion_tokens and (length := await simulate_reply(_fenced_inputs(contents[-1]))):
            completions.append((length, completion_tokens))
    completion_factor, counts = _token_ratio(completions), (len(prompts), len(completions))
    if not prompts:
        return _TokenRates(1.0, None, completion_factor, *counts)
    ways = {
        billed: [(length + billed * schema, tokens) for length, schema, tokens in prompts]
        for billed in (False, True)
    }
    billed = min(ways, key=lambda way: (_ratio_spread(ways[way]), abs(_token_ratio(ways[way]) - 1)))
    return _TokenRates(_token_ratio(ways[billed]), billed, completion_factor, *counts)


def _ratio_spread(pairs: Sequence[tuple[float, int]]) -> float:
    """Median relative distance of the ratios from their median, rounded to what matters."""
    ratios = [tokens / length for length, tokens in pairs]
    median = statistics.median(ratios)
    return round(statistics.median(abs(ratio / median - 1) for ratio in ratios), 3)


def _token_ratio(pairs: Sequence[tuple[float, int]]) -> float:
    """Tokens by a quarter of the characters, as a ratio of sums without outliers."""
    if not pairs:
        return 1.0
    median = statistics.median(tokens / length for length, tokens in pairs)
    plausible = [
        (length, tokens)
        for length, tokens in pairs
        if 1 / _OUTLIER_RATIO <= tokens / length / median <= _OUTLIER_RATIO
    ]
    length = sum(length for length, _ in plausible) / CHARACTERS_PER_TOKEN
    return sum(tokens for _, tokens in plausible) / length


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


def _basis(rates: _TokenRates, calls: int, groups: Iterable[_AskGroup], prompt: float) -> str:
    if not calls:
        return "there is nothing to ask"
    if rates.prompts:
        prompts = f"prompt tokens as {rates.prompts} earlier replies of this judge counted them"
    else:
        messages = sum(group.message_characters for group in groups) / CHARACTERS_PER_TOKEN
        schemas = sum(group.schema_characters for group in groups) / CHARACTERS_PER_TOKEN
        error = max(prompt / messages - 1, 1 - prompt / (messages + schemas)) if messages else 0.0
        prompts = (
            f"prompt tokens are characters / {CHARACTERS_PER_TOKEN} of the messages and about half"
            " of the answer schema, which some servers bill and some do not: up to"
            f" {error:.0%} more or less"
        )
    simulated = f"{min(calls, _SAMPLE_SIZE)} of {calls}"
    scale = f"characters / {CHARACTERS_PER_TOKEN}"
    if rates.completions:
        scale = f"scaled to {rates.completions} earlier replies"
    return (
        f"{prompts}; completion tokens are what the heuristic judge writes to {simulated} questions,"
        f" {scale}; calls to repair a reply are not included"
    )
