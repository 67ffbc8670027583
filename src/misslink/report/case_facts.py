"""What a run knows of each case, found once for a record of JSON and a row of a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from misslink.calibration.labelled_failures import apply_labels
from misslink.documents import summary_of
from misslink.errors import InputError
from misslink.parts import by_case, places_by_case
from misslink.report.human_labels import HumanLabel, read_human_labels
from misslink.types import Case, Link, Run, Scored, Trace

SUPPORTS = ("supported", "contradicted", "unsupported")


class CaseFacts(NamedTuple):
    """What is known of a case; without a trace, verdicts or a link what they would say is missing.

    ``number`` is its place in the gold set, from 1; ``metrics`` are the rank metrics of the run's
    summary and every number of the judged metrics, None where not measured; ``claims`` says how
    many of each support the answer makes, None where faithfulness was not scored.
    """

    number: int
    case: Case
    link: Link | None
    trace: Trace | None
    verdicts: Mapping[str, Scored]
    metrics: Mapping[str, float | None]
    people: Mapping[str, HumanLabel]
    claims: Mapping[str, int] | None


def iter_case_facts(run: Run) -> Iterator[CaseFacts]:
    """Yield what is known of each case, in the order of the gold set.

    Raises
    ------
    InputError
        Two cases or two traces have the same id.
    """
    from misslink.pipeline.summary import metric_readings  # imports numpy
    from misslink.retrieval import score_cases

    scores = score_cases(run.cases, run.traces, summary_rank_metrics(run)[0])
    traces, links = by_case(run.traces), by_case(apply_labels(run).links)
    places, rows = places_by_case(run.verdicts), run.scores
    readings = [
        (name, metric, read)
        for metric in dict.fromkeys(score.metric for score in rows)
        for name, read in metric_readings(metric).items()
    ]
    labels = read_human_labels(run)
    for number, case in enumerate(run.cases, 1):
        id_, place_of = case.id, dict[str, int]()
        for place in places.get(id_, ()):
            place_of.setdefault(rows[place].metric, place)
        verdicts = {metric: rows[place] for metric, place in place_of.items()}
        metrics: dict[str, float | None] = {name: of[id_] for name, of in scores.items()}
        for name, metric, read in readings:
            metrics[name] = read(verdicts[metric]) if metric in verdicts else None
        claims, faithfulness = None, verdicts.get("faithfulness")
        if faithfulness is not None and faithfulness.status == "scored":
            said = run.verdicts[
                place_of["faithfulness"]
            ].claims  # these alone are read from the file
            counts: Counter[str] = Counter(claim.support for claim in said)
            claims = {support: counts[support] for support in SUPPORTS}
        yield CaseFacts(
            number,
            case,
            links.get(id_),
            traces.get(id_),
            verdicts,
            metrics,
            labels.get(id_, {}),
            claims,
        )


def summary_rank_metrics(run: Run) -> tuple[list[str], dict[str, str]]:
    """Return the rank metrics of the run's summary, at its k, and why others cannot be computed."""
    from misslink.retrieval import parse_metric

    names, unmeasured = [], {}
    for name in summary_of(run).retrieval:
        try:
            names.append(str(parse_metric(name)))
        except InputError as unknown:  # of a plugin that is not installed here
            unmeasured[name] = unknown.problem
    return names, unmeasured
