"""How far the judge can be trusted: one line, calibration and reliability diagram."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from misslink.documents import (
    Bias,
    CalibrationDocument,
    Document,
    calibration_of,
    calibrations_of,
    manifest_of,
    parse_document,
)
from misslink.render.format import (
    FormattedEstimate,
    format_decimal,
    format_decimal_estimate,
    format_estimate,
    format_percent,
    pluralize,
    shorten,
)
from misslink.report.human_labels import DisputeQueue, forecast_labels, read_disputes
from misslink.types import Estimate, Run

_ADVICE = {"trust": "", "caution": "Use it with caution."}  # by the verdict of a calibration
_DECIMAL_NAMES = {
    "kappa": "Cohen's kappa",
    "gwet_ac1": "Gwet's AC1",
    "auroc": "AUROC",
    "average_precision": "Average precision",
    "spearman": "Spearman's rho",
    "kendall": "Kendall's tau-b",
    "alpha": "Krippendorff's alpha",
    "alpha_with_judge": "The same, with the judge as an annotator",
}
_SHARE_NAMES = {
    "sensitivity": "Sensitivity: of the good, called good",
    "specificity": "Specificity: of the bad, called bad",
    "precision": "Precision",
    "recall": "Recall",
    "f1": "F1",
    "accuracy": "Accuracy",
    "balanced_accuracy": "Balanced accuracy",
    "percent": "Share of pairs that agree",
}
_NUMBER_NAMES = (
    {"brier": "Brier score", "ece": "Expected calibration error"} | _DECIMAL_NAMES | _SHARE_NAMES
)
_METHOD_NAMES = {
    "judge_only": "By the judge alone",
    "labelled_only": "By the labelled cases alone",
    "rogan_gladen": "Judge corrected (Rogan and Gladen)",
    "prediction_powered": "Judge and labels (prediction-powered)",
}
_CORRECTED_METRIC = "faithfulness"  # the metric that corrects the risks
_MIN_PERCENT_CASES = 10  # below it counts are printed


def describe_judge(run: Run) -> tuple[str, str]:
    """Return what the judge is and how often it is right, and on which data that was measured."""
    manifest, calibration = manifest_of(run), calibration_of(run)
    judge, note = manifest.judge, manifest.judge_note
    if judge in ("", "none"):
        return note or (
            "not recorded." if not judge else "not used. Only retrieval was measured."
        ), ""
    is_heuristic = judge.startswith("heuristic")
    name = "heuristic" if is_heuristic else judge
    if calibration and calibration.verdict:
        table, advice = calibration.confusion, _ADVICE.get(calibration.verdict, "Do not trust it.")
        right, more = next(iter(calibration.reasons), "Compared with human labels."), ""
        if table:
            bad = table.true_bad + table.false_good  # by the annotators
            found = f"{table.true_bad:,} of their {pluralize(bad, 'bad answer')}"
            if bad >= _MIN_PERCENT_CASES:
                found = f"{format_percent(table.true_bad / bad)} of their bad answers"
            right = (
                f"Of {table.true_bad + table.false_bad:,} answers it calls bad, annotators agree "
                f"on {table.true_bad:,}."
            )
            more = f"It finds {found}. "
        details = f"{more}{next(iter(calibration.reasons), '')}"
        return f"{name}. {right} {advice}".rstrip(), details
    from misslink.calibration.stored_calibration import applied_calibration  # imports numpy

    applied = applied_calibration(run)
    rates = applied.rates if applied else {}
    shown = [format_estimate(name, rates[name]) for name in sorted(rates)]
    if len(shown) > 1 and all(rate.measured for rate in shown):
        right = (
            f"{shown[0].value} of faithful answers faithful and {shown[1].value} of unfaithful ones"
        )
        return f"{name}. By human labels, it calls {right} unfaithful.", note
    if is_heuristic and note:
        text, _, basis = note.removeprefix("heuristic; ").partition(" (")
        flags, _, finds = text.rstrip(".").partition("; ")
        details = f"{finds[:1].upper()}{finds[1:]}. " if finds else ""
        details += f"Measured on {basis.removesuffix(')')}." if basis else ""
        return f"{name}. On public data, {flags}.", details.rstrip()
    return f"{name}. Not compared with human labels: run `misslink annotate`.", note


@dataclass(frozen=True)
class JudgeTrust:
    """The calibration of the judge for one metric; parts that are not known are empty or None.

    ``metric`` is "" without labels; ``applied`` says whether the run's failure modes and risks were
    made with this calibration. ``verdict`` is 'trust', 'caution' or another word of the calibration;
    ``labels_needed`` is that of `forecast_labels`; ``biases`` with a finding come first; ``advice``
    says what to do next.
    """

    document: CalibrationDocument
    metric: str
    applied: str
    verdict: str
    facts: str
    agreement: tuple[tuple[str, FormattedEstimate], ...]
    detection: tuple[tuple[str, FormattedEstimate], ...]
    human: tuple[tuple[str, FormattedEstimate], ...]
    settling: DisputeQueue | None
    probability: tuple[tuple[str, str], ...]
    baselines: tuple[tuple[str, str], ...]
    corrected: tuple[tuple[str, FormattedEstimate], ...]
    labels_needed: tuple[str, list[tuple[str, str, str]]]
    biases: list[tuple[str, Bias]]
    advice: str

    @property
    def measured(self) -> bool:
        """Whether the judge was compared with human labels."""
        return bool(self.agreement or self.document.confusion)


def read_judge_trust(run: Run) -> tuple[JudgeTrust, ...]:
    """Read what human labels say about the judge of `run`, by metric, faithfulness first.

    Without labels there is one entry that says how to get some; without a judge there is none.
    """
    if run.manifest.get("judge") in (None, "none"):
        return ()
    calibrations = calibrations_of(run)
    if _CORRECTED_METRIC in calibrations:
        calibrations = {_CORRECTED_METRIC: calibrations[_CORRECTED_METRIC], **calibrations}
    if calibrations:
        return tuple(_metric_trust(run, calibration) for calibration in calibrations.values())
    return (_metric_trust(run, calibration_of(run) or _manifest_calibration(run)),)


def _metric_trust(run: Run, calibration: CalibrationDocument) -> JudgeTrust:
    human = _estimate_rows(_estimates(calibration.human))
    corrected = _estimates(calibration.corrected)
    facts = (_calibration_facts(calibration), *_age_notes(run, calibration))
    return JudgeTrust(
        document=calibration,
        metric=shorten(calibration.metric, 60),
        applied=_application_note(run, calibration),
        verdict=shorten(calibration.verdict, 40),
        facts=" ".join(filter(None, facts)),
        agreement=_estimate_rows(calibration.agreement),
        detection=_estimate_rows(calibration.detection),
        # If nothing is known of the annotators' agreement, one row says why.
        human=tuple(row for row in human if row[1].measured) or human[:1],
        settling=read_disputes(run, calibration),
        probability=tuple(_number_rows(calibration.probability)),
        baselines=tuple(
            (f"{shorten(name.replace('_', ' '), 40)}, {label}", text)
            for name, numbers in calibration.baselines.items()
            for label, text in _number_rows(numbers)
        ),
        corrected=tuple(
            (label, format_estimate(name, corrected[name]))
            for name, label in _METHOD_NAMES.items()
            if name in corrected
        ),
        labels_needed=forecast_labels(calibration),
        biases=sorted(
            calibration.bias.items(),
            key=lambda row: not (row[1].finding or (row[1].matched and row[1].matched.finding)),
        ),
        advice=_labeling_advice(run, calibration),
    )


def _manifest_calibration(run: Run) -> CalibrationDocument:
    """The rates that a run's manifest holds, in the shape of a calibration document."""
    stored = run.manifest.get("calibration")
    if not isinstance(stored, dict):
        return CalibrationDocument()
    rates = {name: stored.get(name) for name in ("sensitivity", "specificity")}
    return parse_document(CalibrationDocument, {**stored, "agreement": rates}, "manifest.json")


