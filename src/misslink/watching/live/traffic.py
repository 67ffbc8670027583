"""One experiment's requests on their way: what each was assigned, and what is logged of it.

Whatever goes wrong in here is counted and told once, and never reaches the user whose request it
is: a request that cannot be assigned gets control.
"""

from __future__ import annotations

import logging
import math
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from misslink.capture.answers import read
from misslink.capture.models import added
from misslink.errors import InputError
from misslink.types import Usage
from misslink.watching.live.assignment import Experiment, keyed_hash, unit_hash
from misslink.watching.live.feedback import checked
from misslink.watching.live.listening import Tally, install_hook, question_of
from misslink.watching.live.reformulation import Reformulations
from misslink.watching.live.writer import LiveLog, entry_of

__all__ = ["EXPOSURE_KEY", "VARIANT_KEY", "Request", "Traffic"]

_log = logging.getLogger(__name__)
EXPOSURE_KEY = "misslink_exposure"
VARIANT_KEY = "misslink_variant"
_LONGEST_NAME = 200
_LONGEST_ERROR = 500

UnitOf = Callable[[Any, Mapping[str, Any]], str | None]


@dataclass(eq=False)
class Request:
    """A request, from its coming to its being logged.

    Parameters
    ----------
    id : str
    config : dict
        LangChain's own.
    variant : str or None
        None: of several at once.
    mode : str
    open_share : float
    unit, question : str or None
        The unit's hash, and the question as it was asked.
    at, began : float
        Seconds since 1970, and by the clock that is never set.
    """

    id: str
    config: dict[str, Any]
    variant: str | None
    mode: str = "no_unit"
    open_share: float = 0.0
    unit: str | None = None
    question: str | None = None
    at: float = field(default_factory=time.time)
    began: float = field(default_factory=time.perf_counter)
    served: str | None = None
    errors: list[tuple[str, BaseException]] = field(default_factory=list)
    tallies: list[Tally] = field(default_factory=list)

    @property
    def usage(self) -> Usage | None:
        """The tokens of every variant that was asked."""
        used: Usage | None = None
        for tally in self.tallies:
            used = added(used, tally.usage)
        return used


