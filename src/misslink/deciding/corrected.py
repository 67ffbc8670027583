"""The share that people would call good, where a gate or a comparison shows the judge's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from misslink.calibration.differences import both_corrected, why_other_judge
from misslink.calibration.kept import GLADEN, LINKED, Corrected, corrected, documents
from misslink.calibration.rates import RATES, estimate_at
from misslink.deciding.changes import is_yes_no
from misslink.deciding.criteria import Criteria
from misslink.deciding.figures import written
from misslink.deciding.gates import Gate
from misslink.deciding.numbers import associations, number_in
from misslink.deciding.outcome import Change
from misslink.deciding.sides import Sides
from misslink.deciding.values import Value
from misslink.judging.shares import GOOD_SHARES
from misslink.types import Estimate, Run

__all__ = [
    "changed_corrected",
    "corrected_notes",
    "corrected_share",
    "interval_written",
    "labels_in_words",
    "refuse_uncorrected",
]

_LINK = "link."
_NOT_TO_BE_USED = "do not use"  # as misslink.calibration.advice has it
_OF_LINK = frozenset(
    ("attributable_fraction", "risk_difference", "risk_given_hit", "risk_given_miss", "risk_ratio")
)
_WAY = (
    "hold the judge against human labels with  misslink calibrate RUN --labels FILE, or evaluate "
    "with --labels or --calibration"
)


def corrected_share(run: Run, whole: Run, value: Value) -> Corrected | None:
    """Return the corrected share beside a number of a run; None where it has none.

    Parameters
    ----------
    run : Run
        `whole`, or a selection of its cases.
    whole : Run
    value : Value
        Of `run`. One that is no share of good answers has none to be corrected, but for the risks
        of the link.
    """
    if linked := _of_link(run, value.name):
        return linked
    if value.name not in _names(whole) or not is_share(value):
        return None
    ids = None if run is whole else frozenset(case.id for case in run.cases)
    return corrected(whole, ids).get(value.name)


def is_share(value: Value) -> bool:
    """Whether a number is a share of good answers, and no mean of values in between."""
    if value.name in GOOD_SHARES.values():
        return True
    known = [x for x in (value.of_case or {}).values() if x is not None]
    return bool(known) and is_yes_no([(x, x) for x in known]) and not value.lower_is_better


def refuse_uncorrected(run: Run, criteria: Criteria, gate: Gate, value: Value) -> None:
    """Raise where a gate asks for a corrected number that the run does not have."""
    if gate.estimate != "corrected":
        return
    if _of_link(run, value.name):
        own = f"{_LINK}corrected.{value.name.removeprefix(_LINK)}"
        raise criteria.refusal(
            gate, f"the corrected {value.name} has a name of its own; write  metric: {own}"
        )
    known = _names(run)
    if not known:
        raise criteria.refusal(
            gate, f"estimate: corrected needs a calibration, and the run keeps none; {_WAY}"
        )
    if value.name in known and is_share(value):
        return
    share = GOOD_SHARES.get(value.name)
    if share in known:
        raise criteria.refusal(
            gate,
            f"{value.name} is a mean and is not corrected; write  metric: {share}  for the share "
            "of answers that are good",
        )
    raise criteria.refusal(
        gate,
        f"the run keeps no calibration of {value.name}, only of {', '.join(sorted(known))}; {_WAY}",
    )


def changed_corrected(
    sides: Sides, gate: Gate, value: Value, earlier: Value | None, found: Change | None, run: Run
) -> tuple[Value | None, Change | None]:
    """Correct the baseline and the change by the calibration of the run.

    Parameters
    ----------
    sides : Sides
    gate : Gate
    value : Value
        Corrected, of the run.
    earlier : Value or None
        Of the baseline, as its judge calls it.
    found : Change or None
        The change as the judge sees it.
    run : Run
        The cases that the gate is about.

    Raises
    ------
    InputError
        A change is demanded, and the baseline has no cases or was judged otherwise.
    """
    demanded, before = gate.regression_max is not None, sides.cases_before
    if earlier is None:
        return None, None
    if before is None:
        if demanded:
            raise sides.lacks(gate, f"{value.name} that could be corrected")
        return None, None
    metric = _names(sides.run)[value.name]
    document = documents(sides.run)[metric]
    if why := why_other_judge(before, sides.run, metric, document):
        if demanded:
            raise sides.criteria.refusal(
                gate,
                f"the calibration does not correct the baseline: {why}; judge the baseline anew, "
                "or leave estimate: corrected out",
            )
        return None, None
    ids = sides.both & {case.id for case in run.cases}
    seed = number_in(sides.run, "seed", 0)
    both = both_corrected(before, sides.run, metric, document, ids, seed=seed)
    change = both.difference.value
    if found is None or change is None or both.a.value is None or both.b.value is None:
        reason = both.difference.reason or both.a.reason or both.b.reason or "it is not measured"
        return replace(earlier, estimate=Estimate.missing(reason, n=both.a.n)), None
    sign = 1.0 if value.lower_is_better else -1.0
    means = (both.a.value, both.b.value)
    changed = replace(found, drop=sign * change, difference=both.difference, means=means)
    return replace(earlier, estimate=both.a), changed


def corrected_notes(run: Run, gate: Gate, share: Corrected | None) -> Iterator[str]:
    """Say of a gate what the other of the two numbers is: the judge's, or the corrected one.

    Parameters
    ----------
    run : Run
        The whole one, by whose calibration it is corrected.
    gate : Gate
    share : Corrected or None
        As `corrected_share` has it.
    """
    if share is None:
        return
    labels = labels_in_words(share)
    if gate.estimate == "corrected":
        if documents(run).get(share.metric, {}).get("verdict") == _NOT_TO_BE_USED:
            yield (
                f"Warning: by its calibration of {share.metric} this judge is not to be used, so "
                "do not rely on a share that is corrected by it; misslink calibrate says why."
            )
        if share.raw.value is not None:
            yield (
                f"By the judge alone it is {interval_written(share.name, share.raw)}; corrected "
                f"by {labels}."
            )
    elif share.estimate.value is not None:
        told = interval_written(share.name, share.estimate)
        yield f"Corrected for the judge's errors it is {told}, by {labels}."
    else:
        yield f"It could not be corrected for the judge's errors: {share.estimate.reason}."


def labels_in_words(share: Corrected) -> str:
    """Write on how many labels a corrected share rests, such as '25 labels'."""
    return f"{share.labels:,} label{'' if share.labels == 1 else 's'}"


def interval_written(name: str, found: Estimate) -> str:
    """Write a share with its interval, such as '74 % [67, 81]'."""
    if found.value is None:
        return "not known"
    if found.low is None or found.high is None:
        return written(name, found.value)[0]
    value, low, high = (written(name, one)[0] for one in (found.value, found.low, found.high))
    return f"{value} [{low.removesuffix(' %')}, {high.removesuffix(' %')}]"


def _names(run: Run) -> dict[str, str]:
    """The metric of each share that the run keeps a calibration of, by the share's name."""
    return {GOOD_SHARES.get(metric, metric): metric for metric in documents(run)}


def _of_link(run: Run, name: str) -> Corrected | None:
    """A risk of the link with the judge's errors taken out; None where it was not corrected."""
    key = name.removeprefix(_LINK)
    if not name.startswith(_LINK) or key not in _OF_LINK:
        return None
    link = associations(run)
    found = link.get("corrected")
    if not isinstance(found, Mapping):
        return None
    judged = found.get("judged")
    estimate = estimate_at(found.get(key))
    raw = estimate_at((judged if isinstance(judged, Mapping) else link).get(key))
    if estimate is None or raw is None:
        return None
    rates = [estimate_at(found.get(rate)) for rate in RATES]
    labels = sum(rate.n for rate in rates if rate is not None)
    note = f"By the judge's error rates on {labels:,} labels."
    return Corrected(name, LINKED, raw, estimate, GLADEN, labels, own=False, note=note)
