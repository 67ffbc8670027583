"""Several samples of one verdict in one: their mean, their spread, and how often they flip."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence

from misslink.judging.metric import Finding
from misslink.types import Repeats

__all__ = ["in_one"]

_PAIR = 2  # fewer samples have no spread and cannot flip


def in_one(findings: Sequence[Finding]) -> tuple[Finding, int]:
    """Return the finding of all samples together, and the place of the one it is shown by.

    Parameters
    ----------
    findings : sequence of Finding
        At least one, in the order of sampling. Those without a value count in no mean and have no
        vote; how many they are, and why the first of them has none, is added to the reason.

    Returns
    -------
    finding : Finding
        The only one as it stands. Otherwise value, probability and parts are means; the label is
        the most frequent one, bad on a tie; claims, passages and reason are those of the first
        sample with that label. Where none has a value, the first of those that share the most
        frequent status, failed on a tie.
    place : int

    Raises
    ------
    ValueError
        There is no sample.
    """
    if not findings:
        raise ValueError("a verdict needs at least one sample")
    if len(findings) == 1:
        return findings[0], 0
    scored = [place for place, finding in enumerate(findings) if finding.value is not None]
    votes = Counter(findings[at].label for at in scored if findings[at].label is not None)
    label = votes[True] > votes[False] if votes else None
    repeats = _samples(findings, votes)
    if not scored:
        place = _most_frequent_status(findings)
        return findings[place]._replace(repeats=repeats), place
    place = next((at for at in scored if findings[at].label == label), scored[0])
    names = {name: None for at in scored for name in findings[at].parts or {}}
    parts = {name: _mean([(findings[at].parts or {}).get(name) for at in scored]) for name in names}
    combined = findings[place]._replace(
        value=_mean([findings[at].value for at in scored]),
        label=label,
        probability=_mean([findings[at].probability for at in scored]),
        parts=parts or None,
        reason=_with_missing(findings[place].reason, findings),
        repeats=repeats,
    )
    return combined, place


def _samples(findings: Sequence[Finding], votes: Counter[bool | None]) -> Repeats:
    """Each sample's value and label, and how far they lie apart."""
    known = [finding.value for finding in findings if finding.value is not None]
    said = votes.total()
    return Repeats(
        values=tuple(finding.value for finding in findings),
        labels=tuple(None if finding.value is None else finding.label for finding in findings),
        spread=statistics.stdev(known) if len(known) >= _PAIR else None,
        flipped=min(votes[True], votes[False]) / said if said >= _PAIR else None,
    )


def _most_frequent_status(findings: Sequence[Finding]) -> int:
    counts = Counter(finding.status for finding in findings)
    status = "failed" if counts["failed"] >= counts["skipped"] else "skipped"
    return next(place for place, finding in enumerate(findings) if finding.status == status)


def _with_missing(reason: str | None, findings: Sequence[Finding]) -> str | None:
    """Add to the reason what became of the samples without a value."""
    missing = [finding for finding in findings if finding.value is None]
    if not missing:
        return reason
    told = (
        f"{len(missing)} of {len(findings)} samples have no value"
        f" ({missing[0].status}: {missing[0].reason})"
    )
    return f"{reason}; {told}" if reason else told


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    # Exact, so that samples that agree have the value they agree on.
    return statistics.mean(known) if known else None
