"""The calibrations that a run keeps, and the share of good answers that people would have found."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from misslink.calibration.judged import verdicts_hash
from misslink.calibration.rates import RATES, estimate_at, labels_in, measured, scores
from misslink.files.numbers import finite
from misslink.judging.shares import GOOD_SHARES
from misslink.stats import Confusion, ErrorRates, proportion, rogan_gladen
from misslink.types import Estimate, Run

__all__ = [
    "GLADEN",
    "LINKED",
    "Applied",
    "Corrected",
    "applied",
    "brief",
    "corrected",
    "documents",
    "together",
]

LINKED = "faithfulness"  # the metric by whose calibration risks are corrected and causes undecided
POWERED, GLADEN = "prediction-powered", "rogan-gladen"


@dataclass(frozen=True)
class Corrected:
    """A share of good answers as the judge calls them, and as people would have.

    Parameters
    ----------
    name : str
        Of the share: 'faithful', 'correct', else the metric.
    metric : str
    raw : Estimate
        Share that the judge calls good at the calibration's threshold.
    estimate : Estimate
        Share that people would call good; missing with a reason where the labels do not carry it.
    by : {'prediction-powered', 'rogan-gladen'}
    labels : int
        Labelled cases that it rests on; by prediction-powered inference with those that people
        are tied on.
    own : bool
        Whether they are labels of this very run's verdicts.
    note : str
        What it rests on, as a sentence.
    """

    name: str
    metric: str
    raw: Estimate
    estimate: Estimate
    by: str
    labels: int
    own: bool
    note: str

    def document(self) -> dict[str, Any]:
        """Return it as JSON values, as a run's summary has it."""
        return {
            "raw": self.raw.model_dump(),
            "estimate": self.estimate.model_dump(),
            "by": self.by,
            "labels": self.labels,
            "own": self.own,
            "note": self.note,
        }


@dataclass(frozen=True)
class Applied:
    """The calibration that causes and risks of a run were made with.

    Parameters
    ----------
    metric : str
    threshold : float or None
    rates : mapping of str to Estimate
        Sensitivity and specificity.
    labels_from : str
        The file of labels behind it; "" where that is not known.
    created : str
        When it was made, ISO; "" where that is not known.
    same : bool
        Whether it says the same as the document that the run keeps now.
    """

    metric: str
    threshold: float | None
    rates: Mapping[str, Estimate]
    labels_from: str
    created: str
    same: bool


def documents(run: Run) -> dict[str, Mapping[str, Any]]:
    """Return the calibration documents that a run keeps, by metric; none without a calibration."""
    held = run.calibration
    if not isinstance(held, Mapping):
        return {}
    found: dict[str, Mapping[str, Any]] = {}
    metric = held.get("metric")
    if isinstance(metric, str) and metric:
        found[metric] = {name: value for name, value in held.items() if name != "others"}
    others = held.get("others")
    for name, document in others.items() if isinstance(others, Mapping) else ():
        if isinstance(document, Mapping):
            found.setdefault(name, document)
    return found


def together(held: Mapping[str, Any] | None, document: Mapping[str, Any]) -> dict[str, Any]:
    """Put a document among those that a run keeps already.

    Parameters
    ----------
    held : mapping or None
        What the run keeps. None: nothing.
    document : mapping
        Of one metric; it takes the place of that metric's.

    Returns
    -------
    dict
        Faithfulness's document with the others under its key ``others``, by metric; without one,
        that which was on top stays there.
    """
    before = dict(held or {})
    others = before.pop("others", None)
    known = {
        name: dict(one)
        for name, one in (others.items() if isinstance(others, Mapping) else ())
        if isinstance(one, Mapping)
    }
    top = before.get("metric")
    if isinstance(top, str):
        known[top] = before
    mine = {name: value for name, value in document.items() if name != "others"}
    known[str(mine["metric"])] = mine
    first = LINKED if LINKED in known else top if isinstance(top, str) else str(mine["metric"])
    rest = {name: known[name] for name in sorted(known) if name != first}
    return {**known[first], **({"others": rest} if rest else {})}


def corrected(run: Run, ids: AbstractSet[str] | None = None) -> dict[str, Corrected]:
    """Correct the shares of good answers by the calibrations that a run keeps.

    Parameters
    ----------
    run : Run
        A whole one.
    ids : set of str or None
        The cases that the shares are about. None: all.

    Returns
    -------
    dict of str to Corrected
        By the name of the share; none without a calibration. Where the labels are of this run's
        own verdicts, by prediction-powered inference, as ``misslink calibrate`` found it; where
        they are of another run, or about a part of the cases, by the judge's error rates (Rogan
        and Gladen), which are then taken to be the same here.
    """
    found = [_of(run, metric, document, ids) for metric, document in documents(run).items()]
    return {one.name: one for one in found}


