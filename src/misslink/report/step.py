"""One thing to do next, whoever advises it."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Step"]


@dataclass(frozen=True)
class Step:
    """One thing to do: plain text as its writers left it, so escape it.

    Parameters
    ----------
    action : str
        What to do, one sentence; commands stand between backticks.
    why : str
        In numbers, with an interval where there is one.
    cases : tuple of int
        Those behind it, by their place in the gold set from 1, ascending; empty where it is about
        the measurement as a whole.
    fragment : str
        Where they are shown on the page.
    """

    action: str
    why: str
    cases: tuple[int, ...]
    fragment: str
