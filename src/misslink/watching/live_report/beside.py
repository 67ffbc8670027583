"""What a live log says without user metrics: shadows beside the requests, and interleaved lists."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from misslink.stats.proportions import proportion
from misslink.stats.sample_ratio import Stratum, sample_ratio
from misslink.stats.unit_values import mean_of_units, unit_values
from misslink.types import Estimate
from misslink.watching.live.records import Exposure, Live
from misslink.watching.live.team_draft import Preference, preferences

__all__ = ["interleaved", "shadowed"]

Pair = tuple[Exposure, Exposure]  # a request, and the shadow beside it
_FAILED = ("failed", "fell_back")


def shadowed(live: Live, k: int, *, alpha: float = 0.05) -> list[dict[str, Any]]:
    """Hold each shadow against the requests that it stood beside.

    Parameters
    ----------
    live : Live
    k : int
        How many passages of either are held against each other.
    alpha : float
        One less the level of the intervals, which cluster requests by unit.

    Returns
    -------
    list of dict
        One a shadow of the log. No user metric: nobody saw its answers.
    """
    level = 1 - alpha
    asked = {one.id: one for one in live.exposures if one.mode != "shadow"}
    found: dict[str, list[Exposure]] = defaultdict(list)
    for one in live.exposures:
        if one.mode == "shadow" and one.variant is not None:
            found[one.variant].append(one)
    rows = []
    for variant, shadows in sorted(found.items()):
        ran = [one for one in shadows if one.outcome != "dropped"]
        pairs = [(asked[one.of], one) for one in ran if one.of in asked]
        both = [pair for pair in pairs if pair[0].outcome != "left"]
        fine = [pair for pair in both if all(one.outcome == "ok" for one in pair)]

        def mean(
            of: Callable[[Pair], float | None],
            chosen: Sequence[Pair],
            bounds: tuple[float, float] | None = None,
        ) -> dict[str, Any]:
            return _by_unit(((pair[0], of(pair)) for pair in chosen), level, bounds).model_dump()

        rows.append(
            {
                "variant": variant,
                "shadows": len(shadows),
                "dropped": proportion(
                    len(shadows) - len(ran), len(shadows), level=level
                ).model_dump(),
                "without_request": len(ran) - len(pairs),
                "errors": {
                    "shadow": mean(lambda pair: _error(pair[1]), both, (0.0, 1.0)),
                    "served": mean(lambda pair: _error(pair[0]), both, (0.0, 1.0)),
                    "difference": mean(
                        lambda pair: _error(pair[1]) - _error(pair[0]), both, (-1.0, 1.0)
                    ),
                },
                "latency_s": {
                    "shadow": mean(lambda pair: pair[1].latency_s, fine),
                    "served": mean(lambda pair: pair[0].latency_s, fine),
                    "difference": mean(_slower, fine),
                },
                "k": k,
                "overlap": mean(lambda pair: _overlap(pair, k), fine, (0.0, 1.0)),
            }
        )
    return rows


def interleaved(live: Live, *, alpha: float = 0.05) -> dict[str, Any] | None:
    """Say which of two interleaved retrievers readers preferred; None where there was none.

    Returns
    -------
    dict
        ``queries`` counts each, ``units`` the majority of each unit's queries (a query of nobody
        known stands for itself). `p` is the sign test's, exact, for one look; `p_sequential` is
        valid at any time.
    """
    if not any(one.mode == "interleaved" for one in live.exposures):
        return None
    outcomes = preferences(live)
    names = [variant.name for variant in live.variants][:2]
    by_unit: dict[str, list[Preference]] = defaultdict(list)
    for one in outcomes:
        by_unit[one.unit or f"query {one.exposure}"].append(one)
    shown = sum(one.mode == "interleaved" for one in live.exposures)
    silent = sum(not any(one.credit.values()) for one in outcomes)
    return {
        "variants": names,
        "shown": shown,
        "left_out": shown - len(outcomes),
        "without_credit": silent,
        "queries": _tally([one.winner for one in outcomes], names, silent, alpha),
        "units": _tally(
            [_majority(rows) for rows in by_unit.values()],
            names,
            sum(not any(any(one.credit.values()) for one in rows) for rows in by_unit.values()),
            alpha,
        ),
    }


def _tally(
    winners: Sequence[str | None], names: Sequence[str], silent: int, alpha: float
) -> dict[str, Any]:
    counts = Counter(winners)
    first, second = names
    wins = counts[first] + counts[second]
    if not wins:
        share = Estimate.missing("nobody preferred either", n=0, method="wilson")
    else:
        share = proportion(counts[second], wins, level=1 - alpha)
    plan: Mapping[str, float] = {first: 0.5, second: 0.5}
    found = sample_ratio([Stratum(plan, {name: counts[name] for name in names})])
    return {
        "wins": {name: counts[name] for name in names},
        "ties": counts[None] - silent,
        "without_credit": silent,
        "share": share.model_dump(),
        "p": found.p,
        "p_sequential": found.p_sequential,
    }


def _majority(rows: Sequence[Preference]) -> str | None:
    counts = Counter(one.winner for one in rows if one.winner is not None)
    ordered = counts.most_common()
    if not ordered or (len(ordered) > 1 and ordered[0][1] == ordered[1][1]):
        return None
    return ordered[0][0]


def _by_unit(
    rows: Iterable[tuple[Exposure, float | None]],
    level: float,
    bounds: tuple[float, float] | None,
) -> Estimate:
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for request, value in rows:
        if value is not None:
            unit = sums[request.unit or f"request {request.id}"]
            unit[0] += value
            unit[1] += 1
    above, below = zip(*sums.values(), strict=True) if sums else ((), ())
    return mean_of_units(unit_values(above, below), level=level, bounds=bounds)


def _error(one: Exposure) -> float:
    return float(one.outcome in _FAILED)


def _slower(pair: Pair) -> float | None:
    served, shadow = pair[0].latency_s, pair[1].latency_s
    return None if served is None or shadow is None else shadow - served


def _overlap(pair: Pair, k: int) -> float | None:
    """Share of the first k passages that both have; of the longer list where both are shorter."""
    served, shadow = pair[0].retrieved, pair[1].retrieved
    if served is None or shadow is None:
        return None
    first, second = set(served[:k]), set(shadow[:k])
    longest = max(len(first), len(second))
    return len(first & second) / longest if longest else None
