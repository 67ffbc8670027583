"""A gold set from a corpus: the whole line, from the passages to the file."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from misslink.goldset.generating.foreseeing import StandIn, foreseen
from misslink.goldset.generating.gold import (
    case_of,
    refuse_foreign,
    reject_of,
    write_gold,
    write_rejects,
)
from misslink.goldset.generating.opened import opened
from misslink.goldset.generating.rounds import Tick, in_rounds
from misslink.goldset.generating.settings import Settings
from misslink.goldset.generating.telling import about, document, refuse_in_vain
from misslink.judging.forecast import Forecast
from misslink.judging.protocol import Judge
from misslink.judging.terms import Terms
from misslink.types import Case

__all__ = ["Generated", "generate", "generate_async", "preview_async"]

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Generated:
    """A generated gold set.

    Parameters
    ----------
    cases : sequence of Case
    rejected : sequence of mapping
        Every dropped candidate, with `reason` (a code) and `sentence`.
    document : mapping
        What ``misslink goldset generate --json`` prints.
    """

    cases: tuple[Case, ...]
    rejected: tuple[dict[str, Any], ...]
    document: dict[str, Any]


def generate(corpus: Any, judge: str | Judge, n: int = 100, **options: Any) -> Generated:
    """Make a gold set from a corpus; also in a notebook.

    Takes what `generate_async` takes.

    Examples
    --------
    >>> from misslink.goldset import generate
    >>> made = generate("corpus.jsonl", "openai:MODEL", 50, out="gold.jsonl")  # doctest: +SKIP
    >>> made.document["rejected"]  # doctest: +SKIP
    {'known_by_heart': 7, 'near_duplicate': 2}
    """
    return _in_a_loop(lambda: generate_async(corpus, judge, n, **options))


async def generate_async(
    corpus: Any,
    judge: str | Judge,
    n: int = 100,
    *,
    out: str | Path | None = None,
    rejects: str | Path | None = None,
    settings: Settings | str | Path | None = None,
    seed: int = 0,
    embedding: Any = None,
    ledger: str | Path | None = None,
    concurrency: int = 8,
    terms: Terms | None = None,
    overwrite: bool = False,
    tick: Tick = lambda _, __: None,
) -> Generated:
    """Make a gold set from a corpus: questions that a judge writes and that are each verified.

    Parameters
    ----------
    corpus : str, Path, loader, or iterable of Document or Passage
        See `read_sources`.
    judge : str or Judge
        Anything that answers an Ask, such as ``openai:MODEL`` or ``llamacpp:FILE``; not
        ``embedded``, which writes nothing.
    n : int
        Questions wanted, at least 1.
    out : str, Path or None
        The gold set's file; beside it ``OUT.json`` says what it was made by. None writes none.
    rejects : str, Path or None
        File for every dropped candidate, as JSON Lines.
    settings : Settings, path of a YAML file, or None
    seed : int
        The same seed and the same replies give the same file, byte for byte.
    embedding : str, Embeddings or None
        As `open_embedder` takes it; 'none': by words alone. None: minilm where it is installed.
    ledger : str, Path or None
        Where replies are kept, so that the same call goes on after an interruption; by default
        ``.misslink/ledger.sqlite``.
    concurrency : int
        Questions under way at once, at least 1.
    terms : Terms or None
    overwrite : bool
        Whether a file at `out` that was made otherwise, or changed since, may be replaced.
    tick : callable
        Called with how many questions are accepted, and how many are wanted.

    Returns
    -------
    Generated
        With fewer than `n` cases where candidates or the budget ran out; the document's
        ``missing`` and ``stopped`` say so. Without any no file is written at `out`.

    Raises
    ------
    InputError
        The corpus, the settings or a file is wrong, or the judge cannot write.
    JudgeUnreachableError
        Nobody answers, or no reply at all could be read.
    """
    gold = None if out is None else Path(out)
    if gold is not None:
        refuse_foreign(gold, overwrite=overwrite)
    opening = opened(corpus, judge, n, settings, embedding, ledger, concurrency, terms)
    async with opening as made:
        await made.judge.reachable()
        found = await in_rounds(
            made.judge, made.sources, made.index, made.settings, made.prompts,
            n=n, seed=seed, tick=tick,
        )  # fmt: skip
        usage = made.judge.usage()
    dropped = tuple(reject_of(one, made.sources) for one in found.rejected)
    if rejects is not None:
        write_rejects(dropped, Path(rejects))
    refuse_in_vain(found, made.judge)
    cases = tuple(case_of(one, made.sources, seed) for one in found.accepted)
    if gold is not None and cases:
        write_gold(cases, about(made, found, n, seed), gold)
    return Generated(cases, dropped, document(made, found, gold if cases else None, n, usage))


async def preview_async(
    corpus: Any,
    judge: str | Judge,
    n: int = 100,
    *,
    settings: Settings | str | Path | None = None,
    seed: int = 0,
    embedding: Any = None,
    ledger: str | Path | None = None,
    concurrency: int = 8,
    terms: Terms | None = None,
) -> Forecast:
    """Say what `generate_async` would ask and cost at least; the judge is asked nothing.

    Passages are embedded only by minilm, which costs nothing; otherwise neighbours are told by
    words.

    Raises
    ------
    InputError
        As `generate_async`.
    """
    free = embedding if embedding in (None, "minilm") else "none"
    opening = opened(corpus, judge, n, settings, free, ledger, concurrency, terms)
    async with opening as made:
        stand_in = StandIn(made.judge)
        await in_rounds(
            stand_in, made.sources, made.index, made.settings, made.prompts, n=n, seed=seed
        )
        return await foreseen(made.judge, stand_in)


def _in_a_loop(line: Callable[[], Coroutine[Any, Any, _Result]]) -> _Result:
    """Run a coroutine to its end, in a thread of its own where a loop is running already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(line())
    context = contextvars.copy_context()
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(lambda: context.run(asyncio.run, line())).result()
