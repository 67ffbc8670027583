"""Run an app on cases and record a trace for each."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
import traceback
from collections.abc import (
    AsyncIterator,
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from misslink.capture.app import (
    AppOutput,
    check_app,
    create_caller,
    history_place,
    parse_app_output,
)
from misslink.capture.empty_prompts import PROMPT_UNSEEN
from misslink.capture.passages import (
    adopt_inner_ids,
    chunks_from,
    find_id_key,
    has_document_id,
    passages_from,
)
from misslink.capture.rank_probe import (
    fetch_by_ids,
    find_memory,
    find_sources,
    probe_passages,
    searched_source,
    stored_documents,
)
from misslink.embedding import embedding_identity
from misslink.errors import InputError
from misslink.event_loops import APP_LOOP, is_of_another_loop
from misslink.io.jsonl import check_length
from misslink.io.secrets import redact_secrets
from misslink.text.normalization import content_id, valid_text
from misslink.text.prompt_matching import (
    PromptMatch,
    chunk_texts,
    match_prompts,
    merge_rankings,
)
from misslink.timeouts import TookTooLongError
from misslink.types import Case, Passage, RetrieverCall, Trace
from misslink.user_code import error_location

if TYPE_CHECKING:
    from misslink.capture.recorder import Recorder, SearchCall


Result = TypeVar("Result")

_log = logging.getLogger("misslink")
_TRACEBACK = 10_000  # characters of a traceback that are saved, from its end
_UNSEEN = (
    "no retrieval was seen: searches in threads that the app starts itself, and other clients than "
    "those of LangChain, LlamaIndex, Haystack and chromadb, report nothing; add one line after the "
    "search, misslink.record_retrieval(query, passages), or return a dict with 'answer' and "
    "'retrieved'"
)
_NO_MODEL = "no model call was seen"
_MOST_BROKEN = 10  # connections of other event loops that a case may meet; each breaks once
_OTHER_LOOP = (
    "; it uses what belongs to another event loop: create its clients and locks inside the app, or "
    "await misslink.evaluate_async in that loop; a time limit runs the app in another loop"
)
_OTHER_MODEL = "no model call that misslink saw gave this answer or received a passage"


# What each search retrieved; no call: what the app says it retrieved.
Rankings = list[tuple["SearchCall | None", tuple[Passage, ...]]]


@dataclass(frozen=True)
class _AppOutcome:
    """How asking the app ended."""

    returned: AppOutput
    seconds: float
    error: str | None = None
    traceback: str | None = None
    of_another_loop: bool = False  # it failed on a connection of another event loop


class Watcher:
    """Run an app on cases, also concurrently, and record a trace of each.

    The app is not changed. LangChain callbacks report its retrievers and models. misslink also
    records vector store searches while a case runs.

    Parameters
    ----------
    app : Runnable or callable
        A LangChain chain, retriever, agent or compiled graph, or a sync or async callable that
        takes the question.
    id_key : str or None
        The metadata key with a passage's id. It overrides ``Document.id``.
    depth : int
        How many passages retrievers return in the search for missed passages.
    input_key : str or None
        The app's input key for the question, if misslink cannot detect it.
    labels : collection of str
        The gold set's passage ids. If documents have no id, a metadata key that holds these becomes
        `id_key`.
    timeout : float or None
        Seconds that the app may take for a case. A call that takes longer is abandoned.
    settings : mapping or None
        For every call: config and ``inputs`` of a Runnable, keyword arguments of a callable.

    Raises
    ------
    InputError
        `app` is not an app, or misslink cannot detect which of its inputs is the question.
    """

    def __init__(
        self,
        app: Any,
        *,
        id_key: str | None = None,
        depth: int = 100,
        input_key: str | None = None,
        labels: Collection[str] = (),
        timeout: float | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        check_app(app)
        self.app = app
        self.id_key = id_key
        self.depth = depth
        self.labels = labels
        self._timeout = timeout
        self._ask = create_caller(app, input_key, settings)
        self.takes_history = history_place(app, input_key) is not None
        memory = find_memory(app)
        self._lock = None if memory is None else _MEMORY_LOCKS.setdefault(id(memory), Lock())
        self._calls: dict[str, list[SearchCall]] = {}  # outermost ones, by case
        self._sources: dict[int, Any] = {}
        self._seen: dict[int, dict[str, None]] = {}  # ids that each source gave, in order
        self._every_source_known = True

    async def watch(self, case: Case) -> Trace:
        """Run the app on the case's question, in a separate context.

        If the app raises, the trace has ``error`` and the passages retrieved so far.
        """
        from misslink.capture.hooks import extend_recording, record_searches
        from misslink.capture.recorder import CURRENT_RECORDER, Recorder, install_hook

        install_hook()
        recorder = Recorder()

        async def run() -> _AppOutcome:
            CURRENT_RECORDER.set(recorder)  # for this task and whatever it starts
            return await self._call_app(case)

        is_first = not self._calls
        with record_searches():
            recorded = extend_recording()
            outcome = await asyncio.create_task(run())
            for _ in range(_MOST_BROKEN):
                if not outcome.of_another_loop:
                    break
                recorder = Recorder()
                outcome = await asyncio.create_task(run())
            is_unseen = not recorder.calls and outcome.returned.documents is None
            if is_first and is_unseen and not outcome.error and extend_recording() > recorded:
                # The question imported a framework, whose searches were not recorded yet.
                recorder = Recorder()
                outcome = await asyncio.create_task(run())
        try:
            lists = self._rankings(recorder, outcome.returned)
            check_length(outcome.returned.answer or "")
            for passage in merge_rankings([chunks for _, chunks in lists]):
                check_length(passage.text)
        except InputError as too_long:
            return Trace(case_id=case.id, error=str(too_long), latency_s=outcome.seconds)
        chunks = [chunk for _, chunks in lists for chunk in chunks]
        if self.id_key is None and not any(map(has_document_id, chunks)):
            key, is_unique = find_id_key(chunks, self.labels)
            if is_unique:
                self.id_key = key
                lists = self._rankings(recorder, outcome.returned)
        self._remember(case.id, lists)
        return self._trace(case, recorder, outcome, lists)

    async def deepen(self, case: Case, trace: Trace, wanted: Callable[[Passage], bool]) -> Trace:
        """Ask the case's outermost retrievers again, for `depth` results, on the same query.

        Parameters
        ----------
        case, trace : Case, Trace
            A case that this Watcher watched, and what came of it.
        wanted : callable
            Which passages matter, say those that carry the case's evidence.

        Returns
        -------
        Trace
            With the wanted passages that were not retrieved as ``deeper``, at their best rank,
            and with ``depth``; ``depth`` stays None, with a note, where nothing could be asked.
        """
        calls = self._calls.get(case.id, [])
        notes = list(trace.notes)
        if not calls:
            reason = (
                "no search was seen" if case.id in self._calls else "it was not called in this run"
            )
            notes.append(f"retrievers could not be asked deeper for this case: {reason}")
        lists = []
        for number, call in enumerate(calls, 1):
            try:
                probe = partial(probe_passages, call, self.depth, self.id_key)
                passages, note = await self._in_time(probe)
            except Exception as error:  # noqa: BLE001 - the store's refusal is the reader's news
                passages, note = (), f"asking {call.name} deeper failed: {_error_text(error)}"
            if note and note not in notes:
                notes.append(note)
            if passages:
                lists.append((number, passages))
        retrieved = {passage.id for passage in trace.retrieved}
        ranked = sorted(
            ((number, passage) for number, of_call in lists for passage in of_call),
            key=lambda pair: pair[1].rank,
        )
        best: dict[str, tuple[int, Passage]] = {}
        for number, passage in ranked:
            if passage.id not in retrieved and wanted(passage):
                best.setdefault(passage.id, (number, passage))
        return trace.model_copy(
            update={
                "deeper": tuple(passage for _, passage in best.values()),
                "deeper_calls": {name: number for name, (number, _) in best.items()},
                "depth": self.depth if lists else None,
                "notes": tuple(notes),
            }
        )

    async def fetch(self, ids: Iterable[str]) -> dict[str, Passage] | None:
        """Those of `ids` that the app's own corpus holds, as passages (whose rank means nothing).

        None where that is not known: no search was seen yet, or a retriever among them keeps
        its documents where LangChain cannot ask for them by id.
        """
        wanted_ids = list(dict.fromkeys(ids))
        if not self._sources or not self._every_source_known:
            return None
        passages: dict[str, Passage] = {}
        other_sources = {id(source): source for source in find_sources(self.app)}
        for key, source in {**other_sources, **self._sources}.items():
            # A source that does not find its own passages by id cannot say what it lacks.
            samples = list(self._seen.get(key, {}))[:5]
            try:
                stored = await fetch_by_ids(
                    source, list(dict.fromkeys(wanted_ids + samples)), self.id_key
                )
            except Exception as error:  # noqa: BLE001 - a store that refuses has not said anything
                if key not in self._sources:
                    continue  # a store that no longer works is not the app's
                _warn_of_refusal(source, "does not list its passages", error)
                return None
            if stored is None or not all(name in stored for name in samples):
                return None
            passages |= {name: stored[name] for name in wanted_ids if name in stored}
        return passages

    async def corpus(self, limit: int) -> tuple[Passage, ...] | None:
        """Everything that the sources the app has searched hold, with the ids retrieval gives.

        Parameters
        ----------
        limit : int
            How many passages are worth having.

        Returns
        -------
        tuple of Passage or None
            Source after source, ``rank`` being the place; of two passages under one id the first.
            None where it is not known: no search was seen, one of the sources cannot be listed
            or does not list what it gave, or there are more than `limit`.
        """
        if not self._sources or not self._every_source_known:
            return None
        passages: dict[str, Passage] = {}
        for key, source in self._sources.items():
            try:
                documents = await stored_documents(source, limit)
            except Exception as error:  # noqa: BLE001 - a store that refuses has not said anything
                _warn_of_refusal(source, "cannot be listed", error)
                return None
            if documents is None or len(documents) > limit:
                return None
            listed = passages_from(documents, id_key=self.id_key)
            # A retriever may hand out other documents than its store holds, such as their parents.
            if not self._seen[key].keys() <= {passage.id for passage in listed}:
                return None
            for passage in listed:
                ranked = passage.model_copy(update={"rank": len(passages) + 1})
                passages.setdefault(passage.id, ranked)
        return tuple(passages.values()) if len(passages) <= limit else None

    async def vectors(self, limit: int) -> dict[str, Sequence[float]]:
        """The vectors that the stores the app has searched keep, by the text they are of.

        Chroma and LangChain's InMemoryVectorStore give them out: what a store searches by need not
        be computed again. Of more than `limit` passages, none.
        """
        vectors: dict[str, Any] = {}
        for source in self._sources.values():
            try:
                rows = await stored_documents(source, limit, with_vectors=True) or ()
            except Exception as error:  # noqa: BLE001 - they are computed again instead
                _warn_of_refusal(source, "does not return its vectors", error)
                continue
            for row in rows:
                if isinstance(row, dict) and row["text"] and row.get("vector") is not None:
                    vectors[row["text"]] = row["vector"]
        return vectors if len(vectors) <= limit else {}

    def embeddings(self) -> Any:
        """Return the embedding model of the vector stores that the app has searched.

        None where there is none, or several different ones.
        """
        models: dict[str, Any] = {}
        for source in self._sources.values():
            try:
                model = getattr(source, "embeddings", None)
            except Exception as error:  # noqa: BLE001 - some stores embed on their server
                _log.debug("%s has no embedding: %r", type(source).__name__, error)
                continue
            if callable(getattr(model, "embed_documents", None)):
                models.setdefault(embedding_identity(model), model)
        return next(iter(models.values())) if len(models) == 1 else None

    async def _call_app(self, case: Case, *, again: bool = False) -> _AppOutcome:
        began = time.perf_counter()

        async def run(call: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
            nonlocal began
            began = time.perf_counter()  # of a session's calls the last is the case's own
            return await self._in_time(call)

        try:
            async with _turn(self._lock):
                came_back = await self._ask(case.question, case.history, run)
            seconds = time.perf_counter() - began
            returned = parse_app_output(came_back)
            return _AppOutcome(returned, seconds, error=returned.problem)
        except TookTooLongError as error:
            if error.blocked_by_other and not again:
                return await self._call_app(case, again=True)
            seconds = time.perf_counter() - began
            why = ""
            if error.blocked_by_other:
                why = ", as another case blocked the app's event loop"
            elif error.is_loop_blocked:
                why = ", and the app's event loop was blocked"
            return _AppOutcome(AppOutput(), seconds, error=f"{error}{why} (--app-timeout)")
        except BaseException as error:
            task = asyncio.current_task()
            if isinstance(error, KeyboardInterrupt | GeneratorExit) or (task and task.cancelling()):
                raise
            # Whatever else it is, a cancellation of the app's own included, it is the finding.
            seconds = time.perf_counter() - began
            place = error_location(error)
            where = f" ({Path(place[0]).name}, line {place[1]})" if place else ""
            trace = "".join(traceback.format_exception(error))
            trace = redact_secrets(valid_text(trace))[-_TRACEBACK:]
            is_foreign = is_of_another_loop(error)
            text = _error_text(error) + where + (_OTHER_LOOP if is_foreign else "")
            return _AppOutcome(AppOutput(), seconds, text, trace, is_foreign)

    async def _in_time(self, work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        """Await `work`, within the time limit if there is one."""
        if self._timeout is None:
            return await work()
        return await APP_LOOP.run(work, self._timeout)

    def _rankings(self, recorder: Recorder, returned: AppOutput) -> Rankings:
        """What each search retrieved; if none was seen, what the app says it retrieved."""
        lists: Rankings = [
            (call, chunks_from(call.documents, call.scores, id_key=self.id_key))
            for call in recorder.calls
        ]
        is_seen = any(call.outer is None for call in recorder.calls)
        if not is_seen and returned.documents is not None:
            lists.append((None, chunks_from(returned.documents, id_key=self.id_key)))
        inner = list(chunks_from(recorder.inner, id_key=self.id_key))
        inner += [chunk for call, chunks in lists if call and call.outer for chunk in chunks]
        return [(call, adopt_inner_ids(chunks, inner)) for call, chunks in lists]

    def _trace(
        self, case: Case, recorder: Recorder, outcome: _AppOutcome, lists: Rankings
    ) -> Trace:
        returned = outcome.returned
        outermost = [chunks for call, chunks in lists if call is None or call.outer is None]
        retrieved = merge_rankings(outermost)
        chunks = list(chain(*outermost))
        notes = []
        several = (name for name, texts in chunk_texts(chunks).items() if len(texts) > 1)
        if self.id_key is None and (shared := next(several, None)):
            notes.append(
                f"different texts were retrieved under the id '{shared}', and count as one passage. "
                "Give each chunk its own id (Document.id, or a metadata key named by --id-key)."
            )
        seen = self._prompt_fields(case, recorder, returned, retrieved, chunks)
        unseen = not outermost and bool(recorder.models or returned.answer is not None)
        if seen.get("prompted") is None and returned.answer is not None:
            notes.append(f"{_OTHER_MODEL if recorder.models else _NO_MODEL}, {PROMPT_UNSEEN}")
        notes += filter(None, [self._without_key(lists)])
        return Trace(
            case_id=case.id,
            retrieved=retrieved,
            **seen,
            answer=returned.answer,
            latency_s=outcome.seconds,
            usage=recorder.usage,
            error=outcome.error,
            traceback=outcome.traceback,
            unmeasured=_UNSEEN if unseen else None,
            calls=tuple(
                RetrieverCall(
                    query=valid_text(call.query),
                    passages=tuple(dict.fromkeys(chunk.id for chunk in chunks)),
                    retriever=call.name,
                    tool=call.tool,
                    nested=call.outer is not None,
                )
                for call, chunks in _in_search_order(lists)
            ),
            notes=tuple(notes),
        )

    def _prompt_fields(
        self,
        case: Case,
        recorder: Recorder,
        returned: AppOutput,
        retrieved: Sequence[Passage],
        chunks: Sequence[Passage],
    ) -> dict[str, object]:
        """What the answer's model was shown: as the app says, else as its prompt, else as returned."""
        if returned.prompted is not None:
            return {"prompted": returned.prompted}
        match = PromptMatch(None)
        if recorder.models:
            asked = [m.content for m in case.history if m.role == "user"]
            questions = (case.question, *asked)
            match = match_prompts(chunks, recorder.models, returned.answer, questions)
        documents = returned.documents if returned.answer is not None and recorder.calls else None
        if documents is not None and match.text is None:
            kept = chunks_from(documents, id_key=self.id_key)
            texts = {chunk.id: chunk.text for chunk in kept}
            texts |= {content_id(chunk.text): chunk.text for chunk in kept}
            shown = {
                passage.id: texts[name] or passage.text
                for passage in retrieved
                for name in (passage.id, content_id(passage.text))
                if name in texts
            }
            if shown or not kept:
                graded = tuple(name for name in match.shown or () if name not in shown)
                return PromptMatch(shown, graded).trace_fields(retrieved)
        return {**match.trace_fields(retrieved), "model_calls": len(recorder.models)}

    def _remember(self, case_id: str, lists: Rankings) -> None:
        """Store the sources and retriever calls of a case, for `deepen` and `fetch`."""
        self._calls[case_id] = [call for call, _ in lists if call and call.outer is None]
        for call, passages in lists:
            if call is None:
                continue
            call.frame = None  # it holds the app's locals
            if not call.is_leaf:
                continue
            source = searched_source(call)
            if source is None:
                self._every_source_known = False
                continue
            self._sources[id(source)] = source
            seen = self._seen.setdefault(id(source), {})
            seen |= dict.fromkeys(passage.id for passage in passages)

    def _without_key(self, lists: Rankings) -> str | None:
        chunks = [chunk for call, chunks in lists if call is not None for chunk in chunks]
        without = sum(self.id_key not in chunk.metadata for chunk in chunks)
        if self.id_key is None or not without:
            return None
        return f"{without} of {len(chunks)} documents have no metadata '{self.id_key}' (--id-key)"


