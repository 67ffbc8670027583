"""What people have still to say of the judge: settle ties, label more, label at all."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from misslink.report.documents import count_in, mapping_in, number_in, rows_in, text_in
from misslink.report.places import view
from misslink.report.settling import SETTLE
from misslink.report.step import Step
from misslink.report.wording import in_short, plural
from misslink.types import Run

__all__ = ["people_steps"]

_TRUST = "trust"  # where on the page labels are shown


def people_steps(run: Run, places: Mapping[str, int]) -> tuple[Step, ...]:
    """Say what labels are missing; nothing where no verdict rests on a judge.

    Parameters
    ----------
    run : Run
    places : mapping of str to int
        The number of each case by its id.

    Returns
    -------
    tuple of Step
        Ties before more labels: a tie is paid for, and counts for nothing until it is settled.
    """
    from misslink.calibration.kept import documents  # brings numpy

    judge = run.manifest.get("judge")
    judged = len({one.case_id for one in run.verdicts if one.status == "scored"})
    if judge in (None, "none") or not judged:
        return ()
    held = documents(run)
    if not held and not run.calibration and run.manifest.get("calibration") is None:
        return (_first_labels(judged),)
    return (*_ties(held, places), *_more(held))


def _first_labels(judged: int) -> Step:
    why = (
        f"The verdicts of {plural(judged, 'case')} rest on a judge that was not held against "
        "people on this app's answers, so that its rates may be off by a constant."
    )
    action = (
        "Label about 100 answers (`misslink annotate RUN`) and hold the judge against them "
        "(`misslink calibrate RUN`)."
    )
    return Step(action, why, (), _TRUST)


def _ties(held: Mapping[str, Mapping[str, JsonValue]], places: Mapping[str, int]) -> Iterator[Step]:
    """Items of which people said as often good as bad, of every metric together."""
    tied = [
        (text_in(row, "case_id"), metric)
        for metric, document in held.items()
        for row in rows_in(mapping_in(document.get("human")).get("queue"))
        if row.get("settled") is not True
    ]
    if not tied:
        return
    cases = tuple(sorted({places[one] for one, _ in tied if one in places}))
    metrics = ", ".join(in_short(one, 60) for one in dict.fromkeys(metric for _, metric in tied))
    why = (
        f"Of {plural(len(tied), 'labelled item')} ({metrics}) people say as often good as bad, so "
        "that what they are is not counted at all."
    )
    fragment = view(ids=cases) if cases else _TRUST
    yield Step(f"Settle what people disagree on (`{SETTLE}`).", why, cases, fragment)


def _more(held: Mapping[str, Mapping[str, JsonValue]]) -> Iterator[Step]:
    """The metric that lacks most labels before the judge could be trusted with it."""
    lacking = [
        (needed, metric, document)
        for metric, document in held.items()
        if (needed := _needed(document))
    ]
    if not lacking:
        return
    needed, metric, document = max(lacking, key=lambda one: one[0])
    action = (
        f"Label about {plural(needed, 'more case')} of {in_short(metric, 60)} "
        "(`misslink annotate RUN`), then `misslink calibrate RUN` again."
    )
    yield Step(action, " ".join(_said(document)), (), _TRUST)


def _needed(document: Mapping[str, JsonValue]) -> int:
    """How many labels the rules about their number still want; 0 where they are content.

    Of the rarer label as many more are labelled as are expected to hold those missing.
    """
    more = []
    for name, check in _short(document):
        value, wanted = number_in(check, "value"), number_in(check, "trust")
        if value is None or wanted is None:
            continue
        missing = wanted - value
        if name == "rarer_label":
            if not value:
                continue  # how rare it is nobody knows
            missing *= count_in(document, "n") / value
        more.append(math.ceil(missing))
    return max(more, default=0)


def _said(document: Mapping[str, JsonValue]) -> Iterator[str]:
    for _, check in _short(document):
        yield text_in(check, "says")


def _short(
    document: Mapping[str, JsonValue],
) -> Iterator[tuple[str, Mapping[str, JsonValue]]]:
    """The rules about the number of labels that stand against trusting the judge."""
    for check in rows_in(document.get("checks")):
        name = text_in(check, "name")
        if name in ("labels", "rarer_label") and text_in(check, "met") not in ("", "trust"):
            yield name, check
