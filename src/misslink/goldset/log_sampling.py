"""Sample a gold set and traces from logs, with personal data masked first.

Requests that ask the same are grouped; failures that the log itself shows are detected (feedback,
errors, refusals, repeated questions); and rare questions are clustered by words or by embedding.
"""

from __future__ import annotations

import datetime as dt
import itertools
import random
import re
import warnings
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from misslink.embedding import Embedder
from misslink.errors import InputError, MissingExtraError
from misslink.goldset.masking import Masker, unnumber_masks
from misslink.goldset.versions import apportion
from misslink.io.numbers import parse_number
from misslink.io.trace_formats.requests import LogRequest, RequestLog
from misslink.matching import declines, invariant_tokens
from misslink.text.normalization import fold, stems
from misslink.types import Case, Passage, Trace

MIN_SIMILARITY = 90.0  # indel ratio of two questions that differ by a typo, in per cent
# Two questions are compared if they share one of their rarest words. Where all but two words are
# equal, the rarest shared word is among the three rarest of both.
_RAREST_WORDS = 3
_MAX_COMPARED = 400  # questions with such a word, the most frequent first
_SCORE_DECIMALS = 9  # so that a tie is not decided by rounding

QuestionKey = tuple[str, tuple[str, ...]]


@dataclass(frozen=True)
class QuestionGroup:
    """Questions that ask the same.

    Parameters
    ----------
    wording : str
        The most frequent wording, the first of equally frequent ones.
    members : sequence of int
        Indices of the requests, in the log's order.
    stems : sequence of str
        The stems of the wording.
    """

    wording: str
    members: tuple[int, ...]
    stems: tuple[str, ...]


def question_key(question: str) -> QuestionKey:
    """Return what two wordings of one question share: stems in any order, and their facts.

    Masks count by their kind alone.
    """
    plain = fold(unnumber_masks(question))
    fact_parts = tuple(part for parts in invariant_tokens(plain) for part in parts)
    return " ".join(sorted(stems(plain))) or plain.strip(" .,;:!?"), fact_parts


def group_questions(questions: Sequence[str]) -> list[QuestionGroup]:
    """Group questions by what they ask, the largest group first.

    Two wordings belong to one group if they have the same stems, or differ in at most a tenth of
    characters. Their numbers, signs and negations are always equal. Ties keep the order of the log.
    """
    by_key: dict[QuestionKey, list[int]] = {}
    for index, question in enumerate(questions):
        by_key.setdefault(question_key(question), []).append(index)
    groups = []
    for members in _merge_typos(by_key):
        wordings = Counter(" ".join(questions[index].split()) for index in members)
        wording = wordings.most_common(1)[0][0]
        groups.append(QuestionGroup(wording, tuple(members), stems(fold(unnumber_masks(wording)))))
    return sorted(groups, key=lambda group: (-len(group.members), group.members[0]))


def _merge_typos(by_key: dict[QuestionKey, list[int]]) -> list[list[int]]:
    """Join each key's members to the most frequent key that differs from it only by typos."""
    from rapidfuzz import fuzz, process

    keys = sorted(by_key, key=lambda key: (-len(by_key[key]), by_key[key][0]))
    frequency = Counter(word for text, _ in keys for word in set(text.split()))
    leaders: dict[QuestionKey, list[str]] = {}
    merged: dict[QuestionKey, list[int]] = {}
    for text, fact_parts in keys:
        words = sorted(set(text.split()), key=lambda word: (frequency[word], word))[:_RAREST_WORDS]
        near = [leader for word in words for leader in leaders.get((word, fact_parts), ())]
        match = process.extractOne(text, near, scorer=fuzz.ratio, score_cutoff=MIN_SIMILARITY)
        if match is not None:
            merged[match[0], fact_parts] += by_key[text, fact_parts]
            continue
        merged[text, fact_parts] = list(by_key[text, fact_parts])
        for word in words:
            compared = leaders.setdefault((word, fact_parts), [])
            if len(compared) < _MAX_COMPARED:
                compared.append(text)
    return [sorted(members) for members in merged.values()]


def tf_idf_vectors(documents: Sequence[Sequence[str]]) -> Any:
    """Return sparse unit vectors of documents, each given as its words; None without any word."""
    if not any(documents):
        return None
    try:
        from sklearn.feature_extraction.text import TfidfVectorizer
    except ImportError:
        raise MissingExtraError("scikit-learn, which clusters questions,", "goldset") from None
    return TfidfVectorizer(analyzer=list, sublinear_tf=True).fit_transform(documents)


