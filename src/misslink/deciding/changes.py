"""What became of single cases between two runs: who flipped, and which cause turned into which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from misslink.deciding.values import Value
from misslink.types import Run

__all__ = ["causes", "flipped", "in_order", "is_yes_no", "pairs_of"]

_YES_NO = frozenset({0.0, 1.0})


def flipped(a: Sequence[Value], b: Sequence[Value], ids: Sequence[str]) -> dict[str, Any]:
    """By yes-or-no metric, the cases that turned for the better and for the worse.

    Parameters
    ----------
    a, b : sequence of Value
        The same numbers of two runs, in the same order.
    ids : sequence of str
        The cases compared.

    Returns
    -------
    dict
        Name to ``better`` and ``worse``, ids in the order given; a metric of which a case has a
        value between no and yes is not among them.
    """
    found = {}
    for one, other in zip(a, b, strict=True):
        before, after = (in_order(value, ids) for value in (one, other))
        if not is_yes_no(pairs_of(before, after)):
            continue
        sign = -1 if one.lower_is_better else 1
        gains = {
            name: sign * (y - x)
            for name, x, y in zip(ids, before, after, strict=True)
            if x is not None and y is not None
        }
        found[one.name] = {
            "better": [name for name, gain in gains.items() if gain > 0],
            "worse": [name for name, gain in gains.items() if gain < 0],
        }
    return found


def causes(a: Run, b: Run, ids: Sequence[str]) -> dict[str, Any]:
    """How often each cause was there in both runs, and which cases went from which to which."""
    before, after = ({link.case_id: link.cause for link in run.links} for run in (a, b))
    both = [name for name in ids if name in before and name in after]
    moves: dict[tuple[str, str], list[str]] = {}
    for name in both:
        moves.setdefault((before[name], after[name]), []).append(name)
    return {
        "n": len(both),
        "a": dict(Counter(before[name] for name in both)),
        "b": dict(Counter(after[name] for name in both)),
        "changed": sum(len(cases) for (was, now), cases in moves.items() if was != now),
        "changes": [
            {"from": was, "to": now, "n": len(cases), "cases": cases}
            for (was, now), cases in sorted(
                moves.items(), key=lambda move: (move[0][0] == move[0][1], -len(move[1]), move[0])
            )
        ],
    }


def in_order(value: Value, ids: Sequence[str]) -> list[float | None]:
    """The value of each case; None where it has none."""
    of = value.of_case or {}
    return [of.get(name) for name in ids]


def pairs_of(
    before: Sequence[float | None], after: Sequence[float | None]
) -> list[tuple[float, float]]:
    """The values of the cases that have one in both runs."""
    both = zip(before, after, strict=True)
    return [(x, y) for x, y in both if x is not None and y is not None]


def is_yes_no(pairs: Sequence[tuple[float, float]]) -> bool:
    """Whether every value is no (0) or yes (1), and there are some."""
    return bool(pairs) and all(value in _YES_NO for pair in pairs for value in pair)
