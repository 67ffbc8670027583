"""Send a request to its variant, and to control where the variant fails."""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Generator,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing, closing, contextmanager
from typing import Any, NamedTuple, cast

from langchain_core.messages import BaseMessageChunk
from langchain_core.runnables import Runnable, RunnableConfig

from misslink.live.requests import CURRENT_STATS, CallStats, Request, Traffic
from misslink.timeouts import TimeoutRunner


def copy_containers(app_input: Any) -> Any:
    """Return an app's input with its own dicts and lists, at every depth; what they hold is shared.

    Raises
    ------
    RecursionError
        It holds itself.
    """
    if type(app_input) is dict:
        return {key: copy_containers(value) for key, value in app_input.items()}
    if type(app_input) is list:
        return [copy_containers(value) for value in app_input]
    return app_input


_MOST_HELD = 100  # chunks that say nothing, until they go out all the same


class NoAnswerError(Exception):
    """The variant came to an end without an answer."""


class StreamHead:
    """Buffer a stream until a chunk has content, so that control can still answer."""

    def __init__(self) -> None:
        self.is_over = False
        self._held: list[Any] = []

    def take(self, chunk: Any) -> list[Any]:
        """Return the chunks that go out now that this one has come."""
        if self.is_over:
            return [chunk]
        self._held.append(chunk)
        if len(self._held) < _MOST_HELD and _says_nothing(chunk):
            return []
        self.is_over = True
        return self._held

    def remaining_chunks(self, must_be_answer: Callable[[Any], None]) -> list[Any]:
        """Return what goes out at the stream's end, where nothing has so far.

        Raises
        ------
        NoAnswerError
            There were no chunks.
        Exception
            `must_be_answer` refuses what they add up to.
        """
        if self.is_over:
            return []
        if not self._held:
            raise NoAnswerError("it streamed nothing")
        must_be_answer(join_chunks(self._held))
        self.is_over = True
        return self._held


def join_chunks(chunks: Sequence[Any]) -> Any:
    """Return the output that chunks are of: their sum, or the last where they have none."""
    if not chunks:
        return None
    whole = chunks[0]
    for chunk in chunks[1:]:
        try:
            whole = whole + chunk
        except TypeError:
            whole = chunk
    return whole


def _says_nothing(chunk: Any) -> bool:
    if isinstance(chunk, BaseMessageChunk):
        contents = (
            chunk.content,
            chunk.additional_kwargs,
            getattr(chunk, "tool_call_chunks", None),
        )
        return not any(contents)
    return not chunk if isinstance(chunk, str) else chunk is None


# What ends the caller and not the variant.
_NOT_VARIANT_ERRORS = (KeyboardInterrupt, GeneratorExit)


