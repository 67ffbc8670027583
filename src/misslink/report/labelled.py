"""What people called each case, beside what the judge called it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from misslink.report.documents import count_in, mapping_in, number_in, rows_in, text_in
from misslink.report.settling import label_word
from misslink.report.wording import in_short
from misslink.types import Run, Verdict

__all__ = ["Labelled", "labelled"]

_NAME = 60
_HALF = 0.5


@dataclass(frozen=True)
class Labelled:
    """People's word on one metric of one case.

    Parameters
    ----------
    word : str
        Such as 'good' or 'bad (0.33)', the mean of their labels; "" where it is not settled.
    share : float or None
        The mean label, in [0, 1].
    stands : {'agree', 'disagree', 'tied', ''}
        How the judge's call stands to theirs; 'tied': they are not of one mind; "": the judge
        made no call.
    said : tuple of str
        Who said what, where they differ.
    """

    word: str
    share: float | None
    stands: str
    said: tuple[str, ...]


def labelled(run: Run) -> dict[str, dict[str, Labelled]]:
    """Read what people said of the cases of `run`, by case and metric; {} where nobody labelled.

    Parameters
    ----------
    run : Run
        Its calibrations hold the settled labels under ``labelled`` (case to mean label), and under
        ``human.queue`` who said what where people differ. The judge's call is that at the
        calibration's threshold, as in its table of people against the judge.
    """
    from misslink.calibration.kept import documents  # brings numpy

    found: dict[str, dict[str, Labelled]] = {}
    for metric, document in documents(run).items():
        cut = number_in(document, "threshold")
        calls = {v.case_id: _call(v, cut) for v in run.verdicts if v.metric == metric}
        shares = mapping_in(document.get("labelled"))
        rows: dict[str, list[Mapping[str, JsonValue]]] = {}
        for row in rows_in(mapping_in(document.get("human")).get("queue")):
            rows.setdefault(text_in(row, "case_id"), []).append(row)
        for case_id in dict.fromkeys((*shares, *rows)):
            share = number_in(shares, case_id)
            one = _labelled(share, calls.get(case_id), rows.get(case_id, ()))
            if one is not None:
                found.setdefault(case_id, {})[metric] = one
    return found


def _labelled(
    share: float | None, call: bool | None, rows: Iterable[Mapping[str, JsonValue]]
) -> Labelled | None:
    rows = tuple(rows)
    said = tuple(line for line in map(_line, rows) if line)
    if share is not None and 0 <= share <= 1:
        stands = "" if call is None else "agree" if call == (share >= _HALF) else "disagree"
        return Labelled(label_word(share), share, stands, said)
    tied = any(row.get("settled") is not True for row in rows)
    return Labelled("", None, "tied" if tied else "", said) if said else None


def _call(verdict: Verdict, cut: float | None) -> bool | None:
    """What the judge called a case at a calibration's threshold, else by its own label."""
    score = verdict.value if verdict.probability is None else verdict.probability
    if verdict.status != "scored" or score is None or cut is None:
        return verdict.label
    return score >= cut


def _line(row: Mapping[str, JsonValue]) -> str:
    labels = mapping_in(row.get("labels"))
    names = ((name, number_in(labels, name)) for name in labels)
    said = [f"{in_short(name, _NAME)}: {label_word(v)}" for name, v in names if v is not None]
    if not said:
        return ""
    place = "" if number_in(row, "claim") is None else f"claim {count_in(row, 'claim') + 1}, "
    return f"{place}{'; '.join(said)}"
