"""All checks of a gold set, in one place: a new one is a file of its own and a line here."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from misslink.files.goldset import GoldSet
from misslink.goldset.checking.balance import balance
from misslink.goldset.checking.duplicates import duplicates
from misslink.goldset.checking.evidence import evidence
from misslink.goldset.checking.finding import Finding, in_order
from misslink.goldset.checking.grounds import Grounds
from misslink.goldset.checking.ids import changed, unreachable
from misslink.goldset.checking.leakage import leakage
from misslink.goldset.checking.power import power
from misslink.goldset.checking.unjudged import unjudged

__all__ = ["CHECKS", "check"]

CHECKS: tuple[Callable[[GoldSet, Grounds], Sequence[Finding]], ...] = (
    duplicates,
    leakage,
    unreachable,
    changed,
    evidence,
    balance,
    unjudged,
    power,
)


def check(gold: GoldSet, grounds: Grounds | None = None) -> tuple[Finding, ...]:
    """Check a gold set.

    Parameters
    ----------
    gold : GoldSet
    grounds : Grounds, optional
        What to hold it against. Without it only what the questions themselves tell is found.

    Returns
    -------
    tuple of Finding
        The gravest first; the order of the cases changes nothing. Empty for a set without fault.

    >>> from misslink.files.goldset import read_goldset
    >>> gold = read_goldset([{"id": "a", "question": "Why?"}, {"id": "b", "question": "why ?"}])
    >>> [(found.severity, found.cases) for found in check(gold)]
    [('error', ('a', 'b'))]
    """
    known = grounds or Grounds()
    return in_order(found for one in CHECKS for found in one(gold, known))
