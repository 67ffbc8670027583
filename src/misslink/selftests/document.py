"""``selftest.json`` as a typed model."""

from __future__ import annotations

from functools import partial

from misslink.calibration_document import JudgeUsage
from misslink.document_model import Document, Result
from misslink.documents import document_of
from misslink.types import Estimate


class SelftestKind(Document):
    """Mutants of one kind; ``named``: owners of the found ones; ``cases`` that went wrong.

    A fault has an ``expected_owner``, and may be ``found``; a harmless change may be a
    ``false_alarm``.
    """

    n: int
    found: Estimate | None
    owner_right: Estimate | None
    false_alarm: Estimate | None
    expected_owner: str | None
    named: dict[str, int]
    near: Estimate | None
    far: Estimate | None
    cases: tuple[str, ...]


class SelftestFigures(Document):
    """What a judge found of planted faults, over all and by kind."""

    mutants: int
    harmless: int
    not_judged: int
    found: Estimate
    owner_right: Estimate
    false_alarm: Estimate
    kinds: dict[str, SelftestKind]
    left_out: dict[str, int]


class Selftest(SelftestFigures, Result):
    """``selftest.json``: of a judge, on the good cases of a run."""

    judge: str
    judge_identity: dict[str, str]
    created: str
    run: str | None
    seed: int | None
    cases: int
    usage: JudgeUsage


selftest_of = partial(document_of, name="selftest", model=Selftest)
