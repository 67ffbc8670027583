"""Which change of the retriever would help, told from the run's own questions, best first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from misslink.errors import InputError
from misslink.linking.pool import Pool
from misslink.linking.whatif.checking import Rerun, check
from misslink.linking.whatif.chunking import Chunking
from misslink.linking.whatif.comparing import (
    Compared,
    context_tokens,
    counted,
    finding,
    measured_today,
    metrics_of,
)
from misslink.linking.whatif.forecast import Change, Table, avoided, changes, confirmed_share
from misslink.linking.whatif.kinds import Ground, options_of
from misslink.linking.whatif.options import Option
from misslink.linking.whatif.reranking import Reranker
from misslink.linking.whatif.today import Today, Tried
from misslink.retrieval import why_unmeasured
from misslink.types import Estimate, Passage, Run

if TYPE_CHECKING:
    from misslink.embedding import Embedder

__all__ = ["whatif"]

_ASSOCIATION = (
    "The forecast takes it that a mended miss has the risk of today's hits: association, not cause."
)
_REPLAYED = (
    "The forecast takes it that the share of misses that replay mended is mended here too: {share}."
)
_TRACES_ONLY = (
    "Without a corpus only a larger k was tried, from the ranks that the run knows; "
    "give --corpus or --app to try other searches."
)
_QUESTIONS = "The corpus is searched with the questions as the gold set has them."


@dataclass(frozen=True)
class _Weighed:
    """An option with all that is said of it."""

    option: Option
    tried: Tried
    changed: tuple[Change, ...]
    metrics: Compared
    saved: Estimate

    def order(self, metric: str) -> tuple[bool, float, float]:
        """Best first: by unfaithful answers avoided, then by the difference of `metric`."""
        difference = self.metrics[metric]["difference"]["value"]
        return self.saved.value is None, -(self.saved.value or 0.0), -(difference or 0.0)


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
        An option is unknown or cannot be tried, or the corpus is not the one the gold set names.
    """
    if any(width < 1 for width in widths):
        raise InputError(f"k counts passages from 1, not {min(widths)}")
    today = Today.of(run)
    notes: list[str] = []
    passages = None
    if corpus is None:
        notes.append(_TRACES_ONLY)
    else:
        passages = _checked(today, corpus, notes)
    ground = Ground(today, passages, embedder, other, reranker, chunking, tuple(widths))
    made, skipped = options_of(ground, options)
    tried = []
    for done, option in enumerate(made):
        tick("options", done, len(made))
        tried.append(await option.tried(today))
    tick("options", len(made), len(made))
    table, confirmed = Table.of(today), confirmed_share(run.replay)
    scores, before = measured_today(today, seed)
    weighed = []
    metrics = metrics_of(today, scores, tried, seed)
    for option, found, compared in zip(made, tried, metrics, strict=True):
        changed = changes(today, found)
        saved = avoided(table, changed, confirmed=confirmed, seed=seed)
        weighed.append(_Weighed(option, found, changed, compared, saved))
    main = f"recall@{today.k}"
    weighed.sort(key=lambda one: one.order(main))
    error = None
    if rerun is not None and sample > 0:
        error = await _checked_forecast(today, weighed, rerun, sample, table, confirmed, seed)
    return {
        "run": run.summary.get("run"),
        "corpus": None if passages is None else {"passages": len(passages)},
        "embedding": embedder.name if embedder else None,
        "k": today.k,
        "context_passages": today.width,
        "today": {name: estimate.model_dump() for name, estimate in before.items()},
        "options": [_as_document(today, one, before, table, main, seed) for one in weighed],
        "skipped": skipped,
        "forecast_error": error,
        "basis": "replayed" if confirmed else "association",
        "notes": [*notes, _basis(confirmed)],
        "seed": seed,
    }


def _checked(today: Today, corpus: Sequence[Passage], notes: list[str]) -> tuple[Passage, ...]:
    """The corpus' passages with a text, each id once, if it is the one the gold set names."""
    pool = Pool(today.traces, corpus)
    if not pool.passages:
        raise InputError("the corpus holds no text; give one with texts")
    ids = {
        id_
        for case in today.cases
        if not any(case.evidence.values())
        for id_ in (
            [one for group in case.relevant_any for one in group]
            or [name for name, grade in case.relevant.items() if grade > 0]
        )
    }
    if ids and ids.isdisjoint(pool.place):
        raise InputError(
            f"the corpus holds none of the {len(ids)} passages that the gold set names (such as "
            f"'{min(ids)}'); give the corpus that the app searches, with the same ids"
        )
    if lacking := len(ids - pool.place.keys()):
        notes.append(
            f"The corpus lacks {lacking} of the {len(ids)} passages that the gold set names; "
            "no option can find them."
        )
    if not (pool.knows_ids or pool.knows_texts):
        notes.append("The corpus does not hold all that the app retrieved; it may be another one.")
    notes.append(_QUESTIONS)
    return pool.passages


async def _checked_forecast(
    today: Today,
    weighed: Sequence[_Weighed],
    rerun: Rerun,
    sample: int,
    table: Table,
    confirmed: Estimate | None,
    seed: int,
) -> dict[str, Any]:
    """The forecast of the best option that changes judged cases and whose passages are known."""
    for one in weighed:
        if (
            one.tried.texts
            and one.saved.value is not None
            and any(change.bad is not None for change in one.changed)
        ):
            return await check(
                today,
                one.option.name,
                one.tried,
                one.changed,
                rerun=rerun,
                sample=sample,
                table=table,
                confirmed=confirmed,
                seed=seed,
            )
    reason = "no option whose passages are known changes a case with a judged answer"
    return {
        "option": None,
        "affected": 0,
        "checked": 0,
        "forecast": None,
        "measured": None,
        "error": Estimate.missing(reason).model_dump(),
        "skipped": [],
    }


def _as_document(
    today: Today,
    one: _Weighed,
    before: dict[str, Estimate],
    table: Table,
    main: str,
    seed: int,
) -> dict[str, Any]:
    mended, made = counted(one.changed)
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
        "finding": finding(main, one.metrics[main], before[main], one.saved, bad),
    }


def _basis(confirmed: Estimate | None) -> str:
    if confirmed is None or confirmed.value is None:
        return _ASSOCIATION
    ends = (confirmed.low, confirmed.high)
    low, high = ("?" if end is None else f"{100 * end:.0f}" for end in ends)
    return _REPLAYED.format(share=f"{100 * confirmed.value:.0f} % [{low}, {high}]")
