"""Check a run against ship criteria."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from misslink.api.saved_run import SavedRun
from misslink.gates.baseline_diff import read_baseline
from misslink.gates.criteria import read_criteria
from misslink.gates.decision import decide_gates
from misslink.gates.outcome import GateDecision
from misslink.io.score_tables import is_score_table, read_scored_run
from misslink.types import Run


def gate(
    run: Run | str | Path | Any,
    criteria: str | Path,
    baseline: Run | str | Path | Any | None = None,
    *,
    allow_missing_baseline: bool = False,
) -> GateDecision:
    """Check a run against ship criteria.

    Parameters
    ----------
    run : Run, path, data frame or list of mappings
        A run, its folder, or a score table as of `compare` with one run.
    criteria : path
        A criteria file in YAML, JSON or TOML.
    baseline : Run, path, data frame, list of mappings or None
        An earlier run, its folder, its ``summary.json`` or a score table, for gates on regressions.
    allow_missing_baseline : bool
        Without a baseline, do not check regressions and new failures.

    Returns
    -------
    GateDecision
        ``passed``, and the ``outcomes`` of the gates in the order of the file.

    Raises
    ------
    InputError
        A file cannot be read, a metric is unknown, or a gate needs a baseline and there is none.

    Examples
    --------
    >>> import misslink
    >>> decision = misslink.gate("reports/today", "ship-criteria.yaml")  # doctest: +SKIP
    >>> decision.passed  # doctest: +SKIP
    True
    """
    gates = read_criteria(criteria)  # a mistake in it is reported before the run is read
    if is_score_table(run):
        folder = Path(run) if isinstance(run, str | Path) else None
        saved = SavedRun(read_scored_run(run), folder)
    else:
        saved = SavedRun.open(run, anywhere=True)
    before = None if baseline is None else read_baseline(baseline)
    return decide_gates(
        saved.run,
        gates,
        before,
        folder=saved.folder,
        allow_missing_baseline=allow_missing_baseline,
    )
