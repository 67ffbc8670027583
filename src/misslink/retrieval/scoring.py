"""Level 1: every rank metric of every case."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from misslink.errors import InputError
from misslink.retrieval.families import per_case
from misslink.retrieval.hits import Bools, Floats, collect
from misslink.retrieval.metrics import parse
from misslink.retrieval.outcomes import why_unmeasured
from misslink.types import Case, Trace

__all__ = ["score"]


def score(
    cases: Sequence[Case],
    traces: Sequence[Trace],
    metrics: Sequence[str],
    *,
    absent: float | None = None,
) -> dict[str, dict[str, float | None]]:
    """Values of rank metrics, case by case; a passage's rank is its position in the trace.

    Parameters
    ----------
    cases : sequence of Case
    traces : sequence of Trace
        In any order, matched by ``case_id``; those of no case are not looked at.
    metrics : sequence of str
        Names such as ``recall@5``.
    absent : float or None
        Value of a case that has no trace. None: it was not measured. In a ranking written out by
        a search engine a query that is missing found nothing: give 0 there, as trec_eval -c does.
        A metric that tells about the judgements has its value for an empty ranking then.

    Returns
    -------
    dict of str to dict of str to float or None
        Metric name to case id to a value in [0, 1], cases in the order given. Of alternatives the
        best counts, for each metric by itself. None where the case needs nothing that could be
        looked for (but ``judged@k`` has a value where some passage was judged not relevant), where
        the app raised an error before it retrieved anything, and (see `absent`) where there is no
        trace: that was not measured. An app that finished and retrieved nothing has 0.

    Raises
    ------
    InputError
        A metric is unknown, or two cases or two traces have the same id.

    Examples
    --------
    >>> from misslink.types import Passage
    >>> case = Case(id="c1", question="Who?", relevant=["b", "d"])
    >>> found = [Passage(id=name, rank=rank) for rank, name in enumerate("abc", start=1)]
    >>> score([case], [Trace(case_id="c1", retrieved=found)], ["recall@3", "mrr"])
    {'recall@3': {'c1': 0.5}, 'mrr': {'c1': 0.5}}
    """
    parsed = {str(metric): metric for metric in map(parse, metrics)}
    _no_repetition("case", (case.id for case in cases))
    _no_repetition("trace", (trace.case_id for trace in traces))
    by_case = {trace.case_id: trace for trace in traces}
    unmeasured = {trace.case_id for trace in traces if why_unmeasured(trace)}
    measured = [case for case in cases if case.id in by_case and case.id not in unmeasured]
    hits = collect(measured, [by_case[case.id].retrieved for case in measured])
    lost = [case for case in cases if case.id not in by_case and absent is not None]
    nothing = collect(lost, [()] * len(lost))
    each = list(parsed.values())
    found = _lists(*per_case(each, hits, lambda at: measured[at].id))
    none_found = _lists(*per_case(each, nothing, lambda at: lost[at].id))
    scores: dict[str, dict[str, float | None]] = {}
    for at, (name, metric) in enumerate(parsed.items()):
        column: dict[str, float | None] = {case.id: None for case in cases}
        for case, value in zip(lost, none_found[at], strict=True):
            told = getattr(metric, "about_judgements", False)
            column[case.id] = value if told or value is None else absent
        column |= dict(zip((case.id for case in measured), found[at], strict=True))
        scores[name] = column
    return scores


def _no_repetition(kind: str, ids: Iterable[str]) -> None:
    seen: set[str] = set()
    for id_ in ids:
        if id_ in seen:
            raise InputError(f"two {kind}s have the id '{id_}'; remove one or rename it")
        seen.add(id_)


def _lists(values: Floats, known: Bools) -> list[list[float | None]]:
    pairs = zip(values.tolist(), known.tolist(), strict=True)
    return [[v if has else None for v, has in zip(*pair, strict=True)] for pair in pairs]
