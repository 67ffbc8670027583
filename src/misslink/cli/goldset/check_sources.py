"""What  misslink goldset check  holds a gold set against, opened."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from misslink.errors import InputError
from misslink.files.goldset import GoldSet

if TYPE_CHECKING:
    from misslink.deciding.gates import Gate
    from misslink.goldset.checking import Demand, Grounds, Texts, Vectors
    from misslink.goldset.logs import Log
    from misslink.types import Passage

__all__ = ["gates_of", "grounds_of"]


def grounds_of(
    gold: GoldSet,
    *,
    corpus: str | None,
    before: str | None,
    baseline: Path | None,
    logs: Sequence[Path],
    columns: Sequence[str],
    run: str | None,
    k: int,
    demands: tuple[Demand, ...],
    effect: float,
    embedding: str | None,
) -> Grounds:
    """Read every source that was named.

    Raises
    ------
    InputError, MissingExtraError
        One cannot be read.
    """
    from misslink.files.goldset import read_goldset
    from misslink.goldset.checking import Grounds
    from misslink.goldset.logs import own_columns, read_logs

    log = read_logs(logs, own_columns(columns)) if logs else None
    return Grounds(
        corpus=_texts(corpus),
        before=_texts(before),
        baseline=None if baseline is None else read_goldset(baseline),
        log=log,
        run=None if run is None else _retrieved(run, gold, k),
        run_name=run or "the run",
        k=k,
        demands=demands,
        effect=effect,
        vectors=_vectors(embedding, gold, log),
    )


def gates_of(path: Path, gold: GoldSet) -> tuple[tuple[Demand, ...], dict[str, str]]:
    """The gates of a criteria file in plain numbers, and why others have none."""
    from misslink.deciding.criteria import read_criteria

    demands, left_out = [], {}
    for gate in read_criteria(path).gates:
        metric = gate.metric or gate.name
        if gate.new_failures is not None:
            left_out[gate.name] = "it counts single cases, and no number of them is too small"
        elif "slices." in metric:
            left_out[gate.name] = (
                "it is about a slice of the document; say which cases by the gate's own category, "
                "tier or tag"
            )
        else:
            demands.append(_demand(gate, metric, gold))
    return tuple(demands), left_out


def _demand(gate: Gate, metric: str, gold: GoldSet) -> Demand:
    from misslink.deciding.naming import bare, bounds, readings
    from misslink.deciding.selection import fits
    from misslink.goldset.checking import Demand
    from misslink.registry import rank_metrics
    from misslink.retrieval.matching import needs

    named = bare(readings(metric)[-1])
    of_ranks = {name.partition("@")[0] for name in rank_metrics.names()}
    ranked = named.partition("@")[0] in of_ranks
    cases = sum(fits(case, gate) and (not ranked or bool(needs(case, ()))) for case in gold.cases)
    return Demand(
        gate.name,
        named,
        cases,
        gate.threshold,
        gate.at_most,
        gate.regression_max,
        gate.min_cases,
        bounds(metric) == (0.0, 1.0),
    )


def _texts(source: str | None) -> Texts | None:
    from misslink.files.corpus import read_corpus
    from misslink.goldset.checking import Texts

    return None if source is None else Texts(read_corpus(source))


def _retrieved(run: str, gold: GoldSet, k: int) -> dict[str, tuple[Passage, ...]]:
    from misslink.files.reading import read_run
    from misslink.goldset.pooling.rankings import of_file
    from misslink.types import Passage

    ids = {case.id for case in gold.cases}
    if not Path(run).is_dir():
        return {
            case_id: tuple(Passage(id=name, rank=at) for at, name in enumerate(names, start=1))
            for case_id, names in of_file(run, run, ids, k).of.items()
        }
    found = {
        trace.case_id: trace.retrieved[:k]
        for trace in read_run(run).traces
        if trace.case_id in ids
        and trace.unmeasured is None
        and (trace.retrieved or not trace.error)
    }
    if not found:
        raise InputError("it retrieved for no question of the gold set", path=run)
    return found


def _vectors(spec: str | None, gold: GoldSet, log: Log | None) -> Vectors | None:
    """Embed the questions; those of a log masked, since what is embedded is sent and kept."""
    from misslink.goldset.checking import Vectors
    from misslink.goldset.generating.index import embedder_of
    from misslink.goldset.logs import Masker

    embedder = embedder_of(spec)
    if embedder is None:
        return None
    masker = Masker()
    masked = {case.question: case.question for case in gold.cases}
    for request in () if log is None else log.requests:
        if request.question not in masked:
            masked[request.question] = masker.masked(request.question)
    try:
        rows = asyncio.run(embedder.queries(list(masked.values())))
    finally:
        embedder.close()
    return Vectors(embedder.name, dict(zip(masked, rows, strict=True)))
