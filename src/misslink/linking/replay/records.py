"""What the replay of one case found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from misslink.linking.replay.outcomes import Outcome
from misslink.types import Cause

__all__ = ["CONFIRMING", "GOOD_MISS", "INTERVENTIONS", "REPLAYED", "Record"]

REPLAYED = Literal["retrieval_miss", "ignored_context", "distracted"]
GOOD_MISS = "good_miss"  # misses with a good answer: injecting may spoil it
INTERVENTIONS: Mapping[str, tuple[str, ...]] = {
    "retrieval_miss": ("first", "last"),
    "ignored_context": ("first", "alone"),
    "distracted": ("without_noise",),
}
# Under any of these a bad answer that turns good confirms the cause. A passage in the last place
# may be read by nobody, so that what happens there neither confirms nor refutes.
CONFIRMING: Mapping[str, tuple[str, ...]] = {
    **INTERVENTIONS,
    "retrieval_miss": ("first",),
    GOOD_MISS: (),
}
_WORDS = {
    "first": "with the passage in the first place",
    "last": "with the passage in the last place",
    "alone": "with the relevant passages alone",
    "without_noise": "without the irrelevant passages",
}


@dataclass(frozen=True)
class Record:
    """One case: how its answer turned out each time, and what follows.

    Parameters
    ----------
    case_id : str
    group : str
        A cause that is replayed, or ``GOOD_MISS``.
    cause : str
        Of its link.
    outcomes : mapping of str to str
        The name of the outcome, by 'observed', 'unchanged' and the names of interventions.
    skipped : str or None
        Why it could not be replayed; then nothing follows.
    retrieval : str
        Of its link.
    found : mapping of str to Outcome
        The outcomes that there are.
    flaky : bool or None
        Whether the unchanged rerun turned out otherwise than the run. None: skipped.
    confirmed : bool or None
        None: skipped, or its cause is none that is replayed.
    reason, note : str or None
        What follows in one sentence, and what to know of the interventions.
    """

    case_id: str
    group: str
    cause: Cause
    outcomes: Mapping[str, str]
    skipped: str | None = None
    note: str | None = None
    retrieval: str = "unknown"
    found: Mapping[str, Outcome] = field(default_factory=dict)
    flaky: bool | None = None
    confirmed: bool | None = None
    reason: str | None = None

    def named(self, skipped: str | None = None) -> Record:
        """Draw the conclusion from ``found``."""
        outcomes = {name: outcome.name for name, outcome in self.found.items()}
        made = replace(self, outcomes=outcomes, skipped=skipped)
        if skipped is not None:
            return replace(made, flaky=None, confirmed=None)
        confirming = CONFIRMING[self.group]
        if self.flaky:
            unchanged = outcomes["unchanged"]
            why = f"the answer was {outcomes['observed']}, and {unchanged} when nothing was changed"
            return replace(made, confirmed=False if confirming else None, reason=why)
        if not confirming:
            return _of_good_miss(made)
        tried = {name: self.found[name] for name in confirming if name in self.found}
        mended = next((name for name, outcome in tried.items() if outcome.bad is False), None)
        if mended is not None:
            return replace(made, confirmed=True, reason=f"{_WORDS[mended]} the answer is good")
        unknown = next((outcome for outcome in tried.values() if outcome.bad is None), None)
        if unknown is not None or not tried:
            said = unknown.reason if unknown else "its passages could not be put in front"
            return replace(made, skipped=said)
        last = list(tried)[-1]
        why = f"{_WORDS[last]} the answer is still {outcomes[last]}"
        return replace(made, confirmed=False, reason=why)

    def pair(self) -> tuple[bool, bool] | None:
        """Whether the answer of a miss was bad unchanged and with the passage first, if known."""
        first, unchanged = self.found.get("first"), self.found.get("unchanged")
        if self.retrieval != "miss" or first is None or unchanged is None:
            return None
        if first.bad is None or unchanged.bad is None:
            return None
        return unchanged.bad, first.bad

    def line(self) -> dict[str, Any]:
        """The case as ``replay.json`` lists it."""
        said = "; ".join(filter(None, (self.reason, self.note))) or None
        return {
            "case_id": self.case_id,
            "cause": self.cause,
            "flaky": self.flaky,
            "confirmed": self.confirmed,
            "outcomes": dict(self.outcomes),
            "reason": said,
        }


def _of_good_miss(record: Record) -> Record:
    first = record.found.get("first")
    if first is None or first.bad is None:
        return replace(record, skipped=first.reason if first else "nothing could be injected")
    what = f"made it {first.name}" if first.bad else "left it good"
    return replace(record, reason=f"the answer was good, and injecting the passage {what}")
