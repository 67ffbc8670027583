"""Parse numbers from JSON documents and text."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from pydantic import ValidationError

from misslink.types import Estimate

_MAX_CHARACTERS = 40  # characters of a value in a message

# What C's strtod and Arrow read. Python also takes 1_000 and the digits of every other script.
_DECIMAL = re.compile(
    r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf(?:inity)?|nan)",
    re.ASCII | re.IGNORECASE,
)


def parse_decimal(text: str) -> float | None:
    r"""Return the number that a text writes with the digits 0 to 9; None where it is none.

    Infinity and ``nan`` are accepted; see `as_finite`.

    Examples
    --------
    >>> parse_decimal("-2.5e3"), parse_decimal("1_000"), parse_decimal("\uff13"), parse_decimal("0x10"), parse_decimal("")
    (-2500.0, None, None, None, None)
    """
    return float(text) if _DECIMAL.fullmatch(text) else None


def parse_estimate(data: Mapping[str, object]) -> Estimate:
    """Return the estimate that a JSON object is; one that is none is missing and says why.

    Examples
    --------
    >>> parse_estimate({"value": 0.5, "low": 0.4}).reason
    "the run's entry cannot be read (high: Field required)"
    """
    try:
        return Estimate.model_validate(dict(data))
    except ValidationError as problem:
        error = problem.errors()[0]
        place = ".".join(map(str, error["loc"])) or "the number"
        return Estimate.missing(f"the run's entry cannot be read ({place}: {error['msg']})")


def as_finite(value: object) -> float | None:
    """Return a JSON number that one is; None for anything else, truth values among it.

    Examples
    --------
    >>> as_finite(3), as_finite(float("nan")), as_finite(True), as_finite("3"), as_finite(10**400)
    (3.0, None, None, None, None)
    """
    return None if isinstance(value, str) else parse_number(value)


def parse_number(value: object) -> float | None:
    """Return a number, or a text that is one, as a finite float; None for anything else.

    Examples
    --------
    >>> parse_number(" 2.5 "), parse_number("inf"), parse_number(True), parse_number(10**400)
    (2.5, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):  # JSON knows no largest whole number
        return None
    return number if math.isfinite(number) else None


def shorten_repr(value: object) -> str:
    """A value as a message prints it: not all digits of a number that has hundreds.

    Examples
    --------
    >>> shorten_repr("x"), len(shorten_repr(10**5000)) < 80
    ("'x'", True)
    """
    try:
        written = repr(value)
    except ValueError:  # Python writes out no whole number with thousands of digits
        return "with thousands of digits"
    return (
        written
        if len(written) <= _MAX_CHARACTERS
        else f"{written[:_MAX_CHARACTERS]}... ({len(written)} characters)"
    )
