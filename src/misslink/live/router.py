"""Route live traffic between variants, and copy requests to shadow variants."""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import copy
import logging
import os
import threading
import time
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import aclosing, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from langchain_core.runnables import Runnable, RunnableConfig, ensure_config
from langchain_core.runnables.base import coerce_to_runnable

from misslink.errors import InputError, known_names
from misslink.event_loops import BackgroundLoop
from misslink.live.answering import (
    NoAnswerError,
    VariantCaller,
    copy_containers,
    join_chunks,
    must_be_answer,
)
from misslink.live.assignment import Experiment
from misslink.live.log_store import LiveLog, call_if_alive
from misslink.live.requests import CURRENT_STATS, DEFAULT_REQUESTS, Request, RequestOptions, Traffic
from misslink.timeouts import DaemonPool, TimeoutRunner, TookTooLongError

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ShadowOptions:
    """How shadow variants are called.

    Parameters
    ----------
    timeout_s : float
        Seconds that one may take. It is then abandoned, and while too many hang none is begun.
    concurrency, waiting : int
        Number of shadows that run at once, and number that wait. Further ones are dropped and
        logged as dropped.
    by_ainvoke : bool
        Call ``ainvoke``, in a separate event loop, for variants that are async only. Otherwise
        call ``invoke`` in threads.

    Raises
    ------
    InputError
        A number is not above 0.
    """

    timeout_s: float = 30.0
    concurrency: int = 4
    waiting: int = 100
    by_ainvoke: bool = False

    def __post_init__(self) -> None:
        if self.concurrency < 1 or self.waiting < 1 or not self.timeout_s > 0:
            raise InputError("timeout_s, concurrency and waiting of shadows must each be above 0")


@dataclass(eq=False)
class _ShadowJob:
    """A call that has not been reported yet; `began` is None while it waits."""

    work: Callable[[], Any]
    on_done: Callable[..., None]
    began: float | None = None
    is_reported: bool = False


