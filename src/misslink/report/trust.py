"""Can the judge be trusted: what human labels say of it, or how to find out.

The calibration is the document that ``misslink calibrate --json`` prints, as the run keeps it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from pydantic import JsonValue

from misslink.report.documents import (
    count_in,
    estimate_in,
    list_in,
    mapping_in,
    number_in,
    text_in,
)
from misslink.report.labelling import Labelling, labelling
from misslink.report.reliability import Reliability, reliability
from misslink.report.wording import Shown, decimal, in_short, plural, shown, shown_decimal
from misslink.types import Run

__all__ = ["Bias", "Confusion", "Trust", "trust"]

# Statistics that people read as decimals; the others are shares.
_DECIMALS = {
    "kappa": "Cohen's kappa",
    "gwet_ac1": "Gwet's AC1",
    "auroc": "AUROC",
    "average_precision": "Average precision",
    "spearman": "Spearman's rho",
    "kendall": "Kendall's tau-b",
    "alpha": "Krippendorff's alpha",
    "alpha_with_judge": "The same, the judge as one more",
}
_SHARES = {
    "sensitivity": "Sensitivity: of the good, called good",
    "specificity": "Specificity: of the bad, called bad",
    "precision": "Precision",
    "recall": "Recall",
    "f1": "F1",
    "accuracy": "Accuracy",
    "balanced_accuracy": "Balanced accuracy",
    "percent": "Share of pairs that agree",
}
_METHODS = {
    "judge_only": "By the judge alone",
    "labelled_only": "By the labelled cases alone",
    "rogan_gladen": "Judge corrected (Rogan and Gladen)",
    "prediction_powered": "Judge and labels (prediction-powered)",
}
_PROBABILITIES = {"brier": "Brier score", "ece": "Expected calibration error"}

_CORRECTS = "faithfulness"  # the metric of which the risks are corrected


@dataclass(frozen=True)
class Confusion:
    """Labels by people against the judge's; good is the positive label."""

    true_good: int
    false_good: int
    true_bad: int
    false_bad: int


@dataclass(frozen=True)
class Bias:
    """What should not matter to the judge, and what it does to its errors.

    Parameters
    ----------
    of : str
        Such as 'length' or 'category: law'.
    unit : str
        What the numbers are per; "" where the calibration does not say.
    errors : Shown
        Log-odds of an error.
    pull : Shown or None
        Log-odds of the call good, people's label held constant: above 0 the judge is too kind.
        None: an older calibration without it.
    finding : str
        What can be told beyond chance.
    """

    of: str
    unit: str
    errors: Shown
    pull: Shown | None
    finding: str


@dataclass(frozen=True)
class Trust:
    """What is known of the judge; parts that are not are empty or None.

    ``verdict`` is 'trust', 'caution' or what the calibration says else, "" without one;
    ``notes`` are what a reader must know of the labels; ``without_band`` why there is no uncertain
    band; ``advice`` says how to find out more.
    """

    verdict: str
    facts: str
    reasons: tuple[str, ...]
    notes: tuple[str, ...]
    confusion: Confusion | None
    agreement: tuple[tuple[str, Shown], ...]
    detection: tuple[tuple[str, Shown], ...]
    human: tuple[tuple[str, Shown], ...]
    probability: tuple[tuple[str, str], ...]
    reliability: Reliability | None
    without_band: str
    baselines: tuple[tuple[str, str], ...]
    corrected: tuple[tuple[str, Shown], ...]
    labelling: Labelling | None
    bias: tuple[Bias, ...]
    advice: str

    @property
    def measured(self) -> bool:
        """Whether the judge was held against human labels."""
        return bool(self.agreement or self.confusion)


def trust(run: Run) -> Trust | None:
    """Collect what human labels say of the judge of `run`; None where no judge was asked.

    Parameters
    ----------
    run : Run
        Its calibration may be whole, or the few numbers that its manifest holds.
    """
    if run.manifest.get("judge") in (None, "none"):
        return None
    document = run.calibration or _of_manifest(run)
    agreement = mapping_in(document.get("agreement"))
    return Trust(
        verdict=in_short(text_in(document, "verdict"), 40),
        facts=_facts(document),
        reasons=_sentences(document, "reasons"),
        notes=_sentences(document, "notes"),
        confusion=_confusion(mapping_in(document.get("confusion"))),
        agreement=tuple(_estimates(agreement)),
        detection=tuple(_estimates(mapping_in(document.get("detection")))),
        human=_people(mapping_in(document.get("human"))),
        probability=tuple(_numbers(mapping_in(document.get("probability")))),
        reliability=reliability(document),
        without_band=text_in(document, "uncertain_band_reason"),
        baselines=tuple(_baselines(mapping_in(document.get("baselines")))),
        corrected=tuple(
            (words, shown(name, estimate_in(document, "corrected", name)))
            for name, words in _METHODS.items()
            if name in mapping_in(document.get("corrected"))
        ),
        labelling=labelling(document),
        bias=tuple(_bias(mapping_in(document.get("bias")))),
        advice=_advice(run, document),
    )