def _calibration_facts(calibration: CalibrationDocument) -> str:
    if not calibration.metric:
        return ""
    facts = f"Compared with human labels of {calibration.metric}"
    if n := calibration.n:
        facts += f": {pluralize(n, 'case')}; annotators called {calibration.positives:,} good"
    threshold = calibration.threshold
    called = "" if threshold is None else f" The judge calls a case good from {threshold:.4g} on."
    return f"{facts}.{called}"


def _application_note(run: Run, calibration: CalibrationDocument) -> str:
    """Whether failure modes and risks were made with this calibration; "" if with none."""
    from misslink.calibration.stored_calibration import applied_calibration  # imports numpy

    used = applied_calibration(run)
    if used is None or not run.calibration or calibration.metric != _CORRECTED_METRIC:
        return ""
    if used.same:
        return "The run's failure modes and corrected risks were made with this calibration."
    parts = (shorten(used.labels_from, 80), shorten(used.created.partition("T")[0], 20))
    made = ", ".join(filter(None, parts))
    return (
        "The run's failure modes and corrected risks were made with another calibration than this one"
        f"{f' ({made})' if made else ''}. To make them with this one, evaluate again with "
        "`--calibration RUN/calibration.json`."
    )


def _age_notes(run: Run, calibration: CalibrationDocument) -> Iterator[str]:
    """How old the calibration was when the run was made, and how the judge has changed since."""
    from misslink.calibration.stored_calibration import (
        detect_drift,
        verdict_scores,  # imports numpy
    )
    from misslink.linking.judge_calibration import STALE_AFTER_DAYS, age_in_days, identity_changes

    manifest = manifest_of(run)
    try:
        made = dt.datetime.fromisoformat(manifest.created)
    except ValueError:
        made = None
    days = age_in_days(calibration, made) if made and made.tzinfo else None
    if days is not None and days > 0:
        drift = "; the judge may have drifted since" if days >= STALE_AFTER_DAYS else ""
        created = shorten(calibration.created.partition("T")[0], 20)
        yield f"This calibration is of {created}, {pluralize(days, 'day')} before the run{drift}."
    for name, before, now in identity_changes(calibration, manifest.inputs):
        yield (
            f"The judge's {shorten(name, 40)} was {shorten(before, 40)} when it was calibrated and "
            f"is {shorten(now, 40)} in this run; label some new answers."
        )
    shift = detect_drift(calibration, verdict_scores(run, calibration.metric).values())
    if shift is not None:
        yield shift.sentence


