"""What calibration against human labels found about a judge, as linking needs it."""

from __future__ import annotations

import datetime as dt
import json
import logging
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from misslink.errors import InputError
from misslink.files.numbers import finite
from misslink.types import Estimate, Run

__all__ = ["OLD", "Calibration", "calibration_document", "changed_since", "check_judge", "days_old"]

_log = logging.getLogger(__name__)

_WAY_OUT = (
    'give a JSON object with "metric", "threshold" and, as estimates, "agreement.sensitivity" and '
    '"agreement.specificity" of the judge against human labels'
)

_LINKED = "faithfulness"
OLD = 90  # days after which a judge behind an address may be another one


@dataclass(frozen=True)
class Calibration:
    """How far a judge's word on one metric is to be believed.

    Parameters
    ----------
    metric : str
    threshold : float
        The probability from which on a case is called good.
    sensitivity, specificity : Estimate
        Share of truly good cases that the judge calls good, of truly bad ones that it calls bad.
    uncertain_band : pair of float or None
        Probabilities of the good label between which the judge is not to be believed, both
        included. None: no band was found.
    """

    metric: str
    threshold: float
    sensitivity: Estimate
    specificity: Estimate
    uncertain_band: tuple[float, float] | None = None

    @classmethod
    def read(cls, path: str | Path) -> Calibration:
        """Read a JSON object with the keys below; others may stand in it.

        ``metric``, ``threshold``, ``agreement.sensitivity`` and ``agreement.specificity`` (two
        Estimates; those of ``weighted`` in their place where there are), and where there is one
        ``uncertain_band`` (two probabilities).

        Raises
        ------
        InputError
            The file cannot be read, is not such a document, or a number in it cannot be.
        """
        return cls.of(calibration_document(path), path)

    @classmethod
    def of(cls, document: Mapping[str, Any], path: str | Path) -> Calibration:
        """Take from a document, as `calibration_document` read it from `path`, what is needed.

        Of documents of several metrics, as a run keeps them, it is faithfulness's wherever it
        stands: causes and risks rest on it.

        Raises
        ------
        InputError
            It lacks one of the keys that `read` names, or a number in it cannot be.
        """
        others = document.get("others")
        if document.get("metric") != _LINKED and isinstance(others, Mapping):
            linked = others.get(_LINKED)
            document = linked if isinstance(linked, Mapping) else document
        metric = document.get("metric")
        if not isinstance(metric, str) or not metric:
            raise InputError(f"names no metric: {_WAY_OUT}", path=path, field="metric")
        threshold = _share(document.get("threshold"))
        if threshold is None:
            raise InputError(
                f"must be a number from 0 to 1: {_WAY_OUT}", path=path, field="threshold"
            )
        agreement = document.get("agreement")
        agreement = agreement if isinstance(agreement, Mapping) else {}
        weighted = document.get("weighted")  # where labelled cases were drawn with unequal chances
        if isinstance(weighted, Mapping):
            agreement = {**agreement, **weighted}
        return cls(
            metric=metric,
            threshold=threshold,
            sensitivity=_rate(agreement, "sensitivity", path),
            specificity=_rate(agreement, "specificity", path),
            uncertain_band=_band(document.get("uncertain_band"), path),
        )

    @classmethod
    def of_run(cls, run: Run) -> Calibration | None:
        """Return what a run was linked with; None where it was not calibrated.

        Raises
        ------
        InputError
            The manifest holds one that cannot be read.
        """
        known = run.manifest.get("calibration")
        if known is None:
            return None
        try:
            return TypeAdapter(cls).validate_python(known)
        except ValidationError as invalid:
            where = ".".join(map(str, invalid.errors()[0]["loc"]))
            raise InputError(
                f"the run's manifest.json has a calibration that cannot be read (at "
                f"{where or 'all'}); evaluate the app again"
            ) from None

    def document(self) -> dict[str, Any]:
        """Return it as JSON values, as a run's manifest holds it."""
        document: dict[str, Any] = TypeAdapter(Calibration).dump_python(self, mode="json")
        return document

    def uncertain(self, probability: float) -> bool:
        """Whether a probability of the good label lies where the judge is not to be believed."""
        if self.uncertain_band is None:
            return False
        low, high = self.uncertain_band
        return low <= probability <= high


