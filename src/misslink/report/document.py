"""A run as one JSON document: what the page says as data, for whoever computes further.

Keys of the document, all of them always there:

``format``
    1. Another number when a key goes or changes its meaning; new keys may come at any time.
``run``, ``manifest``, ``summary``
    Where the run was written (or null), how it was made, and its estimates, as they are in
    ``manifest.json`` and ``summary.json``.
``next``
    What to do next: ``action``, ``why``, ``cases`` (their numbers), ``fragment`` (of the page).
``causes``
    Those that occur, the most severe first: ``cause``, ``label``, ``meaning``, ``cases`` (their
    numbers), ``count``, ``share`` (an Estimate).
``corrected``
    What people would find, by the share's name ('faithful', 'correct', else the metric), {} where
    nobody labelled: ``metric``, ``raw`` (an Estimate: by the judge), ``estimate`` (an Estimate:
    corrected), ``by`` ('prediction-powered' or 'rogan-gladen'), ``labels`` (how many), ``own``
    (whether they are of this run's verdicts), ``note``.
``calibrations``
    The documents of ``misslink calibrate --json`` that the run keeps, by metric; {} without.
``audit``
    What the judge did when only what must not matter was changed, as ``audit.json`` has it, or
    null.
``unmeasured``
    Rank metrics of the summary that cannot be computed case by case here, and why.
``cases``
    In the order of the gold set; see `case_records`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from misslink.errors import InputError
from misslink.files.whole import put
from misslink.registry import exporters
from misslink.report.documents import mapping_in, text_in
from misslink.report.glossary import CAUSES
from misslink.report.labelled import Labelled, labelled
from misslink.report.next import next_steps
from misslink.report.places import case_numbers
from misslink.types import Case, Link, Run, Trace, Verdict

__all__ = ["case_records", "document", "each_record", "measured_ranks", "write"]

_FORMAT = 1
_FAITHFULNESS = "faithfulness"


@exporters.register("json")
def write(run: Run, path: Path) -> Path:
    """Write `run` as one JSON document, whole or not at all, and return the path.

    Raises
    ------
    InputError
        The file cannot be written, or two cases or traces have the same id.
    """
    text = json.dumps(document(run), indent=2, ensure_ascii=False, allow_nan=False)
    # Half a surrogate pair, which a careless app may leave, is in no UTF-8 file.
    return put(f"{text}\n".encode("utf-8", "replace").decode(), path)


def document(run: Run) -> dict[str, Any]:
    """Return the JSON document of `run`; see the head of this module.

    Raises
    ------
    InputError
        Two cases or two traces have the same id.
    """
    from misslink.calibration.kept import documents  # brings numpy

    _, unmeasured = measured_ranks(run)
    return {
        "format": _FORMAT,
        "run": text_in(run.summary, "run") or None,
        "manifest": run.manifest,
        "summary": run.summary,
        "next": [asdict(step) for step in next_steps(run)],
        "causes": _causes(run),
        "corrected": _corrected(run),
        "calibrations": documents(run),
        "audit": run.audit,
        "unmeasured": unmeasured,
        "cases": case_records(run),
    }


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
        outcomes), ``correct``, ``cause``, ``contributing``, ``reason``, ``basis``; ``answer_text``,
        ``error``, ``latency_s``; ``metrics`` (name to value in [0, 1], the rank metrics of the
        run's summary and every number of the judged metrics; None: not measured), ``verdicts``
        (metric to ``status``, ``value``, ``label``, ``probability``, ``reason``, the last saying
        why there is no value), ``people`` (metric to ``word``, ``share``: their mean label,
        ``stands``: whether judge and people 'agree' or 'disagree', or people are 'tied'; see
        `misslink.report.labelled`), ``missed`` (``passage_id``, ``grade``, ``true_rank``,
        ``subtype``, ``also``, ``reason``, ``depth``, ``distance``), ``claims`` (how many the judge
        called supported, contradicted and unsupported; None where faithfulness was not scored),
        ``retrieved`` (the passages' ids in their order; None where there is no trace).

    Raises
    ------
    InputError
        Two cases or two traces have the same id.
    """
    return list(each_record(run))


