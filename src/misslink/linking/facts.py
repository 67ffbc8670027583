"""What is known of one case, gathered from its trace and its verdicts before a cause is named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from misslink.retrieval import Outcome, outcome, relevant_ids
from misslink.types import Case, Claim, Passage, Trace, Verdict

__all__ = ["Facts", "gather"]

Answer = Literal["faithful", "unfaithful", "abstained", "unknown"]


@dataclass(frozen=True)
class Facts:
    """The retrieval outcome, the answer outcome, and the claims between them."""

    case: Case
    trace: Trace
    found: Outcome
    context: tuple[Passage, ...]
    relevant: frozenset[str]
    answer: Answer
    declined: bool | None
    correct: bool | None
    claims: tuple[Claim, ...]
    judged_relevant: frozenset[str]
    by_heuristic: bool
    missing: str | None

    @property
    def needed(self) -> int:
        """How many passages the case needs."""
        return len(self.found.found) + len(self.found.missed)

    @property
    def answerable(self) -> bool:
        """Not known to be without an answer."""
        return self.case.expects_answer is not False

    @property
    def bad(self) -> bool:
        """The answer is unfaithful or wrong."""
        return self.answer == "unfaithful" or self.correct is False

    @property
    def unfaithful(self) -> tuple[tuple[int, Claim], ...]:
        """The claims that the context does not support, with their places."""
        return tuple(
            (index, claim)
            for index, claim in enumerate(self.claims)
            if claim.support != "supported"
        )


def gather(case: Case, trace: Trace, verdicts: Mapping[str, Verdict], k: int) -> Facts:
    """Gather the facts of one case.

    Parameters
    ----------
    case : Case
    trace : Trace
    verdicts : mapping of str to Verdict
        By metric; any may be missing.
    k : int
        How many retrieved passages count as context where the prompt was not seen.
    """
    faithfulness = verdicts.get("faithfulness")
    relevance = verdicts.get("context_relevance")
    declined = _declined(trace, verdicts.get("abstention"))
    answer: Answer = "unknown"
    missing = None
    if declined:
        answer = "abstained"
    elif faithfulness is not None and faithfulness.label is not None:
        answer = "faithful" if faithfulness.label else "unfaithful"
    elif faithfulness is None:
        missing = "no judge was asked"
    else:
        missing = f"faithfulness {faithfulness.status}: {faithfulness.reason}"
    correctness = verdicts.get("correctness")
    if missing is None and correctness is not None and correctness.status == "failed":
        missing = f"correctness failed: {correctness.reason}"
    context = trace.context(k)
    return Facts(
        case=case,
        trace=trace,
        found=outcome(case, trace, k),
        context=context,
        relevant=frozenset(relevant_ids(case, context)),
        answer=answer,
        declined=declined,
        correct=_correct(case, declined, verdicts),
        claims=faithfulness.claims if faithfulness and not declined else (),
        judged_relevant=frozenset(
            passage for passage, said in (relevance.passages if relevance else {}).items() if said
        ),
        by_heuristic=faithfulness is None or faithfulness.judge.startswith("embedded"),
        missing=missing,
    )


def _declined(trace: Trace, abstention: Verdict | None) -> bool | None:
    if trace.answer is not None and not trace.answer.strip():
        return True
    said = abstention.parts.get("declined") if abstention else None
    return None if said is None else bool(said)


def _correct(case: Case, declined: bool | None, verdicts: Mapping[str, Verdict]) -> bool | None:
    """Right or wrong; to decline is right exactly where there is nothing to answer."""
    expected = case.expects_answer
    if declined is not None and (declined or expected is False):
        return None if expected is None else declined != expected
    correctness = verdicts.get("correctness")
    return correctness.label if correctness else None
