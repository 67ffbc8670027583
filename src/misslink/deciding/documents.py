"""Numbers in a run's JSON documents, found by a path with dots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from misslink.files.numbers import estimate_of, finite
from misslink.types import Estimate

__all__ = ["NotThere", "number_at", "paths_in"]

_ESTIMATE = frozenset({"value", "low", "high", "n", "method"})
_NO_INTERVAL = "a number that was recorded, not estimated, has no interval"


class NotThere(LookupError):  # noqa: N818 -- a question answered with no, not a fault
    """The document has no number at this path."""


def number_at(document: Mapping[str, Any], path: str, *, n: int) -> Estimate:
    """Return the number at `path`, as an Estimate.

    Parameters
    ----------
    document : mapping
        Of JSON values. In a list an item is found by its ``name``.
    path : str
        Keys from the outside in, between dots; a key may itself hold dots.
    n : int
        On how many cases a number rests that says nothing of it itself.

    Returns
    -------
    Estimate
        The one that stands there; a bare number without an interval; missing with a reason where
        there is null, at the path or on the way to it.

    Raises
    ------
    NotThere
        The path leads nowhere, or to something that is no number.

    Examples
    --------
    >>> number_at({"usage": {"calls": 12, "cost": None}}, "usage.calls", n=3).value
    12.0
    >>> number_at({"usage": {"calls": 12, "cost": None}}, "usage.cost", n=3).reason
    'the run holds no number there (cost is null)'
    """
    found, stopped, reason = _walk(document, path.split("."), "", None)
    if found is None:
        # The document's own reason, where it gives one beside the null.
        return Estimate.missing(reason or f"the run holds no number there ({stopped} is null)")
    if isinstance(found, Mapping) and found.keys() >= _ESTIMATE:
        return estimate_of(found)
    number = finite(found)
    if number is None:
        raise NotThere(path)
    return Estimate(value=number, low=None, high=None, n=n, method="recorded", reason=_NO_INTERVAL)


def paths_in(document: Mapping[str, Any], of: str = "") -> Iterator[str]:
    """Go through the paths of a document that end in an estimate, a number or null."""
    for key, value in document.items():
        path = f"{of}{key}"
        if isinstance(value, Mapping) and not value.keys() >= _ESTIMATE:
            yield from paths_in(value, f"{path}.")
        elif isinstance(value, list):
            yield from paths_in(_by_name(value), f"{path}.")
        elif value is None or isinstance(value, Mapping) or finite(value) is not None:
            yield path


def _walk(
    found: Any, keys: list[str], stopped: str, reason: str | None
) -> tuple[Any, str, str | None]:
    """What stands at the end of the keys, the last key, and the reason beside it."""
    if not keys or found is None:
        return found, stopped, reason
    if isinstance(found, list):
        found = _by_name(found)
    if not isinstance(found, Mapping):
        raise NotThere
    for count in range(1, len(keys) + 1):
        key = ".".join(keys[:count])
        if key in found:
            said = found.get("reason")
            beside = said if isinstance(said, str) else None
            try:
                return _walk(found[key], keys[count:], key, beside)
            except NotThere:
                continue  # a longer key with a dot in it may lead on
    raise NotThere


def _by_name(items: list[Any]) -> dict[str, Any]:
    named = [item for item in items if isinstance(item, Mapping)]
    return {item["name"]: item for item in named if isinstance(item.get("name"), str)}
