"""Route live traffic between variants, and copy requests to shadow variants."""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import copy
import logging
import os
import queue
import threading
import time
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import aclosing, closing
from pathlib import Path
from typing import Any, Self

from langchain_core.runnables import Runnable, RunnableConfig, ensure_config
from langchain_core.runnables.base import coerce_to_runnable

from misslink.errors import InputError, known_names
from misslink.live.answering import VariantCaller, copy_containers, join_chunks
from misslink.live.assignment import Experiment
from misslink.live.log_store import LiveLog, call_if_alive
from misslink.live.requests import CURRENT_STATS, Request, Traffic, UnitOf
from misslink.live.timeout_runner import (
    DaemonPool,
    TimeoutRunner,
    TookTooLongError,
    use_daemon_pool,
)
from misslink.types import Usage

_log = logging.getLogger(__name__)
_Job = tuple[Callable[[], Any], Callable[..., None]]


class ShadowPool:
    """A bounded queue, and a few threads that work it off.

    Parameters
    ----------
    concurrency : int
        How many shadows run at once.
    waiting : int
        How many may wait; what comes on top is dropped.
    timeout_s : float
        How long one may take. It is then left alone, and while too many hang none is begun.

    Attributes
    ----------
    dropped : int
        Shadows for which there was no room.
    """

    def __init__(self, concurrency: int = 4, waiting: int = 100, timeout_s: float = 30.0) -> None:
        if concurrency < 1 or waiting < 1 or not timeout_s > 0:
            raise InputError("shadows need a concurrency, a queue and a time, each more than 0")
        self.dropped = 0
        self._timeout_s, self._concurrency, self._waiting = timeout_s, concurrency, waiting
        self._begin_empty()

    def _begin_empty(self) -> None:
        """Start without threads and jobs; after a fork those of the parent are the parent's."""
        self._process = os.getpid()
        self._bounded = TimeoutRunner(self._timeout_s, most_hung=self._concurrency * 4)
        self._jobs: queue.Queue[_Job] = queue.Queue(self._waiting)
        self._lock = threading.Lock()
        self._workers = 0
        self._running: dict[int, tuple[Callable[..., None], float]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._steps = DaemonPool(self._concurrency * 4)

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
        tell : callable
            Called with what came back, the error or None, and the seconds it took.
        """
        if self._process != os.getpid():
            self._begin_empty()
        try:
            self._jobs.put_nowait((work, on_done))
        except queue.Full:
            with self._lock:
                self.dropped += 1
            return False
        with self._lock:
            if self._workers < self._concurrency:
                self._workers += 1
                threading.Thread(target=self._work, name="misslink-shadow", daemon=True).start()
        return True

    def awaited(self, begin: Callable[[], Coroutine[Any, Any, Any]]) -> Callable[[], Any]:
        """Return work that awaits what `begin` makes, in an event loop of the shadows' own."""

        async def run_in_pool() -> Any:
            use_daemon_pool(self._steps)
            return await begin()

        def work() -> Any:
            future = asyncio.run_coroutine_threadsafe(run_in_pool(), self._running_loop())
            try:
                return future.result(self._timeout_s)
            except TimeoutError:
                future.cancel()
                raise

        return work

    def close(self, timeout_s: float = 5.0) -> int:
        """Wait for shadows, time out unfinished ones and return how many were dropped."""
        until = time.monotonic() + timeout_s
        with self._jobs.all_tasks_done:
            while self._jobs.unfinished_tasks and time.monotonic() < until:
                self._jobs.all_tasks_done.wait(until - time.monotonic())
        unfinished = 0
        for worker in list(self._running):
            if (running := self._running.pop(worker, None)) is not None:
                on_done, began = running
                error = TookTooLongError("it was still running at the end")
                self._report(on_done, None, error, time.perf_counter() - began)
        while True:
            try:
                _, on_done = self._jobs.get_nowait()
            except queue.Empty:
                return unfinished
            unfinished += 1
            self._jobs.task_done()
            self._report(on_done, None, None, None)

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(
                    target=self._loop.run_forever, name="misslink-shadow-loop", daemon=True
                ).start()
            return self._loop

    def _work(self) -> None:
        while True:
            work, on_done = self._jobs.get()
            began = time.perf_counter()
            me = threading.get_ident()
            self._running[me] = on_done, began
            value, error = None, None
            try:
                value = self._bounded.call(work, contextvars.Context())
            except BaseException as problem:  # noqa: BLE001 - a shadow's failure is its finding
                error = problem
            if self._running.pop(me, None) is not None:  # else `close` has told of it
                self._report(on_done, value, error, time.perf_counter() - began)
            self._jobs.task_done()

    def _report(self, on_done: Callable[..., None], *outcome: Any) -> None:
        try:
            on_done(*outcome)
        except Exception:  # noqa: BLE001 - the thread has other shadows to work off
            _log.exception("what came of a shadow could not be logged")


ShadowInput = tuple[list[str], Any]  # the names of shadows, and their input


class ShadowTraffic:
    """Copies requests to shadows.

    Parameters
    ----------
    answering : Answering
        Knows the variants, and what an answer is.
    traffic : Traffic
    shadows : Shadows
    by_loop : bool
        Ask by ``ainvoke``, in an event loop of the shadows' own.
    """

    def __init__(
        self, answering: VariantCaller, traffic: Traffic, shadows: ShadowPool, *, by_loop: bool
    ) -> None:
        self._answering = answering
        self._traffic = traffic
        self._shadows = shadows
        self._by_loop = by_loop

    def copied(self, request: Request, app_input: Any) -> ShadowInput | None:
        """Return what shadows are given: the input as it came, before the app changes it."""
        try:
            names = (
                self._traffic.experiment.shadows(request.id)
                if self._traffic.experiment.shadow
                else []
            )
            return (names, copy.copy(copy_containers(app_input))) if names else None
        except Exception as error:  # noqa: BLE001 - an input of the user's own making
            self._traffic.trouble("an input could not be copied for a shadow", error)
            return None

    def ask(self, request: Request, own: ShadowInput | None, keywords: Mapping[str, Any]) -> None:
        """Have the shadows of a request asked; the caller waits for none."""
        if own is None:
            return
        try:
            for variant in own[0]:
                self._ask(variant, request, own[1], dict(keywords))
        except Exception as error:  # noqa: BLE001 - the answer is there, and goes out
            self._traffic.trouble("a request could not be shadowed", error)

    def _ask(
        self, variant: str, request: Request, app_input: Any, keywords: dict[str, Any]
    ) -> None:
        app = self._answering.variants[variant]
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
            if self._by_loop:
                return self._shadows.awaited(lambda: app.ainvoke(app_input, config, **keywords))()
            return app.invoke(app_input, config, **keywords)

        def on_done(output: Any, error: BaseException | None, seconds: float | None) -> None:
            if seconds is None:
                self._dropped(shadow_request, request)
                return
            try:
                if error is None:
                    self._answering.must_be_answer(output)
            except Exception as refusal:  # noqa: BLE001 - a finding on the shadow
                error = refusal
            if error is not None:
                shadow_request.errors.append((variant, error))
            outcome = "ok" if error is None else "failed"
            self._traffic.end(shadow_request, outcome, output, of=request.id, latency_s=seconds)

        if not self._shadows.submit(work, on_done):
            self._dropped(shadow_request, request)

    def _dropped(self, shadow_request: Request, request: Request) -> None:
        self._traffic.trouble("shadows were dropped for want of room")
        self._traffic.end(shadow_request, "dropped", of=request.id, latency_s=None, retrieved=None)


# The user went, and nothing failed.
_CLIENT_LEFT = (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit)


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
    unit : str or callable
        The key under ``config["configurable"]`` that holds the user or session id, or a function of
        the input and the config. A request without a unit gets control and is not compared.
    timeout_s : float or None
        Seconds that a variant other than control may take for its answer, or for each chunk of its
        stream, before control answers. The variant then runs in a separate thread, so a variant
        that hangs does not block the app's threads. None: no limit.
    accept : callable or None
        Return whether a variant's output is an answer. None: every output except None is an answer.
        Streams are checked only if they are held back or have no content.
    whole_streams : bool
        Hold a variant's stream back until it is complete, so that control can answer if it fails
        midway. Otherwise chunks are passed on from the first one with content, and later errors are
        raised.
    shadow_timeout_s, shadow_concurrency, shadow_waiting : float, int, int
        Seconds a shadow may take, number of shadows that run at once, and number that wait. Further
        shadows are dropped and logged as dropped.
    shadow_async : bool
        Call shadows with ``ainvoke``, in a separate event loop, for variants that are async only.
        Otherwise call ``invoke`` in threads.
    salt, keep_texts, id_key, cost, reformulation_min
        See `misslink.live.requests.Traffic`.

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
        unit: str | UnitOf = "user_id",
        timeout_s: float | None = 30.0,
        accept: Callable[[Any], bool] | None = None,
        whole_streams: bool = False,
        shadow_timeout_s: float = 30.0,
        shadow_concurrency: int = 4,
        shadow_waiting: int = 100,
        shadow_async: bool = False,
        salt: str | None = None,
        keep_texts: bool = False,
        id_key: str | None = None,
        cost: Callable[[Usage], float] | None = None,
        reformulation_min: float | None = None,
    ) -> None:
        if accept is not None and not callable(accept):
            raise InputError(f"accept is {accept!r}: a function of the answer is needed")
        self.variants = _check_variants(variants, experiment)
        self.experiment = experiment
        self._traffic = Traffic(
            experiment,
            log,
            unit=unit,
            salt=salt,
            keep_texts=keep_texts,
            id_key=id_key,
            cost=cost,
            reformulation_min=reformulation_min,
        )
        self._answering = VariantCaller(
            self.variants,
            self._traffic,
            timeout_s=timeout_s,
            accept=accept,
            whole_streams=whole_streams,
        )
        self._shadows = ShadowPool(shadow_concurrency, shadow_waiting, shadow_timeout_s)
        self._shadowing = ShadowTraffic(
            self._answering, self._traffic, self._shadows, by_loop=shadow_async
        )
        self._keeps_texts = keep_texts
        self.feedback = self._traffic.feedback
        # Run before the log's own, which was registered before.
        atexit.register(call_if_alive(self.close))

    # --- the faces of a Runnable ------------------------------------------------------------

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002 - LangChain's name
        """Answer a request by the variant that its unit was assigned."""
        request = self._traffic.begin(input, ensure_config(config))
        own = self._shadowing.copied(request, input)
        try:
            output = self._answering.answer(request, input, kwargs)
        except BaseException as error:
            self._failed(request, error, own, kwargs)
            raise
        self._answered(request, output, own, kwargs)
        return output

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002 - LangChain's name
        """Answer a request by the variant that its unit was assigned."""
        request = self._traffic.begin(input, ensure_config(config))
        own = self._shadowing.copied(request, input)
        try:
            output = await self._answering.aanswer(request, input, kwargs)
        except BaseException as error:
            self._failed(request, error, own, kwargs)
            raise
        self._answered(request, output, own, kwargs)
        return output

    def stream(
        self,
        input: Any,  # noqa: A002 - LangChain's name
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> Iterator[Any]:
        """Pass the chunks of the variant on as they come."""
        request = self._traffic.begin(input, ensure_config(config))
        own = self._shadowing.copied(request, input)
        chunks_seen: list[Any] = []
        try:
            with closing(self._answering.chunks(request, input, kwargs)) as chunks:
                for chunk in chunks:
                    if self._keeps_texts:
                        chunks_seen.append(chunk)
                    yield chunk
        except BaseException as error:
            self._failed(request, error, own, kwargs)
            raise
        self._answered(request, join_chunks(chunks_seen), own, kwargs)

    async def astream(
        self,
        input: Any,  # noqa: A002 - LangChain's name
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[Any]:
        """Pass the chunks of the variant on as they come."""
        request = self._traffic.begin(input, ensure_config(config))
        own = self._shadowing.copied(request, input)
        chunks_seen: list[Any] = []
        try:
            async with aclosing(self._answering.achunks(request, input, kwargs)) as chunks:
                async for chunk in chunks:
                    if self._keeps_texts:
                        chunks_seen.append(chunk)
                    yield chunk
        except BaseException as error:
            self._failed(request, error, own, kwargs)
            raise
        self._answered(request, join_chunks(chunks_seen), own, kwargs)

    # --- what is known of it ----------------------------------------------------------------

    @property
    def health(self) -> dict[str, Any]:
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

    # --- after the answer -------------------------------------------------------------------

    def _answered(
        self, request: Request, output: Any, own: ShadowInput | None, keywords: Mapping[str, Any]
    ) -> None:
        self._traffic.end(request, "fell_back" if request.errors else "ok", output)
        self._shadowing.ask(request, own, keywords)

    def _failed(
        self,
        request: Request,
        error: BaseException,
        own: ShadowInput | None,
        keywords: Mapping[str, Any],
    ) -> None:
        if isinstance(error, _CLIENT_LEFT):
            self._traffic.end(request, "left")
            return
        variant = request.served or str(self.experiment.control)
        request.errors.append((variant, error))
        request.served = None
        self._traffic.end(request, "failed")
        self._shadowing.ask(request, own, keywords)


def _check_variants(variants: Any, experiment: Any) -> dict[str, Runnable[Any, Any]]:
    """The apps of an experiment, in its order."""
    if not isinstance(experiment, Experiment):
        raise InputError(f"the experiment is {experiment!r}: an Experiment is needed")
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
                f"the app of variant '{name}' is of type {kind}: a Runnable or a function is needed"
            ) from None
    return apps
