"""The selftest in the Trust view: its verdict, three figures, and each kind, the weakest first."""

from __future__ import annotations

from dataclasses import dataclass

from misslink.document_model import NOT_COMPUTED
from misslink.documents import calibrations_of, manifest_of
from misslink.render.format import FormattedEstimate, format_estimate, pluralize, shorten
from misslink.render.selftest_sentences import (
    LIMITS,
    describe_selftest,
    is_weak,
    selftest_groups,
    selftest_notes,
)
from misslink.report.links import case_fragment, number_cases
from misslink.selftests.document import Selftest, SelftestKind, selftest_of
from misslink.types import Run

_MOST_CASES = 8  # of a kind that are linked
_LINKED_METRIC = "faithfulness"


@dataclass(frozen=True)
class SelftestRow:
    """A kind of mutants; ``rate`` found or flagged, ``cases`` (number, fragment) that went wrong."""

    label: str
    n: int
    rate: FormattedEstimate
    owner_right: FormattedEstimate | None
    distances: str
    weak: bool
    cases: tuple[tuple[int, str], ...]
    more: int


@dataclass(frozen=True)
class SelftestView:
    """All of the block; ``groups`` are owner, heading and rows, the last one harmless changes."""

    about: str
    verdict: str
    about_judge: str
    blind_spots: str
    about_owners: str
    facts: str
    figures: tuple[tuple[str, FormattedEstimate, str], ...]
    groups: tuple[tuple[str, str, tuple[SelftestRow, ...]], ...]
    notes: tuple[str, ...]
    limits: tuple[str, ...]


def read_selftest(run: Run) -> SelftestView | None:
    """Read the selftest of a run; None if there is none."""
    document = selftest_of(run)
    if document is None:
        return None
    verdict, numbers = describe_selftest(document), number_cases(run.cases)
    about = f"Selftest of the judge {shorten(document.judge, 60)}"
    if document.judge != manifest_of(run).judge:
        about += ", which is not the judge of this run"
    cases = pluralize(document.cases, "good case")
    return SelftestView(
        about=f"{about}.",
        verdict=verdict.judge,
        about_judge=verdict.about_judge,
        blind_spots=verdict.blind_spots,
        about_owners=verdict.about_owners,
        facts=(
            f"misslink planted known faults into {cases} of this app and made harmless changes to the "
            "same cases. Then judge and rules ran as usual. No human label was needed."
        ),
        figures=tuple(_figures(document)),
        groups=tuple(
            (owner, heading, tuple(_row(label, kind, numbers) for label, kind in kinds))
            for owner, heading, kinds in selftest_groups(document)
        ),
        notes=tuple(selftest_notes(document)),
        limits=(*_natural_faults(run), *LIMITS),
    )


def _figures(document: Selftest) -> list[tuple[str, FormattedEstimate, str]]:
    rates = (
        ("Faults found", document.found, "planted"),
        ("Owner right, of the faults found", document.owner_right, "found"),
        ("False alarms on harmless changes", document.false_alarm, "changed"),
    )
    return [
        (name, format_estimate("share", rate), f"{round((rate.value or 0) * rate.n):,} of {rate.n:,} {noun}")
        for name, rate, noun in rates
    ]  # fmt: skip


def _row(label: str, kind: SelftestKind, numbers: dict[str, int]) -> SelftestRow:
    rate = kind.found or kind.false_alarm
    known = sorted(numbers[case_id] for case_id in kind.cases if case_id in numbers)
    distances = ((name, getattr(kind, name)) for name in ("near", "far"))
    return SelftestRow(
        label=label,
        n=kind.n,
        rate=format_estimate("share", rate or NOT_COMPUTED),
        owner_right=format_estimate("share", kind.owner_right) if kind.owner_right else None,
        distances=", ".join(
            f"{name} {format_estimate('share', share).value}"
            for name, share in distances
            if share is not None and share.value is not None
        ),
        weak=is_weak(kind),
        cases=tuple((number, case_fragment(number)) for number in known[:_MOST_CASES]),
        more=max(0, len(kind.cases) - _MOST_CASES),
    )


def _natural_faults(run: Run) -> tuple[str, ...]:
    """What the judge finds of natural faults, where people labelled them."""
    calibration = calibrations_of(run).get(_LINKED_METRIC)
    found = calibration.agreement.get("specificity") if calibration else None
    if found is None or found.value is None:
        return ()
    shown = format_estimate("share", found)
    return (
        f"Of the answers that people call unfaithful, the judge of this run finds {shown.text}.",
    )
