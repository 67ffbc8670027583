"""A call is counted as hanging from when it was left until it ends, and never otherwise."""

from __future__ import annotations

from misslink.live.timeout_runner import AbandonableCall


def test_what_is_done_first_is_not_left():
    counted = []
    fate = AbandonableCall(counted.append)
    fate.done()
    assert not fate.leave()
    assert counted == []


def test_what_is_left_counts_until_it_is_done():
    counted = []
    fate = AbandonableCall(counted.append)
    assert fate.leave()
    assert counted == [1]
    fate.done()
    assert counted == [1, -1]
