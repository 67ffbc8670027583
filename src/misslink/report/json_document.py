"""Writes a run as one JSON document, with a record of each case."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any

from misslink.calibration.labelled_failures import apply_labels, correct_failed
from misslink.documents import summary_of
from misslink.failure_modes import FAILURE_MODES
from misslink.io.atomic import atomic_path
from misslink.registry import exporters
from misslink.report.case_facts import iter_case_facts, summary_rank_metrics
from misslink.report.failure_threads import fix_of, rank_documents, read_threads
from misslink.report.fixes import fix_records
from misslink.report.links import number_cases
from misslink.report.overview import read_reliability
from misslink.report.summary import next_steps
from misslink.types import Run

_FORMAT = 1
_JSON_VERDICT_FIELDS = ("status", "value", "label", "probability", "reason")
_LINK_FIELDS = (
    *("retrieval", "answer", "correct", "failure", "failed", "owner", "reason", "basis"),
)
_MISS_FIELDS = {
    *("passage_id", "grade", "true_rank", "bm25_rank", "status", "miss_type"),
    *("also", "reason", "depth", "distance"),
}


@exporters.register("json", file="report.json")
def write_json(run: Run, path: Path) -> Path:
    """Write `run` as one JSON document, whole or not at all, and return the path.

    Raises
    ------
    InputError
        The file cannot be written, or two cases or traces have the same id.
    """
    encoder = json.JSONEncoder(indent=2, ensure_ascii=False, allow_nan=False)
    document = _document(run, _Records)
    # UTF-8 cannot encode half a surrogate pair, which an app may produce.
    with atomic_path(path) as part, part.open("w", encoding="utf-8", errors="replace") as file:
        file.writelines(chain(encoder.iterencode(document), "\n"))
    return path


class _Records(list[dict[str, Any]]):
    """The cases of the document, each made as it is written."""

    def __init__(self, run: Run) -> None:
        super().__init__()
        self._run = run

    def __bool__(self) -> bool:
        return bool(self._run.cases)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter_case_records(self._run)


def build_document(run: Run) -> dict[str, object]:
    """Return the JSON document of `run`; see `case_records` for its cases.

    Raises
    ------
    InputError
        Two cases or two traces have the same id.
    """
    return _document(run, case_records)


def _document(run: Run, list_cases: Callable[[Run], list[dict[str, Any]]]) -> dict[str, object]:
    from misslink.calibration.stored_calibration import corrected_shares, stored_calibrations

    _, unmeasured = summary_rank_metrics(run)
    headline, corrected = run.headline, correct_failed(run).model_dump(mode="json")
    run = apply_labels(run)
    return {
        "format": _FORMAT,
        "run": summary_of(run).run or None,
        "headline": headline,
        "manifest": run.manifest,
        "summary": current_summary(run),
        "corrected_failed": corrected,
        "next": [asdict(step) for step in next_steps(run)],
        "fixes": fix_records(run),
        "failures": _failure_mode_counts(run),
        "threads": [{**asdict(one), "fix": fix_of(one)} for one in read_threads(run)],
        "documents": [asdict(one) for one in rank_documents(run)],
        "corrected": {
            name: {"metric": share.metric} | share.summary_entry().document()
            for name, share in corrected_shares(run).items()
        },
        "calibrations": stored_calibrations(run),
        "audit": run.audit,
        "selftest": run.selftest,
        "unmeasured": unmeasured,
        "cases": list_cases(run),
    }


def current_summary(run: Run) -> dict[str, object]:
    """Return the summary of a run with what a later selftest says of its owners."""
    reliability = read_reliability(run)
    summary: dict[str, Any] = run.summary
    if reliability is None or reliability.source != "selftest":
        return summary
    link = {**summary.get("link", {}), "reliability": reliability.model_dump(mode="json")}
    return {**summary, "link": link}


def case_records(run: Run) -> list[dict[str, Any]]:
    """Return what is known of each case, in the order of the gold set.

    Parameters
    ----------
    run : Run
        Any: without traces, verdicts or links what they would say is None.

    Returns
    -------
    list of dict
        ``number`` (the place in the gold set, from 1, as in the page's addresses), ``id``,
        ``question``, ``category``, ``tags``, ``tier``; ``retrieval``, ``answer`` (the two
        outcomes), ``correct``, ``failure``, ``owner``, ``also``, ``reason``, ``basis``; ``answer_text``,
        ``error``, ``latency_s``; ``metrics`` (name to value in [0, 1], the rank metrics of the
        run's summary and every number of the judged metrics; None: not measured), ``verdicts``
        (metric to ``status``, ``value``, ``label``, ``probability``, ``reason``, the last saying
        why there is no value), ``people`` (metric to ``word``, ``share``: their mean label,
        ``stands``: whether judge and people 'agree' or 'disagree', or people are 'tied'; see
        `misslink.report.human_labels`), ``missed`` (``passage_id``, ``grade``, ``true_rank``,
        ``miss_type``, ``also``, ``reason``, ``depth``, ``distance``), ``claims`` (how many the judge
        called supported, contradicted and unsupported; None where faithfulness was not scored),
        ``retrieved`` (the passages' ids in their order; None where there is no trace).

    Raises
    ------
    InputError
        Two cases or two traces have the same id.
    """
    return list(iter_case_records(run))


def iter_case_records(run: Run) -> Iterator[dict[str, Any]]:
    """Yield the records of `case_records` one by one, for large runs."""
    for facts in iter_case_facts(run):
        case, link, trace = facts.case, facts.link, facts.trace
        yield {
            "number": facts.number,
            "id": case.id,
            "question": case.question,
            "category": case.category,
            "tags": dict(case.tags),
            "tier": case.tier,
            **{field: getattr(link, field, None) for field in _LINK_FIELDS},
            "also": list(link.also) if link else [],
            "answer_text": trace.answer if trace else None,
            "error": trace.error if trace else None,
            "latency_s": trace.latency_s if trace else None,
            "metrics": facts.metrics,
            "verdicts": {
                name: {field: getattr(verdict, field) for field in _JSON_VERDICT_FIELDS}
                for name, verdict in facts.verdicts.items()
            },
            "people": {
                name: {
                    "word": label.word or None,
                    "share": label.share,
                    "stands": label.stands or None,
                }
                for name, label in facts.people.items()
            },
            "missed": [
                miss.model_dump(mode="json", include=_MISS_FIELDS)
                for miss in (link.missed if link else ())
            ],
            "claims": facts.claims,
            "retrieved": None if trace is None else [passage.id for passage in trace.retrieved],
        }


def _failure_mode_counts(run: Run) -> list[dict[str, Any]]:
    from misslink.stats import proportion  # may import scipy

    numbers = number_cases(run.cases)
    groups: dict[str, list[str]] = {}
    for link in run.outcomes:
        if link.failure:
            groups.setdefault(link.failure, []).append(link.case_id)
    return [
        {
            "failure": key,
            "owner": mode.owner,
            "label": mode.label,
            "meaning": mode.meaning,
            "count": len(groups[key]),
            "share": proportion(len(groups[key]), sum(map(len, groups.values()))).model_dump(),
            "cases": sorted(numbers[case_id] for case_id in groups[key] if case_id in numbers),
        }
        for key, mode in FAILURE_MODES.items()
        if key in groups
    ]
