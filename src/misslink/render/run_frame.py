"""A run as a table."""

from __future__ import annotations

from typing import Any

from misslink.parts import by_case
from misslink.types import Run


def run_frame(run: Run) -> Any:
    """Return a DataFrame with one row per case."""
    import pandas as pd

    links = by_case(run.links)
    values: dict[str, dict[str, float | None]] = {}
    for verdict in run.scores:
        values.setdefault(verdict.case_id, {})[verdict.metric] = verdict.value
    rows = []
    for case in run.cases:
        link = links.get(case.id)
        row: dict[str, Any] = {"case_id": case.id, "question": case.question}
        for name in ("retrieval", "answer", "correct", "failure", "owner", "reason"):
            row[name] = getattr(link, name, None)
        rows.append({**row, **values.get(case.id, {})})
    return pd.DataFrame(rows)
