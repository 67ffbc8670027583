"""Human labels in the report: agreement with the judge, disputes, and how many labels are needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from misslink.calibration_document import CalibrationDocument, DisputedLabel
from misslink.documents import calibrations_of
from misslink.io.numbers import parse_decimal
from misslink.render.format import format_decimal, pluralize, shorten
from misslink.report.links import case_fragment, number_cases
from misslink.types import Run, Scored

ADJUDICATE_COMMAND = "misslink annotate RUN --adjudicate"
_MAX_DISPUTES = 20  # on the page; the calibration holds all of them
_NAME_LENGTH = 60
_QUESTION_LENGTH = 160
_GOOD_FROM = 0.5  # the least mean label that counts as good


@dataclass(frozen=True)
class Dispute:
    """An item that annotators label differently; ``number`` of its case, None where it has none."""

    number: int | None
    case_id: str
    question: str
    fragment: str
    claim: str
    labels: tuple[tuple[str, str], ...]
    tied: bool


@dataclass(frozen=True)
class Disputes:
    """The first disputes, how many ``more`` there are, and the sentence on all of them."""

    says: str
    disputes: tuple[Dispute, ...]
    more: int


def read_disputes(run: Run, calibration: CalibrationDocument) -> Disputes | None:
    """Read the disputes of a calibration; None if annotators agree."""
    disputes = sorted(_disputes(run, calibration), key=lambda dispute: not dispute.tied)
    if not disputes:
        return None
    tied = sum(dispute.tied for dispute in disputes)
    text = f"Annotators disagree on {pluralize(len(disputes), 'item')}"
    if tied == len(disputes):
        text += ", and no majority decides " + ("it" if tied == 1 else "any")
    elif tied:
        text += f"; of {tied:,} no majority decides"
    else:
        text += ", and a majority decides each"
    text += "; what is tied counts as neither good nor bad." if tied else "."
    text += f" To settle them: `{ADJUDICATE_COMMAND}`, then `misslink calibrate RUN` again."
    more = max(len(disputes) - _MAX_DISPUTES, 0)
    return Disputes(says=text, disputes=tuple(disputes[:_MAX_DISPUTES]), more=more)


def describe_label(value: float) -> str:
    """Write a label as a word, one between bad and good with its number.

    Examples
    --------
    >>> describe_label(1.0), describe_label(0.0), describe_label(0.7)
    ('good', 'bad', 'good (0.70)')
    """
    word = "good" if value >= _GOOD_FROM else "bad"
    return word if value in (0.0, 1.0) else f"{word} ({format_decimal(value)})"


def _disputes(run: Run, calibration: CalibrationDocument) -> Iterator[Dispute]:
    numbers = number_cases(run.cases)
    for row in calibration.human.queue:
        number = numbers.get(row.case_id)
        claim = _claim_number(row)
        fragment = question = ""
        if number is not None:
            fragment = case_fragment(number) + ("" if claim is None else f"&claim={claim}")
            question = shorten(run.cases[number - 1].question, _QUESTION_LENGTH)
        yield Dispute(
            number=number,
            case_id=row.case_id,
            question=question,
            fragment=fragment,
            claim="" if claim is None else f"claim {claim}",
            labels=_annotator_labels(row),
            tied=not row.settled,
        )


def _annotator_labels(row: DisputedLabel) -> tuple[tuple[str, str], ...]:
    return tuple(
        (shorten(name, _NAME_LENGTH), describe_label(value)) for name, value in row.labels.items()
    )


def _claim_number(row: DisputedLabel) -> int | None:
    """The number of a labelled claim on the page, from 1."""
    return None if row.claim is None else row.claim + 1


@dataclass(frozen=True)
class HumanLabel:
    """The annotators' label of one case for one metric.

    Parameters
    ----------
    word : str
        Such as 'good' or 'bad (0.33)', the mean of their labels; "" if it is not settled.
    share : float or None
        The mean label, in [0, 1].
    stands : {'agree', 'disagree', 'tied', ''}
        Whether the judge's label agrees; 'tied': no majority; "": the judge gave no label.
    said : tuple of str
        Each annotator's label, if they differ.
    """

    word: str
    share: float | None
    stands: str
    said: tuple[str, ...]


def read_human_labels(run: Run) -> dict[str, dict[str, HumanLabel]]:
    """Read the human labels of the cases of `run`, by case and metric.

    Its calibrations hold the settled labels under ``labelled`` (case to mean label) and the disputes
    under ``human.queue``. The judge's label is the one at the calibration's threshold.
    """
    labels: dict[str, dict[str, HumanLabel]] = {}
    for metric, calibration in calibrations_of(run).items():
        calls = {
            verdict.case_id: _judge_call(verdict, calibration.threshold)
            for verdict in run.scores
            if verdict.metric == metric
        }
        shares = calibration.labelled
        disputes: dict[str, list[DisputedLabel]] = {}
        for row in calibration.human.queue:
            disputes.setdefault(row.case_id, []).append(row)
        for case_id in dict.fromkeys((*shares, *disputes)):
            label = _human_label(shares.get(case_id), calls.get(case_id), disputes.get(case_id, ()))
            if label is not None:
                labels.setdefault(case_id, {})[metric] = label
    return labels


def _human_label(
    share: float | None, call: bool | None, disputes: Sequence[DisputedLabel]
) -> HumanLabel | None:
    lines = tuple(line for line in map(_dispute_line, disputes) if line)
    if share is not None and 0 <= share <= 1:
        agreement = "" if call is None else "agree" if call == (share >= _GOOD_FROM) else "disagree"
        return HumanLabel(describe_label(share), share, agreement, lines)
    tied = any(not row.settled for row in disputes)
    return HumanLabel("", None, "tied" if tied else "", lines) if lines else None


def _judge_call(verdict: Scored, threshold: float | None) -> bool | None:
    """The judge's label at a calibration's threshold, else its own."""
    score = verdict.value if verdict.probability is None else verdict.probability
    if verdict.status != "scored" or score is None or threshold is None:
        return verdict.label
    return score >= threshold


def _dispute_line(row: DisputedLabel) -> str:
    labels = "; ".join(f"{name}: {label}" for name, label in _annotator_labels(row))
    claim = _claim_number(row)
    return labels if claim is None or not labels else f"claim {claim}, {labels}"


def forecast_labels(
    calibration: CalibrationDocument,
) -> tuple[str, list[tuple[str, str, str]]]:
    """Say how many labels the usual interval widths need, and how wide it is with so many labels.

    A row has a number of labels, and the half width of the interval with the judge's verdicts and
    without them.
    """
    needed = calibration.labels_needed
    rows = [
        (
            f"{row.labels:,}{' (now)' if row.labels == calibration.n else ''}",
            _half_width(row.width),
            _half_width(row.labelled_only),
        )
        for row in needed.curve
        if row.labels > 0
    ]
    widths = [(parse_decimal(width), labels) for width, labels in needed.for_width.items()]
    enough = [
        f"{_half_width(width)} need {_more_labels(labels - calibration.n)}"
        for width, labels in widths
        if width is not None and labels
    ]
    never = [_half_width(width) for width, labels in widths if width is not None and labels is None]
    sentences = [f"{', '.join(enough)}; so many are enough in 8 of 10 cases."] if enough else []
    if never:
        verdicts = needed.verdicts
        labelled = f"each of the {verdicts:,} verdicts" if verdicts else "every verdict"
        sentences.append(f"Not even a label on {labelled} gives {' or '.join(never)}.")
    return " ".join(sentences), rows


def _more_labels(more: int) -> str:
    return (
        f"about {more:,} more {'label' if more == 1 else 'labels'}"
        if more > 0
        else "no more labels"
    )


def _half_width(width: float) -> str:
    return f"\u00b1{50 * width:.2g} points"
