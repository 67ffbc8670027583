"""An app watched while it answers the questions of a gold set."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from misslink.capture.answers import Returned, read
from misslink.capture.asking import asker
from misslink.capture.loading import check_app
from misslink.capture.passages import merged, passages_from
from misslink.capture.prompted import reached
from misslink.importing import place_of
from misslink.text import valid_text
from misslink.types import Case, Passage, RetrieverCall, Trace

if TYPE_CHECKING:
    from misslink.capture.recorder import Call, Recorder

__all__ = ["Watcher"]

_log = logging.getLogger("misslink")
_UNSEEN = (
    "no retrieval was seen: searches in threads that the app starts itself and clients other than "
    "LangChain's report nothing; run them through a LangChain retriever, or return a dict with "
    "'answer' and 'retrieved'"
)
_NO_MODEL = "no LangChain model was seen"
_OTHER_MODEL = "no model that was seen gave this answer or was shown a passage"
_PROMPT_UNSEEN = "so it is not known which passages reached the prompt; the first k stand for them"


@dataclass(frozen=True)
class _Outcome:
    """How asking the app ended."""

    returned: Returned
    seconds: float
    error: str | None = None
    place: str | None = None


class Watcher:
    """Asks an app one case at a time, as many at once as you like, and writes down what it does.

    The app stays as it is: LangChain's callbacks tell of its retrievers and models, and the
    vector store classes are overheard while a case runs.

    Parameters
    ----------
    app : Runnable or callable
        A LangChain chain, retriever, agent or compiled graph, or a sync or async callable that
        takes the question.
    id_key : str or None
        The metadata key that holds a passage's id; it wins over ``Document.id``.
    depth : int
        How deep retrievers are asked for missed passages.
    input_key : str or None
        The key the app expects the question under, where it cannot be told.

    Raises
    ------
    InputError
        `app` is none, or takes several inputs of which none is known to be the question.
    """

    def __init__(
        self,
        app: Any,
        *,
        id_key: str | None = None,
        depth: int = 100,
        input_key: str | None = None,
    ) -> None:
        check_app(app)
        self.app = app
        self.id_key = id_key
        self.depth = depth
        self._ask = asker(app, input_key)
        self._calls: dict[str, list[Call]] = {}  # outermost ones, by case
        self._sources: dict[int, Any] = {}
        self._seen: dict[int, dict[str, None]] = {}  # ids that each source gave, in order
        self._every_source_known = True

    async def watch(self, case: Case) -> Trace:
        """Ask the app the case's question, in a context of its own.

        What the app raises becomes ``Trace.error``, and what it had retrieved by then is kept.
        """
        from misslink.capture.recorder import CURRENT, Recorder, install_hook
        from misslink.capture.tap import listening

        install_hook()
        recorder = Recorder()

        async def run() -> _Outcome:
            CURRENT.set(recorder)  # for this task and whatever it starts
            return await self._asked(case.question)

        with listening():
            outcome = await asyncio.create_task(run())
        self._remember(case.id, recorder)
        return self._trace(case, recorder, outcome)

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
        from misslink.capture.deeper import passages_deeper

        calls = self._calls.get(case.id, [])
        notes = list(trace.notes)
        if not calls:
            reason = "no search was seen" if case.id in self._calls else "it was not watched now"
            notes.append(f"retrievers could not be asked deeper for this case: {reason}")
        lists = []
        for call in calls:
            try:
                passages, note = await passages_deeper(call, self.depth, self.id_key)
            except Exception as error:  # noqa: BLE001 - the store's refusal is the reader's news
                passages, note = (), f"asking {call.name} deeper failed: {_said(error)}"
            if note and note not in notes:
                notes.append(note)
            if passages:
                lists.append(passages)
        retrieved = {passage.id for passage in trace.retrieved}
        best: dict[str, Passage] = {}
        for passage in (one for ranked in lists for one in ranked):
            known = best.get(passage.id)
            if passage.id not in retrieved and (known is None or passage.rank < known.rank):
                best[passage.id] = passage
        ordered = sorted(best.values(), key=lambda passage: passage.rank)
        return trace.model_copy(
            update={
                "deeper": tuple(passage for passage in ordered if wanted(passage)),
                "depth": self.depth if lists else None,
                "notes": tuple(notes),
            }
        )

    async def fetch(self, ids: Iterable[str]) -> dict[str, Passage] | None:
        """Those of `ids` that the app's own corpus holds, as passages (whose rank means nothing).

        None where that cannot be told: no search was seen yet, or a retriever among them keeps
        its documents where LangChain cannot ask for them by id.
        """
        from misslink.capture.deeper import corpora, held

        asked = list(dict.fromkeys(ids))
        if not self._sources or not self._every_source_known:
            return None
        found: dict[str, Passage] = {}
        others = {id(source): source for source in corpora()}
        for key, source in {**others, **self._sources}.items():
            # A source that does not find its own passages by id cannot say what it lacks.
            samples = list(self._seen.get(key, {}))[:5]
            try:
                holds = await held(source, list(dict.fromkeys(asked + samples)), self.id_key)
            except Exception as error:  # noqa: BLE001 - a store that refuses has not said anything
                if key not in self._sources:
                    continue  # a store that no longer works is not the app's
                _log.warning(
                    "%s does not say what it holds: %s", type(source).__name__, _said(error)
                )
                return None
            if holds is None or not all(name in holds for name in samples):
                return None
            found |= {name: holds[name] for name in asked if name in holds}
        return found

    async def known_ids(self, ids: Iterable[str]) -> set[str] | None:
        """Which of `ids` the app's own corpus holds; None where that cannot be told."""
        found = await self.fetch(ids)
        return None if found is None else set(found)

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
            None where it cannot be told: no search was seen, one of the sources cannot be listed
            or does not list what it gave, or there are more than `limit`.
        """
        from misslink.capture.listing import all_listed

        if not self._every_source_known:
            return None
        pairs = [(source, self._seen[key].keys()) for key, source in self._sources.items()]
        return await all_listed(pairs, limit, self.id_key)

    async def vectors(self, limit: int) -> dict[str, Any]:
        """The vectors that the stores the app has searched keep, by the text they are of.

        Of stores that do not give them out, or hold more than `limit` passages, none.
        """
        from misslink.capture.listing import vectors_of

        return await vectors_of(self._sources.values(), limit)

    def embeddings(self) -> Any:
        """The embedding model of the vector stores that the app has searched.

        None where there is none, or several different ones.
        """
        from misslink.capture.listing import embeddings_of

        return embeddings_of(self._sources.values())

    async def _asked(self, question: str) -> _Outcome:
        began = time.perf_counter()
        try:
            came_back = await self._ask(question)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it is, it is the finding
            seconds = time.perf_counter() - began
            place = place_of(error)
            where = f"the app raised at {Path(place[0]).name}, line {place[1]}" if place else None
            return _Outcome(Returned(), seconds, error=_said(error), place=where)
        seconds = time.perf_counter() - began
        returned = read(came_back)
        return _Outcome(returned, seconds, error=returned.problem)

    def _trace(self, case: Case, recorder: Recorder, outcome: _Outcome) -> Trace:
        returned = outcome.returned
        lists = [
            (call, passages_from(call.documents, call.scores, id_key=self.id_key))
            for call in recorder.calls
        ]
        outermost = [passages for call, passages in lists if call.outer is None]
        if not outermost and returned.documents is not None:
            outermost = [passages_from(returned.documents, id_key=self.id_key)]
        retrieved, notes = merged(outermost)
        prompted = returned.prompted
        if prompted is None and recorder.models:
            found = reached(retrieved, recorder.models, returned.answer)
            prompted = found.whole
            notes += found.notes
        unseen = not outermost and bool(recorder.models or returned.answer is not None)
        if prompted is None and returned.answer is not None:
            notes.append(f"{_OTHER_MODEL if recorder.models else _NO_MODEL}, {_PROMPT_UNSEEN}")
        notes += [note for note in (self._without_key(recorder), outcome.place) if note]
        return Trace(
            case_id=case.id,
            retrieved=retrieved,
            prompted=prompted,
            answer=returned.answer,
            latency_s=outcome.seconds,
            usage=recorder.usage,
            error=outcome.error,
            unmeasured=_UNSEEN if unseen else None,
            calls=tuple(
                RetrieverCall(
                    query=valid_text(call.query),
                    passages=tuple(passage.id for passage in passages),
                    retriever=call.name,
                    nested=call.outer is not None,
                )
                for call, passages in lists
            ),
            notes=tuple(notes),
        )

    def _remember(self, case_id: str, recorder: Recorder) -> None:
        """Keep who was asked what, for `deepen` and `fetch`."""
        from misslink.capture.deeper import corpus_of

        self._calls[case_id] = [call for call in recorder.calls if call.outer is None]
        for call in recorder.calls:
            call.frame = None  # it holds the app's locals
            if not call.is_leaf:
                continue
            source = corpus_of(call)
            if source is None:
                self._every_source_known = False
                continue
            self._sources[id(source)] = source
            seen = self._seen.setdefault(id(source), {})
            passages = passages_from(call.documents, id_key=self.id_key)
            seen |= dict.fromkeys(passage.id for passage in passages)

    def _without_key(self, recorder: Recorder) -> str | None:
        if self.id_key is None:
            return None
        found = [document for call in recorder.calls for document in call.documents]
        without = sum(self.id_key not in (getattr(one, "metadata", None) or {}) for one in found)
        if not without:
            return None
        return f"{without} of {len(found)} documents have no metadata '{self.id_key}' (--id-key)"


def _said(error: BaseException) -> str:
    words = " ".join(valid_text(str(error)).split())
    if not words and error.__cause__ is not None:
        return _said(error.__cause__)
    return f"{type(error).__name__}: {words[:500]}" if words else type(error).__name__