def calibration_document(path: str | Path) -> dict[str, Any]:
    """Read a calibration as it was written, whatever stands in it, for a run to keep.

    Raises
    ------
    InputError
        The file cannot be read, or is no JSON object of finite numbers.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
        document = json.loads(text, parse_constant=_finite, parse_float=_finite)
    except OSError as error:
        why = error.strerror or "cannot be read"
        raise InputError(f"{why}: {_WAY_OUT}", path=path) from None
    except UnicodeDecodeError:
        raise InputError(f"is not UTF-8 text: {_WAY_OUT}", path=path) from None
    except (json.JSONDecodeError, RecursionError):
        raise InputError(f"is not a JSON document: {_WAY_OUT}", path=path) from None
    except ValueError as error:
        raise InputError(f"{error}: {_WAY_OUT}", path=path) from None
    if not isinstance(document, dict):
        raise InputError(f"holds no calibration: {_WAY_OUT}", path=path)
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
    """Refuse a calibration of another judge or prompt; tell its age and what else has changed.

    Parameters
    ----------
    document : mapping
        As `calibration_document` read it from `path`, with those of further metrics that it
        holds. What it does not record is not checked.
    judge : str
        Who will be asked, as a run's manifest names it.
    prompts : mapping of str to str
        SHA-256 by name of the prompts that will be asked with.
    identity : mapping of str to str or None
        What else the judge depends on, as a run's manifest lists its inputs.
    now : datetime or None
        With a time zone; None: the present.

    Raises
    ------
    InputError
        It is of another judge, or one of its prompts has changed since.
    """
    others = document.get("others")
    rest = others.values() if isinstance(others, Mapping) else ()
    all_of = [one for one in (document, *rest) if isinstance(one, Mapping)]
    for one in all_of:
        _refuse_other(one, path, judge, prompts)
    moment = now or dt.datetime.now(dt.UTC)
    told = [note for one in all_of for note in _drifted(one, judge, identity or {}, moment)]
    for note in dict.fromkeys(told):  # what is true of every metric is told once
        _log.warning("%s: %s", path, note)


def _refuse_other(
    document: Mapping[str, Any], path: str | Path, judge: str, prompts: Mapping[str, str]
) -> None:
    known = document.get("judge")
    again = "calibrate anew on a run of it, or leave --calibration out"
    if isinstance(known, str) and known != judge:
        raise InputError(
            f"this calibration is of the judge {known}, and {judge} is asked; {again}",
            path=path,
            field="judge",
        )
    hashes = document.get("prompts")
    for name, sha256 in (hashes if isinstance(hashes, Mapping) else {}).items():
        if prompts.get(name, sha256) != sha256:
            raise InputError(
                f"the prompt '{name}' is not the one that this calibration was made with; {again}",
                path=path,
                field=f"prompts.{name}",
            )


def _drifted(
    document: Mapping[str, Any], judge: str, identity: Mapping[str, str], now: dt.datetime
) -> Iterator[str]:
    """Why a calibration may not hold any more, or never did."""
    if document.get("judge") is None:
        yield f"names no judge; it is taken to be of {judge}"
    for name, before, value in changed_since(document, identity):
        yield (
            f"{name} was {before} when the judge was calibrated, and is {value}; label some new "
            "answers"
        )
    days = days_old(document, now)
    if days is not None and days >= OLD:
        yield f"is {days} days old; the judge may have drifted since"
    if document.get("verdict") == "do not use":
        yield "by it this judge is not to be used"


def changed_since(
    document: Mapping[str, Any], identity: Mapping[str, Any]
) -> Iterator[tuple[str, str, str]]:
    """What the judge depends on that was otherwise when it was calibrated.

    Parameters
    ----------
    document : mapping
        A calibration.
    identity : mapping
        The inputs of a run, as its manifest lists them; the judge's are among them.

    Yields
    ------
    tuple of str
        Its name, what it was and what it is.
    """
    before = document.get("judge_identity")
    for name, was in before.items() if isinstance(before, Mapping) else ():
        if name in identity and identity[name] != was:
            yield name.removeprefix("judge_identity."), str(was), str(identity[name])


def days_old(document: Mapping[str, Any], now: dt.datetime) -> int | None:
    """How many days before `now`, which has a time zone, a calibration was made; None: unknown."""
    created = document.get("created")
    if not isinstance(created, str):
        return None
    try:
        made = dt.datetime.fromisoformat(created)
    except ValueError:
        return None
    return (now - (made if made.tzinfo else made.replace(tzinfo=dt.UTC))).days


def _finite(written: str) -> float:
    number = float(written)
    if not math.isfinite(number):
        raise ValueError(f"holds {written}, which is no finite number")
    return number


def _rate(agreement: Mapping[str, Any], name: str, path: str | Path) -> Estimate:
    field = f"agreement.{name}"
    try:
        found = Estimate.model_validate(agreement.get(name))
    except ValidationError:
        raise InputError(f"must be an estimate: {_WAY_OUT}", path=path, field=field) from None
    if found.value is not None and (_share(found.value) is None or not found.n):
        raise InputError(
            f"must be a share of at least one case: {_WAY_OUT}", path=path, field=field
        )
    return found


def _band(band: object, path: str | Path) -> tuple[float, float] | None:
    if band is None:
        return None
    ends = [_share(end) for end in band] if isinstance(band, list) else []
    match ends:
        case [float(low), float(high)] if low <= high:
            return low, high
    raise InputError(
        "must be two probabilities, the lower one first, such as [0.35, 0.6], or null",
        path=path,
        field="uncertain_band",
    )


def _share(value: object) -> float | None:
    """Return the number if it is one from 0 to 1."""
    number = finite(value)
    return number if number is not None and 0 <= number <= 1 else None
