"""The plan by which cases were drawn to be labelled, and the weights that follow from it."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from misslink.errors import InputError
from misslink.files.reading import read_json
from misslink.files.whole import put

__all__ = ["PLAN", "Plan", "Planned", "Stratum", "read_plan", "write_plan"]

PLAN = "plan.json"
_WAY_OUT = "delete it, and run  misslink annotate  again: the labels stay"


@dataclass(frozen=True)
class Stratum:
    """Cases among which those to label are drawn at random.

    Parameters
    ----------
    name : str
        What its cases have in common, for people.
    level : int
        Its place on the judge's scale, from 0; strata of one level differ by category.
    size : int
        How many cases it has.
    rate : float
        How often it is drawn from, as a multiple of what its size alone would earn it.
    """

    name: str
    level: int
    size: int
    rate: float = 1.0


@dataclass(frozen=True)
class Planned:
    """A case in the order of labelling.

    Parameters
    ----------
    case_id : str
    stratum : int
        Its place among the strata, from 0.
    metrics : tuple of str
        What is asked of it.
    """

    case_id: str
    stratum: int
    metrics: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """An order of cases, of which any beginning is a stratified random sample.

    Parameters
    ----------
    cases : tuple of Planned
        In the order in which they are labelled. Within a stratum that is a random order.
    strata : tuple of Stratum
        By level, then by category.
    seed : int
    random_share : float
        In [0, 1]: the share of labels that goes to the strata by their size alone.
    by : str or None
        The metric whose score the strata go by. None: there was none.
    threshold : float or None
        The judge's own cut of that score.
    """

    cases: tuple[Planned, ...]
    strata: tuple[Stratum, ...]
    seed: int
    random_share: float
    by: str | None = None
    threshold: float | None = None

    def weights(self, metric: str, labelled: Collection[str]) -> dict[str, float]:
        """One over the chance with which each labelled case was drawn.

        Parameters
        ----------
        metric : str
        labelled : collection of str
            Ids of the cases that have a label of it; others than the planned do not count.

        Returns
        -------
        dict of str to float
            By case, those without a label of it included: cases of the stratum over labelled ones
            among them. A stratum without any counts with the nearest that has one. The weights of
            the labelled cases add up to the number of cases, and are {} where nothing is labelled.
        """
        asked = [case for case in self.cases if metric in case.metrics]
        sizes, found = [0] * len(self.strata), [0] * len(self.strata)
        for case in asked:
            sizes[case.stratum] += 1
            found[case.stratum] += case.case_id in labelled
        reached = [place for place, n in enumerate(found) if n]
        if not reached:
            return {}
        home = {place: self._nearest(place, reached) for place in range(len(self.strata))}
        merged = dict.fromkeys(reached, 0)
        for place, size in enumerate(sizes):
            merged[home[place]] += size
        return {
            case.case_id: merged[home[case.stratum]] / found[home[case.stratum]] for case in asked
        }

    def _nearest(self, place: int, reached: Collection[int]) -> int:
        def far(other: int) -> tuple[int, int]:
            levels = abs(self.strata[other].level - self.strata[place].level)
            return levels, abs(other - place)

        return min(reached, key=far)


def read_plan(folder: Path) -> Plan | None:
    """Read the plan of a folder of labels; None where there is none.

    Raises
    ------
    InputError
        It is damaged.
    """
    path = folder / PLAN
    if not path.exists():
        return None
    data = read_json(path)
    try:
        plan: Plan = TypeAdapter(Plan).validate_python(
            {name: data[name] for name in Plan.__dataclass_fields__ if name in data}
        )
    except ValidationError as invalid:
        error = invalid.errors()[0]
        field = ".".join(map(str, error["loc"]))
        raise InputError(f"{error['msg']}; {_WAY_OUT}", path=path, field=field) from None
    if any(not 0 <= case.stratum < len(plan.strata) for case in plan.cases):
        raise InputError(f"a case is of a stratum that there is not; {_WAY_OUT}", path=path)
    return plan


def write_plan(folder: Path, plan: Plan) -> Path:
    """Write the plan into a folder of labels, whole or not at all."""
    lines = asdict(plan)
    document: Mapping[str, Any] = {
        **{name: lines[name] for name in lines if name not in {"cases", "strata"}},
        "strata": lines["strata"],
        "cases": lines["cases"],
    }
    text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)
    return put(text + "\n", folder / PLAN)
