"""What the share of good labels of a judged metric is called, where it is a number of its own."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["GOOD_SHARES"]

GOOD_SHARES: Mapping[str, str] = {"faithfulness": "faithful", "correctness": "correct"}