def _of_manifest(run: Run) -> Mapping[str, JsonValue]:
    """What a run's manifest keeps of a calibration, in the shape of the whole document."""
    kept = mapping_in(run.manifest.get("calibration"))
    if not kept:
        return {}
    rates = {name: kept[name] for name in ("sensitivity", "specificity") if name in kept}
    return {**kept, "agreement": rates}


def _facts(document: Mapping[str, JsonValue]) -> str:
    if not document:
        return ""
    n, good = count_in(document, "n"), count_in(document, "positives")
    metric = text_in(document, "metric") or "a metric"
    said = f"Held against human labels of {metric}"
    if n:
        said += f": {plural(n, 'case')}, of which people called {good:,} good"
    cut = number_in(document, "threshold")
    return f"{said}.{'' if cut is None else f' The judge calls good what has {cut:.4g} or more.'}"


def _confusion(counts: Mapping[str, JsonValue]) -> Confusion | None:
    names = ("true_good", "false_good", "true_bad", "false_bad")
    found = [number_in(counts, name) for name in names]
    if any(number is None for number in found):
        return None
    return Confusion(*(count_in(counts, name) for name in names))


def _estimates(found: Mapping[str, JsonValue]) -> Iterator[tuple[str, Shown]]:
    for name, words in (_DECIMALS | _SHARES).items():
        if name in found:
            estimate = estimate_in(found, name)
            write = shown_decimal if name in _DECIMALS else shown
            yield words, write(name, estimate)


def _people(found: Mapping[str, JsonValue]) -> tuple[tuple[str, Shown], ...]:
    """Agreement of people among themselves; where nothing is known of it, one line says why."""
    rows = tuple(_estimates(found))
    return tuple(row for row in rows if row[1].measured) or rows[:1]


def _numbers(found: Mapping[str, JsonValue]) -> Iterator[tuple[str, str]]:
    """Plain numbers by name, such as a Brier score; one that cannot be read says so."""
    for name in found:
        number = number_in(found, name)
        label = _PROBABILITIES.get(name) or _DECIMALS.get(name) or _SHARES.get(name) or name
        yield in_short(label, 40), "not measured" if number is None else decimal(number, 3)


def _baselines(found: Mapping[str, JsonValue]) -> Iterator[tuple[str, str]]:
    """What a judge that does not read would reach, such as one that goes by the length alone."""
    for name, numbers in found.items():
        for label, text in _numbers(mapping_in(numbers)):
            yield f"{in_short(name.replace('_', ' '), 40)}, {label}", text


def _bias(found: Mapping[str, JsonValue]) -> Iterator[Bias]:
    """What moves the judge beside quality, those with a finding first."""
    rows = [(name, mapping_in(row)) for name, row in found.items()]
    for name, row in sorted(rows, key=lambda named: not text_in(named[1], "finding")):
        errors = _log_odds(row, "coefficient")
        finding = text_in(row, "finding")
        if "finding" in row and not finding and errors.measured:
            finding = "nothing beyond chance"
        yield Bias(
            of=in_short(name.replace("_", " "), 60),
            unit=in_short(text_in(row, "unit"), 60),
            errors=errors,
            pull=_log_odds(row, "pull") if "pull" in row else None,
            finding=finding,
        )


def _log_odds(row: Mapping[str, JsonValue], name: str) -> Shown:
    """A coefficient, which no axis from 0 to 1 can show."""
    return replace(shown_decimal(name, estimate_in(row, name)), bar=None)


def _sentences(document: Mapping[str, JsonValue], name: str) -> tuple[str, ...]:
    return tuple(one for one in list_in(document.get(name)) if isinstance(one, str))


def _advice(run: Run, document: Mapping[str, JsonValue]) -> str:
    """What to do next: hold the judge against people, and then correct the risks by that."""
    again = (
        "evaluate again with `--calibration RUN/calibration.json`: replies come from the ledger, "
        "and the risks are then corrected for the judge's errors."
    )
    if run.calibration:
        if run.manifest.get("calibration") is not None or document.get("metric") != _CORRECTS:
            return ""
        return f"The run's risks are not corrected by this yet. For that, {again}"
    how = (
        "Label about 100 of its answers by hand (`case_id, metric, label, annotator`; 1 is good) "
        "and hold the judge against them with `misslink calibrate RUN --labels labels.csv`, which "
        f"keeps RUN/calibration.json; then {again}"
    )
    if document:
        return (
            f"The run keeps the two rates alone. For the whole picture: {how[:1].lower()}{how[1:]}"
        )
    return f"Nobody has held this judge against people on this app's answers. {how}"
