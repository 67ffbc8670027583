"""Failed cases by annotators' labels: a label wins on its case, and all of them correct the count.

A run that is read for its cases has their labels applied (`apply_labels`). Its metrics stay the
judge's, so that a run with labels and one without are measured alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from misslink.calibration.stored_calibration import current_calibrations
from misslink.documents import calibrations_of, replay_of
from misslink.parts import Part, light_items, select_items, stored
from misslink.retrieval import cluster_cases
from misslink.stats import proportion
from misslink.stats.prevalence import prediction_powered
from misslink.types import Estimate, Link, Reason, Run

_TIED = 0.5  # the mean label of annotators of whom as many say good as bad
# What a judge may hold against an answer, with the metrics of which a good label clears it.
_FAULTS: tuple[tuple[frozenset[str], Callable[[Link], bool]], ...] = (
    (frozenset({"faithfulness"}), lambda link: link.answer == "unfaithful"),
    (frozenset({"correctness"}), lambda link: link.correct is False),
    (frozenset({"correctness", "abstention"}), lambda link: link.answer == "declined"),
    (frozenset({"abstention"}), lambda link: link.failure == "should_have_abstained"),
    # Where the reference itself is in doubt, what an answer leaves out of it is no fault.
    (
        frozenset({"completeness"}),
        lambda link: link.complete is False and link.failure != "gold_suspect",
    ),
)
_METRICS = frozenset[str]().union(*(metrics for metrics, _ in _FAULTS))
_JUDGED_GOOD: dict[str, Callable[[Link], bool]] = {
    "faithfulness": lambda link: link.answer == "faithful",
    "correctness": lambda link: link.correct is True,
}


# Losses that a good answer disproves; one before the prompt stands, whatever the app knew.
_LOST_LATE = frozenset({"answer", "data"})


def find_labelled_failures(run: Run) -> dict[str, bool]:
    """Return whether each labelled case failed: by its labels, and by the judge where they are silent.

    Labels of this run's own answers count, of the metrics that decide whether an answer failed;
    ties decide nothing.
    """
    labels = _read_labels(run)
    found = {
        link.case_id: _failed(link, labels[link.case_id])
        for link in select_items(_judged_links(run), labels)
        if link.failure is not None
    }
    return {case_id: failed for case_id, failed in found.items() if failed is not None}


def count_judged_too(run: Run) -> int:
    """Return on how many labelled cases the judge's word decides beside the labels."""
    labels = _read_labels(run)
    silent = (
        all(labels[link.case_id].values())
        and (
            _is_held_against(link, labels[link.case_id])
            or any(
                metric not in labels[link.case_id] and is_good(link)
                for metric, is_good in _JUDGED_GOOD.items()
            )
        )
        for link in select_items(_judged_links(run), labels)
    )
    return sum(silent)


def _read_labels(run: Run) -> dict[str, dict[str, bool]]:
    """The labels by case and metric, as they were settled: whether the answer is good."""
    own, documents = current_calibrations(run), calibrations_of(run)
    labels: dict[str, dict[str, bool]] = {}
    for metric in sorted(_METRICS):
        for case_id, share in documents[metric].labelled.items() if metric in own else ():
            if share != _TIED:
                labels.setdefault(case_id, {})[metric] = share > _TIED
    return labels


def _failed(link: Link, labels: Mapping[str, bool]) -> bool | None:
    if not all(labels.values()):
        return True
    if link.failed:
        faults = any(is_fault(link) for _, is_fault in _FAULTS)
        return not faults or _is_held_against(link, labels)
    good = all(metric in labels or is_good(link) for metric, is_good in _JUDGED_GOOD.items())
    return False if link.failed is False or good else None


def _is_held_against(link: Link, labels: Mapping[str, bool]) -> bool:
    """Whether the judge finds a fault of which no label speaks."""
    return any(is_fault(link) and metrics.isdisjoint(labels) for metrics, is_fault in _FAULTS)


def apply_labels(run: Run) -> Run:
    """Return the run with the word of annotators and of a second judge, for every view of it.

    A failed case whose answer they call good is a false alarm, and its owner the judge; where the
    reference is suspected, it passed, and the doubt is noted.
    """
    run = judged_run(run)
    found, replay = find_labelled_failures(run), replay_of(run)
    cleared = {case.case_id for case in (replay.cases if replay else ()) if case.cause == "judge"}
    if not (found or cleared):
        return run
    judged = run.links if isinstance(run.links, Part) else stored(Link, run.links)
    places, changes = judged.places, dict[int, Link]()
    for case_id in (found.keys() | cleared) & places.keys():
        link = judged[places[case_id]]
        if (failed := found.get(case_id, link.failed)) is not link.failed:
            changes[places[case_id]] = _as_labelled(link, failed=bool(failed))
        elif link.failed and case_id not in found:
            changes[places[case_id]] = _as_good(link, "second_judge_good")
    links = judged.replace(changes)
    links.judged = judged
    return run.model_copy(update={"links": links})


def judged_run(run: Run) -> Run:
    """Return the run with the links of its judge, as its folder has them."""
    links = _judged_links(run)
    return run if links is run.links else run.model_copy(update={"links": links})


def _judged_links(run: Run) -> Sequence[Link]:
    return (run.links.judged if isinstance(run.links, Part) else None) or run.links


def _as_labelled(link: Link, *, failed: bool) -> Link:
    return _as_failed(link) if failed else _as_good(link, "labelled_good")


def _as_good(link: Link, code: str) -> Link:
    reason = str(Reason(code=code))
    in_doubt = link.failure == "gold_suspect"
    told: dict[str, Any] = {
        "failure": "false_alarm" if link.failed and not in_doubt else "passed",
        "unexplained": False,
        "also": (),
        "notes": ("gold_suspect",) if in_doubt else (),
        "needs": tuple(
            need.model_copy(update={"lost_at": None}) if need.lost_at in _LOST_LATE else need
            for need in link.needs
        ),
        "reason": reason,
        "reasons": {},
    }
    return link.model_copy(update=told)


def _as_failed(link: Link) -> Link:
    reason = str(Reason(code="labelled_bad"))
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
    links = light_items(_judged_links(run))
    calls = {link.case_id: float(link.failed) for link in links if link.failed is not None}
    documents = [calibrations_of(run)[metric] for metric in current_calibrations(run) & _METRICS]
    weights, strata, split = dict[str, float](), dict[str, str](), dict[str, float]()
    for document in documents:
        weights |= document.label_weights
        strata |= document.label_strata
        split |= document.label_disputes
    labels = {case_id: float(failed) for case_id, failed in found.items()}
    two = len(documents) == 1 and bool(split)  # else failures are those of several metrics
    if two:
        shares = documents[0].labelled
        disputed = [case_id for case_id, share in split.items() if share and case_id in calls]
        labels |= {case_id: 1 - shares.get(case_id, _TIED) for case_id in disputed}
    others = [call for case_id, call in calls.items() if case_id not in labels]
    if not (others or two):
        return proportion(sum(found.values()), len(found))
    clusters = cluster_cases(run.cases)
    groups = [clusters.get(case_id, case_id) for case_id in labels]
    powered = prediction_powered(
        list(labels.values()),
        [calls.get(case_id, _TIED) for case_id in labels],
        others,
        weights=[weights.get(case_id, 1.0) for case_id in labels] if weights else None,
        strata=[strata[case_id] for case_id in labels] if strata.keys() >= labels.keys() else None,
        clusters=groups if len(set(groups)) < len(groups) else None,
        disputed=[split.get(case_id, math.nan) for case_id in labels] if two else None,
        seed=seed,
    )
    return powered.estimate
