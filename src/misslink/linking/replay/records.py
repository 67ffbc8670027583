"""What the replay of one case found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from misslink.linking.replay.outcomes import Outcome
from misslink.types import Cause

__all__ = ["CONFIRMING", "GOOD_MISS", "INTERVENTIONS", "REPLAYED", "Record", "generations"]

REPLAYED = Literal["retrieval_miss", "ignored_context", "distracted"]
GOOD_MISS = "good_miss"  # misses with a good answer: injecting may spoil it
INTERVENTIONS: Mapping[str, tuple[str, ...]] = {
    "retrieval_miss": ("first", "last"),
    "ignored_context": ("first", "alone"),
    "distracted": ("without_noise",),
}
# Under any of these a bad answer that turns good both times confirms the cause: they are generated
# twice, as one draw of an app that flips a coin is good every other time. A passage in the last
# place may be read by nobody, so that what happens there neither confirms nor refutes.
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
_SAME = "the answer is the same; only its evidence is there now"


def generations(group: str) -> int:
    """How often the app is asked for a case that is not flaky: unchanged, and as it is changed.

    >>> {group: generations(group) for group in CONFIRMING}
    {'retrieval_miss': 4, 'ignored_context': 5, 'distracted': 3, 'good_miss': 2}
    """
    tried = INTERVENTIONS.get(group, ("first",))
    return 1 + len(tried) + len(set(tried) & set(CONFIRMING[group]))


@dataclass(frozen=True)
class Record:
    """One case: how its answer turned out each time, and what follows.

    Parameters
    ----------
    case_id : str
    group : str
        A cause that is replayed, which may only contribute, or ``GOOD_MISS``.
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
    repeats : mapping of str to Outcome
        Those of the second draw, by intervention.
    flaky : bool or None
        Whether the unchanged rerun turned out otherwise than the run, or two draws of one
        intervention did. None: skipped.
    confirmed : bool or None
        None: skipped, or its cause is none that is replayed.
    reason, note : str or None
        What follows in one sentence, and what to know of the interventions.
    same_answer : bool
        Whether the answer counts as good under an intervention and is the unchanged one by the
        letter: the judge sees more, and the app said nothing else.
    """

    case_id: str
    group: str
    cause: Cause
    outcomes: Mapping[str, str]
    skipped: str | None = None
    note: str | None = None
    retrieval: str = "unknown"
    found: Mapping[str, Outcome] = field(default_factory=dict)
    repeats: Mapping[str, Outcome] = field(default_factory=dict)
    flaky: bool | None = None
    confirmed: bool | None = None
    reason: str | None = None
    same_answer: bool = False

    def why_flaky(self) -> str | None:
        """What differed although nothing was changed; None where nothing did."""
        observed, unchanged = self.found["observed"], self.found["unchanged"]
        if observed.name != unchanged.name:
            return f"the answer was {observed.name}, and {unchanged.name} when nothing was changed"
        if observed.differs_from(unchanged):
            was, then = ("right" if one.correct else "wrong" for one in (observed, unchanged))
            return f"the answer was {was}, and {then} when nothing was changed"
        for name, second in self.repeats.items():
            first = self.found[name]
            if None not in (first.bad, second.bad) and first.bad is not second.bad:
                return f"{_WORDS[name]} the answer was once {first.name} and once {second.name}"
        return None

    def mended(self, name: str) -> bool | None:
        """Whether every draw of an intervention gave a good answer, and another one than before.

        None: not tried, or not known.
        """
        draws = self._draws(name)
        if any(draw.bad for draw in draws):
            return False
        if not draws or any(draw.bad is None for draw in draws):
            return None
        return not self._same(name)

    def _draws(self, name: str) -> list[Outcome]:
        return [kind[name] for kind in (self.found, self.repeats) if name in kind]

    def _same(self, name: str) -> bool:
        """Whether an answer is good now without having changed."""
        unchanged = self.found["unchanged"]
        draws = self._draws(name)
        return all(draw.bad is False for draw in draws) and any(
            draw.reads_like(unchanged) for draw in draws
        )

    def named(self, skipped: str | None = None) -> Record:
        """Draw the conclusion from ``found``."""
        outcomes = {name: outcome.name for name, outcome in self.found.items()}
        made = replace(self, outcomes=outcomes, skipped=skipped)
        if skipped is not None:
            return replace(made, flaky=None, confirmed=None)
        confirming = CONFIRMING[self.group]
        if why := self.why_flaky():
            return replace(made, flaky=True, confirmed=False if confirming else None, reason=why)
        made = replace(made, flaky=False)
        if not confirming:
            return _of_good_miss(made)
        return made.concluded(confirming)

    def concluded(self, confirming: Sequence[str]) -> Record:
        """Whether any of the interventions `confirming` turned a bad answer good."""
        tried = {name: self.mended(name) for name in confirming if name in self.found}
        mended = next((name for name, is_mended in tried.items() if is_mended), None)
        if mended is not None:
            return replace(self, confirmed=True, reason=f"{_WORDS[mended]} the answer is good")
        unknown = next((name for name, is_mended in tried.items() if is_mended is None), None)
        if unknown is not None or not tried:
            draws = self._draws(unknown) if unknown else []
            said = next((draw.reason for draw in draws if draw.bad is None), None)
            why = said or "its passages could not be put in front"
            return replace(self, flaky=None, skipped=why)
        if any(self._same(name) for name in tried):
            return replace(self, confirmed=False, same_answer=True, reason=_SAME)
        last = list(tried)[-1]
        why = f"{_WORDS[last]} the answer is still {self.outcomes[last]}"
        return replace(self, confirmed=False, reason=why)

    def pair(self) -> tuple[bool, bool] | None:
        """Whether the answer of a miss was bad unchanged and with the passage first, if known.

        An answer that did not change by a letter counts as not changed.
        """
        first, unchanged = self.found.get("first"), self.found.get("unchanged")
        if self.retrieval != "miss" or first is None or unchanged is None:
            return None
        if first.bad is None or unchanged.bad is None:
            return None
        return unchanged.bad, unchanged.bad if first.reads_like(unchanged) else first.bad

    def line(self) -> dict[str, Any]:
        """The case as ``replay.json`` lists it."""
        said = "; ".join(filter(None, (self.reason, self.note))) or None
        return {
            "case_id": self.case_id,
            "cause": self.cause,
            "replayed_as": self.group,
            "flaky": self.flaky,
            "confirmed": self.confirmed,
            "same_answer": self.same_answer,
            "outcomes": dict(self.outcomes),
            "repeats": {name: outcome.name for name, outcome in self.repeats.items()},
            "reason": said,
        }


def _of_good_miss(record: Record) -> Record:
    first = record.found.get("first")
    if first is None or first.bad is None:
        said = first.reason if first else "nothing could be injected"
        return replace(record, flaky=None, skipped=said)
    what = f"made it {first.name}" if first.bad else "left it good"
    return replace(record, reason=f"the answer was good, and injecting the passage {what}")
