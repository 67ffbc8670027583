"""Freeze failed cases of a run as a suite: gold set and traces in one file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from misslink.documents import manifest_of
from misslink.matching import Passages
from misslink.parts import by_case
from misslink.types import Case, Link, Run, Trace

# Of a trace what a later judgment reads; the rest is of the moment.
_NOT_KEPT = {
    "case_id",
    "latency_s",
    "usage",
    "traceback",
    "trace_id",
    "span_id",
    "response_id",
    "history",
}
_NOT_COPIED = {"id", "question", "references", "relevant", "evidence", "asked_at"}


def promote(run: Run, failure: str | None = None) -> Iterator[dict[str, Any]]:
    """Yield the failed cases of a run as rows of a suite.

    A label is carried over as the text that the case needs, so that it is found after the index was
    made again with other chunks and ids; by its id only where no text of it is known.

    Parameters
    ----------
    run : Run
    failure : str or None
        Only cases of this failure mode.
    """
    traces = by_case(run.traces)
    cases = by_case(run.cases)
    judged = manifest_of(run).judge_epoch
    epoch = judged and judged.document()
    for link in run.links:
        trace = traces.get(link.case_id)
        if link.failed and trace is not None and failure in (None, link.failure):
            yield _row(cases[link.case_id], trace, link) | {"epoch": epoch}


def _row(case: Case, trace: Trace, link: Link) -> dict[str, Any]:
    texts = {miss.passage_id: miss.text for miss in link.missed if miss.text}
    texts |= {passage.id: passage.text for passage in trace.retrieved}
    evidence = {**case.evidence}
    relevant = {}
    for name, grade in case.relevant.items():
        if name in texts:
            evidence.setdefault(_needed(case, link, name, texts[name]), grade)
        else:
            relevant[name] = grade
    return {
        "id": case.id,
        "question": case.question,
        "references": list(case.references),
        "relevant": relevant,
        "evidence": evidence,
        **case.model_dump(mode="json", exclude=_NOT_COPIED, exclude_defaults=True),
        # What has its default says nothing; an empty list that the app gave has none, and is kept.
        **trace.model_dump(mode="json", exclude=_NOT_KEPT, exclude_defaults=True),
        "needs": [need.model_dump(mode="json") for need in link.needs],
        "expected_owner": link.owner,
        "expected_failure": link.failure,
    } | ({"retrieved": []} if trace.unmeasured is None and not trace.retrieved else {})


def _needed(case: Case, link: Link, passage_id: str, text: str) -> str:
    """The sentence of a passage that the case needs, else all of it."""
    needs = [need.text for need in link.needs if need.passage_id == passage_id]
    claims = [need for need in needs or case.references if need != case.question]
    passage = Passages([text], case.question)
    return next((quote for claim in claims if (quote := passage.match(claim).quote)), text)
