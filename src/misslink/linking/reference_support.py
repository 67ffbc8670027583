"""Do passages hold what a reference says? What the heuristic judge can tell of sufficiency."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from misslink.judge.backends.heuristic import match_claims
from misslink.judge.backends.heuristic.judge import match_support
from misslink.judge.backends.heuristic.matching import MatchingContext, strip_polarity
from misslink.judge.backends.heuristic.reference import compare
from misslink.text.abstention import claim_spans, content_stems, declines
from misslink.text.near_duplicates import passage_stems
from misslink.text.normalization import sentence_spans
from misslink.types import Support

ReferenceSupport = Literal["yes", "partly", "no", "unknown"]


def reference_claims(reference: str) -> tuple[str, ...]:
    """The claims of a reference; one of a single word is a claim all the same."""
    spans = claim_spans(reference) or sentence_spans(reference)
    return tuple(reference[start:end] for start, end in spans)


def _factual_claims(reference: str) -> list[str]:
    """The claims that passages can state: "Yes." alone is none, and neither is a refusal."""
    claims = () if declines(reference) else reference_claims(reference)
    return [claim for claim in claims if strip_polarity(claim).strip()]


def compare_claim(claim: str, passages: Sequence[str], question: str) -> Support:
    """What passages say about a claim of a reference, read with the question.

    Passages state facts: they do not answer with the yes or no that the reference begins with.
    """
    return compare(
        strip_polarity(claim) or claim, passages, question, _judge_claim, of_reference=True
    )


def reference_support(
    question: str, references: Iterable[str], passages: Sequence[str]
) -> tuple[ReferenceSupport, tuple[str, ...]]:
    """Return whether passages hold one of the references, and the claims of it that they lack.

    The reference that they hold most of decides. Unknown without a reference that states something,
    and where the passages contradict it: then it may be wrong itself.
    """
    best: tuple[float, ReferenceSupport, tuple[str, ...]] = (-1.0, "unknown", ())
    for reference in references:
        claims = _factual_claims(reference)
        if not claims:
            continue
        relations = [compare_claim(claim, passages, question) for claim in claims]
        share = relations.count("supported") / len(claims)
        value: ReferenceSupport = "yes" if share == 1 else "partly" if share else "no"
        lacking = [c for c, r in zip(claims, relations, strict=True) if r != "supported"]
        if any(_contradicts(passage, claim, question) for claim in lacking for passage in passages):
            value = "unknown"
        if share > best[0]:
            best = (share, value, tuple(lacking) if value != "unknown" else ())
    return best[1:]


def states_claim(passage: str, claim: str, question: str) -> bool:
    """Whether a passage alone, on the subject of the question, states a claim of a reference."""
    return _is_on_subject(passage, claim, question) and (
        compare_claim(claim, [passage], question) == "supported"
    )


def _contradicts(passage: str, claim: str, question: str) -> bool:
    return _is_on_subject(passage, claim, question) and (
        compare_claim(claim, [passage], question) == "contradicted"
    )


def _is_on_subject(passage: str, claim: str, question: str) -> bool:
    """Whether a passage has the words that claim and question share, or half of the question's.

    Passages on like subjects differ in little else: "pump A holds 43 bar", "pump B holds 43 bar".
    """
    asked, held = content_stems(question), frozenset(passage_stems(passage))
    shared = asked & content_stems(claim)
    return shared <= held if shared else 2 * len(asked & held) >= len(asked)


def _judge_claim(claim: str, context: MatchingContext) -> Support:
    ((match, probability),) = match_claims([claim], context)
    return match_support(match, probability)
