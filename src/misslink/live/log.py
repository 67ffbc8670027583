"""Read a live log: plans, exposures and feedback."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import math
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from misslink.errors import InputError, known_names
from misslink.live.log_store import EXPOSURE_COLUMNS, LIVE_LOG_FORMAT

# assigned: by the split, and the only mode whose user metrics compare variants.
# excluded: got control, by the exclusion. override: a tester chose. no_unit: nobody knows whose
# request it was, so control. shadow: asked beside the request `of`, and answered nobody.
# interleaved: a list of passages drawn from two retrievers by `teams`.
MODES = ("assigned", "excluded", "override", "no_unit", "shadow", "interleaved")
# ok: what was assigned was served. fell_back: it failed and control was served (interleaved: one
# retriever failed). failed: nothing was served, or the shadow failed. left: the request was
# cancelled, or its reader left the stream. dropped: a shadow for which there was no room.
OUTCOMES = ("ok", "fell_back", "failed", "left", "dropped")
# Feedback kinds that misslink knows; others are the user's own.
KINDS = ("thumbs", "task_done", "cost", "latency", "reformulation", "click", "use")


@dataclass(frozen=True, slots=True)
class Plan:
    """What an experiment was like from some moment on.

    Parameters
    ----------
    id : int
    since : float
        When the first process came up with it, in seconds since 1970.
    control : str
    split, shadow : mapping of str to float
        Planned shares when the ramp is over, adding up to 1; shares of requests shadowed.
    excluded : float or None
        The excluded share; None: a predicate of the user's own.
    ramp : tuple of (float, float)
        Moments in seconds since 1970, and the share open from then on; empty: none.
    linear : bool
        Whether the ramp grows evenly.
    is_salted : bool
        Whether unit hashes have a salt.
    salt_check : str
        Two plans whose checks differ hash the same unit differently: their units do not join.
    """

    id: int
    since: float
    control: str
    split: Mapping[str, float]
    shadow: Mapping[str, float]
    excluded: float | None
    ramp: tuple[tuple[float, float], ...]
    linear: bool
    is_salted: bool
    salt_check: str


@dataclass(frozen=True, slots=True)
class Exposure:
    """One request to one variant, as the live log stores it.

    Parameters
    ----------
    id : str
        The app's own request id (``misslink_exposure``), or a generated one.
    plan : int
        The `Plan` in force.
    unit : str or None
        Hash of the user or session id. None: unknown.
    variant : str or None
        The assigned or shadowed variant. None: both, interleaved.
    served : str or None
        The variant that answered. None: no variant, or both, interleaved.
    mode, outcome : str
        See `MODES` and `OUTCOMES`.
    open_share : float
        Share of the ramp that was open, in [0, 1]. A treatment's planned share is its share of the
        split times this value.
    at : float
        Start of the request by the local clock, in seconds since 1970.
    latency_s : float or None
        Seconds until the answer was complete, including the time of a failed variant. None: the
        variant did not run.
    error : str or None
        Error types; their messages only if the log stores texts.
    of : str or None
        Id of the request that a shadow answered in the background.
    prompt_tokens, completion_tokens : int or None
        Total over all model calls. None: no model reported its tokens.
    cost : float or None
        Cost, in the currency of the user's prices. None: unknown.
    retrieved : tuple of str or None
        Ids of the retrieved passages, best first. None: no retrieval was observed.
    teams : tuple of (str or None) or None
        For interleaved requests, the variant that gets credit for each of `retrieved`; None for a
        passage without credit.
    question_hash : str or None
        Hash of the question, with the same key as `unit`. Equal questions have equal hashes.
    question, answer : str or None
        Set only if the log stores texts.
    """

    id: str
    plan: int
    unit: str | None
    variant: str | None
    served: str | None
    mode: str
    outcome: str
    open_share: float
    at: float
    latency_s: float | None
    error: str | None
    of: str | None
    prompt_tokens: int | None
    completion_tokens: int | None
    cost: float | None
    retrieved: tuple[str, ...] | None
    teams: tuple[str | None, ...] | None
    question_hash: str | None
    question: str | None
    answer: str | None


@dataclass(frozen=True, slots=True)
class Feedback:
    """What a unit said or did.

    Parameters
    ----------
    exposure : str or None
        The request that it is about; None: only the unit is known.
    unit : str or None
        The unit's hash; from the exposure where only that was given and it is in the log.
    kind : str
        One of `KINDS`, or the user's own.
    value : float
        thumbs and task_done: 1 or 0. cost and latency (seconds): a number from 0. reformulation,
        click, use: 1.
    passage : str or None
        What was clicked or used.
    at : float
        Seconds since 1970.
    """

    exposure: str | None
    unit: str | None
    kind: str
    value: float
    passage: str | None
    at: float


@dataclass(frozen=True, slots=True)
class Variant:
    """A variant of the latest plan.

    Parameters
    ----------
    name : str
    planned : float
        Its share of the split, in [0, 1]; 0 for a shadow.
    shadow : float
        The share of requests that it shadows, in [0, 1].
    is_control : bool
    """

    name: str
    planned: float
    shadow: float
    is_control: bool


@dataclass(frozen=True, slots=True)
class LiveData:
    """One experiment of a live log.

    Parameters
    ----------
    path, experiment, control : str
    variants : tuple of Variant
        Of the latest plan, control first.
    plans : tuple of Plan
        Oldest first; more than one where split, ramp or salt were changed.
    exposures : tuple of Exposure
        In the order in which they were written, which a clock set back does not change.
    feedback : tuple of Feedback
        In that order too.
    lost : int
        Rows that the writers gave up, because the log could not be written for too long.
    read_at : dt.datetime
    """

    path: str
    experiment: str
    control: str
    variants: tuple[Variant, ...]
    plans: tuple[Plan, ...]
    exposures: tuple[Exposure, ...]
    feedback: tuple[Feedback, ...]
    lost: int
    read_at: dt.datetime

    def planned(self, exposure: Exposure) -> dict[str, float]:
        """The split that was in force for `exposure`, its ramp included; it adds up to 1."""
        plan = next(plan for plan in self.plans if plan.id == exposure.plan)
        treated = {
            name: share * exposure.open_share
            for name, share in plan.split.items()
            if name != plan.control
        }
        return {plan.control: 1.0 - sum(treated.values()), **treated}


_PLANS = (
    "SELECT id, since, control, split, shadow, excluded, ramp, linear, salted, salt_check"
    " FROM plans WHERE experiment = ? ORDER BY id"
)
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
    with _opened(where, busy_s) as file:
        return _experiment_names(file)


def read_live(path: str | Path, experiment: str | None = None, *, busy_s: float = 5.0) -> LiveData:
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
    with _opened(where, busy_s) as file:
        file.execute("BEGIN")  # everything as of one moment
        name = _choose_experiment(_experiment_names(file), experiment, where)
        # Rows are read one by one, so that a damaged one is named.
        plans = tuple(_plan(row, where) for row in file.execute(_PLANS, (name,)))
        exposures = tuple(
            _exposure(row, where) for row in file.execute(_EXPOSURES + _TRACES, (name,))
        )
        feedback = tuple(_feedback(row, where) for row in file.execute(_FEEDBACK, (name,)))
        lost = file.execute("SELECT coalesce(sum(rows), 0) FROM losses").fetchone()[0]
    latest = plans[-1]
    names = (latest.control, *(v for v in (*latest.split, *latest.shadow) if v != latest.control))
    return LiveData(
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


@contextlib.contextmanager
def _opened(path: Path, busy_s: float) -> Iterator[sqlite3.Connection]:
    with (
        contextlib.closing(LIVE_LOG_FORMAT.open_read_only(path, wait_s=busy_s)) as file,
        LIVE_LOG_FORMAT.errors(path),
    ):
        yield file


def _experiment_names(file: sqlite3.Connection) -> list[str]:
    rows = file.execute("SELECT experiment FROM plans GROUP BY experiment ORDER BY min(id)")
    return [name for (name,) in rows]


def _choose_experiment(names: list[str], requested: str | None, path: Path) -> str:
    if not names:
        raise InputError("The log contains no experiment yet.", path=path)
    if requested is None:
        if len(names) > 1:
            raise InputError(
                f"this log holds {len(names)} experiments: {', '.join(names)}; "
                "choose one with --experiment",
                path=path,
            )
        return names[0]
    if requested not in names:
        raise InputError(
            f"no experiment '{requested}' here; {known_names(requested, names)}", path=path
        )
    return requested


def _plan(row: tuple[Any, ...], path: Path) -> Plan:
    number, since, control, split, shadow, excluded, ramp, linear, salted, check = row
    try:
        shares = {str(name): _share(value) for name, value in json.loads(split).items()}
        shadows = {str(name): _share(value) for name, value in json.loads(shadow).items()}
        steps = tuple((float(moment), _share(share)) for moment, share in json.loads(ramp))
        _check(control in shares, "the control is not in the split")
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
                _check(named, f"{column} holds something other than names")
                fields[column] = tuple(values)
        _check(fields["mode"] in MODES, f"mode is {fields['mode']}")
        _check(fields["outcome"] in OUTCOMES, f"outcome is {fields['outcome']}")
        for column in ("at", "open_share"):
            _check(isinstance(fields[column], float | int), f"{column} is no number")
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


def _check(is_so: bool, otherwise: str) -> None:
    if not is_so:
        raise ValueError(otherwise)


def _damaged(record_kind: str, which: object, problem: object, path: Path) -> InputError:
    return InputError(
        f"{record_kind} {which} cannot be read ({problem}): the log is damaged", path=path
    )
