"""Shadows run out of the way, in bounds, and tell what came of them."""

import asyncio
import threading
from contextvars import ContextVar

import pytest

from misslink.errors import InputError
from misslink.live.router import ShadowOptions, ShadowPool

SEEN = ContextVar("seen", default="nothing")


class Told:
    """What was told, and a moment to wait for."""

    def __init__(self, expected):
        self.outcomes = []
        self._left = threading.Semaphore(0)
        self._expected = expected

    def __call__(self, value, error, seconds):
        self.outcomes.append((value, error, seconds))
        self._left.release()

    def wait(self):
        for _ in range(self._expected):
            assert self._left.acquire(timeout=30)
        return self.outcomes


def test_work_is_done_without_the_requests_context_and_told_with_its_time():
    told = Told(1)
    token = SEEN.set("the request's")
    assert ShadowPool().submit(SEEN.get, told)
    SEEN.reset(token)
    ((value, error, seconds),) = told.wait()
    assert (value, error) == ("nothing", None)
    assert seconds > 0


def test_not_more_run_at_once_than_allowed():
    shadows, told = ShadowPool(ShadowOptions(concurrency=3, waiting=50)), Told(30)
    lock, running, most = threading.Lock(), [0], [0]

    def work():
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        threading.Event().wait(0.001)
        with lock:
            running[0] -= 1

    assert all(shadows.submit(work, told) for _ in range(30))
    told.wait()
    assert 1 <= most[0] <= 3


@pytest.mark.slow
def test_what_fails_hangs_or_cannot_be_told_holds_nothing_up(caplog):
    shadows, told = ShadowPool(ShadowOptions(concurrency=1, timeout_s=1)), Told(3)
    let_go = threading.Event()

    def cannot_be_told(*_):
        raise OSError

    shadows.submit(lambda: 1 / 0, told)
    shadows.submit(lambda: let_go.wait(30), told)
    shadows.submit(lambda: 1, cannot_be_told)
    shadows.submit(lambda: 7, told)
    (_, failed, _), (_, hung, _), (value, error, _) = told.wait()
    assert isinstance(failed, ZeroDivisionError)
    assert type(hung).__name__ == "TookTooLongError"
    assert (value, error) == (7, None)
    assert shadows.hung == 1
    assert "could not be logged" in caplog.text
    let_go.set()


def test_closing_tells_of_those_that_still_run_and_of_those_that_never_ran():
    shadows, let_go, begun = (
        ShadowPool(ShadowOptions(concurrency=1)),
        threading.Event(),
        threading.Event(),
    )
    running, waiting = Told(1), Told(2)

    def work():
        begun.set()
        let_go.wait(30)

    shadows.submit(work, running)
    assert begun.wait(30)
    shadows.submit(work, waiting)
    shadows.submit(work, waiting)
    assert shadows.close(timeout_s=0.01) == 2
    assert waiting.wait() == [(None, None, None)] * 2
    ((_, error, seconds),) = running.wait()
    assert type(error).__name__ == "TookTooLongError"
    assert seconds > 0
    let_go.set()


def test_coroutines_share_one_loop_of_their_own():
    shadows, told = ShadowPool(), Told(2)

    async def work():
        return asyncio.get_running_loop()

    for _ in range(2):
        shadows.submit(lambda: shadows.wait_for(work), told)
    (one, *_), (other, *_) = told.wait()
    assert one is other


@pytest.mark.parametrize("wrong", [{"concurrency": 0}, {"waiting": 0}, {"timeout_s": 0.0}])
def test_bounds_of_nothing_are_refused(wrong):
    with pytest.raises(InputError):
        ShadowOptions(**wrong)
