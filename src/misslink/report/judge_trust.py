"""How far the judge can be trusted: calibration, how the run was judged, and audits."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from misslink.calibration.advice import TOO_FEW
from misslink.calibration_document import AuditedChange, Bias, CalibrationDocument, JudgeUsage
from misslink.document_model import NOT_COMPUTED, Document
from misslink.documents import (
    Cascade,
    audit_of,
    calibration_of,
    calibrations_of,
    manifest_of,
    summary_of,
)
from misslink.render.format import (
    MIN_PERCENT,
    FormattedEstimate,
    format_cost,
    format_decimal,
    format_decimal_estimate,
    format_estimate,
    format_percent,
    format_share_of,
    pluralize,
    shorten,
)
from misslink.render.selftest_sentences import describe_selftest
from misslink.report.disagreements import DisagreementGroup, group_disagreements
from misslink.report.human_labels import Disputes, forecast_labels, read_disputes
from misslink.report.overview import describe_reliability
from misslink.selftests.document import selftest_of
from misslink.types import Estimate, Run, Usage

_ADVICE = {  # by the verdict of a calibration
    "trust": "",
    "caution": "Use it with caution.",
    TOO_FEW: "These are too few labels to say whether to trust it.",
}
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
    "label_error": "Labels of one annotator that are wrong",
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
EstimateRow = tuple[str, FormattedEstimate]
_CORRECTED_METRIC = "faithfulness"  # the metric that corrects the risks


@dataclass(frozen=True)
class JudgeTrust:
    """What human labels say about the judge of one metric; rows are a label and what was measured."""

    document: CalibrationDocument
    measured: bool
    metric: str
    applied: str
    verdict: str
    facts: str
    agreement: tuple[EstimateRow, ...]
    detection: tuple[EstimateRow, ...]
    human: tuple[EstimateRow, ...]
    settling: Disputes | None
    disagreements: tuple[DisagreementGroup, ...]
    probability: tuple[tuple[str, str], ...]
    baselines: tuple[tuple[str, str], ...]
    corrected: tuple[EstimateRow, ...]
    labels_needed: tuple[str, list[tuple[str, str, str]]]
    biases: tuple[tuple[str, Bias], ...]
    advice: str


@dataclass(frozen=True)
class RepeatRow:
    """How far a metric moved between samples."""

    metric: str
    flips: FormattedEstimate
    spread: FormattedEstimate
    moved: str


@dataclass(frozen=True)
class AuditRow:
    """What the judge did when only what must not matter was changed; ``turned`` says which way."""

    metric: str
    change: str
    row: AuditedChange
    turned: str


@dataclass(frozen=True)
class AuditView:
    """The audit of a judge."""

    facts: str
    rows: tuple[AuditRow, ...]
    notes: tuple[str, ...]


def describe_judge(run: Run) -> tuple[str, str]:
    """Return what the judge is and how often it is right, and on which data that was measured."""
    manifest, calibration = manifest_of(run), calibration_of(run)
    judge, note = manifest.judge, manifest.judge_note or ""
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
            if bad >= MIN_PERCENT:
                found = f"{format_percent(table.true_bad / bad)} of their bad answers"
            right = (
                f"Of {table.true_bad + table.false_bad:,} answers it calls bad, annotators agree "
                f"on {table.true_bad:,}."
            )
            more = f"It finds {found}. "
        details = f"{more}{next(iter(calibration.reasons), '')}"
        return f"{name}. {right} {advice}".rstrip(), details
    applied = manifest_of(run).calibration
    rates = applied.calibration.agreement if applied else {}
    shown = [format_estimate(name, rates[name]) for name in sorted(rates)]
    if len(shown) > 1 and all(rate.measured for rate in shown):
        right = (
            f"{shown[0].value} of faithful answers faithful and {shown[1].value} of unfaithful ones"
        )
        return f"{name}. By human labels, it calls {right} unfaithful.", note
    tested = selftest_of(run)
    if tested is not None and tested.judge == judge and tested.found.value is not None:
        return f"{name}. {describe_selftest(tested).about_judge}", note
    if is_heuristic and note:
        text, _, basis = note.removeprefix("heuristic; ").partition(" (")
        flags, _, finds = text.rstrip(".").partition("; ")
        details = f"{finds[:1].upper()}{finds[1:]}. " if finds else ""
        details += f"Measured on {basis.removesuffix(')')}." if basis else ""
        return f"{name}. On public data, {flags}.", details.rstrip()
    return f"{name}. Not compared with human labels: run `misslink annotate`.", note


def judge_line(run: Run) -> str:
    """The line of the first screen: what labels by people say of the judge, else of its owners."""
    reliability, known = (
        describe_reliability(run),
        calibration_of(run) or manifest_of(run).calibration,
    )
    judge, _ = describe_judge(run)
    if reliability is None or known:
        return judge
    return f"{judge.partition('. ')[0].rstrip('.')}. {reliability.brief}"


def read_judge_trust(run: Run) -> tuple[JudgeTrust, ...]:
    """Read what human labels say about the judge of `run`, by metric, faithfulness first.

    Without labels there is one entry that says how to get some; without a judge there is none.
    """
    if manifest_of(run).judge in ("", "none"):
        return ()
    calibrations = calibrations_of(run)
    if _CORRECTED_METRIC in calibrations:
        calibrations = {_CORRECTED_METRIC: calibrations[_CORRECTED_METRIC], **calibrations}
    if calibrations:
        return tuple(_metric_trust(run, calibration) for calibration in calibrations.values())
    applied = manifest_of(run).calibration
    known = calibration_of(run) or (applied and applied.calibration)
    return (_metric_trust(run, known or CalibrationDocument.read({})),)


def _metric_trust(run: Run, calibration: CalibrationDocument) -> JudgeTrust:
    corrected, agreement = _estimates(calibration.corrected), _estimate_rows(calibration.agreement)
    error = {name: one for name, one in corrected.items() if name == "label_error"}
    human = _estimate_rows({**_estimates(calibration.human), **error})
    facts = (_calibration_facts(calibration), *_age_notes(run, calibration))
    return JudgeTrust(
        document=calibration,
        measured=bool(agreement or calibration.confusion),
        metric=shorten(calibration.metric, 60),
        applied=_application_note(run, calibration),
        verdict=shorten(calibration.verdict, 40),
        facts=" ".join(filter(None, facts)),
        agreement=agreement,
        detection=_estimate_rows(calibration.detection),
        # If nothing is known of the annotators' agreement, one row says why.
        human=tuple(row for row in human if row[1].measured) or human[:1],
        settling=read_disputes(run, calibration),
        disagreements=group_disagreements(run, calibration),
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
        biases=tuple(
            sorted(
                calibration.bias.items(),
                key=lambda row: not (row[1].finding or (row[1].matched and row[1].matched.finding)),
            )
        ),
        advice=_labeling_advice(run, calibration),
    )


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
    manifest = manifest_of(run)
    if not (manifest.calibration and run.calibration) or calibration.metric != _CORRECTED_METRIC:
        return ""
    if calibration.linking_inputs == manifest.calibration.linking_inputs:
        return "The run's failure modes and corrected risks were made with this calibration."
    source = manifest.calibrated_by
    made = ""
    if source is not None:
        parts = shorten(source.labels_from, 80), shorten(source.created.partition("T")[0], 20)
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
    from misslink.judge.calibration import STALE_AFTER_DAYS, age_in_days, identity_changes

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
        if isinstance(value, Estimate) and value is not NOT_COMPUTED
    }


def _estimate_rows(
    estimates: Mapping[str, Estimate],
) -> tuple[EstimateRow, ...]:
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
        if manifest_of(run).calibration or calibration.metric != _CORRECTED_METRIC:
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


_CORE_METRICS = ("faithfulness", "correctness")  # named in the sentence; the table has all
_NAME_LENGTH = 60
_DECISION_PRICE = 0.10  # USD per million tokens: OpenAI, Gemini and Upstage in November 2026
# The changes of an audit, in the order of the table.
_CHANGE_NAMES = {
    "padding": "answer padded with its passages",
    "passage_order": "passages in reverse order",
    "passage_shuffle": "passages shuffled",
    "again": "nothing: asked again",
    "answer_order": "two answers swapped",
}


def describe_judging(run: Run) -> tuple[str, ...]:
    """Describe how the run was judged, in sentences; empty for a run without a judge."""
    return tuple(judging_notes(run))


def judging_notes(run: Run) -> Iterator[str]:
    """Yield what `describe_judging` returns; a later sentence can take much longer than the first."""
    if manifest_of(run).judge in ("", "none"):
        return
    summary = summary_of(run)
    if summary.usage:
        yield from _usage_notes(run, summary.usage)
    failed = {v.case_id: v.reason for v in run.scores if v.status == "failed"}
    if failed:
        reason, count = Counter(failed.values()).most_common(1)[0]
        yield (
            f"Verdicts failed in {len(failed):,} of {pluralize(len(run.cases), 'case')}, most often "
            f"({count:,}) because: {reason}"
        )
    overruled = Counter(
        claim.overruled
        for verdict in run.scores
        if verdict.metric == "faithfulness"
        for claim in verdict.claims
    )
    if overruled:
        yield (
            "Claims that count as unsupported because the judge's quote did not hold (it was "
            "missing, in no passage, or about something else): "
            f"{overruled[True]:,} of {overruled.total():,}."
        )
    if summary.cascade:
        yield from _cascade_notes(summary.cascade)
    if manifest_of(run).judge == "heuristic":
        yield from _heuristic_notes(run)
    rows = {row.metric: row.flips.text for row in repeat_rows(run) if row.flips.measured}
    if rows:
        named = [f"{metric} {rows[metric]}" for metric in _CORE_METRICS if metric in rows]
        which = f"; verdicts that were not unanimous: {'; '.join(named)}" if named else ""
        yield f"The judge answered each question {summary.repeats.samples} times{which}."
    abilities = manifest_of(run).judging.abilities or {}
    if abilities.get("structure") in ("plain", "json_object"):
        yield "The judge's server supports no answer schema. The schema was in the prompt and cost tokens."
    if abilities.get("gives_logprobs") is False:
        yield "The judge gives no log-probabilities, so its verdicts carry no probability."


def _heuristic_notes(run: Run) -> Iterator[str]:
    """What the heuristic judge misses, and what a model would cost that does not."""
    from misslink.judge.checks.dry_run import estimate_run_tokens

    yield (
        "The heuristic judge says supported or unsupported, and never contradicted. To find"
        " contradictions, use a language model or a decision model as the judge."
    )
    calls, tokens, decision_tokens = estimate_run_tokens(run)
    if calls:
        cost = decision_tokens * _DECISION_PRICE / 1_000_000
        yield (
            f"To judge this run with a model takes {pluralize(calls, 'call')}: about {tokens:,} prompt"
            f" tokens of a language model, or {decision_tokens:,} of a decision model"
            f" ({format_cost(cost)} at {_DECISION_PRICE:.2f} USD per million)."
        )


def _usage_notes(run: Run, usage: JudgeUsage) -> Iterator[str]:
    tokens = cost = ""
    if usage.prompt_tokens is not None and usage.calls:
        tokens = f", {_format_tokens(usage.prompt_tokens, usage.completion_tokens)}"
    if usage.cost is not None and usage.calls:
        cost = f", cost {format_cost(usage.cost)}"
    yield (
        f"The judge was sent {pluralize(usage.calls, 'question')}{tokens}{cost}; "
        f"{usage.from_cache:,} more came from the cache, free."
    )
    spent = Usage.total(score.usage for score in run.scores)
    if spent and spent.prompt_tokens:
        tokens = _format_tokens(spent.prompt_tokens, spent.completion_tokens)
        yield f"All replies behind this run, whenever they were paid for: {tokens}."
    if usage.not_asked:
        yield (
            f"Questions not asked: {usage.not_asked:,}, because the budget or the time of the run was used up. "
            "The same command continues the run; missing verdicts are counted as skipped."
        )


def _format_tokens(prompt: int, completion: int | None) -> str:
    """Write what a judge counted; one that returns no text may not count any."""
    more = "" if completion is None else f" and {completion:,} completion"
    return f"{prompt:,} prompt{more} tokens"


def _cascade_notes(cascade: Cascade) -> Iterator[str]:
    yield (
        "A cascade judged: the cheap judge decided where it was sure, and the other one saw "
        f"{format_share_of(cascade.share_dear, 'question')}. One judge decides all metrics "
        "of a case. Metrics that the cheap judge lacks cover only the cases of the other judge."
    )
    agreement = format_estimate("agreement", cascade.agreement)
    if agreement.measured:
        yield (
            "Both judged a random sample of the cheap judge's cases, and gave the same label in "
            f"{agreement.text}."
        )
    else:
        yield "The random sample of the cheap judge's cases is empty, so the two were not compared."
    for name, stage in cascade.stages.items():
        agreed = ""
        if stage.agreement is not None and stage.agreement.value is not None:
            same = format_estimate("agreement", stage.agreement).text
            agreed = f"; the judges after it gave the same label in {same}"
        cost = "" if stage.cost is None else f", cost {format_cost(stage.cost)}"
        yield (
            f"{shorten(name, _NAME_LENGTH)} decided {pluralize(stage.sure, 'question')}"
            f" ({pluralize(stage.calls, 'call')}{cost}){agreed}."
        )


def repeat_rows(run: Run) -> tuple[RepeatRow, ...]:
    """Return how far each metric moved between samples; empty if each question was put once."""
    repeats = summary_of(run).repeats
    rows = []
    for metric, repeatability in repeats.metrics.items():
        flips = format_estimate(metric, repeatability.flip_rate)
        spread = format_estimate(metric, repeatability.spread)
        if flips.measured or spread.measured:
            sd = repeats.run[metric].sd if metric in repeats.run else None
            rows.append(RepeatRow(metric, flips, spread, "" if sd is None else f"{sd:.3f}"))
    return tuple(rows)


def read_audit(run: Run) -> AuditView | None:
    """Read the audit of a run's judge, rows with a finding first; None if there is none."""
    audit = audit_of(run)
    if audit is None:
        return None
    tables = [
        (metric, change, row)
        for metric, changes in (*audit.metrics.items(), ("preference", audit.preferences))
        for change, row in changes.items()
    ]
    order = {change: position for position, change in enumerate(_CHANGE_NAMES)}
    tables.sort(key=lambda table: (not table[2].finding, order.get(table[1], len(order))))
    rows = tuple(
        AuditRow(
            shorten(metric, _NAME_LENGTH),
            _CHANGE_NAMES.get(change, shorten(change.replace("_", " "), _NAME_LENGTH)),
            row,
            _flip_directions(row),
        )
        for metric, change, row in tables
    )
    if not rows and not audit.notes:
        return None
    judge = shorten(audit.judge, _NAME_LENGTH)
    facts = f"The judge {judge} judged" if judge else "The judge judged"
    if audit.cases:
        facts += f" {pluralize(audit.cases, 'case')} of the run"
    facts += " again, with changes that must not matter."
    if judge and judge != manifest_of(run).judge:
        facts += " It is not the judge of this run."
    return AuditView(facts, rows, audit.notes)


def _flip_directions(row: AuditedChange) -> str:
    """Which way labels turned, as shares of all repeated verdicts."""
    ways = (("good", row.to_good), ("bad", row.to_bad))
    parts = [
        f"{format_estimate('share', share).brief} to {word}"
        for word, share in ways
        if share is not None and share.value is not None
    ]
    if row.places:
        first, second = row.places.get("first", 0), row.places.get("second", 0)
        parts.append(f"{first:,} for the one shown first, {second:,} for the second")
    if row.claims and row.claims.value is not None:
        claims = format_estimate("share", row.claims).brief
        parts.append(f"of the answer's own claims {claims} get another verdict")
    if row.may_lower:
        parts.append("here a good verdict may turn bad and still be right")
    return "; ".join(parts)
