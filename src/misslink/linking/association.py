"""The association between retrieval misses and bad answers: risks, adjustment, correction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from misslink.failure_modes import FAILURE_MODES
from misslink.linking.judge_calibration import Calibration
from misslink.render.format import format_p_value, format_points_interval
from misslink.stats import (
    attributable_fraction,
    correct_association,
    heterogeneity_test,
    mantel_haenszel,
    proportion,
    risk_difference,
    risk_ratio,
    trend_test,
)
from misslink.stats.stratified_association import TwoByTwo
from misslink.types import Case, Estimate, Link, Verdict

TableCell = Literal["miss_bad", "miss_good", "hit_bad", "hit_good", "left_out"]
IsBad = Callable[[Link], bool | None]


class BadAnswer(NamedTuple):
    """What counts as a bad answer, and what a bad and a good one are called."""

    is_bad: IsBad  # None: not known
    bad: str
    good: str

    def cells(self, table: TwoByTwo) -> dict[str, int]:
        """A table by the names of its cells."""
        names = (f"{row}_{column}" for row in ("miss", "hit") for column in (self.bad, self.good))
        return dict(zip(names, table, strict=True))


NO_CATEGORY = "no category"  # the stratum of the cases without one, where others have one
_HETEROGENEITY_P = (
    0.05  # p of heterogeneity below which strata are said to disagree; the customary one
)
# In order of recall.
_RECALL_LEVELS: dict[Literal["miss", "partial", "hit"], str] = {
    "miss": "none",
    "partial": "some",
    "hit": "all",
}
_HETEROGENEITY_METHOD = "cochran's q, parametric bootstrap"


def table_cell(link: Link, bad: bool | None) -> TableCell:
    """Place a case in the 2 x 2 table; a partial hit counts as a hit."""
    if bad is None or link.retrieval not in _RECALL_LEVELS:
        return "left_out"
    if link.retrieval == "miss":
        return "miss_bad" if bad else "miss_good"
    return "hit_bad" if bad else "hit_good"


def count_table(links: Sequence[Link], is_bad: IsBad) -> tuple[TwoByTwo, int]:
    """Count the four cells, and the cases that are left out."""
    cells = Counter(table_cell(link, is_bad(link)) for link in links)
    table = (cells["miss_bad"], cells["miss_good"], cells["hit_bad"], cells["hit_good"])
    return table, cells["left_out"]


def risk_estimates(table: TwoByTwo, seed: int) -> dict[str, Estimate]:
    """Return the risks of a table, what they differ by, and the attributable fraction, by name."""
    miss_bad, miss_good, hit_bad, hit_good = table
    misses, hits = miss_bad + miss_good, hit_bad + hit_good
    return {
        "risk_given_miss": proportion(miss_bad, misses),
        "risk_given_hit": proportion(hit_bad, hits),
        "risk_difference": risk_difference(miss_bad, misses, hit_bad, hits),
        "risk_ratio": risk_ratio(miss_bad, misses, hit_bad, hits),
        "attributable_fraction": attributable_fraction(*table, seed=seed),
    }


def adjust_for_category(
    links: Sequence[Link],
    category_of: Mapping[str, str | None],
    bad_answer: BadAnswer,
    seed: int,
) -> dict[str, Any]:
    """Compare misses with hits within each category only, and pool (Mantel-Haenszel).

    Parameters
    ----------
    links : sequence of Link
    category_of : mapping of str to str or None
        Case id to category; a case it does not name has none.
    bad_answer : BadAnswer
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
        if table_cell(link, bad_answer.is_bad(link)) != "left_out":
            groups.setdefault(category_of.get(link.case_id), []).append(link)
    named = sorted(name for name in groups if name is not None)
    if not named:
        return _missing_adjustment("no case that could be placed has a category")
    order: list[str | None] = [*named, *([None] if None in groups else [])]
    tables = [count_table(groups[name], bad_answer.is_bad)[0] for name in order]
    pooled = mantel_haenszel(tables, seed=seed)
    p = heterogeneity_test(tables, seed=seed)
    crude = table_risk_difference(*(sum(counts) for counts in zip(*tables, strict=True)))
    silent = [sum(t) for t in tables if not (t[0] + t[1] and t[2] + t[3])]
    return {
        "by": "category",
        "risk_difference": pooled.risk_difference.model_dump(),
        "risk_ratio": pooled.risk_ratio.model_dump(),
        "attributable_fraction": pooled.attributable_fraction.model_dump(),
        "strata": [
            {"name": NO_CATEGORY if name is None else name, **_stratum_document(table, bad_answer)}
            for name, table in zip(order, tables, strict=True)
        ],
        "left_out": {"strata": len(silent), "cases": sum(silent)},
        "heterogeneity": {"p": p, "method": _HETEROGENEITY_METHOD}
        if p is not None
        else {"p": None, "reason": "fewer than two categories have both misses and hits"},
        "warning": _confounding_warning(crude, pooled.risk_difference, p),
    }


