"""How often a bad answer goes with a retrieval miss, over all cases, with intervals.

This is association: cases were not assigned to a miss. Replay is what turns it into cause.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args

from misslink.stats import attributable_fraction, proportion, risk_difference, risk_ratio
from misslink.types import Cause, Estimate, Link

__all__ = ["summarise"]

Cell = Literal["miss_bad", "miss_good", "hit_bad", "hit_good", "left_out"]


def summarise(links: Sequence[Link], *, seed: int = 0) -> dict[str, Any]:
    """Return the 2 x 2 table, the risks and the causes, as ``summary.json`` holds them.

    A *miss* is a case with relevant passages of which none reached the prompt; a partial hit
    counts as a hit. Cases that need no passage, whose retrieval was not seen, or whose answer has
    no verdict are left out and counted. The same numbers for wrong answers stand under ``wrong``.

    Parameters
    ----------
    links : sequence of Link
        May be empty; every estimate then says why it is missing.
    seed : int
        Of the intervals that are drawn.
    """
    unfaithful = {"faithful": False, "unfaithful": True}
    causes = Counter(link.cause for link in links)
    return {
        **_risks(links, lambda link: unfaithful.get(link.answer), "unfaithful", "faithful", seed),
        "causes": {cause: causes[cause] for cause in get_args(Cause) if causes[cause]},
        "retrieval": dict(sorted(Counter(link.retrieval for link in links).items())),
        "answers": dict(sorted(Counter(link.answer for link in links).items())),
        "wrong": _risks(
            links,
            lambda link: None if link.correct is None else not link.correct,
            "wrong",
            "right",
            seed,
        ),
    }


def _risks(
    links: Sequence[Link],
    is_bad: Callable[[Link], bool | None],
    bad_name: str,
    good_name: str,
    seed: int,
) -> dict[str, Any]:
    cells = Counter(_cell(link, is_bad(link)) for link in links)
    miss_bad, miss_good = cells["miss_bad"], cells["miss_good"]
    hit_bad, hit_good = cells["hit_bad"], cells["hit_good"]
    misses, hits = miss_bad + miss_good, hit_bad + hit_good
    estimates: dict[str, Estimate] = {
        "risk_given_miss": proportion(miss_bad, misses),
        "risk_given_hit": proportion(hit_bad, hits),
        "risk_difference": risk_difference(miss_bad, misses, hit_bad, hits),
        "risk_ratio": risk_ratio(miss_bad, misses, hit_bad, hits),
        "attributable_fraction": attributable_fraction(
            miss_bad, miss_good, hit_bad, hit_good, seed=seed
        ),
    }
    if not misses + hits:
        reason = f"no case both needs a passage and has an answer judged {bad_name} or {good_name}"
        estimates = dict.fromkeys(estimates, Estimate.missing(reason))
    return {
        "table": {
            f"miss_{bad_name}": miss_bad,
            f"miss_{good_name}": miss_good,
            f"hit_{bad_name}": hit_bad,
            f"hit_{good_name}": hit_good,
            "left_out": cells["left_out"],
        },
        **{name: estimate.model_dump() for name, estimate in estimates.items()},
    }


def _cell(link: Link, bad: bool | None) -> Cell:
    if bad is None or link.retrieval in {"none_needed", "unknown"}:
        return "left_out"
    if link.retrieval == "miss":
        return "miss_bad" if bad else "miss_good"
    return "hit_bad" if bad else "hit_good"
