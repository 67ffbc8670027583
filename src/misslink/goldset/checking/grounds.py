"""What a gold set is held against; whatever is None leaves out the checks that need it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from misslink.files.goldset import GoldSet
from misslink.goldset.checking.texts import Texts
from misslink.goldset.generating.settings import Settings
from misslink.goldset.logs.request import Log
from misslink.types import Passage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Demand", "Grounds", "Vectors"]


@dataclass(frozen=True)
class Demand:
    """What a gate demands, in plain numbers.

    Parameters
    ----------
    name, metric : str
    cases : int
        Cases of the gold set that it is about, and that can have a value.
    threshold, at_most : float or None
        Between which the value must lie.
    regression_max : float or None
        How far it may change for the worse.
    min_cases : int or None
    share : bool
        Whether every value lies between 0 and 1, so that its spread is known to have a limit.
    """

    name: str
    metric: str
    cases: int
    threshold: float | None = None
    at_most: float | None = None
    regression_max: float | None = None
    min_cases: int | None = None
    share: bool = True


@dataclass(frozen=True)
class Vectors:
    """Unit vectors of questions by their text, and the model that they are of."""

    model: str
    of: Mapping[str, NDArray[np.float32]]


@dataclass(frozen=True)
class Grounds:
    """What to check a gold set against.

    Parameters
    ----------
    corpus : Texts or None
        What is searched now.
    before : Texts or None
        What was searched when the gold set was made.
    baseline : GoldSet or None
        An earlier version of it, which held of what was searched then.
    log : Log or None
        What people ask. Nothing of it but counts is told.
    run : mapping of str to sequence of Passage, or None
        Case id to what was retrieved, best first; a case it does not know is missing.
    run_name : str
    k : int
        How many of the best of the run are looked at, from 1.
    demands : sequence of Demand
    effect : float
        Points below a threshold that are to be seen, where a gate does not say how much it minds.
    vectors : Vectors or None
        Of the questions of the gold set and of the log. None: by words alone.
    lines : Settings
        Where questions are near-duplicates or copies, as `misslink goldset generate` draws it.
    seed : int
        Of permutations.
    """

    corpus: Texts | None = None
    before: Texts | None = None
    baseline: GoldSet | None = None
    log: Log | None = None
    run: Mapping[str, tuple[Passage, ...]] | None = None
    run_name: str = "the run"
    k: int = 5
    demands: tuple[Demand, ...] = ()
    effect: float = 0.05
    vectors: Vectors | None = None
    lines: Settings = field(default_factory=Settings)
    seed: int = 0