# Cases that share a memory take turns: it mixes them, and LlamaIndex's own hangs in several event
# loops. Threads' locks, by the memory: event loops may be several, too.
_MEMORY_LOCKS: dict[int, Lock] = {}
_POLL_S = 0.005


@asynccontextmanager
async def _turn(lock: Lock | None) -> AsyncIterator[None]:
    """Wait until no other case uses the app's memory; an app without one is free at once."""
    if lock is None:
        yield
        return
    while not lock.acquire(blocking=False):  # noqa: ASYNC110 - an Event belongs to one loop
        await asyncio.sleep(_POLL_S)
    try:
        yield
    finally:
        lock.release()


def _in_search_order(lists: Rankings) -> list[tuple[SearchCall, tuple[Passage, ...]]]:
    """The searches, each followed by those inside of it."""
    calls = [(call, passages) for call, passages in lists if call is not None]
    places = {id(call): place for place, (call, _) in enumerate(calls)}

    def place(pair: tuple[SearchCall, Any]) -> tuple[int, bool]:
        call = pair[0]
        while call.outer is not None:
            call = call.outer
        return places.get(id(call), len(places)), pair[0].outer is not None

    return sorted(calls, key=place)


def _warn_of_refusal(source: Any, refusal: str, error: Exception) -> None:
    _log.warning("%s %s: %s", type(source).__name__, refusal, _error_text(error))


