"""A canary run: the result of each canary, its figures, and what its corpus was."""

from __future__ import annotations

import glob
import hashlib
import json
import logging
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter

from misslink.io.atomic import atomic_write
from misslink.render.format import list_first
from misslink.types import Estimate, Passage

CanaryStatus = Literal["answered", "failed", "hung", "not_asked"]

COMPARED_RUNS = 10  # comparable runs that say what is usual for a canary
_MAX_UNMEASURED = 0.1  # of the answered canaries
_TAIL_SHARE = 0.95


@dataclass(frozen=True)
class CanaryResult:
    """What one run saw of one canary.

    Parameters
    ----------
    canary : str
        Its id.
    owner : str or None
    status : {'answered', 'failed', 'hung', 'not_asked'}
        Whether the app answered, raised, did not end in its time, or was not asked because the
        run's time was up.
    healthy : bool or None
        An expected passage is within k, its relevance reaches the least that the canary wants,
        and the answer is right where it was judged. None: part of that was not measured.
    reason : str
        Why it is healthy, is not, or is not known.
    rank : int or None
        Of the first expected passage within k, from 1.
    coverage : float or None
        Share of the expected passages within k.
    score : float or None
        Relevance of the best expected passage within k.
    right : bool or None
        Whether the answer is right. None: not judged.
    latency_s : float or None
        Of an answer.
    """

    canary: str
    owner: str | None
    status: CanaryStatus
    healthy: bool | None
    reason: str
    rank: int | None = None
    coverage: float | None = None
    score: float | None = None
    right: bool | None = None
    latency_s: float | None = None

    @property
    def answered(self) -> bool:
        """Whether the app gave an answer, or passages, in its time."""
        return self.status == "answered"


@dataclass(frozen=True)
class RunFigures:
    """The figures of one run.

    Parameters
    ----------
    health : Estimate
        Share of the measured canaries that are healthy; missing if over 10% were not measured.
    coverage : Estimate
        Mean share of expected passages within k, over the canaries that expect some.
    top_score : Estimate
        Mean relevance of the best expected passage within k, where there is one.
    answered : Estimate
        Share of all canaries for which the app answered in its time.
    latency : mapping
        ``median`` and ``p95`` in seconds (None without an answer), and ``n``.
    """

    health: Estimate
    coverage: Estimate
    top_score: Estimate
    answered: Estimate
    latency: Mapping[str, Any]

    @property
    def values(self) -> dict[str, float | None]:
        """What the control charts watch, by measure."""
        return {
            "health": self.health.value,
            "coverage": self.coverage.value,
            "top_score": self.top_score.value,
            "latency_s": self.latency["median"],
            "errors": None if self.answered.value is None else 1 - self.answered.value,
        }


def run_figures(results: Sequence[CanaryResult]) -> RunFigures:
    """Summarize a run's results; health is the share of healthy canaries among those measured."""
    # An app that hangs or fails counts in ``answered``, not as 0 in health.
    import numpy as np

    from misslink.stats import mean, proportion

    measured = [result.healthy for result in results if result.healthy is not None]
    coverage = [result.coverage for result in results if result.coverage is not None]
    scores = [result.score for result in results if result.score is not None]
    times = [result.latency_s for result in results if result.latency_s is not None]
    median, tail = np.quantile(times, [0.5, _TAIL_SHARE]).tolist() if times else (None, None)
    none = "the app answered no canary with expected passages"
    why_no_health = "there is no canary"
    # One failed check tells, and one unmeasured check does not: among the measured, more fail.
    unmeasured = [one for one in results if one.answered and one.healthy is None]
    if results:
        first = (unmeasured or results)[0].reason
        why_no_health = f"the health of no canary was measured; of the first: {first}"
    if measured and unmeasured:
        why_no_health = f"the health of {len(unmeasured)} of {len(results)} canaries was not measured; of the first: {first}"
    return RunFigures(
        health=(
            proportion(sum(measured), len(measured))
            if measured and len(unmeasured) <= _MAX_UNMEASURED * len(results)
            else Estimate.missing(why_no_health)
        ),
        coverage=mean(coverage) if coverage else Estimate.missing(none),
        top_score=(
            mean(scores, bounds=None)
            if scores
            else Estimate.missing("no expected passage with a relevance was within k")
        ),
        answered=(
            proportion(sum(result.answered for result in results), len(results))
            if results
            else Estimate.missing("there is no canary")
        ),
        latency={"median": median, "p95": tail, "n": len(times)},
    )


