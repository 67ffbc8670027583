"""Generate a gold set from a corpus, or forecast what that would cost."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from misslink.errors import InputError, JudgeUnreachableError
from misslink.goldset.generation import questions
from misslink.goldset.generation.candidates import (
    CandidatePlan,
    CandidateRejectedError,
    CandidateSkippedError,
    CandidateSlot,
    QuestionDraft,
    rejection_record,
    rejection_table,
    to_case,
)
from misslink.goldset.generation.corpus import (
    PassageIndex,
    open_optional_embedder,
    read_source_corpus,
)
from misslink.goldset.generation.settings import GenerationSettings, read_generation_settings
from misslink.goldset.versions import apportion
from misslink.goldset.wording import QuestionIndex
from misslink.goldset.writer import objects_to_jsonl, refuse_changed_file, write_generated_goldset
from misslink.io.atomic import atomic_write
from misslink.io.manifest import display_path, hash_content
from misslink.judge.backends.heuristic import HeuristicJudge
from misslink.judge.checks.dry_run import CHARACTERS_PER_TOKEN, JudgingForecast, forecast_judging
from misslink.judge.config import DEFAULT_CACHE, JudgeConfig
from misslink.judge.middleware.cache import CachedJudge
from misslink.judge.prompts import Prompts
from misslink.judge.protocol import Ask, Judge, Reply, unwrap_judge
from misslink.judge.session import JudgeSession, open_judge
from misslink.text.normalization import sentence_spans
from misslink.types import Case

ProgressCallback = Callable[[int, int], object]
_ROUND_SIZE = 16  # candidates; at most so many are incomplete when the budget is used up
_QUESTION_WORDS = 12  # of a question of medium length
_WORD_LENGTH = 5
_LETTERS = str.maketrans("0123456789", "ghijklmnop")
_BASIS = (
    "a minimum: every candidate is accepted at once, and each further candidate costs its questions "
    "again; prompt tokens as in the messages, completion tokens for one quoted sentence a passage"
)


class StandInJudge:
    """Replies from the cache, else as a writer would whose questions are all accepted.

    It makes no model calls, and collects the asks that the cache does not answer.
    """

    def __init__(self, session: JudgeSession) -> None:
        self.name = session.name
        self.identity: Mapping[str, Any] = session.identity
        self.asks: dict[str, Ask] = {}
        self.cached: set[str] = set()
        self.reply_characters = 0
        judge: Judge | None = session.judge
        while judge is not None and not isinstance(judge, CachedJudge):
            judge = getattr(judge, "judge", None)
        self._cache = judge

    async def ask(self, ask: Ask) -> Reply:
        """Reply; see the class."""
        if self._cache is not None and self._cache.is_cached(ask):
            self.cached.add(ask.key)
            return await self._cache.ask(ask)
        parsed = _stand_in_reply(ask)
        raw = parsed.model_dump_json()
        if ask.key not in self.asks:
            self.asks[ask.key] = ask
            self.reply_characters += len(raw)
        return Reply(parsed, raw)

    async def close(self) -> None:
        """Close nothing: the session closes the judge."""

    async def forecast(self, session: JudgeSession) -> JudgingForecast:
        """Return the forecast of the collected asks.

        Raises
        ------
        InputError
            The cache cannot be read.
        """
        forecast = await forecast_judging((), (), session, list(self.asks.values()))
        tokens = round(self.reply_characters / CHARACTERS_PER_TOKEN)
        price = session.price
        return replace(
            forecast,
            from_cache=len(self.cached),
            completion_tokens=tokens,
            cost=price.cost(forecast.prompt_tokens, tokens) if price else None,
            basis=_BASIS if forecast.calls else "no model calls are needed",
        )


def _stand_in_reply(ask: Ask) -> BaseModel:
    """The reply of a writer whose questions are all accepted."""
    texts: Sequence[str] = ask.inputs.get("passages") or ()
    # A unique question of words that no passage contains.
    letters = hashlib.sha256(ask.key.encode()).hexdigest().translate(_LETTERS)
    starts = range(0, _QUESTION_WORDS * _WORD_LENGTH, _WORD_LENGTH)
    question = " ".join(letters[start : start + _WORD_LENGTH] for start in starts) + "?"
    if ask.schema in (questions.NegativeQuestion, questions.RewrittenQuestion):
        return ask.schema(question=question)
    if ask.schema is questions.WrittenQuestion:
        first = []
        for text in texts:
            sentences = (text[start:end] for start, end in sentence_spans(text))
            first.append(next((s for s in sentences if any(map(str.isalnum, s))), text.strip()))
        quotes = tuple(
            questions.PassageQuote(passage=n, quote=quote) for n, quote in enumerate(first, 1)
        )
        return questions.WrittenQuestion(
            question=question, reference=" ".join(first), quotes=quotes
        )
    if ask.schema is questions.EvidenceAnswer:
        return questions.EvidenceAnswer(answer=" ".join(ask.inputs["evidence"]))
    if ask.schema is questions.RecalledAnswer:
        return questions.RecalledAnswer(answer=None)
    if ask.schema is questions.AnswerComparison:
        agreed = [{"answer": n, "agrees": "yes"} for n, _ in enumerate(ask.inputs["answers"], 1)]
        return questions.AnswerComparison.model_validate({"answers": agreed})
    verdicts = [{"passage": n, "answers": "no", "quote": None} for n, _ in enumerate(texts, 1)]
    return questions.PassageAnswers.model_validate({"passages": verdicts})


@dataclass(frozen=True)
class GeneratedGoldSet:
    """A generated gold set.

    Parameters
    ----------
    cases : sequence of Case
    rejected : sequence of mapping
        Every dropped candidate, with `reason` (a code) and `sentence`.
    document : mapping
        The JSON document of ``misslink goldset generate``.
    """

    cases: tuple[Case, ...]
    rejected: tuple[dict[str, Any], ...]
    document: dict[str, Any]


def generate(corpus: Any, judge: str | Judge, n: int = 100, **options: Any) -> GeneratedGoldSet:
    """Generate a gold set from a corpus: a synchronous wrapper, also for notebooks.

    Takes the arguments of `generate_async`.

    Examples
    --------
    >>> from misslink.goldset import generate
    >>> made = generate("corpus.jsonl", "openai:MODEL", 50, out="gold.jsonl")  # doctest: +SKIP
    >>> made.document["rejected"]  # doctest: +SKIP
    {'known_by_heart': 7, 'near_duplicate': 2}
    """
    from misslink.event_loops import run_async

    return run_async(lambda: generate_async(corpus, judge, n, **options))


async def generate_async(
    corpus: Any,
    judge: str | Judge,
    n: int = 100,
    *,
    out: str | Path | None = None,
    rejects: str | Path | None = None,
    settings: GenerationSettings | str | Path | None = None,
    seed: int = 0,
    embedding: Any = None,
    cache: str | Path | None = None,
    concurrency: int = 8,
    terms: JudgeConfig | None = None,
    overwrite: bool = False,
    progress: ProgressCallback = lambda _, __: None,
) -> GeneratedGoldSet:
    """Generate a gold set from a corpus: a judge writes questions and verifies each one.

    Parameters
    ----------
    corpus : str, Path, loader, or iterable of Document or Passage
        See `read_source_corpus`.
    judge : str or Judge
        A judge that can write, such as ``openai:MODEL`` or ``llamacpp:FILE``; not ``heuristic``.
    n : int
        Number of questions, at least 1.
    out : str, Path or None
        The gold set's file. Its provenance is written to ``OUT.json``. None writes nothing.
    rejects : str, Path or None
        File for every dropped candidate, as JSON Lines.
    settings : GenerationSettings, path of a YAML file, or None
    seed : int
        The same seed and replies give the same file, byte for byte.
    embedding : str, Embeddings or None
        See `open_embedder`; 'none': by words. None: minilm where it is installed.
    cache : str, Path or None
        Response cache, so that an interrupted call continues. Default: ``.misslink/cache.sqlite``.
    concurrency : int
        Concurrent asks, at least 1.
    terms : JudgeConfig or None
    overwrite : bool
        Whether a file at `out` that was not generated, or was changed since, may be replaced.
    progress : callable
        Called with the number of accepted questions and `n`.

    Returns
    -------
    GeneratedGoldSet
        With fewer than `n` cases if candidates or the budget are used up; the document's
        ``missing`` and ``stopped`` say so. Without cases nothing is written at `out`.

    Raises
    ------
    InputError
        The corpus, the settings or a file is wrong, or the judge cannot write.
    JudgeUnreachableError
        The judge cannot be reached, or no reply can be read.
    """
    gold = None if out is None else Path(out)
    if gold is not None and not overwrite:
        refuse_changed_file(gold)
    generation = _open_generation(corpus, judge, n, settings, embedding, cache, concurrency, terms)
    async with generation as (session, context):
        await session.check_reachable()
        outcome = await run_rounds(context, n=n, seed=seed, progress=progress)
        usage = session.usage().document()
    rejected = tuple(outcome.rejected)
    if rejects is not None:
        atomic_write(objects_to_jsonl(rejected), Path(rejects))
    if not outcome.accepted:
        raise _no_questions_error(outcome, session)
    cases = tuple(to_case(draft, context.corpus, seed) for draft in outcome.accepted)
    counts = {
        "written": len(cases),
        "wanted": n,
        "candidates": outcome.candidates,
        "by_category": outcome.by_category,
        "missing": outcome.missing,
    }
    table = rejection_table(outcome.rejected)
    if gold is not None:
        # Without anything that differs between equal runs.
        embedder, used = context.index.embedder, context.settings.model_dump(mode="json")
        provenance = {
            "judge": session.name,
            "judge_identity": dict(session.identity),
            "prompts": {name: context.prompts.load(name).ref.sha256 for name in questions.SCHEMAS},
            "corpus": context.corpus.name,
            "corpus_fingerprint": context.corpus.fingerprint,
            "passages": len(context.corpus.passages),
            "embedding": None if embedder is None else embedder.name,
            "settings": used,
            "settings_sha256": hash_content(used),
            "seed": seed,
            **counts,
            "rejected": table["rejected"],
        }
        write_generated_goldset(cases, provenance, gold)
    document = {
        "goldset": None if gold is None else display_path(gold),
        **counts,
        "stopped": next(iter(outcome.skipped), None),
        "unfinished": len(outcome.skipped),
        **table,
        "corpus": {
            "source": context.corpus.name,
            "fingerprint": context.corpus.fingerprint,
            "passages": len(context.corpus.passages),
            "documents_cut": context.corpus.cut,
            "skipped": dict(context.corpus.skipped),
            "least_words": context.settings.least_words,
        },
        "judge": session.name,
        "usage": usage,
    }
    return GeneratedGoldSet(cases, rejected, document)


async def preview_async(
    corpus: Any,
    judge: str | Judge,
    n: int = 100,
    *,
    settings: GenerationSettings | str | Path | None = None,
    seed: int = 0,
    embedding: Any = None,
    cache: str | Path | None = None,
    concurrency: int = 8,
    terms: JudgeConfig | None = None,
) -> JudgingForecast:
    """Forecast the minimum calls and cost of `generate_async`, without model calls.

    Passages are embedded only by minilm, which is free; otherwise neighbors are found by words.

    Raises
    ------
    InputError
        As `generate_async`.
    """
    free = embedding if embedding in (None, "minilm") else "none"
    generation = _open_generation(corpus, judge, n, settings, free, cache, concurrency, terms)
    async with generation as (session, context):
        stand_in = StandInJudge(session)
        await run_rounds(replace(context, judge=stand_in), n=n, seed=seed)
        return await stand_in.forecast(session)


@asynccontextmanager
async def _open_generation(
    corpus: Any,
    judge: str | Judge,
    n: int,
    settings: GenerationSettings | str | Path | None,
    embedding: Any,
    cache: str | Path | None,
    concurrency: int,
    terms: JudgeConfig | None,
) -> AsyncIterator[tuple[JudgeSession, questions.GenerationContext]]:
    """Open the judge, read the corpus and embed it; finally close judge and embedder."""
    for option, value in (("-n", n), ("--concurrency", concurrency)):
        if value < 1:
            raise InputError(f"{option} is {value}. Use at least 1.")
    terms = terms or JudgeConfig()
    if not isinstance(settings, GenerationSettings):
        settings = read_generation_settings(None if settings is None else Path(settings))
    prompts = Prompts.from_spec(terms.prompts)
    for name in questions.SCHEMAS:
        prompts.load(name)
    store = DEFAULT_CACHE if cache is None else Path(cache)
    session = open_judge(judge, cache=store, concurrency=concurrency, terms=terms)
    if session is None:
        raise InputError("--judge none cannot write questions. Use --judge openai:MODEL.")
    embedder = None
    try:
        if isinstance(unwrap_judge(session), HeuristicJudge):
            raise InputError(
                f"The judge {session.name} cannot write questions. Name a model: --judge "
                "openai:MODEL or llamacpp:FILE.gguf."
            )
        source = read_source_corpus(corpus, settings)
        embedder = open_optional_embedder(embedding)
        index = await PassageIndex.build([passage.text for passage in source.passages], embedder)
        yield session, questions.GenerationContext(session, source, index, settings, prompts)
    finally:
        if embedder is not None:
            embedder.close()
        await session.close()


def _no_questions_error(
    outcome: GenerationOutcome, session: JudgeSession
) -> InputError | JudgeUnreachableError:
    if outcome.skipped:
        return InputError(
            f"No question was completed: {outcome.skipped[0]}. Replies are in the cache, so the same "
            "command continues."
        )
    if {record["reason"] for record in outcome.rejected} == {"no_reply"}:
        return JudgeUnreachableError(
            f"No reply of {session.name} can be read ({outcome.rejected[0]['sentence']}). Test it "
            "with  misslink judge ping"
        )
    counts = rejection_table(outcome.rejected)["rejected"].items()
    table = ", ".join(f"{count} {reason}" for reason, count in counts)
    return InputError(
        f"None of {outcome.candidates} candidates was accepted ({table}). See them with "
        "--rejects FILE, or use a stronger judge."
    )


@dataclass
class GenerationOutcome:
    """The ends of all candidates; `wanted` is the number of questions by category.

    ``skipped`` says why candidates were not finished; a later run completes them.
    """

    wanted: Mapping[str, int]
    accepted: list[QuestionDraft] = field(default_factory=list)
    rejected: list[dict[str, Any]] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    candidates: int = 0

    @property
    def by_category(self) -> dict[str, int]:
        """Accepted questions by category."""
        counts = Counter(draft.slot.category for draft in self.accepted)
        return {name: counts[name] for name in self.wanted}

    @property
    def missing(self) -> dict[str, int]:
        """Missing questions by category, without complete categories."""
        counts = self.by_category
        return {name: n - counts[name] for name, n in self.wanted.items() if n > counts[name]}


async def run_rounds(
    context: questions.GenerationContext,
    *,
    n: int,
    seed: int,
    progress: ProgressCallback = lambda _, __: None,
) -> GenerationOutcome:
    """Write and verify candidates.

    A round tries up to 16 candidates, of each category by how many are missing. Its decisions
    follow the order of the plan, never the order of replies, so the same replies give the same
    gold set. It ends when nothing is missing, everything was tried, or the budget is used up.

    Parameters
    ----------
    context : GenerationContext
    n : int
        Number of questions, at least 1.
    seed : int
    progress : callable
        Called with the number of accepted questions and `n`.

    Raises
    ------
    MisslinkError
        Further asks are pointless.
    """
    settings, index = context.settings, context.index
    plan = CandidatePlan(context.corpus, index, settings, n, seed)
    outcome = GenerationOutcome(plan.wanted)
    tried: Counter[str] = Counter()
    new_index = partial(
        QuestionIndex, settings.near_duplicate, settings.near_meaning, index.cosines
    )

    async def complete(
        calls: Mapping[CandidateSlot, Coroutine[Any, Any, QuestionDraft]],
    ) -> list[QuestionDraft]:
        """Run a step of all candidates concurrently; record those that end, return the others."""

        async def attempt(
            slot: CandidateSlot, call: Coroutine[Any, Any, QuestionDraft]
        ) -> QuestionDraft | dict[str, Any] | str:
            try:
                return await call
            except CandidateRejectedError as rejected:
                return rejection_record(slot, rejected, context.corpus)
            except CandidateSkippedError as skipped:
                return str(skipped)

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(attempt(slot, call)) for slot, call in calls.items()]
        except ExceptionGroup as problems:
            raise problems.exceptions[0] from None
        ends = [task.result() for task in tasks]
        outcome.rejected += [end for end in ends if isinstance(end, dict)]
        outcome.skipped += [end for end in ends if isinstance(end, str)]
        return [end for end in ends if isinstance(end, QuestionDraft)]

    accepted = new_index()
    while not outcome.skipped and (slots := _next_slots(plan, outcome.missing, tried)):
        outcome.candidates += len(slots)
        drafts = await complete({slot: questions.write_question(context, slot) for slot in slots})
        await index.read([draft.question for draft in drafts])
        earlier, distinct = new_index(), []
        for draft in drafts:
            twin = accepted.twin(draft.question) or earlier.twin(draft.question)
            if twin is None:
                earlier.add(draft.question)
                distinct.append(draft)
            else:
                more = {"reference": draft.reference} if draft.reference else {}
                repeated = CandidateRejectedError(
                    "near_duplicate", f"it asks the same as '{twin.question}'", draft.question, more
                )
                outcome.rejected.append(rejection_record(draft.slot, repeated, context.corpus))
        progress(len(outcome.accepted), n)
        verified = await complete({d.slot: questions.verify_question(context, d) for d in distinct})
        outcome.accepted += verified
        for draft in verified:
            accepted.add(draft.question)
        progress(len(outcome.accepted), n)
    order = {name: place for place, name in enumerate(settings.categories)}
    outcome.accepted.sort(key=lambda draft: (order[draft.slot.category], draft.slot.number))
    return outcome


def _next_slots(
    plan: CandidatePlan, missing: dict[str, int], tried: Counter[str]
) -> list[CandidateSlot]:
    """The candidates of a round, counted in `tried`; empty if nothing is left to try."""
    remaining = {name: n for name, n in missing.items() if plan.slots(name, tried[name], 1)}
    if not remaining:
        return []
    slots: list[CandidateSlot] = []
    for name, count in apportion(min(_ROUND_SIZE, sum(remaining.values())), remaining).items():
        more = plan.slots(name, tried[name], count)
        tried[name] += len(more)
        slots += more
    return slots
