from __future__ import annotations

import asyncio

import pytest

from misslink.judging.protocol import NotAskedError, TryAgainError
from misslink.judging.wrappers.budget import Budget
from misslink.judging.wrappers.clock import ask_in_time
from staged_judge import StagedJudge, numbered
from virtual_time import now, run


class Queued(StagedJudge):
    """A judge that is ready after 50 seconds."""

    async def ready(self):
        await asyncio.sleep(50)


def begin():
    """Begin, whatever happens."""


@pytest.mark.parametrize("around", [lambda judge: judge, Budget])
def test_the_time_of_a_call_begins_when_the_judge_is_ready(around):
    judge = Queued(latency=2.0)
    assert run(ask_in_time(around(judge), numbered(0), 3.0, begin)).came
    assert judge.puts[0].came == 1050


def test_a_call_that_takes_longer_is_cut():
    judge = Queued(latency=20.0)
    with pytest.raises(TryAgainError, match="no reply came within 3 s") as caught:
        run(ask_in_time(judge, numbered(0), 3.0, begin))
    assert caught.value.kind == "time"
    assert judge.puts[0].went - judge.puts[0].came == pytest.approx(3)


@pytest.mark.parametrize("around", [lambda judge: judge, Budget])
def test_what_may_not_begin_is_not_asked(around):
    judge, moments = Queued(), []

    def too_late():
        moments.append(now())
        raise NotAskedError("too late")

    with pytest.raises(NotAskedError, match="too late"):
        run(ask_in_time(around(judge), numbered(0), 3.0, too_late))
    assert moments == [1050]
    assert not judge.puts