def _missing_adjustment(reason: str) -> dict[str, Any]:
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


def _stratum_document(table: TwoByTwo, bad_answer: BadAnswer) -> dict[str, Any]:
    a, b, c, d = table
    estimates = {
        "risk_given_miss": proportion(a, a + b),
        "risk_given_hit": proportion(c, c + d),
        "risk_difference": table_risk_difference(*table),
        "risk_ratio": risk_ratio(a, a + b, c, c + d),
    }
    return {"table": bad_answer.cells(table), **_dumped(estimates)}


def _dumped(estimates: Mapping[str, Estimate]) -> dict[str, Any]:
    return {name: estimate.model_dump() for name, estimate in estimates.items()}


def table_risk_difference(a: int, b: int, c: int, d: int) -> Estimate:
    """Return P(bad | miss) - P(bad | hit) of the cells miss and bad, miss and good, hit and so on."""
    return risk_difference(a, a + b, c, c + d)


def _confounding_warning(crude: Estimate, pooled: Estimate, p: float | None) -> str | None:
    """Say in one sentence where all cases together mislead (Simpson's paradox), if they do.

    Two differences near 0 have two signs by chance in every ninth run in which nothing is
    confounded (of 60 to 300 cases in four categories), so a sign only turns where one of the two
    intervals excludes 0: then that happens in fewer than one of 1,000.
    """
    if crude.value is None or pooled.value is None or pooled.low is None or pooled.high is None:
        return None
    both = f"{format_points_interval(crude)} over all cases and {format_points_interval(pooled)} within categories"
    if crude.value * pooled.value < 0 and (_excludes_zero(crude) or _excludes_zero(pooled)):
        return (
            f"The risk difference is {both}: the sign turns (Simpson's paradox), so read the "
            "adjusted numbers and not the crude ones."
        )
    if not pooled.low <= crude.value <= pooled.high:
        return (
            f"The risk difference is {both}: categories with many misses differ in their risk "
            "anyway, so read the adjusted numbers and not the crude ones."
        )
    if p is not None and p < _HETEROGENEITY_P:
        return (
            f"The categories disagree on the risk difference ({format_p_value(p)}), so read "
            "each category's own before any number over all of them."
        )
    return None


def _excludes_zero(estimate: Estimate) -> bool:
    low, high = estimate.low, estimate.high
    return low is not None and high is not None and (low > 0 or high < 0)


def dose_response(links: Sequence[Link], is_bad: IsBad) -> dict[str, Any]:
    """Return the risk of a bad answer by how much of what was needed reached the prompt.

    Returns
    -------
    dict
        As ``summary.json`` holds it under ``link.dose_response``: recall none, some, all, and the
        Cochran-Armitage test for trend over them. Beside the contract its ``slope``: how much the
        risk rises from one group to the next, below 0 where it falls.
    """
    counts = Counter((link.retrieval, is_bad(link)) for link in links)
    groups = [
        (counts[name, True], counts[name, True] + counts[name, False]) for name in _RECALL_LEVELS
    ]
    test = trend_test(groups)
    return {
        "groups": [
            {"recall": recall, "risk": proportion(*group).model_dump()}
            for recall, group in zip(_RECALL_LEVELS.values(), groups, strict=True)
        ],
        "trend": {
            "p": test.p,
            "method": test.method,
            "reason": test.reason,
            "slope": test.slope,
        },
    }


