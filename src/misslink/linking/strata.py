"""The association, closer: within categories, by recall, without the judge's error."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from misslink.linking.calibration import Calibration
from misslink.stats import (
    corrected,
    heterogeneity,
    mantel_haenszel,
    proportion,
    risk_difference,
    risk_ratio,
    trend,
)
from misslink.stats.mantel_haenszel import Table
from misslink.types import Estimate, Link

__all__ = ["Cell", "IsBad", "adjusted", "cell", "corrected_table", "dose_response", "table_of"]

Cell = Literal["miss_bad", "miss_good", "hit_bad", "hit_good", "left_out"]
IsBad = Callable[[Link], bool | None]

NO_CATEGORY = "no category"  # the stratum of the cases without one, where others have one
_DISAGREE = 0.05  # p of heterogeneity below which strata are said to disagree; the customary one
# In order of recall.
_RECALL: dict[Literal["miss", "partial", "hit"], str] = {
    "miss": "none",
    "partial": "some",
    "hit": "all",
}
_METHOD = "cochran's q, parametric bootstrap"


def cell(link: Link, bad: bool | None) -> Cell:
    """Place a case in the 2 x 2 table; a partial hit counts as a hit."""
    if bad is None or link.retrieval not in _RECALL:
        return "left_out"
    if link.retrieval == "miss":
        return "miss_bad" if bad else "miss_good"
    return "hit_bad" if bad else "hit_good"


def table_of(links: Sequence[Link], is_bad: IsBad) -> tuple[Table, int]:
    """Count the four cells, and the cases that are left out."""
    cells = Counter(cell(link, is_bad(link)) for link in links)
    table = (cells["miss_bad"], cells["miss_good"], cells["hit_bad"], cells["hit_good"])
    return table, cells["left_out"]


def adjusted(
    links: Sequence[Link],
    category_of: Mapping[str, str | None],
    is_bad: IsBad,
    names: tuple[str, str],
    seed: int,
) -> dict[str, Any]:
    """Compare misses with hits within each category only, and pool (Mantel-Haenszel).

    Parameters
    ----------
    links : sequence of Link
    category_of : mapping of str to str or None
        Case id to category; a case it does not name has none.
    is_bad : callable
        Whether a link's answer is bad; None: not known.
    names : pair of str
        What a bad and a good answer are called, such as 'unfaithful' and 'faithful'.
    seed : int

    Returns
    -------
    dict
        As ``summary.json`` holds it under ``link.adjusted``. Cases without a category are a stratum
        of their own. Beside the contract, ``left_out`` counts the strata with no miss or no hit
        and their cases, which say nothing; where no case has a category the estimates are missing.
    """
    groups: dict[str | None, list[Link]] = {}
    for link in links:
        if cell(link, is_bad(link)) != "left_out":
            groups.setdefault(category_of.get(link.case_id), []).append(link)
    named = sorted(name for name in groups if name is not None)
    if not named:
        return _nothing("no case that could be placed has a category")
    order: list[str | None] = [*named, *([None] if None in groups else [])]
    tables = [table_of(groups[name], is_bad)[0] for name in order]
    pooled = mantel_haenszel(tables, seed=seed)
    p = heterogeneity(tables, seed=seed)
    crude = _difference(*(sum(counts) for counts in zip(*tables, strict=True)))
    silent = [sum(t) for t in tables if not (t[0] + t[1] and t[2] + t[3])]
    return {
        "by": "category",
        "risk_difference": pooled.risk_difference.model_dump(),
        "risk_ratio": pooled.risk_ratio.model_dump(),
        "attributable_fraction": pooled.attributable_fraction.model_dump(),
        "strata": [
            {"name": NO_CATEGORY if name is None else name, **_stratum(table, names)}
            for name, table in zip(order, tables, strict=True)
        ],
        "left_out": {"strata": len(silent), "cases": sum(silent)},
        "heterogeneity": {"p": p, "method": _METHOD}
        if p is not None
        else {"p": None, "reason": "fewer than two categories have both misses and hits"},
        "warning": _warning(crude, pooled.risk_difference, p),
    }


def _nothing(reason: str) -> dict[str, Any]:
    missing = Estimate.missing(reason).model_dump()
    names = ("risk_difference", "risk_ratio", "attributable_fraction")
    return {
        "by": "category",
        **dict.fromkeys(names, missing),
        "strata": [],
        "left_out": {"strata": 0, "cases": 0},
        "heterogeneity": {"p": None, "reason": reason},
        "warning": None,
    }


def _stratum(table: Table, names: tuple[str, str]) -> dict[str, Any]:
    a, b, c, d = table
    bad, good = names
    estimates = {
        "risk_given_miss": proportion(a, a + b),
        "risk_given_hit": proportion(c, c + d),
        "risk_difference": _difference(*table),
        "risk_ratio": risk_ratio(a, a + b, c, c + d),
    }
    counts = {f"miss_{bad}": a, f"miss_{good}": b, f"hit_{bad}": c, f"hit_{good}": d}
    return {"table": counts, **{key: found.model_dump() for key, found in estimates.items()}}


def _difference(a: int, b: int, c: int, d: int) -> Estimate:
    return risk_difference(a, a + b, c, c + d)


def _warning(crude: Estimate, pooled: Estimate, p: float | None) -> str | None:
    """Say in one sentence where all cases together mislead (Simpson's paradox), if they do."""
    if crude.value is None or pooled.value is None or pooled.low is None or pooled.high is None:
        return None
    both = f"{crude.value:+.2f} over all cases and {pooled.value:+.2f} within categories"
    if crude.value * pooled.value < 0:
        return (
            f"The risk difference is {both}: the sign turns (Simpson's paradox), so read the "
            "adjusted numbers and not the pooled ones."
        )
    if not pooled.low <= crude.value <= pooled.high:
        return (
            f"The risk difference is {both}: categories with many misses differ in their risk "
            "anyway, so read the adjusted numbers."
        )
    if p is not None and p < _DISAGREE:
        return (
            f"The categories disagree on the risk difference (p = {p:.2g}), so read "
            "each category's own before any pooled number."
        )
    return None


def dose_response(links: Sequence[Link], is_bad: IsBad) -> dict[str, Any]:
    """Return the risk of a bad answer by how much of what was needed reached the prompt.

    Returns
    -------
    dict
        As ``summary.json`` holds it under ``link.dose_response``: recall none, some, all, and the
        Cochran-Armitage test for trend over them.
    """
    counts = Counter((link.retrieval, is_bad(link)) for link in links)
    groups = [(counts[name, True], counts[name, True] + counts[name, False]) for name in _RECALL]
    found = trend(groups)
    return {
        "groups": [
            {"recall": recall, "risk": proportion(*group).model_dump()}
            for recall, group in zip(_RECALL.values(), groups, strict=True)
        ],
        "trend": {"p": found.p, "method": found.method, "reason": found.reason},
    }


def corrected_table(table: Table, calibration: Calibration, seed: int) -> dict[str, Any]:
    """Return the table's numbers as a judge without error would give them.

    Returns
    -------
    dict
        As ``summary.json`` holds it under ``link.corrected``.
    """
    found = corrected(
        *table,
        sensitivity=calibration.sensitivity,
        specificity=calibration.specificity,
        seed=seed,
    )
    return {
        **{name: estimate.model_dump() for name, estimate in found.estimates.items()},
        "sensitivity": calibration.sensitivity.model_dump(),
        "specificity": calibration.specificity.model_dump(),
        "warning": found.warning,
    }
