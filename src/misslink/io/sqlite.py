"""Open SQLite files that several processes share: format check, waiting and errors."""

from __future__ import annotations

import contextlib
import logging
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from misslink.errors import InputError
from misslink.io.storage import require_local_path

_log = logging.getLogger(__name__)
_QUIET_WAIT_S = 2.0
_MAX_CHECKED_BYTES = 2**30  # an integrity check of this many bytes takes at most 0.6 s


class SqliteLockedError(InputError):
    """Another process holds the database."""


class _WaitingConnection(sqlite3.Connection):
    """A connection that says, once, for what it waits longer than a moment."""

    wait: tuple[str, float] | None = None  # the name of the file's kind, and seconds

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        try:
            return super().execute(sql, parameters)
        except sqlite3.OperationalError as error:
            if self.wait is None or not _is_locked(error):
                raise
        (name, wait_s), self.wait = self.wait, None
        _log.warning("another program is using the %s; waiting for it up to %g s", name, wait_s)
        super().execute(f"PRAGMA busy_timeout = {round(1000 * wait_s)}")
        return super().execute(sql, parameters)


@dataclass(frozen=True)
class SqliteFormat:
    """A kind of SQLite file, such as the response cache.

    Parameters
    ----------
    name : str
        What messages call it.
    hint : str
        What else the user can do, as the end of a message: ``choose another --cache``.
    application_id : int
        In the file's header; distinguishes this kind from every other database.
    version : int
        Of the tables; a file with another one is refused.
    schema : sequence of str
        ``CREATE ... IF NOT EXISTS`` statements, and what else is written on every opening.
    wait_s : float
        Seconds that a statement waits for another process; after the first two a warning says so.
    """

    name: str
    hint: str
    application_id: int
    version: int
    schema: Sequence[str]
    wait_s: float = 10.0

    def open(
        self, path: Path | None, *, must_exist: bool = False, wait_s: float | None = None
    ) -> sqlite3.Connection:
        """Open a file for writing, and create its tables.

        Parameters
        ----------
        path : Path or None
            Its folder is created too. None opens a database in memory.
        must_exist : bool
            Refuse to create a file.
        wait_s : float or None
            In place of the format's own.

        Raises
        ------
        SqliteLockedError
            Another process holds it.
        InputError
            It cannot be written, is of another kind, damaged, or from a newer misslink.
        """
        if path is not None:
            self._check_path(path, must_exist=must_exist)
        with self.errors(path):
            if path is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
            where = ":memory:" if path is None else str(path.absolute())
            with self._connection(where, wait_s) as file:
                self._check_format(file, path, may_be_new=True)
                # Only one of two processes that open a new file can switch it; that serves both.
                with contextlib.suppress(sqlite3.OperationalError):
                    file.execute("PRAGMA journal_mode = WAL")
                file.execute("PRAGMA synchronous = NORMAL")
                with transaction(file):
                    for statement in self.schema:
                        file.execute(statement)
                    file.execute(f"PRAGMA application_id = {self.application_id}")
                    file.execute(f"PRAGMA user_version = {self.version}")
                if path is not None and path.stat().st_size <= _MAX_CHECKED_BYTES:
                    (result,) = file.execute("PRAGMA quick_check(1)").fetchone()
                    if result != "ok":
                        raise sqlite3.DatabaseError(f"malformed: {result}")
                return file

    def open_read_only(
        self,
        path: Path,
        *,
        shown_path: object = None,
        hint: str | None = None,
        wait_s: float | None = None,
    ) -> sqlite3.Connection:
        """Open an existing file without changing it; another process may be writing to it.

        Parameters
        ----------
        path : Path
        shown_path : object
            In place of `path` in messages.
        hint : str or None
            In place of the format's own.
        wait_s : float or None
            In place of the format's own.

        Raises
        ------
        SqliteLockedError
            Another process holds it.
        InputError
            It is missing, of another kind, damaged, or from a newer misslink; or its folder is
            read-only and its newest rows are still in the write-ahead log.
        """
        self._check_path(path, must_exist=True)
        url, shown_path = path.absolute().as_uri(), shown_path or path

        def connect(mode: str) -> sqlite3.Connection:
            with self._connection(f"{url}?{mode}", wait_s) as file:
                self._check_format(file, shown_path, hint)
                return file

        with self.errors(shown_path, hint):
            try:
                file = connect("mode=rw")
            except sqlite3.OperationalError as error:
                # SQLite needs a lock file beside the database. On a read-only medium it has none,
                # and no other process can be writing there either.
                if "unable to open" not in str(error) and "readonly" not in str(error):
                    raise
                log = path.with_name(f"{path.name}-wal")
                if log.is_file() and log.stat().st_size:
                    raise InputError(
                        f"Its newest rows are in {log.name}, which can only be read in a writable "
                        f"folder. Copy both files to one, or {hint or self.hint}.",
                        path=shown_path,
                    ) from None
                file = connect("immutable=1")
            file.execute("PRAGMA query_only = 1")
            return file

    @contextlib.contextmanager
    def errors(self, path: object, hint: str | None = None) -> Iterator[None]:
        """Translate errors of SQLite and of the operating system.

        Parameters
        ----------
        path : object
            The file, for messages.
        hint : str or None
            In place of the format's own.

        Raises
        ------
        SqliteLockedError
            In place of "database is locked" or "busy".
        InputError
            In place of every other ``sqlite3.Error`` and ``OSError``.
        """
        try:
            yield
        except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
            reason = str(error)
            if _is_locked(error):
                raise SqliteLockedError(
                    f"Another program is using the {self.name}. Wait for it, or {hint or self.hint}.",
                    path=path,
                ) from None
            problems = {
                "not a database": f"This file is not a {self.name}. Move it away",
                "malformed": f"This {self.name} is damaged. Move it away",
                "decode": f"This {self.name} is damaged. Move it away",
                "no such": f"This {self.name} is damaged, a table is missing. Move it away",
                "readonly": f"The {self.name} is read-only. Make it writable",
                "unable to open": f"The {self.name} cannot be opened. Make it and its folder readable and "
                "writable",
                "full": f"The {self.name} cannot be written, the disk is full. Make room",
                "disk I/O": f"The {self.name} cannot be written, the disk may be full or failing. Make room",
            }
            problem = next((text for words, text in problems.items() if words in reason), None)
            if problem is None:
                detail = getattr(error, "strerror", None) or reason
                problem = (
                    f"The {self.name} cannot be used ({detail}). Check the file and its folder"
                )
            raise InputError(f"{problem}, or {hint or self.hint}.", path=path) from None

    def _check_path(self, path: Path, *, must_exist: bool) -> None:
        require_local_path(path)
        if path.is_dir():
            raise InputError(f"This is a folder. Name the file of the {self.name}.", path=path)
        if must_exist and not path.exists():
            raise InputError(f"There is no {self.name} here. {self.hint.capitalize()}.", path=path)

    @contextlib.contextmanager
    def _connection(self, where: str, wait_s: float | None) -> Iterator[sqlite3.Connection]:
        """A connection that is closed on an error."""
        wait_s = self.wait_s if wait_s is None else wait_s
        file = sqlite3.connect(
            where,
            timeout=min(wait_s, _QUIET_WAIT_S),
            isolation_level=None,
            # An event loop uses it, which may run in another thread than the opener (notebooks).
            check_same_thread=False,
            uri=where.startswith("file:"),
            factory=_WaitingConnection,
        )
        if wait_s > _QUIET_WAIT_S:
            file.wait = self.name, wait_s
        try:
            yield file
        except BaseException:
            file.close()
            raise

    def _check_format(
        self,
        file: sqlite3.Connection,
        path: object,
        hint: str | None = None,
        *,
        may_be_new: bool = False,
    ) -> None:
        hint = (hint or self.hint).capitalize()
        # Tables first: a process that is creating the file writes both in one transaction.
        (tables,) = file.execute("SELECT count(*) FROM sqlite_master").fetchone()
        (application_id,) = file.execute("PRAGMA application_id").fetchone()
        if application_id != self.application_id and (tables or not may_be_new):
            kind = "another program's database" if tables else f"an empty file, not a {self.name}"
            raise InputError(f"This is {kind}. {hint}.", path=path)
        (version,) = file.execute("PRAGMA user_version").fetchone()
        if version not in {0, self.version}:
            older, fix = "an older", f"{hint}."
            if version > self.version:
                older, fix = "a newer", f"Upgrade misslink, or {hint.lower()}."
            raise InputError(
                f"This {self.name} was written by {older} misslink (format {version}, the only one "
                f"supported is {self.version}). {fix}",
                path=path,
            )


@contextlib.contextmanager
def transaction(file: sqlite3.Connection) -> Iterator[None]:
    """Commit what is executed inside together, or nothing of it."""
    with file:
        file.execute("BEGIN IMMEDIATE")
        yield


def _is_locked(error: Exception) -> bool:
    return any(word in str(error) for word in ("locked", "busy"))
