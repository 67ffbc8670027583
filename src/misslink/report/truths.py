"""What people would find: the judge's shares of good cases, and the same without its errors."""

from __future__ import annotations

from dataclasses import dataclass

from misslink.report.wording import Shown, plural, shown
from misslink.types import Estimate, Run

__all__ = ["Truth", "truths"]

# What the share is of; that of another metric is named by it.
_OF = {"faithful": "faithful answers", "correct": "correct answers"}


@dataclass(frozen=True)
class Truth:
    """One share in two versions: as the judge calls cases, and as people would.

    Parameters
    ----------
    name, metric : str
        Of the share, such as 'faithful', and of the metric whose labels correct it.
    of : str
        What it is a share of, in plain words.
    judged, corrected : Shown
    labels : int
        How many human labels the correction rests on.
    how : str
        One sentence: by which method, and whose answers were labelled.
    hint : str
        Where the judge's share lies outside of the corrected interval, what that says; else "".
    """

    name: str
    metric: str
    of: str
    judged: Shown
    corrected: Shown
    labels: int
    how: str
    hint: str

    def beside(self, number: Shown) -> str:
        """What people would find, as a sentence to stand beside the number as judged.

        Where that number is another one (of another name, or at another threshold) the judge's
        share stands in the sentence as well.
        """
        same = (number.name, number.brief) == (self.name, self.judged.brief)
        of = "" if number.name == self.name else f"{self.of[:1].upper()}{self.of[1:]}: "
        at = "" if of else ", at the calibration's threshold,"
        judged = "" if same else f"by the judge{at} {self.judged.brief}; "
        if self.corrected.measured:
            found = f"people would find {self.corrected.brief}, by {plural(self.labels, 'label')}."
        else:
            found = f"what people would find is {self.corrected.brief}."
        said = f"{judged}{found}"
        return f"{of}{said}" if of else f"{said[:1].upper()}{said[1:]}"


def truths(run: Run) -> dict[str, Truth]:
    """Every share that human labels correct, by its name; none where nobody labelled.

    Parameters
    ----------
    run : Run
        Labels of its own verdicts are used together with all of them; a calibration brought from
        another run gives the judge's error rates alone.
    """
    from misslink.calibration.kept import corrected  # brings numpy

    return {
        name: Truth(
            name=name,
            metric=one.metric,
            of=_OF.get(name, f"cases that are good by {one.metric}"),
            judged=shown("share", one.raw),
            corrected=shown("share", one.estimate),
            labels=one.labels,
            how=one.note,
            hint=_hint(one.raw, one.estimate),
        )
        for name, one in corrected(run).items()
    }


def _hint(judged: Estimate, corrected: Estimate) -> str:
    """What a judge's share says that no truth within the interval would give."""
    if judged.value is None or corrected.low is None or corrected.high is None:
        return ""
    said = shown("share", judged).value
    if judged.value > corrected.high:
        return f"The judge's {said} lies above this interval: it is too kind."
    if judged.value < corrected.low:
        return f"The judge's {said} lies below this interval: it is too strict."
    return ""
