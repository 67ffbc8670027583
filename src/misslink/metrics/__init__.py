"""Judged metrics of the generation and of the answer."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["GOOD_SHARES", "NAMED_PARTS", "SOURCE_METRICS"]


GOOD_SHARES: Mapping[str, str] = {"faithfulness": "fully_faithful", "correctness": "correct"}
# Parts of verdicts that are numbers of their own, and what these are called.
NAMED_PARTS: Mapping[str, Mapping[str, str]] = {
    "correctness": {"precision": "correctness_precision", "recall": "correctness_recall"},
    "abstention": {name: name for name in ("over_refused", "should_have_abstained")},
    "citation_correctness": {"recall": "citation_recall"},
}
# The metric whose verdicts such a number comes from.
SOURCE_METRICS: Mapping[str, str] = {
    **{share: metric for metric, share in GOOD_SHARES.items()},
    **{name: metric for metric, parts in NAMED_PARTS.items() for name in parts.values()},
}
