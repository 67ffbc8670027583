"""Which cases a gate is about."""

from __future__ import annotations

from misslink.deciding.gates import Gate, NewFailures
from misslink.deciding.values import select
from misslink.types import Case, Run

__all__ = ["fits", "none_fits", "selected", "where"]


def selected(run: Run, asked: Gate | NewFailures) -> Run:
    """The run as if it held only the cases that are asked for."""
    if not where(asked):
        return run
    return select(run, {case.id for case in run.cases if fits(case, asked)})


def fits(case: Case, asked: Gate | NewFailures) -> bool:
    """Whether a case is among those that are asked for."""
    return (
        all(case.tags.get(name) == value for name, value in asked.tag.items())
        and asked.tier in {None, case.tier}
        and asked.category in {None, case.category}
    )


def where(asked: Gate | NewFailures) -> str:
    """In words, which cases are asked for; "" where all are."""
    said = {f"tag {name}": value for name, value in asked.tag.items()}
    said |= {} if asked.tier is None else {"tier": asked.tier}
    said |= {} if asked.category is None else {"category": asked.category}
    return " and ".join(f"{name} '{value}'" for name, value in said.items())


def none_fits(asked: Gate | NewFailures) -> str:
    """Why a gate fails whose cases the run does not have."""
    return f"no question of the run has {where(asked)}" if where(asked) else "the run has no cases"
