"""The libraries of benchmarks/retrieval/rank_metrics.py, and the data that they are given.

Each takes qrels and a run in one of the forms and returns the metrics' names, their means, and what
tells the value of a query.
"""

from __future__ import annotations

import atexit
import random
import shutil
import tempfile
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

SEED = 20261122
DEPTH, COLLECTION = 100, 5_000_000
FORMS = ("lists", "scored dicts", "frames", "parquet", "TREC files")
CURVE = "curve to "  # as a form: a frame, and one metric at each cut-off to the number that follows
OURS = [
    *("hit@1", "hit@10", "mrr", "recall@10", "recall@100", "precision@5", "precision@10"),
    *("ndcg@5", "ndcg@10", "ndcg@100", "map", "map@10", "r-precision", "bpref"),
]
TREC = [
    *("success_1", "success_10", "recip_rank", "recall_10", "recall_100", "P_5", "P_10"),
    *("ndcg_cut_5", "ndcg_cut_10", "ndcg_cut_100", "map", "map_cut_10", "Rprec", "bpref"),
]
IR = [
    *("Success@1", "Success@10", "RR", "R@10", "R@100", "P@5", "P@10"),
    *("nDCG@5", "nDCG@10", "nDCG@100", "AP", "AP@10", "Rprec", "Bpref"),
]
RANX = [
    *("hit_rate@1", "hit_rate@10", "mrr", "recall@10", "recall@100", "precision@5"),
    *("precision@10", "ndcg@5", "ndcg@10", "ndcg@100", "map", "map@10", "r-precision"),
]  # its bpref divides otherwise than trec_eval's, so it computes 13
Scores = tuple[list[str], dict[str, float], Callable[[str, int], float]]


def made_up(queries: int) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    """Draw qrels and a run, documents best first, no two scores of a query equal."""
    draw = random.Random(SEED)  # noqa: S311
    qrels, run = {}, {}
    for number in range(queries):
        found = draw.sample(range(COLLECTION), DEPTH + 3)
        documents = [f"doc{each}" for each in found[:DEPTH]]
        run[f"q{number}"] = {name: float(DEPTH - at) for at, name in enumerate(documents)}
        judged = [*draw.sample(documents, 5), *(f"doc{each}" for each in found[DEPTH:])]
        grades = [2, 1, *draw.choices((0, 1, 2), k=6)]
        qrels[f"q{number}"] = dict(zip(judged, grades, strict=True))
    return qrels, run


def in_form(form: str, qrels: dict[str, Any], run: dict[str, Any]) -> tuple[Any, Any]:
    """Turn both into the form that is given to a library."""
    if form == "scored dicts":
        return qrels, run
    if form == "lists":
        return qrels, {query: list(documents) for query, documents in run.items()}
    import pandas as pd

    def frame(mapping: dict[str, dict[str, Any]], number: str) -> Any:
        return pd.DataFrame(
            {
                "query_id": [query for query, each in mapping.items() for _ in each],
                "doc_id": list(chain.from_iterable(mapping.values())),
                number: [own for each in mapping.values() for own in each.values()],
            }
        )

    frames = frame(qrels, "relevance"), frame(run, "score")
    if form not in {"parquet", "TREC files"}:
        return frames
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for name, table in zip(("qrels", "run"), frames, strict=True):
        if form == "parquet":
            table.to_parquet(folder / name)
            continue
        columns = (table[column] for column in table.columns)
        line = "{} 0 {} {}\n" if name == "qrels" else "{} Q0 {} 1 {} made-up\n"
        with (folder / name).open("w", encoding="utf-8") as file:
            file.writelines(line.format(*row) for row in zip(*columns, strict=True))
    return str(folder / "qrels"), str(folder / "run")