def find_degraded(
    results: Sequence[CanaryResult], history: Mapping[str, Sequence[CanaryResult]]
) -> list[dict[str, str | None]]:
    """The canaries that are not healthy now and were, or usually are.

    Parameters
    ----------
    results : sequence of Result
        Of this run.
    history : mapping of str to sequence of Result
        Canary id to its results in comparable runs before this one, the latest first. Results in
        which its health was not measured do not count.

    Returns
    -------
    list of dict
        ``id``, ``owner``, and the reasons when it was last healthy and now, ``before`` and
        ``now``. A canary whose health was not measured now is not among them.
    """
    degraded = []
    for result in results:
        previous = [old for old in history.get(result.canary, ()) if old.healthy is not None]
        previous = previous[:COMPARED_RUNS]
        healthy = [old for old in previous if old.healthy]
        was = bool(previous) and (previous[0].healthy or 2 * len(healthy) > len(previous))
        if result.healthy is False and was:
            now = {"id": result.canary, "owner": result.owner}
            degraded.append({**now, "before": healthy[0].reason, "now": result.reason})
    return degraded


_DIGITS = 16  # of a text's SHA-256: two of a million texts agree by chance once in 10^7 corpora
_MAX_IDS = 3  # ids that a sentence names; the rest is counted
_MAX_ID_LENGTH = 60


@dataclass(frozen=True)
class Fingerprint:
    """What the documents and the embedding model were at one time.

    Parameters
    ----------
    documents : mapping of str to str
        From a passage's id to the first 16 hexadecimal digits of its text's SHA-256. The texts
        themselves are not kept.
    embedding : str or None
        By what the embedding model is known again (see `misslink.embedding.embedder`); None
        where it is not known.
    """

    documents: Mapping[str, str]
    embedding: str | None = None

    @property
    def digest(self) -> str:
        """64 hexadecimal digits, the same for the same documents (in any order) and embedding."""
        whole = [sorted(self.documents.items()), self.embedding]
        return hashlib.sha256(json.dumps(whole, ensure_ascii=True).encode()).hexdigest()


def fingerprint_corpus(passages: Iterable[Passage], embedding: str | None = None) -> Fingerprint:
    """Return the fingerprint of a corpus; passages with the same id count as one document."""
    texts: dict[str, list[str]] = {}
    for passage in passages:
        texts.setdefault(passage.id, []).append(_digest(passage.text))
    return Fingerprint(
        documents={
            name: digests[0] if len(digests) == 1 else _digest(" ".join(sorted(digests)))
            for name, digests in sorted(texts.items())
        },
        embedding=embedding,
    )


def compare_fingerprints(before: Fingerprint, after: Fingerprint) -> dict[str, Any]:
    """Return what is different in `after`.

    Returns
    -------
    dict
        ``added``, ``removed`` and ``edited`` ids, sorted; ``embedding``, the models ``before`` and
        ``after`` where both are known and differ, else None; and all that in one ``sentence``,
        empty where nothing is known to have changed. Callers escape it for pages.

    Examples
    --------
    >>> found = compare_fingerprints(Fingerprint({"a": "1", "b": "2"}), Fingerprint({"b": "3", "c": "4"}))
    >>> found["sentence"]
    '1 document added (c); 1 document removed (a); 1 document edited (b)'
    """
    old, new = before.documents, after.documents
    ids = {
        "added": sorted(new.keys() - old.keys()),
        "removed": sorted(old.keys() - new.keys()),
        "edited": sorted(name for name in new.keys() & old.keys() if new[name] != old[name]),
    }
    parts = []
    for verb, names in ids.items():
        if names:
            listed = list_first(names, _MAX_IDS, _short_text)
            noun = "document" if len(names) == 1 else "documents"
            parts.append(f"{len(names)} {noun} {verb} ({listed})")
    embedding = None
    if before.embedding and after.embedding and before.embedding != after.embedding:
        embedding = {"before": before.embedding, "after": after.embedding}
        models = (_short_text(model) for model in embedding.values())
        parts.append("the embedding model changed from {} to {}".format(*models))
    return {**ids, "embedding": embedding, "sentence": "; ".join(parts)}


