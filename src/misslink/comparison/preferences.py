"""Read the stored result of `misslink judge pairwise`, to show beside a comparison."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from misslink.errors import InputError
from misslink.io.jsonl import read_text
from misslink.io.manifest import hash_content
from misslink.judge.checks.pairwise import PairOutcome, summarize_preferences
from misslink.types import Run

PreferredSide = Literal["a", "b", "tie"]
_SIDES: tuple[PreferredSide, ...] = ("a", "b", "tie")
_SWAPPED: dict[PreferredSide | None, PreferredSide | None]
_SWAPPED = {"a": "b", "b": "a", "tie": "tie", None: None}
_FORMAT_HINT = "give what  misslink judge pairwise A B --json  prints"


class _PreferenceCase(BaseModel):
    """How one case went."""

    model_config = ConfigDict(allow_inf_nan=False)

    winner: PreferredSide | None
    orders: tuple[PreferredSide | None, PreferredSide | None] | None = None
    probability: float | None = Field(default=None, ge=0, le=1)
    reason: str | None = None


class _ComparedAnswers(BaseModel):
    """Hashes of the questions and answers of each run."""

    a: str
    b: str


class _PreferenceDocument(BaseModel):
    """The fields read from the file; the rest is computed again over the compared cases."""

    a: str
    b: str
    judge: str
    answers: _ComparedAnswers
    per_case: dict[str, _PreferenceCase]


@dataclass(frozen=True)
class StoredPreferences:
    """A judge's preferences between two runs, which the hashes of their answers identify."""

    path: str
    a: str
    b: str
    answers: tuple[str, str]
    judge: str
    outcomes: tuple[PairOutcome, ...]

    @classmethod
    def read(cls, path: str | Path) -> StoredPreferences:
        """Read the JSON that ``misslink judge pairwise`` printed.

        Raises
        ------
        InputError
            It cannot be read, or is not such a document.
        """
        text = read_text(Path(path))
        try:
            document = _PreferenceDocument.model_validate(json.loads(text))
        except ValidationError as invalid:
            place = ".".join(map(str, invalid.errors()[0]["loc"][:2]))
            raise InputError(
                f"this file has no preferences: {_FORMAT_HINT}", path=path, field=place or None
            ) from None
        except (ValueError, RecursionError):
            raise InputError(f"this is not JSON: {_FORMAT_HINT}", path=path) from None
        outcomes = tuple(
            PairOutcome(name, outcome.winner, outcome.orders, outcome.probability, outcome.reason)
            for name, outcome in document.per_case.items()
        )
        answers = document.answers.a, document.answers.b
        return cls(str(path), document.a, document.b, answers, document.judge, outcomes)

    def between(self, a: str, b: str) -> StoredPreferences | None:
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
        turned = tuple(map(_swap_sides, self.outcomes))
        return StoredPreferences(self.path, self.b, self.a, (a, b), self.judge, turned)

    def document(self, run: Run, ids: Collection[str]) -> dict[str, object]:
        """Return who wins how often among the cases compared, in both orders and in each.

        Raises
        ------
        InputError
            The file has a case that `run` has not: the runs were evaluated again since.
        """
        case_ids = {case.id for case in run.cases}
        strange = [one.case_id for one in self.outcomes if one.case_id not in case_ids]
        if strange:
            raise InputError(
                f"the runs have no case {strange[0]!r} any more; run  misslink judge pairwise  again",
                path=self.path,
            )
        outcomes = [outcome for outcome in self.outcomes if outcome.case_id in ids]
        summary = summarize_preferences(outcomes)
        orders = [outcome.orders for outcome in outcomes if outcome.orders]
        return {
            "judge": self.judge,
            **summary,
            "not_asked": len(set(ids) - {outcome.case_id for outcome in outcomes}),
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
    return hash_content(
        {
            case.id: [
                case.judged_question,
                answers.get(case.id),
                *(message.model_dump() for message in case.history),
            ]
            for case in run.cases
        }
    )


def _swap_sides(outcome: PairOutcome) -> PairOutcome:
    """The same outcome with the runs in the other order."""
    return replace(
        outcome,
        winner=_SWAPPED[outcome.winner],
        orders=outcome.orders and (_SWAPPED[outcome.orders[1]], _SWAPPED[outcome.orders[0]]),
        probability=None if outcome.probability is None else 1 - outcome.probability,
    )
