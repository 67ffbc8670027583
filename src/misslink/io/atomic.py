"""Atomic writes and file locks: readers see the old file or the new one, never a part of it."""

from __future__ import annotations

import glob
import os
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING

from misslink.errors import InputError
from misslink.io.storage import require_local_path

if TYPE_CHECKING:
    from filelock import FileLock


def atomic_write(text: str, path: Path) -> Path:
    """Write a text as UTF-8 in place of `path`; see `atomic_path`."""
    with atomic_path(path) as part:
        part.write_bytes(text.encode())
    return path


def is_running(process: int) -> bool:
    """Whether a process of this machine runs, as far as that can be known."""
    if os.name != "posix":  # elsewhere a process cannot be probed without side effects
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a temporary path whose file replaces `path` when the block ends without an error.

    A device or a pipe, such as ``/dev/stdout``, is written to and stays what it is.

    Raises
    ------
    InputError
        The file cannot be written; an existing one is unchanged.
    """
    require_local_path(path)
    try:
        if path.is_dir():
            raise InputError("this is a folder; give another path", path=path)
        if _is_stream(path):
            with TemporaryDirectory() as folder, path.open("ab") as stream:
                part = Path(folder, "part")
                yield part
                stream.write(part.read_bytes())
            return
        part = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            for left in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
                process = left.name.split(".")[-2]
                if process.isdigit() and not is_running(int(process)):  # it was killed
                    left.unlink(missing_ok=True)
            part.unlink(missing_ok=True)  # a link that lies there must not be followed
            yield part
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"it cannot be written ({reason}); give another path", path=path) from None


def _is_stream(path: Path) -> bool:
    """Whether it is a device or a pipe, or a link of the system to one or to where it leads."""
    is_link = path.is_symlink() and path.parent == Path(os.devnull).parent
    return path.exists() and (is_link or not path.is_file())


@contextmanager
def folder_errors(folder: Path) -> Iterator[None]:
    """Raise InputError in place of OSError while a folder is written, such as on a full disk."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"this folder cannot be written ({error.strerror or error}); choose another --out",
            path=folder,
        ) from None


def finish_folder_swap(
    retired: Path, folder: Path, replaced: Collection[str], reserved: Collection[str]
) -> None:
    """End the replacement of a folder, also one that a killed process left half done.

    Parameters
    ----------
    retired : Path
        The former folder. It goes, but its files of other names than `replaced` return.
    folder : Path
        The new one; while it does not exist, the former is put back.
    replaced : collection of str
    reserved : collection of str
        Names that a returning file must not take; it is then called ``NAME.before``.
    """
    refuse_link(retired)
    if not retired.is_dir():
        return
    if not folder.exists():  # killed between the two renames
        retired.rename(folder)
        return
    for file in retired.iterdir():
        if file.name not in replaced:
            taken = file.name in reserved or (folder / file.name).exists()
            file.rename(folder / (f"{file.name}.before" if taken else file.name))
    shutil.rmtree(retired)


def refuse_link(folder: Path) -> None:
    """Raise InputError if a folder that misslink makes for itself is a link to another place."""
    if folder.is_symlink():
        raise InputError("this is a link where misslink needs a folder; remove it", path=folder)


def lock_open_file(file: IO[bytes], path: Path, problem: str) -> None:
    """Lock a file itself until it is closed; the lock follows it where the file is moved.

    On Windows nothing is locked.

    Raises
    ------
    InputError
        Another process holds it, or has just removed it; `file` is closed.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        free = os.fstat(file.fileno()).st_nlink > 0
    except BlockingIOError:
        free = False
    if not free:
        file.close()
        raise InputError(problem, path=path)


def lock_file(path: Path, problem: str, *, shown_path: object = None) -> FileLock:
    """Acquire a lock that ends with this process at the latest, without waiting.

    Parameters
    ----------
    path : Path
        A file for the lock alone, in an existing folder. It stays after the release.
    problem : str
        The error if another process holds the lock.
    shown_path : object
        In place of `path` in that error.

    Returns
    -------
    FileLock
        Acquired; ``release()`` it, or use it as a context manager after ``release()``.

    Raises
    ------
    InputError
        Another process holds it.
    OSError
        The file cannot be created.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(path, timeout=0, thread_local=False)
    try:
        lock.acquire()
    except Timeout:
        raise InputError(problem, path=shown_path or path) from None
    return lock


def check_disk_space(path: Path, needed: int) -> None:
    """Allocate the bytes that will be needed and free them, so that a full disk shows at once."""
    try:
        with path.open("wb") as file:
            file.write(b"\0")
            file.flush()
            if needed and hasattr(os, "posix_fallocate"):  # not on Windows
                os.posix_fallocate(file.fileno(), 0, needed)
    finally:
        path.unlink(missing_ok=True)
