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
    rows_in,
    text_in,
)
from misslink.report.wording import Shown, decimal, in_short, plural, shown, shown_decimal
from misslink.types import Estimate, Run

__all__ = ["Bin", "Confusion", "Reliability", "Trust", "trust"]

# Statistics that people read as decimals; the others are shares.
_DECIMALS = {
    "kappa": "Cohen's kappa",
    "gwet_ac1": "Gwet's AC1",
    "auroc": "AUROC",
    "alpha": "Krippendorff's alpha",
}
_SHARES = {
    "sensitivity": "Sensitivity: of the good, called good",
    "specificity": "Specificity: of the bad, called bad",
    "precision": "Precision",
    "recall": "Recall",
    "f1": "F1",
    "balanced_accuracy": "Balanced accuracy",
}
_METHODS = {
    "judge_only": "By the judge alone",
    "labelled_only": "By the labelled cases alone",
    "rogan_gladen": "Judge corrected (Rogan and Gladen)",
    "prediction_powered": "Judge and labels (prediction-powered)",
}
_PROBABILITIES = {"brier": "Brier score", "ece": "Expected calibration error"}
_SIZE, _EDGE = 300.0, 36.0
_RADII = (3.0, 8.0)  # of a dot with few cases, and of the one with most


@dataclass(frozen=True)
class Confusion:
    """Labels by people against the judge's; good is the positive label."""

    true_good: int
    false_good: int
    true_bad: int
    false_bad: int


@dataclass(frozen=True)
class Bin:
    """Cases of about one probability: what was predicted, how many were good, and its place."""

    span: str
    predicted: str
    good: Shown
    x: float
    y: float
    low: float
    high: float
    radius: float


@dataclass(frozen=True)
class Reliability:
    """The reliability diagram: a square of ``size``, its axes ``edge`` from the left and bottom."""

    size: float
    edge: float
    bins: tuple[Bin, ...]


@dataclass(frozen=True)
class Trust:
    """What is known of the judge; parts that are not are empty or None.

    ``verdict`` is 'trust', 'caution' or what the calibration says else, "" without one;
    ``advice`` says how to find out more.
    """

    verdict: str
    facts: str
    reasons: tuple[str, ...]
    confusion: Confusion | None
    agreement: tuple[tuple[str, Shown], ...]
    detection: tuple[tuple[str, Shown], ...]
    human: tuple[tuple[str, Shown], ...]
    probability: tuple[tuple[str, str], ...]
    reliability: Reliability | None
    baselines: tuple[tuple[str, str], ...]
    corrected: tuple[tuple[str, Shown], ...]
    bias: tuple[tuple[str, Shown, str], ...]
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
        reasons=tuple(one for one in list_in(document.get("reasons")) if isinstance(one, str)),
        confusion=_confusion(mapping_in(document.get("confusion"))),
        agreement=tuple(_estimates(agreement)),
        detection=tuple(_estimates(mapping_in(document.get("detection")))),
        human=tuple(_estimates(mapping_in(document.get("human")))),
        probability=tuple(_numbers(mapping_in(document.get("probability")))),
        reliability=_reliability(rows_in(document.get("reliability"))),
        baselines=tuple(_baselines(mapping_in(document.get("baselines")))),
        corrected=tuple(
            (words, shown(name, estimate_in(document, "corrected", name)))
            for name, words in _METHODS.items()
            if name in mapping_in(document.get("corrected"))
        ),
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


def _reliability(rows: tuple[Mapping[str, JsonValue], ...]) -> Reliability | None:
    most = max((count_in(row, "n") for row in rows), default=0)
    bins = tuple(one for row in rows if (one := _bin(row, most)))
    return Reliability(_SIZE, _EDGE, bins) if bins else None


def _bin(row: Mapping[str, JsonValue], most: int) -> Bin | None:
    """One bin with its place; None for one that holds no case or cannot be read."""
    low, high, predicted = (number_in(row, name) for name in ("low", "high", "predicted"))
    good, n = estimate_in(row, "good"), count_in(row, "n")
    if low is None or high is None or predicted is None or good.value is None or n < 1:
        return None
    ends = [good.value if end is None else end for end in (good.low, good.high)]
    least, largest = _RADII
    return Bin(
        span=f"{decimal(low)} to {decimal(high)}",
        predicted=decimal(predicted),
        good=shown("good", good),
        x=_x(predicted),
        y=_y(good.value),
        low=_y(ends[0]),
        high=_y(ends[1]),
        radius=round(least + (largest - least) * (n / most) ** 0.5, 1),
    )


def _bias(found: Mapping[str, JsonValue]) -> Iterator[tuple[str, Shown, str]]:
    """What moves the judge beside quality: a coefficient, and whether it can be told from none."""
    for name, row in found.items():
        estimate = estimate_in(mapping_in(row), "coefficient")
        number = replace(shown_decimal("coefficient", estimate), bar=None)
        yield in_short(name.replace("_", " "), 40), number, _pull(estimate)


def _pull(estimate: Estimate) -> str:
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return ""
    if estimate.low <= 0 <= estimate.high:
        return "no detectable pull"
    return "pulls verdicts up" if estimate.value > 0 else "pulls verdicts down"


def _advice(run: Run, document: Mapping[str, JsonValue]) -> str:
    """How to find out more: all of it without a calibration, the rest with the few numbers."""
    how = (
        "Label about 100 of its answers by hand (`case_id, metric, label, annotator`; 1 is good), "
        "hold the judge against them with "
        "`misslink calibrate RUN --labels labels.csv --json > calibration.json`, and evaluate "
        "again with `--calibration calibration.json`: replies come from the ledger, and the risks "
        "are then corrected for its errors."
    )
    if run.calibration:
        return ""
    if document:
        return (
            f"The run keeps the two rates alone. For the whole picture: {how[:1].lower()}{how[1:]}"
        )
    return f"Nobody has held this judge against people on this app's answers. {how}"


def _x(share: float) -> float:
    return round(_EDGE + (_SIZE - 2 * _EDGE) * min(max(share, 0.0), 1.0), 1)


def _y(share: float) -> float:
    return round(_SIZE - _EDGE - (_SIZE - 2 * _EDGE) * min(max(share, 0.0), 1.0), 1)
