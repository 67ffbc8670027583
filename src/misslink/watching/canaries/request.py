"""What a run of canaries is asked to do, and what it saw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from misslink.prompting import BUILT_IN, Prompts
from misslink.types import Passage
from misslink.watching.canaries.results import Result

if TYPE_CHECKING:
    from misslink.embedding import Embedder
    from misslink.judging.opening import Opened
    from misslink.watching.canaries.canary_set import CanarySet
    from misslink.watching.canaries.fingerprint import Fingerprint

__all__ = ["Request", "Seen"]


@dataclass(frozen=True)
class Request:
    """What a run of canaries is asked to do.

    Parameters
    ----------
    app : Runnable, retriever or callable
    canaries : CanarySet
    k : int
        How many of the first passages count, from 1.
    judge : Opened or None
        Who judges answers against the expected ones. None: nobody.
    corpus : sequence of Passage or None
        What the app retrieves from, as it was read. None: the app's own store is listed, where it
        can be.
    embedder : Embedder or None
        By which relevance is measured, where one was named.
    own_embedding : bool
        Whether the app's own embedding serves where none was named.
    timeout_s, deadline_s : float
        Seconds for one question, and for all of them.
    concurrency : int
        Questions under way at once, from 1.
    id_key, input_key : str or None
        As for `misslink.capture.Watcher`.
    prompts : Prompts
    """

    app: Any
    canaries: CanarySet
    k: int = 5
    judge: Opened | None = None
    corpus: Sequence[Passage] | None = None
    embedder: Embedder | None = None
    own_embedding: bool = True
    timeout_s: float = 30.0
    deadline_s: float = 600.0
    concurrency: int = 4
    id_key: str | None = None
    input_key: str | None = None
    prompts: Prompts = BUILT_IN


@dataclass(frozen=True)
class Seen:
    """What a run saw.

    Parameters
    ----------
    at : float
        When it began, in Unix seconds.
    results : sequence of Result
        One a canary, in the file's order.
    basis : {'cosine', 'score'}
        What the relevance of a passage is.
    fingerprint : Fingerprint or None
        Of the corpus and the embedding. None: neither is known.
    corpus_known : bool
        Whether its documents are known, or the embedding alone.
    notes : sequence of str
        What could not be seen, for people.
    hung : int
        Calls that were left behind; their threads may still run.
    judge_problem : str or None
        Why the judge could not be asked on.
    """

    at: float
    results: tuple[Result, ...]
    basis: str
    fingerprint: Fingerprint | None
    corpus_known: bool = True
    notes: tuple[str, ...] = ()
    hung: int = 0
    judge_problem: str | None = None
