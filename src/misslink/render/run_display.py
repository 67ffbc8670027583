"""A run as a notebook shows it, and as a table."""

from __future__ import annotations

from html import escape
from typing import Any

from misslink.types import Run


def run_summary(run: Run) -> str:
    """Return HTML with the headline, the failure modes and a link to the report."""
    counts = [("failure mode", "cases"), *run.failure_counts()]
    rows = "".join(f"<tr><td>{name}</td><td>{count}</td></tr>" for name, count in counts)
    report = escape(f"{run.summary.get('run')}/report.html")
    link = f'<p><a href="{report}">{report}</a></p>' if run.summary.get("run") else ""
    text = f"<p><b>{escape(run.headline)}</b></p><p>{escape(repr(run))}</p>"
    return f"{text}<table>{rows}</table>{link}"


def run_frame(run: Run) -> Any:
    """Return a DataFrame with one row per case."""
    import pandas as pd

    links = {link.case_id: link for link in run.links}
    values: dict[str, dict[str, float | None]] = {}
    for verdict in run.verdicts:
        values.setdefault(verdict.case_id, {})[verdict.metric] = verdict.value
    rows = []
    for case in run.cases:
        link = links.get(case.id)
        row: dict[str, Any] = {"case_id": case.id, "question": case.question}
        for name in ("retrieval", "answer", "correct", "failure", "owner", "reason"):
            row[name] = getattr(link, name, None)
        rows.append({**row, **values.get(case.id, {})})
    return pd.DataFrame(rows)
