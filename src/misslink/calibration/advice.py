"""One verdict for people: trust the judge, use it with caution, or do not use it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from misslink.errors import InputError, known_names
from misslink.files.jsonl import read_text
from misslink.files.numbers import finite

__all__ = ["RULES", "VERDICTS", "Criteria", "Rule", "advise"]

_DIGITS = 5  # more than are usually written, to tell a number from the limit that it misses
VERDICTS = ("do not use", "caution", "trust")  # worst first


@dataclass(frozen=True)
class Rule:
    """What a number must be.

    Parameters
    ----------
    name : str
        As the criteria file names it.
    says : str
        A sentence with {value} and {wanted}.
    trust, caution : float or None
        The limit for either verdict. None: this number alone never stands against it.
    at_most : bool
        Whether the limits are the largest that do, not the least.
    needed : bool
        Whether a missing number stands against every use; else it is passed over.
    form : {'count', 'share', 'decimal'}
        How the number is written.
    unknown : str
        What is said where the number is not known; "" says so by the rule's name.
    """

    name: str
    says: str
    trust: float | None
    caution: float | None
    at_most: bool = False
    needed: bool = True
    form: str = "decimal"
    unknown: str = ""

    def met(self, number: float) -> str:
        """The best verdict that a number allows."""
        for verdict, limit in (("trust", self.trust), ("caution", self.caution)):
            if limit is None or (number <= limit if self.at_most else number >= limit):
                return verdict
        return "do not use"

    def written(self, number: float, beside: float | None = None) -> str:
        """A number as the sentence has it; with more digits where `beside` would look the same."""
        if self.form == "count":
            return f"{number:,.0f}"
        for more in range(_DIGITS):
            text, other = (self._rounded(one, more) for one in (number, beside or 0.0))
            if beside is None or number == beside or text != other:
                break
        return text

    def _rounded(self, number: float, more: int) -> str:
        if self.form == "share":
            return f"{100 * number:.{more}f} %"
        return f"{number:.{2 + more}f}"


RULES = (
    Rule("labels", "{value} labelled cases; {wanted}", 100, 30, form="count"),
    Rule("rarer_label", "cases of the rarer label: {value}; {wanted}", 20, 10, form="count"),
    Rule("kappa", "kappa of judge and people is {value}; {wanted}", 0.6, 0.2),
    Rule(
        "balanced_accuracy_low",
        "balanced accuracy may be as low as {value}, and 50 % is chance; {wanted}",
        0.7,
        0.5,
        form="share",
        unknown="balanced accuracy is not known, for which labels of both kinds are needed",
    ),
    Rule(
        "over_length",
        "the judge's AUROC is {value} above that of the answer's length; {wanted}",
        0.05,
        0.0,
        needed=False,
    ),
    Rule(
        "over_majority",
        "F1 of finding bad cases is {value} above saying the same of all; {wanted}",
        0.2,
        0.0,
        unknown="F1 of finding bad cases is not known: people and judge see none",
    ),
    Rule(
        "people_alpha",
        "people agree with each other at alpha {value}; {wanted}",
        0.667,
        0.2,
        needed=False,
    ),
    Rule(
        "failed",
        "{value} of labelled cases have no usable verdict; {wanted}",
        0.05,
        0.2,
        at_most=True,
        form="share",
    ),
    Rule(
        "calibration_error_low",
        "probabilities are off by {value} or more on average; {wanted}",
        0.15,
        None,
        at_most=True,
        needed=False,
    ),
    Rule(
        "biases",
        "{value} things that should not matter move the judge; {wanted}",
        0,
        None,
        at_most=True,
        needed=False,
        form="count",
    ),
    # Not every judge was audited, so these are not needed.
    Rule(
        "padding_flips_low",
        "{value} or more of the verdicts change when an answer is padded with what adds nothing;"
        " {wanted}",
        0.05,
        0.2,
        at_most=True,
        needed=False,
        form="share",
    ),
    Rule(
        "order_flips_low",
        "{value} or more of the verdicts change with the order of the passages; {wanted}",
        0.05,
        0.2,
        at_most=True,
        needed=False,
        form="share",
    ),
    Rule(
        "again_flips_low",
        "{value} or more of the verdicts change when the judge is asked again; {wanted}",
        0.05,
        0.2,
        at_most=True,
        needed=False,
        form="share",
    ),
)
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
            said = rule.says.format(value=told, wanted=_wanted(rule, met, number))
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
