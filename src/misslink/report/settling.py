"""What people do not agree on: the cases, who said what, and how it is settled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from misslink.report import places
from misslink.report.documents import count_in, mapping_in, number_in, rows_in, text_in
from misslink.report.wording import decimal, in_short, plural
from misslink.types import Run

__all__ = ["SETTLE", "Dispute", "Settling", "label_word", "settling"]

SETTLE = "misslink annotate RUN --adjudicate"
_SHOWN = 20  # disputes on the page; the calibration holds them all
_NAME = 60  # characters of a person's name
_QUESTION = 160
_HALF = 0.5  # a label from here on is good


@dataclass(frozen=True)
class Dispute:
    """One item on which people disagree.

    Parameters
    ----------
    number : int or None
        Of its case, the place in the gold set from 1; None where the run does not hold it.
    case_id, question : str
    fragment : str
        Where it is on the page; "" where it is not.
    claim : str
        Such as 'claim 2'; "" where the whole case was labelled.
    said : tuple of (str, str)
        Each person's name and label.
    tied : bool
        Whether no majority decides it.
    """

    number: int | None
    case_id: str
    question: str
    fragment: str
    claim: str
    said: tuple[tuple[str, str], ...]
    tied: bool


@dataclass(frozen=True)
class Settling:
    """The queue of one metric, ties first: what is shown, and how many more there are."""

    says: str
    disputes: tuple[Dispute, ...]
    more: int


def settling(run: Run, document: Mapping[str, JsonValue]) -> Settling | None:
    """Read the queue of a calibration; None where people agree, or one person labelled.

    Parameters
    ----------
    run : Run
    document : mapping
        As ``misslink calibrate --json`` prints it; what does not fit reads as absent.
    """
    found = sorted(_disputes(run, document), key=lambda one: not one.tied)
    if not found:
        return None
    tied = sum(one.tied for one in found)
    said = f"People disagree on {plural(len(found), 'item')}"
    if tied == len(found):
        said += ", and no majority decides " + ("it" if tied == 1 else "any")
    elif tied:
        said += f"; of {tied:,} no majority decides"
    else:
        said += ", and a majority decides each"
    said += "; what is tied counts as neither good nor bad." if tied else "."
    said += f" To settle them: `{SETTLE}`, then `misslink calibrate RUN` again."
    return Settling(said, tuple(found[:_SHOWN]), max(len(found) - _SHOWN, 0))


def label_word(value: float) -> str:
    """A label as a word, one between bad and good with its number.

    Examples
    --------
    >>> label_word(1.0), label_word(0.0), label_word(0.7)
    ('good', 'bad', 'good (0.70)')
    """
    word = "good" if value >= _HALF else "bad"
    return word if value in (0.0, 1.0) else f"{word} ({decimal(value)})"


def _disputes(run: Run, document: Mapping[str, JsonValue]) -> Iterator[Dispute]:
    numbers = places.case_numbers(run.cases)
    for row in rows_in(mapping_in(document.get("human")).get("queue")):
        case_id = text_in(row, "case_id")
        said = tuple(_said(mapping_in(row.get("labels"))))
        if not case_id or not said:
            continue
        number = numbers.get(case_id)
        place = None if number_in(row, "claim") is None else count_in(row, "claim") + 1
        yield Dispute(
            number=number,
            case_id=case_id,
            question="" if number is None else _question(run, number),
            fragment="" if number is None else _at(number, place),
            claim="" if place is None else f"claim {place}",
            said=said,
            tied=row.get("settled") is not True,
        )


def _said(labels: Mapping[str, JsonValue]) -> Iterator[tuple[str, str]]:
    for name in labels:
        value = number_in(labels, name)
        if value is not None:
            yield in_short(name, _NAME), label_word(value)


def _question(run: Run, number: int) -> str:
    return in_short(run.cases[number - 1].question, _QUESTION)


def _at(number: int, claim: int | None) -> str:
    """A claim's number on the page counts from 1."""
    return places.case(number) if claim is None else f"{places.case(number)}&claim={claim}"
