"""Several samples of one verdict in one: their mean, their spread, and how often they flip."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from misslink.judging.metric import Finding
from misslink.types import Repeats

__all__ = ["in_one"]

_PAIR = 2  # fewer samples have no spread and cannot flip


def in_one(findings: Sequence[Finding]) -> tuple[Finding, int]:
    """Return the finding of all samples together, and the place of the one it is shown by.

    Parameters
    ----------
    findings : sequence of Finding
        At least one, in the order of sampling. Those without a value are not in the means.

    Returns
    -------
    finding : Finding
        The only one as it stands; where none has a value, the first. Otherwise value, probability
        and parts are means; the label is the most frequent one, bad on a tie; claims, passages
        and reason are those of the first sample with that label.
    place : int
    """
    if len(findings) == 1:
        return findings[0], 0
    values = tuple(finding.value for finding in findings)
    labels = tuple(finding.label for finding in findings)
    known = [value for value in values if value is not None]
    said = [label for label in labels if label is not None]
    votes = Counter(said)
    label = votes[True] > votes[False] if said else None
    repeats = Repeats(
        values=values,
        labels=labels,
        spread=statistics.stdev(known) if len(known) >= _PAIR else None,
        flipped=votes[not label] / len(said) if len(said) >= _PAIR else None,
    )
    scored = [place for place, finding in enumerate(findings) if finding.value is not None]
    if not scored:
        return replace(findings[0], repeats=repeats), 0
    place = next((at for at in scored if findings[at].label == label), scored[0])
    shown = findings[place]
    names = {name: None for at in scored for name in findings[at].parts or {}}
    parts = {name: _mean([(findings[at].parts or {}).get(name) for at in scored]) for name in names}
    probability = _mean([findings[at].probability for at in scored])
    return (
        replace(
            shown,
            value=statistics.fmean(known),
            label=label,
            probability=probability,
            parts=parts or None,
            repeats=repeats,
        ),
        place,
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None
