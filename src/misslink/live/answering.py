"""Send a request to its variant, and to control where the variant fails."""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncGenerator,
    Callable,
    Generator,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing, closing, contextmanager
from typing import Any

from langchain_core.messages import BaseMessageChunk
from langchain_core.runnables import Runnable

from misslink.live.requests import CURRENT_STATS, Request, Traffic
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


_MAX_BUFFERED = 100  # chunks that say nothing, until they go out all the same


class NoAnswerError(Exception):
    """The variant came to an end without an answer."""


def must_be_answer(output: Any) -> None:
    """Raise NoAnswerError for None."""
    if output is None:
        raise NoAnswerError(f"{type(output).__name__} is no answer")


class StreamHead:
    """Buffer a stream until a chunk has content, or to its end, so that control can still answer."""

    def __init__(self) -> None:
        self.is_over = False
        self._held: list[Any] = []

    def take(self, chunk: Any) -> list[Any]:
        """Return the chunks that go out now that this one has come."""
        if self.is_over:
            return [chunk]
        self._held.append(chunk)
        if len(self._held) < _MAX_BUFFERED and _says_nothing(chunk):
            return []
        self.is_over = True
        return self._held

    def remaining_chunks(self) -> list[Any]:
        """Return what goes out at the stream's end, where nothing has so far.

        Raises
        ------
        NoAnswerError
            There were no chunks, or they add up to none.
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


class VariantCaller:
    """Asks variants, each in its bounds, and control in their place.

    Parameters
    ----------
    variants : mapping of str to Runnable
    traffic : Traffic
    timeout_s : float or None
        For every variant but control.
    """

    def __init__(
        self,
        variants: Mapping[str, Runnable[Any, Any]],
        traffic: Traffic,
        *,
        timeout_s: float | None,
    ) -> None:
        self.variants = variants
        self.bounds = {
            name: TimeoutRunner(None if name == traffic.experiment.control else timeout_s)
            for name in variants
        }
        self._control = str(traffic.experiment.control)
        self._traffic = traffic

    def answer(self, request: Request, app_input: Any, keywords: Mapping[str, Any]) -> Any:
        """Return what the variant answers, or else control."""
        with _restored_stats():
            if (variant := request.variant) and variant != self._control:
                with self._or_control(request, variant):
                    # Control is given the input as it came.
                    own = copy_containers(app_input)
                    begin = self._call("invoke", variant, request, own, keywords)
                    output = self.bounds[variant].call(begin)
                    must_be_answer(output)
                    return output
            begin = self._call("invoke", self._control, request, app_input, keywords)
            output = self.bounds[self._control].call(begin)
            request.served = self._control
            return output

    async def aanswer(self, request: Request, app_input: Any, keywords: Mapping[str, Any]) -> Any:
        """Answer like `answer`. A caller that stops waiting is not a failure of the variant."""
        with _restored_stats():
            if (variant := request.variant) and variant != self._control:
                with self._or_control(request, variant):
                    own = copy_containers(app_input)
                    begin = self._call("ainvoke", variant, request, own, keywords)
                    output = await self.bounds[variant].acall(begin)
                    must_be_answer(output)
                    return output
            begin = self._call("ainvoke", self._control, request, app_input, keywords)
            output = await self.bounds[self._control].acall(begin)
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
            with self._or_control(request, variant, head):
                own = copy_containers(app_input)
                begin = self._call("stream", variant, request, own, keywords)
                stream: Any = self.bounds[variant].stream(begin)
                with closing(stream):
                    for chunk in stream:
                        yield from head.take(chunk)
                yield from head.remaining_chunks()
                return
        begin = self._call("stream", self._control, request, app_input, keywords)
        stream = self.bounds[self._control].stream(begin)
        with closing(stream):
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
            with self._or_control(request, variant, head):
                own = copy_containers(app_input)
                begin = self._call("astream", variant, request, own, keywords)
                stream: Any = self.bounds[variant].astream(begin)
                async with aclosing(stream):
                    async for chunk in stream:
                        for buffered in head.take(chunk):
                            yield buffered
                for buffered in head.remaining_chunks():
                    yield buffered
                return
        begin = self._call("astream", self._control, request, app_input, keywords)
        stream = self.bounds[self._control].astream(begin)
        async with aclosing(stream):
            async for chunk in stream:
                request.served = self._control
                yield chunk
        request.served = self._control

    @contextmanager
    def _or_control(
        self, request: Request, variant: str, head: StreamHead | None = None
    ) -> Iterator[None]:
        """Let what follows run where the variant fails, unless the caller ends or has part of it."""
        try:
            yield
        except BaseException as error:
            if head is not None and head.is_over:  # logged as the failure of the whole request
                request.served = variant
                raise
            if _ends_caller(error):
                raise
            request.errors.append((variant, error))
            self._traffic.trouble(f"variant '{variant}' failed and control answered", error)
        else:
            request.served = variant

    def _call(
        self,
        method: str,
        variant: str,
        request: Request,
        app_input: Any,
        keywords: Mapping[str, Any],
    ) -> Callable[[], Any]:
        """The call of a variant, which counts what the variant uses."""
        config = dict(request.config)
        if request.errors:
            config.pop("run_id", None)  # the failed variant had it
        marks = {"misslink_experiment": self._traffic.experiment.name, "misslink_variant": variant}
        config["metadata"] = {**(config.get("metadata") or {}), **marks}
        stats = self._traffic.add_call_stats(request)
        method_of_app = getattr(self.variants[variant], method)

        def begin() -> Any:
            CURRENT_STATS.set(stats)
            return method_of_app(app_input, config, **keywords)

        return begin


@contextmanager
def _restored_stats() -> Iterator[None]:
    """Leave the caller's context as it was: calls without a time limit run in it."""
    before = CURRENT_STATS.get()
    try:
        yield
    finally:
        CURRENT_STATS.set(before)


def _ends_caller(error: BaseException) -> bool:
    """Whether what waits for the answer is to end; a variant may also have cancelled itself."""
    if isinstance(error, asyncio.CancelledError):
        try:
            task = asyncio.current_task()
        except RuntimeError:  # there is no event loop
            return False
        return task is None or bool(task.cancelling())
    return isinstance(error, KeyboardInterrupt | GeneratorExit)
