"""What runs on a Ray worker, and the objects sent to and from it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import platform
import shutil
import socket
import tempfile
from collections.abc import Awaitable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from misslink import __version__
from misslink.capture import Watcher, load_app
from misslink.engines.protocol import AppSpec, capture_case
from misslink.engines.ray.code_bundle import CodeSource, unpack_code
from misslink.errors import InputError
from misslink.judge.config import JudgeConfig
from misslink.judge.middleware.cache import identity_json
from misslink.judge.protocol import Ask, Judge, Reply, judge_info
from misslink.judge.session import create_judge
from misslink.types import Case


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
    sent: int | None = None

    def result(self) -> Any:
        """Return the value of the call, or raise its error."""
        if self.raised is not None:
            raise self.raised.error()
        return self.value


def serializable_ask(ask: Ask) -> Ask:
    """Return the question with its messages rendered, and without its functions.

    Its key stays: rendered messages would have another one.
    """
    key = ask.key
    messages = tuple(dict(message) for message in ask.messages)
    sent = replace(ask, messages=messages, alone=None, rest=None)
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


SERVER_FACTS = "abilities", "context_length", "price"  # what a judge may detect about its server


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


class RayWorker:
    """One process of the cluster; `WorkerPool` starts it, and only the driver calls it.

    No method raises: errors are part of the `WorkerReply`, so that they arrive complete.
    """

    def __init__(self) -> None:
        self._judges: dict[str, Judge] = {}
        self._watchers: dict[str, tuple[Watcher, int]] = {}
        self._folder = Path.cwd()  # where paths start here
        self._own: Path | None = (
            None  # folder that was created here, and is removed with the worker
        )

    async def hello(self, settings: WorkerSettings) -> WorkerReply:
        """Take the driver's folder and keys; return the process and its machine."""
        if settings.version != __version__:
            problem = (
                f"the cluster's node {socket.gethostname()} has misslink {__version__} and this is "
                f"{settings.version}; install the same there"
            )
            return WorkerReply(raised=RaisedError.from_error(InputError(problem)))
        os.environ.update(settings.environment)
        if settings.shared:
            self._settle(Path(settings.folder))
        pool = ThreadPoolExecutor(max_workers=settings.threads)
        asyncio.get_running_loop().set_default_executor(pool)
        return WorkerReply({"pid": os.getpid(), "host": platform.node()})

    async def open_judge(
        self, key: str, sought: CodeSource, terms: JudgeConfig, identity: str
    ) -> WorkerReply:
        """Open a judge, and check that it equals the driver's."""

        async def open_once() -> None:
            if key in self._judges:
                return
            folder = self._unpacked(sought)
            with self._in(folder):
                judge = create_judge(_load_target(sought), terms)
            if identity_json(judge) != identity:
                raise InputError(
                    f"the judge {judge.name} on the cluster's node {socket.gethostname()} has another "
                    f"address, file or setting than here ({identity_json(judge)}, here {identity}); "
                    "make them the same"
                )
            if (prepare := judge_info(judge).prepare) is not None:
                await prepare()
            self._judges[key] = judge
            if folder is not None and not self._watchers:
                self._settle(folder)

        return await _reply_to(open_once())

    async def open_app(self, key: str, sought: CodeSource, spec: AppSpec) -> WorkerReply:
        """Load an app and watch it from here."""

        async def open_once() -> None:
            if key in self._watchers:
                return
            if (folder := self._unpacked(sought)) is not None:
                self._settle(folder)  # it may open files beside it
            named = _load_target(sought)
            app = load_app(named, self._folder) if isinstance(named, str) else named
            watcher = Watcher(
                app,
                id_key=spec.id_key,
                depth=spec.depth,
                input_key=spec.input_key,
                timeout=spec.timeout,
                settings=spec.settings,
            )
            self._watchers[key] = watcher, spec.k

        return await _reply_to(open_once())

    async def ask(self, key: str, ask: Ask, abilities: Mapping[str, Any]) -> WorkerReply:
        """Ask the judge once; it first learns what another worker's judge detected."""
        judge = self._judges[key]
        info = judge_info(judge)
        if abilities and info.learn is not None and not info.abilities:
            info.learn(abilities)
        return await _reply_to(judge.ask(ask), judge)

    async def reachable(self, key: str) -> WorkerReply:
        """Check whether the judge can be reached from here."""
        judge = self._judges[key]
        check = judge_info(judge).check_reachable
        return WorkerReply() if check is None else await _reply_to(check(), judge)

    async def observe(self, key: str, case: Case) -> WorkerReply:
        """Run the app for a case, and search deeper for missed passages."""
        watcher, k = self._watchers[key]
        return await _reply_to(capture_case(watcher, case, k))

    async def close_judge(self, key: str) -> WorkerReply:
        """Close a judge."""
        judge = self._judges.pop(key, None)
        return WorkerReply() if judge is None else await _reply_to(judge.close())

    async def leave(self) -> WorkerReply:
        """Remove the code that was unpacked here."""
        if self._own is not None:
            os.chdir(Path(self._own.anchor))
            await asyncio.to_thread(shutil.rmtree, self._own, ignore_errors=True)
        return WorkerReply()

    def _settle(self, folder: Path) -> None:
        """Work in a folder from now on."""
        os.chdir(folder)
        self._folder = folder

    def _unpacked(self, sought: CodeSource) -> Path | None:
        if sought.archive is None:
            return None
        self._own = self._own or Path(tempfile.mkdtemp(prefix="misslink-worker-"))
        return unpack_code(sought.archive, self._own)

    @contextlib.contextmanager
    def _in(self, folder: Path | None) -> Iterator[None]:
        """Work in a folder, if one is given, and return to the previous one."""
        if folder is None:
            yield
            return
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(self._folder)


def _load_target(sought: CodeSource) -> Any:
    """Return the import path of an app or a judge, or the object itself."""
    if sought.pickled is not None:
        return pickle.loads(sought.pickled)  # noqa: S301 (the driver's own)
    return sought.spec


async def _reply_to(call: Awaitable[Any], judge: Judge | None = None) -> WorkerReply:
    """Wait for a call, and return its result and what the judge has detected."""
    value, raised = None, None
    try:
        value = await call
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # noqa: BLE001 (whatever it is, it is the driver's to deal with)
        raised = RaisedError.from_error(error)
    if judge is None:
        return WorkerReply(value, raised)
    info = judge_info(judge)
    facts = {name: getattr(info, name) for name in SERVER_FACTS}
    return WorkerReply(value, raised, facts, info.requests_sent)
