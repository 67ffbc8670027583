"""Cases and changed copies of them for the audit of a judge."""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from misslink.judge.backends.heuristic import HeuristicJudge
from misslink.judge.judge_case import judge_case
from misslink.judge.judged_metric import JudgedMetric, Subject
from misslink.judge.protocol import Ask, Judge, unwrap_judge
from misslink.text.abstention import claim_spans, states_absence
from misslink.text.normalization import content_words, fold, sentence_spans
from misslink.timeouts import map_concurrently
from misslink.types import Case, Passage, Run, Verdict

CHANGES = ("padding", "passage_order", "passage_shuffle", "again")
_MIN_FILLER_WORDS = 4  # fewer are headings and fragments
_MAX_FILLER_CHARACTERS = 400  # longer ones are tables or texts without full stops
_TWO_PASSAGES = 2  # have two orders only: as they are and reversed


class AuditSample(NamedTuple):
    """The sampled cases in the run's order, and how many of them the run's judge calls good, bad."""

    cases: tuple[Case, ...]
    good: int
    bad: int


def draw_audit_sample(run: Run, metric: str, size: int, seed: int = 0) -> AuditSample:
    """Sample cases of a run, half of those that its judge calls good and half of the others.

    A flip away from a rare verdict would otherwise hardly be seen: of 50 cases of a run in which
    one in ten is bad, 5 could turn good. So shares over the sample are not shares over the run.

    Parameters
    ----------
    run : Run
        Only cases with an answer are sampled.
    metric : str
        Whose verdicts are used. In a run that was not judged by it, cases are sampled at random.
    size : int
        At least 1. Where one verdict has too few cases, the other fills up.
    seed : int

    Returns
    -------
    AuditSample
        Empty where no case has an answer, or no verdict of the metric has a label.
    """
    answered = {trace.case_id for trace in run.traces if (trace.answer or "").strip()}
    verdicts = [verdict for verdict in run.verdicts if verdict.metric == metric]
    labels = {verdict.case_id: verdict.label for verdict in verdicts if verdict.label is not None}
    rng = random.Random(seed)  # noqa: S311 (no secret)

    def shuffled(case_ids: list[str]) -> list[str]:
        return rng.sample(sorted(case_ids), min(size, len(case_ids)))

    candidates = [case.id for case in run.cases if case.id in answered]
    if verdicts:
        good = shuffled([case_id for case_id in candidates if labels.get(case_id) is True])
        bad = shuffled([case_id for case_id in candidates if labels.get(case_id) is False])
        bad_count = min(len(bad), max(size // 2, size - len(good)))
        chosen = {*good[: size - bad_count], *bad[:bad_count]}
    else:
        chosen = set(shuffled(candidates))
    return AuditSample(
        tuple(case for case in run.cases if case.id in chosen),
        good=sum(labels.get(case_id) is True for case_id in chosen),
        bad=sum(labels.get(case_id) is False for case_id in chosen),
    )


class Padding(NamedTuple):
    """What the answer is padded with: sentences of its passages, or its own once more.

    `may_lower`: a padded answer may rightly be called bad, so only a verdict that turns good
    counts against the judge.
    """

    filler: Literal["passages", "answer"]
    may_lower: bool = False


# Passages are no filler for what is measured against the question or a reference: one of their
# sentences may be the very answer, and then a better verdict is right.
AUDITED: Mapping[str, Padding] = MappingProxyType(
    {
        "faithfulness": Padding("passages"),  # every added sentence is verbatim in a passage
        "context_relevance": Padding("passages"),  # the answer does not matter here
        "context_sufficiency": Padding("passages"),
        "correctness": Padding("answer"),  # repeating an answer makes it no more correct
        "completeness": Padding("answer"),
        "abstention": Padding("answer"),
        "answer_relevance": Padding("answer", may_lower=True),  # repetition helps no reader
        "helpfulness": Padding("answer", may_lower=True),
    }
)


def pad_answer(subject: Subject, filler: Literal["passages", "answer"], seed: int) -> Subject | str:
    """Return the case with an answer about twice as long that says nothing new, or why not.

    Parameters
    ----------
    subject : Subject
        With an answer.
    filler : {'passages', 'answer'}
        'passages': sentences of its passages, verbatim and in random order, until the answer is
        twice as long. A faithful answer stays faithful, since each sentence is in a passage; an
        unfaithful one keeps what made it so. Questions, fragments, statements of ignorance and
        what the answer says already are left out. 'answer': its own sentences once more.
    seed : int
    """
    text = subject.answer.rstrip()
    if filler == "answer":
        return _with_trace(subject, answer=f"{text} {subject.answer.lstrip()}")
    sentences = _supported_sentences(subject)
    if not sentences:
        return "its passages hold no sentence that could be added"
    _seeded_random(subject, seed, filler).shuffle(sentences)
    for sentence in sentences:
        if len(text) >= 2 * len(subject.answer):
            break
        text = f"{text} {sentence}"
    return _with_trace(subject, answer=text)


def reorder_passages(subject: Subject, change: str, seed: int) -> Subject | str:
    """Return the case with its passages in another order, or why there is none.

    `change` is 'passage_order' (reversed) or 'passage_shuffle' (random, neither the original
    order nor its reverse).
    """
    passages = subject.context
    if len(passages) < _TWO_PASSAGES:
        return "it has fewer than two passages"
    if change == "passage_order":
        order = list(range(len(passages)))[::-1]
    elif len(passages) == _TWO_PASSAGES:
        return "two passages have only two orders"
    else:
        order = list(range(len(passages)))
        excluded = [order[:], order[::-1]]
        rng = _seeded_random(subject, seed, change)
        while order in excluded:
            rng.shuffle(order)
    ranked: list[Passage] = [
        passages[index].model_copy(update={"rank": rank}) for rank, index in enumerate(order, 1)
    ]
    prompted = tuple(passage.id for passage in ranked)
    return _with_trace(subject, retrieved=tuple(ranked), prompted=prompted)


def _supported_sentences(subject: Subject) -> list[str]:
    """Sentences of the passages that state something and are new to the answer, each once."""
    answer = fold(subject.answer)
    unique: dict[str, str] = {}
    for passage in subject.context:
        for start, end in sentence_spans(passage.text):
            sentence = " ".join(passage.text[start:end].split())
            folded = fold(sentence)
            if (
                len(sentence) <= _MAX_FILLER_CHARACTERS
                and sentence.endswith((".", "!", "\u3002"))
                and len(content_words(sentence)) >= _MIN_FILLER_WORDS
                and claim_spans(sentence)
                and not states_absence(sentence)
                and folded.rstrip(".!") not in answer
            ):
                unique.setdefault(folded, sentence)
    return list(unique.values())


def _with_trace(subject: Subject, **changes: Any) -> Subject:
    trace = subject.trace.model_copy(update=changes)
    return Subject(subject.case, trace, subject.k, subject.prompts)


def _seeded_random(subject: Subject, seed: int, purpose: str) -> random.Random:
    """A generator that depends on the case and not on which others are audited."""
    name = f"{seed}:{purpose}:{subject.case.id}".encode("utf-8", "surrogatepass")
    return random.Random(hashlib.sha256(name).digest())  # noqa: S311 (no secret)


@dataclass(frozen=True)
class AuditedCase:
    """A judge's verdicts on one case.

    Parameters
    ----------
    case_id : str
    answer : str
        As the app gave it.
    base : mapping of str to Verdict
        By metric, of the unchanged case.
    changed : mapping of str to mapping of str to Verdict
        By change, then by metric.
    unchanged : mapping of str to mapping of str to str
        By change, then by metric: why the case could not be changed so.
    """

    case_id: str
    answer: str
    base: Mapping[str, Verdict]
    changed: Mapping[str, Mapping[str, Verdict]]
    unchanged: Mapping[str, Mapping[str, str]]


def is_deterministic(judge: Judge) -> bool:
    """Whether a judge gives the same answer to the same question by construction."""
    return isinstance(unwrap_judge(judge), HeuristicJudge)


async def audit_cases(
    judge: Judge,
    subjects: Sequence[Subject],
    metrics: Sequence[JudgedMetric],
    *,
    repeat: int = 1,
    seed: int = 0,
    tick: Callable[[int, int], object] = lambda _, __: None,
) -> list[AuditedCase]:
    """Judge every case unchanged and with each change, in the order of the cases.

    Parameters
    ----------
    judge : Judge
        With its response cache: replies from the audited run are not paid for again.
    subjects : sequence of Subject
    metrics : sequence of JudgedMetric
        Of `AUDITED`.
    repeat : int
        The number of the sample for asking again, at least 1: one that the run has not asked for,
        or the cache would only repeat a reply. A deterministic judge is not asked again.
    seed : int
    tick : callable
        Receives how many cases are done and how many there are.

    Raises
    ------
    JudgeUnreachableError
        The judge cannot be reached; earlier replies are in the cache.
    """
    again = None if is_deterministic(judge) else repeat
    return await map_concurrently(
        subjects,
        lambda subject: _audit_case(judge, subject, metrics, again, seed),
        len(subjects),
        tick,
    )


def audit_asks(
    subjects: Sequence[Subject],
    metrics: Sequence[JudgedMetric],
    judge: Judge,
    *,
    repeat: int = 1,
    seed: int = 0,
) -> Iterator[Ask]:
    """Every question that `audit_cases` would ask if each case had a verdict; for a forecast."""
    seen: set[tuple[str, int]] = set()
    for subject in subjects:
        variants, _ = _changed_subjects(subject, [metric.name for metric in metrics], seed)
        numbered = [(subject, 0), *((variant, 0) for variant, _ in variants)]
        if not is_deterministic(judge):
            numbered.append((subject, repeat))
        for variant, number in numbered:
            for metric in metrics:
                ask = metric.ask(variant)
                if isinstance(ask, Ask) and (ask.key, number) not in seen:
                    seen.add((ask.key, number))
                    yield replace(ask, repeat=number)


async def _audit_case(
    judge: Judge, subject: Subject, metrics: Sequence[JudgedMetric], again: int | None, seed: int
) -> AuditedCase:
    base = {verdict.metric: verdict for verdict in await judge_case(subject, metrics, judge)}
    # A metric without a verdict cannot flip, so its changes are not paid for.
    judged = [metric for metric in metrics if base[metric.name].label is not None]
    names = [metric.name for metric in judged]
    variants, unchanged = _changed_subjects(subject, names, seed)
    calls = [(served, judge_case(variant, judged, judge)) for variant, served in variants]
    if again is not None and judged:
        served = {("again", name) for name in names}
        calls.append((served, judge_case(subject, judged, judge, first_sample=again)))
    results = await asyncio.gather(*(call for _, call in calls))
    changed: dict[str, dict[str, Verdict]] = {}
    for (served, _), verdicts in zip(calls, results, strict=True):
        by_metric = {verdict.metric: verdict for verdict in verdicts}
        for change, name in served:
            changed.setdefault(change, {})[name] = by_metric[name]
    return AuditedCase(subject.case.id, subject.answer, base, changed, unchanged)


def _changed_subjects(
    subject: Subject, names: Sequence[str], seed: int
) -> tuple[list[tuple[Subject, set[tuple[str, str]]]], dict[str, dict[str, str]]]:
    """Each changed case with the (change, metric) pairs it serves; and why others are missing."""
    variants: list[tuple[Subject, set[tuple[str, str]]]] = []
    unchanged: dict[str, dict[str, str]] = {}

    def serve(variant: Subject | str, change: str, served: Sequence[str]) -> None:
        if not isinstance(variant, str):
            variants.append((variant, {(change, name) for name in served}))
        elif served:
            unchanged.setdefault(change, {}).update(dict.fromkeys(served, variant))

    for filler in dict.fromkeys(AUDITED[name].filler for name in names):
        served = [name for name in names if AUDITED[name].filler == filler]
        serve(pad_answer(subject, filler, seed), "padding", served)
    for change in ("passage_order", "passage_shuffle") if names else ():
        serve(reorder_passages(subject, change, seed), change, names)
    return variants, unchanged
