"""Live traffic split over variants of an app, or copied to one that answers nobody."""

from __future__ import annotations

import asyncio
import atexit
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing, closing
from pathlib import Path
from typing import Any, Self

from langchain_core.runnables import Runnable, RunnableConfig, ensure_config
from langchain_core.runnables.base import coerce_to_runnable

from misslink.errors import InputError, known_names
from misslink.types import Usage
from misslink.watching.live.answering import Answering
from misslink.watching.live.assignment import Experiment
from misslink.watching.live.shadowing import Copied, Shadowing
from misslink.watching.live.shadows import Shadows
from misslink.watching.live.streaming import added_up
from misslink.watching.live.traffic import Request, Traffic, UnitOf
from misslink.watching.live.writer import LiveLog, if_alive

__all__ = ["Router"]

# The user went, and nothing failed.
_LEFT = (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit)


class Router(Runnable[Any, Any]):
    """A LangChain Runnable that puts each request to one of several variants.

    Takes the place of the app: ``invoke``, ``ainvoke``, ``batch``, ``stream`` and the rest give
    what the variant gives. Where a variant other than control raises, takes too long or gives no
    answer, control answers, and the log says so. An error of control is the app's own and is
    raised. The log is written by another thread; a log that fails is counted and told once.

    Parameters
    ----------
    variants : mapping of str to Runnable or callable
        One for each name in the experiment.
    experiment : Experiment
    log : LiveLog, str, Path or None
        Where requests and feedback are kept; see `misslink.watching.live.format`. None: nowhere.
    unit : str or callable
        The key under ``config["configurable"]`` that holds the id of the user or session, or a
        function of the input and the config. A request without one gets control and is no part
        of the comparison.
    timeout_s : float or None
        Seconds that a variant other than control may take until control answers, or until a
        chunk of its stream. It then runs in a thread of its own, as do in an event loop the steps
        of it that need one: what hangs holds none of the app's. None: it may take any time.
    accept : callable or None
        Whether what a variant gave is an answer. None: everything but None is. A stream is asked
        about only where it is held back, or said nothing at all.
    whole_streams : bool
        Hold a variant's stream back until it is complete, so that control can still answer when
        it fails midway. Otherwise chunks go out from the first one on that says something, and an
        error behind that is raised: what the user has read cannot be taken back.
    shadow_timeout_s, shadow_concurrency, shadow_waiting : float, int, int
        How long a shadow may take, how many run at once, and how many wait before they are
        dropped (and logged as dropped).
    shadow_async : bool
        Ask shadows by ``ainvoke``, in an event loop of their own: for variants that know no
        other way. Otherwise by ``invoke``, in threads.
    salt, keep_texts, id_key, cost, reformulation_min
        See `misslink.watching.live.traffic.Traffic`.

    Raises
    ------
    InputError
        Variants and experiment do not fit, or the log cannot be used.

    Notes
    -----
    ``config["configurable"]`` may also hold ``misslink_exposure``, the app's own id of the
    request, by which feedback is given later, and ``misslink_variant``, which chooses a variant
    for a test. A call that hangs cannot be stopped: it is left alone, and while 32 of a variant
    hang, control answers in its place at once. A coroutine that blocks the event loop blocks this
    too, and a SystemExit in a task of a variant's own ends the loop, as it does without a router.
    Threads that a chain makes by itself, for steps side by side, are not misslink's: where one of
    them hangs, the program's end waits for it. An event loop that hides its executor (uvloop's)
    gets a new one of the usual size when a variant is first bounded; whoever has set a larger one
    sets it after that. Callbacks and `astream_events` see the steps of a variant that failed, too.
    What it did to dicts and lists of the input control does not see. Shadows do not see the
    callbacks and the context variables of the request.

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
        self.variants = _fitting(variants, experiment)
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
        self._answering = Answering(
            self.variants,
            self._traffic,
            timeout_s=timeout_s,
            accept=accept,
            whole_streams=whole_streams,
        )
        self._shadows = Shadows(shadow_concurrency, shadow_waiting, shadow_timeout_s)
        self._shadowing = Shadowing(
            self._answering, self._traffic, self._shadows, by_loop=shadow_async
        )
        self._keeps_texts = keep_texts
        self.feedback = self._traffic.feedback
        # Run before the log's own, which was registered before.
        atexit.register(if_alive(self.close))

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
        said: list[Any] = []
        try:
            with closing(self._answering.chunks(request, input, kwargs)) as chunks:
                for chunk in chunks:
                    if self._keeps_texts:
                        said.append(chunk)
                    yield chunk
        except BaseException as error:
            self._failed(request, error, own, kwargs)
            raise
        self._answered(request, added_up(said), own, kwargs)

    async def astream(
        self,
        input: Any,  # noqa: A002 - LangChain's name
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[Any]:
        """Pass the chunks of the variant on as they come."""
        request = self._traffic.begin(input, ensure_config(config))
        own = self._shadowing.copied(request, input)
        said: list[Any] = []
        try:
            async with aclosing(self._answering.achunks(request, input, kwargs)) as chunks:
                async for chunk in chunks:
                    if self._keeps_texts:
                        said.append(chunk)
                    yield chunk
        except BaseException as error:
            self._failed(request, error, own, kwargs)
            raise
        self._answered(request, added_up(said), own, kwargs)

    # --- what is known of it ----------------------------------------------------------------

    @property
    def health(self) -> dict[str, Any]:
        """What goes on out of sight.

        Returns
        -------
        dict
            ``troubles``, what went wrong and how often; ``hung``, calls of variants left alone;
            ``shadows_dropped``, ``shadows_hung``; ``log_waiting`` rows, ``log_given_up`` rows and
            ``log_trouble``, why the log cannot be written, or None.
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
        self, request: Request, output: Any, own: Copied | None, keywords: Mapping[str, Any]
    ) -> None:
        self._traffic.end(request, "fell_back" if request.errors else "ok", output)
        self._shadowing.ask(request, own, keywords)

    def _failed(
        self,
        request: Request,
        error: BaseException,
        own: Copied | None,
        keywords: Mapping[str, Any],
    ) -> None:
        if isinstance(error, _LEFT):
            self._traffic.end(request, "left")
            return
        asked = request.served or str(self.experiment.control)
        request.errors.append((asked, error))
        request.served = None
        self._traffic.end(request, "failed")
        self._shadowing.ask(request, own, keywords)


def _fitting(variants: Any, experiment: Any) -> dict[str, Runnable[Any, Any]]:
    """The apps of an experiment, in its order."""
    if not isinstance(experiment, Experiment):
        raise InputError(f"the experiment is {experiment!r}: an Experiment is needed")
    if not isinstance(variants, Mapping):
        raise InputError('variants have names, such as {"A": app, "B": other_app}')
    for name in variants:
        if name not in experiment.variants:
            known = known_names(str(name), experiment.variants)
            raise InputError(f"the experiment has no variant '{name}'; {known}")
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