class VariantCaller:
    """Asks variants, each in its bounds, and control in their place.

    Parameters
    ----------
    variants : mapping of str to Runnable
    traffic : Traffic
    timeout_s : float or None
        For every variant but control.
    accept : callable or None
        Whether an output is an answer. None: everything but None is.
    whole_streams : bool
        Hold a variant's stream back until it is complete.
    """

    def __init__(
        self,
        variants: Mapping[str, Runnable[Any, Any]],
        traffic: Traffic,
        *,
        timeout_s: float | None,
        accept: Callable[[Any], bool] | None,
        whole_streams: bool,
    ) -> None:
        self.variants = variants
        self.bounds = {
            name: TimeoutRunner(None if name == traffic.experiment.control else timeout_s)
            for name in variants
        }
        self._control = str(traffic.experiment.control)
        self._traffic = traffic
        self._accept = accept
        self._whole_streams = whole_streams

    def answer(self, request: Request, app_input: Any, keywords: Mapping[str, Any]) -> Any:
        """Return what the variant answers, or else control."""
        if (variant := request.variant) and variant != self._control:
            try:
                own = copy_containers(app_input)  # control is given the input as it came
                output = self._ask(variant, request, own, keywords)
                self.must_be_answer(output)
            except _NOT_VARIANT_ERRORS:
                raise
            except BaseException as error:  # noqa: BLE001 - control answers
                self._fell_back(request, variant, error)
            else:
                request.served = variant
                return output
        output = self._ask(self._control, request, app_input, keywords)
        request.served = self._control
        return output

    async def aanswer(self, request: Request, app_input: Any, keywords: Mapping[str, Any]) -> Any:
        """Answer like `answer`. A caller that stops waiting is not a failure of the variant."""
        if (variant := request.variant) and variant != self._control:
            try:
                own = copy_containers(app_input)
                output = await self._aask(variant, request, own, keywords)
                self.must_be_answer(output)
            except BaseException as error:
                if _ends_caller(error):
                    raise
                self._fell_back(request, variant, error)
            else:
                request.served = variant
                return output
        output = await self._aask(self._control, request, app_input, keywords)
        request.served = self._control
        return output

    def chunks(
        self, request: Request, app_input: Any, keywords: Mapping[str, Any]
    ) -> Generator[Any, None, None]:
        """Yield what the variant streams, or control where that fails before it says a thing.

        Chunks that say nothing, as chat models often begin with, are held until one does.
        """
        if (variant := request.variant) and variant != self._control:
            head = StreamHead()
            try:
                own = copy_containers(app_input)
                with closing(self._stream(variant, request, own, keywords)) as stream:
                    for chunk in self._whole(list(stream)) if self._whole_streams else stream:
                        for held_chunk in head.take(chunk):
                            request.served = variant
                            yield held_chunk
                for held_chunk in head.remaining_chunks(self.must_be_answer):
                    request.served = variant
                    yield held_chunk
            except _NOT_VARIANT_ERRORS:
                raise
            except BaseException as error:
                if head.is_over:  # told as the failure of the whole request
                    raise
                self._fell_back(request, variant, error)
            else:
                return
        with closing(self._stream(self._control, request, app_input, keywords)) as stream:
            for chunk in stream:
                request.served = self._control
                yield chunk
        request.served = self._control

    async def achunks(
        self, request: Request, app_input: Any, keywords: Mapping[str, Any]
    ) -> AsyncGenerator[Any, None]:
        """As `chunks`."""
        if (variant := request.variant) and variant != self._control:
            head = StreamHead()
            try:
                own = copy_containers(app_input)
                async with aclosing(self._astream(variant, request, own, keywords)) as stream:
                    async for chunk in (
                        self._without_empty_chunks(stream) if self._whole_streams else stream
                    ):
                        for held_chunk in head.take(chunk):
                            request.served = variant
                            yield held_chunk
                for held_chunk in head.remaining_chunks(self.must_be_answer):
                    request.served = variant
                    yield held_chunk
            except BaseException as error:
                if head.is_over or _ends_caller(error):
                    raise
                self._fell_back(request, variant, error)
            else:
                return
        async with aclosing(self._astream(self._control, request, app_input, keywords)) as stream:
            async for chunk in stream:
                request.served = self._control
                yield chunk
        request.served = self._control

    def must_be_answer(self, output: Any) -> None:
        """Refuse what is no answer.

        Raises
        ------
        Exception
            It is none, or the user's own function raised.
        """
        if not (output is not None if self._accept is None else self._accept(output)):
            raise NoAnswerError(f"{type(output).__name__} is no answer")

    def _fell_back(self, request: Request, variant: str, error: BaseException) -> None:
        request.errors.append((variant, error))
        self._traffic.trouble(f"variant '{variant}' failed and control answered", error)

    def _whole(self, chunks: list[Any]) -> list[Any]:
        if not chunks:
            raise NoAnswerError("it streamed nothing")
        self.must_be_answer(join_chunks(chunks))
        return chunks

    async def _without_empty_chunks(self, stream: AsyncIterator[Any]) -> AsyncIterator[Any]:
        for chunk in self._whole([chunk async for chunk in stream]):
            yield chunk

    def _config(self, variant: str, request: Request) -> RunnableConfig:
        config = dict(request.config)
        if request.errors:
            config.pop("run_id", None)  # the failed variant had it
        marks = {"misslink_experiment": self._traffic.experiment.name, "misslink_variant": variant}
        config["metadata"] = {**(config.get("metadata") or {}), **marks}
        return cast("RunnableConfig", config)

    def _started(self, variant: str, request: Request) -> _Started:
        return _Started(
            self.variants[variant],
            self._config(variant, request),
            self._traffic.add_call_stats(request),
            self.bounds[variant],
        )

    def _ask(
        self, variant: str, request: Request, app_input: Any, keywords: Mapping[str, Any]
    ) -> Any:
        app, config, stats, bounds = self._started(variant, request)

        def work() -> Any:
            with _counted(stats):
                return app.invoke(app_input, config, **keywords)

        return bounds.call(work)

    async def _aask(
        self, variant: str, request: Request, app_input: Any, keywords: Mapping[str, Any]
    ) -> Any:
        app, config, stats, bounds = self._started(variant, request)

        async def work() -> Any:
            with _counted(stats):
                return await app.ainvoke(app_input, config, **keywords)

        return await bounds.acall(work)

    def _stream(
        self, variant: str, request: Request, app_input: Any, keywords: Mapping[str, Any]
    ) -> Any:
        app, config, stats, bounds = self._started(variant, request)

        def begin() -> Iterator[Any]:
            CURRENT_STATS.set(stats)  # in a context that is only this stream's
            return app.stream(app_input, config, **keywords)

        return bounds.stream(begin)

    def _astream(
        self, variant: str, request: Request, app_input: Any, keywords: Mapping[str, Any]
    ) -> Any:
        app, config, stats, bounds = self._started(variant, request)

        def begin() -> AsyncIterator[Any]:
            CURRENT_STATS.set(stats)  # in a context that is only this stream's
            return app.astream(app_input, config, **keywords)

        return bounds.astream(begin)


class _Started(NamedTuple):
    """What a call of a variant needs."""

    app: Runnable[Any, Any]
    config: RunnableConfig
    stats: CallStats
    bounds: TimeoutRunner


@contextmanager
def _counted(stats: CallStats) -> Iterator[None]:
    token = CURRENT_STATS.set(stats)
    try:
        yield
    finally:
        CURRENT_STATS.reset(token)


def _ends_caller(error: BaseException) -> bool:
    """Whether the task that waits is to end; a variant may also have cancelled itself."""
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is None or bool(task.cancelling())
    return isinstance(error, _NOT_VARIANT_ERRORS)
