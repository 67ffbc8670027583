"""Offline runs beside the live variants: where they point different ways, it is said."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from misslink.errors import InputError, known_names
from misslink.types import Estimate

__all__ = ["disagreements", "offline_of", "read_offline"]

_LEVELS = ("retrieval", "generation", "answer")
_SHOWN = ("recall@", "faithful", "correctness")  # of each level what is held against live


def read_offline(given: Sequence[str], variants: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Read run folders as the command line names them.

    Parameters
    ----------
    given : sequence of str
        VARIANT=FOLDER each.
    variants : sequence of str
        Those of the experiment.

    Returns
    -------
    dict
        Variant -> its run's name, judge and metrics (``recall@k``, ``faithful``, ``correctness``).

    Raises
    ------
    InputError
        One is written otherwise, names no variant or the same twice, or its folder holds no
        readable summary.json.
    """
    found: dict[str, dict[str, Any]] = {}
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
    runs: Mapping[str, Mapping[str, Any]], control: str, variant: str
) -> dict[str, dict[str, Any]]:
    """Hold a variant's run against control's: metric -> both estimates and the difference.

    The interval combines both (Newcombe's square-and-add, for independent runs); over the same
    cases ``misslink compare`` is sharper.
    """
    if control not in runs or variant not in runs:
        return {}
    first, second = runs[control]["metrics"], runs[variant]["metrics"]
    return {
        name: {
            "control": first[name],
            "variant": second[name],
            "difference": _difference(first[name], second[name]).model_dump(),
        }
        for name in first
        if name in second
    }


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


def _read(folder: Path) -> dict[str, Any]:
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
    return {"run": shown_path(folder), "judge": str(judge), "metrics": metrics}
