"""What is known of one case, gathered from its trace and its verdicts before a cause is named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from misslink.linking.calibration import Calibration
from misslink.retrieval import Outcome, outcome, relevant_ids
from misslink.types import Case, Claim, Passage, Trace, Verdict

__all__ = ["Facts", "gather"]

Answer = Literal["faithful", "unfaithful", "abstained", "unknown"]


@dataclass(frozen=True)
class Facts:
    """The retrieval outcome, the answer outcome, and the claims between them.

    Parameters
    ----------
    case, trace : Case, Trace
    found : Outcome
        What reached the context, and what was missed.
    context : sequence of Passage
        What the answer was written from.
    relevant : frozenset of str
        Ids of the passages in the context that satisfy a need of any alternative.
    answer : {'faithful', 'unfaithful', 'abstained', 'unknown'}
        Unknown where no verdict says so, or where the one that does is uncertain.
    declined : bool or None
        Whether the app declined to answer; a blank answer declines.
    correct : bool or None
        The label of the correctness verdict, so that a case counts as wrong here exactly where
        the share of correct answers counts it as wrong. Whether it was right to decline is said
        by ``declined`` and the gold set, not here.
    said : sequence of Claim
        Every claim of the faithfulness verdict, also of an uncertain one.
    judged_relevant : frozenset of str
        Passages of which the judge says that they help to answer.
    sufficient : bool or None
        Whether the judge finds that the passages hold a full answer. None: it does not say.
    by_heuristic : bool
        Whether no LLM and no person stands behind the verdicts.
    missing : str or None
        Which verdict is missing or uncertain, and why; None where all that is needed is known.
    """

    case: Case
    trace: Trace
    found: Outcome
    context: tuple[Passage, ...]
    relevant: frozenset[str]
    answer: Answer
    declined: bool | None
    correct: bool | None
    said: tuple[Claim, ...]
    judged_relevant: frozenset[str]
    sufficient: bool | None
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
        """The answer is unfaithful or wrong, or there is none where there should be one."""
        refused = bool(self.declined) and self.case.expects_answer is True
        return self.answer == "unfaithful" or self.correct is False or refused

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The claims that a cause may rest on; none of an uncertain verdict."""
        return self.said if self.answer in {"faithful", "unfaithful"} else ()

    @property
    def unfaithful(self) -> tuple[tuple[int, Claim], ...]:
        """The claims that the context does not support, with their places in the verdict."""
        return tuple(
            (index, claim) for index, claim in enumerate(self.said) if claim.support != "supported"
        )


def gather(
    case: Case,
    trace: Trace,
    verdicts: Mapping[str, Verdict],
    k: int,
    calibration: Calibration | None = None,
    found: Outcome | None = None,
) -> Facts:
    """Gather the facts of one case.

    Parameters
    ----------
    case : Case
    trace : Trace
    verdicts : mapping of str to Verdict
        By metric; any may be missing.
    k : int
        How many retrieved passages count as context where the prompt was not seen.
    calibration : Calibration or None
        The judge held against human labels, on faithfulness or correctness: of that metric, what
        lies in its uncertain band decides nothing. None: not calibrated, every label is taken.
    found : Outcome or None
        What the case's retrieval brought, where that was worked out.
    """
    faithfulness, correctness = verdicts.get("faithfulness"), verdicts.get("correctness")
    relevance, sufficiency = verdicts.get("context_relevance"), verdicts.get("context_sufficiency")
    declined = _declined(trace, faithfulness, verdicts.get("abstention"))
    correct, doubt = _label(correctness, calibration)
    answer, missing = _answer(trace, faithfulness, declined, correct, calibration)
    context = trace.context(k)
    return Facts(
        case=case,
        trace=trace,
        found=found or outcome(case, trace, k),
        context=context,
        relevant=frozenset(relevant_ids(case, context)),
        answer=answer,
        declined=declined,
        correct=correct,
        said=faithfulness.claims if faithfulness and not declined else (),
        judged_relevant=frozenset(
            passage for passage, said in (relevance.passages if relevance else {}).items() if said
        ),
        sufficient=sufficiency.label if sufficiency else None,
        by_heuristic=faithfulness is None
        or any(v.judge.startswith("embedded") for v in (faithfulness, relevance) if v),
        missing=missing or doubt,
    )


def _declined(
    trace: Trace, faithfulness: Verdict | None, abstention: Verdict | None
) -> bool | None:
    if trace.answer is not None and not trace.answer.strip():
        return True
    said = abstention.parts.get("declined") if abstention else None
    if said is None and faithfulness and faithfulness.claims:
        return False  # what only declines makes no claim
    return None if said is None else bool(said)


def _answer(
    trace: Trace,
    faithfulness: Verdict | None,
    declined: bool | None,
    correct: bool | None,
    calibration: Calibration | None,
) -> tuple[Answer, str | None]:
    """What the answer is, and why that is not known where it is not."""
    if declined:
        return "abstained", None
    if faithfulness is None:
        return "unknown", "no judge was asked whether the answer is faithful"
    label, doubt = _label(faithfulness, calibration)
    if label is not None:
        return "faithful" if label else "unfaithful", None
    if doubt:
        return "unknown", doubt
    # "Yes." claims nothing that could be unfaithful: there is no verdict, and none is missing.
    claims_nothing = faithfulness.status == "skipped" and declined is False
    if claims_nothing and correct is not None and trace.unmeasured is None:
        return "unknown", None
    return "unknown", f"faithfulness {faithfulness.status}: {faithfulness.reason}"


def _label(
    verdict: Verdict | None, calibration: Calibration | None
) -> tuple[bool | None, str | None]:
    """What a verdict says, and why it says nothing where it failed or lies in the band."""
    if verdict is None:
        return None, None
    if verdict.status == "failed":
        return None, f"{verdict.metric} failed: {verdict.reason}"
    chance = verdict.probability if verdict.label is not None else None
    asked = calibration if calibration and calibration.metric == verdict.metric else None
    if asked and chance is not None and asked.uncertain(chance):
        return None, (
            f"{verdict.metric} is not certain: the judge gives it P = {chance:.2f}, where it is "
            "not to be believed by its calibration"
        )
    return verdict.label, None
