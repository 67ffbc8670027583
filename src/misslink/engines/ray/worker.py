"""What runs on a Ray worker, and the objects sent to and from it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import shutil
import socket
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from misslink import __version__
from misslink.capture import Watcher, load_app
from misslink.engines.protocol import AppSpec, capture_case
from misslink.engines.ray.cluster import import_ray
from misslink.engines.ray.code_bundle import CodeSource, unpack_code
from misslink.engines.shard import RunFacts, Shard, Turns, evaluate_shard
from misslink.errors import InputError
from misslink.judge.config import JudgeConfig
from misslink.judge.middleware.cache import identity_json
from misslink.judge.protocol import Ask, Judge, Reply, judge_info
from misslink.judge.session import create_judge
from misslink.linking.miss_measurement import MissMeasurements
from misslink.parts import lines_of
from misslink.types import Case, Passage, Trace, Verdict


@dataclass(frozen=True)
class RaisedError:
    """An exception, taken apart: pickle would call its class with ``args`` alone, and fail.

    Parameters
    ----------
    kind : type
    args : tuple
    state : mapping
        Its attributes.
    """

    kind: type[BaseException]
    args: tuple[Any, ...]
    state: Mapping[str, Any]

    @classmethod
    def from_error(cls, error: BaseException) -> RaisedError:
        """Take `error` apart; one that cannot be pickled becomes a RuntimeError with its text."""
        error_parts = cls(type(error), error.args, dict(vars(error)))
        try:
            pickle.dumps(error_parts)
        except Exception:  # noqa: BLE001 (an exception of somebody's own may hold anything)
            return cls(RuntimeError, (f"{type(error).__name__}: {error}",), {})
        return error_parts

    def error(self) -> BaseException:
        """Put it together again."""
        error = self.kind.__new__(self.kind)
        error.args = self.args
        vars(error).update(self.state)
        return error


@dataclass(frozen=True)
class WorkerReply:
    """How a call on a worker ended: its value, or the error that it raised.

    `facts` is what the judge has detected about its server so far.
    """

    value: Any = None
    raised: RaisedError | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    def result(self) -> Any:
        """Return the value of the call, or raise its error."""
        if self.raised is not None:
            raise self.raised.error()
        return self.value


def serializable_ask(ask: Ask, *, whole: bool = False) -> Ask:
    """Return the question with its messages rendered; with its functions only where it is `whole`.

    Its key stays: rendered messages would have another one.
    """
    key = ask.key
    messages = tuple(dict(message) for message in ask.messages)
    sent = replace(ask, messages=messages)
    if not whole:
        sent = replace(sent, rest=None)
    vars(sent)["key"] = key  # where a cached property keeps its value
    return sent


def restore_reply(reply: Reply, ask: Ask) -> Reply:
    """Return the reply with an instance of this process's schema.

    A schema that the workers cannot import is sent by value, and comes back as a different class.
    """
    parsed = reply.parsed
    if parsed is None or isinstance(parsed, ask.schema):
        return reply
    if type(parsed).__qualname__ != ask.schema.__qualname__:
        return reply
    return replace(reply, parsed=ask.schema.model_validate(parsed.model_dump()))


# What a judge may detect about its server, and how much it sent there.
SERVER_FACTS = "abilities", "context_length", "price", "requests_sent"


@dataclass(frozen=True)
class WorkerSettings:
    """Settings of a new worker; sent to a method, so that Ray stores no part of them.

    Parameters
    ----------
    folder : str
        The driver's working folder.
    shared : bool
        Whether the whole cluster is the driver's machine, so that the folder is there.
    threads : int
        Number of synchronous apps that run at once.
    environment : mapping
        Keys and addresses of judges, by the names of their variables.
    version : str
        Of misslink.
    """

    folder: str
    shared: bool
    threads: int
    environment: Mapping[str, str] = field(repr=False)
    version: str = __version__


@dataclass(frozen=True)
class Opening:
    """An app or a judge that workers open under `key`.

    Parameters
    ----------
    key : str
    code : CodeSource
        Without its archive.
    archive : tuple of ray.ObjectRef
        The archive, which a worker fetches once; empty where it sees the driver's folder.
    """

    key: str
    code: CodeSource
    archive: tuple[Any, ...]

    def target(self) -> Any:
        """The import path of the app or the judge, or the object itself."""
        if self.code.pickled is not None:
            return pickle.loads(self.code.pickled)  # noqa: S301 (the driver's own)
        return self.code.spec

    async def open(self, worker: RayWorker) -> Any:
        """Open it on a worker."""
        raise NotImplementedError


@dataclass(frozen=True)
class JudgeOpening(Opening):
    """A judge, its settings, and what it must be equal to."""

    terms: JudgeConfig
    identity: str

    async def open(self, worker: RayWorker) -> Judge:
        """Open it, and check that it equals the driver's."""
        folder = await worker.unpacked(self)
        if folder is not None and not worker.has_app:
            worker.settle(folder)
        with contextlib.chdir(folder or worker.folder):
            judge = create_judge(self.target(), self.terms)
        if (found := identity_json(judge)) != self.identity:
            raise InputError(
                f"the judge {judge.name} on the cluster's node {socket.gethostname()} has another "
                f"address, file or setting than here ({found}, here {self.identity}); "
                "make them the same"
            )
        if (prepare := judge_info(judge).prepare) is not None:
            await prepare()
        return judge


