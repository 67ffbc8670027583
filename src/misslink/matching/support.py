"""The fitted probability that passages support a claim, and the figures measured on it."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from misslink.matching.claim_matching import ClaimMatch, MatchingContext
from misslink.types import Support

REFUSED_SHARE = 0.5  # of the cut: what a claim's probability is scaled to where the rules refuse it


@dataclass(frozen=True)
class LogisticFit:
    """A logistic fit of P(supported), and the cut from which a claim is called supported.

    Parameters
    ----------
    intercept : float
    weights : mapping of str to float
        By feature, in the features' order; positive, for every feature grows with doubt.
    cut : float
        In [0, 1].
    figures : mapping
        What was measured on held-out answers; see `fit_figures`.
    """

    intercept: float
    weights: Mapping[str, float]
    cut: float
    figures: Mapping[str, Any]

    @property
    def version(self) -> str:
        """A hash of what the verdicts depend on."""
        content = json.dumps([self.intercept, dict(self.weights), self.cut])
        return hashlib.sha256(content.encode()).hexdigest()[:12]

    def probability(self, match: ClaimMatch) -> float:
        """Return P(supported), in [0, 1], rounded to 6 digits.

        Below the cut, whatever the features, where the claim shares no word with the passages,
        contradicts them, or has a name, a number or an identifier that is in none.
        """
        terms = (
            weight * value
            for weight, value in zip(self.weights.values(), match.features, strict=True)
        )
        # Bounded, so that no input overflows.
        doubt = min(max(sum(terms, -self.intercept), -30.0), 30.0)
        probability = 1 / (1 + math.exp(doubt))
        if match.conflict is not None or match.invented or not match.shares_words:
            probability *= REFUSED_SHARE * self.cut
        return round(probability, 6)


@cache
def load_fit() -> LogisticFit:
    """Return the committed fit."""
    source = files("misslink.matching") / "coefficients.json"
    return LogisticFit(**json.loads(source.read_text(encoding="utf-8"))["judges"]["heuristic"])


def fit_figures() -> dict[str, Any]:
    """Return what the judge reached on answers that were used for no choice.

    Returns
    -------
    dict
        ``answers``, ``unfaithful``: how many of RAGTruth QA; ``auroc``, ``f1``, ``precision`` and
        ``recall`` of finding the unfaithful ones, ``kappa``; ``fit``: the version of the fit.
    """
    return dict(load_fit().figures)


def fit_note(fit: LogisticFit) -> str:
    """Return what readers of the judge's verdicts must know, in one line."""
    figures = fit.figures
    low = int(10 * figures["precision"])
    earlier = "" if figures["fit"] == fit.version else ", with an earlier fit"
    return (
        f"heuristic; of 10 answers it flags, {low} to {low + 1} are unfaithful; it finds"
        f" {figures['recall']:.0%} ({figures['answers']} RAGTruth QA answers not"
        f" used for fitting{earlier})"
    )


@cache
def rules_version() -> str:
    """SHA-256 (16 digits) of the deciding code: replies cached under other rules are not reused."""
    package = files("misslink")
    folders = package / "text", package / "matching"
    sources = [
        file
        for folder in folders
        for file in sorted(folder.iterdir(), key=str)
        if file.name.endswith(".py")
    ]
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]


_CITATION = re.compile(r"\s*\[\^?\d{1,3}(?:\s*[-,;\u2013]\s*\d{1,3})*\]")  # "[2, 3]" is no number

ScoredMatch = tuple[ClaimMatch, float]  # a claim's match and its P(supported)


def match_claims(claims: Sequence[str], context: MatchingContext) -> list[ScoredMatch]:
    """Match claims, but for citation numbers in brackets; return each match and P(supported)."""
    matches = [context.match(_CITATION.sub("", claim)) for claim in claims]
    return [(match, load_fit().probability(match)) for match in matches]


def match_support(match: ClaimMatch, probability: float) -> Support:
    """Return what a match says of its claim."""
    if match.conflict is not None:
        return "contradicted"
    return "supported" if probability >= load_fit().cut else "unsupported"


def claim_relations(
    claims: Sequence[str], context: MatchingContext
) -> list[tuple[Literal["would_support", "would_contradict", "unrelated"], str | None, float]]:
    """Return what passages would say about claims, by the lexical judge; a heuristic.

    Returns
    -------
    list of (relation, quote, probability)
        For each claim 'would_support', 'would_contradict' or 'unrelated'; the deciding sentence,
        verbatim, None where they are unrelated; and P(the passages support the claim).
    """
    relations: list[
        tuple[Literal["would_support", "would_contradict", "unrelated"], str | None, float]
    ] = []
    for match, probability in match_claims(claims, context):
        support = match_support(match, probability)
        if match.best is None or support == "unsupported":
            relations.append(("unrelated", None, probability))
        elif support == "supported":
            relations.append(("would_support", match.best.text, probability))
        else:
            relations.append(("would_contradict", match.best.text, probability))
    return relations
