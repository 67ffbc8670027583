"""The fitted coefficients of the embedded judges, read from ``embedded.json``."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from misslink.judging.embedded.lexical import Match

__all__ = ["CERTAIN", "Fit", "figures", "load_fit"]

CERTAIN = 0.5  # of the cut: what a claim's probability is scaled to where the rules refuse it


@dataclass(frozen=True)
class Fit:
    """A logistic fit of P(supported), and the cut from which a claim is called supported.

    Parameters
    ----------
    name : str
        'embedded' or 'embedded:minilm'.
    intercept : float
    weights : mapping of str to float
        By feature, in the features' order; positive, for every feature grows with doubt.
    cut : float
        In [0, 1].
    figures : mapping
        What was measured when it was fitted; see `figures`.
    """

    name: str
    intercept: float
    weights: Mapping[str, float]
    cut: float
    figures: Mapping[str, Any]

    @property
    def version(self) -> str:
        """A hash of what the verdicts depend on."""
        content = json.dumps([self.intercept, dict(self.weights), self.cut])
        return hashlib.sha256(content.encode()).hexdigest()[:12]

    def probability(self, match: Match, more: Sequence[float] = ()) -> float:
        """P(supported), in [0, 1].

        Parameters
        ----------
        match : Match
        more : sequence of float
            The features beyond the lexical ones, where the fit has some.

        Returns
        -------
        float
            Rounded to 6 digits. Below the cut, whatever the features, where the claim shares no
            word with the passages, contradicts them, or has a name, a number or an identifier that
            is in none.
        """
        values = (*match.features, *more)
        terms = (w * value for w, value in zip(self.weights.values(), values, strict=True))
        # Bounded, so that no input overflows.
        doubt = min(max(sum(terms, -self.intercept), -30.0), 30.0)
        probability = 1 / (1 + math.exp(doubt))
        if match.conflict is not None or match.invented or not match.shares_words:
            probability *= CERTAIN * self.cut
        return round(probability, 6)


@cache
def load_fit(name: str) -> Fit:
    """Return the committed fit of the judge `name`, 'embedded' or 'embedded:minilm'."""
    fitted = _read()["judges"][name]
    return Fit(
        name,
        intercept=fitted["intercept"],
        weights=fitted["weights"],
        cut=fitted["cut"],
        figures=fitted["figures"],
    )


def figures() -> dict[str, dict[str, Any]]:
    """What the fits reached, by judge, as measured when they were fitted.

    Returns
    -------
    dict
        For each judge: ``auroc`` and ``f1`` (of finding unfaithful answers) by cross-validation
        grouped by question, everything that is fitted being fitted within, with their standard
        deviations over repetitions; ``answers`` and ``unfaithful``, how many there were; ``note``,
        one line for people; ``begin_auroc``, on a set that nothing was fitted on.
    """
    return {name: dict(fitted["figures"]) for name, fitted in _read()["judges"].items()}


@cache
def _read() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(
        files("misslink.judging.embedded").joinpath("embedded.json").read_text(encoding="utf-8")
    )
    return content
