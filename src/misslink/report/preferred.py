"""Which of two runs' answers a judge preferred, in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from misslink.report.wording import p_value, plural, shown
from misslink.types import Estimate

__all__ = ["Preferred", "preferred"]


@dataclass(frozen=True)
class Preferred:
    """Which answers a judge preferred: rows of (label, A wins, B wins, ties), and what follows."""

    judge: str
    rows: tuple[tuple[str, int, int, int], ...]
    sentences: tuple[str, ...]


def preferred(letter: str, found: Mapping[str, Any] | None) -> Preferred | None:
    """Return what is shown of the preferences of a comparison; None where there are none.

    Parameters
    ----------
    letter : str
        Of the further run.
    found : mapping or None
        As `misslink.deciding.preferences.Preferences.document` has it.
    """
    if found is None:
        return None
    rows = [("Both orders agree, else a tie", found["wins"])]
    rows += [("A shown first", found["by_order"]["a_first"])]
    rows += [(f"{letter} shown first", found["by_order"]["b_first"])]
    share = Estimate.model_validate(found["preference"])
    flips = Estimate.model_validate(found["position_flips"])
    p = f", {p_value(found['p'])} (sign test)" if found["p"] is not None else ""
    sentences = [
        f"{letter} was preferred in {_of('preference', share, 'decided case')}{p}.",
        f"The order decided, and nothing else, in {_of('flips', flips, 'pair')}.",
    ]
    if share.value is None:
        sentences[0] = f"No preference: {share.reason}."
    if flips.value is None:
        sentences[1] = f"How far the order decides is not known: {flips.reason}."
    if found["identical"]:
        sentences.append(f"{plural(found['identical'], 'tie')} between identical answers.")
    omitted = sum(found["left_out"].values()) + found["not_asked"]
    if omitted:
        why = "; ".join([*found["left_out"], *(["not asked"] if found["not_asked"] else [])])
        sentences.append(f"{plural(omitted, 'case')} left out: {why}.")
    return Preferred(
        found["judge"],
        tuple((label, wins["a"], wins["b"], wins["tie"]) for label, wins in rows),
        tuple(sentences),
    )


def _of(name: str, share: Estimate, of: str) -> str:
    """Such as "33 % [6, 79] of the 3 decided cases"."""
    return f"{shown(name, share).brief} of the {plural(share.n, of)}"
