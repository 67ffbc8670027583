from __future__ import annotations

import asyncio

import pytest

from misslink.judge.middleware.budget import BudgetedJudge
from misslink.judge.middleware.throttle import ask_with_timeout
from misslink.judge.protocol import JudgeInfo, RetryableError, SkippedAskError
from staged_judge import StagedJudge, numbered
from virtual_time import now, run


class Queued(StagedJudge):
    """A judge that is ready after 50 seconds."""

    @property
    def info(self):
        return JudgeInfo(prepare=lambda: asyncio.sleep(50))


def begin():
    """Begin, whatever happens."""


@pytest.mark.parametrize("around", [lambda judge: judge, BudgetedJudge])
def test_the_time_of_a_call_begins_when_the_judge_is_ready(around):
    judge = Queued(latency=2.0)
    assert run(ask_with_timeout(around(judge), numbered(0), 3.0, begin)).came
    assert judge.puts[0].came == 1050


def test_a_call_that_takes_longer_is_cut():
    judge = Queued(latency=20.0)
    with pytest.raises(RetryableError, match="no reply came within 3 s") as caught:
        run(ask_with_timeout(judge, numbered(0), 3.0, begin))
    assert caught.value.kind == "time"
    assert judge.puts[0].went - judge.puts[0].came == pytest.approx(3)


@pytest.mark.parametrize("around", [lambda judge: judge, BudgetedJudge])
def test_what_may_not_begin_is_not_asked(around):
    judge, moments = Queued(), []

    def too_late():
        moments.append(now())
        raise SkippedAskError("too late")

    with pytest.raises(SkippedAskError, match="too late"):
        run(ask_with_timeout(around(judge), numbered(0), 3.0, too_late))
    assert moments == [1050]
    assert not judge.puts