class Traffic:
    """Begins and ends the requests of an experiment, and takes feedback on them.

    Parameters
    ----------
    experiment : Experiment
    log : LiveLog, str, Path or None
        None: nothing is logged.
    unit : str or callable
        The key under ``config["configurable"]`` that holds the id of the user or session, or a
        function of the input and the config.
    salt : str or None
        As `misslink.watching.live.assignment.unit_hash` takes it.
    keep_texts : bool
        Whether questions, answers and the words of errors are logged.
    id_key : str or None
        The metadata key that holds a passage's id.
    cost : callable or None
        What a `Usage` costs.
    reformulation_min : float or None
        Within how many minutes a unit's next question, alike and not the same, counts as a
        reformulation. None: that is not looked for.
    needs_unit : bool
        Whether a request without a unit is a trouble.
    """

    def __init__(
        self,
        experiment: Experiment,
        log: LiveLog | str | Path | None,
        *,
        unit: str | UnitOf,
        salt: str | None,
        keep_texts: bool,
        id_key: str | None,
        cost: Callable[[Usage], float] | None,
        reformulation_min: float | None,
        needs_unit: bool = True,
    ) -> None:
        _must_fit(log, unit, cost)
        self.experiment = experiment
        self.owns_log = isinstance(log, str | Path)
        self.log = LiveLog(log) if isinstance(log, str | Path) else log
        self.troubles: Counter[str] = Counter()
        self._entry = entry_of(experiment, salt)
        self._unit = unit
        self._needs_unit = needs_unit
        self._salt = salt
        self._keep_texts = keep_texts
        self._id_key = id_key
        self._cost = cost
        self._again = None if reformulation_min is None else Reformulations(reformulation_min)
        self._lock = threading.Lock()
        install_hook()

    def begin(self, asked: Any, config: Mapping[str, Any]) -> Request:
        """Assign a request; one that cannot be gets control."""
        request = Request(uuid.uuid4().hex, dict(config), str(self.experiment.control))
        try:
            self._fill(request, asked)
        except Exception as error:  # noqa: BLE001 - the user's own functions; nobody waits for this
            self.trouble("a request could not be assigned and got control", error)
        try:
            request.question = question_of(asked)
        except Exception as error:  # noqa: BLE001 - an input of the user's own making
            self.trouble("the question of a request could not be read", error)
        return request

    def tally(self, request: Request) -> Tally:
        """Return a new listener for the next variant that the request is put to."""
        request.tallies.append(Tally(self._id_key))
        return request.tallies[-1]

    def end(self, request: Request, outcome: str, output: Any = None, **others: Any) -> None:
        """Log a request.

        Parameters
        ----------
        request : Request
        outcome : str
            One of `misslink.watching.live.records.OUTCOMES`.
        output : object
            What was answered.
        others
            Columns that win over what is worked out here.
        """
        if self.log is None:
            return
        try:
            values = {**self._row(request, outcome, output), **others}
            self.log.exposure(self._entry, values)
            if request.mode != "shadow":
                self._look_for_reformulation(request)
        except Exception as error:  # noqa: BLE001 - the answer is there, and goes out
            self.trouble("a request could not be logged", error)

    def feedback(
        self,
        kind: str,
        value: float = 1.0,
        *,
        exposure: str | None = None,
        unit: str | None = None,
        passage: str | None = None,
    ) -> None:
        """Log what a user said or did.

        Parameters
        ----------
        kind : str
            thumbs, task_done, cost, latency, reformulation, click, use, or a name of your own.
        value : float
            thumbs and task_done: 1 (up, done) or 0; cost, latency (seconds) and the rest of the
            known kinds: from 0; of your own kinds: any number.
        exposure : str or None
            The id that the app gave the request (``misslink_exposure``).
        unit : str or None
            The id of the user or session, where the request is not known.
        passage : str or None
            The id of what was clicked or used.

        Raises
        ------
        InputError
            It is about nobody, of no kind, or its value is none.
        """
        number = checked(kind, value)
        if not exposure and not unit:
            raise InputError("feedback is about a request or a unit: give exposure= or unit=")
        if self.log is None:
            return
        hashed = None if unit is None else self._hashed(str(unit))
        values = (exposure and str(exposure), hashed, kind, number, passage, time.time())
        self.log.feedback(self._entry, values)

    def trouble(self, what: str, error: BaseException | None = None) -> None:
        """Count what went wrong, and tell it the first time."""
        with self._lock:
            self.troubles[what] += 1
            is_first = self.troubles[what] == 1
        if is_first:
            said = "" if error is None else f" ({type(error).__name__})"
            _log.warning("experiment '%s': %s%s", self.experiment.name, what, said)

    def _fill(self, request: Request, asked: Any) -> None:
        configurable = request.config.get("configurable") or {}
        given = configurable.get(EXPOSURE_KEY)
        if given is not None and str(given).strip():
            request.id = str(given)[:_LONGEST_NAME]
        chosen = configurable.get(VARIANT_KEY)
        if chosen in self.experiment.variants:
            request.variant, request.mode = str(chosen), "override"
        elif chosen is not None:
            self.trouble(f"'{VARIANT_KEY}' named no variant and was not heeded")
        unit = self._unit_of(asked, request.config, configurable)
        if unit is None:
            if request.mode == "no_unit" and self._needs_unit:
                self.trouble("requests came without a unit and got control")
            return
        request.unit = self._hashed(unit)
        if request.mode != "override":
            given_to = self.experiment.assign(unit, request.at)
            request.variant, request.mode = given_to.variant, given_to.mode
            request.open_share = given_to.open_share

    def _unit_of(
        self, asked: Any, config: Mapping[str, Any], configurable: Mapping[str, Any]
    ) -> str | None:
        found = self._unit(asked, config) if callable(self._unit) else configurable.get(self._unit)
        return None if found is None or found == "" else str(found)

    def _hashed(self, unit: str) -> str:
        return unit_hash(unit, self.experiment.name, self._salt)

    def _row(self, request: Request, outcome: str, output: Any) -> dict[str, Any]:
        usage = request.usage
        question = request.question
        kept = self._keep_texts
        return {
            "id": request.id,
            "unit": request.unit,
            "variant": request.variant,
            "served": request.served,
            "mode": request.mode,
            "outcome": outcome,
            "open_share": request.open_share,
            "at": request.at,
            "latency_s": time.perf_counter() - request.began,
            "error": "; ".join(_said(*error, in_words=kept) for error in request.errors) or None,
            "prompt_tokens": usage.prompt_tokens if usage else None,
            "completion_tokens": usage.completion_tokens if usage else None,
            "cost": self._price(usage),
            "retrieved": request.tallies[-1].retrieved if request.tallies else None,
            "question_hash": question
            and keyed_hash("question", question, self.experiment.name, self._salt),
            "question": question if kept else None,
            "answer": read(output).answer if kept and output is not None else None,
        }

    def _price(self, usage: Usage | None) -> float | None:
        if usage is None or self._cost is None:
            return None
        try:
            price = float(self._cost(usage))
        except Exception as error:  # noqa: BLE001 - the user's own function
            self.trouble("the cost of a request could not be worked out", error)
            return None
        return price if math.isfinite(price) else None

    def _look_for_reformulation(self, request: Request) -> None:
        if self._again is None or self.log is None or not (request.unit and request.question):
            return
        of = self._again.seen(request.id, request.unit, request.question, request.at)
        if of is not None:
            values = (of, request.unit, "reformulation", 1.0, None, request.at)
            self.log.feedback(self._entry, values)


def _said(variant: str, error: BaseException, *, in_words: bool) -> str:
    name = f"{variant}: {type(error).__name__}"
    words = " ".join(str(error).split())[:_LONGEST_ERROR] if in_words else ""
    return f"{name}: {words}" if words else name


def _must_fit(log: object, unit: object, cost: object) -> None:
    if not isinstance(log, LiveLog | str | Path | None):
        raise InputError(f"the log is {log!r}: a path or a LiveLog is needed")
    if not (callable(unit) or (isinstance(unit, str) and unit)):
        raise InputError(f"unit is {unit!r}: a key or a function of the input is needed")
    if cost is not None and not callable(cost):
        raise InputError(f"cost is {cost!r}: a function of a Usage is needed")