def representatives(vectors: Any, k: int, seed: int) -> list[int]:
    """Return the rows nearest to the centers of k-means clusters, the largest cluster first.

    Parameters
    ----------
    vectors : array or sparse array of shape (n, d), or None
        Rows of length 1, or 0. None: every row is alike.
    k : int
        Number of rows to return, from 1 to n.
    seed : int

    Returns
    -------
    list of int
        `k` different rows. Where fewer than `k` rows differ, the first of the others follow.
    """
    import numpy as np

    if vectors is None or k >= vectors.shape[0]:
        return list(range(k))
    try:
        from sklearn.cluster import KMeans
        from sklearn.exceptions import ConvergenceWarning
    except ImportError:
        raise MissingExtraError("scikit-learn, which clusters questions,", "goldset") from None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # equal rows make fewer clusters
        model = KMeans(k, n_init=4, random_state=seed).fit(vectors)
    labels = model.labels_
    distances = model.transform(vectors)[np.arange(len(labels)), labels].round(_SCORE_DECIMALS)
    sizes = Counter(labels.tolist())
    nearest: dict[int, int] = {}
    for row in np.argsort(distances, kind="stable").tolist():
        nearest.setdefault(int(labels[row]), row)
    chosen = sorted(nearest.values(), key=lambda row: (-sizes[int(labels[row])], row))
    return [*chosen, *(row for row in range(len(labels)) if row not in set(chosen))][:k]


# The most certain first: it names the failure where several hold.
FAILURE_SIGNALS = ("thumbs_down", "error", "abstained", "asked_again")

_GOOD_WORDS = {
    "1", "up", "thumbsup", "thumbs_up", "positive", "good", "like", "liked", "yes", "true",
    "helpful", "correct", "pass", "\U0001f44d",
}  # fmt: skip
_BAD_WORDS = {
    "0", "-1", "down", "thumbsdown", "thumbs_down", "negative", "bad", "dislike", "disliked", "no",
    "false", "unhelpful", "not_helpful", "incorrect", "wrong", "fail", "\U0001f44e",
}  # fmt: skip
_MAX_STARS = 5  # the longest scale of stars that is recognized
# A user who asks about the same thing again within this time got no answer. Search logs put the
# limit between 5 minutes (a task) and 30 (a session).
_REPEAT_WINDOW = dt.timedelta(minutes=10)
_MIN_SHARED_WORDS = 0.5


def failure_signals(requests: Sequence[LogRequest]) -> list[tuple[str, ...]]:
    """Return the failure signals of each request, in the order of `FAILURE_SIGNALS`.

    thumbs_down
        The feedback is bad: a bad word; a number below 0 where the log has negative numbers, else
        below 0.5 where none is above 1, else at most 2 of 5 stars.
    error
        The log has an error.
    abstained
        The answer only says that it cannot answer.
    asked_again
        The next question of the session, within 10 minutes where times are known, shares at least
        half of their words.
    """
    scale = _feedback_scale(requests)
    repeated = _repeated_questions(requests)
    signals = []
    for index, request in enumerate(requests):
        present = (
            _is_good(request.feedback, scale) is False,
            request.error is not None,
            bool(request.answer and declines(request.answer)),
            index in repeated,
        )
        signals.append(tuple(itertools.compress(FAILURE_SIGNALS, present)))
    return signals


def unknown_feedback(requests: Sequence[LogRequest]) -> Counter[str]:
    """Count feedback that is neither good nor bad on any known scale."""
    scale = _feedback_scale(requests)
    unknown: Counter[str] = Counter()
    for request in requests:
        if parse_number(request.feedback) is not None:
            unknown["numbers above 5"] += scale is None
        elif request.feedback is not None and _is_good(request.feedback, scale) is None:
            unknown[str(request.feedback)] += 1
    return +unknown


def _feedback_scale(requests: Sequence[LogRequest]) -> float | None:
    """Where good begins among the log's numbers; None for an unknown scale."""
    numbers = [n for request in requests if (n := parse_number(request.feedback)) is not None]
    if not numbers or (min(numbers) >= 0 and max(numbers) <= 1):
        return 0.5
    if min(numbers) < 0:
        return 0.0 if min(numbers) >= -1 and max(numbers) <= 1 else None
    return 3.0 if max(numbers) <= _MAX_STARS else None