def as_dicts(form: str, qrels: Any, run: Any) -> tuple[Any, Any]:
    """What the peers read, made as fast as plain Python does it."""
    if form == "lists":
        return qrels, {
            query: {name: float(-at) for at, name in enumerate(names)}
            for query, names in run.items()
        }
    if form == "TREC files":
        import pytrec_eval as library

        with Path(qrels).open(encoding="utf-8") as judged, Path(run).open(encoding="utf-8") as own:
            return library.parse_qrel(judged), library.parse_run(own)
    if form in {"frames", "parquet"}:
        qrels, run = as_frames(form, qrels, run)
        both = []
        for frame, number in ((qrels, "relevance"), (run, "score")):
            made: dict[str, dict[str, Any]] = {}
            columns = (frame[name].tolist() for name in ("query_id", "doc_id", number))
            for query, document, own in zip(*columns, strict=True):
                made.setdefault(query, {})[document] = own
            both.append(made)
        return both[0], both[1]
    return qrels, run


def as_frames(form: str, qrels: Any, run: Any) -> tuple[Any, Any]:
    """Frames as they are, or read from parquet."""
    import pandas as pd

    return (pd.read_parquet(qrels), pd.read_parquet(run)) if form == "parquet" else (qrels, run)


def misslink(form: str, qrels: Any, run: Any) -> Scores:
    """Ours."""
    from misslink.retrieval.evaluate import evaluate_run

    names = OURS
    if form.startswith(CURVE):
        names = [f"recall@{k}" for k in range(1, int(form.removeprefix(CURVE)) + 1)]
    scores = evaluate_run(qrels, run, names)
    place = {query: at for at, query in enumerate(scores.queries)}
    means = {name: mean for name, mean in scores.means().items() if mean is not None}
    return names, means, lambda query, at: float(scores.query_values(names[at])[0][place[query]])


def pytrec_eval(form: str, qrels: Any, run: Any) -> Scores:
    """pytrec-eval-terrier, its means by NumPy."""
    import numpy as np
    import pytrec_eval as library

    qrels, run = as_dicts(form, qrels, run)
    found = library.RelevanceEvaluator(qrels, set(TREC)).evaluate(run)
    means = {
        own: float(np.mean([each[name] for each in found.values()]))
        for own, name in zip(OURS, TREC, strict=True)
    }
    return OURS, means, lambda query, at: float(found[query][TREC[at]])


def ir_measures(form: str, qrels: Any, run: Any) -> Scores:
    """ir-measures; it reads frames as they are."""
    import ir_measures as library

    if form == "lists":
        qrels, run = as_dicts(form, qrels, run)
    elif form == "TREC files":
        qrels, run = library.read_trec_qrels(qrels), library.read_trec_run(run)
    else:
        qrels, run = as_frames(form, qrels, run)
    measures = [library.parse_measure(name) for name in IR]
    means, values = library.calc(measures, qrels, run)
    by_name: dict[tuple[str, str], float] = {
        (each.query_id, str(each.measure)): each.value for each in values
    }
    own = {name: means[measure] for name, measure in zip(OURS, measures, strict=True)}
    return OURS, own, lambda query, at: by_name[query, str(measures[at])]


def ranx(form: str, qrels: Any, run: Any) -> Scores:
    """ranx; it reads frames as they are."""
    import ranx as library

    if form == "TREC files":
        judged = library.Qrels.from_file(qrels, kind="trec")
        ranked = library.Run.from_file(run, kind="trec")
    elif form in {"frames", "parquet"}:  # it takes text of no other type than object
        qrels, run = as_frames(form, qrels, run)
        text = {"query_id": object, "doc_id": object}
        judged = library.Qrels.from_df(qrels.astype(text), "query_id", "doc_id", "relevance")
        ranked = library.Run.from_df(run.astype(text), "query_id", "doc_id", "score")
    else:
        qrels, run = as_dicts(form, qrels, run)
        judged, ranked = library.Qrels(qrels), library.Run(run)
    means = library.evaluate(judged, ranked, RANX)
    scores = ranked.scores
    names = OURS[: len(RANX)]
    own = {name: float(means[theirs]) for name, theirs in zip(names, RANX, strict=True)}
    return names, own, lambda query, at: float(scores[RANX[at]][query])
