"""How often a bad answer goes with a retrieval miss, over all cases, with intervals.

This is association: cases were not assigned to a miss. Replay is what turns it into cause.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from misslink.linking.calibration import Calibration
from misslink.linking.strata import (
    IsBad,
    adjusted,
    corrected_table,
    dose_response,
    risks_of,
    table_of,
)
from misslink.types import Case, Cause, Estimate, Link, Verdict

__all__ = ["summarise"]

_UNFAITHFUL = {"faithful": False, "unfaithful": True}


def summarise(
    links: Sequence[Link],
    *,
    cases: Sequence[Case] = (),
    verdicts: Sequence[Verdict] = (),
    seed: int = 0,
    calibration: Calibration | None = None,
) -> dict[str, Any]:
    """Return the 2 x 2 table, the risks and the causes, as ``summary.json`` holds them.

    A *miss* is a case with relevant passages of which none reached the prompt; a partial hit
    counts as a hit, and ``dose_response`` shows it apart. Cases that need no passage, whose
    retrieval was not seen, or whose answer has no verdict are left out and counted. The same
    numbers for wrong answers stand under ``wrong``.

    Parameters
    ----------
    links : sequence of Link
        May be empty; every estimate then says why it is missing.
    cases : sequence of Case
        The gold set, for its categories; a link of a case that is not in it has none.
    verdicts : sequence of Verdict
        What the judge said; only ``corrected`` asks them, for its own labels of all cases.
    seed : int
        Of the intervals that are drawn.
    calibration : Calibration or None
        How often the judge errs; used where it is of faithfulness. None: it was not measured, and
        ``corrected`` is None.
    """
    category_of = {case.id: case.category for case in cases}
    causes = Counter(link.cause for link in links)
    names = ("unfaithful", "faithful")
    return {
        **_risks(links, category_of, _unfaithful, names, seed),
        "corrected": corrected_table(links, verdicts, calibration, names, seed)
        if calibration is not None and calibration.metric == "faithfulness"
        else None,
        "causes": {cause: causes[cause] for cause in get_args(Cause) if causes[cause]},
        "retrieval": dict(sorted(Counter(link.retrieval for link in links).items())),
        "answers": dict(sorted(Counter(link.answer for link in links).items())),
        "wrong": _risks(links, category_of, _wrong, ("wrong", "right"), seed),
    }


def _unfaithful(link: Link) -> bool | None:
    return _UNFAITHFUL.get(link.answer)


def _wrong(link: Link) -> bool | None:
    return None if link.correct is None else not link.correct


def _risks(
    links: Sequence[Link],
    category_of: Mapping[str, str | None],
    is_bad: IsBad,
    names: tuple[str, str],
    seed: int,
) -> dict[str, Any]:
    table, left_out = table_of(links, is_bad)
    miss_bad, miss_good, hit_bad, hit_good = table
    bad_name, good_name = names
    estimates = risks_of(table, seed)
    if not sum(table):
        reason = f"no case both needs a passage and has an answer judged {bad_name} or {good_name}"
        estimates = dict.fromkeys(estimates, Estimate.missing(reason))
    return {
        "table": {
            f"miss_{bad_name}": miss_bad,
            f"miss_{good_name}": miss_good,
            f"hit_{bad_name}": hit_bad,
            f"hit_{good_name}": hit_good,
            "left_out": left_out,
        },
        **{name: estimate.model_dump() for name, estimate in estimates.items()},
        "adjusted": adjusted(links, category_of, is_bad, names, seed),
        "dose_response": dose_response(links, is_bad),
    }
