"""Which change of the retriever would help, told from the run's own questions, best first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from misslink.errors import InputError
from misslink.linking.calibration import Calibration
from misslink.linking.whatif.basis import Basis
from misslink.linking.whatif.checking import Deeper, Rerun, check
from misslink.linking.whatif.chunking import Chunking
from misslink.linking.whatif.comparing import (
    Compared,
    Unknown,
    context_tokens,
    counted,
    finding,
    measured_today,
    metrics_of,
)
from misslink.linking.whatif.forecast import Change, Table, avoided, changes
from misslink.linking.whatif.given import checked_corpus, texts_known
from misslink.linking.whatif.kinds import Ground, options_of
from misslink.linking.whatif.options import Option
from misslink.linking.whatif.reranking import Reranker
from misslink.linking.whatif.today import Today, Tried
from misslink.retrieval import why_unmeasured
from misslink.types import Estimate, Passage, Run

if TYPE_CHECKING:
    from misslink.embedding import Embedder

__all__ = ["whatif"]

_TRACES_ONLY = (
    "Without a corpus only a larger k was tried, from the ranks that the run knows; "
    "give --corpus or --app to try other searches."
)


@dataclass(frozen=True)
class _Weighed:
    """An option with all that is said of it."""

    option: Option
    tried: Tried
    changed: tuple[Change, ...]
    metrics: Compared
    saved: Estimate
    unknown: Unknown | None

    def order(self, metric: str) -> tuple[int, float, float]:
        """Best first: by who wins, then by what is saved for certain, then by the difference."""
        compared = self.metrics[metric]
        place = ("option", None, "today").index(compared["winner"])
        low, high = self.saved.low, self.saved.high
        certain = low is not None and high is not None and (low > 0 or high < 0)
        saved = (self.saved.value or 0.0) if certain else 0.0
        return place, -saved, -(compared["difference"]["value"] or 0.0)


async def whatif(
    run: Run,
    corpus: Sequence[Passage] | None = None,
    *,
    embedder: Embedder | None = None,
    other: Embedder | None = None,
    reranker: Reranker | None = None,
    chunking: Chunking | None = None,
    widths: Sequence[int] = (),
    options: Sequence[str] | None = None,
    rerun: Rerun | None = None,
    deeper: Deeper | None = None,
    sample: int = 0,
    seed: int = 0,
    tick: Callable[[str, int, int], object] = lambda *_: None,
) -> dict[str, Any]:
    """Try other retrievers on a run's questions.

    Parameters
    ----------
    run : Run
    corpus : sequence of Passage or None
        What the app searches, with the same ids. None: only what the traces know is tried.
    embedder : Embedder or None
        The app's own, for the options that search by meaning.
    other : Embedder or None
        Another one, to be tried in its place.
    reranker : Reranker or None
    chunking : Chunking or None
        Other sizes to cut the corpus' documents to.
    widths : sequence of int
        Numbers of passages to hand over; 2, 3 and 5 times today's if empty.
    options : sequence of str or None
        Names of `misslink.linking.whatif.kinds.KINDS`. None: whatever can be tried.
    rerun : callable or None
        Takes a case and passages, generates and judges again; with it the forecast is checked.
    deeper : callable or None
        Takes a case and a number, and returns as many passages of the app's own ranking; with it
        a larger k can be checked where the run knows only the ranks of what was missed.
    sample : int
        Affected cases of the best option that are checked at most.
    seed : int
        Of everything that is drawn.
    tick : callable
        Called with a stage, how many options are done, and how many there are.

    Returns
    -------
    dict
        As ``whatif.json`` holds it: today's metrics, and the options, best first.

    Raises
    ------
    InputError
        An option is unknown or was asked for and cannot be tried, all of them failed, or the
        corpus is not the one the gold set names. Of several options one that fails is skipped.
    """
    if any(width < 1 for width in widths):
        raise InputError(f"k counts passages from 1, not {min(widths)}")
    today = Today.of(run)
    passages, notes = None, [_TRACES_ONLY]
    if corpus is not None:
        passages, notes = checked_corpus(today, corpus)
    ground = Ground(today, passages, embedder, other, reranker, chunking, tuple(widths))
    made, skipped = options_of(ground, options)
    basis = Basis.of(run, today)
    found = await _all_tried(today, made, skipped, tick)
    scores, before = measured_today(today, seed)
    metrics = metrics_of(today, scores, [tried for _, tried in found], seed)
    main = f"recall@{today.k}"
    weighed = [
        _weighed(today, option, tried, compared, basis, seed)
        for (option, tried), compared in zip(found, metrics, strict=True)
    ]
    weighed.sort(key=lambda one: one.order(main))
    error = None
    if rerun is not None and sample > 0:
        error = await _checked_forecast(
            today,
            weighed,
            basis,
            known=texts_known(run, passages),
            rerun=rerun,
            deeper=deeper,
            sample=sample,
            calibration=Calibration.of_run(run),
            seed=seed,
        )
    return {
        "run": run.summary.get("run"),
        "corpus": None if passages is None else {"passages": len(passages)},
        "embedding": embedder.name if embedder else None,
        "k": today.k,
        "context_passages": today.width,
        "today": {name: estimate.model_dump() for name, estimate in before.items()},
        "options": [_as_document(today, one, basis.table, main, seed) for one in weighed],
        "skipped": skipped,
        "forecast_error": error,
        "basis": "replayed" if basis.pairs else "association",
        "notes": [*notes, *basis.notes],
        "seed": seed,
    }


async def _all_tried(
    today: Today,
    options: Sequence[Option],
    skipped: list[dict[str, str]],
    tick: Callable[[str, int, int], object],
) -> list[tuple[Option, Tried]]:
    """Try the options; one that fails is put among the skipped.

    Raises
    ------
    InputError
        All failed; it is the first failure.
    """
    found = []
    failures = []
    for done, option in enumerate(options):
        tick("options", done, len(options))
        try:
            found.append((option, await option.tried(today)))
        except InputError as problem:
            failures.append(problem)
            skipped.append({"name": option.name, "reason": str(problem)})
    tick("options", len(options), len(options))
    if failures and not found:
        raise failures[0]
    return found


def _weighed(
    today: Today, option: Option, tried: Tried, metrics: Compared, basis: Basis, seed: int
) -> _Weighed:
    changed = changes(today, tried)
    unknown = Unknown.among(today, tried)
    if unknown:
        saved = Estimate.missing(f"misses are {unknown}", n=basis.table.n)
    else:
        saved = avoided(basis.table, changed, pairs=basis.pairs, seed=seed)
    return _Weighed(option, tried, changed, metrics, saved, unknown)


async def _checked_forecast(
    today: Today, weighed: Sequence[_Weighed], basis: Basis, **given: Any
) -> dict[str, Any]:
    """The forecast of the best option that changes judged cases and whose passages are known."""
    first = None
    for one in weighed:
        if one.saved.value is None or all(change.bad is None for change in one.changed):
            continue
        found = await check(
            today,
            one.option.name,
            one.tried,
            one.changed,
            table=basis.table,
            pairs=basis.pairs,
            **given,
        )
        if found["asked"]:
            return found
        first = first or found
    reason = "no option changes a case with a judged answer"
    return first or {
        "option": None,
        "affected": 0,
        "asked": 0,
        "checked": 0,
        "forecast": None,
        "measured": None,
        "error": Estimate.missing(reason).model_dump(),
        "skipped": [],
    }


def _as_document(today: Today, one: _Weighed, table: Table, main: str, seed: int) -> dict[str, Any]:
    mended, made = (None, None) if one.unknown else counted(one.changed)
    bad = table.miss_bad + table.hit_bad
    lost = Counter(
        then.unmeasured
        for now, then in zip(today.traces, one.tried.traces, strict=True)
        if then.unmeasured and not why_unmeasured(now)
    )
    return {
        "name": one.option.name,
        "what": one.option.what,
        "passages": one.tried.width,
        "metrics": one.metrics,
        "context_tokens": context_tokens(today, one.tried, seed),
        "unfaithful_avoided": one.saved.model_dump(),
        "misses_mended": mended,
        "new_misses": made,
        "unmeasured": dict(lost),
        "finding": finding(main, one.metrics[main], one.saved, bad, one.unknown),
    }
