"""Runs again and again in the foreground, until somebody interrupts them."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from misslink.errors import InputError

__all__ = ["only_one", "repeat", "seconds_of"]

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_INTERVAL = re.compile(r"(\d+(?:\.\d+)?)\s*([smhd])")


def seconds_of(interval: str) -> float:
    """An interval in seconds.

    Parameters
    ----------
    interval : str
        A number with s, m, h or d, at least one second.

    Raises
    ------
    InputError
        It is none.

    Examples
    --------
    >>> seconds_of("90s"), seconds_of("1.5h")
    (90.0, 5400.0)
    """
    found = _INTERVAL.fullmatch(interval.strip().lower())
    seconds = float(found[1]) * _SECONDS[found[2]] if found else 0.0
    if not 1 <= seconds < math.inf:
        raise InputError(f"'{interval}' is no interval; write for example  30m,  1h  or  1d")
    return seconds


def repeat(
    once: Callable[[], None],
    every_s: float,
    *,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
    announce: Callable[[float], None],
    times: int | None = None,
) -> None:
    """Run at once, and then at every whole interval from the first beginning.

    A run that takes longer than the interval is not made up for: the next one begins at the next
    whole interval.

    Parameters
    ----------
    once : callable
        One run; what it raises ends all of them.
    every_s : float
        Seconds from one beginning to the next, more than 0.
    clock, sleep : callable
        Unix seconds now; wait for so many seconds.
    announce : callable
        Told when the next run begins, in Unix seconds.
    times : int or None
        How many runs. None: without end.
    """
    began, done = clock(), 0
    while True:
        once()
        done += 1
        if times is not None and done >= times:
            return
        passed = math.floor(max(0.0, clock() - began) / every_s) + 1
        at = began + passed * every_s
        announce(at)
        while (left := at - clock()) > 0:  # a machine that slept wakes late, a clock is set
            sleep(min(left, every_s))


@contextmanager
def only_one(history: Path, name: str) -> Iterator[None]:
    """Hold a lock that ends with this process, however it ends.

    Parameters
    ----------
    history : Path
        Its folder is made, and the lock lies beside it.
    name : str
        Of the series that is watched.

    Raises
    ------
    InputError
        Somebody holds it: the same series is watched already.
    """
    which = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    path = history.with_name(f"{history.name}.{which}.watch")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+", encoding="utf-8")
    except OSError as problem:
        raise InputError(
            f"it cannot be written ({problem.strerror}); choose another --history", path=path
        ) from None
    with file:
        _lock(file, history, name)
        yield


def _lock(file: IO[str], history: Path, name: str) -> None:
    try:
        import fcntl
    except ImportError:  # pragma: no cover (Windows has no such lock)
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputError(
            f"'{name}' is watched by another process already; stop that one, or watch under "
            "another --name",
            path=history,
        ) from None
