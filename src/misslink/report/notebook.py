"""What a notebook shows of a run, and of the results of commands."""

from __future__ import annotations

import re
from functools import singledispatch
from html import escape
from pathlib import Path

from misslink.calibration.labelled_failures import apply_labels
from misslink.calibration_document import CalibrationDocument
from misslink.document_model import Result
from misslink.documents import Replay, WhatIf, summary_of
from misslink.gates.outcome import GateDecision
from misslink.render.format import format_decimal_estimate, format_estimate, format_p_value
from misslink.render.headline import describe_association, describe_errors, describe_verdict
from misslink.render.html import html_table
from misslink.render.selftest_sentences import describe_selftest, selftest_groups
from misslink.report.association import describe_causal_fraction
from misslink.report.findings import find
from misslink.report.summary import failure_mode_rows, next_steps
from misslink.selftests.document import Selftest
from misslink.types import Run


def run_html(run: Run) -> str:
    """Return a run as HTML: the headline, failure modes with owners, the first step, a link."""
    findings, folder = find(run), summary_of(run).run
    run = apply_labels(run)
    headline = f"{describe_verdict(findings)} {describe_association(findings)}".strip()
    parts = [f"<p>{escape(errors)}</p>" if (errors := describe_errors(findings)) else ""]
    parts.append(f"<p><b>{escape(headline)}</b></p>")
    rows = [(row.mode.label, row.owner, f"{row.count:,}") for row in failure_mode_rows(run)]
    parts.append(html_table("", ("failure mode", "owner", "cases"), rows))
    for step in next_steps(run)[:1]:
        text = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(f"{step.action} {step.why}"))
        parts.append(f"<p>First step: {text}</p>")
    if folder:
        path = Path(folder) / "report.html"
        # A browser that shows a notebook opens what is below its folder, by a relative address.
        if path.is_relative_to(Path.cwd()):
            path = path.relative_to(Path.cwd())
        report = escape(str(path))
        parts.append(f'<p>Report: <a href="{report}" target="_blank">{report}</a></p>')
    else:
        parts.append("<p>Report: <code>run.html(&quot;report.html&quot;)</code> writes it.</p>")
    return "".join(parts)


@singledispatch
def result_html(result: Result | GateDecision) -> str:
    """Return the result of a command as HTML: its conclusion and a table."""
    raise TypeError(type(result).__name__)


@result_html.register
def _gate_html(decision: GateDecision) -> str:
    rows = []
    for outcome in decision.outcomes:
        failed = "warning" if outcome.gate.severity == "warning" else "failed"
        rows.append(("passed" if outcome.passed else failed, outcome.gate.name, outcome.reason))
    return html_table(decision.counted(), ("", "gate", "why"), rows)


@result_html.register
def _calibration_html(document: CalibrationDocument) -> str:
    rows = [
        (name.replace("_", " "), format_decimal_estimate(name, estimate).brief)
        for name, estimate in document.agreement.items()
    ]
    title = f"{document.judge or 'the judge'} on {document.metric}: {document.verdict}"
    reasons = "".join(f"<p>{escape(reason)}</p>" for reason in document.reasons)
    return html_table(title, ("judge and annotators", "value [95%]"), rows) + reasons


@result_html.register
def _replay_html(document: Replay) -> str:
    names = ("fixed", "placebo_fixed", "net_fixed", "confirmed")
    rows = [
        (
            *(mode, f"{row.replayed:,} of {row.cases:,}"),
            *(format_estimate("share", getattr(row, name)).brief for name in names),
        )
        for mode, row in document.failures.items()
    ]
    share = format_estimate("share", document.causal_fraction).brief
    title = f"{share} {describe_causal_fraction(document)}"
    columns = ("failure", "replayed", *(name.replace("_", " ") for name in names))
    return html_table(title, columns, rows)


@result_html.register
def _whatif_html(document: WhatIf) -> str:
    recall = f"recall@{document.k}"
    rows = [
        (
            option.name,
            format_estimate(recall, option.metrics[recall].b).brief,
            format_p_value(option.metrics[recall].p_holm).removeprefix("p = "),
            format_estimate("failures_avoided", option.failures_avoided).brief,
        )
        for option in document.options
        if recall in option.metrics
    ]
    now = format_estimate(recall, document.baseline[recall]).brief if document.baseline else ""
    columns = ("option", recall, "p (Holm)", "failures avoided")
    return html_table(f"{recall} today {now}", columns, rows)


@result_html.register
def _selftest_html(document: Selftest) -> str:
    rows = [
        (
            label,
            owner or "none: harmless",
            f"{kind.n:,}",
            *(
                format_estimate("share", rate).brief if rate else ""
                for rate in (kind.found or kind.false_alarm, kind.owner_right)
            ),
        )
        for owner, _, kinds in selftest_groups(document)
        for label, kind in kinds
    ]
    columns = ("change", "owner", "n", "found or flagged", "owner right")
    return html_table(describe_selftest(document).line, columns, rows)
