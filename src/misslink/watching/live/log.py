"""A live log read: one experiment with its plans, exposures and feedback."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import math
import sqlite3
from pathlib import Path
from typing import Any

from misslink.errors import InputError, known_names
from misslink.watching.live.format import EXPOSURE_COLUMNS, opened_to_read, speaking
from misslink.watching.live.records import MODES, OUTCOMES, Exposure, Feedback, Live, Plan, Variant

__all__ = ["experiments_in", "read_live"]

_EXPOSURES = f"SELECT {', '.join(f'exposures.{c}' for c in EXPOSURE_COLUMNS)}"
_TRACES = " FROM exposures JOIN plans ON plan = plans.id WHERE experiment = ? ORDER BY number"
# What is about an exposure that the log does not hold keeps what it came with.
_FEEDBACK = """
    SELECT exposure, coalesce(unit, (
        SELECT exposures.unit FROM exposures JOIN plans ON plan = plans.id
        WHERE exposures.id = feedback.exposure AND plans.experiment = feedback.experiment
        ORDER BY number LIMIT 1
    )), kind, value, passage, at
    FROM feedback WHERE experiment = ? ORDER BY number
"""


def experiments_in(path: str | Path, *, busy_s: float = 5.0) -> list[str]:
    """Return the names of the experiments in a log, in the order in which they began.

    Raises
    ------
    InputError
        As `read_live`.
    """
    where = Path(path)
    with speaking(where), contextlib.closing(opened_to_read(where, busy_s=busy_s)) as file:
        return _names(file)


def read_live(path: str | Path, experiment: str | None = None, *, busy_s: float = 5.0) -> Live:
    """Read an experiment from a live log, which may be written to at the same time.

    Parameters
    ----------
    path : str or Path
    experiment : str or None
        None: the only one in it.
    busy_s : float
        How many seconds to wait for a program that holds the file.

    Raises
    ------
    InputError
        There is no log, it is of another kind, damaged, from a newer misslink or held by another
        program; it holds no such experiment, or several and none was named.
    """
    where = Path(path)
    with speaking(where), contextlib.closing(opened_to_read(where, busy_s=busy_s)) as file:
        file.execute("BEGIN")  # everything as of one moment
        name = _chosen(_names(file), experiment, where)
        # Rows are read one by one, so that a damaged one is named.
        plans = tuple(_plan(row, where) for row in _rows_of_plans(file, name))
        exposures = tuple(
            _exposure(row, where) for row in file.execute(_EXPOSURES + _TRACES, (name,))
        )
        feedback = tuple(_feedback(row, where) for row in file.execute(_FEEDBACK, (name,)))
        lost = file.execute("SELECT coalesce(sum(rows), 0) FROM losses").fetchone()[0]
    latest = plans[-1]
    names = (latest.control, *(v for v in (*latest.split, *latest.shadow) if v != latest.control))
    return Live(
        path=str(path),
        experiment=name,
        control=latest.control,
        variants=tuple(
            Variant(
                name=variant,
                planned=latest.split.get(variant, 0.0),
                shadow=latest.shadow.get(variant, 0.0),
                is_control=variant == latest.control,
            )
            for variant in names
        ),
        plans=plans,
        exposures=exposures,
        feedback=feedback,
        lost=lost,
        read_at=dt.datetime.now(dt.UTC),
    )


def _names(file: sqlite3.Connection) -> list[str]:
    rows = file.execute("SELECT experiment FROM plans GROUP BY experiment ORDER BY min(id)")
    return [name for (name,) in rows]


def _chosen(names: list[str], wanted: str | None, path: Path) -> str:
    if not names:
        raise InputError("no experiment has been written to this log yet", path=path)
    if wanted is None:
        if len(names) > 1:
            raise InputError(
                f"this log holds {len(names)} experiments: {', '.join(names)}; "
                "choose one with --experiment",
                path=path,
            )
        return names[0]
    if wanted not in names:
        raise InputError(f"no experiment '{wanted}' here; {known_names(wanted, names)}", path=path)
    return wanted


def _rows_of_plans(file: sqlite3.Connection, name: str) -> sqlite3.Cursor:
    return file.execute(
        "SELECT id, since, control, split, shadow, excluded, ramp, linear, salted, salt_check"
        " FROM plans WHERE experiment = ? ORDER BY id",
        (name,),
    )


def _plan(row: tuple[Any, ...], path: Path) -> Plan:
    number, since, control, split, shadow, excluded, ramp, linear, salted, check = row
    try:
        shares = {str(name): _share(value) for name, value in json.loads(split).items()}
        shadows = {str(name): _share(value) for name, value in json.loads(shadow).items()}
        steps = tuple((float(moment), _share(share)) for moment, share in json.loads(ramp))
        _must(control in shares, "the control is not in the split")
    except (ValueError, TypeError, AttributeError) as problem:
        raise _damaged("plan", number, problem, path) from None
    return Plan(
        id=number,
        since=since,
        control=control,
        split=shares,
        shadow=shadows,
        excluded=excluded,
        ramp=steps,
        linear=bool(linear),
        is_salted=bool(salted),
        salt_check=check,
    )


def _exposure(row: tuple[Any, ...], path: Path) -> Exposure:
    fields = dict(zip(EXPOSURE_COLUMNS, row, strict=True))
    try:
        for column in ("retrieved", "teams"):
            if fields[column] is not None:
                values = json.loads(fields[column])
                named = all(isinstance(value, str | None) for value in values)
                _must(named, f"{column} holds something other than names")
                fields[column] = tuple(values)
        _must(fields["mode"] in MODES, f"mode is {fields['mode']}")
        _must(fields["outcome"] in OUTCOMES, f"outcome is {fields['outcome']}")
        for column in ("at", "open_share"):
            _must(isinstance(fields[column], float | int), f"{column} is no number")
    except (ValueError, TypeError) as problem:
        raise _damaged("exposure", fields["id"], problem, path) from None
    return Exposure(**fields)


def _feedback(row: tuple[Any, ...], path: Path) -> Feedback:
    exposure, unit, kind, value, passage, at = row
    if not isinstance(value, float | int) or not math.isfinite(value):
        raise _damaged("feedback to", exposure or unit, "its value is no number", path)
    return Feedback(exposure, unit, kind, value, passage, at)


def _share(value: Any) -> float:
    share = float(value)
    if not 0 <= share <= 1:
        raise ValueError(f"a share of {share}")
    return share


def _must(is_so: bool, otherwise: str) -> None:
    if not is_so:
        raise ValueError(otherwise)


def _damaged(what: str, which: object, problem: object, path: Path) -> InputError:
    return InputError(f"{what} {which} cannot be read ({problem}): the log is damaged", path=path)