class ShadowPool:
    """A bounded queue, and a few threads that work it off.

    Attributes
    ----------
    dropped : int
        Shadows for which there was no room.
    """

    def __init__(self, options: ShadowOptions = ShadowOptions()) -> None:
        self.dropped = 0
        self._options = options
        self._begin_empty()

    def _begin_empty(self) -> None:
        """Start without threads and jobs; after a fork those of the parent are the parent's."""
        most = self._options.concurrency
        self._process = os.getpid()
        self._bounded = TimeoutRunner(self._options.timeout_s, most_hung=most * 4)
        self._workers = DaemonPool(most)
        self._jobs: set[_ShadowJob] = set()
        self._changed = threading.Condition()
        self._loop: BackgroundLoop | None = None

    @property
    def hung(self) -> int:
        """Shadows left alone that are not done yet."""
        return self._bounded.hung

    def submit(self, work: Callable[[], Any], on_done: Callable[..., None]) -> bool:
        """Have `work` done some time; whether there was room.

        Parameters
        ----------
        work : callable
            Run without the context variables of the request: a handler that streams to the
            user's screen must not hear a shadow.
        on_done : callable
            Called with what came back, the error or None, and the seconds it took.
        """
        if self._process != os.getpid():
            self._begin_empty()
        job = _ShadowJob(work, on_done)
        with self._changed:
            if len(self._jobs) >= self._options.concurrency + self._options.waiting:
                self.dropped += 1
                return False
            self._jobs.add(job)
        self._workers.submit(self._run, job)
        return True

    def wait_for(self, begin: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """Wait for what `begin` makes, in an event loop of the shadows' own."""
        with self._changed:
            if self._loop is None:
                self._loop = BackgroundLoop(DaemonPool(self._options.concurrency * 4))
        return self._loop.call(begin, self._options.timeout_s)

    def close(self, timeout_s: float = 5.0) -> int:
        """Wait for shadows, time out unfinished ones and return how many never ran."""
        with self._changed:
            self._changed.wait_for(lambda: not self._jobs, timeout_s)
            left, self._jobs = self._jobs, set()
        for job in left:
            if job.began is None:
                self._report(job, None, None, None)
            else:
                error = TookTooLongError("it was still running at the end")
                self._report(job, None, error, time.perf_counter() - job.began)
        return sum(job.began is None for job in left)

    def _run(self, job: _ShadowJob) -> None:
        with self._changed:
            if job not in self._jobs:
                return
            job.began = time.perf_counter()
        value, error = None, None
        try:
            value = self._bounded.call(job.work, contextvars.Context())
        except BaseException as problem:  # noqa: BLE001 - a shadow's failure is its finding
            error = problem
        self._report(job, value, error, time.perf_counter() - job.began)
        with self._changed:
            self._jobs.discard(job)
            self._changed.notify_all()

    def _report(self, job: _ShadowJob, *outcome: Any) -> None:
        with self._changed:
            if job.is_reported:
                return
            job.is_reported = True
        try:
            job.on_done(*outcome)
        except Exception:  # noqa: BLE001 - the thread has other shadows to work off
            _log.exception("the result of a shadow could not be logged")


class Router(Runnable[Any, Any]):
    """Route each request of a LangChain app to one of several variants.

    Use it in place of the app: ``invoke``, ``ainvoke``, ``batch``, ``stream`` and the other methods
    return what the variant returns. If a variant other than control raises, times out or returns no
    answer, control answers and the log records it. Errors of control are raised. A separate thread
    writes the log; log failures are counted and reported once.

    Parameters
    ----------
    variants : mapping of str to Runnable or callable
        One variant for each name in the experiment.
    experiment : Experiment
        The variants' names and how units are split over them.
    log : LiveLog, str, Path or None
        Where to store requests and feedback; see `misslink.live.log_store`. None: no log.
    timeout_s : float or None
        Seconds that a variant other than control may take for its answer, or for each chunk of its
        stream, before control answers. The variant then runs in a separate thread, so a variant
        that hangs does not block the app's threads. None: no limit. Chunks of a stream are passed on
        from the first one with content; errors after it are raised.
    requests : RequestOptions
        How requests are identified and what is logged of them. A request without a unit gets
        control and is not compared.
    shadows : ShadowOptions
        How shadow variants are called.

    Raises
    ------
    InputError
        The variants do not match the experiment, or the log cannot be used.

    Notes
    -----
    ``config["configurable"]`` may also hold ``misslink_exposure``, the app's own request id for
    later feedback, and ``misslink_variant``, which selects a variant for a test.

    Limits:

    - A call that hangs cannot be stopped. While 32 calls of a variant hang, control answers at
      once.
    - A coroutine that blocks the event loop also blocks the router.
    - A SystemExit in a variant's own task ends the event loop, as it does without a router.
    - misslink does not manage the threads that a chain starts for parallel steps. If one hangs, the
      program waits for it when it exits.
    - An event loop that hides its executor (uvloop) gets a new one of default size at the first
      call with a timeout. Set a larger executor after that call.
    - Callbacks and `astream_events` also receive the steps of a variant that failed.
    - Control does not see a failed variant's changes to dicts and lists of the input.
    - Shadows do not get the request's callbacks and context variables.

    >>> app = Router({"A": str.lower, "B": str.upper}, Experiment("case", {"A": 1, "B": 1}))
    >>> app.invoke("Hello", {"configurable": {"user_id": "user-3"}})
    'HELLO'
    """

    def __init__(
        self,
        variants: Mapping[str, Any],
        experiment: Experiment,
        *,
        log: LiveLog | str | Path | None = None,
        timeout_s: float | None = 30.0,
        requests: RequestOptions = DEFAULT_REQUESTS,
        shadows: ShadowOptions = ShadowOptions(),
    ) -> None:
        self.variants = _check_variants(variants, experiment)
        self.experiment = experiment
        self._traffic = Traffic(experiment, log, requests)
        self._answering = VariantCaller(self.variants, self._traffic, timeout_s=timeout_s)
        self._shadows = ShadowPool(shadows)
        self._by_ainvoke = shadows.by_ainvoke
        self._keeps_texts = requests.keep_texts
        self.feedback = self._traffic.feedback
        # Run before the log's own, which was registered before.
        atexit.register(call_if_alive(self.close))

    # --- the faces of a Runnable ------------------------------------------------------------

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002 - LangChain's name
        """Answer a request by the variant that its unit was assigned."""
        with self._logged(input, config, kwargs) as (request, outputs):
            outputs.append(self._answering.answer(request, input, kwargs))
        return outputs[0]

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002 - LangChain's name
        """Answer a request by the variant that its unit was assigned."""
        with self._logged(input, config, kwargs) as (request, outputs):
            outputs.append(await self._answering.aanswer(request, input, kwargs))
        return outputs[0]

    def stream(
        self,
        input: Any,  # noqa: A002 - LangChain's name
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> Iterator[Any]:
        """Pass the chunks of the variant on as they come."""
        with (
            self._logged(input, config, kwargs) as (request, outputs),
            closing(self._answering.chunks(request, input, kwargs)) as chunks,
        ):
            for chunk in chunks:
                if self._keeps_texts:
                    outputs.append(chunk)
                yield chunk

    async def astream(
        self,
        input: Any,  # noqa: A002 - LangChain's name
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[Any]:
        """Pass the chunks of the variant on as they come."""
        with self._logged(input, config, kwargs) as (request, outputs):
            async with aclosing(self._answering.achunks(request, input, kwargs)) as chunks:
                async for chunk in chunks:
                    if self._keeps_texts:
                        outputs.append(chunk)
                    yield chunk

    # --- what is known of it ----------------------------------------------------------------

    @property
    def health(self) -> dict[str, object]:
        """Return counts of background problems.

        Returns
        -------
        dict
            - ``troubles``: each problem and its count
            - ``hung``: abandoned calls of variants
            - ``shadows_dropped``, ``shadows_hung``: number of shadows
            - ``log_waiting``, ``log_given_up``: number of log rows
            - ``log_trouble``: why the log cannot be written, or None
        """
        log = self._traffic.log
        return {
            "troubles": dict(self._traffic.troubles),
            "hung": sum(bounded.hung for bounded in self._answering.bounds.values()),
            "shadows_dropped": self._shadows.dropped,
            "shadows_hung": self._shadows.hung,
            "log_waiting": log.waiting if log else 0,
            "log_given_up": log.given_up if log else 0,
            "log_trouble": log.trouble if log else None,
        }

    def close(self, timeout_s: float = 5.0) -> None:
        """Wait for shadows under way, `timeout_s` seconds at most, and write the log.

        A log that was given as a `LiveLog` stays open. Also done at the end of the program.
        """
        self._shadows.close(timeout_s)
        log = self._traffic.log
        if log is not None and self._traffic.owns_log:
            log.close()
        elif log is not None:
            log.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- around the answer ------------------------------------------------------------------

    @contextmanager
    def _logged(
        self, app_input: Any, config: RunnableConfig | None, keywords: Mapping[str, Any]
    ) -> Iterator[tuple[Request, list[Any]]]:
        """Begin a request, take its outputs, log how it ended, and have its shadows asked."""
        request = self._traffic.begin(app_input, ensure_config(config))
        shadows, own = self._shadow_input(request, app_input)
        outputs: list[Any] = []
        outcome, output = "failed", None
        try:
            yield request, outputs
            outcome, output = "fell_back" if request.errors else "ok", join_chunks(outputs)
        except (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit):
            outcome = "left"  # the user went, and nothing failed
            raise
        except BaseException as error:
            request.errors.append((request.served or str(self.experiment.control), error))
            request.served = None
            raise
        finally:
            self._traffic.end(request, outcome, output)
            if outcome != "left":
                try:
                    for variant in shadows:
                        self._ask_shadow(variant, request, own, dict(keywords))
                except Exception as error:  # noqa: BLE001 - the answer is there, and goes out
                    self._traffic.trouble("a request could not be shadowed", error)

    def _shadow_input(self, request: Request, app_input: Any) -> tuple[list[str], Any]:
        """The names of shadows, and what they are given: the input before the app changes it."""
        try:
            names = self.experiment.shadows(request.id)
            return names, copy.copy(copy_containers(app_input)) if names else None
        except Exception as error:  # noqa: BLE001 - an input of the user's own making
            self._traffic.trouble("an input could not be copied for a shadow", error)
            return [], None

    def _ask_shadow(
        self, variant: str, request: Request, app_input: Any, keywords: dict[str, Any]
    ) -> None:
        """Call a shadow in the background."""
        app = self.variants[variant]
        shadow_request = Request(
            uuid.uuid4().hex,
            request.config,
            variant,
            mode="shadow",
            open_share=request.open_share,
            unit=request.unit,
            question=request.question,
        )
        stats = self._traffic.add_call_stats(shadow_request)
        config_keys = ("configurable", "tags", "metadata", "recursion_limit")
        config: Any = {key: request.config[key] for key in config_keys if key in request.config}

        def work() -> Any:
            CURRENT_STATS.set(stats)  # in a context of the shadow's own
            if self._by_ainvoke:
                return self._shadows.wait_for(lambda: app.ainvoke(app_input, config, **keywords))
            return app.invoke(app_input, config, **keywords)

        def on_done(output: Any, error: BaseException | None, seconds: float | None) -> None:
            if seconds is None:
                self._dropped(shadow_request, request)
                return
            try:
                if error is None:
                    must_be_answer(output)
            except NoAnswerError as refusal:
                error = refusal
            if error is not None:
                shadow_request.errors.append((variant, error))
            outcome = "ok" if error is None else "failed"
            self._traffic.end(shadow_request, outcome, output, of=request.id, latency_s=seconds)

        if not self._shadows.submit(work, on_done):
            self._dropped(shadow_request, request)

    def _dropped(self, shadow_request: Request, request: Request) -> None:
        self._traffic.trouble("shadows were dropped because the queue is full")
        self._traffic.end(shadow_request, "dropped", of=request.id, latency_s=None, retrieved=None)


def _check_variants(variants: Any, experiment: Any) -> dict[str, Runnable[Any, Any]]:
    """The apps of an experiment, in its order."""
    if not isinstance(experiment, Experiment):
        raise InputError(f"the experiment is {experiment!r}: it must be an Experiment")
    if not isinstance(variants, Mapping):
        raise InputError('variants have names, such as {"A": app, "B": other_app}')
    for name in variants:
        if name not in experiment.variants:
            suggestion = known_names(str(name), experiment.variants)
            raise InputError(f"the experiment has no variant '{name}'; {suggestion}")
    apps = {}
    for name in experiment.variants:
        if name not in variants:
            raise InputError(f"no app is given for variant '{name}' of the experiment")
        try:
            apps[name] = coerce_to_runnable(variants[name])
        except TypeError:
            kind = type(variants[name]).__name__
            raise InputError(
                f"the app of variant '{name}' is of type {kind}: it must be a Runnable or a function"
            ) from None
    return apps
