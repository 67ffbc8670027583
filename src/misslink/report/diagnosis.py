"""The debugging checklist answered with numbers, and passages that the gold set may lack."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from misslink.report.documents import (
    count_in,
    estimate_in,
    mapping_in,
    number_in,
    rows_in,
    text_in,
)
from misslink.report.glossary import CHECKED
from misslink.report.places import case, case_numbers
from misslink.report.wording import Shown, decimal, percent, plain_number, shown
from misslink.types import Estimate, Run

__all__ = ["Check", "Checklist", "HoleRow", "Holes", "checklist", "holes", "judged"]

# Estimates that are no share of anything are written as plain numbers.
_SHARES = ("share", "recall", "precision", "hit", "rate", "split", "lost")
_DECIMALS = ("auroc", "cosine", "mrr", "ndcg")
# By check: the numbers that its verdict rests on.
_DECIDE = {
    "chunk_quality": ("cut_within_a_sentence", "places_lost_to_duplicates"),
    "embedding_quality": ("auroc",),
    "recall": ("recall_in_context",),
    "precision": ("auroc",),
    "vocabulary": ("auroc",),
    "boundaries": ("split",),
}
_MANY = 12  # holes that a reader takes in at a glance
_MOST = 500  # of them on a page: more nobody reads there, and a large run has thousands


@dataclass(frozen=True)
class Check:
    """One question of the checklist.

    ``state`` is 'ok', 'not ok', 'no verdict' or 'not measured'; ``why`` there is no verdict,
    otherwise "".
    """

    name: str
    question: str
    finding: str
    state: str
    why: str
    numbers: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Checklist:
    """The checklist, and what it was measured with."""

    facts: str
    checks: tuple[Check, ...]


@dataclass(frozen=True)
class HoleRow:
    """A retrieved passage that seems to answer and is not in the gold set; ``href`` or ""."""

    question: str
    passage_id: str
    text: str
    rank: str
    reason: str
    href: str


@dataclass(frozen=True)
class Holes:
    """What could be added to the gold set, and the metrics without it and with it.

    ``rows`` are the first 500 of the ``count`` that were found.
    """

    rows: tuple[HoleRow, ...]
    metrics: tuple[tuple[Shown, Shown], ...]
    count: int

    @property
    def long(self) -> bool:
        """Whether there are so many that the table is better opened on request."""
        return len(self.rows) > _MANY

    @property
    def cut(self) -> bool:
        """Whether there are more than are shown."""
        return self.count > len(self.rows)


def checklist(run: Run) -> Checklist | None:
    """The checklist of `run`; None where none was made."""
    diagnosis = mapping_in(run.summary.get("diagnosis"))
    checks = tuple(_check(row) for row in rows_in(diagnosis.get("checklist")))
    if not checks:
        return None
    embedding, corpus = text_in(diagnosis, "embedding"), count_in(diagnosis, "corpus")
    facts = [
        f"Similarities are those of {embedding}" if embedding else "No embedding was at hand",
        f"the corpus of {corpus:,} passages was read"
        if corpus
        else "the corpus was not at hand, so that passages are those that were retrieved",
    ]
    return Checklist("; ".join(facts) + ".", checks)


def holes(run: Run) -> Holes | None:
    """Gaps in the gold set; None where none was found."""
    document = mapping_in(mapping_in(run.summary.get("diagnosis")).get("gold_holes"))
    found = list(rows_in(document.get("holes")))
    of = [row.get("case_id") for row in found[:_MOST]]
    shown_of = {case_id for case_id in of if isinstance(case_id, str)}
    numbers = case_numbers(run.cases)
    anchors = {
        # The explorer takes more than its filters: the passage to show of the case.
        (trace.case_id, passage.id): f"{case(numbers[trace.case_id])}&passage={place}"
        for trace in run.traces
        if trace.case_id in numbers and trace.case_id in shown_of
        for place, passage in enumerate(trace.retrieved, 1)
    }
    rows = tuple(_hole(row, anchors) for row in found[:_MOST])
    if not rows:
        return None
    metrics = tuple(
        (
            shown(name, estimate_in(mapping_in(values), "without")),
            shown(name, estimate_in(mapping_in(values), "with")),
        )
        for name, values in mapping_in(document.get("metrics")).items()
    )
    return Holes(rows, metrics, len(found))


def judged(row: Mapping[str, JsonValue]) -> tuple[str, str]:
    """Whether a question of the checklist is answered well, and why there is no verdict.

    Parameters
    ----------
    row : mapping
        One of the checklist in ``summary.json``.

    Returns
    -------
    pair of str
        'ok', 'not ok', 'no verdict' (there are numbers, and they do not decide) or 'not measured'
        (there are none); the reason of 'no verdict', otherwise "".

    Examples
    --------
    >>> judged({"name": "recall", "numbers": {}, "ok": None})
    ('not measured', '')
    """
    ok = row.get("ok")
    if isinstance(ok, bool):
        return ("ok" if ok else "not ok"), ""
    numbers = mapping_in(row.get("numbers"))
    documents = {name: one for name, one in numbers.items() if isinstance(one, Mapping)}
    estimates = {name: estimate_in(documents, name) for name in documents}
    # Counts are there even where nothing was: 0 passages are no measurement.
    if not any(one.value is not None for one in estimates.values()) and (
        estimates or not any(number_in(numbers, name) is not None for name in numbers)
    ):
        return "not measured", ""
    deciding = [estimates[one] for one in _DECIDE.get(text_in(row, "name"), ()) if one in estimates]
    if not deciding:
        return "no verdict", "the numbers do not decide it"
    lacking = next((one for one in deciding if one.value is None), None)
    if lacking is not None:
        return "no verdict", lacking.reason or "what decides it was not measured"
    return "no verdict", "the interval lies on both sides of the line between well and not well"


def _check(row: Mapping[str, JsonValue]) -> Check:
    state, why = judged(row)
    return Check(
        name=text_in(row, "name").replace("_", " "),
        question=text_in(row, "question"),
        finding=text_in(row, "finding"),
        state=state,
        why=why,
        numbers=tuple(
            (CHECKED.get(name) or name.replace("_", " "), _number(name, value))
            for name, value in mapping_in(row.get("numbers")).items()
        ),
    )


def _number(name: str, value: JsonValue) -> str:
    """An estimate with its interval and n, or a number; whatever else stands there as text."""
    is_share = any(word in name for word in _SHARES)
    if isinstance(value, Mapping):
        estimate = estimate_in({name: dict(value)}, name)
        is_share = is_share or estimate.method.startswith("wilson")  # a count of a whole
        return shown(name, estimate).text if is_share else _plain(name, estimate)
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "not measured"}[value]
    if isinstance(value, int | float):
        return percent(value) if is_share and 0 <= value <= 1 else plain_number(value)
    return str(value)


def _plain(name: str, estimate: Estimate) -> str:
    """An estimate of no known unit."""
    if estimate.value is None:
        return f"not measured: {estimate.reason}"
    write = decimal if any(word in name for word in _DECIMALS) else plain_number
    ends = ["unbounded" if end is None else write(end) for end in (estimate.low, estimate.high)]
    interval = "" if estimate.low is estimate.high is None else f" [{', '.join(ends)}]"
    return f"{write(estimate.value)}{interval}, n = {estimate.n:,}"


def _hole(row: Mapping[str, JsonValue], anchors: Mapping[tuple[str, str], str]) -> HoleRow:
    passage_id = text_in(row, "passage_id")
    rank = count_in(row, "rank")
    return HoleRow(
        question=text_in(row, "question"),
        passage_id=passage_id,
        text=text_in(row, "text"),
        rank=f"{rank:,}" if rank else "",
        reason=text_in(row, "reason"),
        href=anchors.get((text_in(row, "case_id"), passage_id), ""),
    )
