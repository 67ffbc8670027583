"""What a check of a gold set found: how grave it is, where, and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from misslink.files.goldset import GoldSet

__all__ = ["SEVERITIES", "Finding", "Proposal", "Severity", "in_order"]

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")


@dataclass(frozen=True)
class Proposal:
    """What a label that no longer holds may be replaced by.

    Parameters
    ----------
    case_id : str
    field : {'evidence', 'relevant'}
    before, after : str
        An evidence text, or a passage's id.
    passage : str
        Id of the passage that holds it now.
    score : float
        How alike the two texts are: 1 less the share of their characters, folded, that have to be
        put in or taken out (rapidfuzz's ratio), in [0, 1].
    meaning : str or None
        Why it may say something else, however alike: then nothing but a person may accept it.
    """

    case_id: str
    field: Literal["evidence", "relevant"]
    before: str
    after: str
    passage: str
    score: float
    meaning: str | None = None


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, or worth knowing.

    Parameters
    ----------
    check : str
        The check's name, such as 'leakage'.
    severity : {'error', 'warning', 'note'}
        Error: numbers over this gold set are wrong. Warning: they say less than they seem to.
    message, way_out : str
        What is the case, and what to do about it; each a sentence.
    cases : sequence of str
        Ids, sorted; none where it is about the whole set.
    numbers : mapping
        What was measured, for programs.
    proposals : sequence of Proposal
    """

    check: str
    severity: Severity
    message: str
    way_out: str
    cases: tuple[str, ...] = ()
    numbers: Mapping[str, Any] = field(default_factory=dict)
    proposals: tuple[Proposal, ...] = ()

    def lines(self, gold: GoldSet) -> tuple[int | None, ...]:
        """Where its cases stand in their file; None where they are of no file."""
        return tuple(gold.lines.get(case_id) for case_id in self.cases)


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Sort the gravest first, then by check and by case: the order of cases does not show."""
    return tuple(
        sorted(
            findings,
            key=lambda one: (SEVERITIES.index(one.severity), one.check, one.cases, one.message),
        )
    )
