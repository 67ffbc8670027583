"""What differs between two runs beside the app: what makes their numbers less comparable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from misslink.deciding.numbers import number_in
from misslink.types import Run

__all__ = ["Circumstance", "circumstances"]

_IDENTITY = "judge_identity."
_SEVERAL = "levels 2 and 3 and the causes show the judges' difference as much as the answers'"
_JUDGED = "levels 2 and 3 and the causes may differ by that alone"


@dataclass(frozen=True)
class Circumstance:
    """Something that is not the same in both runs.

    Parameters
    ----------
    what : str
        Such as ``k`` or ``judge``.
    a, b : str
        What it is in each; "" where a run does not say.
    sentence : str
        What that means for the comparison.
    """

    what: str
    a: str
    b: str
    sentence: str


def circumstances(a: Run, b: Run, letters: tuple[str, str] = ("A", "B")) -> list[Circumstance]:
    """Return what differs between two runs beside what they are compared for.

    Parameters
    ----------
    a, b : Run
    letters : pair of str
        What the sentences call them.

    Returns
    -------
    list of Circumstance
        Empty where k, judge, prompts, calibration and version are the same and both runs are
        finished.
    """
    found = [
        _circumstance("misslink", _text(a, "misslink"), _text(b, "misslink"), letters,
                      "numbers may differ by the versions alone"),
        _circumstance("k", _k(a), _k(b), letters,
                      "rank metrics are compared at each of them, and the context is cut there "
                      "where the prompt was not seen"),
        *_judges(a, b, letters),
        *_prompts(a, b, letters),
        _circumstance("calibration", _calibration(a), _calibration(b), letters,
                      "verdicts within a calibrated judge's uncertain band decide no cause"),
    ]  # fmt: skip
    return [one for one in found if one is not None] + _unfinished(a, b, letters)


def _circumstance(
    what: str, a: str, b: str, letters: tuple[str, str], meaning: str
) -> Circumstance | None:
    if a == b:
        return None
    said = f"{what}: {a or 'none'} in {letters[0]}, {b or 'none'} in {letters[1]}; {meaning}."
    return Circumstance(what, a, b, said[:1].upper() + said[1:] if " " in what else said)


def _judges(a: Run, b: Run, letters: tuple[str, str]) -> list[Circumstance | None]:
    judges = _text(a, "judge"), _text(b, "judge")
    found = [_circumstance("judge", *judges, letters, _SEVERAL)]
    repeats = _asked(a, "repeats"), _asked(b, "repeats")
    found.append(_circumstance("samples a verdict", *repeats, letters, _JUDGED))
    if judges[0] == judges[1]:  # of another judge everything is different
        mine, others = _identity(a), _identity(b)
        found += [
            _circumstance(
                f"the judge's {part}", mine.get(part, ""), others.get(part, ""), letters, _JUDGED
            )
            for part in sorted({*mine, *others})
        ]
    return found


def _prompts(a: Run, b: Run, letters: tuple[str, str]) -> list[Circumstance | None]:
    mine, others = _by_name(a), _by_name(b)
    return [
        _circumstance(f"the prompt '{name}'", mine[name], others[name], letters, _JUDGED)
        for name in mine
        if name in others
    ]


def _unfinished(a: Run, b: Run, letters: tuple[str, str]) -> list[Circumstance]:
    counts = [number_in(run, "unfinished", 0) for run in (a, b)]
    told = [f"{n} in {letter}" for n, letter in zip(counts, letters, strict=True) if n]
    if not told:
        return []
    sentence = f"Verdicts are lacking ({', '.join(told)}): what they would say is not compared."
    return [Circumstance("lacking verdicts", str(counts[0]), str(counts[1]), sentence)]


def _text(run: Run, name: str) -> str:
    found = run.manifest.get(name)
    return found if isinstance(found, str) else ""


def _k(run: Run) -> str:
    return str(number_in(run, "k", 0) or "")  # no run has a k of 0


def _asked(run: Run, name: str) -> str:
    judging = _mapping(run.manifest.get("judging"))
    return str(judging[name]) if judging.get(name) is not None else "1"


def _identity(run: Run) -> dict[str, str]:
    inputs = _mapping(run.manifest.get("inputs"))
    return {
        name.removeprefix(_IDENTITY): str(value)
        for name, value in inputs.items()
        if name.startswith(_IDENTITY)
    }


def _by_name(run: Run) -> dict[str, str]:
    """Prompt name to its version and the beginning of its hash."""
    prompts = run.manifest.get("prompts")
    known = [_mapping(one) for one in prompts] if isinstance(prompts, list) else []
    return {
        str(one["name"]): f"version {one.get('version')}, {str(one.get('sha256'))[:8]}"
        for one in known
        if "name" in one
    }


def _calibration(run: Run) -> str:
    held = _mapping(run.manifest.get("calibration"))
    return f"of {held['metric']} at {held.get('threshold')}" if "metric" in held else ""


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
