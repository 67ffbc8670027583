"""Judges: what an outside judge needs."""

from __future__ import annotations

from misslink.judge.backends.custom import EntailmentJudge
from misslink.judge.protocol import Ask, Judge, JudgeInfo, Reply

__all__ = ["Ask", "EntailmentJudge", "Judge", "JudgeInfo", "Reply"]
