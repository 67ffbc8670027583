"""What retrievers bring for the questions of a gold set, from run files or asked live."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from misslink.errors import AppUnreachableError, InputError
from misslink.retrieval.given_runs import GivenRankings
from misslink.retrieval.opening import open_run
from misslink.retrieval.segments import single
from misslink.retrieval.table_runs import TableRankings
from misslink.text import content_id
from misslink.types import Case, Passage

__all__ = ["Ranked", "asked_retriever", "names_of", "of_file", "placed"]

_SHOWN = 3  # ids in a message


@dataclass(frozen=True)
class Ranked:
    """The rankings of one retriever.

    Parameters
    ----------
    name : str
    source : str
        The file or the app.
    of : mapping of str to sequence of str
        Case id to passage ids, best first. A case of which it is not known what was retrieved is
        missing.
    texts : mapping of str to str
        Passage id to text, where the retriever itself told it.
    """

    name: str
    source: str
    of: Mapping[str, tuple[str, ...]]
    texts: Mapping[str, str]


def names_of(sources: Sequence[str]) -> list[str]:
    """Return a short name for each run file or app, no two of them alike.

    >>> names_of(["runs/bm25.trec", "app:retriever", "old/bm25.trec"])
    ['bm25', 'app:retriever', 'old/bm25.trec']
    """
    short = [
        source if ":" in Path(source).name else Path(source).name.partition(".")[0] or source
        for source in sources
    ]
    seen: set[str] = set()
    names: list[str] = []
    for source, name in zip(sources, short, strict=True):
        same = os.path.realpath(source)  # also where it is written in another way
        if same in seen:
            raise InputError("this retriever is given twice; name each once", path=source)
        seen.add(same)
        names.append(name if name not in names else source)
    return names


def of_file(path: str, name: str, cases: Collection[str], depth: int) -> Ranked:
    """Read the top of a run.

    Parameters
    ----------
    path : str
        Any file that `misslink retrieval` reads as a run.
    name : str
    cases : collection of str
        Ids of the cases that are wanted.
    depth : int
        How many of the best are kept, from 1.

    Raises
    ------
    InputError
        It cannot be read, ranks a passage twice, or holds none of the cases.
    """
    run = open_run(path)
    if isinstance(run, GivenRankings):
        found = {
            str(query): _given(ranking, str(query), path)
            for query, ranking in run.given.items()
            if str(query) in cases and str(query) not in run.unmeasured
        }
    elif isinstance(run, TableRankings):
        found = _of_table(run, cases)
    else:
        raise InputError("this is no run that a pool can be drawn from", path=path)
    if not found:
        raise InputError("it holds no question of the gold set; look at the ids of both", path=path)
    top = {query: tuple(names[:depth]) for query, names in found.items()}
    return Ranked(name, path, top, {})


async def asked_retriever(
    app: Any,
    name: str,
    cases: Sequence[Case],
    depth: int,
    *,
    id_key: str | None = None,
    concurrency: int = 8,
    done: Callable[[int, int], None] | None = None,
) -> Ranked:
    """Ask a live retriever, or an app with one, every question.

    A retriever that gives fewer than `depth` is asked deeper where it can be.

    Parameters
    ----------
    app : Runnable or callable
    name : str
    cases : sequence of Case
    depth : int
    id_key : str or None
        The metadata key that holds a passage's id.
    concurrency : int
    done : callable or None
        Told after each case how many are done, and of how many.

    Raises
    ------
    AppUnreachableError
        It retrieves for no question at all.
    """
    from misslink.capture import Watcher

    watcher = Watcher(app, id_key=id_key, depth=depth)
    at_once = asyncio.Semaphore(concurrency)
    troubles: list[str] = []
    found: dict[str, tuple[str, ...]] = {}
    texts: dict[str, str] = {}
    finished = 0

    async def one(case: Case) -> None:
        nonlocal finished
        async with at_once:
            trace = await watcher.watch(case)
            if len(trace.retrieved) < depth and trace.retrieved:
                trace = await watcher.deepen(case, trace, lambda _: True)
        passages: list[Passage] = [*trace.retrieved, *trace.deeper][:depth]
        if passages or (trace.error is None and trace.unmeasured is None):
            found[case.id] = tuple(passage.id for passage in passages)
            texts.update({passage.id: passage.text for passage in passages})
        else:
            troubles.append(trace.error or trace.unmeasured or "nothing was seen")
        finished += 1
        if done is not None:
            done(finished, len(cases))

    await asyncio.gather(*map(one, cases))
    if not any(found.values()):
        why = troubles[0] if troubles else "it retrieves nothing"
        raise AppUnreachableError(f"{name} brings no passage for any question: {why}")
    return Ranked(name, name, found, texts)


def placed(ranked: Ranked, corpus: Mapping[str, str]) -> Ranked:
    """Return the rankings by the ids of the corpus.

    A passage whose id the corpus has not is looked up by its text, where the retriever told it.

    Raises
    ------
    InputError
        Passages are not in the corpus, so that nobody could read them.
    """
    strange = {one for names in ranked.of.values() for one in names if one not in corpus}
    if not strange:
        return ranked
    by_text: dict[str, str] = {}
    if any(name in ranked.texts for name in strange):
        for own, text in corpus.items():
            by_text.setdefault(content_id(text), own)
    known = {
        name: by_text[key]
        for name in strange
        if name in ranked.texts and (key := content_id(ranked.texts[name])) in by_text
    }
    lost = sorted(strange - set(known))
    if lost:
        shown = ", ".join(f"'{name}'" for name in islice(lost, _SHOWN))
        more = f" and {len(lost) - _SHOWN} more" if len(lost) > _SHOWN else ""
        raise InputError(
            f"it ranks passages that the corpus does not hold ({shown}{more}); give the corpus it "
            "searched with --corpus (or, of a live retriever, the key of its ids with --id-key)",
            path=ranked.source,
        )
    of = {
        case: tuple(dict.fromkeys(known.get(name, name) for name in names))
        for case, names in ranked.of.items()
    }
    return Ranked(ranked.name, ranked.source, of, {})


def _given(ranking: Any, query: str, path: str) -> list[str]:
    if isinstance(ranking, Mapping):
        return _by_score([str(own) for own in ranking], list(ranking.values()), query, path)
    return _once([str(own) for own in ranking], query, path)


def _of_table(run: TableRankings, cases: Collection[str]) -> dict[str, list[str]]:
    rows: dict[str, tuple[list[str], list[float]]] = {}
    for queries, documents, numbers in run.table.batches():
        values = numbers.tolist() if numbers is not None else [0.0] * len(queries)
        for query, document, value in zip(
            queries.to_pylist(), documents.to_pylist(), values, strict=True
        ):
            if query in cases:
                names, scores = rows.setdefault(query, ([], []))
                names.append(document)
                scores.append(value)
    kind, path = run.table.kind, run.name
    found = {}
    for query, (names, scores) in rows.items():
        _once(names, query, path)
        best = [-score for score in scores] if kind == "rank" else scores
        found[query] = names if kind == "order" else _by_score(names, best, query, path)
    return found


def _by_score(names: list[str], scores: Iterable[Any], query: str, path: str) -> list[str]:
    """Best first, of equal scores the greater id first, as trec_eval and `misslink retrieval`."""
    try:
        values = np.array(list(scores), dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        values = np.array([np.nan])
    if not np.isfinite(values).all():
        raise InputError(f"a score of query '{query}' is no finite number", path=path)
    held = single(values).tolist()
    return [name for _, name in sorted(zip(held, names, strict=True), reverse=True)]


def _once(names: list[str], query: str, path: str) -> list[str]:
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(
            f"query '{query}' has the document '{twice}' twice; a ranking names a document once",
            path=path,
        )
    return names