def applied(run: Run) -> Applied | None:
    """Tell with which calibration a run was linked; None where with none."""
    used = run.manifest.get("calibration")
    if not isinstance(used, Mapping):
        return None
    metric = str(used.get("metric") or "")
    source = run.manifest.get("calibrated_by")
    source = source if isinstance(source, Mapping) else {}
    return Applied(
        metric=metric,
        threshold=finite(used.get("threshold")),
        rates={name: estimate for name in RATES if (estimate := estimate_at(used.get(name)))},
        labels_from=str(source.get("labels_from") or ""),
        created=str(source.get("created") or ""),
        same=_essence(used) == _essence(documents(run).get(metric, {})),
    )


def brief(document: Mapping[str, Any]) -> dict[str, Any]:
    """Where a calibration is from, as the manifest of a run that is linked by it says."""
    kept = ("labels_from", "labels", "created", "verdicts_sha256")
    return {name: document[name] for name in kept if document.get(name) is not None}


def _of(
    run: Run, metric: str, document: Mapping[str, Any], ids: AbstractSet[str] | None
) -> Corrected:
    everyone = scores(run, metric)
    known = everyone if ids is None else {c: s for c, s in everyone.items() if c in ids}
    judge = measured(document)
    threshold = finite(document.get("threshold"))
    called = sum(score >= threshold for score in known.values()) if threshold is not None else 0
    if threshold is None or not known:
        why = "its calibration holds no threshold" if known else f"no case has a {metric} verdict"
        raw = Estimate.missing(why, n=len(known))
    else:
        raw = proportion(called, len(known))
    labels = labels_in(document)
    labelled = document.get("verdicts_sha256")  # not known where an older misslink made it
    own = bool(known) and labelled == verdicts_hash(run, metric)
    estimate, by = _share(document, judge, raw, called, own and len(known) == len(everyone))
    if by == POWERED:
        labels += _ties(document)
    return Corrected(
        name=GOOD_SHARES.get(metric, metric),
        metric=metric,
        raw=raw,
        estimate=estimate,
        by=by,
        labels=labels,
        own=own,
        note=_note(labels, by, own if labelled else None),
    )


def _share(
    document: Mapping[str, Any],
    judge: Confusion | ErrorRates | str,
    raw: Estimate,
    called: int,
    whole: bool,
) -> tuple[Estimate, str]:
    """The corrected share, and how; `whole`: the document's own numbers are about these cases."""
    if raw.value is None:
        return Estimate.missing(raw.reason or "", n=raw.n), GLADEN
    found = document.get("corrected")
    if whole and isinstance(found, Mapping):
        ways = (("prediction_powered", POWERED), ("rogan_gladen", GLADEN))
        told = [(one, by) for name, by in ways if (one := estimate_at(found.get(name)))]
        known = [(one, by) for one, by in told if one.value is not None]
        if told:
            return (known or told)[0]
    if isinstance(judge, str):
        return Estimate.missing(judge, n=raw.n, method=GLADEN), GLADEN
    return rogan_gladen(called, raw.n, judge), GLADEN


def _ties(document: Mapping[str, Any]) -> int:
    """Labelled cases that people are tied on, which count as half good."""
    found = document.get("corrected")
    ties = found.get("ties") if isinstance(found, Mapping) else None
    return ties if isinstance(ties, int) and not isinstance(ties, bool) and ties > 0 else 0


def _note(labels: int, by: str, own: bool | None) -> str:
    """What a share rests on; `own` is None where it is not known whose verdicts were labelled."""
    counted = f"{labels:,} label{'' if labels == 1 else 's'}"
    if by == POWERED:
        return f"By prediction-powered inference from {counted} of this run's verdicts."
    if own:
        return f"By the judge's error rates on {counted} of this run's verdicts."
    whose = "of this run or of another" if own is None else "of another run"
    return (
        f"By the judge's error rates on {counted} {whose}; it holds if the judge errs alike here."
    )


def _essence(document: Mapping[str, Any]) -> list[Any]:
    """What of a calibration reaches the links: its cut, its band and its rates."""
    rates = {name: document.get(name) for name in RATES}
    for room in ("agreement", "weighted"):
        part = document.get(room)
        if isinstance(part, Mapping):
            rates |= {name: part[name] for name in RATES if name in part}
    band = document.get("uncertain_band")
    return [
        finite(document.get("threshold")),
        [finite(end) for end in band] if isinstance(band, list | tuple) else None,
        *(estimate_at(rate) for rate in rates.values()),
    ]