def _error_text(error: BaseException) -> str:
    try:
        words = redact_secrets(" ".join(valid_text(str(error)).split()))
    except Exception:  # noqa: BLE001 - an error that cannot be printed still has a name
        words = ""
    if not words and error.__cause__ is not None:
        return _error_text(error.__cause__)
    return f"{type(error).__name__}: {words[:500]}" if words else type(error).__name__


def record_retrieval(query: str, passages: Any, *, name: str = "search") -> None:
    """Record a search of the app, such as one by a raw client; does nothing outside an evaluation.

    Call it where the app searches: in the case's own thread or task, or one that inherits its context.

    Parameters
    ----------
    query : str
    passages : list
        Best first: documents, texts, ids (where none has a blank), ``{"id", "text", "score"}``, pairs
        of a document and its score, or chromadb's own result.
    name : str
        Name of the search in the report.

    Raises
    ------
    InputError
        `passages` is something else.

    Examples
    --------
    >>> import misslink
    >>> misslink.record_retrieval("When?", [{"id": "times", "text": "The ferry leaves at seven."}])
    """
    module = sys.modules.get("misslink.capture.recorder")
    recorder = module.CURRENT_RECORDER.get() if module else None
    if recorder is None:
        hooks = sys.modules.get("misslink.capture.hooks")
        if hooks is not None and hooks.is_recording():
            _warn_search_without_case()
        return  # the app runs in production, where this costs nothing
    recorder.record(str(query), passages, name)


@cache
def _warn_search_without_case() -> None:
    _log.warning(
        "record_retrieval was called outside of a case's thread, so its search belongs to no case; "
        "start the thread with contextvars.copy_context().run"
    )
