"""What was known of units before an experiment, from a file of the user's own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from misslink.errors import InputError
from misslink.files.rows import read_rows
from misslink.watching.live.assignment import SALT_ENV, keyed_hash, unit_hash
from misslink.watching.live.records import Live
from misslink.watching.live_report.units import Unit

__all__ = ["PastFile"]

_ANY = "value"  # the column that serves every metric without one of its own


class PastFile:
    """Covariates by unit and metric.

    Parameters
    ----------
    path : Path
        CSV or JSONL with ``unit`` (the id of the user or session, as the app knows it) and
        ``value``, or a column with the name of a metric.
    live : Live
        The experiment, whose hash of units is looked up.
    metrics : sequence of str
        Of the report; other columns are passed over.
    salt : str or None
        As `misslink.watching.live.assignment.unit_hash` takes it.

    Raises
    ------
    InputError
        The file cannot be read, has a line without a unit or a value that is no number, names a
        unit twice, or none of the experiment's, or the log was written with another salt.
    """

    def __init__(
        self, path: Path, live: Live, metrics: Sequence[str], salt: str | None = None
    ) -> None:
        rows = list(read_rows(path, str(path)))
        check = keyed_hash("check", "", live.experiment, salt)[:8]
        if all(plan.salt_check != check for plan in live.plans):
            raise InputError(
                "the units of this file cannot be found in the log, which was written with another "
                f"salt; set {SALT_ENV} to the one that the app has",
                path=path,
            )
        self._values: dict[str, dict[str, float]] = {}
        for line, data in rows:
            unit = data.get("unit")
            if unit is None or isinstance(unit, bool | list | dict):
                raise InputError(
                    "a line needs the id of a unit under 'unit'", path=path, line=line, field="unit"
                )
            key = unit_hash(str(unit), live.experiment, salt)
            if key in self._values:
                raise InputError(
                    f"unit '{unit}' stands here twice; give each one line", path=path, line=line
                )
            self._values[key] = {
                name: _number(value, path, line, name)
                for name, value in data.items()
                if name in (_ANY, *metrics)
            }
        if not any(self._values.values()):
            raise InputError(
                f"no column is called {_ANY} or by a metric ({', '.join(metrics)}); name one so",
                path=path,
            )
        known = {one.unit for one in live.exposures}
        if not known & set(self._values):
            raise InputError(
                "none of its units is in the experiment; give the ids that the app gave the Router",
                path=path,
            )

    def __call__(self, metric: str, unit: Unit) -> float | None:
        """The covariate of a unit for a metric; None: not known."""
        row = self._values.get(unit.id, {})
        return row.get(metric, row.get(_ANY))


def _number(value: Any, path: Path, line: int | None, name: str) -> float:
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise InputError(
            f"'{value}' is no number; leave the field empty where none is known",
            path=path,
            line=line,
            field=name,
        )
    return number
