"""The judge's error rates and uncertain band, read from a calibration against human labels."""

from __future__ import annotations

import datetime as dt
import json
import logging
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from misslink.calibration_document import CalibrationDocument
from misslink.document_model import parse_document
from misslink.errors import InputError
from misslink.io.jsonl import read_text
from misslink.types import Estimate, Run

_log = logging.getLogger(__name__)

_EXPECTED_FORMAT = (
    'give a JSON object with "metric", "threshold" and, as estimates, "agreement.sensitivity" and '
    '"agreement.specificity" of the judge against human labels'
)

_LINKED_METRIC = "faithfulness"
STALE_AFTER_DAYS = 90  # days after which a judge behind an address may be another one


def _check_rate(rate: Estimate) -> Estimate:
    if rate.value is not None and not (0 <= rate.value <= 1 and rate.n):
        raise ValueError
    return rate


def _check_band(band: tuple[float, float]) -> tuple[float, float]:
    if band[0] > band[1]:
        raise ValueError
    return band


_Share = Annotated[float, Field(strict=True, ge=0, le=1)]
_Rate = Annotated[Estimate, AfterValidator(_check_rate)]
_Band = Annotated[tuple[_Share, _Share], AfterValidator(_check_band)]
_NO_RATE = f"must be an estimate of a share of at least one case: {_EXPECTED_FORMAT}"
# The key and the sentence of each field that can be wrong.
_WRONG = {
    "metric": ("metric", f"names no metric: {_EXPECTED_FORMAT}"),
    "threshold": ("threshold", f"must be a number from 0 to 1: {_EXPECTED_FORMAT}"),
    "sensitivity": ("agreement.sensitivity", _NO_RATE),
    "specificity": ("agreement.specificity", _NO_RATE),
    "uncertain_band": (
        "uncertain_band",
        "must be two probabilities, the lower one first, such as [0.35, 0.6], or null",
    ),
}


class Calibration(BaseModel):
    """The error rates of a judge on one metric.

    Parameters
    ----------
    metric : str
    threshold : float
        The probability from which on a case is called good.
    sensitivity, specificity : Estimate
        Share of truly good cases that the judge calls good, of truly bad ones that it calls bad.
    uncertain_band : pair of float or None
        Probabilities of the good label, both included, between which a verdict is inconclusive.
    """

    model_config = ConfigDict(frozen=True)

    metric: str = Field(min_length=1)
    threshold: _Share
    sensitivity: _Rate
    specificity: _Rate
    uncertain_band: _Band | None = None

    @classmethod
    def from_document(cls, document: Mapping[str, Any], path: str | Path) -> Calibration:
        """Take the calibration of faithfulness, else the document's own, from a document.

        Read are ``metric``, ``threshold``, ``agreement.sensitivity`` and
        ``agreement.specificity`` (two Estimates), and optionally ``uncertain_band`` (two probabilities); other keys are ignored.

        Raises
        ------
        InputError
            It is no such document, or a number is out of range.
        """
        others = document.get("others")
        if document.get("metric") != _LINKED_METRIC and isinstance(others, Mapping):
            document = others.get(_LINKED_METRIC, document)
        given = document.get("agreement")
        rates = given if isinstance(given, Mapping) else {}
        values = {name: rates.get(name, document.get(name)) for name in cls.model_fields}
        try:
            return cls.model_validate(values)
        except ValidationError as invalid:
            field, problem = _WRONG[str(invalid.errors()[0]["loc"][0])]
            raise InputError(problem, path=path, field=field) from None

    @classmethod
    def of_run(cls, run: Run) -> Calibration | None:
        """Return the calibration that a run was linked with; None where it has none."""
        stored = run.manifest.get("calibration")
        try:
            return None if stored is None else cls.model_validate(stored)
        except ValidationError as invalid:
            where = ".".join(map(str, invalid.errors()[0]["loc"]))
            raise InputError(
                f"the run's manifest.json has a calibration that cannot be read (at "
                f"{where or 'all'}); evaluate the app again"
            ) from None

    def is_uncertain(self, probability: float) -> bool:
        """Whether a probability of the good label is within the uncertain band."""
        low, high = self.uncertain_band or (math.inf, -math.inf)
        return low <= probability <= high


