"""Can the judge be trusted: what human labels say of it, or how to find out.

The calibration is the document that ``misslink calibrate --json`` prints, as the run keeps it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from misslink.report.biases import Bias, biases
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
from misslink.report.settling import Settling, settling
from misslink.report.wording import Shown, decimal, in_short, plural, shown, shown_decimal
from misslink.types import Run

__all__ = ["Confusion", "Trust", "trusts"]

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
class Trust:
    """What is known of the judge by one metric; parts that are not are empty or None.

    ``metric`` is "" where nobody labelled; ``applied`` says whether the run's causes and risks were
    made with this calibration. ``verdict`` is 'trust', 'caution' or what the calibration says else,
    "" without one; ``notes`` are what a reader must know of the labels; ``settling`` is what people
    disagree on; ``without_band`` says why there is no uncertain band, ``advice`` how to find out
    more.
    """

    metric: str
    applied: str
    verdict: str
    facts: str
    reasons: tuple[str, ...]
    notes: tuple[str, ...]
    confusion: Confusion | None
    agreement: tuple[tuple[str, Shown], ...]
    detection: tuple[tuple[str, Shown], ...]
    human: tuple[tuple[str, Shown], ...]
    settling: Settling | None
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


def trusts(run: Run) -> tuple[Trust, ...]:
    """Collect what human labels say of the judge of `run`, that of faithfulness first.

    Parameters
    ----------
    run : Run
        Its calibration may be whole, or the few numbers that its manifest holds.

    Returns
    -------
    tuple of Trust
        One a labelled metric; where nobody labelled one that says how to; none where no judge was
        asked.
    """
    from misslink.calibration.kept import documents  # brings numpy

    if run.manifest.get("judge") in (None, "none"):
        return ()
    held = documents(run)
    first = [held[_CORRECTS]] if _CORRECTS in held else []
    found = [*first, *(held[metric] for metric in held if metric != _CORRECTS)]
    return tuple(_trust(run, one) for one in found or [run.calibration or _of_manifest(run)])


def _trust(run: Run, document: Mapping[str, JsonValue]) -> Trust:
    agreement = mapping_in(document.get("agreement"))
    return Trust(
        metric=in_short(text_in(document, "metric"), 60),
        applied=_applied(run, document),
        verdict=in_short(text_in(document, "verdict"), 40),
        facts=" ".join(filter(None, (_facts(document), *_since(run, document)))),
        reasons=_sentences(document, "reasons"),
        notes=_sentences(document, "notes"),
        confusion=_confusion(mapping_in(document.get("confusion"))),
        agreement=tuple(_estimates(agreement)),
        detection=tuple(_estimates(mapping_in(document.get("detection")))),
        human=_people(mapping_in(document.get("human"))),
        settling=settling(run, document),
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
        bias=biases(document),
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


def _applied(run: Run, document: Mapping[str, JsonValue]) -> str:
    """Whether causes and risks were made with this calibration; "" where with none."""
    from misslink.calibration.kept import applied  # brings numpy

    used = applied(run)
    if used is None or not run.calibration or document.get("metric") != _CORRECTS:
        return ""
    if used.same:
        return "The run's causes and corrected risks were made with this calibration."
    made = ", ".join(
        filter(None, (in_short(used.labels_from, 80), in_short(used.created.partition("T")[0], 20)))
    )
    return (
        "The run's causes and corrected risks were made with another calibration than this one"
        f"{f' ({made})' if made else ''}. To make them with this one, evaluate again with "
        "`--calibration RUN/calibration.json`."
    )


def _since(run: Run, document: Mapping[str, JsonValue]) -> Iterator[str]:
    """How old the calibration was when the run was made, and what of the judge is another since."""
    from misslink.calibration.drift import moved
    from misslink.calibration.rates import scores  # brings numpy
    from misslink.linking.calibration import OLD, changed_since, days_old

    try:
        made = dt.datetime.fromisoformat(text_in(run.manifest, "created"))
    except ValueError:
        made = None
    days = days_old(document, made) if made and made.tzinfo else None
    if days is not None and days > 0:
        drift = "; the judge may have drifted since" if days >= OLD else ""
        when = in_short(text_in(document, "created").partition("T")[0], 20)
        yield f"This calibration is of {when}, {plural(days, 'day')} before the run{drift}."
    for name, was, now in changed_since(document, mapping_in(run.manifest.get("inputs"))):
        yield (
            f"The judge's {in_short(name, 40)} was {in_short(was, 40)} when it was calibrated and "
            f"is {in_short(now, 40)} in this run; label some new answers."
        )
    shift = moved(document, scores(run, text_in(document, "metric")).values())
    if shift is not None:
        yield shift.sentence


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
        "Label about 100 of its answers in the browser with `misslink annotate RUN` (or bring a "
        "file: `case_id, metric, label, annotator`; 1 is good) and hold the judge against them "
        "with `misslink calibrate RUN` (with a file: `--labels FILE`), which keeps "
        f"RUN/calibration.json; then {again}"
    )
    if document:
        return (
            f"The run keeps the two rates alone. For the whole picture: {how[:1].lower()}{how[1:]}"
        )
    return f"Nobody has held this judge against people on this app's answers. {how}"