def _is_good(feedback: str | float | None, scale: float | None) -> bool | None:
    """Whether feedback is good; None if there is none, it is neutral or not understood."""
    number = parse_number(feedback)
    if number is not None:
        neutral = scale is None or (number == scale and scale != 0.5)
        return None if neutral else number >= (scale or 0.0)
    word = "_".join(str(feedback or "").replace("-", " ").casefold().split())
    return True if word in _GOOD_WORDS else False if word in _BAD_WORDS else None


def _repeated_questions(requests: Sequence[LogRequest]) -> set[int]:
    sessions: dict[str, list[int]] = {}
    for index, request in enumerate(requests):
        if request.session:
            sessions.setdefault(request.session, []).append(index)
    repeated: set[int] = set()
    for members in sessions.values():
        if all(requests[index].at is not None for index in members):
            members.sort(key=lambda index: requests[index].at)  # type: ignore[arg-type,return-value]
        for index, later in itertools.pairwise(members):
            first, second = requests[index], requests[later]
            if first.at and second.at and second.at - first.at > _REPEAT_WINDOW:
                continue
            words, other_words = set(stems(first.question)), set(stems(second.question))
            if words and other_words:
                is_same = len(words & other_words) >= _MIN_SHARED_WORDS * len(words | other_words)
            else:
                is_same = question_key(first.question) == question_key(second.question)
            if is_same:
                repeated.add(index)
    return repeated


SampleReason = Literal["head", "failure", "tail"]
VectorFunction = Callable[[Sequence[str]], Awaitable[Any]]
Signals = Sequence[tuple[str, ...]]

_MIN_REPEATS = 2  # a question that was asked once is not frequent
MAX_CLUSTERED = 20_000  # questions of the tail; of more, this many are drawn
_TOLERANCE = 1e-9
_ANY_MASK = re.compile(r"<[A-Z][A-Z0-9_]*>")
_NOT_LOGGED = "The log does not say what was retrieved."
_SHOWN_FEEDBACK = 3


@dataclass(frozen=True)
class SampleShares:
    """Shares of a gold set from logs; the three add up to 1."""

    head: float = 0.4
    tail: float = 0.4
    failures: float = 0.2

    def __post_init__(self) -> None:
        """Reject shares that do not add up to 1."""
        shares = (self.head, self.tail, self.failures)
        if not all(0 <= share <= 1 for share in shares) or abs(sum(shares) - 1) > _TOLERANCE:
            listed = ", ".join(f"{share:g}" for share in shares)
            raise InputError(
                f"The shares of --head, --tail and --failures ({listed}) add up to "
                f"{sum(shares):g}. Use three numbers from 0 to 1 that add up to 1."
            )


@dataclass(frozen=True)
class SampledQuestion:
    """A sampled question.

    Parameters
    ----------
    group : QuestionGroup
    request : int
        Index of the request that represents the group.
    reason : {'head', 'failure', 'tail'}
    signals : sequence of str
        How requests of the group failed; see `failure_signals`.
    failed : int
        How many requests of the group failed.
    """

    group: QuestionGroup
    request: int
    reason: SampleReason
    signals: tuple[str, ...]
    failed: int


@dataclass(frozen=True)
class LogSample:
    """A sample of a log.

    Parameters
    ----------
    cases : sequence of Case
        Without relevant passages and references, which a log does not have.
    traces : sequence of Trace
        Of the cases whose request has an answer or retrieved passages.
    document : dict
        The JSON document of ``misslink goldset from-logs``, without file names.
    """

    cases: tuple[Case, ...]
    traces: tuple[Trace, ...]
    document: dict[str, Any]