def read_calibration_document(path: str | Path) -> dict[str, Any]:
    """Read a calibration document as it was written.

    Raises
    ------
    InputError
        The file cannot be read, or is no JSON object of finite numbers.
    """
    text = read_text(Path(path))
    try:
        document = json.loads(text, parse_constant=_parse_finite, parse_float=_parse_finite)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"is not a JSON document ({error}): {_EXPECTED_FORMAT}", path=path
        ) from None
    if not isinstance(document, dict):
        raise InputError(f"holds no calibration: {_EXPECTED_FORMAT}", path=path)
    return document


def check_judge(
    document: Mapping[str, Any],
    path: str | Path,
    *,
    judge: str,
    prompts: Mapping[str, str],
    identity: Mapping[str, str] | None = None,
    now: dt.datetime | None = None,
) -> None:
    """Refuse a calibration of another judge or prompt; warn about its age and other changes.

    Parameters
    ----------
    document : mapping
        As `read_calibration_document` read it from `path`. What it does not record is not checked.
    judge : str
        The judge of this evaluation, as a run's manifest names it.
    prompts : mapping of str to str
        SHA-256 of its prompts by name.
    identity : mapping of str to str or None
        What else the judge depends on, as a run's manifest lists its inputs.
    now : datetime or None
        With a time zone; None: the present.

    Raises
    ------
    InputError
        It is of another judge, or one of its prompts has changed since.
    """
    every = parse_document(CalibrationDocument, document, path).by_metric().values()
    again = "calibrate again on a run of it, or leave --calibration out"
    for each in every:
        if each.judge and each.judge != judge:
            raise InputError(
                f"this calibration is of the judge {each.judge}, and {judge} is asked; {again}",
                path=path,
                field="judge",
            )
        for name, sha256 in each.prompts.items():
            if prompts.get(name, sha256) != sha256:
                raise InputError(
                    f"the prompt '{name}' is not the one that this calibration was made with; {again}",
                    path=path,
                    field=f"prompts.{name}",
                )
    moment = now or dt.datetime.now(dt.UTC)
    notes = [n for each in every for n in _validity_warnings(each, judge, identity or {}, moment)]
    for note in dict.fromkeys(notes):  # what is true of every metric is told once
        _log.warning("%s: %s", path, note)


def _validity_warnings(
    document: CalibrationDocument, judge: str, identity: Mapping[str, str], now: dt.datetime
) -> Iterator[str]:
    """Why a calibration may no longer be valid."""
    if not document.judge:
        yield f"names no judge; it is taken to be of {judge}"
    for name, before, value in identity_changes(document, identity):
        yield (
            f"{name} was {before} when the judge was calibrated, and is {value}; label some new "
            "answers"
        )
    days = age_in_days(document, now)
    if days is not None and days >= STALE_AFTER_DAYS:
        yield f"is {days} days old; the judge may have drifted since"
    if document.verdict == "do not use":
        yield "says not to use this judge"
    elif document.verdict == "not enough labels":
        yield "has too few labels to say whether to use this judge"


def identity_changes(
    document: CalibrationDocument, identity: Mapping[str, Any]
) -> Iterator[tuple[str, str, str]]:
    """Yield name, old and new value of every input of the judge that changed since calibration.

    `identity` are the inputs of a run, as its manifest lists them.
    """
    for name, was in document.judge_identity.items():
        if name in identity and identity[name] != was:
            yield name.removeprefix("judge_identity."), str(was), str(identity[name])


def age_in_days(document: CalibrationDocument, now: dt.datetime) -> int | None:
    """How many days before `now`, which has a time zone, a calibration was made; None: unknown."""
    try:
        made = dt.datetime.fromisoformat(document.created)
    except ValueError:
        return None
    return (now - (made if made.tzinfo else made.replace(tzinfo=dt.UTC))).days


def _parse_finite(written: str) -> float:
    number = float(written)
    if not math.isfinite(number):
        raise ValueError(f"holds {written}, which is not a finite number")
    return number
