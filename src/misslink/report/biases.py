"""What should not matter to the judge and does: the calibration's bias audit as rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from pydantic import JsonValue

from misslink.report.documents import count_in, estimate_in, mapping_in, number_in, text_in
from misslink.report.wording import Shown, in_short, p_value, plural, shown, shown_decimal

__all__ = ["Bias", "Matched", "biases"]


@dataclass(frozen=True)
class Matched:
    """Pairs of answers to one question with the same human label: which the judge prefers.

    Parameters
    ----------
    which : str
        The one that is asked about, such as 'longer'; "" for the kind that the row is of.
    preferred : Shown
        Share of pairs in which that one is scored better.
    says : str
        How many pairs there are, and how surely it is no chance.
    beyond_chance : bool
        Whether that holds over all that was looked at.
    """

    which: str
    preferred: Shown
    says: str
    beyond_chance: bool


@dataclass(frozen=True)
class Bias:
    """What should not matter to the judge, and what it does to its errors.

    Parameters
    ----------
    of : str
        Such as 'length' or 'category: law'.
    unit : str
        What the numbers are per; "" where the calibration does not say.
    errors : Shown
        Log-odds of an error.
    pull : Shown or None
        Log-odds of the call good, people's label held constant: above 0 the judge is too kind.
        None: an older calibration without it.
    finding : str
        What can be told beyond chance.
    matched : Matched or None
        The same among answers to one question; None where there are none to match.
    """

    of: str
    unit: str
    errors: Shown
    pull: Shown | None
    finding: str
    matched: Matched | None


def biases(document: Mapping[str, JsonValue]) -> tuple[Bias, ...]:
    """Read ``bias`` of a calibration, what has a finding first; none where it has none.

    Parameters
    ----------
    document : mapping
        As ``misslink calibrate --json`` prints it; what does not fit reads as absent.
    """
    return tuple(_biases(mapping_in(document.get("bias"))))


def _biases(found: Mapping[str, JsonValue]) -> Iterator[Bias]:
    rows = [(name, mapping_in(row)) for name, row in found.items()]
    for name, row in sorted(rows, key=lambda named: not _told(named[1])):
        errors = _log_odds(row, "coefficient")
        finding = text_in(row, "finding")
        if "finding" in row and not finding and errors.measured:
            finding = "no error that goes with it beyond chance"
        yield Bias(
            of=in_short(name.replace("_", " "), 60),
            unit=in_short(text_in(row, "unit"), 60),
            errors=errors,
            pull=_log_odds(row, "pull") if "pull" in row else None,
            finding=finding,
            matched=_matched(mapping_in(row.get("matched"))),
        )


def _told(row: Mapping[str, JsonValue]) -> bool:
    return bool(text_in(row, "finding") or text_in(mapping_in(row.get("matched")), "finding"))


def _matched(found: Mapping[str, JsonValue]) -> Matched | None:
    """The comparison within questions; one that nothing could be matched for is passed over."""
    key = next((name for name in found if name.endswith("preferred")), "")
    preferred = shown("share", estimate_in(found, key)) if key else None
    if preferred is None or not preferred.measured:
        return None
    pairs, questions = count_in(found, "pairs"), count_in(found, "questions")
    said = plural(pairs, "pair") + (f" of {plural(questions, 'question')}" if questions else "")
    p = p_value(number_in(found, "p"))
    which = in_short(key.removesuffix("preferred").replace("_", " ").strip(), 60)
    beyond_chance = bool(text_in(found, "finding"))
    return Matched(which, preferred, f"{said}, {p}" if p else said, beyond_chance)


def _log_odds(row: Mapping[str, JsonValue], name: str) -> Shown:
    """A coefficient, which no axis from 0 to 1 can show."""
    return replace(shown_decimal(name, estimate_in(row, name)), bar=None)
