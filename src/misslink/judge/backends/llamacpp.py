"""A GGUF model in this process, run by llama.cpp: ``llamacpp:PATH.gguf``."""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import json
import os
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import Any

from misslink.errors import InputError, MissingExtraError
from misslink.judge.backends.connection import unreachable
from misslink.judge.backends.request_format import REFUSAL_MESSAGE, SEED, RequestFormat
from misslink.judge.backends.response_parsing import parse_completion
from misslink.judge.protocol import Ask, Judge, JudgeInfo, Reply
from misslink.registry import judges

_GGUF_MAGIC = b"GGUF"
_GGUF_HEAD = 2**25  # bytes; a vocabulary may stand before the model's lengths
# The end of a field's name, the type of a whole number, and its lower four bytes.
_CONTEXT_LENGTH = re.compile(rb"\.context_length[\x04\x05\x0a\x0b]\0{3}(.{4})", re.DOTALL)


def trained_context_length(path: Path) -> int | None:
    """How many tokens the model in `path` was trained to take; None where its file does not say.

    Raises
    ------
    InputError
        The file is missing, or is no GGUF file.
    """
    try:
        with path.open("rb") as file:
            head = file.read(_GGUF_HEAD)
    except OSError as problem:
        raise InputError(
            f"the model cannot be read ({problem.strerror or problem}); check --judge", path=path
        ) from None
    if not head.startswith(_GGUF_MAGIC):
        raise InputError("this is not a GGUF file", path=path)
    found = _CONTEXT_LENGTH.search(head)
    return int.from_bytes(found[1], "little") if found else None


def model_sha256(path: Path) -> str:
    """SHA-256 of a file in hexadecimal digits; read once for each size and time of change."""
    about = path.stat()
    return _file_sha256(path, about.st_size, about.st_mtime_ns)


@cache
def _file_sha256(path: Path, _size: int, _changed: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


_DEFAULT_CONTEXT = 8192  # tokens; memory grows with it, so more is for those who ask for it
_TOO_LONG_ERROR = "exceed_context_size_error"
_QUIET_LOG_LEVEL = -1


@judges.register("llamacpp")
def open_llamacpp(
    argument: str | None,
    *,
    temperature: float = 0.0,
    max_tokens: int = 2048,
    context_length: int | None = None,
) -> Judge:
    """Open the judge ``llamacpp:PATH.gguf``; the model is loaded at the first question.

    Parameters
    ----------
    argument : str or None
        The file of weights.
    temperature : float
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
    trained = trained_context_length(path)
    if importlib.util.find_spec("xllamacpp") is None:
        raise MissingExtraError("xllamacpp", "local")
    length = context_length or min(trained or _DEFAULT_CONTEXT, _DEFAULT_CONTEXT)
    settings = {
        "temperature": temperature,
        "seed": SEED,
        "max_tokens": max_tokens,
        "context_length": length,
    }
    return LlamaCppJudge(path, settings)


class LlamaCppJudge:
    """Asks a model in this process, one question at a time; `open_llamacpp` opens one.

    Prompts are not cached and questions do not run in parallel: both would change the rounding, and
    so the words. A question that is too long is refused, never shortened. A cancelled call finishes
    before the next begins.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any]) -> None:
        self.name = f"llamacpp:{path.name}"
        self.identity: Mapping[str, Any] = {
            "judge": "llamacpp",
            "model": path.name,
            "sha256": model_sha256(path),
            **settings,
        }
        self.context_length: int = settings["context_length"]
        self.max_tokens: int = min(settings["max_tokens"], self.context_length)
        load = partial(self._in_thread, self._load)  # the one thread, so after whatever runs there
        self.info = JudgeInfo(
            context_length=self.context_length,
            max_tokens=self.max_tokens,
            max_concurrency=1,
            check_reachable=load,
            prepare=load,
            structure="json_schema",
            supports=lambda name: True if name in ("seed", "logprobs", "json_object") else None,
        )
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
            error = answer.get("error", {})
            hint = " (setting context_length)" if error.get("type") == _TOO_LONG_ERROR else ""
            return Reply.nothing(REFUSAL_MESSAGE.format(error.get("message", answer)) + hint)
        return parse_completion(json.dumps(answer)).reply(ask.schema)

    async def close(self) -> None:
        """Let go of the model; a question under way is finished, none is begun."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        self._model = None

    async def _in_thread(self, function: Any, *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)

    def _request(self, ask: Ask) -> dict[str, object]:
        request = RequestFormat(limit="max_tokens").request(
            ask,
            model=self._path.name,
            temperature=self._settings["temperature"],
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
        params.verbosity = _QUIET_LOG_LEVEL
        try:
            self._model = xllamacpp.Server(params)
        except RuntimeError:
            raise unreachable(
                self.name,
                f"llama.cpp cannot load {self._path}; the file may be incomplete, of a kind that "
                "this version does not know, or too large for the memory (a smaller setting "
                "context_length needs less)",
            ) from None
