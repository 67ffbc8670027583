"""Where things stand on the page: views of the case explorer as URL fragments.

A view is written into the address, so that it can be sent to a colleague; what stands there is
percent-encoded, so that no text under test ends a value or an attribute.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote

from misslink.types import Case

__all__ = ["CORRECT", "FILTERS", "case", "case_numbers", "view"]

# What the explorer can be narrowed by; several of them combine by AND.
FILTERS = (
    "cause",
    "retrieval",
    "answer",
    "correct",
    "subtype",
    "category",
    "tier",
    "tag",
    "metric",
    "people",
    "ids",
    "q",
    "sort",
)
# What the filter "correct" holds for what a link says; "" where it says nothing.
CORRECT = {True: "yes", False: "no", None: ""}


def case(number: int) -> str:
    """The fragment that opens one case, by its place in the gold set, from 1.

    Examples
    --------
    >>> case(12)
    'case=12'
    """
    return f"case={number}"


def case_numbers(cases: Iterable[Case]) -> dict[str, int]:
    """The number of each case, its place in the gold set from 1, by its id."""
    return {one.id: number for number, one in enumerate(cases, 1)}


def view(**filters: str | Iterable[int]) -> str:
    """The fragment of the cases that fit all of `filters`; numbers are those of cases.

    Parameters
    ----------
    **filters
        Named as in `FILTERS`; a tag is written ``NAME:VALUE``.

    Raises
    ------
    ValueError
        A filter has another name.

    Examples
    --------
    >>> view(cause="retrieval_miss", tag="language:de & fr")
    'cause=retrieval_miss&tag=language%3Ade%20%26%20fr'
    >>> view(ids=[3, 5])
    'ids=3,5'
    """
    if unknown := sorted(set(filters) - set(FILTERS)):
        raise ValueError(f"the explorer has no filter called {', '.join(unknown)}")
    return "&".join(f"{name}={_value(given)}" for name, given in filters.items())


def _value(given: str | Iterable[int]) -> str:
    if isinstance(given, str):
        return quote(given, safe="", errors="replace")  # half a surrogate pair has no UTF-8
    return ",".join(str(number) for number in given)
