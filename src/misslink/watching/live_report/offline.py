"""Offline runs beside the live variants: where they point different ways, it is said."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from misslink.deciding.values import value_of
from misslink.errors import InputError, known_names
from misslink.files.reading import read_whole
from misslink.stats import paired_difference
from misslink.types import Estimate

__all__ = ["Offline", "disagreements", "offline_of", "read_offline"]

_LEVELS = ("retrieval", "generation", "answer")
_SHOWN = ("recall@", "faithful", "correctness")  # of each level what is held against live


@dataclass(frozen=True)
class Offline:
    """A variant's run.

    Parameters
    ----------
    about : mapping
        Its name, judge and metrics, as the report shows them.
    questions : mapping of str to str
        Case id to question; empty where only a summary is at hand.
    values : mapping of str to mapping of str to float or None
        Metric to case id to a value in [0, 1].
    """

    about: Mapping[str, Any]
    questions: Mapping[str, str]
    values: Mapping[str, Mapping[str, float | None]]


def read_offline(given: Sequence[str], variants: Sequence[str]) -> dict[str, Offline]:
    """Read run folders as the command line names them.

    Parameters
    ----------
    given : sequence of str
        VARIANT=FOLDER each.
    variants : sequence of str
        Those of the experiment.

    Returns
    -------
    dict of str to Offline
        Of each variant; its metrics are ``recall@k``, ``faithful`` and ``correctness``.

    Raises
    ------
    InputError
        One is written otherwise, names no variant or the same twice, or its folder holds no
        readable summary.json.
    """
    found: dict[str, Offline] = {}
    for text in given:
        name, sign, folder = text.partition("=")
        if not sign or not name or not folder:
            raise InputError(f"--offline {text} cannot be read: write VARIANT=FOLDER of a run")
        if name not in variants:
            raise InputError(
                f"--offline names '{name}', no variant of this experiment; "
                + known_names(name, variants)
            )
        if name in found:
            raise InputError(f"--offline names variant '{name}' twice; name each once")
        found[name] = _read(Path(folder))
    return found


def offline_of(
    runs: Mapping[str, Offline], control: str, variant: str
) -> dict[str, dict[str, Any]]:
    """Hold a variant's run against control's: metric -> both estimates and the difference.

    Where both runs answered the same questions the difference is paired, case by case, as that of
    ``misslink compare``; else its interval combines both (Newcombe's square-and-add, for
    independent runs), which is wider.
    """
    if control not in runs or variant not in runs:
        return {}
    one, two = runs[control], runs[variant]
    first, second = one.about["metrics"], two.about["metrics"]
    return {
        name: {
            "control": first[name],
            "variant": second[name],
            "difference": (
                _paired(one, two, name) or _difference(first[name], second[name])
            ).model_dump(),
        }
        for name in first
        if name in second
    }


def _paired(one: Offline, two: Offline, name: str) -> Estimate | None:
    """The difference over the same questions; None where the runs have others, or none at hand."""
    if not one.questions or one.questions != two.questions:
        return None
    if name not in one.values or name not in two.values:
        return None
    sides = ([run.values[name].get(case) for case in one.questions] for run in (one, two))
    return paired_difference(*sides).difference


def disagreements(
    offline: Mapping[str, Mapping[str, Any]],
    live: Mapping[str, Mapping[str, Any]],
    control: str,
    variant: str,
) -> list[dict[str, Any]]:
    """Return where offline and live point different ways.

    Parameters
    ----------
    offline : mapping
        As `offline_of` has it; more is better of all.
    live : mapping of str to mapping
        The user metrics of the comparison.
    control, variant : str

    Returns
    -------
    list of dict
        ``is_clear``: both intervals exclude no difference; otherwise chance may be why.
    """
    found = []
    for name, off in offline.items():
        for metric, on in live.items():
            there, here = off["difference"], on["always_valid"]["difference"]
            sign = 1 if on["better"] == "high" else -1
            if None in (there["value"], here["value"]):
                continue
            if there["value"] * here["value"] * sign >= 0:
                continue
            found.append(
                {
                    "offline": name,
                    "live": metric,
                    "offline_winner": variant if there["value"] > 0 else control,
                    "live_winner": variant if here["value"] * sign > 0 else control,
                    "offline_difference": there,
                    "live_difference": here,
                    "unit": on["unit"],
                    "variant": variant,
                    "is_clear": _excludes_none(there) and _excludes_none(here),
                }
            )
    return sorted(found, key=lambda one: not one["is_clear"])


def _excludes_none(found: Mapping[str, Any]) -> bool:
    low, high = found["low"], found["high"]
    return low is not None and high is not None and (low > 0 or high < 0)


def _difference(first: Mapping[str, Any], second: Mapping[str, Any]) -> Estimate:
    one, two = Estimate.model_validate(dict(first)), Estimate.model_validate(dict(second))
    count = one.n + two.n
    if one.value is None or two.value is None:
        reason = one.reason or two.reason or "one run has no value"
        return Estimate.missing(reason, n=count, method="square and add")
    value = two.value - one.value
    if one.low is None or one.high is None or two.low is None or two.high is None:
        return Estimate(
            value=value,
            low=None,
            high=None,
            n=count,
            method="square and add",
            reason="one run has no interval",
        )
    below = math.hypot(two.value - two.low, one.high - one.value)
    above = math.hypot(two.high - two.value, one.value - one.low)
    return Estimate(
        value=value, low=value - below, high=value + above, n=count, method="square and add"
    )


def _read(folder: Path) -> Offline:
    from misslink.manifest import shown_path

    path = folder / "summary.json"
    try:
        summary = json.loads(path.read_text(encoding="utf-8"))
        metrics = {
            name: Estimate.model_validate(value).model_dump()
            for level in _LEVELS
            for name, value in (summary.get(level) or {}).items()
            if name.startswith(_SHOWN[0]) or name in _SHOWN
        }
        judge = summary["judge"]
    except OSError as problem:
        raise InputError(
            f"no run can be read here ({problem.strerror}); name a folder that misslink evaluate "
            "wrote",
            path=path,
        ) from None
    except (ValueError, TypeError, KeyError, AttributeError):
        raise InputError(
            "this is no summary of a run; name a folder that misslink evaluate wrote", path=path
        ) from None
    about = {"run": shown_path(folder), "judge": str(judge), "metrics": metrics}
    if not (folder / "manifest.json").is_file():  # a summary that was kept alone
        return Offline(about, {}, {})
    run = read_whole(folder)
    of_case = {name: value_of(run, name).of_case for name in metrics}
    return Offline(
        about,
        {case.id: case.question for case in run.cases},
        {name: values for name, values in of_case.items() if values is not None},
    )
