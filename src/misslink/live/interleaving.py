"""Interleave two retrievers in one list, and record which one users prefer."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig, ensure_config
from pydantic import PrivateAttr

from misslink.capture.passages import passage_from, passages_from
from misslink.errors import InputError
from misslink.live.assignment import Experiment
from misslink.live.log import LiveData
from misslink.live.log_store import LiveLog
from misslink.live.requests import DEFAULT_REQUESTS, EXPOSURE_KEY, Request, RequestOptions, Traffic
from misslink.metrics.citation_correctness import find_cited_statements
from misslink.stats.experiments import AllocationStratum, sample_ratio_test
from misslink.stats.intervals import proportion
from misslink.timeouts import HangsError, TimeoutRunner
from misslink.types import Estimate

_CREDITS = ("click", "use")  # kinds of feedback that give credit to their passage


def team_draft(
    first: Sequence[str], second: Sequence[str], k: int | None, chance: random.Random
) -> list[tuple[str, int | None]]:
    """Merge two rankings into one list; each id has the ranking that gets credit (0, 1, None).

    >>> team_draft(["x", "y"], ["x", "z"], 2, random.Random(0))
    [('x', 1), ('y', 0)]
    """
    # Algorithm 2 of Radlinski, Kurup, Joachims (2008), How does clickthrough data reflect retrieval
    # quality? But credit is given in whole rounds: where a ranking may run out within a round, it
    # would have one passage more than the other, and random clicks would favor it.
    rankings = [list(dict.fromkeys(first)), list(dict.fromkeys(second))]
    length = max(map(len, rankings)) if k is None else k
    drawn: dict[str, int | None] = {}
    while len(drawn) < length:
        left = [[name for name in ranking if name not in drawn] for ranking in rankings]
        least = min(map(len, left))
        if least == 0 or (least == 1 and left[0][0] == left[1][0]):
            undrawn = [name for ranking in left for name in ranking]
            drawn |= dict.fromkeys(list(dict.fromkeys(undrawn))[: length - len(drawn)])
            break
        coin = chance.randrange(2)
        for team in (coin, 1 - coin):
            if len(drawn) < length:
                drawn[next(name for name in left[team] if name not in drawn)] = team
    return list(drawn.items())


@dataclass(frozen=True, slots=True)
class Preference:
    """The winner of one interleaved query and the number of credited passages per variant."""

    exposure: str
    unit: str | None
    winner: str | None  # None: a tie, or no credit
    credit: Mapping[str, int]


def preferences(live: LiveData) -> list[Preference]:
    """Return the outcome of every interleaved query of an experiment.

    Parameters
    ----------
    live : Live

    Returns
    -------
    list of Preference
        In the order of the log. Queries in which one retriever failed are left out; those without
        any credit are there, with no winner and credits of 0.
    """
    credited: dict[str, set[str]] = {}
    for feedback in live.feedback:
        if feedback.exposure and feedback.passage and feedback.kind in _CREDITS and feedback.value:
            credited.setdefault(feedback.exposure, set()).add(feedback.passage)
    names = [variant.name for variant in live.variants]
    outcomes = []
    for exposure in live.exposures:
        if exposure.mode != "interleaved" or exposure.teams is None or exposure.outcome != "ok":
            continue
        chosen = credited.get(exposure.id, set())
        pairs = list(zip(exposure.retrieved or (), exposure.teams, strict=False))
        credit = {
            name: sum(team == name and passage in chosen for passage, team in pairs)
            for name in names
        }
        most = max(credit.values(), default=0)
        best = [name for name in names if credit[name] == most]
        winner = best[0] if len(best) == 1 else None
        outcomes.append(Preference(exposure.id, exposure.unit, winner, credit))
    return outcomes


def interleaving_results(live: LiveData, *, alpha: float = 0.05) -> dict[str, Any] | None:
    """Return which interleaved retriever users preferred, or None without interleaved requests."""
    interleaved = sum(exposure.mode == "interleaved" for exposure in live.exposures)
    if not interleaved:
        return None
    outcomes = preferences(live)
    names = [variant.name for variant in live.variants][:2]
    by_unit: dict[str, list[Preference]] = defaultdict(list)
    for outcome in outcomes:  # a query without a known unit counts as its own unit
        by_unit[outcome.unit or f"query {outcome.exposure}"].append(outcome)
    queries = _count_preferences([[outcome] for outcome in outcomes], names, alpha)
    return {
        "variants": names,
        "shown": interleaved,
        "left_out": interleaved - len(outcomes),
        "without_credit": queries["without_credit"],
        "queries": queries,
        "units": _count_preferences(list(by_unit.values()), names, alpha),
    }


def _count_preferences(
    groups: Sequence[Sequence[Preference]], names: Sequence[str], alpha: float
) -> dict[str, object]:
    """Which variant the majority of each group prefers."""
    wins = dict.fromkeys(names, 0)
    for group in groups:
        counts = Counter(preference.winner for preference in group if preference.winner is not None)
        ordered = counts.most_common(2)
        if ordered and (len(ordered) == 1 or ordered[0][1] > ordered[1][1]):
            wins[ordered[0][0]] += 1
    total = sum(wins.values())
    share = Estimate.missing("no user preferred either", n=0, method="wilson")
    if total:
        share = proportion(wins[names[1]], total, level=1 - alpha)
    ratio = sample_ratio_test([AllocationStratum(dict.fromkeys(names, 0.5), wins)])
    silent = sum(not any(any(each.credit.values()) for each in group) for group in groups)
    return {
        "wins": wins,
        "ties": len(groups) - total - silent,
        "without_credit": silent,
        "share": share.model_dump(),
        "p": ratio.p,
        "p_sequential": ratio.p_sequential,
    }


_SearchResult = tuple[list[Any] | None, BaseException | None]
_NO_SEARCH: _SearchResult = (None, None)


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
    log : LiveLog, str, Path or None
        Where to store queries and clicks. None: no log.
    requests : RequestOptions
        How queries are identified and what is logged of them. A query without a unit is
        interleaved too.

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
    _bounded: TimeoutRunner = PrivateAttr()
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
        requests: RequestOptions = DEFAULT_REQUESTS,
        **others: Any,
    ) -> None:
        if isinstance(experiment, str):
            experiment = Experiment(experiment, {"A": 0.5, "B": 0.5})
        if len(experiment.split) != 2 or experiment.shadow:
            raise InputError(f"'{experiment.name}' must have two variants, and no shadow")
        if k is not None and k < 1:
            raise InputError(f"k is {k}; it must be at least 1")
        super().__init__(a=a, b=b, k=k, seed=seed, **others)
        control = str(experiment.control)
        self._names = control, next(name for name in experiment.split if name != control)
        self._bounded = TimeoutRunner(timeout_s)
        self._id_key = requests.id_key
        self._traffic = Traffic(experiment, log, requests, needs_unit=False)

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
            credited_ids = [str(passage_id) for passage_id in by(answer, documents)]
        else:
            credited_ids = [
                passage_id
                for statement in find_cited_statements(answer, passages)
                for passage_id in statement.cited
            ]
            credited_ids = credited_ids or list(prompted or ())
        shown_ids = {passage.id for passage in passages}
        credited = tuple(
            passage_id for passage_id in dict.fromkeys(credited_ids) if passage_id in shown_ids
        )
        for passage_id in credited:
            self._traffic.feedback("use", exposure=exposure, passage=passage_id)
        return credited

    # --- as LangChain asks it ---------------------------------------------------------------

    def invoke(
        self,
        input: str,  # noqa: A002 - LangChain's name
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Return the drawn list."""
        return super().invoke(input, config, served_for=ensure_config(config), **kwargs)

    async def ainvoke(
        self,
        input: str,  # noqa: A002 - LangChain's name
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Return the drawn list."""
        return await super().ainvoke(input, config, served_for=ensure_config(config), **kwargs)

    def _get_relevant_documents(
        self, query: str, *, run_manager: Any, served_for: Mapping[str, Any] | None = None
    ) -> list[Document]:
        request, config, answers = self._begun(query, run_manager, served_for)
        waits, results = [], [_NO_SEARCH, _NO_SEARCH]
        if answers[1]:  # under way while the first one searches
            try:
                waits.append(self._bounded.begin(lambda: self.b.invoke(query, config)))
            except (HangsError, RuntimeError) as error:  # no more threads can be had
                results[1] = (None, error)
        if answers[0]:
            results[0] = _search_safely(lambda: self.a.invoke(query, config))
        for wait in waits:
            results[1] = _search_safely(wait)
        return self._served(request, query, results)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: Any, served_for: Mapping[str, Any] | None = None
    ) -> list[Document]:
        request, config, answers = self._begun(query, run_manager, served_for)

        async def first() -> _SearchResult:
            return (
                await _asearch_safely(self.a.ainvoke(query, config)) if answers[0] else _NO_SEARCH
            )

        async def second() -> _SearchResult:
            if not answers[1]:
                return _NO_SEARCH
            return await _asearch_safely(self._bounded.acall(lambda: self.b.ainvoke(query, config)))

        try:
            results = await asyncio.gather(first(), second())
        except asyncio.CancelledError:
            self._traffic.end(request, "left")
            raise
        return self._served(request, query, results)

    def _begun(
        self, query: str, run_manager: Any, served_for: Mapping[str, Any] | None
    ) -> tuple[Request, Any, tuple[bool, bool]]:
        """Return the request, the retrievers' config, and whether to query each retriever."""
        request = self._traffic.begin(query, served_for or {})
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

    def _served(
        self, request: Request, query: str, results: Sequence[_SearchResult]
    ) -> list[Document]:
        request.errors += [
            (name, error)
            for name, (_, error) in zip(self._names, results, strict=True)
            if error is not None
        ]
        given = [documents for documents, _ in results if documents is not None]
        if not given:
            self._traffic.end(request, "failed")
            raise request.errors[0][1]
        for name, error in request.errors:
            self._traffic.trouble(f"retriever '{name}' failed and the other answered", error)
        documents_by_id: dict[str, Any] = {}
        rankings = []
        for documents in given:
            ids = [passage_from(document, id_key=self._id_key).id for document in documents]
            rankings.append(ids)
            documents_by_id = {
                **dict(zip(reversed(ids), reversed(documents), strict=True)),
                **documents_by_id,
            }
        if len(rankings) == len(self._names):
            drawn = team_draft(rankings[0], rankings[1], self.k, self._chance(request, query))
            teams = [None if team is None else self._names[team] for _, team in drawn]
            ids = [passage_id for passage_id, _ in drawn]
        else:
            alone = self._names[0 if results[0][0] is not None else 1]
            ids, request.served = list(dict.fromkeys(rankings[0]))[: self.k], alone
            teams = [None] * len(ids)
        outcome = "fell_back" if request.errors else "ok"
        self._traffic.end(request, outcome, retrieved=tuple(ids), teams=tuple(teams))
        return [_with_exposure(documents_by_id[passage_id], request.id) for passage_id in ids]

    def _chance(self, request: Request, query: str) -> random.Random:
        text = json.dumps([self.seed, self._traffic.experiment.name, request.unit, query])
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest())
        return random.Random(seed)  # noqa: S311 - nothing secret


def _search_safely(work: Callable[[], Any]) -> _SearchResult:
    try:
        return list(work()), None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the other retriever may answer
        return None, error


async def _asearch_safely(work: Awaitable[Any]) -> _SearchResult:
    try:
        return list(await work), None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the other retriever may answer
        return None, error


def _with_exposure(document: Any, exposure: str) -> Any:
    """A copy that knows by what its clicks are credited."""
    if not isinstance(document, Document):
        return document
    return document.model_copy(update={"metadata": {**document.metadata, EXPOSURE_KEY: exposure}})
