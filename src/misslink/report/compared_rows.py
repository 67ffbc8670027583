"""The metrics of a comparison as rows for people: numbers, tests, effects, what was left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from misslink.report.flips import Cell
from misslink.report.wording import (
    Shown,
    decimal,
    in_short,
    p_value,
    plain_number,
    plural,
    shown,
    shown_difference,
)
from misslink.types import Estimate

__all__ = ["ALIKE", "LARGEST", "REST", "CorrectedRow", "Row", "corrected_row", "row_of"]

ALIKE = "the same"
REST = "the same in the rest"
LARGEST = 1.0  # difference that two values between 0 and 1 can have
_REASON = 160  # characters of a reason why a case has no value


@dataclass(frozen=True)
class Row:
    """One metric of two runs.

    Parameters
    ----------
    name, level : str
    a, b, difference : Shown
        Over the cases that have a value in both runs; b minus a.
    verdict : {'better', 'worse', 'within chance', 'the same', 'the same in the rest', \
'not measured'}
        Of B beside A; 'the rest' are the cases with a value in both, where some have it in one.
    p, p_holm, t_test, mcnemar : str
        "" where there is none.
    d_z, effect, detectable : str
        Cohen's d_z, "" where there is none; the same with what turned, or why there is none.
        Detectable at the level that Holm leaves; "" where it cannot be told.
    n : int
    of : str
        Such as "20 of 23 cases" where not all cases have a value in both; else "".
    left_out : str
        How many cases have no value, and why; "" where all have.
    lower_is_better : bool
    shows : float or None
        What is detectable, as a number.
    better, worse : Cell or None
        How many cases flipped, of yes-or-no values.
    """

    name: str
    level: str
    a: Shown
    b: Shown
    difference: Shown
    verdict: str
    p: str
    p_holm: str
    t_test: str
    mcnemar: str
    d_z: str
    effect: str
    detectable: str
    n: int
    of: str
    left_out: str
    lower_is_better: bool
    shows: float | None
    better: Cell | None = None
    worse: Cell | None = None


@dataclass(frozen=True)
class CorrectedRow:
    """A share of good answers of two runs as people would call it; b minus a.

    Parameters
    ----------
    name : str
    a, b, difference : Shown
        Over the cases that have a verdict in both runs.
    labels : int
        Labelled cases that the judge's error rates rest on.
    """

    name: str
    a: Shown
    b: Shown
    difference: Shown
    labels: int

    def sentence(self, letter: str) -> str:
        """The row in a sentence, `letter` being the further run's."""
        by = f"corrected for the judge's errors by {plural(self.labels, 'label')}"
        if not self.difference.measured:
            return f"{self.name} could not be {by}: {self.difference.reason}."
        return (
            f"{self.name}, {by}: A {self.a.brief}, {letter} {self.b.brief}, difference "
            f"{self.difference.brief}."
        )


def corrected_row(name: str, found: Mapping[str, Any] | None) -> CorrectedRow | None:
    """Turn the corrected share of a metric into a row; None where it has none.

    Parameters
    ----------
    name : str
    found : mapping or None
        As `misslink.deciding.compare.compare` has it under ``corrected``.
    """
    if found is None:
        return None
    a, b, difference = (Estimate.model_validate(found[key]) for key in ("a", "b", "difference"))
    return CorrectedRow(
        name, shown(name, a), shown(name, b), shown_difference(name, difference), found["labels"]
    )


def row_of(name: str, found: Mapping[str, Any], paired: int, letter: str) -> Row:
    """Turn one metric of a comparison into a row.

    Parameters
    ----------
    name : str
    found : mapping
        As `misslink.deciding.compare.compare` has it.
    paired : int
        How many cases are compared.
    letter : str
        Of the further run.
    """
    a, b, difference = (Estimate.model_validate(found[key]) for key in ("a", "b", "difference"))
    test, mcnemar = found["t_test"], found["mcnemar"]
    return Row(
        name=name,
        level=found["level"],
        a=shown(name, a),
        b=shown(name, b),
        difference=shown_difference(name, difference),
        verdict=_verdict(found),
        p=p_value(found["p"]),
        p_holm=p_value(found["p_holm"]),
        t_test=p_value(test["p"]),
        mcnemar="" if mcnemar is None else p_value(mcnemar["p"]),
        d_z="" if found["effect"]["value"] is None else decimal(found["effect"]["value"]),
        effect=_effect(found),
        detectable=_detectable(name, found["detectable"]),
        n=found["n"],
        of="" if found["n"] == paired else f"{found['n']:,} of {plural(paired, 'case')}",
        left_out=_left_out(found["left_out"], letter),
        lower_is_better=found["lower_is_better"],
        shows=found["detectable"],
    )


def _verdict(found: Mapping[str, Any]) -> str:
    if found["winner"] is not None:
        return "better" if found["winner"] == "b" else "worse"
    if found["p"] is None:
        return "not measured"
    # The differences may cancel out; alike are only runs in which no case differs.
    if found["difference"]["value"] != 0 or found["detectable"] is not None:
        return "within chance"
    omitted = found["left_out"]
    return REST if omitted and omitted["in_a"] + omitted["in_b"] else ALIKE


def _effect(found: Mapping[str, Any]) -> str:
    """Cohen's d_z; of yes-or-no values also how many cases turned, and their odds."""
    effect, mcnemar = found["effect"], found["mcnemar"]
    value = effect["value"]
    said = f"none: {effect['reason']}" if value is None else f"d_z {decimal(value)}"
    if mcnemar is None or not mcnemar["gained"] + mcnemar["lost"]:
        return said
    odds = mcnemar["odds"]
    turned = f"{mcnemar['gained']:,} up, {mcnemar['lost']:,} down"
    if odds["value"] is not None:
        value, low, high = (plain_number(odds[name]) for name in ("value", "low", "high"))
        turned += f", odds {value} [{low}, {high}]"
    return f"{said}; {turned}"


def _detectable(name: str, value: float | None) -> str:
    if value is None:
        return ""
    if value > LARGEST:
        return "none of any size"
    written = shown_difference(
        name, Estimate(value=value, low=None, high=None, n=1, method="", reason="a threshold")
    )
    return written.value.lstrip("+")


def _left_out(found: Mapping[str, Any] | None, letter: str) -> str:
    """How many cases are without a value in both, which run alone has one, and why."""
    if found is None:
        return ""
    said = f"{plural(found['in_a'] + found['in_b'] + found['in_both'], 'case')} left out"
    sides = (("A", found["in_b"]), (letter, found["in_a"]))
    alone = [f"{count:,} with a value in {side} alone" for side, count in sides if count]
    reasons = dict.fromkeys(in_short(one["reason"], _REASON) for one in found["reasons"])
    return f"{', '.join([said, *alone])}: {'; '.join(reasons)}"
