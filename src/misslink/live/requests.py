"""One request of an experiment: its unit, what it retrieved, its cost and its feedback."""

from __future__ import annotations

import logging
import math
import threading
import time
import uuid
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler

from misslink.capture.app import message_text, parse_app_output
from misslink.capture.passages import passage_from
from misslink.capture.recorder import reported_usage
from misslink.errors import InputError
from misslink.live.assignment import Experiment, keyed_hash, unit_hash
from misslink.live.log_store import LiveLog, plan_entry
from misslink.text.normalization import content_words, fold
from misslink.types import Usage

CURRENT_STATS: ContextVar[CallStats | None] = ContextVar("misslink_live_tally", default=None)
_QUESTION_KEYS = ("question", "query", "input", "user_input", "user_query", "prompt")
_LONGEST = 4000  # characters of a question that are looked at


class CallStats(BaseCallbackHandler):
    """Ids of the passages retrieved and the tokens used by one request.

    A retriever asked by another one is not counted beside it. What a callback cannot see (a vector
    store searched without a retriever, a client other than LangChain's) is not here.
    """

    # What is not listened to costs nothing: of chains and prompts nothing is kept.
    ignore_chain = True
    ignore_chat_model = True
    ignore_agent = True
    raise_error = False  # a bug in here never reaches the user
    run_inline = True  # in the app's own context, and not through a thread of its own

    def __init__(self, id_key: str | None = None) -> None:
        self.usage: Usage | None = None
        self._id_key = id_key
        self._found: dict[str, None] | None = None
        self._searching: set[UUID] = set()
        self._inner: set[UUID] = set()
        self._lock = threading.Lock()

    @property
    def retrieved(self) -> tuple[str, ...] | None:
        """Ids, best first, call after call, each once; None where no retrieval was seen."""
        return None if self._found is None else tuple(self._found)

    def on_retriever_start(
        self,
        serialized: dict[str, Any] | None,
        query: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **_: Any,
    ) -> None:
        """Note who asks inside of whom."""
        del serialized, query
        with self._lock:
            if parent_run_id in self._searching:
                self._inner.add(run_id)
            self._searching.add(run_id)

    def on_retriever_end(self, documents: Sequence[Any], *, run_id: UUID, **_: Any) -> None:
        """Keep the ids that an outermost retriever found."""
        if run_id in self._inner:
            return
        ids = [passage_from(document, id_key=self._id_key).id for document in documents]
        with self._lock:
            self._found = {**(self._found or {}), **dict.fromkeys(ids)}

    def on_llm_end(self, response: Any, *, run_id: UUID, **_: Any) -> None:
        """Add up the tokens."""
        del run_id
        with self._lock:
            self.usage = Usage.total((self.usage, reported_usage(response)))


@cache
def install_hook() -> None:
    """Let LangChain look for a tally in the context of whatever it runs, from now on."""
    from langchain_core.tracers.context import register_configure_hook

    register_configure_hook(CURRENT_STATS, inheritable=True)


def question_of(app_input: Any) -> str | None:
    """Return the question in an app's input, cut to 4,000 characters; None where none is seen.

    The input itself, or its field question, query, input, user_input, user_query or prompt, or
    the last message that is not the app's own.
    """
    if isinstance(app_input, str):
        return app_input[:_LONGEST] or None
    content = getattr(app_input, "content", None)
    if content is not None:
        return message_text(content)[:_LONGEST] or None
    if isinstance(app_input, Mapping):
        named = next((app_input[key] for key in _QUESTION_KEYS if app_input.get(key)), None)
        return question_of(app_input.get("messages") if named is None else named)
    if isinstance(app_input, list | tuple):
        return next(
            (text for message in reversed(app_input) if (text := _user_message(message))), None
        )
    return None


def _user_message(message: Any) -> str | None:
    if isinstance(message, tuple) and len(message) == 2:
        role, content = message
    elif isinstance(message, Mapping):
        role, content = message.get("role", message.get("type")), message.get("content")
    else:
        role, content = getattr(message, "type", None), getattr(message, "content", None)
    return message_text(content)[:_LONGEST] or None if role in ("user", "human") else None


