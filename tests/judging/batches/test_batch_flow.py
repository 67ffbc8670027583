"""When questions go out together: not while answers that may lead to more are being read."""

from __future__ import annotations

import asyncio

from misslink.judging.batches.flow import Flow
from misslink.judging.batches.timing import Timing


def test_nothing_goes_out_while_answers_are_read_however_slowly_they_come():
    async def within():
        flow = Flow(Timing(linger=0, first=0, longest=0), lambda _: None)
        with flow.reading():
            quiet = asyncio.create_task(flow.quiet())
            for _ in range(200):
                await asyncio.sleep(0)
            waited = not quiet.done()
        await quiet
        return waited

    assert asyncio.run(within())


def test_after_a_full_queue_one_goes_after_the_other():
    async def within():
        flow, most, now = Flow(Timing(0, 0, 0), lambda _: None), 0, 0

        async def submit():
            nonlocal most, now
            async with flow.turn():
                now += 1
                most = max(most, now)
                await asyncio.sleep(0)
                now -= 1

        await asyncio.gather(*(submit() for _ in range(5)))
        at_first = most
        most, flow.crowded = 0, True
        await asyncio.gather(*(submit() for _ in range(5)))
        return at_first, most

    assert asyncio.run(within()) == (5, 1)
