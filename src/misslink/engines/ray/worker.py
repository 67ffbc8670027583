"""What runs on a worker: the judge and the app, opened there, and asked there."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import platform
import shutil
import socket
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from misslink import __version__
from misslink.capture import Watcher, load_app
from misslink.engines.observing import observe
from misslink.engines.protocol import Observed
from misslink.engines.ray.parcel import Parcel, unpacked
from misslink.engines.ray.wire import Answer, Raised
from misslink.errors import InputError
from misslink.judging.opening import bare_judge
from misslink.judging.protocol import Ask, Judge, innermost
from misslink.judging.terms import Terms
from misslink.judging.wrappers.ledger import identity_text
from misslink.types import Case

__all__ = ["FACTS", "Settings", "Sought", "Worker"]

FACTS = "abilities", "context_length", "price"  # what a judge may find out of its server


@dataclass(frozen=True)
class Settings:
    """What a worker starts with; it is sent to a method, so that no part of it is ever stored.

    Parameters
    ----------
    folder : str
        The driver's working folder.
    shared : bool
        Whether the whole cluster is the driver's machine, so that the folder is there.
    threads : int
        How many synchronous apps may run at once.
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
class Sought:
    """An app or a judge as a worker finds it.

    Parameters
    ----------
    spec : str or None
        Where it is imported from.
    content : bytes or None
        The pickled thing itself, where it was given as an object.
    parcel : Parcel or None
        Its code, for a worker that does not see the driver's folder.
    """

    spec: str | None
    content: bytes | None = field(default=None, repr=False)
    parcel: Parcel | None = field(default=None, repr=False)


class Worker:
    """One process of the cluster, asked by the driver alone; `Pool` starts it.

    Nothing is raised: what goes wrong is part of the `Answer`, so that it arrives whole.
    """

    def __init__(self) -> None:
        self._judges: dict[str, Judge] = {}
        self._watchers: dict[str, tuple[Watcher, int]] = {}
        self._folder = Path.cwd()  # where paths start here
        self._own: Path | None = None  # what was made here, and goes with the worker

    async def hello(self, settings: Settings) -> Answer:
        """Take the driver's folder and keys; say where this is."""
        if settings.version != __version__:
            problem = (
                f"the cluster's node {socket.gethostname()} has misslink {__version__} and this is "
                f"{settings.version}; install the same there"
            )
            return Answer(raised=Raised.of(InputError(problem)))
        os.environ.update(settings.environment)
        if settings.shared:
            self._settle(Path(settings.folder))
        pool = ThreadPoolExecutor(max_workers=settings.threads)
        asyncio.get_running_loop().set_default_executor(pool)
        return Answer({"pid": os.getpid(), "host": platform.node()})

    async def open_judge(self, key: str, sought: Sought, terms: Terms, identity: str) -> Answer:
        """Open a judge, and see that it is the one that the driver means."""

        async def opened() -> None:
            if key in self._judges:
                return
            folder = self._unpacked(sought)
            with self._in(folder):
                judge = bare_judge(_named(sought), terms)
            if identity_text(judge) != identity:
                raise InputError(
                    f"the judge {judge.name} is another one on the cluster's node "
                    f"{socket.gethostname()} than here, by its address, its file or its settings "
                    f"({identity_text(judge)}, here {identity}); make them the same"
                )
            if (ready := getattr(judge, "ready", None)) is not None:
                await ready()
            self._judges[key] = judge
            if folder is not None and not self._watchers:
                self._settle(folder)

        return await _answer(opened())

    async def open_app(self, key: str, sought: Sought, what: Observed) -> Answer:
        """Load an app and watch it from here."""

        async def opened() -> None:
            if key in self._watchers:
                return
            if (folder := self._unpacked(sought)) is not None:
                self._settle(folder)  # it may open files beside it
            named = _named(sought)
            app = load_app(named, self._folder) if isinstance(named, str) else named
            watcher = Watcher(app, id_key=what.id_key, depth=what.depth, input_key=what.input_key)
            self._watchers[key] = watcher, what.k

        return await _answer(opened())

    async def ask(self, key: str, ask: Ask, known: Mapping[str, Any]) -> Answer:
        """Put a question to the judge, once; it is told what another worker's found out."""
        judge = self._judges[key]
        inner = innermost(judge)
        if known and not getattr(inner, "abilities", True):
            inner.learn(known)  # type: ignore[attr-defined]
        return await _answer(judge.ask(ask), judge)

    async def reachable(self, key: str) -> Answer:
        """Find out whether the judge could be asked from here."""
        judge = self._judges[key]
        return await _answer(innermost(judge).reachable(), judge)  # type: ignore[attr-defined]

    async def observe(self, key: str, case: Case) -> Answer:
        """Run the app for a case, and ask its retriever deeper for what it missed."""
        watcher, k = self._watchers[key]
        return await _answer(observe(watcher, case, k))

    async def work(self, function: Callable[[Any], Any], block: Any) -> Answer:
        """Work on a block in a thread, so that the worker goes on listening."""
        return await _answer(asyncio.to_thread(function, block))

    async def close_judge(self, key: str) -> Answer:
        """Let go of a judge's connections and files."""
        judge = self._judges.pop(key, None)
        return Answer() if judge is None else await _answer(judge.close())

    async def leave(self) -> Answer:
        """Take away what was unpacked here."""
        if self._own is not None:
            os.chdir(Path(self._own.anchor))
            await asyncio.to_thread(shutil.rmtree, self._own, ignore_errors=True)
        return Answer()

    def _settle(self, folder: Path) -> None:
        """Work in a folder from now on."""
        os.chdir(folder)
        self._folder = folder

    def _unpacked(self, sought: Sought) -> Path | None:
        if sought.parcel is None:
            return None
        self._own = self._own or Path(tempfile.mkdtemp(prefix="misslink-worker-"))
        return unpacked(sought.parcel, self._own)

    @contextlib.contextmanager
    def _in(self, folder: Path | None) -> Iterator[None]:
        """Work in a folder, where one is given, and come back."""
        if folder is None:
            yield
            return
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(self._folder)


def _named(sought: Sought) -> Any:
    """Return what is opened: a name, or the thing that was given as an object."""
    if sought.content is not None:
        return pickle.loads(sought.content)  # noqa: S301 (the driver's own)
    return sought.spec if sought.parcel is None else sought.parcel.spec


async def _answer(call: Awaitable[Any], judge: Judge | None = None) -> Answer:
    """Wait for a call, and return how it ended and what the judge knows by now."""
    value, raised = None, None
    try:
        value = await call
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # noqa: BLE001 (whatever it is, it is the driver's to deal with)
        raised = Raised.of(error)
    if judge is None:
        return Answer(value, raised)
    inner = innermost(judge)
    facts = {name: getattr(inner, name) for name in FACTS if hasattr(inner, name)}
    return Answer(value, raised, facts, getattr(judge, "sent", None))