async def sample_groups(
    requests: Sequence[LogRequest],
    groups: Sequence[QuestionGroup],
    failures: Signals,
    n: int,
    shares: SampleShares,
    *,
    vectors: VectorFunction | None = None,
    seed: int = 0,
) -> list[SampledQuestion]:
    """Sample up to n groups, each once: head, then failures, then tail.

    The head is the most frequent groups with at least two requests. Failures are the groups with
    the most failed requests, by turns of the signals. The tail is one group of each cluster of the
    rest. What the head or failures lack goes to the tail; what the tail lacks, to the next most
    frequent.

    Parameters
    ----------
    requests : sequence of LogRequest
    groups : sequence of QuestionGroup
        Of these requests, the largest first.
    failures : sequence of sequence of str
        The failure signals of each request.
    n : int
    shares : SampleShares
    vectors : callable, optional
        Returns unit vectors of questions. Default: TF-IDF of their words.
    seed : int
    """
    counts = apportion(n, vars(shares))
    remaining = dict(enumerate(groups))
    sample: list[SampledQuestion] = []

    def take(indices: Sequence[int], reason: SampleReason) -> None:
        sample.extend(
            _sampled_question(remaining.pop(index), reason, requests, failures) for index in indices
        )

    frequent = [index for index, group in remaining.items() if len(group.members) >= _MIN_REPEATS]
    take(frequent[: counts["head"]], "head")
    take(_most_failing(remaining, failures, counts["failures"]), "failure")
    tail = min(n - len(sample), len(remaining)) if shares.tail else 0
    if tail:
        take(await _cluster_centers(remaining, tail, vectors, seed), "tail")
    take(list(remaining)[: n - len(sample)], "head")
    return sample


def _most_failing(groups: Mapping[int, QuestionGroup], failures: Signals, limit: int) -> list[int]:
    """Failed groups, one for each signal in turn, those with the most failures first."""
    by_signal: dict[str, list[tuple[int, int]]] = {signal: [] for signal in FAILURE_SIGNALS}
    for index, group in groups.items():
        failed = [failures[number] for number in group.members if failures[number]]
        if failed:
            surest = min((signals[0] for signals in failed), key=FAILURE_SIGNALS.index)
            by_signal[surest].append((-len(failed), index))
    queues = [sorted(queue, reverse=True) for queue in by_signal.values()]
    chosen: list[int] = []
    while len(chosen) < limit and any(queues):
        chosen += [queue.pop()[1] for queue in queues if queue]
    return chosen[:limit]


async def _cluster_centers(
    groups: Mapping[int, QuestionGroup], k: int, vectors: VectorFunction | None, seed: int
) -> list[int]:
    indices = list(groups)
    if len(indices) > MAX_CLUSTERED:
        indices = sorted(random.Random(seed).sample(indices, MAX_CLUSTERED))  # noqa: S311 (no secret)
    if vectors is None:
        rows = tf_idf_vectors([groups[index].stems for index in indices])
    else:
        rows = await vectors([groups[index].wording for index in indices])
    return [indices[row] for row in representatives(rows, min(k, len(indices)), seed)]


def _sampled_question(
    group: QuestionGroup, reason: SampleReason, requests: Sequence[LogRequest], failures: Signals
) -> SampledQuestion:
    failed = [number for number in group.members if failures[number]]
    signals = {signal for number in failed for signal in failures[number]}
    candidates: Sequence[int] = group.members
    if reason == "failure":
        surest = min((failures[number][0] for number in failed), key=FAILURE_SIGNALS.index)
        candidates = [number for number in failed if surest in failures[number]]
    else:
        worded = [n for n in candidates if " ".join(requests[n].question.split()) == group.wording]
        candidates = worded or candidates
    # The latest of the requests with the most information.
    request = max(
        candidates,
        key=lambda n: (requests[n].passages is not None, requests[n].answer is not None, n),
    )
    ordered = tuple(signal for signal in FAILURE_SIGNALS if signal in signals)
    return SampledQuestion(group, request, reason, ordered, len(failed))