@dataclass(frozen=True)
class AppOpening(Opening):
    """An app, and how it is watched."""

    watched: AppSpec

    async def open(self, worker: RayWorker) -> Watcher:
        """Load it, and watch it from here."""
        worker.has_app = True
        if (folder := await worker.unpacked(self)) is not None:
            worker.settle(folder)  # it may open files beside it
        app = self.target()
        app = load_app(app, worker.folder) if isinstance(app, str) else app
        return Watcher(app, **self.watched.options)


class RemoteWatcher(NamedTuple):
    """The worker that ran the app for a case, and so can ask its retrievers deeper."""

    actor: Any
    settings: Any
    opening: Any

    async def deepen(self, case: Case, trace: Trace) -> Trace:
        """As `Watcher.deepen`; the trace as it is where the worker is gone."""
        ray = import_ray()
        try:
            reply = await self.actor.call.remote(self.settings, "deepen", self.opening, case, trace)
        except ray.exceptions.RayError:
            return trace
        deeper: Trace = reply.result()
        return deeper


@dataclass(frozen=True)
class SentShard:
    """A shard as text, what of the run's measurements it needs, and how its judge is reached.

    ``deeper`` has by case the trace that the driver asked deeper for, or who can do it.
    """

    texts: Sequence[Sequence[bytes]]  # of its cases, traces and verdicts
    measured: MissMeasurements | None
    judge: Callable[[], Any] | None  # opens it
    deeper: Mapping[str, Trace | RemoteWatcher]

    async def deepen(self, case: Case, trace: Trace, _wanted: Callable[[Passage], bool]) -> Trace:
        """As `Watcher.deepen`, wherever the app ran for this case."""
        found = self.deeper[case.id]
        return found if isinstance(found, Trace) else await found.deepen(case, trace)

    async def evaluate(self, facts: RunFacts) -> tuple[list[bytes], int, int]:
        """The text of what is made of it; calls of a judge opened here, and replies from its cache."""
        if facts.measured is not None and self.measured is not None:
            measured = replace(
                self.measured,
                pool=facts.measured.pool,
                nearest=facts.measured.nearest,
                deepen=self.deepen if self.deeper else None,
            )
            facts = replace(facts, measured=measured)
        cases, traces, verdicts = self.texts
        shard = Shard(
            tuple(map(Case.model_validate_json, cases)),
            tuple(map(Trace.model_validate_json, traces)),
            tuple(map(Verdict.model_validate_json, verdicts)),
        )
        judge = self.judge() if self.judge else None
        try:
            made = await evaluate_shard(shard, facts, judge, Turns(len(shard.cases)))
            cache = getattr(judge, "cache", None)
            return list(lines_of(made)), *((cache.calls, cache.from_cache) if cache else (0, 0))
        finally:
            if judge is not None:
                await judge.close()


