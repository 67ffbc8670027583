"""What numbers a judge must reach to be trusted, or used with caution: one table."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["RULES", "VERDICTS", "Rule"]

_DIGITS = 5  # more than are usually written, to tell a number from the limit that it misses
VERDICTS = ("do not use", "caution", "trust")  # worst first


@dataclass(frozen=True)
class Rule:
    """What a number must be.

    Parameters
    ----------
    name : str
        As the criteria file names it.
    says : str
        A sentence with {value} and {wanted}.
    trust, caution : float or None
        The limit for either verdict. None: this number alone never stands against it.
    at_most : bool
        Whether the limits are the largest that do, not the least.
    needed : bool
        Whether a missing number stands against every use; else it is passed over.
    form : {'count', 'share', 'decimal'}
        How the number is written.
    unknown : str
        What is said where the number is not known; "" says so by the rule's name.
    of_one : str
        In place of `says` where a count is 1; "" where one sentence does for both.
    """

    name: str
    says: str
    trust: float | None
    caution: float | None
    at_most: bool = False
    needed: bool = True
    form: str = "decimal"
    unknown: str = ""
    of_one: str = ""

    def met(self, number: float) -> str:
        """The best verdict that a number allows."""
        for verdict, limit in (("trust", self.trust), ("caution", self.caution)):
            if limit is None or (number <= limit if self.at_most else number >= limit):
                return verdict
        return "do not use"

    def written(self, number: float, beside: float | None = None) -> str:
        """A number as the sentence has it; with more digits where `beside` would look the same."""
        if self.form == "count":
            return f"{number:,.0f}"
        text = self._rounded(number, 0)
        if beside is None or number == beside:
            return text
        for more in range(_DIGITS):
            text = self._rounded(number, more)
            if text != self._rounded(beside, more):
                break
        return text

    def _rounded(self, number: float, more: int) -> str:
        if self.form == "share":
            return f"{100 * number:.{more}f} %"
        return f"{number:.{2 + more}f}"


RULES = (
    Rule(
        "labels",
        "{value} labelled cases; {wanted}",
        100,
        30,
        form="count",
        of_one="{value} labelled case; {wanted}",
    ),
    Rule("rarer_label", "cases of the rarer label: {value}; {wanted}", 20, 10, form="count"),
    Rule("kappa", "kappa of judge and people is {value}; {wanted}", 0.6, 0.2),
    Rule(
        "balanced_accuracy_low",
        "balanced accuracy may be as low as {value}, and 50 % is chance; {wanted}",
        0.7,
        0.5,
        form="share",
        unknown="balanced accuracy is not known, for which labels of both kinds are needed",
    ),
    Rule(
        "over_length",
        "the judge's AUROC is {value} above that of the answer's length; {wanted}",
        0.05,
        0.0,
        needed=False,
    ),
    Rule(
        "over_majority",
        "F1 of finding bad cases is {value} above saying the same of all; {wanted}",
        0.2,
        0.0,
        unknown="F1 of finding bad cases is not known: people and judge see none",
    ),
    Rule(
        "people_alpha",
        "people agree with each other at alpha {value}; {wanted}",
        0.667,
        0.2,
        needed=False,
    ),
    Rule(
        "failed",
        "{value} of labelled cases have no usable verdict; {wanted}",
        0.05,
        0.2,
        at_most=True,
        form="share",
    ),
    Rule(
        "calibration_error_low",
        "probabilities are off by {value} or more on average; {wanted}",
        0.15,
        None,
        at_most=True,
        needed=False,
    ),
    Rule(
        "biases",
        "{value} things that should not matter move the judge; {wanted}",
        0,
        None,
        at_most=True,
        needed=False,
        form="count",
        of_one="{value} thing that should not matter moves the judge; {wanted}",
    ),
    # Not every judge was audited, so these are not needed.
    Rule(
        "padding_flips_low",
        "{value} or more of the verdicts change when an answer is padded with what adds nothing;"
        " {wanted}",
        0.05,
        0.2,
        at_most=True,
        needed=False,
        form="share",
    ),
    Rule(
        "order_flips_low",
        "{value} or more of the verdicts change with the order of the passages; {wanted}",
        0.05,
        0.2,
        at_most=True,
        needed=False,
        form="share",
    ),
    Rule(
        "again_flips_low",
        "{value} or more of the verdicts change when the judge is asked again; {wanted}",
        0.05,
        0.2,
        at_most=True,
        needed=False,
        form="share",
    ),
)