_COMPARED_CHARS = 1000  # characters compared
_SIMILARITY_THRESHOLD = 60.0  # of 100


class ReformulationDetector:
    """The last question of each unit, for some minutes, in this process's memory only.

    Two questions are near-duplicates when their content words, sorted, are alike by 60 of 100
    (`rapidfuzz.fuzz.token_sort_ratio`); the very same question is none, since clients repeat a
    request that was slow. What one process answered another does not see: where requests of a
    unit go to several, some are missed, in every variant alike.

    Parameters
    ----------
    within_min : float
        How many minutes after its last question a unit's next one can be a reformulation.
    most_units : int
        How many units are remembered.
    """

    def __init__(self, within_min: float, most_units: int = 10_000) -> None:
        if not within_min > 0:
            raise InputError(f"reformulation_min is {within_min}; it must be above 0")
        self._within_s = within_min * 60
        self._most = most_units
        self._last: OrderedDict[str, tuple[float, str, str]] = OrderedDict()
        self._lock = threading.Lock()

    def match_reformulation(self, exposure: str, unit: str, question: str, at: float) -> str | None:
        """Remember a question; return the exposure that it is a reformulation of, or None.

        Parameters
        ----------
        exposure, unit : str
        question : str
        at : float
            Seconds since 1970.
        """
        folded = fold(question[:_COMPARED_CHARS])
        with self._lock:
            before = self._last.pop(unit, None)
            self._last[unit] = (at, folded, exposure)
            if len(self._last) > self._most:
                self._last.popitem(last=False)
        if before is None or not 0 <= at - before[0] <= self._within_s or before[1] == folded:
            return None
        from rapidfuzz import fuzz

        words, earlier = content_words(folded), content_words(before[1])
        if not words or not earlier:
            return None
        similarity = fuzz.token_sort_ratio(" ".join(words), " ".join(earlier))
        return before[2] if similarity >= _SIMILARITY_THRESHOLD else None


_LONGEST_KIND = 200
_UP_OR_DOWN = ("thumbs", "task_done")
_FROM_ZERO = ("cost", "latency", "reformulation", "click", "use")


def check_feedback(kind: str, value: float) -> float:
    """Return the value of feedback.

    Parameters
    ----------
    kind : str
        See `misslink.live.log.KINDS`; a name of the user's own takes any number.
    value : float

    Raises
    ------
    InputError
        It is of no kind, or no value of that kind.
    """
    if not isinstance(kind, str) or not kind.strip() or len(kind) > _LONGEST_KIND:
        raise InputError(f"the kind of feedback is {kind!r}: it must be a name such as thumbs")
    if not isinstance(value, bool | int | float) or not abs(value) < math.inf:
        raise InputError(f"the value of {kind} is {value!r}: it must be a number")
    if kind in _UP_OR_DOWN and value not in (0, 1):
        raise InputError(f"the value of {kind} is {value}: it must be 1 (good) or 0 (bad)")
    if kind in _FROM_ZERO and value < 0:
        raise InputError(f"the value of {kind} is {value}: it must be at least 0")
    try:
        return float(value)
    except OverflowError:
        raise InputError(f"the value of {kind} is too large to store") from None


_log = logging.getLogger(__name__)
EXPOSURE_KEY = "misslink_exposure"
VARIANT_KEY = "misslink_variant"
_LONGEST_NAME = 200
_ERROR_CHARS = 500

UnitOf = Callable[[Any, Mapping[str, Any]], str | None]


@dataclass(eq=False)
class Request:
    """One request, from its start until it is logged."""

    id: str
    config: dict[str, Any]
    variant: str | None  # None: several at once
    mode: str = "no_unit"
    open_share: float = 0.0
    unit: str | None = None  # hashed
    question: str | None = None
    at: float = field(default_factory=time.time)
    began: float = field(default_factory=time.perf_counter)
    served: str | None = None
    errors: list[tuple[str, BaseException]] = field(default_factory=list)
    tallies: list[CallStats] = field(default_factory=list)


