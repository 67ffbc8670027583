"""When questions go out together: not while answers that may lead to more are being read."""

from __future__ import annotations

import asyncio

from misslink.judge.batch.scheduler import BatchScheduler, BatchTiming


def test_nothing_goes_out_while_answers_are_read_however_slowly_they_come():
    async def within():
        flow = BatchScheduler(BatchTiming(linger=0, first=0, longest=0), lambda _: None)
        with flow.reading():
            quiet = asyncio.create_task(flow.wait_until_idle())
            for _ in range(200):
                await asyncio.sleep(0)
            waited = not quiet.done()
        await quiet
        return waited

    assert asyncio.run(within())


def test_after_a_full_queue_one_goes_after_the_other():
    async def within():
        flow, most, now = BatchScheduler(BatchTiming(0, 0, 0), lambda _: None), 0, 0

        async def submit():
            nonlocal most, now
            async with flow.submission_turn():
                now += 1
                most = max(most, now)
                await asyncio.sleep(0)
                now -= 1

        await asyncio.gather(*(submit() for _ in range(5)))
        at_first = most
        most, flow.queue_full = 0, True
        await asyncio.gather(*(submit() for _ in range(5)))
        return at_first, most

    assert asyncio.run(within()) == (5, 1)
