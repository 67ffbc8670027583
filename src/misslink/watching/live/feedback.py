"""What users say and do, checked before it is logged."""

from __future__ import annotations

import math

from misslink.errors import InputError

__all__ = ["checked"]

_LONGEST_NAME = 200
_UP_OR_DOWN = ("thumbs", "task_done")
_FROM_ZERO = ("cost", "latency", "reformulation", "click", "use")


def checked(kind: str, value: float) -> float:
    """Return the value of feedback.

    Parameters
    ----------
    kind : str
        See `misslink.watching.live.records.KINDS`; a name of the user's own takes any number.
    value : float

    Raises
    ------
    InputError
        It is of no kind, or no value of that kind.
    """
    if not isinstance(kind, str) or not kind.strip() or len(kind) > _LONGEST_NAME:
        raise InputError(f"the kind of feedback is {kind!r}: a name such as thumbs is needed")
    if not isinstance(value, bool | int | float) or not abs(value) < math.inf:
        raise InputError(f"the value of {kind} is {value!r}: a number is needed")
    if kind in _UP_OR_DOWN and value not in (0, 1):
        raise InputError(f"the value of {kind} is {value}: 1 is good and 0 is bad")
    if kind in _FROM_ZERO and value < 0:
        raise InputError(f"the value of {kind} is {value}: it is at least 0")
    try:
        return float(value)
    except OverflowError:
        raise InputError(f"the value of {kind} is too large to be kept") from None
