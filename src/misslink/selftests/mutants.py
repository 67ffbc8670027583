"""Draw the mutants of good cases: at most so many of each kind, near and far ones in turn."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from misslink.selftests.faults import FAULTS, Draw, MutantKind
from misslink.selftests.good_cases import GoodCase
from misslink.selftests.harmless import HARMLESS
from misslink.types import Case, Trace

HARMLESS_SHARE = 3  # of a kind of harmless changes there are a third as many
_MOST_OTHERS = 200  # cases that a mutation draws from
Distance = Literal["near", "far"]


@dataclass(frozen=True)
class Mutant:
    """A changed case: its ``origin``, its kind, and how far from the truth the change is."""

    kind: MutantKind
    origin: str
    case: Case
    trace: Trace
    distance: Distance | None


@dataclass(frozen=True)
class MutantSet:
    """All mutants, and by kind how many cases were tried and have no place for it."""

    mutants: tuple[Mutant, ...]
    without_place: Mapping[str, int]


def plant(
    cases: Sequence[GoodCase],
    *,
    n: int,
    seed: int = 0,
    kinds: Iterable[str] = (*FAULTS, *HARMLESS),
) -> MutantSet:
    """Return at most `n` mutants of each kind of fault, and a third as many of the harmless ones."""
    known = FAULTS | HARMLESS
    mutants: list[Mutant] = []
    without: dict[str, int] = {}
    for name in kinds:
        kind = known[name]
        most = n if kind.owner else max(1, n // HARMLESS_SHARE)
        tried = 0
        found: list[Mutant] = []
        for mutant in _draw_kind(cases, kind, seed):
            tried += mutant is None
            if mutant is not None:
                found.append(mutant)
            if len(found) == most:
                break
        mutants += found
        without[name] = tried
    return MutantSet(tuple(mutants), without)


def _draw_kind(cases: Sequence[GoodCase], kind: MutantKind, seed: int) -> Iterator[Mutant | None]:
    """The mutants of a kind in random order of the cases; None for a case without a place."""
    order = sorted(cases, key=lambda good: good.case.id)
    random.Random(f"{seed} {kind.name}").shuffle(order)  # noqa: S311 (no secret)
    near = True
    for good in order:
        rng = random.Random(f"{seed} {kind.name} {good.case.id}")  # noqa: S311
        drawn = rng.sample(order, min(len(order), _MOST_OTHERS + 1))
        others = [other for other in drawn if other is not good]
        for is_near in (near, not near) if kind.graded else (near,):
            change = kind.mutate(good, Draw(others, is_near, rng))
            if change is not None:
                break
        else:
            yield None
            continue
        distance: Distance | None = ("near" if is_near else "far") if kind.graded else None
        near = not is_near
        id_ = f"{good.case.id}~{kind.name}"
        yield Mutant(
            kind,
            good.case.id,
            change.case.model_copy(update={"id": id_, "group": good.case.group or good.case.id}),
            change.trace.model_copy(update={"case_id": id_}),
            distance,
        )