@dataclass(frozen=True)
class RequestOptions:
    """How the requests of an app are identified, and what is logged of them.

    Parameters
    ----------
    unit : str or callable
        The key under ``config["configurable"]`` that holds the user or session id, or a function of
        the input and the config.
    salt : str or None
        Of the hashes of units and questions; None: the environment variable MISSLINK_LIVE_SALT. See
        `misslink.live.assignment.unit_hash`.
    keep_texts : bool
        Whether questions, answers and the words of errors are logged.
    id_key : str or None
        The metadata key that holds a passage's id.
    cost : callable or None
        What a `Usage` costs.
    reformulation_min : float or None
        Within how many minutes a unit's next question, alike and not the same, counts as a
        reformulation. None: that is not looked for.

    Raises
    ------
    InputError
        A field is of another type.
    """

    unit: str | UnitOf = "user_id"
    salt: str | None = None
    keep_texts: bool = False
    id_key: str | None = None
    cost: Callable[[Usage], float] | None = None
    reformulation_min: float | None = None

    def __post_init__(self) -> None:
        if not (callable(self.unit) or (isinstance(self.unit, str) and self.unit)):
            raise InputError(f"unit is {self.unit!r}: it must be a key or a function of the input")
        if self.cost is not None and not callable(self.cost):
            raise InputError(f"cost is {self.cost!r}: it must be a function of a Usage")


DEFAULT_REQUESTS = RequestOptions()


