"""All that a gold set is made of, opened and checked before anything is asked."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from misslink.errors import InputError
from misslink.goldset.generating.asks import PROMPTS
from misslink.goldset.generating.index import Index, embedder_of
from misslink.goldset.generating.settings import Settings, read_settings
from misslink.goldset.generating.sources import Sources, read_sources
from misslink.judging.embedded.judge import EmbeddedJudge
from misslink.judging.opening import Opened, open_judge
from misslink.judging.protocol import Judge, innermost
from misslink.judging.terms import Terms
from misslink.judging.wrappers.ledger_file import DEFAULT_LEDGER
from misslink.prompting import Prompts

__all__ = ["Made", "opened"]


@dataclass(frozen=True)
class Made:
    """The judge, the corpus with its index, the settings and the prompts."""

    judge: Opened
    sources: Sources
    index: Index
    settings: Settings
    prompts: Prompts


@asynccontextmanager
async def opened(
    corpus: Any,
    judge: str | Judge,
    n: int,
    settings: Settings | str | Path | None,
    embedding: Any,
    ledger: str | Path | None,
    concurrency: int,
    terms: Terms | None,
) -> AsyncIterator[Made]:
    """Open the judge, read the corpus and embed it; close the judge and the embedder in the end.

    Parameters
    ----------
    corpus, judge, n, settings, embedding, ledger, concurrency, terms
        As of `misslink.goldset.generate`.

    Raises
    ------
    InputError
        One of them is wrong, or the judge cannot write questions.
    """
    if n < 1:
        raise InputError(f"-n is {n}; it must be at least 1")
    if concurrency < 1:
        raise InputError(f"--concurrency is {concurrency}; it must be at least 1")
    terms = terms or Terms()
    chosen = settings if isinstance(settings, Settings) else None
    chosen = chosen or read_settings(None if settings is None else Path(str(settings)))
    prompts = Prompts.of(terms.prompts)
    for name in PROMPTS:
        prompts.load(name)
    kept = DEFAULT_LEDGER if ledger is None else Path(ledger)
    asked = open_judge(judge, ledger=kept, concurrency=concurrency, terms=terms)
    if asked is None:
        raise InputError("--judge none asks nobody; name one, such as --judge openai:MODEL")
    embedder = None
    try:
        if isinstance(innermost(asked), EmbeddedJudge):
            raise InputError(
                f"the judge {asked.name} cannot write questions, it only holds an answer against "
                "its passages; name a model, such as --judge openai:MODEL or llamacpp:FILE.gguf"
            )
        sources = read_sources(corpus, chosen)
        embedder = embedder_of(embedding)
        index = await Index.of([passage.text for passage in sources.passages], embedder)
        yield Made(asked, sources, index, chosen, prompts)
    finally:
        if embedder is not None:
            embedder.close()
        await asked.close()
