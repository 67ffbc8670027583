"""One verdict for people: trust the judge, use it with caution, or do not use it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from misslink.calibration.rules import RULES, VERDICTS, Rule
from misslink.errors import InputError, known_names
from misslink.files.jsonl import read_text
from misslink.files.numbers import finite

__all__ = ["RULES", "VERDICTS", "Criteria", "Rule", "advise"]


_BAND = "band"


@dataclass(frozen=True)
class Criteria:
    """What is asked of a judge: the rules, and how often a call must be right.

    Parameters
    ----------
    rules : sequence of Rule
    band : float
        In (0.5, 1): probabilities at which calls are right less often form the uncertain band.
    """

    rules: tuple[Rule, ...] = RULES
    band: float = 0.6

    @classmethod
    def read(cls, path: str | Path) -> Criteria:
        """Read other limits from a TOML or YAML file; what it does not name stays.

        Its tables ``trust`` and ``caution`` hold limits by the rules' names, ``band`` stands
        beside them.

        Raises
        ------
        InputError
            The file cannot be read, names what there is not, or a limit cannot be.
        """
        path = Path(path)
        given = _document(path)
        rules = {rule.name: rule for rule in RULES}
        for verdict, limits in given.items():
            if verdict == _BAND:
                continue
            if verdict not in VERDICTS[1:]:
                hint = known_names(str(verdict), [*VERDICTS[1:], _BAND])
                raise InputError(f"there is no such table; {hint}", path=path, field=str(verdict))
            if not isinstance(limits, Mapping):
                raise InputError("this must be a table of limits", path=path, field=str(verdict))
            for name, limit in limits.items():
                field = f"{verdict}.{name}"
                if name not in rules:
                    hint = known_names(str(name), rules)
                    raise InputError(f"there is no such rule; {hint}", path=path, field=field)
                number = finite(limit)
                if number is None:
                    raise InputError("a limit is a number", path=path, field=field)
                rule = rules[name]
                rules[name] = (
                    replace(rule, trust=number)
                    if verdict == "trust"
                    else replace(rule, caution=number)
                )
        for rule in rules.values():
            _refuse_crossed(rule, path)
        band = finite(given.get(_BAND, cls.band))
        if band is None or not 1 / 2 < band < 1:
            raise InputError(
                "the share of calls that must be right lies between 0.5 and 1",
                path=path,
                field=_BAND,
            )
        return cls(tuple(rules.values()), band)


def advise(numbers: Mapping[str, float | None], criteria: Criteria) -> dict[str, Any]:
    """Weigh numbers by the rules.

    Parameters
    ----------
    numbers : mapping of str to (float or None)
        By the rules' names; None where not known.
    criteria : Criteria

    Returns
    -------
    dict
        ``verdict``; ``reasons``, sentences: what stands against a better verdict, worst first, or
        all that holds; ``checks``, every rule with its number, limits and verdict.
    """
    checks: list[dict[str, Any]] = []
    for rule in criteria.rules:
        number = numbers.get(rule.name)
        if number is None:
            met = "do not use" if rule.needed else None
            said = rule.unknown or f"{rule.name.replace('_', ' ')} is not known"
        else:
            met = rule.met(number)
            limit = rule.caution if met == "do not use" else rule.trust
            told = rule.written(number, beside=limit)
            says = rule.of_one if rule.of_one and number == 1 else rule.says
            said = says.format(value=told, wanted=_wanted(rule, met, number))
        checks.append(
            {
                "name": rule.name,
                "value": number,
                "trust": rule.trust,
                "caution": rule.caution,
                "at_most": rule.at_most,
                "met": met,
                "says": f"{said[:1].upper()}{said[1:]}.",
            }
        )
    known = [check for check in checks if check["met"] is not None]
    verdict = min((check["met"] for check in known), key=VERDICTS.index, default="do not use")
    against = [check for check in known if check["met"] != "trust"] or known
    against.sort(key=lambda check: VERDICTS.index(check["met"]))
    return {
        "verdict": verdict,
        "reasons": [check["says"] for check in against],
        "checks": checks,
    }


def _wanted(rule: Rule, met: str, number: float) -> str:
    """The limit that was missed, or that which was kept."""
    limit = rule.caution if met == "do not use" else rule.trust
    if limit is None:
        return "that is no hindrance"
    side = f"{'at most' if rule.at_most else 'at least'} {rule.written(limit, beside=number)}"
    if met == "trust":
        return f"{side} is asked to trust it"
    use = "use it at all" if met == "do not use" else "trust it"
    return f"{side} is needed to {use}"


def _document(path: Path) -> Mapping[str, Any]:
    import yaml

    text = read_text(path)
    try:
        given = tomllib.loads(text) if path.suffix == ".toml" else yaml.safe_load(text)
    except (tomllib.TOMLDecodeError, yaml.YAMLError, RecursionError) as problem:
        first = str(problem).splitlines()[0] if str(problem) else type(problem).__name__
        form = "TOML" if path.suffix == ".toml" else "YAML"
        raise InputError(f"this is not {form} ({first})", path=path) from None
    if not isinstance(given, Mapping):
        raise InputError("it needs the tables trust and caution, each with limits", path=path)
    return given


def _refuse_crossed(rule: Rule, path: Path) -> None:
    """Raise where it is harder to use a judge with caution than to trust it."""
    trust, caution = rule.trust, rule.caution
    if trust is None or caution is None:
        return
    if trust > caution if rule.at_most else trust < caution:
        raise InputError(
            f"trust asks for {trust:g} and caution for {caution:g}; caution must ask for less",
            path=path,
            field=rule.name,
        )
