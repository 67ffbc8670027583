"""An event loop whose clock jumps to the next timer: tests of waits that wait for nothing."""

import asyncio
import selectors


class _Jumping(selectors.DefaultSelector):
    """Does not wait for anything, but says for how long it would have."""

    waited = 0.0

    def select(self, timeout=None):
        if timeout is None:
            raise RuntimeError("everybody waits for somebody else")
        self.waited += max(0.0, timeout)
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """Starts at second 1000; time passes only while all tasks wait."""

    def __init__(self):
        self._clock = _Jumping()
        super().__init__(self._clock)

    def time(self):
        return 1000.0 + self._clock.waited


def run(main):
    """As asyncio.run, in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)


def now():
    return asyncio.get_running_loop().time()
