"""Failed cases by annotators' labels: a label wins on its case, and all of them correct the count."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from misslink.calibration.stored_calibration import own_calibrations
from misslink.documents import calibrations_of
from misslink.parts import select_items
from misslink.render.reasons import describe_reason
from misslink.stats import proportion
from misslink.stats.prevalence import prediction_powered
from misslink.types import Estimate, Link, Reason, Run

_TIED = 0.5  # the mean label of annotators of whom as many say good as bad
# By metric whose label decides, whether the judge's verdict behind a link is bad, and good.
_JUDGED_BAD: dict[str, Callable[[Link], bool]] = {
    "faithfulness": lambda link: link.answer == "unfaithful",
    "correctness": lambda link: link.correct is False or link.answer == "declined",
}
_JUDGED_GOOD: dict[str, Callable[[Link], bool]] = {
    "faithfulness": lambda link: link.answer == "faithful",
    "correctness": lambda link: link.correct is True,
}


def find_labelled_failures(run: Run) -> dict[str, bool]:
    """Return whether each labelled case failed: by its labels, and by the judge where they are silent.

    Labels of this run's own answers count, of faithfulness and correctness; ties decide nothing.
    """
    own, documents = own_calibrations(run), calibrations_of(run)
    labels: dict[str, dict[str, bool]] = {}
    for metric in _JUDGED_BAD:
        for case_id, share in documents[metric].labelled.items() if metric in own else ():
            if share != _TIED:
                labels.setdefault(case_id, {})[metric] = share > _TIED
    found = {
        link.case_id: _failed(link, labels[link.case_id])
        for link in select_items(run.links, labels)
        if link.failure is not None
    }
    return {case_id: failed for case_id, failed in found.items() if failed is not None}


def _failed(link: Link, labels: Mapping[str, bool]) -> bool | None:
    if not all(labels.values()):
        return True
    bad = {metric for metric, is_bad in _JUDGED_BAD.items() if is_bad(link)}
    if link.failed:
        # What else the judge holds against the answer, no label speaks of.
        return not bad or not bad <= labels.keys() or link.complete is False
    good = all(metric in labels or is_good(link) for metric, is_good in _JUDGED_GOOD.items())
    return False if link.failed is False or good else None


def apply_labels(run: Run) -> Run:
    """Return the run with the annotators' word on the labelled cases, for every view of it."""
    if not (found := find_labelled_failures(run)):
        return run
    changed = {True: _as_failed, False: _as_passed}
    links = tuple(
        changed[found[link.case_id]](link)
        if found.get(link.case_id, link.failed) is not link.failed
        else link
        for link in run.links
    )
    return run.model_copy(update={"links": links})


def _as_passed(link: Link) -> Link:
    reason = describe_reason(Reason(code="labelled_good"))
    told = {"failure": "passed", "unexplained": False, "also": (), "reason": reason, "reasons": {}}
    return link.model_copy(update=told)


def _as_failed(link: Link) -> Link:
    reason = describe_reason(Reason(code="labelled_bad"))
    told = {
        "failure": "inconclusive",
        "unexplained": True,
        "notes": (),
        "reason": reason,
        "reasons": {},
    }
    return link.model_copy(update=told)


def correct_failed(run: Run, *, seed: int = 0) -> Estimate:
    """Return the share of answers that fail, corrected by annotators' labels.

    The labels alone where every decided case has one; else prediction-powered inference from the
    labels and the judge's calls of all cases. Missing without labels of this run's answers.
    """
    found = find_labelled_failures(run)
    if not found:
        return Estimate.missing(Reason(code="not_calibrated"))
    calls = {link.case_id: float(link.failed) for link in run.links if link.failed is not None}
    others = [call for case_id, call in calls.items() if case_id not in found]
    if not others:
        return proportion(sum(found.values()), len(found))
    documents = calibrations_of(run).values()
    weights: dict[str, float] = {}
    for document in documents:
        weights |= document.label_weights
    powered = prediction_powered(
        [float(failed) for failed in found.values()],
        [calls.get(case_id, _TIED) for case_id in found],
        others,
        weights=[weights.get(case_id, 1.0) for case_id in found] if weights else None,
        seed=seed,
    )
    if powered.estimate.value is None:  # too few labels
        return powered.estimate
    return min(powered.estimate, powered.labelled_only, key=_width)


def _width(estimate: Estimate) -> float:
    """A correction by the judge that widens the interval of the labels is not used."""
    if estimate.low is None or estimate.high is None:
        return 2.0
    return estimate.high - estimate.low