def each_record(run: Run) -> Iterator[dict[str, Any]]:
    """Make the records of `case_records` one after the other, for runs whose records are many."""
    from misslink.retrieval import score  # brings numpy

    ranks, _ = measured_ranks(run)
    scores = score(run.cases, run.traces, ranks)
    traces = {trace.case_id: trace for trace in run.traces}
    links = {link.case_id: link for link in run.links}
    verdicts: dict[str, dict[str, Verdict]] = {}
    for verdict in run.verdicts:
        verdicts.setdefault(verdict.case_id, {}).setdefault(verdict.metric, verdict)
    judged = tuple(dict.fromkeys(verdict.metric for verdict in run.verdicts))
    labels = labelled(run)
    for number, case in enumerate(run.cases, 1):
        yield {
            **_asked(number, case),
            **_linked(links.get(case.id)),
            **_done(traces.get(case.id)),
            "metrics": {name: of_case[case.id] for name, of_case in scores.items()}
            | _numbers(judged, verdicts.get(case.id, {})),
            "verdicts": {name: _said(one) for name, one in verdicts.get(case.id, {}).items()},
            "people": {name: _people(one) for name, one in labels.get(case.id, {}).items()},
            "missed": _missed(links.get(case.id)),
            "claims": _claims(verdicts.get(case.id, {}).get(_FAITHFULNESS)),
            "retrieved": _retrieved(traces.get(case.id)),
        }


def _asked(number: int, case: Case) -> dict[str, Any]:
    return {
        "number": number,
        "id": case.id,
        "question": case.question,
        "category": case.category,
        "tags": dict(case.tags),
        "tier": case.tier,
    }


def _linked(link: Link | None) -> dict[str, Any]:
    return {
        "retrieval": link.retrieval if link else None,
        "answer": link.answer if link else None,
        "correct": link.correct if link else None,
        "cause": link.cause if link else None,
        "contributing": list(link.contributing) if link else [],
        "reason": link.reason if link else None,
        "basis": link.basis if link else None,
    }


def _done(trace: Trace | None) -> dict[str, Any]:
    return {
        "answer_text": trace.answer if trace else None,
        "error": trace.error if trace else None,
        "latency_s": trace.latency_s if trace else None,
    }


def _retrieved(trace: Trace | None) -> list[str] | None:
    return None if trace is None else [passage.id for passage in trace.retrieved]


def _numbers(metrics: Sequence[str], said: Mapping[str, Verdict]) -> dict[str, float | None]:
    """Every number of the judged metrics, None where the verdict has none or there is none."""
    from misslink.summary import numbers_of  # brings numpy

    return {
        name: read(said[metric]) if metric in said else None
        for metric in metrics
        for name, read in numbers_of(metric).items()
    }


def _said(verdict: Verdict) -> dict[str, Any]:
    return verdict.model_dump(include={"status", "value", "label", "probability", "reason"})


def _people(said: Labelled) -> dict[str, Any]:
    return {"word": said.word or None, "share": said.share, "stands": said.stands or None}


def _corrected(run: Run) -> dict[str, Any]:
    from misslink.calibration.kept import corrected  # brings numpy

    return {name: {"metric": one.metric} | one.document() for name, one in corrected(run).items()}


def _missed(link: Link | None) -> list[dict[str, Any]]:
    kept = {
        *("passage_id", "grade", "true_rank", "subtype"),
        *("also", "reason", "depth", "distance"),
    }
    return [one.model_dump(mode="json", include=kept) for one in (link.missed if link else ())]


def _claims(faithfulness: Verdict | None) -> dict[str, int] | None:
    if faithfulness is None or faithfulness.status != "scored":
        return None
    supports = [claim.support for claim in faithfulness.claims]
    return {one: supports.count(one) for one in ("supported", "contradicted", "unsupported")}


def _causes(run: Run) -> list[dict[str, Any]]:
    from misslink.stats import proportion  # scipy may come with it

    places = case_numbers(run.cases)
    found: dict[str, list[Link]] = {}
    for link in run.links:
        found.setdefault(link.cause, []).append(link)
    return [
        {
            "cause": cause,
            "label": words.label,
            "meaning": words.meaning,
            "count": len(found[cause]),
            "share": proportion(len(found[cause]), len(run.links)).model_dump(),
            "cases": sorted(places[one.case_id] for one in found[cause] if one.case_id in places),
        }
        for cause, words in CAUSES.items()
        if cause in found
    ]


def measured_ranks(run: Run) -> tuple[list[str], dict[str, str]]:
    """Return the rank metrics of the run's summary, at its k, and why others cannot be computed."""
    from misslink.retrieval import parse

    names, unmeasured = [], {}
    for name in mapping_in(run.summary.get("retrieval")):
        try:
            names.append(str(parse(name)))
        except InputError as unknown:  # of a plugin that is not installed here
            unmeasured[name] = unknown.problem
    return names, unmeasured
