"""What ``misslink judge prefer A B --json`` found, beside a comparison of the same two runs."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from misslink.answer.preference import Outcome, preference
from misslink.errors import InputError
from misslink.files.jsonl import read_text
from misslink.manifest import content_hash
from misslink.types import Run

__all__ = ["Preferences", "answers_hash"]

Side = Literal["a", "b", "tie"]
_SIDES: tuple[Side, ...] = ("a", "b", "tie")
_SWAPPED: dict[Side | None, Side | None] = {"a": "b", "b": "a", "tie": "tie", None: None}
_WAY_OUT = "give what  misslink judge prefer A B --json  prints"


class _Case(BaseModel):
    """How one case went."""

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)

    winner: Side | None
    orders: tuple[Side | None, Side | None] | None = None
    probability: float | None = Field(default=None, ge=0, le=1)
    reason: str | None = None


class _Answers(BaseModel):
    """What was asked and answered in each run, hashed."""

    model_config = ConfigDict(extra="ignore")

    a: str
    b: str


class _Document(BaseModel):
    """What is read of the file; the rest is computed anew over the cases compared."""

    model_config = ConfigDict(extra="ignore")

    a: str
    b: str
    judge: str
    answers: _Answers
    per_case: dict[str, _Case]


@dataclass(frozen=True)
class Preferences:
    """A judge's preferences between the answers of two runs.

    Parameters
    ----------
    path : str
        The file they were read from.
    a, b : str
        What the runs were called, for messages alone.
    answers : pair of str
        The `answers_hash` of each, by which they are known: folders are moved and named anew.
    judge : str
    outcomes : tuple of Outcome
    """

    path: str
    a: str
    b: str
    answers: tuple[str, str]
    judge: str
    outcomes: tuple[Outcome, ...]

    @classmethod
    def read(cls, path: str | Path) -> Preferences:
        """Read the JSON that ``misslink judge prefer`` printed.

        Raises
        ------
        InputError
            It cannot be read, or is not such a document.
        """
        text = read_text(Path(path))
        try:
            document = _Document.model_validate(json.loads(text))
        except ValidationError as invalid:
            place = ".".join(map(str, invalid.errors()[0]["loc"][:2]))
            raise InputError(
                f"this holds no preferences: {_WAY_OUT}", path=path, field=place or None
            ) from None
        except (ValueError, RecursionError):
            raise InputError(f"this is not JSON: {_WAY_OUT}", path=path) from None
        outcomes = tuple(
            Outcome(name, one.winner, one.orders, one.probability, one.reason)
            for name, one in document.per_case.items()
        )
        answers = document.answers.a, document.answers.b
        return cls(str(path), document.a, document.b, answers, document.judge, outcomes)

    def between(self, a: str, b: str) -> Preferences | None:
        """Return them as of the runs with these answers, in this order; None if of others.

        Parameters
        ----------
        a, b : str
            The `answers_hash` of each run.
        """
        if self.answers == (a, b):
            return self
        if self.answers != (b, a):
            return None
        turned = tuple(map(_swap, self.outcomes))
        return Preferences(self.path, self.b, self.a, (a, b), self.judge, turned)

    def document(self, run: Run, ids: Collection[str]) -> dict[str, Any]:
        """Return who wins how often among the cases compared, in both orders and in each.

        Raises
        ------
        InputError
            The file has a case that `run` has not: the runs were evaluated again since.
        """
        known = {case.id for case in run.cases}
        if strange := [one.case_id for one in self.outcomes if one.case_id not in known]:
            raise InputError(
                f"this has a case {strange[0]!r} that the runs have not; ask  misslink judge "
                "prefer  again",
                path=self.path,
            )
        outcomes = [one for one in self.outcomes if one.case_id in ids]
        found = preference(outcomes)
        orders = [one.orders for one in outcomes if one.orders]
        return {
            "judge": self.judge,
            **found,
            "not_asked": len(set(ids) - {one.case_id for one in outcomes}),
            "by_order": {
                name: {side: sum(order[place] == side for order in orders) for side in _SIDES}
                for place, name in enumerate(("a_first", "b_first"))
            },
        }


def answers_hash(run: Run) -> str:
    """SHA-256 of a run's questions and answers, which is all that a preference is about.

    A run that is moved, judged again or calibrated keeps it; one of other answers has another.
    """
    answers = {trace.case_id: trace.answer for trace in run.traces}
    asked = {case.id: case.question for case in run.cases}
    return content_hash({name: [asked[name], answers.get(name)] for name in asked})


def _swap(one: Outcome) -> Outcome:
    """The same outcome with the runs in the other order."""
    orders = one.orders and (_SWAPPED[one.orders[1]], _SWAPPED[one.orders[0]])
    probability = None if one.probability is None else 1 - one.probability
    return Outcome(one.case_id, _SWAPPED[one.winner], orders, probability, one.reason)