def _digest(text: str) -> str:
    # Half of a surrogate pair cannot be encoded strictly, and two texts of them are two texts.
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]


def _short_text(text: str) -> str:
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= _MAX_ID_LENGTH else f"{line[: _MAX_ID_LENGTH - 3]}..."


_log = logging.getLogger("misslink")


@dataclass(frozen=True, kw_only=True)
class CanaryObservation:
    """What a run saw.

    Parameters
    ----------
    at : float
        When it began, in Unix seconds.
    results : sequence of Result
        One a canary, in the file's order.
    fingerprint : Fingerprint or None
        Of the corpus and the embedding. None: neither is known.
    corpus_known : bool
        Whether its documents are known, or the embedding alone.
    notes : sequence of str
        What could not be seen, for people.
    basis : {'cosine', 'score'}
        What the relevance of a passage is.
    hung : int
        Calls that were left behind; their threads may still run.
    judge_problem : str or None
        Why the judge could not be asked on.
    """

    at: float
    results: tuple[CanaryResult, ...]
    fingerprint: Fingerprint | None
    corpus_known: bool = True
    notes: tuple[str, ...] = ()
    basis: str = "cosine"
    hung: int = 0
    judge_problem: str | None = None


@dataclass(frozen=True, kw_only=True)
class FinishedRun(CanaryObservation):
    """What a run saw and how it was set up.

    Parameters
    ----------
    name : str
        Of the series it belongs to.
    key : str
        What makes runs comparable: the canaries, k, the judge, and what relevance is.
    settings : mapping
        The same for people: app, canaries, k, judge, relevance.
    code : str or None
        Digest of the app's own code, where it is known.
    accept : bool
        Whether what is seen now is the new norm: nothing before it is compared with.
    notify : bool
        Whether a webhook is notified of alarms.
    learn : int
        From how many runs a measure's usual state is learnt.
    uid : str
        By which it is entered once.
    """

    name: str
    key: str
    settings: dict[str, Any]
    code: str | None = None
    accept: bool = False
    notify: bool = False
    learn: int = 20
    uid: str = field(default_factory=lambda: uuid.uuid4().hex)


def save_pending_run(finished: FinishedRun, history: Path) -> Path:
    """Write a run beside a history that cannot take it now; the next run enters it.

    Raises
    ------
    InputError
        It cannot be written.
    """
    place = history.with_name(f"{history.name}.{finished.uid}.pending.json")
    unused = {"basis", "hung", "judge_problem"}  # by the history
    text = TypeAdapter(FinishedRun).dump_json(finished, exclude=unused).decode()
    return atomic_write(text + "\n", place)


def load_pending_runs(history: Path) -> Iterator[tuple[Path, FinishedRun]]:
    """Yield the runs saved next to a history, oldest first; warn about unreadable ones."""
    runs = []
    for path in sorted(history.parent.glob(f"{glob.escape(history.name)}.*.pending.json")):
        try:
            runs.append((path, TypeAdapter(FinishedRun).validate_json(path.read_bytes())))
        except (OSError, ValueError) as problem:
            _log.warning(
                "%s is not a saved run and is left there (%s)", path, type(problem).__name__
            )
    yield from sorted(runs, key=lambda pair: pair[1].at)
