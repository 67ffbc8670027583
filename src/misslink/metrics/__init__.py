"""Judged metrics of the generation and of the answer."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["GOOD_SHARES"]


GOOD_SHARES: Mapping[str, str] = {"faithfulness": "fully_faithful", "correctness": "correct"}