def correct_for_judge(
    links: Sequence[Link],
    verdicts: Iterable[Verdict],
    calibration: Calibration,
    bad_answer: BadAnswer,
    seed: int,
) -> dict[str, Any]:
    """Return the table's numbers corrected for the judge's errors.

    As ``summary.json`` holds it under ``link.corrected``: ``table`` counts the cases as the judge calls
    them, ``judged`` holds their numbers before the correction, and ``uncertain`` counts the cases whose
    link has no answer outcome. Of `bad_answer` only the words count.

    Notes
    -----
    Sensitivity and specificity are counted over all labelled cases, those of the uncertain band among
    them, each called good from the calibration's threshold on, so the corrected table is counted in the
    same way from the verdicts. Answers that decline are left out.
    """
    chance_of = {
        verdict.case_id: verdict.value if verdict.probability is None else verdict.probability
        for verdict in verdicts
        if verdict.metric == calibration.metric and verdict.status == "scored"
    }

    def is_bad(link: Link) -> bool | None:
        chance = chance_of.get(link.case_id)
        if chance is None or link.answer == "declined":
            return None
        return chance < calibration.threshold

    table, left_out = count_table(links, is_bad)
    correction = correct_association(
        *table,
        sensitivity=calibration.sensitivity,
        specificity=calibration.specificity,
        seed=seed,
    )
    estimates = correction.estimates
    if not sum(table):
        reason = "no case both needs a passage and has a verdict that the judge scored"
        estimates = dict.fromkeys(estimates, Estimate.missing(reason))
    placed = [link for link in links if table_cell(link, is_bad(link)) != "left_out"]
    return {
        **_dumped(estimates),
        "sensitivity": calibration.sensitivity.model_dump(),
        "specificity": calibration.specificity.model_dump(),
        "table": {**bad_answer.cells(table), "left_out": left_out},
        "judged": _dumped(risk_estimates(table, seed)),
        "uncertain": sum(link.answer == "unknown" for link in placed),
        "warning": correction.warning,
    }


def summarize_association(
    links: Sequence[Link],
    *,
    cases: Sequence[Case] = (),
    verdicts: Sequence[Verdict] = (),
    seed: int = 0,
    calibration: Calibration | None = None,
) -> dict[str, Any]:
    """Return the 2 x 2 table, the risks and the failure modes, as in ``summary.json``.

    A *miss* is a case with relevant passages where none reached the prompt. A partial hit counts as
    a hit, and ``dose_response`` shows it separately. Cases are left out and counted if they need no
    passage, if retrieval was not observed, or if the answer has no verdict. ``wrong`` has the same
    numbers for wrong answers.

    Parameters
    ----------
    links : sequence of Link
        May be empty; every estimate then has a reason and no value.
    cases : sequence of Case
        Used for their categories.
    verdicts : sequence of Verdict
        Used for ``corrected`` only.
    seed : int
        Random seed for bootstrap intervals.
    calibration : Calibration or None
        The judge's error rates on faithfulness. None, or of another metric: no ``corrected``.
    """
    category_of = {case.id: case.category for case in cases}
    failures = Counter(link.failure for link in links)
    unfaithful = BadAnswer(is_unfaithful, "unfaithful", "faithful")
    wrong = BadAnswer(_is_wrong, "wrong", "right")
    return {
        **_risk_document(links, category_of, unfaithful, seed),
        "corrected": correct_for_judge(links, verdicts, calibration, unfaithful, seed)
        if calibration is not None and calibration.metric == "faithfulness"
        else None,
        "failures": {failure: failures[failure] for failure in FAILURE_MODES if failures[failure]},
        "owners": dict(Counter(str(link.owner) for link in links if link.owner)),
        "retrieval": dict(sorted(Counter(link.retrieval for link in links).items())),
        "answers": dict(sorted(Counter(link.answer for link in links).items())),
        "wrong": _risk_document(links, category_of, wrong, seed),
    }


def is_unfaithful(link: Link) -> bool | None:
    """Whether the answer of a case is unfaithful; None: it declines, or no verdict says."""
    return {"faithful": False, "unfaithful": True}.get(link.answer)


def _is_wrong(link: Link) -> bool | None:
    return None if link.correct is None else not link.correct


def _risk_document(
    links: Sequence[Link],
    category_of: Mapping[str, str | None],
    bad_answer: BadAnswer,
    seed: int,
) -> dict[str, Any]:
    is_bad, bad, good = bad_answer
    table, left_out = count_table(links, is_bad)
    estimates = risk_estimates(table, seed)
    if not sum(table):
        reason = f"no case both needs a passage and has an answer judged {bad} or {good}"
        estimates = dict.fromkeys(estimates, Estimate.missing(reason))
    return {
        "table": {**bad_answer.cells(table), "left_out": left_out},
        **_dumped(estimates),
        "adjusted": adjust_for_category(links, category_of, bad_answer, seed),
        "dose_response": dose_response(links, is_bad),
    }
