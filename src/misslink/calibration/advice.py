"""Advise whether to trust the judge: rules, criteria files and audit results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from misslink.calibration.judge_accuracy import TARGET_RATE
from misslink.calibration.verdicts import MetricVerdicts
from misslink.calibration_document import Audit, CalibrationAudit, TrustCheck
from misslink.errors import InputError, known_names
from misslink.io.config_files import read_toml, read_yaml
from misslink.io.numbers import as_finite
from misslink.render.calibration_sentences import describe_trust_check
from misslink.render.format import as_sentence
from misslink.types import Reason

TRUST_LEVELS = ("do not use", "caution", "trust")  # worst first
TOO_FEW = "not enough labels"  # nothing is known of the judge, neither good nor bad
_BAND_FIELD = "band"


@dataclass(frozen=True)
class TrustRule:
    """The limits of one number.

    Parameters
    ----------
    name : str
        As the criteria file names it.
    trust, caution : float
        The limit for either level. A caution of None: this number alone never rules all use out.
    at_most : bool
        Whether the limits are maxima, not minima.
    needed : bool
        Whether a missing number rules out every use; otherwise it is skipped.
    """

    name: str
    trust: float
    caution: float | None
    at_most: bool = False
    needed: bool = True

    def level(self, number: float) -> str:
        """Return the best level that a number allows."""
        for level, limit in (("trust", self.trust), ("caution", self.caution)):
            if limit is None or (number <= limit if self.at_most else number >= limit):
                return level
        return "do not use"

    def check(self, number: float | None) -> TrustCheck:
        """Compare a number with the limits; None is not known."""
        met = "do not use" if self.needed else None
        if number is not None:
            met = self.level(number)
        decisive = self.trust
        if met == "do not use" and self.caution is not None:
            decisive = self.caution
        sentence = describe_trust_check(self.name, number, decisive, met, at_most=self.at_most)
        return TrustCheck(
            name=self.name,
            value=number,
            trust=self.trust,
            caution=self.caution,
            at_most=self.at_most,
            met=met,
            says=as_sentence(sentence),
        )


_FLIPS = partial(TrustRule, trust=0.05, caution=0.2, at_most=True, needed=False)
TRUST_RULES = (
    TrustRule("labels", 100, 30),
    TrustRule("rarer_label", 20, 10),
    # By the lower end of an interval: what the labels show, and not what they happen to say.
    TrustRule("kappa_low", 0.4, 0.0),
    TrustRule("balanced_accuracy_low", 0.7, 0.5),
    TrustRule("over_length_low", 0.0, None, needed=False),
    TrustRule("over_majority_low", 0.1, None),
    TrustRule("people_alpha_low", 0.5, 0.0, needed=False),
    TrustRule("failed", 0.05, 0.2, at_most=True),
    TrustRule("calibration_error_low", 0.15, None, at_most=True, needed=False),
    TrustRule("biases", 0, None, at_most=True, needed=False),
    # Not every judge was audited, so these are not needed.
    _FLIPS("padding_flips_low"),
    _FLIPS("order_flips_low"),
    _FLIPS("again_flips_low"),
)


@dataclass(frozen=True)
class TrustCriteria:
    """The requirements for a judge.

    Parameters
    ----------
    rules : sequence of TrustRule
    band : float
        In (0.5, 1): probabilities at which calls are correct less often form the uncertain band.
    target : float
        In (0, 1]: the precision, and the recall, that fitted thresholds are to reach.
    """

    rules: tuple[TrustRule, ...] = TRUST_RULES
    band: float = 0.6
    target: float = TARGET_RATE

    @classmethod
    def read(cls, path: str | Path) -> TrustCriteria:
        """Read other limits from a TOML or YAML file; limits it does not name stay.

        Its tables ``trust`` and ``caution`` have limits by the rules' names; ``band`` is a number.

        Raises
        ------
        InputError
            The file cannot be read, has an unknown name, or a limit is out of range.
        """
        path = Path(path)
        criteria = read_toml(path) if path.suffix == ".toml" else read_yaml(path).data
        if not isinstance(criteria, Mapping):
            raise InputError(
                "the file needs the tables trust and caution, each with limits", path=path
            )
        rules = {rule.name: rule for rule in TRUST_RULES}
        for level, limits in criteria.items():
            if level == _BAND_FIELD:
                continue
            if level not in TRUST_LEVELS[1:]:
                hint = known_names(str(level), [*TRUST_LEVELS[1:], _BAND_FIELD])
                raise InputError(f"unknown table; {hint}", path=path, field=str(level))
            if not isinstance(limits, Mapping):
                raise InputError("this must be a table of limits", path=path, field=str(level))
            for name, limit in limits.items():
                field = f"{level}.{name}"
                if name not in rules:
                    hint = known_names(str(name), rules)
                    raise InputError(f"unknown rule; {hint}", path=path, field=field)
                number = as_finite(limit)
                if number is None:
                    raise InputError("a limit must be a number", path=path, field=field)
                changed: dict[str, Any] = {level: number}
                rules[name] = replace(rules[name], **changed)
        for rule in rules.values():
            if rule.caution not in (None, rule.trust) and rule.level(rule.caution) == "trust":
                limits = f"trust needs {rule.trust:g} and caution {rule.caution:g}"
                raise InputError(
                    f"{limits}; the limit of caution must be easier to reach",
                    path=path,
                    field=rule.name,
                )
        band = as_finite(criteria.get(_BAND_FIELD, cls.band))
        if band is None or not 1 / 2 < band < 1:
            raise InputError(
                "the share of correct calls must be between 0.5 and 1", path=path, field=_BAND_FIELD
            )
        return cls(tuple(rules.values()), band)


class Advice(NamedTuple):
    """Whether to trust a judge: the verdict, its reasons, and every rule with its number."""

    verdict: str
    reasons: tuple[str, ...]
    checks: tuple[TrustCheck, ...]


def advise(numbers: Mapping[str, float | None], criteria: TrustCriteria) -> Advice:
    """Compare numbers with the rules.

    Parameters
    ----------
    numbers : mapping of str to (float or None)
        By the rules' names; None if not known.
    criteria : TrustCriteria

    Returns
    -------
    Advice
        The reasons are the rules that rule out a better verdict, worst first, or all if none does.
    """
    checks = [rule.check(numbers.get(rule.name)) for rule in criteria.rules]
    measured = [(check.met, check) for check in checks if check.met is not None]
    measured.sort(key=lambda one: TRUST_LEVELS.index(one[0]))
    verdict = measured[0][0] if measured else "do not use"
    if verdict == "do not use" and not any(map(_is_shown, checks)):
        verdict = next((TOO_FEW for check in checks if _lacks_labels(check)), verdict)
    against = [one for one in measured if one[0] != "trust"] or measured
    return Advice(verdict, tuple(check.says for _, check in against), tuple(checks))


def _lacks_labels(check: TrustCheck) -> bool:
    return check.name in {"labels", "rarer_label"} and check.met == "do not use"


def _is_shown(check: TrustCheck) -> bool:
    """Whether the low end of a harm rules the judge out: so much is sure by however few labels."""
    return check.at_most and check.name.endswith("_low") and check.met == "do not use"


def matching_audit(
    audit: Audit | None, verdicts: MetricVerdicts
) -> tuple[CalibrationAudit | None, Reason | None]:
    """Return the parts of an audit that a calibration stores.

    Parameters
    ----------
    audit : Audit or None
        Of the run.
    verdicts : MetricVerdicts
        The verdicts that are calibrated.

    Returns
    -------
    audit : CalibrationAudit or None
        With the changes of the calibrated metric, and ``answer_order`` if answers were compared.
    reason : Reason or None
        Why there is none: it is of another judge, other prompts or another metric.
    """
    if audit is None:
        return None, None
    mismatch = _audit_mismatch(audit, verdicts)
    changes = audit.metrics.get(verdicts.metric)
    if mismatch is not None or not changes:
        return None, mismatch or Reason(code="audit_of_other_metric", metric=verdicts.metric)
    part = CalibrationAudit(
        judge=audit.judge,
        created=audit.created,
        seed=audit.seed,
        cases=audit.cases,
        run=audit.run,
        changes=changes | audit.preferences,
    )
    return part, None


def _audit_mismatch(audit: Audit, verdicts: MetricVerdicts) -> Reason | None:
    """How the audited judge differs from the calibrated one; None: no known difference."""
    if not verdicts.judge or audit.judge != verdicts.judge:
        return Reason(code="audit_of_other_judge", audited=audit.judge, judge=verdicts.judge)
    for name, digest in verdicts.prompts.items():
        if audit.prompts.get(name, digest) != digest:
            return Reason(code="audit_of_other_prompt", name=name)
    before, now = dict(verdicts.identity), audit.judge_identity
    if before and now:
        for name in sorted({*before, *now}):
            if before.get(name) != now.get(name):
                setting = name.removeprefix("judge_identity.")
                return Reason(code="audit_of_other_setting", setting=setting)
    return None


def audit_numbers(audit: CalibrationAudit | None) -> dict[str, float | None]:
    """Return the low ends of the flip rates of an audit, by rule name; None without audit."""
    changes = audit.changes if audit else {}

    def low_end(change: str) -> float | None:
        entry = changes.get(change)
        if entry is None:
            return None
        share = entry.to_good if entry.may_lower else entry.flipped
        return share.low if share else None

    orders = low_end("passage_order"), low_end("passage_shuffle")
    return {
        "padding_flips_low": low_end("padding"),
        "order_flips_low": max((low for low in orders if low is not None), default=None),
        "again_flips_low": low_end("again"),
    }


def audit_findings(audit: CalibrationAudit | None) -> list[str]:
    """Return the findings of a calibration's audit beyond chance, one sentence each."""
    return [entry.finding for entry in audit.changes.values() if entry.finding] if audit else []
