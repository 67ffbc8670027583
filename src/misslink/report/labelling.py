"""How many human labels are enough: what a calibration forecasts of the corrected share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from misslink.files.numbers import finite
from misslink.report.documents import count_in, mapping_in, number_in, rows_in
from misslink.report.wording import in_short, plural

__all__ = ["Labelling", "labelling"]


@dataclass(frozen=True)
class Labelling:
    """What more labels would give.

    ``says`` is how many labels the usual widths need; ``rows`` are how many labels, and how far
    the interval then goes to either side with the judge's verdicts and without.
    """

    says: str
    rows: tuple[tuple[str, str, str], ...]


def labelling(document: Mapping[str, JsonValue]) -> Labelling | None:
    """Read ``labels_needed`` of a calibration; None where it forecasts nothing.

    Parameters
    ----------
    document : mapping
        As ``misslink calibrate --json`` prints it; what does not fit reads as absent.
    """
    needed = mapping_in(document.get("labels_needed"))
    rows = tuple(_rows(needed, count_in(document, "n")))
    says = _says(mapping_in(needed.get("for_width")), count_in(needed, "verdicts"))
    return Labelling(says, rows) if rows or says else None


def _rows(needed: Mapping[str, JsonValue], today: int) -> Iterator[tuple[str, str, str]]:
    for row in rows_in(needed.get("curve")):
        labels = count_in(row, "labels")
        powered, alone = number_in(row, "width"), number_in(row, "labelled_only")
        if labels > 0 and powered is not None and alone is not None:
            now = " (now)" if labels == today else ""
            yield f"{labels:,}{now}", _half(powered), _half(alone)


def _says(for_width: Mapping[str, JsonValue], verdicts: int) -> str:
    """How many labels each width needs, and the width that no number of them gives."""
    enough: list[str] = []
    never: list[str] = []
    for name in for_width:
        width, labels = _width(name), count_in(for_width, name)
        if width is None:
            continue
        if labels > 0:
            enough.append(f"{_half(width)} need {plural(labels, 'label')}")
        elif for_width[name] is None:
            never.append(_half(width))
    said = [f"{', '.join(enough)}."] if enough else []
    if never:
        all_of = f"each of the {verdicts:,} verdicts" if verdicts else "every verdict"
        said.append(f"Not even a label on {all_of} gives {' or '.join(never)}.")
    return " ".join(said)


def _width(name: str) -> float | None:
    try:
        return finite(float(in_short(name, 20)))
    except ValueError:
        return None


def _half(width: float) -> str:
    """How far an interval of a share goes to either side of its middle."""
    return f"\u00b1{50 * width:.2g} points"
