"""What a live log holds, its SQLite schema, and reading it: plans, exposures and feedback."""

from __future__ import annotations

import contextlib
import datetime as dt
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import Field, FiniteFloat, Json, TypeAdapter, ValidationError

from misslink.errors import InputError, known_names
from misslink.io.numbers import shorten_repr
from misslink.io.sqlite import SqliteFormat

# assigned: by the split, and the only mode whose user metrics compare variants.
# excluded: got control, by the exclusion. override: a tester chose. no_unit: nobody knows whose
# request it was, so control. shadow: asked beside the request `of`, and answered nobody.
# interleaved: a list of passages drawn from two retrievers by `teams`.
Mode = Literal["assigned", "excluded", "override", "no_unit", "shadow", "interleaved"]
# ok: what was assigned was served. fell_back: it failed and control was served (interleaved: one
# retriever failed). failed: nothing was served, or the shadow failed. left: the request was
# cancelled, or its reader left the stream. dropped: a shadow for which there was no room.
Outcome = Literal["ok", "fell_back", "failed", "left", "dropped"]
# Feedback kinds that misslink knows; others are the user's own.
KINDS = ("thumbs", "task_done", "cost", "latency", "reformulation", "click", "use")

_Share = Annotated[float, Field(ge=0, le=1)]
_Names = Json[tuple[str | None, ...]] | None
_RowT = TypeVar("_RowT", bound="Plan | Exposure | Feedback")


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
    split: Json[dict[str, _Share]]
    shadow: Json[dict[str, _Share]]
    excluded: float | None
    ramp: Json[tuple[tuple[float, _Share], ...]]
    linear: bool
    is_salted: bool
    salt_check: str

    def __post_init__(self) -> None:
        if self.control not in self.split:
            raise ValueError("the control is not in the split")


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
        See `Mode` and `Outcome`.
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
    mode: Mode
    outcome: Outcome
    open_share: FiniteFloat
    at: FiniteFloat
    latency_s: float | None
    error: str | None
    of: str | None
    prompt_tokens: int | None
    completion_tokens: int | None
    cost: float | None
    retrieved: _Names
    teams: _Names
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
    value: FiniteFloat
    passage: str | None
    at: FiniteFloat


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


EXPOSURE_COLUMNS = tuple(field.name for field in fields(Exposure))
_SCHEMA = (
    """
    CREATE TABLE IF NOT EXISTS plans (
        id INTEGER PRIMARY KEY,
        experiment TEXT NOT NULL,
        digest TEXT NOT NULL,
        since REAL NOT NULL,
        control TEXT NOT NULL,
        split TEXT NOT NULL,
        shadow TEXT NOT NULL,
        excluded REAL,
        ramp TEXT NOT NULL,
        linear INTEGER NOT NULL,
        salted INTEGER NOT NULL,
        salt_check TEXT NOT NULL
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS exposures (
        number INTEGER PRIMARY KEY,
        id TEXT NOT NULL,
        plan INTEGER NOT NULL REFERENCES plans,
        unit TEXT,
        variant TEXT,
        served TEXT,
        mode TEXT NOT NULL,
        outcome TEXT NOT NULL,
        open_share REAL NOT NULL,
        at REAL NOT NULL,
        latency_s REAL,
        error TEXT,
        of TEXT,
        prompt_tokens INTEGER,
        completion_tokens INTEGER,
        cost REAL,
        retrieved TEXT,
        teams TEXT,
        question_hash TEXT,
        question TEXT,
        answer TEXT,
        UNIQUE (id, plan)
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS feedback (
        number INTEGER PRIMARY KEY,
        experiment TEXT NOT NULL,
        exposure TEXT,
        unit TEXT,
        kind TEXT NOT NULL,
        value REAL NOT NULL,
        passage TEXT,
        at REAL NOT NULL
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS losses (
        number INTEGER PRIMARY KEY,
        at REAL NOT NULL,
        rows INTEGER NOT NULL,
        reason TEXT NOT NULL
    )
    """,
    "CREATE INDEX IF NOT EXISTS exposures_by_plan ON exposures (plan)",
    "CREATE INDEX IF NOT EXISTS feedback_by_experiment ON feedback (experiment)",
)
LIVE_LOG_FORMAT = SqliteFormat(
    name="live log",
    hint="name another file",
    application_id=0x6D6C6C76,  # "mllv"
    version=1,
    schema=_SCHEMA,
)

_PLANS = (
    "SELECT id, since, control, split, shadow, excluded, ramp, linear, salted, salt_check"
    " FROM plans WHERE experiment = ? ORDER BY id"
)
_EXPOSURES = (
    f"SELECT {', '.join(f'exposures.{c}' for c in EXPOSURE_COLUMNS)}"  # noqa: S608 - our own names
    " FROM exposures JOIN plans ON plan = plans.id WHERE experiment = ? ORDER BY number"
)
# What is about an exposure that the log does not hold keeps what it came with.
_FEEDBACK = """
    SELECT exposure, coalesce(unit, (
        SELECT exposures.unit FROM exposures JOIN plans ON plan = plans.id
        WHERE exposures.id = feedback.exposure AND plans.experiment = feedback.experiment
        ORDER BY number LIMIT 1
    )), kind, value, passage, at
    FROM feedback WHERE experiment = ? ORDER BY number
"""


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
    with (
        contextlib.closing(LIVE_LOG_FORMAT.open_read_only(where, wait_s=busy_s)) as file,
        LIVE_LOG_FORMAT.errors(where),
    ):
        file.execute("BEGIN")  # everything as of one moment
        names = file.execute("SELECT experiment FROM plans GROUP BY experiment ORDER BY min(id)")
        name = _choose_experiment([name for (name,) in names], experiment, where)
        plans = tuple(_rows(Plan, file.execute(_PLANS, (name,)), where))
        exposures = tuple(_rows(Exposure, file.execute(_EXPOSURES, (name,)), where))
        feedback = tuple(_rows(Feedback, file.execute(_FEEDBACK, (name,)), where))
        lost = file.execute("SELECT coalesce(sum(rows), 0) FROM losses").fetchone()[0]
    latest = plans[-1]
    variants = dict.fromkeys((latest.control, *latest.split, *latest.shadow))
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
            for variant in variants
        ),
        plans=plans,
        exposures=exposures,
        feedback=feedback,
        lost=lost,
        read_at=dt.datetime.now(dt.UTC),
    )


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


def _rows(model: type[_RowT], rows: sqlite3.Cursor, path: Path) -> Iterator[_RowT]:
    """Read rows one by one, so that a damaged one is named."""
    parser, columns = TypeAdapter(model), [field.name for field in fields(model)]
    for row in rows:
        try:
            yield parser.validate_python(dict(zip(columns, row, strict=True)))
        except ValidationError as invalid:
            problem = invalid.errors(include_url=False)[0]
            column = next(iter(problem["loc"]), None)
            value = "" if column is None else f"{column} is {shorten_repr(problem['input'])}, "
            raise InputError(
                f"{model.__name__.lower()} {row[0] or row[1]} cannot be read "
                f"({value}{problem['msg']}): the log is damaged",
                path=path,
            ) from None
