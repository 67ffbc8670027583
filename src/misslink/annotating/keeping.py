"""One person's labels on disk: every one is there before anybody is told that it is."""

from __future__ import annotations

import contextlib
import os
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Self

from misslink.errors import InputError
from misslink.files.label_folder import journals
from misslink.files.label_journal import Entry, Item, composed, is_name, read_journal, standing
from misslink.files.labels import ADJUDICATED

__all__ = ["Keeper", "SameRun", "UnsavedError", "checked_name"]


_DEVICE = re.compile(r"con|prn|aux|nul|(?:com|lpt)[1-9]")


class UnsavedError(InputError):
    """A label could not be put on disk; the file is as it was before."""


def checked_name(name: str) -> str:
    """Return an annotator's name that may be a file's, in the one way of writing it.

    Raises
    ------
    InputError
        It may not, or it is kept for adjudication.
    """
    name = composed(name.strip(" "))
    if not is_name(name):
        raise InputError(
            "a name is 1 to 40 letters or digits of any script, hyphens, underscores, dots or "
            "single blanks; it begins with a letter, digit or underscore, and ends with no dot"
        )
    if _folded(name) == ADJUDICATED:
        raise InputError(f"the name '{ADJUDICATED}' is kept for --adjudicate; take another")
    if _DEVICE.fullmatch(_folded(name).partition(".")[0]):
        raise InputError(f"no file on Windows can be called '{name}'; take another name")
    return name


def _folded(name: str) -> str:
    """A name as a disk compares it that knows no capitals, and as people read it."""
    return composed(unicodedata.normalize("NFKC", name).casefold())


class SameRun:
    """Whether a folder still holds the run, or the pool, that it held when it was opened.

    Parameters
    ----------
    run : Path
    file : str
        Of the folder, which is another in another run.
    changed : str
        What is then told.
    """

    def __init__(
        self, run: Path, *, file: str = "manifest.json", changed: str = "the run was evaluated anew"
    ) -> None:
        self._manifest = run / file
        self._changed = changed
        self._before = self._manifest.read_bytes()

    def check(self) -> None:
        """Raise where it does not.

        Raises
        ------
        UnsavedError
            For a moment there is no run: one takes another's place.
        InputError
            It holds another.
        """
        try:
            now = self._manifest.read_bytes()
        except OSError:
            raise UnsavedError("it is not there now; try again", path=self._manifest) from None
        if now != self._before:
            raise InputError(
                f"{self._changed} since; end  misslink annotate  and start it again",
                path=self._manifest.parent,
            )


class Keeper:
    """The open file of one annotator; no second process may write it meanwhile.

    Parameters
    ----------
    folder : Path
        The run's folder of labels, made where it is missing.
    annotator : str
        As `checked_name` allows it, or 'adjudicated'.

    Raises
    ------
    InputError
        Another process has it open, a name differs from another's by capitals alone, a line of it
        is broken, or it cannot be written.
    """

    _half: int | None = None  # bytes of whole lines, where half a line stands behind them

    def __init__(self, folder: Path, annotator: str) -> None:
        self.path = folder / f"{annotator}.jsonl"
        self.annotator = annotator
        for other in journals(folder):
            if other != annotator and _folded(other) == _folded(annotator):
                raise InputError(
                    f"there are labels of '{other}' already; take that name, or another"
                )
        with _told(self.path):
            folder.mkdir(parents=True, exist_ok=True)
            self._file: IO[bytes] = self.path.open("ab", buffering=0)
        try:
            _lock(self._file, self.path)
            journal = read_journal(self.path)
            with _told(self.path):
                self.notes = self._mend(journal.whole, cut=journal.cut)
        except BaseException:
            self._file.close()
            raise
        self.entries = list(journal.entries)

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(self, *_: object) -> None:
        """Give the file free."""
        self.close()

    @property
    def labels(self) -> dict[Item, Entry]:
        """The label of each item that holds now, skipped ones among them."""
        return standing(self.entries)

    def keep(self, *entries: Entry) -> None:
        """Put entries on disk, all of them or none.

        Raises
        ------
        UnsavedError
            The disk is full or gone; nothing was kept.
        """
        size = self._half
        try:
            if size is not None:  # a line cannot follow half of one
                self._file.truncate(size)
            size = os.fstat(self._file.fileno()).st_size
            self._half = size
            self._write("".join(f"{entry.line()}\n" for entry in entries).encode())
        except OSError as problem:
            if size is not None:
                with contextlib.suppress(OSError):  # the next label or start cuts it where not now
                    self._file.truncate(size)
                    self._half = None
            raise UnsavedError(
                f"your label could not be saved ({problem.strerror}); make room and try again",
                path=self.path,
            ) from None
        self._half = None
        self.entries += entries

    def close(self) -> None:
        """Give the file free; one without a line is not left behind."""
        if not self._file.closed:
            if not self.entries and os.fstat(self._file.fileno()).st_size == 0:
                self.path.unlink(missing_ok=True)
            self._file.close()

    def _mend(self, whole: int, *, cut: bool) -> tuple[str, ...]:
        """Make the file end with a whole line."""
        if cut:
            self._file.truncate(whole)
            os.fsync(self._file.fileno())
            return ("the last label of an earlier session was cut off and is asked again",)
        if whole:
            with self.path.open("rb") as file:
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":
                    self._write(b"\n")
        return ()

    def _write(self, data: bytes) -> None:
        while data:  # a full disk takes a part, and refuses the rest
            data = data[self._file.write(data) :]
        os.fsync(self._file.fileno())


@contextlib.contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise InputError(
            f"labels cannot be written there ({problem.strerror}); mend that, or copy the run to "
            "a folder of your own",
            path=path,
        ) from None


def _lock(file: IO[bytes], path: Path) -> None:
    """Take the lock that ends with this process, however it ends."""
    try:
        import fcntl
    except ImportError:  # not on Windows: there, two processes are not told apart
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        free = os.fstat(file.fileno()).st_nlink > 0  # else taken away by who ended just now
    except BlockingIOError:
        free = False
    if not free:
        raise InputError(
            "another misslink annotate has this open; go on there, end it, or take another name",
            path=path,
        )
