"""Show a run in a notebook: what fails, who can fix it, the first step, and the report."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

from misslink.calibration.labelled_failures import apply_labels
from misslink.documents import summary_of
from misslink.render.headline import describe_association, describe_errors, describe_verdict
from misslink.report.findings import find
from misslink.report.summary import failure_mode_rows, next_steps
from misslink.types import Run


def run_html(run: Run) -> str:
    """Return a run as HTML: the headline, failure modes with owners, the first step, a link."""
    findings, folder = find(run), summary_of(run).run
    run = apply_labels(run)
    headline = f"{describe_verdict(findings)} {describe_association(findings)}".strip()
    parts = [f"<p>{escape(errors)}</p>" if (errors := describe_errors(findings)) else ""]
    parts.append(f"<p><b>{escape(headline)}</b></p>")
    rows = [(row.mode.label, row.owner, f"{row.count:,}") for row in failure_mode_rows(run)]
    if rows:
        header = "".join(f"<th>{name}</th>" for name in ("failure mode", "owner", "cases"))
        cells = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows)
        body = "".join(f"<tr>{row}</tr>" for row in cells)
        parts.append(f"<table><tr>{header}</tr>{body}</table>")
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
