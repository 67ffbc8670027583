"""``selftest.json`` as a typed model."""

from __future__ import annotations

from functools import partial

from pydantic import Field

from misslink.document_model import NOT_COMPUTED, Document, Result
from misslink.documents import JudgeUsage, document_of
from misslink.types import Estimate


class SelftestKind(Document):
    """Mutants of one kind; ``named``: owners of the found ones; ``cases`` that went wrong."""

    n: int = 0
    found: Estimate | None = None
    owner_right: Estimate | None = None
    false_alarm: Estimate | None = None
    expected_owner: str = ""
    named: dict[str, int] = Field(default={})
    near: Estimate | None = None
    far: Estimate | None = None
    cases: tuple[str, ...] = ()


class Selftest(Result):
    """``selftest.json``: what a judge found of planted faults, by kind."""

    judge: str = ""
    judge_identity: dict[str, str] = Field(default={})
    created: str = ""
    run: str = ""
    seed: int | None = None
    cases: int = 0
    mutants: int = 0
    harmless: int = 0
    not_judged: int = 0
    found: Estimate = NOT_COMPUTED
    owner_right: Estimate = NOT_COMPUTED
    false_alarm: Estimate = NOT_COMPUTED
    kinds: dict[str, SelftestKind] = Field(default={})
    left_out: dict[str, int] = Field(default={})
    usage: JudgeUsage = JudgeUsage()


selftest_of = partial(document_of, name="selftest", model=Selftest)
