"""Whether a change for the worse is one that a gate does not allow, and why."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from misslink.deciding.figures import (
    cases_in_words,
    drop_in_words,
    interval_in_words,
    written,
)
from misslink.deciding.lost import why_lost
from misslink.deciding.numbers import ROUNDING
from misslink.deciding.outcome import Change, Outcome
from misslink.stats import paired_difference

__all__ = ["could_fail", "found_by_change", "regressed", "too_few_pairs"]


def regressed(outcome: Outcome) -> Iterator[str]:
    """Go through what of a gate's regression is not kept; nothing where all is."""
    gate, found, earlier = outcome.gate, outcome.change, outcome.baseline
    most, now = gate.regression_max, outcome.estimate.value
    if most is None or now is None:
        return
    if earlier is None or earlier.value is None or found is None:
        why = "" if earlier is None else f": {earlier.reason}"
        yield f"the baseline has no {outcome.called} to hold this against{why}"
        return
    if found.lost:
        yield _lost(outcome, found)
    if outcome.paired and (found.by_chance or any(too_few_pairs(outcome))):
        return
    if found.drop > most + ROUNDING:
        yield _told(outcome, found, most)


def found_by_change(outcome: Outcome) -> str:
    """What a gate that passed found of the change, to follow the number; "" without a baseline."""
    found, earlier, now = outcome.change, outcome.baseline, outcome.estimate.value
    if earlier is None or earlier.value is None or found is None or now is None:
        return ""
    if not outcome.paired or found.means is None or found.difference is None:
        (was,) = written(outcome.metric, earlier.value)
        if outcome.gate.estimate == "corrected" and found.means and found.means[1] != now:
            # The number itself is found in another way, and next to it this would be no change.
            was, is_now = written(outcome.metric, *found.means)
            return f"; by the judge's error rates alone it was {was} and is {is_now}"
        return f", was {was}"
    was, is_now = written(outcome.metric, *found.means)
    told = f"; paired over {cases_in_words(found.difference.n)} it was {was} and is {is_now}"
    most = outcome.gate.regression_max
    if most is not None and found.drop > most + ROUNDING:
        change = interval_in_words(outcome.metric, found.difference)
        told += f", a change of {change} within what chance gives (its interval holds 0)"
    return told


@cache
def could_fail(pairs: int) -> bool:
    """Whether the interval of a change over so many pairs can leave out 0 at all.

    It is asked of the largest change there is: every pair from best to worst.

    >>> could_fail(0), could_fail(1), could_fail(40)
    (False, False, True)
    """
    high = paired_difference([1.0] * pairs, [0.0] * pairs).difference.high
    return high is not None and high < 0


def too_few_pairs(outcome: Outcome) -> Iterator[str]:
    """Say where too few cases could be paired for a paired gate to decide anything."""
    found = outcome.change
    if not outcome.paired or found is None:
        return
    pairs = 0 if found.difference is None else found.difference.n
    fewest = outcome.gate.min_cases
    have = "has" if pairs == 1 else "have"
    if not pairs:
        yield (
            f"no question has a value of {outcome.metric} in both runs, so nothing could be paired"
        )
    elif fewest is not None and pairs < fewest:
        yield (
            f"only {cases_in_words(pairs)} {have} a value of {outcome.metric} in both runs, and "
            f"{fewest:,} must"
        )
    elif not could_fail(pairs):
        yield (
            f"only {cases_in_words(pairs)} {have} a value of {outcome.metric} in both runs: even "
            "if all of them got worse the interval of the change would hold 0, so nothing is "
            "decided"
        )


def _lost(outcome: Outcome, found: Change) -> str:
    earlier, now = outcome.baseline, outcome.estimate
    if earlier is not None and outcome.numbers_alone:
        return (
            f"{outcome.metric} is over {cases_in_words(now.n)} now and was over "
            f"{earlier.n:,}: {why_lost(found.lost)}"
        )
    count = len(found.lost)
    have = "has" if count == 1 else "have"
    return (
        f"{cases_in_words(count)} {have} no value of {outcome.metric} now that had one: "
        f"{why_lost(found.lost)}"
    )


def _told(outcome: Outcome, found: Change, most: float) -> str:
    metric, earlier, now = outcome.metric, outcome.baseline, outcome.estimate.value
    # Corrected, the run's own number and that beside its baseline may be found in two ways.
    corrected = outcome.gate.estimate == "corrected"
    ends = found.means if outcome.paired or corrected else None
    if ends is None and earlier is not None and earlier.value is not None and now is not None:
        ends = earlier.value, now
    if ends is None:
        return ""
    was, is_now = written(metric, *ends)
    verb = "rose" if ends[1] > ends[0] else "dropped"
    told = (
        f"{outcome.called} {verb} from {was} to {is_now}: {drop_in_words(metric, found.drop)} for "
        f"the worse, more than the {drop_in_words(metric, most)} allowed"
    )
    if outcome.paired and found.difference is not None:
        change = interval_in_words(metric, found.difference)
        told += f" (paired over {cases_in_words(found.difference.n)}: {change}, 0 left out)"
    return told
