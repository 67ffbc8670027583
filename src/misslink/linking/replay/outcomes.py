"""How an answer turned out, in the run and in each replay of its case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from misslink.linking.calibration import Calibration
from misslink.linking.facts import Facts, gather
from misslink.text import fold
from misslink.types import Case, Trace, Verdict

__all__ = ["FAILED", "Outcome", "outcome_of"]

FAILED = "the app failed"


@dataclass(frozen=True)
class Outcome:
    """Whether an answer is bad, that is unfaithful or wrong, and in which way.

    Parameters
    ----------
    bad : bool or None
        None: it is not known, and ``name`` is 'undecided'.
    name : {'unfaithful', 'wrong', 'declined', 'good', 'undecided'}
        Declined: it gives no answer although there is one.
    reason : str or None
        Why it is not known.
    correct : bool or None
        Whether it is right; None: nobody says.
    answer : str or None
        Its text.
    """

    bad: bool | None
    name: str
    reason: str | None = None
    correct: bool | None = None
    answer: str | None = None

    def differs_from(self, other: Outcome) -> bool:
        """Whether the two turned out otherwise, or one is right and the other wrong.

        Without its passage a right answer is as unfaithful as a lie, so the name alone would not
        tell an app that says now the one and now the other.
        """
        known = self.correct is not None and other.correct is not None
        return self.name != other.name or (known and self.correct is not other.correct)

    def reads_like(self, other: Outcome) -> bool:
        """Whether the answers are the same, letter by letter once folded."""
        if self.answer is None or other.answer is None:
            return False
        return fold(self.answer) == fold(other.answer)


def outcome_of(
    case: Case,
    trace: Trace,
    verdicts: Mapping[str, Verdict],
    k: int,
    wanted: frozenset[str] = frozenset(),
    calibration: Calibration | None = None,
) -> Outcome:
    """Return how an answer turned out.

    Parameters
    ----------
    case, trace : Case, Trace
    verdicts : mapping of str to Verdict
        By metric.
    k : int
        How many passages count as context where the prompt was not seen.
    wanted : set of str
        Ids of passages that must have reached the prompt; where one did not, nothing is known.
    calibration : Calibration or None
        Of the judge: a verdict within its uncertain band says nothing.
    """
    facts = gather(case, trace, verdicts, k, calibration)
    seen = trace.unmeasured is None and trace.answer is not None
    lost = wanted - {passage.id for passage in trace.context(k)} if seen else set()
    if seen and not lost and facts.bad:
        return Outcome(bad=True, name=_how(facts), correct=facts.correct, answer=trace.answer)
    reason = trace.unmeasured
    if reason is None and trace.answer is None:
        reason = f"{FAILED}: {trace.error}" if trace.error else "the app gave no answer"
    elif lost:
        reason = f"the app was handed '{min(lost)}', and it did not reach the prompt"
    elif reason is None:
        reason = facts.missing
        if facts.answer == "abstained" and facts.correct is None:
            reason = "the app declined, and the gold set does not say if it should"
    if reason is not None:
        return Outcome(bad=None, name="undecided", reason=reason, answer=trace.answer)
    return Outcome(bad=False, name="good", correct=facts.correct, answer=trace.answer)


def _how(facts: Facts) -> str:
    if facts.declined:
        return "declined"
    return "unfaithful" if facts.answer == "unfaithful" else "wrong"
