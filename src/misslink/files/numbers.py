"""Numbers that somebody else wrote, in JSON documents or as text: checked, or not there."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from pydantic import ValidationError

from misslink.types import Estimate

__all__ = ["decimal", "estimate_of", "finite", "shortened"]

_TOLD = 40  # characters of a value in a message

# What C's strtod and Arrow read. Python also takes 1_000 and the digits of every other script.
_DECIMAL = re.compile(
    r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf(?:inity)?|nan)",
    re.ASCII | re.IGNORECASE,
)


def decimal(text: str) -> float | None:
    r"""Return the number that a text writes with the digits 0 to 9; None where it is none.

    Infinite and no number (``nan``) are numbers here: whoever wants finite ones says so.

    Examples
    --------
    >>> decimal("-2.5e3"), decimal("1_000"), decimal("\uff13"), decimal("0x10"), decimal("")
    (-2500.0, None, None, None, None)
    """
    return float(text) if _DECIMAL.fullmatch(text) else None


def estimate_of(found: Mapping[str, object]) -> Estimate:
    """Return the estimate that a JSON object is; one that is none is missing and says why.

    Examples
    --------
    >>> estimate_of({"value": 0.5, "low": 0.4}).reason
    "the run's entry cannot be read (high: Field required)"
    """
    try:
        return Estimate.model_validate(dict(found))
    except ValidationError as problem:
        error = problem.errors()[0]
        place = ".".join(map(str, error["loc"])) or "the number"
        return Estimate.missing(f"the run's entry cannot be read ({place}: {error['msg']})")


def finite(value: object) -> float | None:
    """Return a JSON number that is one; None for anything else, truth values among it.

    Examples
    --------
    >>> finite(3), finite(float("nan")), finite(True), finite("3"), finite(10**400)
    (3.0, None, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:  # JSON knows no largest whole number
        return None
    return number if math.isfinite(number) else None


def shortened(value: object) -> str:
    """A value as a message tells it: not all digits of a number that has hundreds.

    Examples
    --------
    >>> shortened("x"), len(shortened(10**5000)) < 80
    ("'x'", True)
    """
    try:
        written = repr(value)
    except ValueError:  # Python writes out no whole number of thousands of digits
        return "of thousands of digits"
    return written if len(written) <= _TOLD else f"{written[:_TOLD]}... ({len(written)} characters)"
