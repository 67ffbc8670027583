"""Which cases a gate is about."""

from __future__ import annotations

from collections.abc import Iterator

from misslink.deciding.gates import Gate, NewFailures
from misslink.deciding.values import select
from misslink.errors import did_you_mean
from misslink.types import Case, Run

__all__ = ["fits", "none_fits", "selected", "where"]

_LISTED = 5  # names
_LONGEST = 80  # characters of one


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


def none_fits(asked: Gate | NewFailures, run: Run) -> str:
    """Why a gate fails whose cases the run does not have, with the nearest name it does have."""
    if not where(asked):
        return "the run has no cases"
    hint = next(filter(None, _nearest(asked, run)), "")
    return f"no question of the run has {where(asked)}" + (f"; {hint}" if hint else "")


def _nearest(asked: Gate | NewFailures, run: Run) -> Iterator[str]:
    """What may have been meant by each name that no case of the run has."""
    tags = sorted({name for case in run.cases for name in case.tags})
    for name, value in asked.tag.items():
        if name not in tags:
            yield _meant(name, tags, "its tags are")
            continue
        values = sorted({case.tags[name] for case in run.cases if name in case.tags})
        if value not in values:
            yield _meant(value, values, f"tag {name} is")
    for axis in ("tier", "category"):
        wanted = getattr(asked, axis)
        known = sorted({one for case in run.cases if (one := getattr(case, axis)) is not None})
        if wanted is not None and wanted not in known:
            yield _meant(wanted, known, f"{axis} is")


def _meant(name: str, known: list[str], has: str) -> str:
    listed = " or ".join(repr(one[:_LONGEST]) for one in known[:_LISTED])
    more = f" or one of {len(known) - _LISTED:,} more" if len(known) > _LISTED else ""
    hint = did_you_mean(name, known, written=lambda one: one[:_LONGEST])
    return hint or (f"{has} {listed}{more}" if known else "")