async def sample_log(
    log: RequestLog,
    n: int = 100,
    *,
    shares: SampleShares | None = None,
    masker: Masker | None = None,
    embedder: Embedder | None = None,
    seed: int = 0,
) -> LogSample:
    """Sample questions from a log.

    Parameters
    ----------
    log : RequestLog
        See `read_logs`.
    n : int
        Number of questions, at least 1; fewer if the log has fewer different ones.
    shares : SampleShares, optional
        Default: 0.4 head, 0.4 tail and 0.2 failures.
    masker : Masker, optional
        Masks every text before anything else reads it.
    embedder : Embedder, optional
        Clusters the tail by meaning; it receives only masked questions. Default: by words.
    seed : int

    Raises
    ------
    InputError
        No question is left after masking.
    """
    masker = masker or Masker()
    for request in log.requests:
        for text in (request.question, request.answer, request.error, request.category):
            masker.reserve(text or "")
        for passage in request.passages or ():
            masker.reserve(passage.text)
    requests, failures, left_out = [], [], Counter(log.left_out)
    for request, signals in zip(log.requests, failure_signals(log.requests), strict=True):
        question = masker.masked(request.question)
        if any(sign.isalnum() for sign in _ANY_MASK.sub("", unnumber_masks(question))):
            requests.append(replace(request, question=question))
            failures.append(signals)
        else:
            left_out["questions of nothing but personal data or punctuation"] += 1
    if not requests:
        raise InputError("No question is left in the logs after masking. Read other logs.")
    groups = group_questions([request.question for request in requests])
    vectors = None if embedder is None else embedder.queries
    sample = await sample_groups(
        requests, groups, failures, n, shares or SampleShares(), vectors=vectors, seed=seed
    )
    cases = [_to_case(question, requests[question.request], masker) for question in sample]
    traces = [
        trace
        for case, question in zip(cases, sample, strict=True)
        if (trace := _to_trace(case.id, requests[question.request], masker))
    ]
    reasons = Counter(question.reason for question in sample)
    document = {
        "requests": len(requests),
        "different": len(groups),
        "wanted": n,
        "written": len(cases),
        "chosen": {reason: reasons[reason] for reason in ("head", "failure", "tail")},
        "requests_covered": sum(len(question.group.members) for question in sample),
        "failing": {
            signal: sum(signal in signals for signals in failures) for signal in FAILURE_SIGNALS
        },
        "with_trace": len(traces),
        "masked": dict(sorted(masker.counts.items())),
        "tail_by": "words" if embedder is None else embedder.name,
        "columns": dict(log.columns),
        "left_out": dict(left_out),
        "notes": _sample_notes(log, sample, len(groups), n, masker),
        "seed": seed,
    }
    return LogSample(tuple(cases), tuple(traces), document)


def _to_case(sampled: SampledQuestion, request: LogRequest, masker: Masker) -> Case:
    tags = {"origin": "logs", "chosen": sampled.reason, "asked": str(len(sampled.group.members))}
    if sampled.signals:
        tags |= {"failed": str(sampled.failed), "failure": ",".join(sampled.signals)}
    return Case.model_validate(
        {
            "question": " ".join(request.question.split()),
            "category": masker.masked(request.category) if request.category else None,
            "tags": tags,
            "asked_at": request.at.date() if request.at else None,  # the hour could identify a user
        }
    )


def _to_trace(case_id: str, request: LogRequest, masker: Masker) -> Trace | None:
    if request.answer is None and request.passages is None:
        return None
    retrieved: dict[str, Passage] = {}
    for passage in request.passages or ():
        name = masker.masked_id(passage.id)
        update = {"id": name, "text": masker.masked(passage.text), "rank": len(retrieved) + 1}
        retrieved.setdefault(name, passage.model_copy(update=update))
    return Trace(
        case_id=case_id,
        retrieved=tuple(retrieved.values()),
        answer=masker.masked(request.answer) if request.answer else None,
        latency_s=request.latency_s,
        error=masker.masked(request.error) if request.error else None,
        unmeasured=_NOT_LOGGED if request.passages is None else None,
    )


def _sample_notes(
    log: RequestLog, sample: Sequence[SampledQuestion], different: int, n: int, masker: Masker
) -> list[str]:
    notes = []
    if len(sample) < n:
        notes.append(f"The logs contain {different:,} different questions, fewer than {n:,}.")
    if not any(len(question.group.members) > 1 for question in sample):
        notes.append("No question occurs twice, so the tail gets the share of the head.")
    tail = different - sum(question.reason != "tail" for question in sample)
    if tail > MAX_CLUSTERED and any(question.reason == "tail" for question in sample):
        notes.append(f"The tail clusters {MAX_CLUSTERED:,} questions, drawn from {tail:,}.")
    if not any(request.feedback is not None for request in log.requests):
        notes.append("The logs contain no user feedback. Name its column: --column feedback=NAME.")
    if not any(request.session for request in log.requests):
        notes.append("The logs contain no sessions, so repeated questions cannot be detected.")
    if unknown := unknown_feedback(log.requests):
        words = ", ".join(
            f"'{masker.masked(word)[:40]}'" for word in list(unknown)[:_SHOWN_FEEDBACK]
        )
        notes.append(f"{unknown.total():,} feedback values were not understood, such as {words}.")
    notes.append("Names are masked only by --mask-names. Read the questions before you share them.")
    return notes
