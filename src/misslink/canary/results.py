"""The result of each canary in a run, and the metrics of the run."""

from __future__ import annotations

import glob
import logging
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter

from misslink.canary.fingerprint import Fingerprint
from misslink.io.atomic import atomic_write
from misslink.types import Estimate

CanaryStatus = Literal["answered", "failed", "hung", "not_asked"]

_COMPARED_RUNS = 10  # comparable runs that say what is usual for a canary
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
        Why it is healthy, is not, or cannot be told.
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
        Share of the measured canaries that are healthy.
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


@dataclass(frozen=True)
class DegradedCanary:
    """A canary that is not healthy any more.

    Parameters
    ----------
    id : str
    owner : str or None
    before, now : str
        Its reasons when it was last healthy, and now.
    """

    id: str
    owner: str | None
    before: str
    now: str


def run_figures(results: Sequence[CanaryResult], *, seed: int = 0) -> RunFigures:
    """Summarize a run's results; health is the share of healthy canaries among those measured."""
    # An app that hangs or fails counts in ``answered``, not as 0 in health.
    import numpy as np

    from misslink.stats import mean, proportion

    measured = [result.healthy for result in results if result.healthy is not None]
    coverage = [result.coverage for result in results if result.coverage is not None]
    scores = [result.score for result in results if result.score is not None]
    times = [result.latency_s for result in results if result.latency_s is not None]
    median, tail = np.quantile(times, [0.5, _TAIL_SHARE]).tolist() if times else (None, None)
    none = "the app answered no question whose passages could be looked for"
    why_no_health = "there is no canary"
    if results:
        why_no_health = f"the health of no canary was measured; of the first: {results[0].reason}"
    return RunFigures(
        health=(
            proportion(sum(measured), len(measured))
            if measured
            else Estimate.missing(why_no_health)
        ),
        coverage=mean(coverage, seed=seed) if coverage else Estimate.missing(none),
        top_score=(
            mean(scores, seed=seed, bounds=None)
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
) -> tuple[DegradedCanary, ...]:
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
    tuple of Degraded
        In the order of the results. A canary whose health was not measured now is not among them.
    """
    degraded = []
    for result in results:
        previous = [old for old in history.get(result.canary, ()) if old.healthy is not None]
        previous = previous[:_COMPARED_RUNS]
        healthy = [old for old in previous if old.healthy]
        was = bool(previous) and (previous[0].healthy or 2 * len(healthy) > len(previous))
        if result.healthy is False and was:
            degraded.append(
                DegradedCanary(result.canary, result.owner, healthy[0].reason, result.reason)
            )
    return tuple(degraded)


_log = logging.getLogger("misslink")


@dataclass(frozen=True)
class FinishedRun:
    """What one run found and how it was set up.

    Parameters
    ----------
    name : str
        Of the series it belongs to.
    at : float
        When it began, in Unix seconds.
    key : str
        What makes runs comparable: the canaries, k, the judge, and what relevance is.
    settings : mapping
        The same for people: app, canaries, k, judge, relevance.
    results : sequence of Result
    fingerprint : Fingerprint or None
    corpus_known : bool
    code : str or None
        Digest of the app's own code, where it is known.
    accept : bool
        Whether what is seen now is the new norm: nothing before it is compared with.
    notify : bool
        Whether a webhook is notified of alarms.
    learn : int
        From how many runs a measure's usual state is learnt.
    notes : sequence of str
    uid : str
        By which it is entered once.
    """

    name: str
    at: float
    key: str
    settings: dict[str, Any]
    results: tuple[CanaryResult, ...]
    fingerprint: Fingerprint | None
    corpus_known: bool = True
    code: str | None = None
    accept: bool = False
    notify: bool = False
    learn: int = 20
    notes: tuple[str, ...] = ()
    uid: str = field(default_factory=lambda: uuid.uuid4().hex)


def save_pending_run(finished: FinishedRun, history: Path) -> Path:
    """Write a run beside a history that cannot take it now; the next run enters it.

    Raises
    ------
    InputError
        It cannot be written.
    """
    place = history.with_name(f"{history.name}.{finished.uid}.pending.json")
    return atomic_write(TypeAdapter(FinishedRun).dump_json(finished).decode() + "\n", place)


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
