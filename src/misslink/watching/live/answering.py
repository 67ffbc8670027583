"""A request put to its variant, and to control where that fails."""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Generator,
    Iterator,
    Mapping,
)
from contextlib import aclosing, closing
from typing import Any, cast

from langchain_core.runnables import Runnable, RunnableConfig

from misslink.watching.live.bounded import Bounded
from misslink.watching.live.copying import containers_copied
from misslink.watching.live.listening import LISTENING
from misslink.watching.live.streaming import NoAnswerError, Opening, added_up
from misslink.watching.live.traffic import Request, Traffic

__all__ = ["Answering"]

# What ends the caller and not the variant.
_NOT_ITS_FAILURE = (KeyboardInterrupt, GeneratorExit)


class Answering:
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
            name: Bounded(None if name == traffic.experiment.control else timeout_s)
            for name in variants
        }
        self._control = str(traffic.experiment.control)
        self._traffic = traffic
        self._accept = accept
        self._whole_streams = whole_streams

    def answer(self, request: Request, asked: Any, keywords: Mapping[str, Any]) -> Any:
        """Return what the variant answers, or else control."""
        if (variant := request.variant) and variant != self._control:
            try:
                own = containers_copied(asked)  # control is given the input as it came
                output = self._ask(variant, request, own, keywords)
                self.must_be_answer(output)
            except _NOT_ITS_FAILURE:
                raise
            except BaseException as error:  # noqa: BLE001 - control answers
                self._fell_back(request, variant, error)
            else:
                request.served = variant
                return output
        output = self._ask(self._control, request, asked, keywords)
        request.served = self._control
        return output

    async def aanswer(self, request: Request, asked: Any, keywords: Mapping[str, Any]) -> Any:
        """As `answer`. Whoever stops waiting is no failure of the variant."""
        if (variant := request.variant) and variant != self._control:
            try:
                own = containers_copied(asked)
                output = await self._aask(variant, request, own, keywords)
                self.must_be_answer(output)
            except BaseException as error:
                if _ends_the_caller(error):
                    raise
                self._fell_back(request, variant, error)
            else:
                request.served = variant
                return output
        output = await self._aask(self._control, request, asked, keywords)
        request.served = self._control
        return output

    def chunks(
        self, request: Request, asked: Any, keywords: Mapping[str, Any]
    ) -> Generator[Any, None, None]:
        """Yield what the variant streams, or control where that fails before it says a thing.

        Chunks that say nothing, as chat models often begin with, are held until one does.
        """
        if (variant := request.variant) and variant != self._control:
            opening = Opening()
            try:
                own = containers_copied(asked)
                with closing(self._stream(variant, request, own, keywords)) as stream:
                    for chunk in self._whole(list(stream)) if self._whole_streams else stream:
                        for one in opening.take(chunk):
                            request.served = variant
                            yield one
                for one in opening.rest(self.must_be_answer):
                    request.served = variant
                    yield one
            except _NOT_ITS_FAILURE:
                raise
            except BaseException as error:
                if opening.is_over:  # told as the failure of the whole request
                    raise
                self._fell_back(request, variant, error)
            else:
                return
        with closing(self._stream(self._control, request, asked, keywords)) as stream:
            for chunk in stream:
                request.served = self._control
                yield chunk
        request.served = self._control

    async def achunks(
        self, request: Request, asked: Any, keywords: Mapping[str, Any]
    ) -> AsyncGenerator[Any, None]:
        """As `chunks`."""
        if (variant := request.variant) and variant != self._control:
            opening = Opening()
            try:
                own = containers_copied(asked)
                async with aclosing(self._astream(variant, request, own, keywords)) as stream:
                    async for chunk in self._held_back(stream) if self._whole_streams else stream:
                        for one in opening.take(chunk):
                            request.served = variant
                            yield one
                for one in opening.rest(self.must_be_answer):
                    request.served = variant
                    yield one
            except BaseException as error:
                if opening.is_over or _ends_the_caller(error):
                    raise
                self._fell_back(request, variant, error)
            else:
                return
        async with aclosing(self._astream(self._control, request, asked, keywords)) as stream:
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
        self.must_be_answer(added_up(chunks))
        return chunks

    async def _held_back(self, stream: AsyncIterator[Any]) -> AsyncIterator[Any]:
        for chunk in self._whole([chunk async for chunk in stream]):
            yield chunk

    def _config(self, variant: str, request: Request) -> RunnableConfig:
        config = dict(request.config)
        if request.errors:
            config.pop("run_id", None)  # the failed variant had it
        marks = {"misslink_experiment": self._traffic.experiment.name, "misslink_variant": variant}
        config["metadata"] = {**(config.get("metadata") or {}), **marks}
        return cast("RunnableConfig", config)

    def _ask(self, variant: str, request: Request, asked: Any, keywords: Mapping[str, Any]) -> Any:
        tally = self._traffic.tally(request)
        config = self._config(variant, request)

        def work() -> Any:
            token = LISTENING.set(tally)
            try:
                return self.variants[variant].invoke(asked, config, **keywords)
            finally:
                LISTENING.reset(token)

        return self.bounds[variant].call(work)

    async def _aask(
        self, variant: str, request: Request, asked: Any, keywords: Mapping[str, Any]
    ) -> Any:
        tally = self._traffic.tally(request)
        config = self._config(variant, request)

        async def work() -> Any:
            token = LISTENING.set(tally)
            try:
                return await self.variants[variant].ainvoke(asked, config, **keywords)
            finally:
                LISTENING.reset(token)

        return await self.bounds[variant].acall(work)

    def _stream(
        self, variant: str, request: Request, asked: Any, keywords: Mapping[str, Any]
    ) -> Any:
        tally = self._traffic.tally(request)
        config = self._config(variant, request)

        def begin() -> Iterator[Any]:
            LISTENING.set(tally)  # in a context that is only this stream's
            return self.variants[variant].stream(asked, config, **keywords)

        return self.bounds[variant].stream(begin)

    def _astream(
        self, variant: str, request: Request, asked: Any, keywords: Mapping[str, Any]
    ) -> Any:
        tally = self._traffic.tally(request)
        config = self._config(variant, request)

        def begin() -> AsyncIterator[Any]:
            LISTENING.set(tally)  # in a context that is only this stream's
            return self.variants[variant].astream(asked, config, **keywords)

        return self.bounds[variant].astream(begin)


def _ends_the_caller(error: BaseException) -> bool:
    """Whether the task that waits is to end; a variant may also have cancelled itself."""
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is None or bool(task.cancelling())
    return isinstance(error, _NOT_ITS_FAILURE)
