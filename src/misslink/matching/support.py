"""The fitted probability that passages support a claim, and the figures measured on it."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

_FILES = files("misslink.matching")
REFUSED_SHARE = 0.5  # of the cut: what a claim's probability is scaled to where the rules refuse it


@dataclass(frozen=True)
class LogisticFit:
    """A logistic fit of P(supported), and the cut from which a claim is called supported.

    Parameters
    ----------
    intercept : float
    weights : mapping of str to float
        By feature, in the features' order; positive, for every feature grows with doubt.
    cut, cap : float
        In [0, 1]: from where a claim is called supported, and the highest probability.
    """

    intercept: float
    weights: Mapping[str, float]
    cut: float
    cap: float

    @property
    def version(self) -> str:
        """A hash of what the verdicts depend on."""
        content = json.dumps([self.intercept, dict(self.weights), self.cut, self.cap])
        return hashlib.sha256(content.encode()).hexdigest()[:12]

    @property
    def note(self) -> str:
        """What readers of the judge's verdicts must know, in one line."""
        figures = fit_figures()
        if figures is None:
            return "heuristic; its agreement with people is not measured for these rules"
        low = int(10 * figures["precision"])
        return (
            f"heuristic; of 10 answers it flags, {low} to {low + 1} are unfaithful; it finds"
            f" {figures['recall']:.0%} ({figures['answers']} RAGTruth QA answers not used for fitting)"
        )

    def probability(self, features: Sequence[float], *, refused: bool) -> float:
        """Return P(supported), in [0, 1], rounded to 6 digits.

        At most `cap`; and below the cut, whatever the features, where the claim is refused.
        """
        terms = (
            weight * value for weight, value in zip(self.weights.values(), features, strict=True)
        )
        # Bounded, so that no input overflows.
        doubt = min(max(sum(terms, -self.intercept), -30.0), 30.0)
        probability = self.cap / (1 + math.exp(doubt))
        if refused:
            probability *= REFUSED_SHARE * self.cut
        return round(probability, 6)


@cache
def load_fit() -> LogisticFit:
    """Return the committed fit."""
    return LogisticFit(**json.loads((_FILES / "coefficients.json").read_text(encoding="utf-8")))


@cache
def fit_figures() -> dict[str, Any] | None:
    """Return what the judge reached on answers that were used for no choice, by the current rules.

    Returns
    -------
    dict or None
        ``answers``, ``unfaithful``: how many of RAGTruth QA; ``auroc``, ``f1``, ``precision`` and
        ``recall`` of finding the unfaithful ones, ``kappa``; ``fit`` and ``rules``: the versions that
        were measured. None where the rules are others than those measured: nothing is known of them.
    """
    figures: dict[str, Any] = json.loads((_FILES / "figures.json").read_text(encoding="utf-8"))
    same = figures["rules"] == rules_version() and figures["fit"] == load_fit().version
    return figures if same else None


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