class RayWorker:
    """One process of the cluster; Ray starts it again where it dies."""

    def __init__(self) -> None:
        self.folder = Path.cwd()  # where paths start here
        self.has_app = self._is_settled = False
        self._opened: dict[str, asyncio.Task[Any]] = {}
        self._facts: tuple[Any, RunFacts] | None = None
        self._own: Path | None = (
            None  # folder that was created here, and is removed with the worker
        )

    async def call(self, settings: WorkerSettings, method: str, *arguments: Any) -> WorkerReply:
        """Call a method; an error is part of the reply, so that it arrives complete.

        The settings come with each call: a process that was started again lacks them.
        """

        async def called() -> Any:
            self._settle_once(settings)
            return await getattr(self, method)(*arguments)

        return await _reply_to(called())

    async def open(self, openings: Sequence[Opening]) -> None:
        """Open apps and judges."""
        for opening in openings:
            await self._get(opening)

    async def ask(
        self, opening: JudgeOpening, ask: Ask, abilities: Mapping[str, Any]
    ) -> WorkerReply:
        """Ask the judge once; it first learns what another worker's judge detected."""
        judge = await self._get(opening)
        info = judge_info(judge)
        if abilities and info.learn is not None and not info.abilities:
            info.learn(abilities)
        return await _reply_to(judge.ask(ask), judge)

    async def reachable(self, opening: JudgeOpening) -> WorkerReply:
        """Check whether the judge can be reached from here."""
        judge = await self._get(opening)
        check = judge_info(judge).check_reachable
        return WorkerReply() if check is None else await _reply_to(check(), judge)

    async def observe(self, opening: AppOpening, case: Case) -> Trace:
        """Run the app for a case, and search deeper for missed passages."""
        return await capture_case(await self._get(opening), case, opening.watched.k)

    async def deepen(self, opening: AppOpening, case: Case, trace: Trace) -> Trace:
        """Ask the retrievers of a case that ran here deeper."""
        watcher: Watcher = await self._get(opening)
        return await watcher.deepen(case, trace, lambda _: True)

    async def evaluate(self, sent: SentShard, known: Sequence[Any]) -> tuple[list[bytes], int, int]:
        """Judge or link a shard; `known` is where the facts of its run are."""
        (place,) = known
        if self._facts is None or self._facts[0] != place:
            self._facts = place, await place
        return await sent.evaluate(self._facts[1])

    async def leave(self) -> None:
        """Remove the code that was unpacked here."""
        if self._own is not None:
            os.chdir(Path(self._own.anchor))
            await asyncio.to_thread(shutil.rmtree, self._own, ignore_errors=True)

    async def _get(self, opening: Opening) -> Any:
        """What was opened, once."""
        if opening.key not in self._opened:
            self._opened[opening.key] = asyncio.create_task(opening.open(self))
        return await asyncio.shield(self._opened[opening.key])

    def _settle_once(self, settings: WorkerSettings) -> None:
        """Take the driver's folder and keys."""
        if self._is_settled:
            return
        if settings.version != __version__:
            raise InputError(
                f"the cluster's node {socket.gethostname()} has misslink {__version__} and this is "
                f"{settings.version}; install the same there"
            )
        os.environ.update(settings.environment)
        if settings.shared:
            self.settle(Path(settings.folder))
        pool = ThreadPoolExecutor(max_workers=settings.threads)
        asyncio.get_running_loop().set_default_executor(pool)
        self._is_settled = True

    def settle(self, folder: Path) -> None:
        """Work in a folder from now on."""
        os.chdir(folder)
        self.folder = folder

    async def unpacked(self, opening: Opening) -> Path | None:
        """Unpack its code, if it came."""
        if not opening.archive:
            return None
        self._own = self._own or Path(tempfile.mkdtemp(prefix="misslink-worker-"))
        return unpack_code(await opening.archive[0], self._own)


async def _reply_to(call: Awaitable[Any], judge: Judge | None = None) -> WorkerReply:
    """Wait for a call, and return its result and what the judge has detected."""
    value, raised = None, None
    try:
        value = await call
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # noqa: BLE001 (whatever it is, it is the driver's to deal with)
        raised = RaisedError.from_error(error)
    if isinstance(value, WorkerReply):
        return value
    if judge is None:
        return WorkerReply(value, raised)
    info = judge_info(judge)
    facts = {name: getattr(info, name) for name in SERVER_FACTS}
    return WorkerReply(value, raised, facts)
