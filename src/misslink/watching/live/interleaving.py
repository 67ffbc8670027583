"""Two retrievers in one list, so that users choose between them without knowing it.

Team drafting: the retrievers take turns, in random order in each round, at putting their best
passage that is not in the list yet; whose passages are clicked, or used in the answer, wins the
query. Every user sees both, so it tells two retrievers apart with far fewer queries than a split.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig, ensure_config
from pydantic import PrivateAttr

from misslink.capture.passages import passage_from, passages_from
from misslink.errors import InputError
from misslink.generation.citations import cited_statements
from misslink.watching.live.assignment import Experiment
from misslink.watching.live.bounded import Bounded, HangsError
from misslink.watching.live.team_draft import team_draft
from misslink.watching.live.traffic import EXPOSURE_KEY, Request, Traffic, UnitOf
from misslink.watching.live.writer import LiveLog

__all__ = ["Interleaved"]

_ASKED: ContextVar[Mapping[str, Any] | None] = ContextVar("misslink_interleaved", default=None)
_Found = tuple[list[Any] | None, BaseException | None]
_NOT_ASKED: _Found = (None, None)


class Interleaved(BaseRetriever):
    """A retriever that answers with the passages of two, drawn by teams.

    Passages are copies whose metadata hold, under ``misslink_exposure``, the id by which clicks
    and uses are credited; whose team they are of only the log knows. Where one retriever raises,
    or the second takes too long, the other's list is served and the query is no comparison.

    Parameters
    ----------
    a, b : retriever or other Runnable
        Each gives documents for a question. `a` is the one in use so far.
    experiment : Experiment or str
        Its two variants are the names of `a` and `b`. A name: variants A and B. Units that it
        excludes are served `a` alone.
    k : int or None
        How many passages are served at most. None: as many as the longer list.
    seed : int
        The same seed, unit and question draw the same teams again.
    timeout_s : float or None
        Seconds that `b` may take.
    log, unit, salt, keep_texts, id_key
        See `misslink.watching.live.traffic.Traffic`. A query without a unit is interleaved too.

    Raises
    ------
    InputError
        The experiment does not have two variants, or the log cannot be used.
    """

    a: Any
    b: Any
    k: int | None = None
    seed: int = 0
    _traffic: Traffic = PrivateAttr()
    _bounded: Bounded = PrivateAttr()
    _names: tuple[str, str] = PrivateAttr()
    _id_key: str | None = PrivateAttr()

    def __init__(
        self,
        a: Any,
        b: Any,
        experiment: Experiment | str = "interleaving",
        *,
        k: int | None = None,
        seed: int = 0,
        timeout_s: float | None = 30.0,
        log: LiveLog | str | Path | None = None,
        unit: str | UnitOf = "user_id",
        salt: str | None = None,
        keep_texts: bool = False,
        id_key: str | None = None,
        **others: Any,
    ) -> None:
        if isinstance(experiment, str):
            experiment = Experiment(experiment, {"A": 0.5, "B": 0.5})
        if len(experiment.split) != 2 or experiment.shadow:  # noqa: PLR2004 - a and b
            raise InputError(f"'{experiment.name}' interleaves two variants, and no shadow")
        if k is not None and k < 1:
            raise InputError(f"k is {k}: at least one passage is served")
        super().__init__(a=a, b=b, k=k, seed=seed, **others)
        control = str(experiment.control)
        self._names = control, next(name for name in experiment.split if name != control)
        self._bounded = Bounded(timeout_s)
        self._id_key = id_key
        self._traffic = Traffic(
            experiment,
            log,
            unit=unit,
            salt=salt,
            keep_texts=keep_texts,
            id_key=id_key,
            cost=None,
            reformulation_min=None,
            needs_unit=False,
        )

    @property
    def troubles(self) -> dict[str, int]:
        """What went wrong out of sight, and how often."""
        return dict(self._traffic.troubles)

    def close(self) -> None:
        """Write the log; also done at the end of the program."""
        if self._traffic.log is not None:
            self._traffic.log.flush()

    def clicked(self, exposure: str, passage: str) -> None:
        """Credit the retriever whose passage was clicked.

        Parameters
        ----------
        exposure : str
            ``misslink_exposure`` in the metadata of the passage.
        passage : str
            Its id.
        """
        self._traffic.feedback("click", exposure=exposure, passage=passage)

    def used(
        self,
        documents: Sequence[Document],
        answer: str,
        *,
        prompted: Sequence[str] | None = None,
        by: Callable[[str, Sequence[Document]], Sequence[str]] | None = None,
    ) -> tuple[str, ...]:
        """Credit the retrievers whose passages went into an answer.

        Parameters
        ----------
        documents : sequence of Document
            As this retriever gave them, in the order in which the app numbered them.
        answer : str
        prompted : sequence of str or None
            Ids of the passages that reached the model: they count where the answer cites none.
        by : callable
            Says which ids were used. None: those that the answer cites (``[1]``, ``[doc-7]``).

        Returns
        -------
        tuple of str
            The ids that were credited; none where nothing is cited and nothing was given.
        """
        passages = passages_from(documents, id_key=self._id_key)
        exposure = next((e for d in documents if (e := d.metadata.get(EXPOSURE_KEY))), None)
        if exposure is None:
            return ()
        if by is not None:
            found = [str(one) for one in by(answer, documents)]
        else:
            found = [one for said in cited_statements(answer, passages) for one in said.cited]
            found = found or list(prompted or ())
        known = {passage.id for passage in passages}
        credited = tuple(one for one in dict.fromkeys(found) if one in known)
        for one in credited:
            self._traffic.feedback("use", exposure=exposure, passage=one)
        return credited

    # --- as LangChain asks it ---------------------------------------------------------------

    def invoke(
        self,
        input: str,  # noqa: A002 - LangChain's name
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Return the drawn list."""
        token = _ASKED.set(ensure_config(config))
        try:
            return super().invoke(input, config, **kwargs)
        finally:
            _ASKED.reset(token)

    async def ainvoke(
        self,
        input: str,  # noqa: A002 - LangChain's name
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Return the drawn list."""
        token = _ASKED.set(ensure_config(config))
        try:
            return await super().ainvoke(input, config, **kwargs)
        finally:
            _ASKED.reset(token)

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        request, config, asked = self._begun(query, run_manager)
        waits, found = [], [_NOT_ASKED, _NOT_ASKED]
        if asked[1]:  # under way while the first one searches
            try:
                waits.append(self._bounded.begin(lambda: self.b.invoke(query, config)))
            except (HangsError, RuntimeError) as error:  # no more threads can be had
                found[1] = (None, error)
        if asked[0]:
            found[0] = _caught(lambda: self.a.invoke(query, config))
        for wait in waits:
            found[1] = _caught(wait)
        return self._served(request, query, found)

    async def _aget_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        request, config, asked = self._begun(query, run_manager)

        async def first() -> _Found:
            return await _acaught(self.a.ainvoke(query, config)) if asked[0] else _NOT_ASKED

        async def second() -> _Found:
            if not asked[1]:
                return _NOT_ASKED
            return await _acaught(self._bounded.acall(lambda: self.b.ainvoke(query, config)))

        try:
            found = await asyncio.gather(first(), second())
        except asyncio.CancelledError:
            self._traffic.end(request, "left")
            raise
        return self._served(request, query, found)

    def _begun(self, query: str, run_manager: Any) -> tuple[Request, Any, tuple[bool, bool]]:
        """The request, the config of both retrievers, and which of them are asked."""
        request = self._traffic.begin(query, _ASKED.get() or {})
        config = {**request.config, "callbacks": run_manager.get_child()}
        for key in ("run_id", "run_name"):
            config.pop(key, None)
        if request.mode in ("override", "excluded"):
            return (
                request,
                config,
                (request.variant == self._names[0], request.variant == self._names[1]),
            )
        request.mode, request.variant = "interleaved", None
        return request, config, (True, True)

    def _served(self, request: Request, query: str, found: Sequence[_Found]) -> list[Document]:
        request.errors += [
            (name, error)
            for name, (_, error) in zip(self._names, found, strict=True)
            if error is not None
        ]
        given = [documents for documents, _ in found if documents is not None]
        if not given:
            self._traffic.end(request, "failed")
            raise request.errors[0][1]
        for name, error in request.errors:
            self._traffic.trouble(f"retriever '{name}' failed and the other answered", error)
        known: dict[str, Any] = {}
        rankings = []
        for documents in given:
            ids = [passage_from(document, id_key=self._id_key).id for document in documents]
            rankings.append(ids)
            known = {**dict(zip(reversed(ids), reversed(documents), strict=True)), **known}
        if len(rankings) == len(self._names):
            drawn = team_draft(rankings[0], rankings[1], self.k, self._chance(request, query))
            teams = [None if team is None else self._names[team] for _, team in drawn]
            ids = [one for one, _ in drawn]
        else:
            alone = self._names[0 if found[0][0] is not None else 1]
            ids, request.served = list(dict.fromkeys(rankings[0]))[: self.k], alone
            teams = [None] * len(ids)
        outcome = "fell_back" if request.errors else "ok"
        self._traffic.end(request, outcome, retrieved=tuple(ids), teams=tuple(teams))
        return [_marked(known[one], request.id) for one in ids]

    def _chance(self, request: Request, query: str) -> random.Random:
        text = json.dumps([self.seed, self._traffic.experiment.name, request.unit, query])
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest())
        return random.Random(seed)  # noqa: S311 - nothing secret


def _caught(work: Callable[[], Any]) -> _Found:
    try:
        return list(work()), None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the other retriever may answer
        return None, error


async def _acaught(work: Awaitable[Any]) -> _Found:
    try:
        return list(await work), None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the other retriever may answer
        return None, error


def _marked(document: Any, exposure: str) -> Any:
    """A copy that knows by what its clicks are credited."""
    if not isinstance(document, Document):
        return document
    return document.model_copy(update={"metadata": {**document.metadata, EXPOSURE_KEY: exposure}})
