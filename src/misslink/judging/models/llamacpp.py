"""A GGUF model in this process, by llama.cpp: ``llamacpp:PATH.gguf``."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from misslink.errors import InputError, JudgeUnreachableError, MissingExtraError
from misslink.judging.models.dialect import Dialect
from misslink.judging.models.gguf import context_length as trained_length
from misslink.judging.models.gguf import fingerprint
from misslink.judging.models.reading import said_in
from misslink.judging.protocol import Ask, Judge, Reply
from misslink.registry import judges

__all__ = ["LlamaCppJudge", "open_llamacpp"]

_CONTEXT = 8192  # tokens; memory grows with it, so a model trained for more gets it on request
_TOO_LONG = "exceed_context_size_error"
_QUIET = -1


@judges.register("llamacpp")
def open_llamacpp(
    argument: str | None,
    *,
    temperature: float = 0.0,
    seed: int = 0,
    max_tokens: int = 2048,
    context_length: int | None = None,
) -> Judge:
    """Open the judge ``llamacpp:PATH.gguf``; the model is loaded at the first question.

    Parameters
    ----------
    argument : str or None
        The file of weights.
    temperature : float
    seed : int
        Of the sampling, where the temperature is above 0.
    max_tokens : int
        Longest reply.
    context_length : int or None
        How many tokens prompt and reply may have together. None: what the model was trained for,
        at most 8,192.

    Raises
    ------
    InputError
        There is no such file, or it is no GGUF file.
    MissingExtraError
        xllamacpp is not installed.
    """
    if not (argument or "").strip():
        raise InputError("the judge 'llamacpp' needs a file of weights: --judge llamacpp:PATH.gguf")
    path = Path(str(argument).strip()).expanduser()
    trained = trained_length(path)
    if importlib.util.find_spec("xllamacpp") is None:
        raise MissingExtraError("xllamacpp", "local")
    length = context_length or min(trained or _CONTEXT, _CONTEXT)
    settings = {
        "temperature": temperature,
        "seed": seed,
        "max_tokens": max_tokens,
        "context_length": length,
    }
    return LlamaCppJudge(path, settings)


class LlamaCppJudge:
    """Asks a model in this process, one question at a time; `open_llamacpp` opens one.

    Nothing of a prompt is kept for the next one, and one question runs at a time: both would
    change the rounding, and so the words. A question is never shortened; one that is too long is
    refused. A call that nobody waits for any more is finished before the next begins.

    Parameters
    ----------
    path : Path
        The weights.
    settings : mapping
        ``temperature``, ``seed``, ``max_tokens`` and ``context_length``.

    Attributes
    ----------
    at_once : int
        How many questions it takes at a time.
    """

    structure = "json_schema"
    at_once = 1

    def __init__(self, path: Path, settings: Mapping[str, Any]) -> None:
        self.name = f"llamacpp:{path.name}"
        self.identity: Mapping[str, Any] = {
            "judge": "llamacpp",
            "model": path.name,
            "sha256": fingerprint(path),
            **settings,
        }
        self.context_length: int = settings["context_length"]
        self.max_tokens: int = min(settings["max_tokens"], self.context_length)
        self._path = path
        self._settings = settings
        self._model: Any = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="llamacpp")

    async def ask(self, ask: Ask) -> Reply:
        """Answer `ask`.

        Returns
        -------
        Reply
            Without `parsed` where the prompt is too long for the model, or the reply unreadable.

        Raises
        ------
        JudgeUnreachableError
            The model cannot be loaded.
        """
        answer = await self._in_thread(self._complete, self._request(ask))
        if "choices" not in answer:
            return Reply.nothing(self._refusal(answer))
        said = said_in(json.dumps(answer))
        if isinstance(said, str):
            return Reply.nothing(said)
        return said.reply(ask.schema, structured=ask.structured)

    async def reachable(self) -> None:
        """Load the model; raises JudgeUnreachableError where it cannot be loaded."""
        await self._in_thread(self._load)

    async def ready(self) -> None:
        """Load the model, and wait until what was begun is finished, so that a call can begin.

        Raises
        ------
        JudgeUnreachableError
            The model cannot be loaded.
        """
        await self._in_thread(self._load)  # in the one thread, so after whatever runs there

    def takes(self, what: str) -> bool | None:
        """Whether llama.cpp takes ``seed``, ``logprobs`` or ``json_object``; None: not known."""
        return True if what in ("seed", "logprobs", "json_object") else None

    async def close(self) -> None:
        """Let go of the model; a question under way is finished, none is begun."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        self._model = None

    async def _in_thread(self, function: Any, *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)

    def _request(self, ask: Ask) -> dict[str, Any]:
        request = Dialect(limit="max_tokens").request(
            ask,
            model=self._path.name,
            temperature=self._settings["temperature"],
            seed=self._settings["seed"],
            max_tokens=self.max_tokens,
        )
        return request | {"cache_prompt": False}

    def _complete(self, request: dict[str, Any]) -> Any:
        self._load()
        return self._model.handle_chat_completions(request)

    def _load(self) -> None:
        if self._model is not None:
            return
        import xllamacpp

        params = xllamacpp.CommonParams()
        params.model.path = str(self._path)
        params.n_ctx = self.context_length
        params.n_parallel = 1
        # Half of the cores: two threads on one core wait for each other.
        threads = max(1, (os.cpu_count() or 1) // 2)
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
        params.cache_prompt = params.ctx_shift = params.warmup = False
        params.cache_ram_mib = 0
        params.verbosity = _QUIET
        try:
            self._model = xllamacpp.Server(params)
        except RuntimeError:
            raise JudgeUnreachableError(
                f"the judge {self.name} cannot be asked: llama.cpp cannot load {self._path}; the "
                "file may be incomplete, of a kind that this version does not know, or too large "
                "for the memory (a smaller --context-length needs less)"
            ) from None

    def _refusal(self, answer: Any) -> str:
        error = answer.get("error") if isinstance(answer, dict) else None
        said = error if isinstance(error, dict) else {"message": str(answer)}
        problem = f"the judge refused the question: {said.get('message')}"
        if said.get("type") == _TOO_LONG:
            return f"{problem} (--context-length)"
        return problem