def _estimates(document: Document) -> Mapping[str, Estimate]:
    """The estimates that a document really holds, by name."""
    return {
        name: value
        for name, value in document
        if isinstance(value, Estimate) and name in document.model_fields_set
    }


def _estimate_rows(
    estimates: Mapping[str, Estimate],
) -> tuple[tuple[str, FormattedEstimate], ...]:
    units = (format_decimal_estimate, _DECIMAL_NAMES), (format_estimate, _SHARE_NAMES)
    return tuple(
        (label, write(name, estimates[name]))
        for write, names in units
        for name, label in names.items()
        if name in estimates
    )


def _number_rows(numbers: Mapping[str, float | None]) -> Iterator[tuple[str, str]]:
    """Numbers by name, such as a Brier score."""
    for name, number in numbers.items():
        text = "not measured" if number is None else format_decimal(number, 3)
        yield shorten(_NUMBER_NAMES.get(name, name), 40), text


def _labeling_advice(run: Run, calibration: CalibrationDocument) -> str:
    """How to calibrate the judge, and then to correct the risks."""
    again = (
        "evaluate again with `--calibration RUN/calibration.json`: replies come from the cache, "
        "and the risks are then corrected for the judge's errors."
    )
    if run.calibration:
        if run.manifest.get("calibration") is not None or calibration.metric != _CORRECTED_METRIC:
            return ""
        return f"The run's risks are not corrected by this yet. For that, {again}"
    status = (
        "The run has only the two error rates."
        if calibration.metric
        else "This judge was not compared with human labels of this app's answers."
    )
    return (
        f"{status} Label about 100 answers in the browser with `misslink annotate RUN` (or use a "
        "file: `case_id, metric, label, annotator`; 1 is good). Compare the judge with them by "
        "`misslink calibrate RUN` (with a file: `--labels FILE`), which saves "
        f"RUN/calibration.json; then {again}"
    )