class Traffic:
    """Begins and ends the requests of an experiment, and takes feedback on them.

    Parameters
    ----------
    experiment : Experiment
    log : LiveLog, str, Path or None
        None: nothing is logged.
    options : RequestOptions
    needs_unit : bool
        Whether a request without a unit is a trouble.
    """

    def __init__(
        self,
        experiment: Experiment,
        log: LiveLog | str | Path | None,
        options: RequestOptions,
        *,
        needs_unit: bool = True,
    ) -> None:
        if not isinstance(log, LiveLog | str | Path | None):
            raise InputError(f"the log is {log!r}: it must be a path or a LiveLog")
        self.experiment = experiment
        self.owns_log = isinstance(log, str | Path)
        self.log = LiveLog(log) if isinstance(log, str | Path) else log
        self.troubles: Counter[str] = Counter()
        self._entry = plan_entry(experiment, options.salt)
        self._options = options
        self._needs_unit = needs_unit
        within_min = options.reformulation_min
        self._again = None if within_min is None else ReformulationDetector(within_min)
        self._lock = threading.Lock()
        install_hook()

    def begin(self, app_input: Any, config: Mapping[str, Any]) -> Request:
        """Assign a request; one that cannot be gets control."""
        request = Request(uuid.uuid4().hex, dict(config), str(self.experiment.control))
        try:
            self._fill(request, app_input)
        except Exception as error:  # noqa: BLE001 - the user's own functions; nobody waits for this
            self.trouble("a request could not be assigned and got control", error)
        try:
            request.question = question_of(app_input)
        except Exception as error:  # noqa: BLE001 - an input of the user's own making
            self.trouble("the question of a request could not be read", error)
        return request

    def add_call_stats(self, request: Request) -> CallStats:
        """Return a new listener for the next variant that the request is put to."""
        request.tallies.append(CallStats(self._options.id_key))
        return request.tallies[-1]

    def end(self, request: Request, outcome: str, output: Any = None, **others: Any) -> None:
        """Log a request.

        Parameters
        ----------
        request : Request
        outcome : str
            One of `misslink.live.log.OUTCOMES`.
        output : object
            What was answered.
        others
            Columns that win over what is worked out here.
        """
        if self.log is None:
            return
        try:
            self.log.exposure(self._entry, self._row(request, outcome, output) | others)
            if request.mode == "shadow" or self._again is None:
                return
            unit, question = request.unit, request.question
            if unit and question:
                earlier = self._again.match_reformulation(request.id, unit, question, request.at)
                if earlier is not None:
                    values = (earlier, unit, "reformulation", 1.0, None, request.at)
                    self.log.feedback(self._entry, values)
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
        """Log user feedback on a request or a unit.

        Parameters
        ----------
        kind : str
            thumbs, task_done, cost, latency, reformulation, click, use, or a custom name.
        value : float
            thumbs and task_done: 1 (up, done) or 0. cost, latency (seconds) and the other built-in
            kinds: at least 0. Custom kinds: any number. Default: 1.
        exposure : str or None
            The id that the app gave the request (``misslink_exposure``).
        unit : str or None
            The id of the user or session, if the request is unknown.
        passage : str or None
            The id of the passage that the user clicked or used.

        Raises
        ------
        InputError
            Both `exposure` and `unit` are missing, or `kind` or `value` is invalid.
        """
        number = check_feedback(kind, value)
        if not exposure and not unit:
            raise InputError("feedback is about a request or a unit: give exposure= or unit=")
        if self.log is None:
            return
        hashed = None if unit is None else self._hashed(str(unit))
        values = (exposure and str(exposure), hashed, kind, number, passage, time.time())
        self.log.feedback(self._entry, values)

    def trouble(self, description: str, error: BaseException | None = None) -> None:
        """Count what went wrong, and tell it the first time."""
        with self._lock:
            self.troubles[description] += 1
            is_first = self.troubles[description] == 1
        if is_first:
            detail = "" if error is None else f" ({type(error).__name__})"
            _log.warning("experiment '%s': %s%s", self.experiment.name, description, detail)

    def _fill(self, request: Request, app_input: Any) -> None:
        configurable = request.config.get("configurable") or {}
        given = configurable.get(EXPOSURE_KEY)
        if given is not None and str(given).strip():
            request.id = str(given)[:_LONGEST_NAME]
        chosen = configurable.get(VARIANT_KEY)
        if chosen in self.experiment.variants:
            request.variant, request.mode = str(chosen), "override"
        elif chosen is not None:
            self.trouble(f"'{VARIANT_KEY}' names no variant and was ignored")
        key = self._options.unit
        unit = key(app_input, request.config) if callable(key) else configurable.get(key)
        if unit is None or unit == "":
            if request.mode == "no_unit" and self._needs_unit:
                self.trouble("requests came without a unit and got control")
            return
        unit = str(unit)
        request.unit = self._hashed(unit)
        if request.mode != "override":
            assignment = self.experiment.assign(unit, request.at)
            request.variant, request.mode = assignment.variant, assignment.mode
            request.open_share = assignment.open_share

    def _hashed(self, unit: str) -> str:
        return unit_hash(unit, self.experiment.name, self._options.salt)

    def _row(self, request: Request, outcome: str, output: Any) -> dict[str, object]:
        usage = Usage.total(stats.usage for stats in request.tallies)  # of all variants that ran
        question, keep_texts = request.question, self._options.keep_texts
        errors = []
        for variant, error in request.errors:
            words = " ".join(str(error).split())[:_ERROR_CHARS] if keep_texts else ""
            errors.append(": ".join(filter(None, (variant, type(error).__name__, words))))
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
            "error": "; ".join(errors) or None,
            "prompt_tokens": usage.prompt_tokens if usage else None,
            "completion_tokens": usage.completion_tokens if usage else None,
            "cost": self._price(usage),
            "retrieved": request.tallies[-1].retrieved if request.tallies else None,
            "question_hash": question
            and keyed_hash("question", question, self.experiment.name, self._options.salt),
            "question": question if keep_texts else None,
            "answer": parse_app_output(output).answer
            if keep_texts and output is not None
            else None,
        }

    def _price(self, usage: Usage | None) -> float | None:
        if usage is None or self._options.cost is None:
            return None
        try:
            price = float(self._options.cost(usage))
        except Exception as error:  # noqa: BLE001 - the user's own function
            self.trouble("the cost of a request could not be computed", error)
            return None
        return price if math.isfinite(price) else None
