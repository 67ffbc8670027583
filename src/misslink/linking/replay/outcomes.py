"""The outcome of each answer in a replay, and the conclusion for its case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from misslink.linking.case_evidence import CaseEvidence
from misslink.linking.judge_calibration import Calibration
from misslink.text.normalization import fold
from misslink.types import Case, FailureMode, Trace, Verdict

APP_FAILED = "the app failed"


@dataclass(frozen=True)
class ReplayOutcome:
    """Whether an answer is bad (unfaithful or wrong), and in which way.

    Parameters
    ----------
    bad : bool or None
        None: unknown, and ``name`` is 'inconclusive'.
    name : {'unfaithful', 'wrong', 'declined', 'good', 'inconclusive'}
        Declined: it gives no answer although there is one.
    reason : str or None
        Why it is unknown.
    correct : bool or None
    answer : str or None
    """

    bad: bool | None
    name: str
    reason: str | None = None
    correct: bool | None = None
    answer: str | None = None

    def differs_from(self, other: ReplayOutcome) -> bool:
        """Whether the two turned out otherwise, or one is right and the other wrong.

        Without its passage a right answer is as unfaithful as a lie, so the name alone would not
        tell an app that says now the one and now the other.
        """
        both_known = self.correct is not None and other.correct is not None
        return self.name != other.name or (both_known and self.correct is not other.correct)

    def reads_like(self, other: ReplayOutcome) -> bool:
        """Whether the answers are the same, letter by letter once folded."""
        if self.answer is None or other.answer is None:
            return False
        return fold(self.answer) == fold(other.answer)


def replay_outcome(
    case: Case,
    trace: Trace,
    verdicts: Mapping[str, Verdict],
    k: int,
    target_ids: frozenset[str] = frozenset(),
    calibration: Calibration | None = None,
) -> ReplayOutcome:
    """Return how an answer turned out.

    `target_ids` are ids of passages that must have reached the prompt; otherwise nothing is known.
    """
    facts = CaseEvidence.from_verdicts(case, trace, verdicts, k, calibration)
    seen = trace.unmeasured is None and trace.answer is not None
    dropped = target_ids - {passage.id for passage in trace.context(k)} if seen else set()
    if seen and not dropped and facts.failed:
        return ReplayOutcome(
            bad=True, name=_outcome_name(facts), correct=facts.correct, answer=trace.answer
        )
    reason = trace.unmeasured
    if reason is None and trace.answer is None:
        reason = f"{APP_FAILED}: {trace.error}" if trace.error else "the app gave no answer"
    elif dropped:
        reason = f"the app was handed '{min(dropped)}', and it did not reach the prompt"
    elif reason is None:
        reason = facts.unknown_reason
        if facts.answer == "declined" and facts.correct is None:
            reason = "the app declined, and the gold set does not say if it should"
    if reason is not None:
        return ReplayOutcome(bad=None, name="inconclusive", reason=reason, answer=trace.answer)
    return ReplayOutcome(bad=False, name="good", correct=facts.correct, answer=trace.answer)


def _outcome_name(facts: CaseEvidence) -> str:
    if facts.declined:
        return "declined"
    return "unfaithful" if facts.answer == "unfaithful" else "wrong"


ReplayedFailure = Literal[
    "retrieval_miss", "dropped_from_prompt", "ignored_context", "incomplete", "distracted"
]
GOOD_MISS = "good_miss"  # misses with a good answer: injecting may spoil it
INTERVENTIONS_BY_FAILURE: Mapping[str, tuple[str, ...]] = {
    "retrieval_miss": ("first", "last"),
    "dropped_from_prompt": ("first", "last"),
    "ignored_context": ("first", "alone"),
    "incomplete": ("first", "alone"),
    "distracted": ("without_noise",),
}
# Under any of these a bad answer that turns good both times confirms the failure mode: they are generated
# twice, as one draw of an app that flips a coin is good every other time. A passage in the last
# place may be read by nobody, so that what happens there neither confirms nor refutes.
CONFIRMING_INTERVENTIONS: Mapping[str, tuple[str, ...]] = {
    **INTERVENTIONS_BY_FAILURE,
    "retrieval_miss": ("first",),
    "dropped_from_prompt": ("first",),
    GOOD_MISS: (),
}
_INTERVENTION_TEXT = {
    "first": "with the passage in the first place",
    "last": "with the passage in the last place",
    "alone": "with the relevant passages alone",
    "without_noise": "without the irrelevant passages",
}
_SAME_ANSWER = "the answer is the same; only its evidence is there now"


def count_generations(group: str) -> int:
    """Return how often the app runs for a case that is not flaky.

    >>> [count_generations(group) for group in ("retrieval_miss", "incomplete", "distracted")]
    [4, 5, 3]
    """
    tried = INTERVENTIONS_BY_FAILURE.get(group, ("first",))
    return 1 + len(tried) + len(set(tried) & set(CONFIRMING_INTERVENTIONS[group]))


@dataclass(frozen=True)
class ReplayRecord:
    """One case: how its answer turned out each time, and what follows.

    Parameters
    ----------
    case_id : str
    group : str
        A failure mode that is replayed, which may only contribute, or ``GOOD_MISS``.
    failure : str
        Of its link.
    outcomes : mapping of str to str
        The name of the outcome, by 'observed', 'unchanged' and the names of interventions.
    skipped : str or None
        Why it could not be replayed; then nothing follows.
    retrieval : str
        Of its link.
    found : mapping of str to ReplayOutcome
        The outcomes that there are.
    repeats : mapping of str to ReplayOutcome
        Those of the second draw, by intervention.
    flaky : bool or None
        Whether the unchanged rerun turned out otherwise than the run, or two draws of one
        intervention did. None: skipped.
    confirmed : bool or None
        None: skipped, or its failure mode is none that is replayed.
    reason, note : str or None
        What follows in one sentence, and what to know of the interventions.
    same_answer : bool
        Whether the answer counts as good under an intervention and is the unchanged one by the
        letter: the judge sees more, and the app said nothing else.
    """

    case_id: str
    group: str
    failure: FailureMode
    outcomes: Mapping[str, str]
    skipped: str | None = None
    note: str | None = None
    retrieval: str = "unknown"
    found: Mapping[str, ReplayOutcome] = field(default_factory=dict)
    repeats: Mapping[str, ReplayOutcome] = field(default_factory=dict)
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
            was, then = (
                "right" if outcome.correct else "wrong" for outcome in (observed, unchanged)
            )
            return f"the answer was {was}, and {then} when nothing was changed"
        for name, second in self.repeats.items():
            first = self.found[name]
            if None not in (first.bad, second.bad) and first.bad is not second.bad:
                return f"{_INTERVENTION_TEXT[name]} the answer was once {first.name} and once {second.name}"
        return None

    def is_fixed(self, name: str) -> bool | None:
        """Whether every draw of an intervention gave a good answer, and another one than before.

        None: not tried, or not known.
        """
        draws = self._draws(name)
        if any(draw.bad for draw in draws):
            return False
        if not draws or any(draw.bad is None for draw in draws):
            return None
        return not self._is_good_unchanged(name)

    def _draws(self, name: str) -> list[ReplayOutcome]:
        return [kind[name] for kind in (self.found, self.repeats) if name in kind]

    def _is_good_unchanged(self, name: str) -> bool:
        """Whether an answer is good now without having changed."""
        unchanged = self.found["unchanged"]
        draws = self._draws(name)
        return all(draw.bad is False for draw in draws) and any(
            draw.reads_like(unchanged) for draw in draws
        )

    def named(self, skipped: str | None = None) -> ReplayRecord:
        """Draw the conclusion from ``found``."""
        outcomes = {name: outcome.name for name, outcome in self.found.items()}
        made = replace(self, outcomes=outcomes, skipped=skipped)
        if skipped is not None:
            return replace(made, flaky=None, confirmed=None)
        confirming = CONFIRMING_INTERVENTIONS[self.group]
        if why := self.why_flaky():
            return replace(made, flaky=True, confirmed=False if confirming else None, reason=why)
        made = replace(made, flaky=False)
        if not confirming:
            return _conclude_good_miss(made)
        return made.concluded(confirming)

    def concluded(self, confirming: Sequence[str]) -> ReplayRecord:
        """Whether any of the interventions `confirming` turned a bad answer good."""
        tried = {name: self.is_fixed(name) for name in confirming if name in self.found}
        fixing = next((name for name, was_fixed in tried.items() if was_fixed), None)
        if fixing is not None:
            return replace(
                self, confirmed=True, reason=f"{_INTERVENTION_TEXT[fixing]} the answer is good"
            )
        unknown = next((name for name, was_fixed in tried.items() if was_fixed is None), None)
        if unknown is not None or not tried:
            draws = self._draws(unknown) if unknown else []
            draw_reason = next((draw.reason for draw in draws if draw.bad is None), None)
            why = draw_reason or "its passages could not be put in front"
            return replace(self, flaky=None, skipped=why)
        if any(self._is_good_unchanged(name) for name in tried):
            return replace(self, confirmed=False, same_answer=True, reason=_SAME_ANSWER)
        last = list(tried)[-1]
        why = f"{_INTERVENTION_TEXT[last]} the answer is still {self.outcomes[last]}"
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
        reason = "; ".join(filter(None, (self.reason, self.note))) or None
        return {
            "case_id": self.case_id,
            "failure": self.failure,
            "replayed_as": self.group,
            "flaky": self.flaky,
            "confirmed": self.confirmed,
            "same_answer": self.same_answer,
            "outcomes": dict(self.outcomes),
            "repeats": {name: outcome.name for name, outcome in self.repeats.items()},
            "reason": reason,
        }


def _conclude_good_miss(record: ReplayRecord) -> ReplayRecord:
    first = record.found.get("first")
    if first is None or first.bad is None:
        skipped_reason = first.reason if first else "nothing could be injected"
        return replace(record, flaky=None, skipped=skipped_reason)
    effect = f"made it {first.name}" if first.bad else "left it good"
    return replace(record, reason=f"the answer was good, and injecting the passage {effect}")
