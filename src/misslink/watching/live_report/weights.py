"""Weights that let variants speak of the same times, where the planned split changed on the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from misslink.watching.live.records import Exposure, Live
from misslink.watching.live_report.units import Unit

__all__ = ["overlap_weights", "split_changed"]


def split_changed(live: Live, units: Sequence[Unit]) -> bool:
    """Whether requests that count came under different planned splits, as a ramp's do."""
    split = _splits(live)
    first: Mapping[str, float] | None = None
    for unit in units:
        for one in unit.requests:
            if first is None:
                first = split(one)
            elif split(one) != first:
                return True
    return False


def overlap_weights(
    live: Live, units: Sequence[Unit], control: str, variant: str
) -> dict[str, float]:
    """Weigh each request by how likely its like was to come to the other variant.

    While a ramp grows, control's requests are early ones and the variant's late ones, so that a
    trend over time would look like a difference. Of units that first came under one split and
    asked under another, a variant holds the smaller of its two shares, since the hash moves units
    only towards what grew, and each counts only where it was first. Weighted by the other
    variant's part, both sides have the same mix of first and present splits.

    Parameters
    ----------
    live : Live
    units : sequence of Unit
    control, variant : str

    Returns
    -------
    dict
        Exposure -> weight, in [0, 1]. The same for all of a variant while the split is the same.

    References
    ----------
    Li, Morgan and Zaslavsky (2018), Balancing covariates via propensity score weighting (overlap
    weights).
    """
    split = _splits(live)
    found: dict[str, float] = {}
    for unit in units:
        if unit.variant not in (control, variant):
            continue
        other = variant if unit.variant == control else control
        first = split(unit.requests[0])
        for one in unit.requests:
            now = split(one)
            own_part = min(first.get(unit.variant, 0.0), now.get(unit.variant, 0.0))
            other_part = min(first.get(other, 0.0), now.get(other, 0.0))
            both = own_part + other_part
            found[one.id] = other_part / both if both else 0.0
    return found


def _splits(live: Live) -> Callable[[Exposure], Mapping[str, float]]:
    known: dict[tuple[int, float], Mapping[str, float]] = {}

    def split(one: Exposure) -> Mapping[str, float]:
        key = (one.plan, one.open_share)
        if key not in known:
            known[key] = live.planned(one)
        return known[key]

    return split
