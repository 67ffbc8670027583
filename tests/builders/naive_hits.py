"""Hits of TREC judgements and rankings, built one document at a time: slow, and easy to check."""

import numpy as np

from misslink.retrieval import Hits


def metric_values(metric, hits):
    """The value of each case, None where it has none."""
    return hits.best(metric.score(hits), without_relevant=metric.without_relevant)


def hits_of_qrels(qrels, run, level=1):
    """Hits of each query of `qrels`; a negative grade is no judgement, as in trec_eval."""
    hits, ideals, judged, rows = [], [], [], []
    for row, (query, grades) in enumerate(qrels.items()):
        said = {document: grade for document, grade in grades.items() if grade >= 0}
        ranking = run.get(query, [])
        for rank, document in enumerate(ranking, start=1):
            grade = said.get(document)
            if grade:
                hits.append((row, rank, grade, int(grade >= level)))
            if grade is not None and grade < level:
                judged.append((row, rank))
        gains = sorted((grade for grade in said.values() if grade), reverse=True)
        ideals += [(row, rank, gain) for rank, gain in enumerate(gains, start=1)]
        needs = sum(grade >= level for grade in said.values())
        rows.append((needs, len(said) - needs, len(ranking)))
    hit, ideal, other, each = (
        np.array(values, dtype=np.int64).reshape(len(values), width).T
        for values, width in ((hits, 4), (ideals, 3), (judged, 2), (rows, 3))
    )
    return Hits(
        *hit,
        needs=each[0],
        ideal_row=ideal[0],
        ideal_rank=ideal[1],
        ideal_gain=ideal[2],
        judged_row=other[0],
        judged_rank=other[1],
        judged_against=np.ones(len(judged), dtype=bool),
        nonrelevant=each[1],
        retrieved=each[2],
        case=np.arange(len(rows)),
        cases=len(rows),
    )
